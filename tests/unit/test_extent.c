/* SPDX-License-Identifier: MIT */
/*
 * Extent: the rules by which descriptions shrink; numbers far beyond 32 bits; failing allocations.
 * Random trees are test_extent_random.c's.
 */
#include "extent.h"
#include "extent_node.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Allocations under watch (linked with --wrap) ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static uint64_t allocated_bytes;
static uint64_t allocations_left = UINT64_MAX;

static bool may_allocate(void)
{
    if (allocations_left == 0)
        return false;
    --allocations_left;
    return true;
}

void *__wrap_malloc(size_t size)
{
    allocated_bytes += size;
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocated_bytes += n * size;
    return may_allocate() ? __real_calloc(n, size) : NULL;
}

/* ---- Random numbers ---- */

static uint64_t seed;

static uint64_t roll(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return below ? seed % below : 0;
}
/* ---- How descriptions shrink ---- */

static struct hipio_layout *run_of(int64_t offset, uint64_t length)
{
    struct hipio_layout *out = NULL;

    assert_int_equal(hipio_layout_run(offset, length, &out), 0);
    return out;
}

static struct hipio_layout *vector_of(struct hipio_layout *child, int64_t offset, uint64_t count,
                                      int64_t stride)
{
    struct hipio_layout *out = NULL;

    assert_int_equal(hipio_layout_vector(child, offset, count, stride, &out), 0);
    return out;
}

/* Releases the layout. */
static void expect_run(struct hipio_layout *layout, int64_t offset, uint64_t length)
{
    int64_t at = -1;

    assert_true(hipio_layout_is_contiguous(layout, &at));
    assert_int_equal(at, offset);
    assert_int_equal(hipio_layout_size(layout), length);
    hipio_layout_release(layout);
}

/* Releases the layout: one strip and nothing else. */
static void expect_strip(struct hipio_layout *layout, struct hipio_strip want)
{
    struct hipio_cursor cursor;
    struct hipio_strip strip;

    hipio_cursor_init(&cursor, layout, 0);
    assert_int_equal(hipio_cursor_next(&cursor, UINT64_MAX, &strip), want.length * want.count);
    assert_int_equal(strip.offset, want.offset);
    assert_int_equal(strip.length, want.length);
    assert_int_equal(strip.count, want.count);
    assert_int_equal(strip.stride, want.stride);
    assert_int_equal(hipio_cursor_next(&cursor, UINT64_MAX, &strip), 0);
    hipio_layout_release(layout);
}

static void vector_of_touching_runs_is_a_run(void **state)
{
    (void)state;
    expect_run(vector_of(run_of(3, 8), 100, 1000, 8), 103, 8000);
    expect_run(vector_of(vector_of(run_of(0, 4), 0, 10, 4), 7, 3, 40), 7, 120);
    expect_run(vector_of(run_of(5, 4), 1, 1, 999), 6, 4);
}

static void vectors_that_continue_a_stride_are_one(void **state)
{
    (void)state;
    expect_strip(vector_of(vector_of(run_of(1, 4), 0, 10, 16), 100, 5, 160),
                 (struct hipio_strip){101, 4, 50, 16});
    expect_strip(vector_of(vector_of(run_of(1, 4), 0, 10, -16), 100, 5, -160),
                 (struct hipio_strip){101, 4, 50, -16});
}

static void nothing_is_an_empty_layout(void **state)
{
    (void)state;
    const int64_t offset[2] = {5, 9};
    const uint64_t length[2] = {0, 0};
    struct hipio_layout *child[2] = {run_of(1, 0), vector_of(run_of(0, 4), 0, 0, 8)};
    struct hipio_layout *empty[5] = {run_of(7, 0), vector_of(run_of(0, 0), 3, 5, 8)};
    struct hipio_cursor cursor;
    int64_t low = 1;
    int64_t high = 1;

    assert_int_equal(hipio_layout_runs(2, offset, length, &empty[2]), 0);
    assert_int_equal(hipio_layout_list(2, offset, child, &empty[3]), 0);
    assert_int_equal(hipio_layout_list(0, NULL, NULL, &empty[4]), 0);
    for (int i = 0; i < 5; ++i) {
        assert_int_equal(hipio_layout_size(empty[i]), 0);
        assert_true(hipio_layout_is_monotonic(empty[i]));
        assert_true(hipio_layout_is_contiguous(empty[i], &low));
        hipio_layout_bounds(empty[i], 0, 10, &low, &high);
        assert_int_equal(low, 0);
        assert_int_equal(high, 0);
        assert_int_equal(hipio_layout_bytes_below(empty[i], 0, 10, 100), 0);
        hipio_cursor_init(&cursor, empty[i], 0);
        assert_int_equal(hipio_cursor_next_run(&cursor, 10, &low), 0);
        hipio_layout_release(empty[i]);
    }
    hipio_layout_release(NULL);
}

