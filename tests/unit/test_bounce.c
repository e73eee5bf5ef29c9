/* SPDX-License-Identifier: MIT */
/*
 * Bounce and hostmem: bytes, counts and errors through the whole engine, on a device that is as
 * late as it may be and a storage that fails where it is told to.
 */
#include "backend.h"
#include "engine.h"
#include "fake_device.h"
#include "fake_storage.h"
#include "lanes.h"
#include "pattern.h"
#include "rig.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_SEED 1
#define MEMORY_SEED 2
#define SIZE (256 * 1024)
#define CHUNK 16384

struct bench {
    struct rig rig;
    char *base;
    struct hipio_memory memory;
    bool on_device;
};

static unsigned char *bytes_of(const struct bench *bench)
{
    return bench->on_device ? fake_bytes(bench->base) : (unsigned char *)bench->base;
}

static void open_bench(struct bench *bench, bool on_device)
{
    fake_reset();
    fake_storage_reset();
    hipio_stats_reset();
    rig_open(&bench->rig, RIG_READ_WRITE, FILE_SEED, SIZE);
    /* All storage work goes through the fake. */
    rig_set(&bench->rig, "mapping", "off");
    rig_set(&bench->rig, "chunk_size", "16K");
    rig_limit(&bench->rig, SIZE);
    bench->on_device = on_device;
    if (on_device) {
        bench->base = fake_alloc(0, SIZE, &bench->memory);
    } else {
        bench->base = malloc(SIZE);
        bench->memory = rig_host;
    }
}

static void close_bench(struct bench *bench)
{
    rig_close(&bench->rig);
    hipio_engine_shutdown();
    assert_int_equal(fake_counters().pinned, 0);
    assert_int_equal(fake_counters().streams, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    if (bench->on_device)
        fake_free(bench->base);
    else
        free(bench->base);
}

static struct bench shared;

static int on_device(void **state)
{
    open_bench(&shared, true);
    *state = &shared;
    return 0;
}

static int on_host(void **state)
{
    open_bench(&shared, false);
    *state = &shared;
    return 0;
}

static int tear_down(void **state)
{
    close_bench(*state);
    return 0;
}

static struct hipio_request run(struct bench *bench, enum hipio_op op,
                                const struct hipio_layout *memory, const struct hipio_layout *file)
{
    struct hipio_request request =
        rig_request(&bench->rig, op, bench->base, &bench->memory, memory, file);

    if (op == HIPIO_WRITE)
        pattern_fill(bytes_of(bench), MEMORY_SEED, 0, SIZE);
    else
        memset(bytes_of(bench), 0xA5, SIZE);
    hipio_request_run(&request);
    return request;
}

static void restore_file(struct bench *bench)
{
    unsigned char *bytes = malloc(SIZE);
    pattern_fill(bytes, FILE_SEED, 0, SIZE);
    assert_int_equal(ftruncate(bench->rig.fd, SIZE), 0);
    assert_int_equal(pwrite(bench->rig.fd, bytes, SIZE, 0), SIZE);
    free(bytes);
}

static void there_and_back(struct bench *bench, struct hipio_layout *memory,
                           struct hipio_layout *file)
{
    struct hipio_request request = run(bench, HIPIO_READ, memory, file);
    assert_int_equal(request.status, 0);
    assert_int_equal(request.done, request.length);
    rig_check_read(&request, bytes_of(bench), SIZE, FILE_SEED);

    restore_file(bench);
    request = run(bench, HIPIO_WRITE, memory, file);
    assert_int_equal(request.status, 0);
    assert_int_equal(request.done, request.length);
    rig_check_write(&bench->rig, &request, MEMORY_SEED, FILE_SEED);
    restore_file(bench);
    hipio_layout_release(memory);
    hipio_layout_release(file);
}

static void try_shapes(struct bench *bench)
{
    there_and_back(bench, rig_run(0, 1), rig_run(SIZE - 1, 1));
    there_and_back(bench, rig_run(7, CHUNK - 1), rig_run(8, CHUNK - 1));
    there_and_back(bench, rig_run(0, CHUNK), rig_run(3, CHUNK));
    there_and_back(bench, rig_run(3, CHUNK + 1), rig_run(0, CHUNK + 1));
    there_and_back(bench, rig_run(1, 11 * CHUNK + 17), rig_run(8, 11 * CHUNK + 17));
    there_and_back(bench, rig_vector(8, 8000, 32), rig_run(8, 64000));
    there_and_back(bench, rig_run(8, 60000), rig_vector(200, 300, 800));
    there_and_back(bench, rig_vector(24, 5000, 50), rig_vector(3000, 40, 6000));
    there_and_back(bench, rig_random(1, 1200, 200), rig_random(2, 200, 1200));
    there_and_back(bench, rig_random(3, 8, 30000), rig_random(4, 2000, 100));
}

/* One lane, many lanes, and lanes that must share few slots. */
static void moves_every_shape(void **state)
{
    struct bench *bench = *state;
    static const char *const lanes[] = {"1", "2", "5"};
    static const uint64_t limits[] = {SIZE, CHUNK, 3 * CHUNK};

    for (int i = 0; i < 3; i++) {
        rig_set(&bench->rig, "lanes", lanes[i]);
        rig_limit(&bench->rig, limits[i]);
        try_shapes(bench);
    }
    assert_true(hipio_stats_get(HIPIO_COUNT_pinned_peak) <= SIZE);
}

/* R75, R88: no pinned memory at all; after a while; no streams for some lanes. */
static void moves_without_pinned_memory(void **state)
{
    struct bench *bench = *state;

    rig_set(&bench->rig, "lanes", "3");
    fake_fail(FAKE_HOST_ALLOC, 0, 1 << 30, -ENOMEM);
    try_shapes(bench);
    assert_true(hipio_stats_get(HIPIO_COUNT_unpinned_slots) >= 20);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    fake_fail(FAKE_HOST_ALLOC, 1, 1 << 30, -ENOMEM);
    try_shapes(bench);
    hipio_engine_shutdown();
    fake_reset();
    fake_fail(FAKE_STREAM_CREATE, 1, 1 << 30, -EIO);
    there_and_back(bench, rig_run(0, SIZE), rig_run(0, SIZE));
}

static void tells_why_no_lane_works(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);

    rig_set(&bench->rig, "lanes", "3");
    fake_fail(FAKE_STREAM_CREATE, 0, 1 << 30, -EIO);
    struct hipio_request request = run(bench, HIPIO_READ, whole, whole);
    assert_int_equal(request.status, -EIO);
    assert_int_equal(request.done, 0);
    assert_non_null(strstr(request.text, "fake device: call"));
    hipio_layout_release(whole);
}

