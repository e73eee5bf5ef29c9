/* SPDX-License-Identifier: MIT */
/*
 * Pack: every shape of memory gathered and scattered right, in as few copies as the shape allows.
 */
#include "engine.h"
#include "fake_device.h"
#include "pack.h"
#include "pattern.h"
#include "rig.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MEMORY (256 * 1024)

struct bench {
    char *base;
    struct hipio_memory memory;
    struct hipio_pack pack;
    unsigned char *slot;
};

static int set_up(void **state)
{
    static struct bench bench;

    fake_reset();
    bench.base = fake_alloc(0, MEMORY, &bench.memory);
    bench.slot = malloc(MEMORY);
    bench.pack = (struct hipio_pack){.memory = &bench.memory, .base = bench.base};
    assert_int_equal(hipio_lanes_borrow(&fake_device, 0, &bench.pack.lane), 0);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    hipio_lanes_return(bench->pack.lane);
    hipio_engine_shutdown();
    fake_free(bench->base);
    free(bench->slot);
    return 0;
}

/* The byte at each packed position, told by the layout's own cursor. */
static void expect_packed(const struct bench *bench, const struct hipio_layout *layout,
                          uint64_t start, uint64_t bytes)
{
    struct hipio_cursor cursor;
    int64_t offset;

    hipio_cursor_init(&cursor, layout, start);
    for (uint64_t i = 0; i < bytes; i++) {
        assert_int_equal(hipio_cursor_next_run(&cursor, 1, &offset), 1);
        if (bench->slot[i] != fake_bytes(bench->base)[offset])
            fail_msg("packed byte %llu is not that of offset %lld", (unsigned long long)i,
                     (long long)offset);
    }
}

static void synchronize(struct bench *bench)
{
    const struct hipio_lane *lane = bench->pack.lane;
    assert_int_equal(lane->ops->stream_synchronize(lane->stream), 0);
}

static void gather(struct bench *bench, const struct hipio_layout *layout, uint64_t start,
                   uint64_t bytes)
{
    struct hipio_cursor cursor;

    pattern_fill(fake_bytes(bench->base), 3, 0, MEMORY);
    memset(bench->slot, 0, MEMORY);
    hipio_cursor_init(&cursor, layout, start);
    assert_int_equal(hipio_pack_gather(&bench->pack, &cursor, bench->slot, bytes), 0);
    assert_int_equal(cursor.position, start + bytes);
    synchronize(bench);
    expect_packed(bench, layout, start, bytes);
}

static void scatter(struct bench *bench, const struct hipio_layout *layout, uint64_t start,
                    uint64_t bytes)
{
    struct hipio_cursor cursor;
    unsigned char *wanted = malloc(MEMORY);
    int64_t offset;

    memset(fake_bytes(bench->base), 0xA5, MEMORY);
    memset(wanted, 0xA5, MEMORY);
    pattern_fill(bench->slot, 4, 0, bytes);
    hipio_cursor_init(&cursor, layout, start);
    for (uint64_t i = 0; i < bytes; i++) {
        hipio_cursor_next_run(&cursor, 1, &offset);
        wanted[offset] = bench->slot[i];
    }
    hipio_cursor_init(&cursor, layout, start);
    assert_int_equal(hipio_pack_scatter(&bench->pack, &cursor, bench->slot, bytes), 0);
    synchronize(bench);
    assert_memory_equal(fake_bytes(bench->base), wanted, MEMORY);
    free(wanted);
}

static void both(struct bench *bench, struct hipio_layout *layout)
{
    uint64_t size = hipio_layout_size(layout);

    gather(bench, layout, 0, size);
    scatter(bench, layout, 0, size);
    gather(bench, layout, size / 3, size / 2);
    scatter(bench, layout, size / 3, size / 2);
    hipio_layout_release(layout);
}

static struct hipio_layout *nested(void)
{
    struct hipio_layout *layout;
    assert_int_equal(hipio_layout_vector(rig_vector(24, 10, 40), 100, 20, 900, &layout), 0);
    return layout;
}

