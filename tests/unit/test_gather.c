/* SPDX-License-Identifier: MIT */
/*
 * Gather: layouts of every kind moved by kernels, on whichever GPU runtime the environment names,
 * real or simulated (device_app.h). With HIPIO_TEST_KERNELS=none the runtime takes no module, and
 * that has to be told once and plainly.
 */
#include "device_app.h"
#include "engine.h"
#include "gather.h"
#include "log.h"
#include "module.h"
#include "pattern.h"
#include "request.h"
#include "rig.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MEMORY ((size_t)1 << 20)
#define PACKED ((size_t)256 << 10)
#define RUNS_MAX 60000
#define ROUNDS 150

static struct {
    const struct hipio_device_ops *ops;
    struct hipio_stream *stream;
    struct hipio_gather *gather;
    char *device;          /* MEMORY bytes of it */
    unsigned char *host;   /* what they should be */
    unsigned char *back;   /* what they are */
    unsigned char *packed; /* pinned, PACKED + 64 bytes */
    uint64_t round_seed;   /* of the random round under way */
} rig;

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static void fill(unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)draw(256);
}

static uint64_t launches(void)
{
    return hipio_stats_get(HIPIO_COUNT_kernels);
}

static bool want_none(void)
{
    const char *kernels = getenv("HIPIO_TEST_KERNELS");

    return kernels && strcmp(kernels, "none") == 0;
}

static struct hipio_layout *run(int64_t offset, uint64_t length)
{
    struct hipio_layout *out;

    assert_int_equal(hipio_layout_run(offset, length, &out), 0);
    return out;
}

static struct hipio_layout *vector(struct hipio_layout *child, int64_t offset, uint64_t count,
                                   int64_t stride)
{
    struct hipio_layout *out;

    assert_int_equal(hipio_layout_vector(child, offset, count, stride, &out), 0);
    return out;
}

/* Runs of `lengths` different lengths, apart from each other and in no order. */
static struct hipio_layout *scattered(uint64_t n, uint64_t longest, unsigned lengths)
{
    static int64_t offset[RUNS_MAX];
    static uint64_t length[RUNS_MAX];
    uint64_t room = longest + 1, slots = MEMORY / room, slot = draw(slots);
    uint64_t unit = draw(2) ? 1 : longest;
    struct hipio_layout *out;

    if (n > slots)
        n = slots;
    for (uint64_t i = 0; i < n; i++, slot = (slot + 1) % slots) {
        offset[i] = (int64_t)(slot * room / unit * unit);
        length[i] = lengths == 1 ? longest : 1 + (i * 7) % lengths * (longest - 1) / (lengths - 1);
    }
    for (uint64_t i = n; i-- > 1;) { /* no order */
        uint64_t other = draw(i + 1);
        int64_t moved = offset[i];

        offset[i] = offset[other];
        offset[other] = moved;
    }
    assert_int_equal(hipio_layout_runs(n, offset, length, &out), 0);
    return out;
}

static struct hipio_layout *boxes(void)
{
    uint64_t length = 1 + draw(48), rows = 2 + draw(20), planes = 1 + draw(30);
    int64_t stride = (int64_t)(length + draw(32));
    int64_t pitch = stride * (int64_t)rows + (int64_t)draw(100);
    struct hipio_layout *plane = vector(run(0, length), 0, rows, stride);

    if (draw(3) == 0)
        return vector(plane, pitch * (int64_t)planes, planes, -pitch);
    return vector(plane, (int64_t)draw(64), planes, pitch);
}

static struct hipio_layout *any_layout(void)
{
    uint64_t length = 1 + draw(40);

    switch (draw(6)) {
    case 0:
        return run((int64_t)draw(1000), 1 + draw(PACKED));
    case 1:
        return vector(run(0, length), (int64_t)draw(64), 1 + draw(4000),
                      (int64_t)(length + draw(64)));
    case 2:
        return boxes();
    case 3:
        return scattered(1 + draw(3000), 1 + draw(24), 1);
    case 4:
        return scattered(1 + draw(3000), 2 + draw(40), 2);
    default:
        return scattered(1 + draw(1500), 30 + draw(200), 17);
    }
}

static struct hipio_gather_work work_of(unsigned char *packed, uint64_t bytes, enum hipio_copy way)
{
    return (struct hipio_gather_work){
        .base = rig.device, .packed = packed, .bytes = bytes, .way = way};
}

