/* SPDX-License-Identifier: MIT */
/*
 * Window: GPU memory to and from a window of host memory without staging: the bytes for every pair
 * of shapes, how many copies they take, and what happens where the window can't be pinned.
 */
#include "engine.h"
#include "fake_device.h"
#include "pattern.h"
#include "rig.h"
#include "rows.h"
#include "stats.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define GPU_SEED 3
#define WINDOW_SEED 4
#define SIZE (256 * 1024)
#define BASE (INT64_C(1) << 40) /* of the window, in the file that it is a part of */

struct bench {
    struct rig rig;
    unsigned char *window;
    char *base;
    struct hipio_memory memory;
};

static struct bench shared;

static void open_window(struct bench *bench)
{
    assert_int_equal(hipio_file_create_window(bench->window, SIZE, "window", &bench->rig.tunables,
                                              &bench->rig.file),
                     0);
}

static int set_up(void **state)
{
    struct bench *bench = &shared;

    fake_reset();
    hipio_stats_reset();
    rig_open(&bench->rig, RIG_READ_WRITE, 1, 4096);
    rig_set(&bench->rig, "chunk_size", "16K");
    rig_limit(&bench->rig, SIZE + SIZE / 2);
    hipio_file_destroy(bench->rig.file);
    assert_int_equal(posix_memalign((void **)&bench->window, 4096, SIZE), 0);
    bench->base = fake_alloc(0, SIZE, &bench->memory);
    open_window(bench);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;

    rig_close(&bench->rig);
    hipio_engine_shutdown();
    assert_int_equal(fake_counters().registrations, 0);
    assert_int_equal(fake_counters().pinned, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    fake_free(bench->base);
    free(bench->window);
    return 0;
}

static void fill(struct bench *bench)
{
    pattern_fill(fake_bytes(bench->base), GPU_SEED, 0, SIZE);
    pattern_fill(bench->window, WINDOW_SEED, 0, SIZE);
}

/* What must come of it, byte by byte. */
static void move_slowly(unsigned char *to, const struct hipio_layout *to_layout,
                        const unsigned char *from, const struct hipio_layout *from_layout,
                        uint64_t bytes)
{
    struct hipio_cursor in, out;
    int64_t a, b;

    hipio_cursor_init(&in, from_layout, 0);
    hipio_cursor_init(&out, to_layout, 0);
    for (uint64_t i = 0; i < bytes; i++) {
        assert_int_equal(hipio_cursor_next_run(&in, 1, &a), 1);
        assert_int_equal(hipio_cursor_next_run(&out, 1, &b), 1);
        to[b] = from[a];
    }
}

static void check(struct bench *bench, enum hipio_op op, const struct hipio_layout *memory,
                  const struct hipio_layout *window, uint64_t bytes)
{
    unsigned char *gpu = malloc(SIZE), *host = malloc(SIZE);

    pattern_fill(gpu, GPU_SEED, 0, SIZE);
    pattern_fill(host, WINDOW_SEED, 0, SIZE);
    if (op == HIPIO_WRITE)
        move_slowly(host, window, gpu, memory, bytes);
    else
        move_slowly(gpu, memory, host, window, bytes);
    assert_memory_equal(fake_bytes(bench->base), gpu, SIZE);
    assert_memory_equal(bench->window, host, SIZE);
    free(gpu);
    free(host);
}

static struct hipio_request run(struct bench *bench, enum hipio_op op,
                                const struct hipio_layout *memory,
                                const struct hipio_layout *window)
{
    struct hipio_layout *shifted;

    /* The window lies far inside its file, as an aggregator's does. */
    assert_int_equal(hipio_layout_vector(hipio_layout_retain((struct hipio_layout *)window), BASE,
                                         1, 0, &shifted),
                     0);
    struct hipio_request request =
        rig_request(&bench->rig, op, bench->base, &bench->memory, memory, shifted);
    request.file_base = -BASE;
    fill(bench);
    hipio_request_run(&request);
    hipio_layout_release(shifted);
    return request;
}

static void there_and_back(struct bench *bench, struct hipio_layout *memory,
                           struct hipio_layout *window)
{
    for (int op = 0; op < 2; op++) {
        struct hipio_request request = run(bench, op ? HIPIO_READ : HIPIO_WRITE, memory, window);

        assert_int_equal(request.status, 0);
        assert_int_equal(request.done, request.length);
        check(bench, request.op, memory, window, request.length);
    }
}

static struct hipio_layout *nest(void)
{
    struct hipio_layout *layout;

    assert_int_equal(hipio_layout_vector(rig_vector(640, 5, 1024), 128, 6, 20480, &layout), 0);
    return layout;
}

static struct hipio_layout *backwards(void)
{
    struct hipio_layout *layout;

    assert_int_equal(hipio_layout_vector(rig_run(0, 8000), SIZE - 8000, 9, -9000, &layout), 0);
    return layout;
}

static struct hipio_layout *make(int shape)
{
    switch (shape) {
    case 0:
        return rig_run(0, SIZE);
    case 1:
        return rig_run(4097, 60000);
    case 2:
        return rig_vector(16384, 8, 20000);
    case 3:
        return rig_vector(512, 200, 1024);
    case 4:
        return rig_vector(3, 1000, 17);
    case 5:
        return rig_random(7, 100, 900);
    case 6:
        return nest();
    default:
        return backwards();
    }
}
#define SHAPES 8

static void moves_every_pair_of_shapes(void **state)
{
    struct bench *bench = *state;

    /* The bytes of a file don't go backwards. */
    for (int i = 0; i < SHAPES * (SHAPES - 1); i++) {
        struct hipio_layout *memory = make(i % SHAPES), *window = make(i / SHAPES);

        there_and_back(bench, memory, window);
        hipio_layout_release(memory);
        hipio_layout_release(window);
    }
    assert_int_equal(fake_counters().registered, SIZE);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 0);
}