static void runs_are_merged_and_recognised(void **state)
{
    (void)state;
    struct hipio_layout *out;

    const int64_t touching[4] = {10, 14, 99, 16};
    const uint64_t lengths[4] = {4, 2, 0, 4};
    assert_int_equal(hipio_layout_runs(4, touching, lengths, &out), 0);
    expect_run(out, 10, 10);

    const int64_t even[4] = {40, 30, 20, 10};
    const uint64_t equal[4] = {4, 4, 4, 4};
    assert_int_equal(hipio_layout_runs(4, even, equal, &out), 0);
    assert_true(node_is_strided(out) && node_is_uniform(out));
    expect_strip(out, (struct hipio_strip){40, 4, 4, -10});

    /* An uneven place in the middle: two strips, found by looking ahead. */
    const int64_t uneven[5] = {0, 10, 20, 31, 41};
    const uint64_t five[5] = {4, 4, 4, 4, 4};
    struct hipio_cursor cursor;
    struct hipio_strip strip;
    assert_int_equal(hipio_layout_runs(5, uneven, five, &out), 0);
    hipio_cursor_init(&cursor, out, 0);
    assert_int_equal(hipio_cursor_next(&cursor, 1000, &strip), 12);
    assert_int_equal(strip.count, 3);
    assert_int_equal(hipio_cursor_next(&cursor, 1000, &strip), 8);
    assert_int_equal(strip.offset, 31);
    hipio_layout_release(out);
}

static void lists_are_recognised(void **state)
{
    (void)state;
    struct hipio_layout *out;
    const int64_t offset[3] = {0, 20, 40};
    struct hipio_layout *runs[3] = {run_of(1, 4), run_of(1, 4), run_of(1, 4)};

    assert_int_equal(hipio_layout_list(3, offset, runs, &out), 0);
    expect_strip(out, (struct hipio_strip){1, 4, 3, 20});

    const int64_t touching[2] = {0, 4};
    assert_int_equal(
        hipio_layout_list(2, touching, (struct hipio_layout *[]){run_of(1, 4), run_of(1, 4)}, &out),
        0);
    expect_run(out, 1, 8);

    /* The same vector at even places is a vector of it, and that one continues the stride. */
    struct hipio_layout *vector = vector_of(run_of(0, 2), 0, 2, 10);
    struct hipio_layout *same[3] = {vector, hipio_layout_retain(vector),
                                    hipio_layout_retain(vector)};
    assert_int_equal(hipio_layout_list(3, offset, same, &out), 0);
    expect_strip(out, (struct hipio_strip){0, 2, 6, 10});
}

static void equal_blocks_cost_four_bytes(void **state)
{
    (void)state;
    const uint64_t n = 1 << 20;
    int64_t *offset = __real_malloc(n * sizeof *offset);
    uint64_t *length = __real_malloc(n * sizeof *length);
    struct hipio_layout *out;

    seed = 4711;
    for (uint64_t i = 0; i < n; ++i) {
        offset[i] = (int64_t)(i * 16 + roll(10));
        length[i] = 4;
    }
    allocated_bytes = 0;
    assert_int_equal(hipio_layout_runs(n, offset, length, &out), 0);
    assert_in_range(allocated_bytes, n * 4, n * 4 + 1024);
    assert_true(hipio_layout_is_monotonic(out));
    hipio_layout_release(out);
    free(offset);
    free(length);
}

/* ---- Large numbers ---- */

/* Numbers as MPI keeps them: two words, and then a place for each block of `length` bytes. */
struct places {
    struct hipio_run_source source; /* first */
    const int32_t *words;
    int64_t unit;
    uint64_t length;
};

