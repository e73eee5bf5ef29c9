/* SPDX-License-Identifier: MIT */
/*
 * Extent: random trees against a plain list of the offset of every byte.
 */
#include "extent.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

static uint64_t roll(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return below ? seed % below : 0;
}

static int64_t roll_between(int64_t low, int64_t high)
{
    return low + (int64_t)roll((uint64_t)(high - low + 1));
}

#define MODEL_MAX 1500

/* The offset of every byte, in packed order. */
struct model {
    uint64_t n;
    int64_t *at;
};

static void model_add(struct model *model, int64_t at)
{
    assert_true(model->n < MODEL_MAX);
    model->at[model->n++] = at;
}

static struct model model_new(void)
{
    return (struct model){0, malloc(MODEL_MAX * sizeof(int64_t))};
}

static void model_add_moved(struct model *model, const struct model *from, int64_t by)
{
    for (uint64_t i = 0; i < from->n; ++i)
        model_add(model, from->at[i] + by);
}

static struct hipio_layout *make(unsigned levels, uint64_t budget, struct model *model);

static struct hipio_layout *make_run(uint64_t budget, struct model *model)
{
    struct hipio_layout *out;
    const int64_t at = roll_between(-20, 20);
    const uint64_t n = roll((budget < 9 ? budget : 9) + 1);

    for (uint64_t i = 0; i < n; ++i)
        model_add(model, at + (int64_t)i);
    assert_int_equal(hipio_layout_run(at, n, &out), 0);
    return out;
}

static struct hipio_layout *make_vector(unsigned levels, uint64_t budget, struct model *model)
{
    struct hipio_layout *out;
    struct model part = model_new();
    const uint64_t count = roll(7);
    struct hipio_layout *child = make(levels - 1, budget / 7, &part);
    const int64_t at = roll_between(-20, 20);
    const int64_t stride = roll(3) ? roll_between(-40, 60) : (int64_t)part.n;

    for (uint64_t i = 0; i < count; ++i)
        model_add_moved(model, &part, at + (int64_t)i * stride);
    assert_int_equal(hipio_layout_vector(child, at, count, stride, &out), 0);
    free(part.at);
    return out;
}

static struct hipio_layout *make_runs(uint64_t budget, struct model *model)
{
    struct hipio_layout *out;
    int64_t offset[8] = {0};
    uint64_t length[8] = {0};
    const uint64_t n = roll(9);
    const uint64_t style = roll(3); /* any, ascending, equal at an even distance */
    int64_t next = roll_between(-30, 30);

    for (uint64_t i = 0; i < n; ++i) {
        length[i] = style == 2 ? 3 : roll(6);
        if (model->n + length[i] > budget)
            length[i] = 0;
        offset[i] = style == 0 ? roll_between(-60, 60) : next;
        next = offset[i] + (int64_t)length[i] + (int64_t)(style == 2 ? 4 : roll(3));
        for (uint64_t k = 0; k < length[i]; ++k)
            model_add(model, offset[i] + (int64_t)k);
    }
    assert_int_equal(hipio_layout_runs(n, offset, length, &out), 0);
    return out;
}

static struct hipio_layout *make_list(unsigned levels, uint64_t budget, struct model *model)
{
    struct hipio_layout *out;
    struct hipio_layout *child[6] = {NULL};
    int64_t offset[6] = {0};
    struct model part[6];
    const uint64_t n = roll(7);
    int64_t next = roll_between(-20, 20);
    const bool ascending = roll(2);
    const bool same = roll(4) == 0;

    for (uint64_t i = 0; i < n; ++i) {
        if (i > 0 && same) {
            part[i] = part[0];
            child[i] = hipio_layout_retain(child[0]);
        } else {
            part[i] = model_new();
            child[i] = make(levels - 1, budget / 6, &part[i]);
        }
        offset[i] = ascending ? next : roll_between(-50, 50);
        next += (int64_t)part[i].n + (int64_t)roll(40);
        model_add_moved(model, &part[i], offset[i]);
    }
    assert_int_equal(hipio_layout_list(n, offset, child, &out), 0);
    for (uint64_t i = 0; i < n; ++i) {
        if (i == 0 || !same)
            free(part[i].at);
    }
    return out;
}

static struct hipio_layout *make(unsigned levels, uint64_t budget, struct model *model)
{
    switch (levels ? roll(5) : roll(2)) {
    case 0:
        return make_run(budget, model);
    case 1:
        return make_runs(budget, model);
    case 2:
    case 3:
        return make_vector(levels, budget, model);
    default:
        return make_list(levels, budget, model);
    }
}

/* ---- Checks against the model ---- */