/* Rows of one width on both sides are one copy; nothing is pinned but the window. */
static void copies_rows_at_once(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *memory = rig_vector(512, 200, 1024), *window = rig_vector(512, 200, 700);

    run(bench, HIPIO_WRITE, memory, window);
    check(bench, HIPIO_WRITE, memory, window, 512 * 200);
    assert_int_equal(fake_counters().grids, 1);
    assert_int_equal(fake_counters().copies, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 512 * 200);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), SIZE);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_written), 0);
    hipio_layout_release(memory);
    hipio_layout_release(window);
}

/* What would take a copy for a few bytes each is staged. */
static void stages_what_is_fine(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *memory = rig_random(7, 100, 900), *window = rig_random(8, 100, 900);

    there_and_back(bench, memory, window);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 0);
    assert_int_equal(fake_counters().registered, 0);
    hipio_layout_release(memory);
    hipio_layout_release(window);
}

static void moves_rows_that_do_not_match(void **state)
{
    struct bench *bench = *state;
    struct hipio_stream *stream;

    assert_int_equal(fake_device.stream_create(0, &stream), 0);
    for (uint64_t seed = 0; seed < 400; seed++) {
        const uint64_t wide = 1 + seed * 37 % 900, narrow = 1 + seed * 11 % 90;
        struct hipio_layout *memory = seed % 3 ? rig_vector(wide, 60, (int64_t)(wide + seed % 5))
                                               : rig_random(seed, 60, 1 + seed);
        struct hipio_layout *window = rig_vector(narrow, 400, (int64_t)(narrow + seed % 2 * 9));
        const uint64_t a = hipio_layout_size(memory), b = hipio_layout_size(window);
        const struct hipio_rows rows = {{bench->base, memory, 0},
                                        {bench->window, window, 0},
                                        a < b ? a : b,
                                        HIPIO_COPY_TO_HOST};
        fill(bench);
        fake_refuse(seed % 7 == 0, false);
        assert_int_equal(hipio_rows_copy(&fake_device, stream, &rows), 0);
        assert_int_equal(fake_device.stream_synchronize(stream), 0);
        check(bench, HIPIO_WRITE, memory, window, rows.bytes);
        hipio_layout_release(memory);
        hipio_layout_release(window);
    }
    fake_device.stream_destroy(stream);
}

static void stages_where_pinning_is_refused(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);

    fake_fail(FAKE_HOST_REGISTER, 0, 1, -ENOMEM);
    there_and_back(bench, whole, whole);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 1);
    assert_int_equal(fake_counters().registered, 0);
    /* A window that is made later is another matter. */
    hipio_file_destroy(bench->rig.file);
    open_window(bench);
    there_and_back(bench, whole, whole);
    assert_int_equal(fake_counters().registered, SIZE);
    hipio_layout_release(whole);
}