static void run_work(struct hipio_cursor *cursor, const struct hipio_gather_work *work)
{
    uint64_t end = cursor->position + work->bytes;

    assert_int_equal(hipio_gather_run(rig.gather, cursor, work), 0);
    assert_int_equal(rig.ops->stream_synchronize(rig.stream), 0);
    assert_int_equal(cursor->position, end);
}

/* Packed byte by byte, as the layout's own cursor tells. */
static void expect_packed(const struct hipio_layout *layout, uint64_t start,
                          const unsigned char *packed, uint64_t bytes)
{
    struct hipio_cursor cursor;
    int64_t offset;

    hipio_cursor_init(&cursor, layout, start);
    for (uint64_t at = 0, n; at < bytes; at += n) {
        n = hipio_cursor_next_run(&cursor, bytes - at, &offset);
        assert_true(n > 0);
        assert_memory_equal(packed + at, rig.host + offset, n);
    }
}

static void apply_packed(const struct hipio_layout *layout, uint64_t start,
                         const unsigned char *packed, uint64_t bytes)
{
    struct hipio_cursor cursor;
    int64_t offset;

    hipio_cursor_init(&cursor, layout, start);
    for (uint64_t at = 0, n; at < bytes; at += n) {
        n = hipio_cursor_next_run(&cursor, bytes - at, &offset);
        memcpy(rig.host + offset, packed + at, n);
    }
}

static void move_both_ways(const struct hipio_layout *layout, uint64_t start, uint64_t bytes,
                           size_t shift)
{
    unsigned char *packed = rig.packed + shift;
    struct hipio_gather_work work = work_of(packed, bytes, HIPIO_COPY_TO_HOST);
    struct hipio_cursor cursor;

    memset(rig.packed, 0x5a, PACKED + 64);
    hipio_cursor_init(&cursor, layout, start);
    run_work(&cursor, &work);
    expect_packed(layout, start, packed, bytes);
    for (size_t i = 0; i < shift; i++)
        assert_int_equal(rig.packed[i], 0x5a);
    for (size_t i = shift + bytes; i < PACKED + 64; i++)
        assert_int_equal(rig.packed[i], 0x5a);

    fill(packed, bytes);
    work.way = HIPIO_COPY_TO_DEVICE;
    hipio_cursor_init(&cursor, layout, start);
    run_work(&cursor, &work);
    apply_packed(layout, start, packed, bytes);
    app_copy(rig.back, rig.device, MEMORY);
    assert_memory_equal(rig.back, rig.host, MEMORY);
}

static void moves_every_shape(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        rig.round_seed = seed;
        struct hipio_layout *layout = any_layout();
        uint64_t size = hipio_layout_size(layout);
        uint64_t start = draw(2) ? draw(size) : 0;
        uint64_t most = size - start < PACKED ? size - start : PACKED;

        move_both_ways(layout, start, draw(2) ? most : 1 + draw(most), draw(2) ? 0 : draw(32));
        hipio_layout_release(layout);
    }
    rig.round_seed = 0;
}

static uint64_t launches_for(struct hipio_layout *layout, uint64_t start, uint64_t bytes)
{
    uint64_t before = launches();
    /* A fresh one, with all of its table free. */
    hipio_gather_destroy(rig.gather);
    assert_int_equal(hipio_gather_create(rig.ops, 0, rig.stream, &rig.gather), 0);
    struct hipio_gather_work work = work_of(rig.packed, bytes, HIPIO_COPY_TO_HOST);
    struct hipio_cursor cursor;

    hipio_cursor_init(&cursor, layout, start);
    run_work(&cursor, &work);
    expect_packed(layout, start, rig.packed, bytes);
    hipio_layout_release(layout);
    return launches() - before;
}

/* One launch for a chunk of any usual shape, wherever the chunk is cut. */
static void launches_are_few(void **state)
{
    (void)state;
    assert_int_equal(launches_for(run(3, 70000), 0, 70000), 1);
    assert_int_equal(launches_for(vector(run(0, 8), 0, 8000, 32), 0, 64000), 1);
    assert_int_equal(launches_for(vector(run(0, 8), 0, 8000, 32), 3, 60000), 1);
    assert_int_equal(launches_for(vector(run(0, 48), 800000, 900, -96), 100, 40000), 1);
    assert_int_equal(launches_for(vector(vector(run(0, 24), 0, 16, 40), 0, 50, 900), 7, 18816), 1);
    assert_int_equal(launches_for(scattered(3000, 8, 1), 0, 24000), 1);
    assert_int_equal(launches_for(scattered(3000, 8, 2), 5, 12000), 1);
}