static void place_at(const struct hipio_run_source *source, uint64_t i, int64_t *offset,
                     uint64_t *length)
{
    const struct places *places = (const struct places *)source;

    *offset = places->words[2 + i] * places->unit;
    *length = places->length + (places->length > 4 && i % 3 == 0 ? 1 : 0);
}

static struct hipio_layout *layout_in_place(const struct places *like, const int32_t *words)
{
    const size_t bytes = (like->source.n + 2) * sizeof *words;
    struct places places = *like;
    struct hipio_layout *out = NULL;
    int32_t *room = __real_malloc(bytes);

    memcpy(room, words, bytes);
    places.words = room;
    allocated_bytes = 0;
    assert_int_equal(hipio_layout_runs_from(&places.source, room, &out), 0);
    return out;
}

static void assert_same(const struct hipio_layout *a, const struct hipio_layout *b)
{
    struct hipio_cursor one, other;
    int64_t at = 0, right = 0;
    uint64_t n;

    assert_int_equal(hipio_layout_size(a), hipio_layout_size(b));
    hipio_cursor_init(&one, a, 0);
    hipio_cursor_init(&other, b, 0);
    while ((n = hipio_cursor_next_run(&one, UINT64_MAX, &at)) > 0) {
        assert_int_equal(hipio_cursor_next_run(&other, UINT64_MAX, &right), n);
        assert_int_equal(at, right);
    }
}

/* Rising, falling, merging, strided and wild places; blocks of one length and of several; reaching
 * beyond 32 bits or not. */
static void lists_are_made_in_their_own_numbers(void **state)
{
    (void)state;
    enum { N = 5000 };
    int32_t words[N + 2];

    seed = 4711;
    for (int round = 0; round < 60; round++) {
        const uint64_t wild = (uint64_t[]){1, 2, 3, 100000}[roll(4)], n = roll(N + 1);
        struct places places = {.source = {n, place_at},
                                .words = words,
                                .unit = roll(5) ? 4 : 40000,
                                .length = roll(2) ? 4 : 5};
        struct hipio_layout *right, *got;

        for (uint64_t i = 0, at = 0; i < n; i++, at += 1 + roll(wild))
            words[2 + i] = (int32_t)(round % 2 ? at : N * 100000ull - at);
        assert_int_equal(hipio_layout_runs_from(&places.source, NULL, &right), 0);
        got = layout_in_place(&places, words);
        if (places.length == 4 && places.unit == 4)
            /* The node, and lengths where touching blocks have become longer ones. */
            assert_true(allocated_bytes < (round % 2 && wild < 100000 ? 4 * n : 0) + 1000);
        assert_same(got, right);
        hipio_layout_release(got);
        hipio_layout_release(right);
    }
}

static void offsets_beyond_32_bits(void **state)
{
    (void)state;
    const int64_t gib = INT64_C(1) << 30;
    const int64_t offset[3] = {-5 * gib, 3 * gib, 70 * gib};
    const uint64_t length[3] = {(uint64_t)(3 * gib), 10, (uint64_t)(3 * gib)};
    struct hipio_layout *out;
    struct hipio_cursor cursor;
    int64_t at;
    int64_t low;
    int64_t high;

    assert_int_equal(hipio_layout_runs(3, offset, length, &out), 0);
    assert_int_equal(hipio_layout_size(out), 6 * gib + 10);
    hipio_cursor_init(&cursor, out, (uint64_t)(3 * gib) + 10 + 5);
    assert_int_equal(hipio_cursor_next_run(&cursor, UINT64_MAX, &at), 3 * gib - 5);
    assert_int_equal(at, 70 * gib + 5);
    hipio_layout_bounds(out, 1, 3 * (uint64_t)gib, &low, &high);
    assert_int_equal(low, -5 * gib + 1);
    assert_int_equal(high, 3 * gib + 1);
    assert_int_equal(hipio_layout_bytes_below(out, 5, UINT64_MAX, 70 * gib + 3), 3 * gib + 8);
    hipio_layout_release(out);
}