static struct hipio_layout *backwards(void)
{
    struct hipio_layout *layout;
    assert_int_equal(hipio_layout_vector(rig_run(0, 12), 9000, 300, -24, &layout), 0);
    return layout;
}

static void is_right_for_every_shape(void **state)
{
    struct bench *bench = *state;

    for (int refusal = 0; refusal < 4; refusal++) {
        fake_refuse(refusal & 1, refusal & 2);
        bench->pack.known_start = bench->pack.known_end = 0;
        both(bench, rig_run(0, 5000));
        both(bench, rig_run(4096, 100000));
        both(bench, rig_vector(8, 4096, 16));
        both(bench, rig_vector(1, 1000, 200));
        both(bench, rig_vector(8192, 20, 10000));
        both(bench, nested());
        both(bench, backwards());
        both(bench, rig_random(1, 1000, 50));
        both(bench, rig_random(2, 40, 5000));
        both(bench, rig_random(3, 3, 100));
    }
}

static uint64_t copies_to_gather(struct bench *bench, struct hipio_layout *layout)
{
    fake_reset();
    gather(bench, layout, 0, hipio_layout_size(layout));
    hipio_layout_release(layout);
    return fake_counters().copies;
}

static void makes_few_copies(void **state)
{
    struct bench *bench = *state;

    assert_int_equal(copies_to_gather(bench, rig_run(0, MEMORY)), 1);
    assert_int_equal(copies_to_gather(bench, rig_vector(8, 4096, 32)), 0);
    assert_int_equal(fake_counters().grids, 1);
    assert_int_equal(copies_to_gather(bench, nested()), 1);
    assert_int_equal(fake_counters().grids, 0);
    /* Fine-grained and dense: one copy of all that lies around it. */
    assert_int_equal(copies_to_gather(bench, rig_random(1, 4000, 50)), 1);
    assert_int_equal(copies_to_gather(bench, backwards()), 1);
    /* Coarse: straight to where it belongs. */
    assert_int_equal(copies_to_gather(bench, rig_random(2, 14, 10000)), 14);
}

/* Nothing between the runs is read unless it is surely part of the same allocation, and no 2D copy
 * leaves one. */
static void reads_gaps_only_inside_one_allocation(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *runs = rig_random(1, 400, 50), *grid = rig_vector(64, 500, 256);
    int64_t low, high;

    hipio_layout_bounds(runs, 0, hipio_layout_size(runs), &low, &high);
    fake_cut(bench->base, (uint64_t)high / 2);
    fake_reset();
    gather(bench, runs, 0, hipio_layout_size(runs));
    assert_true(fake_counters().copies > 300);
    fake_reset();
    gather(bench, grid, 0, hipio_layout_size(grid));
    assert_int_equal(fake_counters().copies, 500);
    assert_int_equal(fake_counters().grids, 0);
    hipio_layout_release(runs);
    hipio_layout_release(grid);
}

static void passes_errors_on(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *layout = rig_random(2, 14, 10000);
    struct hipio_cursor cursor;

    hipio_cursor_init(&cursor, layout, 0);
    fake_fail(FAKE_COPY, 3, 1, -EIO);
    assert_int_equal(hipio_pack_gather(&bench->pack, &cursor, bench->slot, 50000), -EIO);
    hipio_layout_release(layout);

    layout = rig_random(1, 1000, 50);
    hipio_cursor_init(&cursor, layout, 0);
    fake_fail(FAKE_COPY, 0, 1, -EIO);
    assert_int_equal(hipio_pack_gather(&bench->pack, &cursor, bench->slot, 10000), -EIO);
    synchronize(bench);
    hipio_cursor_init(&cursor, layout, 0);
    fake_fail(FAKE_COPY, 5, 1, -EIO);
    assert_int_equal(hipio_pack_scatter(&bench->pack, &cursor, bench->slot, 10000), -EIO);
    synchronize(bench);
    hipio_layout_release(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(is_right_for_every_shape, set_up, tear_down),
        cmocka_unit_test_setup_teardown(makes_few_copies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reads_gaps_only_inside_one_allocation, set_up, tear_down),
        cmocka_unit_test_setup_teardown(passes_errors_on, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