/* R21, R25: the file ends inside the request: the count is exact and the rest of memory is as it
 * was, though the slots have held other data before. */
static void ends_with_the_file(void **state)
{
    struct bench *bench = *state;
    static const int64_t ends[] = {0, 1, 10, 4096 * 3 + 10, CHUNK, 5 * CHUNK + 1, SIZE - 1};
    struct hipio_layout *memory[] = {rig_run(0, SIZE), rig_vector(100, 1250, 200)};
    struct hipio_layout *file[] = {rig_run(0, SIZE), rig_vector(1000, 125, 2000)};
    struct hipio_request request = run(bench, HIPIO_WRITE, memory[0], file[0]);

    for (size_t i = 0; i < 7 * 2 * 2; i++) {
        restore_file(bench);
        assert_int_equal(ftruncate(bench->rig.fd, ends[i / 4]), 0);
        request = run(bench, HIPIO_READ, memory[i % 2], file[i / 2 % 2]);
        assert_int_equal(request.status, 0);
        uint64_t wanted = hipio_layout_bytes_below(file[i / 2 % 2], 0, request.length, ends[i / 4]);
        /* An empty file says nothing of its size: the read itself finds out. */
        assert_int_equal(request.done, wanted);
        rig_check_read(&request, bytes_of(bench), SIZE, FILE_SEED);
    }
    for (int i = 0; i < 2; i++) {
        hipio_layout_release(memory[i]);
        hipio_layout_release(file[i]);
    }
}

/* R46: an error in the first, a middle and the last chunk, one lane and several. A read counts what
 * is before the chunk; a write what is surely in the file. */