/* More pieces than a table holds. */
static void tables_are_bounded(void **state)
{
    (void)state;
    struct hipio_layout *layout = scattered(RUNS_MAX, 4, 1);
    uint64_t before = hipio_stats_get(HIPIO_COUNT_pinned_peak);

    move_both_ways(layout, 0, hipio_layout_size(layout), 1);
    hipio_layout_release(layout);
    layout = scattered(RUNS_MAX, 5, 3);
    move_both_ways(layout, 2, hipio_layout_size(layout) - 2, 0);
    hipio_layout_release(layout);
    assert_in_range(hipio_stats_get(HIPIO_COUNT_pinned_peak) - before, 0, 256 << 10);
}

static void late_values_are_read_by_the_gpu(void **state)
{
    (void)state;
    void *pinned;
    assert_int_equal(rig.ops->host_alloc(0, 64, &pinned), 0);
    uint64_t *size = pinned;
    int64_t *offset = (int64_t *)(size + 1);
    struct hipio_gather_late late = {.memory = rig.device + 100,
                                     .packed = rig.packed + 1,
                                     .bytes = 5000,
                                     .way = HIPIO_COPY_TO_HOST,
                                     .size = size,
                                     .done = 1000,
                                     .offset = offset};

    for (uint64_t due = 0; due <= 6000; due += 1500) {
        uint64_t moved = due < 5000 ? due : 5000;

        *size = 1000 + due;
        *offset = (int64_t)due;
        memset(rig.packed, 0x5a, PACKED + 64);
        assert_int_equal(hipio_gather_copy(rig.gather, &late), 0);
        assert_int_equal(rig.ops->stream_synchronize(rig.stream), 0);
        assert_memory_equal(rig.packed + 1, rig.host + 100 + due, moved);
        assert_int_equal(rig.packed[1 + moved], 0x5a);
    }
    assert_int_equal(rig.ops->host_free(0, pinned), 0);
}

static void elements_are_reversed(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector(run(0, 24), 16, 900, 40);
    struct hipio_gather_work work = work_of(rig.packed, 20000, HIPIO_COPY_TO_HOST);
    struct hipio_cursor cursor;

    for (work.swap = 2; work.swap <= 16; work.swap *= 2) {
        hipio_cursor_init(&cursor, layout, 80);
        run_work(&cursor, &work);
        for (uint64_t i = 0; i < work.bytes; i++) {
            uint64_t from = 80 + (i ^ (work.swap - 1));

            assert_int_equal(rig.packed[i], rig.host[16 + from / 24 * 40 + from % 24]);
        }
    }
    hipio_cursor_init(&cursor, layout, 80);
    work.swap = 16;
    work.bytes = 20004;
    assert_int_equal(hipio_gather_run(rig.gather, &cursor, &work), -EINVAL);
    assert_int_equal(rig.ops->stream_synchronize(rig.stream), 0);
    hipio_layout_release(layout);
}

static void a_layout_that_ends_early_is_an_error(void **state)
{
    (void)state;
    struct hipio_layout *layout = run(0, 100);
    struct hipio_gather_work work = work_of(rig.packed, 101, HIPIO_COPY_TO_HOST);
    struct hipio_cursor cursor;

    hipio_cursor_init(&cursor, layout, 0);
    assert_int_equal(hipio_gather_run(rig.gather, &cursor, &work), -EINVAL);
    assert_non_null(strstr(hipio_status_text(), "1 bytes early"));
    assert_int_equal(rig.ops->stream_synchronize(rig.stream), 0);
    hipio_layout_release(layout);
}