static void a_trillion_blocks(void **state)
{
    (void)state;
    const uint64_t count = UINT64_C(1) << 40;
    struct hipio_layout *out = vector_of(run_of(0, 4), -7, count, 16);
    struct hipio_cursor cursor;
    struct hipio_strip strip;
    int64_t at;

    assert_int_equal(hipio_layout_size(out), 4 * count);
    hipio_cursor_init(&cursor, out, 4 * count - 6);
    assert_int_equal(hipio_cursor_next_run(&cursor, 100, &at), 2);
    assert_int_equal(at, -7 + 16 * (int64_t)(count - 2) + 2);
    hipio_cursor_init(&cursor, out, 8);
    assert_int_equal(hipio_cursor_next(&cursor, UINT64_MAX, &strip), 4 * (count - 2));
    assert_int_equal(strip.count, count - 2);
    assert_int_equal(hipio_layout_bytes_below(out, 0, UINT64_MAX, 16 * (int64_t)(count / 2) - 6),
                     4 * (count / 2) + 1);
    hipio_layout_release(out);
}

static void layouts_at_the_edge_of_63_bits(void **state)
{
    (void)state;
    /* The origins of the children leave 63 bits, their bytes do not. */
    struct hipio_layout *child = vector_of(run_of(INT64_MIN + 100, 4), 0, 3, 10);
    struct hipio_layout *other = vector_of(run_of(INT64_MIN + 100, 4), 0, 3, 11);
    struct hipio_layout *out;
    const int64_t offset[2] = {0, INT64_MAX};
    struct hipio_cursor cursor;
    int64_t at;

    assert_int_equal(hipio_layout_list(2, offset, (struct hipio_layout *[]){child, other}, &out),
                     0);
    out = vector_of(out, 50, 1, 0);
    assert_true(hipio_layout_is_monotonic(out));
    assert_int_equal(hipio_layout_bytes_below(out, 0, 100, 160), 16);
    hipio_cursor_init(&cursor, out, 13);
    assert_int_equal(hipio_cursor_next_run(&cursor, 100, &at), 3);
    assert_int_equal(at, 150);
    hipio_layout_release(out);
}

static void what_leaves_63_bits_is_refused(void **state)
{
    (void)state;
    struct hipio_layout *out = NULL;
    const int64_t far[2] = {INT64_MAX - 3, 0};
    const uint64_t four[2] = {4, 1};
    const uint64_t half[2] = {UINT64_C(1) << 62, UINT64_C(1) << 62};
    const int64_t zero[2] = {0, 5};

    assert_int_equal(hipio_layout_run(0, UINT64_MAX, &out), -EOVERFLOW);
    assert_int_equal(hipio_layout_run(INT64_MAX, 1, &out), -EOVERFLOW);
    assert_int_equal(hipio_layout_run(INT64_MAX - 1, 1, &out), 0);
    hipio_layout_release(out);
    assert_int_equal(hipio_layout_runs(1, far, four, &out), -EOVERFLOW);
    assert_int_equal(hipio_layout_runs(2, zero, half, &out), -EOVERFLOW);
    assert_int_equal(hipio_layout_vector(run_of(0, 4), 0, UINT64_C(1) << 61, 4, &out), -EOVERFLOW);
    assert_int_equal(hipio_layout_vector(run_of(0, 4), 0, 3, INT64_MAX / 2, &out), -EOVERFLOW);
    assert_int_equal(hipio_layout_vector(run_of(0, 4), 0, 3, INT64_MIN / 2 - 1, &out), -EOVERFLOW);
    assert_int_equal(hipio_layout_vector(run_of(9, 4), INT64_MAX - 5, 2, 8, &out), -EOVERFLOW);
    assert_int_equal(
        hipio_layout_list(2, far, (struct hipio_layout *[]){run_of(0, 4), run_of(0, 4)}, &out),
        -EOVERFLOW);
    assert_int_equal(
        hipio_layout_list(2, far,
                          (struct hipio_layout *[]){vector_of(run_of(0, 4), 0, 2, 9), run_of(0, 4)},
                          &out),
        -EOVERFLOW);
    assert_non_null(strstr(hipio_status_text(), "2^63"));
}

static void depth_is_bounded(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector_of(run_of(0, 1), 0, 2, 3);
    struct hipio_layout *out;
    struct hipio_cursor cursor;
    int64_t at;

    /* Strides that never continue one level in the next. One byte is left to choose below 2^64. */
    for (int depth = 1; depth < HIPIO_LAYOUT_DEPTH_MAX; ++depth) {
        const int64_t offset[2] = {0, 100 * depth};
        struct hipio_layout *child[2] = {layout, run_of(7, 1)};
        assert_int_equal(hipio_layout_list(2, offset, child, &layout), 0);
    }
    hipio_cursor_init(&cursor, layout, 1);
    assert_int_equal(hipio_cursor_next_run(&cursor, 1, &at), 1);
    assert_int_equal(at, 3);
    assert_int_equal(hipio_layout_size(layout), 2 + HIPIO_LAYOUT_DEPTH_MAX - 1);
    assert_int_equal(hipio_layout_vector(layout, 0, 2, 99999, &out), -EOVERFLOW);
    assert_non_null(strstr(hipio_status_text(), "64"));
}