static void leaves_pinned_memory_to_staging(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);

    rig_limit(&bench->rig, SIZE + SIZE / 4);
    there_and_back(bench, whole, whole);
    assert_int_equal(fake_counters().registered, 0);
    rig_limit(&bench->rig, SIZE + SIZE / 2);
    hipio_file_destroy(bench->rig.file);
    open_window(bench);
    there_and_back(bench, whole, whole);
    assert_int_equal(fake_counters().registered, SIZE);
    hipio_layout_release(whole);
}

static void takes_whole_pages_only(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *most = rig_run(0, SIZE - 64);

    hipio_file_destroy(bench->rig.file);
    assert_int_equal(hipio_file_create_window(bench->window + 64, SIZE - 64, "window",
                                              &bench->rig.tunables, &bench->rig.file),
                     0);
    struct hipio_request request = run(bench, HIPIO_WRITE, most, most);
    assert_int_equal(request.status, 0);
    assert_int_equal(pattern_check(bench->window + 64, GPU_SEED, 0, SIZE - 64), SIZE - 64);
    assert_int_equal(fake_counters().registered, 0);
    hipio_layout_release(most);
}

static void obeys_the_settings(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);

    rig_set(&bench->rig, "fastpath", "off");
    there_and_back(bench, whole, whole);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 0);
    rig_set(&bench->rig, "fastpath", "force");
    there_and_back(bench, whole, whole);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 2 * SIZE);
    hipio_layout_release(whole);
}

/* An error of the device is the caller's, and nothing is under way any more. */
static void reports_a_failed_copy(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *memory = rig_vector(16384, 8, 30000);
    struct hipio_layout *window = rig_vector(16384, 8, 20000);

    fake_refuse(true, false);
    fake_fail(FAKE_COPY, 3, 1, -EIO);
    struct hipio_request request = run(bench, HIPIO_WRITE, memory, window);
    assert_int_equal(request.status, -EIO);
    assert_int_equal(request.done, 0);
    assert_true(request.text[0] != '\0');
    assert_int_equal(fake_pending(), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 0);
    there_and_back(bench, memory, window);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 2 * request.length);
    hipio_layout_release(memory);
    hipio_layout_release(window);
}

/* Runtimes refuse rows over a seam of memory; such a buffer is staged, and the lane stays good. */
static void stages_a_buffer_of_two_pieces(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *memory = rig_vector(16384, 8, 30000);
    struct hipio_layout *window = rig_vector(16384, 8, 20000);

    fake_cut(bench->base, SIZE / 2);
    there_and_back(bench, memory, window);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_window_bytes), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 2);
    hipio_layout_release(memory);
    hipio_layout_release(window);
}

/* Idle chunks of staging give way to a window. */
static void takes_the_place_of_idle_chunks(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);

    rig_limit(&bench->rig, SIZE + SIZE / 2);
    rig_set(&bench->rig, "chunk_size", "64K");
    rig_set(&bench->rig, "fastpath", "off");
    there_and_back(bench, whole, whole);
    assert_true(hipio_stats_get(HIPIO_COUNT_pinned_now) > SIZE / 8);
    rig_set(&bench->rig, "fastpath", "auto");
    there_and_back(bench, whole, whole);
    assert_int_equal(fake_counters().registered, SIZE);
    assert_true(hipio_stats_get(HIPIO_COUNT_pinned_peak) <= SIZE + SIZE / 2);
    hipio_layout_release(whole);
}

static void ends_with_the_window(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE), *late = rig_run(4096, SIZE);
    struct hipio_request request = run(bench, HIPIO_READ, whole, late);

    assert_int_equal(request.status, 0);
    assert_int_equal(request.done, SIZE - 4096);
    request = run(bench, HIPIO_WRITE, whole, late);
    assert_int_equal(request.status, -ENOSPC);
    hipio_layout_release(whole);
    hipio_layout_release(late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(moves_every_pair_of_shapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(copies_rows_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stages_what_is_fine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(moves_rows_that_do_not_match, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stages_where_pinning_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_pinned_memory_to_staging, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_whole_pages_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(obeys_the_settings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reports_a_failed_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stages_a_buffer_of_two_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_the_place_of_idle_chunks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ends_with_the_window, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