static void counts_what_is_before_an_error(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);
    static const int64_t bad[] = {0, 100, CHUNK - 1, 3 * CHUNK, 7 * CHUNK + 5, SIZE - 1};

    for (size_t i = 0; i < 6 * 3; i++) {
        static const char *const lanes[] = {"1", "2", "4"};
        rig_set(&bench->rig, "lanes", lanes[i % 3]);
        fake_storage_fail(bad[i / 3], -EIO);
        struct hipio_request request = run(bench, HIPIO_READ, whole, whole);
        assert_int_equal(request.status, -EIO);
        assert_non_null(strstr(request.text, "is bad"));
        assert_int_equal(request.done, bad[i / 3] / CHUNK * CHUNK);
        /* Of a later chunk that another lane had moved already, nothing is promised; with one lane
         * there is none. */
        if (i % 3 == 0)
            rig_check_read(&request, bytes_of(bench), SIZE, FILE_SEED);

        request = run(bench, HIPIO_WRITE, whole, whole);
        assert_int_equal(request.status, -EIO);
        assert_int_equal(request.done, bad[i / 3]);
        if (i % 3 == 0)
            rig_check_write(&bench->rig, &request, MEMORY_SEED, FILE_SEED);
        restore_file(bench);
    }
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_failed), 36);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 0);
    hipio_layout_release(whole);
}

/* The n-th copy or wait fails, for every n: an error, a true count, and a clean engine afterwards.
 */
static void survives_every_failing_gpu_call(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);
    static const enum fake_call calls[] = {FAKE_COPY, FAKE_EVENT_SYNCHRONIZE};

    for (int i = 0; i < 2 * 2 * 16; i++) {
        enum hipio_op op = i % 2 ? HIPIO_WRITE : HIPIO_READ;
        rig_set(&bench->rig, "lanes", i % 3 ? "1" : "3");
        fake_fail(calls[i / 2 % 2], i / 4, 1, -EIO);
        struct hipio_request request = run(bench, op, whole, whole);
        assert_int_equal(request.status, -EIO);
        assert_non_null(strstr(request.text, " bytes of device memory (fake, device 0): "));
        assert_true(request.done < SIZE && request.done % CHUNK == 0);
        if (op == HIPIO_READ)
            assert_int_equal(pattern_check(bytes_of(bench), FILE_SEED, 0, request.done),
                             request.done);
        restore_file(bench);
        fake_reset();
    }
    there_and_back(bench, whole, rig_run(0, SIZE));
}

/* A stream whose calls fail may be one of a context that is gone: neither it nor the idle ones of
 * its device are lent again. */
static void keeps_no_stream_that_failed(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);
    static const enum fake_call calls[] = {FAKE_COPY, FAKE_EVENT_SYNCHRONIZE};

    rig_set(&bench->rig, "lanes", "1");
    for (int i = 0; i < 4; i++) {
        struct hipio_lane *idle[2];
        for (int k = 0; k < 2; k++)
            assert_int_equal(hipio_lanes_borrow(&fake_device, 0, &idle[k]), 0);
        hipio_lanes_return(idle[0]);
        hipio_lanes_return(idle[1]);
        assert_int_equal(fake_counters().streams, 2);
        fake_fail(calls[i / 2], 0, 1, -EIO);
        assert_int_equal(run(bench, i % 2 ? HIPIO_WRITE : HIPIO_READ, whole, whole).status, -EIO);
        assert_int_equal(fake_counters().streams, 0);
        restore_file(bench);
    }
    hipio_layout_release(whole);
}

/* Elements of 1, 2, 4, 8 and 16 bytes that no chunk boundary falls on. */
static const struct hipio_swap_group groups[] = {{16, 8}, {8, 4}, {6, 2}, {5, 1}, {16, 16}};
static const struct hipio_swap swap = {51, 5, groups};

static uint64_t mirror(uint64_t position)
{
    uint64_t start = position / swap.period * swap.period;
    const struct hipio_swap_group *group = groups;

    while (position >= start + group->bytes)
        start += group++->bytes;
    uint64_t inside = (position - start) % group->size;
    return position - inside + (group->size - 1 - inside);
}

static void changes_byte_order(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *memory = rig_run(0, 51 * 3000), *file = rig_run(9, 51 * 3000);
    unsigned char *bytes = bytes_of(bench);

    for (int lanes = 1; lanes <= 3; lanes++) {
        rig_set(&bench->rig, "lanes", lanes == 1 ? "1" : "3");
        struct hipio_request request =
            rig_request(&bench->rig, HIPIO_READ, bench->base, &bench->memory, memory, file);
        request.swap = &swap;
        request.memory_start = 51 + 16;
        request.length -= 51 + 16;
        memset(bytes, 0xA5, SIZE);
        assert_int_equal(hipio_request_run(&request), 0);
        for (uint64_t i = 67; i < 51 * 3000; i++)
            assert_int_equal(bytes[i], pattern_byte(FILE_SEED, 9 + mirror(i) - 67));
        assert_int_equal(bytes[66], 0xA5);

        request.op = HIPIO_WRITE;
        pattern_fill(bytes, MEMORY_SEED, 0, SIZE);
        assert_int_equal(hipio_request_run(&request), 0);
        unsigned char *found = malloc(SIZE);
        assert_int_equal(pread(bench->rig.fd, found, SIZE, 0), SIZE);
        for (uint64_t i = 67; i < 51 * 3000; i++)
            assert_int_equal(found[9 + i - 67], pattern_byte(MEMORY_SEED, mirror(i)));
        free(found);
        restore_file(bench);
    }
    hipio_layout_release(memory);
    hipio_layout_release(file);
}