static void check_runs(const struct hipio_layout *layout, const struct model *model, uint64_t from)
{
    struct hipio_cursor cursor;
    uint64_t at = from;
    const bool whole = roll(2);
    int64_t end = 0;

    hipio_cursor_init(&cursor, layout, from);
    for (;;) {
        int64_t offset;
        const uint64_t most = whole ? UINT64_MAX : 1 + roll(12);
        const uint64_t got = hipio_cursor_next_run(&cursor, most, &offset);

        if (got == 0)
            break;
        assert_true(got <= most);
        assert_true(got <= model->n - at);
        if (whole && at > from)
            assert_int_not_equal(offset, end);
        for (uint64_t i = 0; i < got; ++i)
            assert_int_equal(offset + (int64_t)i, model->at[at + i]);
        at += got;
        end = offset + (int64_t)got;
        assert_int_equal(cursor.position, at);
    }
    assert_int_equal(at, model->n);
}

static void check_strips(const struct hipio_layout *layout, const struct model *model,
                         uint64_t from)
{
    struct hipio_cursor cursor;
    struct hipio_strip strip;
    uint64_t at = from;
    const uint64_t most_of_all = roll(2) ? UINT64_MAX : 30;

    hipio_cursor_init(&cursor, layout, from);
    for (;;) {
        const uint64_t most = 1 + roll(most_of_all);
        const struct hipio_cursor before = cursor;
        const uint64_t got = hipio_cursor_next(&cursor, most, &strip);

        if (got == 0)
            break;
        assert_true(got <= most);
        assert_int_equal(got, strip.length * strip.count);
        assert_true(got <= model->n - at);
        for (uint64_t i = 0; i < got; ++i)
            assert_int_equal(strip.offset + (int64_t)(i / strip.length) * strip.stride +
                                 (int64_t)(i % strip.length),
                             model->at[at + i]);
        assert_int_equal(before.position, at);
        at += got;
        assert_int_equal(cursor.position, at);
    }
    assert_int_equal(at, model->n);
}

static void check_bounds(const struct hipio_layout *layout, const struct model *model)
{
    const uint64_t start = roll(model->n + 1);
    const uint64_t length = roll(3) ? roll(model->n - start + 1) : UINT64_MAX;
    const uint64_t n = length < model->n - start ? length : model->n - start;
    int64_t low = n ? INT64_MAX : 0;
    int64_t high = n ? INT64_MIN : 0;
    int64_t got_low = 77;
    int64_t got_high = 77;

    for (uint64_t i = start; i < start + n; ++i) {
        low = model->at[i] < low ? model->at[i] : low;
        high = model->at[i] + 1 > high ? model->at[i] + 1 : high;
    }
    hipio_layout_bounds(layout, start, length, &got_low, &got_high);
    assert_int_equal(got_low, low);
    assert_int_equal(got_high, high);
}

static bool model_is_monotonic(const struct model *model)
{
    for (uint64_t i = 1; i < model->n; ++i) {
        if (model->at[i] <= model->at[i - 1])
            return false;
    }
    return true;
}

static void check_below(const struct hipio_layout *layout, const struct model *model)
{
    const uint64_t start = roll(model->n + 2);
    const uint64_t length = roll(model->n + 2);
    const int64_t limit =
        model->n && roll(4) ? model->at[roll(model->n)] + roll_between(-1, 1) : roll_between(-9, 9);
    uint64_t below = 0;

    for (uint64_t i = start; i < model->n && i < start + length; ++i)
        below += model->at[i] < limit;
    assert_int_equal(hipio_layout_bytes_below(layout, start, length, limit), below);
}

static uint64_t monotonic_seen;

static void check_all(const struct hipio_layout *layout, const struct model *model)
{
    int64_t offset;

    assert_int_equal(hipio_layout_size(layout), model->n);
    assert_int_equal(hipio_layout_is_monotonic(layout), model_is_monotonic(model));
    if (hipio_layout_is_contiguous(layout, &offset)) {
        for (uint64_t i = 0; i < model->n; ++i)
            assert_int_equal(model->at[i], offset + (int64_t)i);
    }
    for (int i = 0; i < 6; ++i) {
        check_runs(layout, model, roll(model->n + 1));
        check_strips(layout, model, roll(model->n + 1));
        check_bounds(layout, model);
        if (model_is_monotonic(model))
            check_below(layout, model);
    }
    monotonic_seen += model->n > 1 && model_is_monotonic(model);
}

static void random_trees_equal_their_bytes(void **state)
{
    (void)state;
    struct model model = model_new();

    monotonic_seen = 0;
    for (uint64_t i = 0; i < 6000; ++i) {
        seed = 0x9e3779b97f4a7c15u * (i + 1);
        model.n = 0;
        struct hipio_layout *layout = make((unsigned)roll(5), MODEL_MAX, &model);
        check_all(layout, &model);
        hipio_layout_release(layout);
    }
    free(model.at);
    assert_in_range(monotonic_seen, 500, 5500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_trees_equal_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