/* Writes and reads back strided device memory through a file, chunk by chunk. */
static void request(struct hipio_layout *memory_layout, const char *kernels)
{
    struct hipio_layout *file_layout = rig_run(0, MEMORY);
    struct hipio_memory memory;
    struct rig file;

    assert_int_equal(hipio_device_classify(rig.device, &memory), 0);
    rig_open(&file, RIG_READ_WRITE, 3, hipio_layout_size(memory_layout) - 10);
    rig_set(&file, "kernels", kernels);
    rig_set(&file, "chunk_size", "32K");
    pattern_fill(rig.host, 7, 0, MEMORY);
    app_copy(rig.device, rig.host, MEMORY);
    struct hipio_request write =
        rig_request(&file, HIPIO_WRITE, rig.device, &memory, memory_layout, file_layout);
    assert_int_equal(hipio_request_run(&write), 0);
    rig_check_write(&file, &write, 7, 3);
    rig_close(&file);

    rig_open(&file, RIG_READ_WRITE, 5, hipio_layout_size(memory_layout) - 10);
    rig_set(&file, "kernels", kernels);
    memset(rig.host, 0xa5, MEMORY);
    app_copy(rig.device, rig.host, MEMORY);
    struct hipio_request read =
        rig_request(&file, HIPIO_READ, rig.device, &memory, memory_layout, file_layout);
    assert_int_equal(hipio_request_run(&read), 0);
    app_copy(rig.host, rig.device, MEMORY);
    rig_check_read(&read, rig.host, MEMORY, 5);
    rig_close(&file);
    hipio_layout_release(memory_layout);
    hipio_layout_release(file_layout);
}

static void requests_use_kernels(void **state)
{
    (void)state;
    uint64_t before = launches();

    request(rig_vector(7, 30000, 31), "auto");
    assert_in_range(launches() - before, 2, 100);
    before = launches();
    request(rig_random(11, 20000, 40), "auto");
    assert_in_range(launches() - before, 2, 200);
    before = launches();
    request(rig_run(5, 500000), "force");
    assert_in_range(launches() - before, 2, 100);
    before = launches();
    request(rig_run(5, 500000), "auto");
    request(rig_vector(7, 3000, 31), "off");
    assert_int_equal(launches(), before);
    hipio_engine_shutdown();
}

static void a_device_without_kernels_is_named(void **state)
{
    (void)state;
    struct hipio_gather *gather = NULL;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(hipio_gather_create(rig.ops, 0, rig.stream, &gather), -ENOTSUP);
        assert_null(gather);
        assert_true(strlen(hipio_status_text()) > 0);
    }
    request(rig_vector(7, 3000, 31), "auto");
    request(rig_random(11, 2000, 40), "force");
    assert_int_equal(launches(), 0);
    hipio_engine_shutdown();
}

/* The device's memory starts with what `host` says. */
static bool set_up_rig(void)
{
    const char *name = app_is_cuda() ? "cuda" : "hip";
    void *pinned;

    if (!app_load() || app_devices() == 0)
        return false;
    app_set_device(0);
    for (size_t i = 0; i < hipio_device_count_providers(); i++)
        if (strcmp(hipio_device_provider(i)->name, name) == 0)
            rig.ops = hipio_device_provider(i);
    rig.device = app_alloc(MEMORY);
    rig.host = malloc(MEMORY);
    rig.back = malloc(MEMORY);
    fill(rig.host, MEMORY);
    app_copy(rig.device, rig.host, MEMORY);
    if (rig.ops->attach(false) < 0 || rig.ops->stream_create(0, &rig.stream) < 0 ||
        rig.ops->host_alloc(0, PACKED + 64, &pinned) < 0)
        return false;
    rig.packed = pinned;
    return true;
}

static int set_up(void **state)
{
    (void)state;
    return hipio_gather_create(rig.ops, 0, rig.stream, &rig.gather);
}

static int tear_down(void **state)
{
    (void)state;
    if (rig.round_seed)
        print_error("the round's seed was %llx\n", (unsigned long long)rig.round_seed);
    hipio_gather_destroy(rig.gather);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_every_shape),
        cmocka_unit_test(launches_are_few),
        cmocka_unit_test(tables_are_bounded),
        cmocka_unit_test(late_values_are_read_by_the_gpu),
        cmocka_unit_test(elements_are_reversed),
        cmocka_unit_test(requests_use_kernels),
        cmocka_unit_test(a_layout_that_ends_early_is_an_error),
    };
    const struct CMUnitTest refused[] = {
        cmocka_unit_test(a_device_without_kernels_is_named),
    };
    int failed;

    if (!set_up_rig()) {
        fprintf(stderr, "no GPU runtime here\n");
        return 77;
    }
    failed = want_none() ? cmocka_run_group_tests(refused, NULL, NULL)
                         : cmocka_run_group_tests(tests, set_up, tear_down);
    rig.ops->host_free(0, rig.packed);
    rig.ops->stream_destroy(rig.stream);
    app_free(rig.device);
    free(rig.host);
    free(rig.back);
    return failed;
}