static uint64_t calls_with_pending_copy;

static void count_pending(void)
{
    if (fake_pending() > 0)
        calls_with_pending_copy++;
}

/* While storage works on a chunk, the copy of another is queued: of the one before when reading, of
 * the one behind when writing. A lazy stream shows it. */
static void overlaps_storage_and_copies(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);

    rig_set(&bench->rig, "lanes", "1");
    fake_storage_observe(count_pending);
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        calls_with_pending_copy = 0;
        run(bench, op, whole, whole);
        assert_int_equal(calls_with_pending_copy, SIZE / CHUNK - 1);
    }
    fake_storage_observe(NULL);
    hipio_layout_release(whole);
}

static void uses_one_copy_a_chunk(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);

    rig_set(&bench->rig, "lanes", "1");
    run(bench, HIPIO_READ, whole, whole);
    assert_int_equal(fake_counters().copies, SIZE / CHUNK);
    assert_int_equal(fake_storage_calls(), SIZE / CHUNK);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), 2 * CHUNK);
    /* The application's work is waited for once per request. */
    assert_int_equal(fake_counters().synchronized, 1);
    hipio_layout_release(whole);
}

static size_t index_of(const char *name)
{
    for (size_t i = 0; i < hipio_backend_count(); i++)
        if (strcmp(hipio_backend_at(i)->name, name) == 0)
            return i;
    fail_msg("no backend %s", name);
    return 0;
}

/* What goes into host memory of a collective is counted by who moves that to the file. */
static void counts_no_window_as_a_file(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);
    struct hipio_file *file = bench->rig.file;
    char *memory = malloc(SIZE);

    assert_int_equal(
        hipio_file_create_window(memory, SIZE, "window", &bench->rig.tunables, &bench->rig.file),
        0);
    run(bench, HIPIO_WRITE, whole, whole);
    assert_int_equal(pattern_check((unsigned char *)memory, MEMORY_SEED, 0, SIZE), SIZE);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_requests), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_written), 0);
    assert_int_equal(hipio_stats_backend_get(index_of("bounce"), HIPIO_BACKEND_WRITTEN), 0);
    assert_int_equal(hipio_stats_backend_get(index_of("bounce"), HIPIO_BACKEND_REQUESTS), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_device_bytes), SIZE);
    hipio_file_destroy(bench->rig.file);
    bench->rig.file = file;
    free(memory);
    hipio_layout_release(whole);
}

/* Ordinary memory goes in place, unless a setting or a byte order change forbids it. */
static void chooses_in_place_for_host_memory(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *whole = rig_run(0, SIZE);
    size_t hostmem = index_of("hostmem"), bounce = index_of("bounce");

    run(bench, HIPIO_READ, whole, whole);
    assert_int_equal(hipio_stats_backend_get(hostmem, HIPIO_BACKEND_READ), SIZE);
    assert_int_equal(hipio_stats_backend_get(bounce, HIPIO_BACKEND_READ), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), 0);
    rig_set(&bench->rig, "fallback", "force");
    run(bench, HIPIO_WRITE, whole, whole);
    assert_int_equal(hipio_stats_backend_get(bounce, HIPIO_BACKEND_WRITTEN), SIZE);
    assert_int_equal(hipio_stats_backend_get(hostmem, HIPIO_BACKEND_WRITTEN), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_device_bytes), 0);
    hipio_layout_release(whole);
}

static void moves_every_shape_staged(void **state)
{
    struct bench *bench = *state;
    rig_set(&bench->rig, "fallback", "force");
    moves_every_shape(state);
}