/* ---- Sharing ---- */

static void a_shared_child_stays_as_it_is(void **state)
{
    (void)state;
    const int64_t offset[3] = {0, 10, 25};
    const uint64_t length[3] = {4, 2, 4};
    struct hipio_layout *layout;
    struct hipio_cursor cursor;
    int64_t at;

    assert_int_equal(hipio_layout_runs(3, offset, length, &layout), 0);
    struct hipio_layout *moved = vector_of(hipio_layout_retain(layout), 1000, 1, 0);
    struct hipio_layout *again = vector_of(hipio_layout_retain(moved), 1000, 1, 0);
    hipio_cursor_init(&cursor, layout, 4);
    assert_int_equal(hipio_cursor_next_run(&cursor, 9, &at), 2);
    assert_int_equal(at, 10);
    hipio_layout_release(layout);
    hipio_layout_release(moved);
    hipio_cursor_init(&cursor, again, 4);
    assert_int_equal(hipio_cursor_next_run(&cursor, 9, &at), 2);
    assert_int_equal(at, 2010);
    hipio_layout_release(again);
}

static void *retain_and_release(void *arg)
{
    for (int i = 0; i < 20000; ++i)
        hipio_layout_release(hipio_layout_retain(arg));
    hipio_layout_release(arg);
    return NULL;
}

static void references_count_across_threads(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector_of(run_of(0, 1), 0, 2, 3);
    pthread_t thread[4];

    for (int i = 0; i < 4; ++i)
        assert_int_equal(
            pthread_create(&thread[i], NULL, retain_and_release, hipio_layout_retain(layout)), 0);
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(atomic_load(&layout->references), 1);
    hipio_layout_release(layout);
}

static int build_everything(struct hipio_layout **out)
{
    const int64_t offset[3] = {0, 200, 900};
    const uint64_t length[3] = {4, 2, 9};
    struct hipio_layout *child[3] = {NULL, NULL, NULL};
    int err = hipio_layout_runs(3, offset, length, &child[0]);

    if (!err)
        err = hipio_layout_vector(hipio_layout_retain(child[0]), 5, 1, 0, &child[1]);
    if (!err)
        err = hipio_layout_run(909, 3, &child[2]);
    if (err) {
        for (int i = 0; i < 3; ++i)
            hipio_layout_release(child[i]);
        return err;
    }
    err = hipio_layout_list(3, offset, child, &child[0]);
    if (!err)
        err = hipio_layout_vector(child[0], 1, 4, 5000, out);
    return err;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct hipio_layout *out = NULL;
    uint64_t tries = 0;
    int err;

    do {
        allocations_left = tries++;
        err = build_everything(&out);
        allocations_left = UINT64_MAX;
        if (err)
            assert_int_equal(err, -ENOMEM);
    } while (err && tries < 100);
    assert_int_equal(err, 0);
    assert_in_range(tries, 8, 99);
    assert_int_equal(hipio_layout_size(out), 4 * (15 + 15 + 3));
    hipio_layout_release(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_of_touching_runs_is_a_run),
        cmocka_unit_test(vectors_that_continue_a_stride_are_one),
        cmocka_unit_test(nothing_is_an_empty_layout),
        cmocka_unit_test(runs_are_merged_and_recognised),
        cmocka_unit_test(lists_are_recognised),
        cmocka_unit_test(equal_blocks_cost_four_bytes),
        cmocka_unit_test(lists_are_made_in_their_own_numbers),
        cmocka_unit_test(offsets_beyond_32_bits),
        cmocka_unit_test(a_trillion_blocks),
        cmocka_unit_test(layouts_at_the_edge_of_63_bits),
        cmocka_unit_test(what_leaves_63_bits_is_refused),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(a_shared_child_stays_as_it_is),
        cmocka_unit_test(references_count_across_threads),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