/* Memory that is not there is an error, in place and staged, and never a crash. */
static void refuses_missing_memory(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *page = rig_run(0, 4096);
    void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static const char *const fallback[] = {"auto", "force"};

    for (int i = 0; i < 4; i++) {
        rig_set(&bench->rig, "fallback", fallback[i % 2]);
        struct hipio_request request =
            rig_request(&bench->rig, i / 2 ? HIPIO_WRITE : HIPIO_READ, gone, &rig_host, page, page);
        assert_int_equal(hipio_request_run(&request), -EFAULT);
        assert_int_equal(request.done, 0);
        assert_non_null(strstr(request.text, ", 4096 bytes of host memory: "));
        assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 0);
    }
    munmap(gone, 4096);
    hipio_layout_release(page);
}

/* Managed memory that the kernel can't reach is moved by the runtime: kept progress, one event,
 * each byte counted for who moved it. */
static void mends_a_fault_in_managed_memory(void **state)
{
    struct bench *bench = *state;
    struct hipio_memory managed = {HIPIO_MEMORY_MANAGED, 0, true, &fake_device};
    struct hipio_layout *whole = rig_run(0, SIZE);
    size_t hostmem = index_of("hostmem"), bounce = index_of("bounce");

    rig_set(&bench->rig, "lanes", "1");
    struct hipio_request request =
        rig_request(&bench->rig, HIPIO_WRITE, bench->base, &managed, whole, whole);
    pattern_fill(bytes_of(bench), MEMORY_SEED, 0, SIZE);
    assert_int_equal(hipio_request_run(&request), 0);
    assert_int_equal(request.done, SIZE);
    rig_check_write(&bench->rig, &request, MEMORY_SEED, FILE_SEED);
    assert_int_equal(hipio_stats_backend_get(hostmem, HIPIO_BACKEND_WRITTEN), 0);
    assert_int_equal(hipio_stats_backend_get(hostmem, HIPIO_BACKEND_FALLBACKS), 1);
    assert_int_equal(hipio_stats_backend_get(bounce, HIPIO_BACKEND_WRITTEN), SIZE);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_written), SIZE);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-EFAULT), 1);

    rig_set(&bench->rig, "fallback", "off");
    assert_int_equal(hipio_request_run(&request), -EFAULT);
    hipio_layout_release(whole);
}

/* The second part of a request, other bases, and a device buffer whose base is not its start. */
static void starts_anywhere(void **state)
{
    struct bench *bench = *state;
    struct hipio_layout *memory = rig_random(5, 2400, 100), *file = rig_random(6, 900, 250);

    for (int i = 0; i < 4; i++) {
        struct hipio_request request = rig_request(&bench->rig, i / 2 ? HIPIO_WRITE : HIPIO_READ,
                                                   bench->base, &bench->memory, memory, file);
        request.memory_start = 12345;
        request.file_start = 777;
        request.file_base = 4097;
        request.length = 100000;
        if (i % 2)
            rig_set(&bench->rig, "lanes", "3");
        if (request.op == HIPIO_WRITE)
            pattern_fill(bytes_of(bench), MEMORY_SEED, 0, SIZE);
        else
            memset(bytes_of(bench), 0xA5, SIZE);
        assert_int_equal(hipio_request_run(&request), 0);
        assert_int_equal(request.done, 100000);
        if (request.op == HIPIO_WRITE)
            rig_check_write(&bench->rig, &request, MEMORY_SEED, FILE_SEED);
        else
            rig_check_read(&request, bytes_of(bench), SIZE, FILE_SEED);
        restore_file(bench);
    }
    hipio_layout_release(memory);
    hipio_layout_release(file);
}

#define TEST(function, setup) cmocka_unit_test_setup_teardown(function, setup, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(moves_every_shape, on_device),
        TEST(moves_every_shape, on_host),
        TEST(moves_every_shape_staged, on_host),
        TEST(moves_without_pinned_memory, on_device),
        TEST(tells_why_no_lane_works, on_device),
        TEST(ends_with_the_file, on_device),
        TEST(ends_with_the_file, on_host),
        TEST(counts_what_is_before_an_error, on_device),
        TEST(survives_every_failing_gpu_call, on_device),
        TEST(keeps_no_stream_that_failed, on_device),
        TEST(counts_no_window_as_a_file, on_device),
        TEST(changes_byte_order, on_device),
        TEST(changes_byte_order, on_host),
        TEST(uses_one_copy_a_chunk, on_device),
        TEST(overlaps_storage_and_copies, on_device),
        TEST(chooses_in_place_for_host_memory, on_host),
        TEST(refuses_missing_memory, on_host),
        TEST(mends_a_fault_in_managed_memory, on_device),
        TEST(starts_anywhere, on_device),
        TEST(starts_anywhere, on_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
