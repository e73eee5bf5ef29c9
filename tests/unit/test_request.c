/* SPDX-License-Identifier: MIT */
/*
 * Request: arguments, synchronisation, the background, fork and shutdown, on the real storage.
 */
#include "backend.h"
#include "engine.h"
#include "fake_device.h"
#include "pattern.h"
#include "request.h"
#include "rig.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE 65536
#define GIB ((uint64_t)1 << 30)

/* ThreadSanitizer keeps four bytes of notes for each byte that a system call reads. */
#ifdef __SANITIZE_THREAD__
static const bool keeps_notes = true;
#else
static const bool keeps_notes = false;
#endif

struct bench {
    struct rig rig;
    char *base;
    struct hipio_memory memory;
    struct hipio_layout *whole;
};

static struct bench shared;

static int set_up(void **state)
{
    fake_reset();
    hipio_stats_reset();
    rig_open(&shared.rig, RIG_READ_WRITE, 1, SIZE);
    shared.base = fake_alloc(1, SIZE, &shared.memory);
    shared.whole = rig_run(0, SIZE);
    *state = &shared;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hipio_layout_release(shared.whole);
    rig_close(&shared.rig);
    hipio_engine_shutdown();
    assert_int_equal(fake_counters().pinned, 0);
    assert_int_equal(fake_counters().streams, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    fake_free(shared.base);
    return 0;
}

static struct hipio_request read_all(struct bench *bench)
{
    return rig_request(&bench->rig, HIPIO_READ, bench->base, &bench->memory, bench->whole,
                       bench->whole);
}

/* Several of these may be in flight at once: they only look at memory. */
static struct hipio_request write_all(struct bench *bench)
{
    struct hipio_request request = read_all(bench);
    request.op = HIPIO_WRITE;
    return request;
}

static void must_fail(struct hipio_request request, int status, const char *words)
{
    struct hipio_request later = request;

    assert_int_equal(hipio_request_run(&request), status);
    assert_int_equal(request.status, status);
    assert_int_equal(request.done, 0);
    if (!strstr(request.text, words))
        fail_msg("\"%s\" does not tell \"%s\"", request.text, words);
    assert_int_equal(hipio_request_start(&later), status);
    assert_true(hipio_request_test(&later));
    assert_int_equal(hipio_request_wait(&later), status);
    assert_string_equal(later.text, request.text);
}

static void names_bad_arguments(void **state)
{
    struct bench *bench = *state;
    struct hipio_request good = read_all(bench), bad;

    bad = good, bad.op = 7;
    must_fail(bad, -EINVAL, "operation 7");
    bad = good, bad.file = NULL;
    must_fail(bad, -EINVAL, "no file");
    bad = good, bad.memory_layout = NULL;
    must_fail(bad, -EINVAL, "without a memory layout");
    bad = good, bad.file_layout = NULL;
    must_fail(bad, -EINVAL, "without a file layout");
    bad = good, bad.memory.ops = NULL;
    must_fail(bad, -EINVAL, "not classified");
    bad = good, bad.memory_start = 1;
    must_fail(bad, -EINVAL, "memory layout of 65536 bytes");
    bad = good, bad.file_start = UINT64_MAX;
    must_fail(bad, -EINVAL, "file layout of 65536 bytes");
    bad = good, bad.length = UINT64_MAX;
    must_fail(bad, -EINVAL, "leave the memory layout");
    bad = good, bad.file_base = -1;
    must_fail(bad, -EINVAL, "negative file offset");
    bad = good, bad.file_base = INT64_MAX - 10;
    must_fail(bad, -EINVAL, "beyond 63 bits");
    bad = good, bad.base = (void *)(UINTPTR_MAX - 100);
    must_fail(bad, -EINVAL, "leaves memory");
    bad = good, bad.base = NULL, bad.memory = rig_host;
    must_fail(bad, -EFAULT, "NULL");
    bad = good, bad.memory.kind = HIPIO_MEMORY_INVALID;
    must_fail(bad, -EFAULT, "can't be served");
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_failed), 26);
    assert_int_equal(fake_counters().synchronized, 0);
}

static const struct hipio_swap_group groups[] = {{8, 8}};
static const struct hipio_swap swap = {8, 1, groups};
static const struct hipio_swap odd = {7, 1, groups};

static void names_a_bad_byte_order_change(void **state)
{
    struct bench *bench = *state;
    struct hipio_request good = read_all(bench), bad;

    bad = good, bad.swap = &odd;
    must_fail(bad, -EINVAL, "does not fill its period");
    bad = good, bad.swap = &swap, bad.length = 12;
    must_fail(bad, -EINVAL, "inside an element");
    bad = good, bad.swap = &swap, bad.memory_start = 4, bad.length = 16;
    must_fail(bad, -EINVAL, "inside an element");
}

static void refuses_falling_file_offsets(void **state)
{
    struct bench *bench = *state;
    struct hipio_request bad = read_all(bench);
    struct hipio_layout *falling;

    assert_int_equal(hipio_layout_vector(rig_run(0, 64), 640, 10, -64, &falling), 0);
    bad.file_layout = falling;
    bad.length = 640;
    must_fail(bad, -EINVAL, "fall or overlap");
    hipio_layout_release(falling);
}

static void keeps_to_the_access_mode(void **state)
{
    struct bench *bench = *state;
    struct rig one_way;
    static const int access[] = {HIPIO_ACCESS_READ, HIPIO_ACCESS_WRITE};
    static const char *const words[] = {"not open for writing", "not open for reading"};

    for (int i = 0; i < 2; i++) {
        rig_open(&one_way, access[i], 1, SIZE);
        struct hipio_request request = read_all(bench);
        request.file = one_way.file;
        request.op = i == 0 ? HIPIO_WRITE : HIPIO_READ;
        must_fail(request, -EBADF, words[i]);
        request.op = i == 0 ? HIPIO_READ : HIPIO_WRITE;
        assert_int_equal(hipio_request_run(&request), 0);
        rig_close(&one_way);
    }
}

/* R22, R24: nothing is asked of anything. */
static void does_nothing_for_no_bytes(void **state)
{
    (void)state;
    struct hipio_request request = {.op = HIPIO_WRITE, .done = 99, .status = -5};

    memset(request.text, 'x', sizeof request.text);
    assert_int_equal(hipio_request_run(&request), 0);
    assert_int_equal(request.done, 0);
    assert_int_equal(request.status, 0);
    assert_string_equal(request.text, "");
    request.status = -5;
    assert_int_equal(hipio_request_start(&request), 0);
    assert_true(hipio_request_test(&request));
    assert_int_equal(hipio_request_wait(&request), 0);
}

static void waits_for_the_gpu_as_set(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *sync;
        enum hipio_memory_kind kind;
        uint64_t waits, everything;
    } rows[] = {
        {"stream", HIPIO_MEMORY_DEVICE, 1, 0},  {"device", HIPIO_MEMORY_DEVICE, 1, 1},
        {"none", HIPIO_MEMORY_DEVICE, 0, 0},    {"stream", HIPIO_MEMORY_MANAGED, 1, 0},
        {"device", HIPIO_MEMORY_MANAGED, 1, 1}, {"stream", HIPIO_MEMORY_HOST, 0, 0},
        {"device", HIPIO_MEMORY_PINNED, 0, 0},
    };
    char *host = malloc(SIZE);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hipio_request request = read_all(bench);
        rig_set(&bench->rig, "sync", rows[i].sync);
        request.memory.kind = rows[i].kind;
        if (rows[i].kind == HIPIO_MEMORY_HOST || rows[i].kind == HIPIO_MEMORY_PINNED)
            request.base = host;
        fake_reset();
        assert_int_equal(hipio_request_run(&request), 0);
        assert_int_equal(fake_counters().synchronized, rows[i].waits);
        assert_int_equal(fake_counters().everything, rows[i].everything);
    }
    rig_set(&bench->rig, "sync", "stream");
    fake_fail(FAKE_SYNCHRONIZE, 0, 2, -EIO);
    must_fail(read_all(bench), -EIO, "told to fail");
    free(host);
}

/* R28: one call moves what one system call can't. Both ways of the engine; the device file takes
 * any amount, and untouched memory costs none. */
static void moves_more_than_a_system_call(void **state)
{
    (void)state;
    if (keeps_notes)
        skip();
    static const uint64_t lengths[] = {2147483640, 2147479552, 2147479553, 4 * GIB + 1};
    static const char *const fallback[] = {"off", "force"};
    int fd = open("/dev/null", O_WRONLY);
    char *memory =
        mmap(NULL, 4 * GIB + 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct rig rig = {.fd = fd, .tunables = *hipio_tunables_process()};

    assert_true(memory != MAP_FAILED);
    assert_int_equal(
        hipio_file_create(fd, "/dev/null", HIPIO_ACCESS_WRITE, &rig.tunables, &rig.file), 0);
    for (int i = 0; i < 8; i++) {
        uint64_t length = lengths[i % 4];
        /* The staged way copies every byte: the long ones once is enough. */
        if (i / 4 == 1 && length != 2147479553)
            continue;
        struct hipio_layout *run = rig_run(0, length);
        rig_set(&rig, "fallback", fallback[i / 4]);
        struct hipio_request request = rig_request(&rig, HIPIO_WRITE, memory, &rig_host, run, run);
        assert_int_equal(hipio_request_run(&request), 0);
        assert_true(request.done == length);
        hipio_layout_release(run);
    }
    /* Counted beyond 32 bits too (R85). */
    assert_true(hipio_stats_get(HIPIO_COUNT_bytes_written) ==
                lengths[0] + lengths[1] + 2 * lengths[2] + lengths[3]);
    munmap(memory, 4 * GIB + 4096);
    rig_close(&rig);
}

/* R10, and offsets beyond 32 bits: odd offsets on both sides, chunks smaller than the request. */
static void reads_and_writes_far_out(void **state)
{
    struct bench *bench = *state;
    int64_t far = (int64_t)(5 * GIB + 8);

    rig_set(&bench->rig, "chunk_size", "4K");
    pattern_fill(fake_bytes(bench->base), 7, 0, SIZE);
    struct hipio_request request = read_all(bench);
    request.op = HIPIO_WRITE;
    request.file_base = far;
    assert_int_equal(hipio_request_run(&request), 0);
    memset(fake_bytes(bench->base), 0, SIZE);
    request.op = HIPIO_READ;
    assert_int_equal(hipio_request_run(&request), 0);
    assert_int_equal(request.done, SIZE);
    assert_int_equal(pattern_check(fake_bytes(bench->base), 7, 0, SIZE), SIZE);
    assert_int_equal(hipio_file_size(bench->rig.file), far + SIZE);
}

/* A size that can't be told is not the end of the file. */
static void reads_what_has_no_size(void **state)
{
    struct bench *bench = *state;
    int fd = open("/proc/self/status", O_RDONLY);
    struct hipio_file *file;
    char wanted[6];

    assert_int_equal(pread(fd, wanted, 6, 0), 6);
    assert_int_equal(
        hipio_file_create(fd, "status", HIPIO_ACCESS_READ, &bench->rig.tunables, &file), 0);
    struct hipio_request request = read_all(bench);
    request.file = file;
    assert_int_equal(hipio_request_run(&request), 0);
    assert_true(request.done > 100 && request.done < SIZE);
    assert_memory_equal(fake_bytes(bench->base), wanted, 6);
    assert_int_equal(fake_bytes(bench->base)[request.done], 0xA5);
    hipio_file_destroy(file);
    close(fd);

    fd = open("/dev/zero", O_RDONLY);
    assert_int_equal(hipio_file_create(fd, "zero", HIPIO_ACCESS_READ, &bench->rig.tunables, &file),
                     0);
    request.file = file;
    assert_int_equal(hipio_request_run(&request), 0);
    assert_int_equal(request.done, SIZE);
    hipio_file_destroy(file);
    close(fd);
}

#define MANY 1000
#define PIECE 64

/* R72, R73: a thousand requests in flight on a pool of four chunks, waited for at the very end. */
static void carries_a_thousand_requests(void **state)
{
    struct bench *bench = *state;
    static struct hipio_request requests[MANY];
    struct hipio_layout *piece = rig_run(0, PIECE);

    rig_set(&bench->rig, "chunk_size", "4K");
    rig_limit(&bench->rig, 16384);
    rig_set(&bench->rig, "async_threads", "7");
    for (int i = 0; i < MANY; i++) {
        requests[i] = read_all(bench);
        requests[i].memory_start = requests[i].file_start = (uint64_t)i * PIECE;
        requests[i].length = PIECE;
        assert_int_equal(hipio_request_start(&requests[i]), 0);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        assert_int_equal(hipio_request_wait(&requests[i]), 0);
        assert_int_equal(requests[i].done, PIECE);
        assert_true(hipio_request_test(&requests[i]));
    }
    assert_int_equal(pattern_check(fake_bytes(bench->base), 1, 0, MANY * PIECE), MANY * PIECE);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_background), MANY);
    assert_true(hipio_stats_get(HIPIO_COUNT_threads) <= 7);
    assert_true(hipio_stats_get(HIPIO_COUNT_pinned_peak) <= 16384);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_unpinned_slots), 0);
    hipio_layout_release(piece);
}

/* The file is destroyed and the engine shut down with requests in flight. */
static void waits_for_requests_in_flight(void **state)
{
    struct bench *bench = *state;
    struct hipio_request requests[64];
    struct rig rig;

    rig_open(&rig, RIG_READ_WRITE, 1, SIZE);
    rig_set(&rig, "mapping", "off"); /* they all write the same bytes */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 64; i++) {
            requests[i] = write_all(bench);
            requests[i].file = rig.file;
            assert_int_equal(hipio_request_start(&requests[i]), 0);
        }
        if (round == 0)
            hipio_engine_shutdown();
        else
            rig_close(&rig);
        for (int i = 0; i < 64; i++)
            assert_int_equal(hipio_request_wait(&requests[i]), 0);
    }
}

/* R12: an error in the background is the request's own. */
static void keeps_errors_apart(void **state)
{
    struct bench *bench = *state;
    struct hipio_request good = read_all(bench), bad = read_all(bench);
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    struct hipio_file *folder;

    assert_int_equal(
        hipio_file_create(fd, "folder", HIPIO_ACCESS_READ, &bench->rig.tunables, &folder), 0);
    bad.file = folder;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(hipio_request_start(&bad), 0);
        assert_int_equal(hipio_request_start(&good), 0);
        assert_int_equal(hipio_request_wait(&good), 0);
        assert_int_equal(hipio_request_wait(&bad), -EISDIR);
        assert_non_null(strstr(bad.text, "folder"));
        assert_string_equal(good.text, "");
    }
    hipio_file_destroy(folder);
    close(fd);
}

static int in_child(void (*body)(struct bench *bench), struct bench *bench)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        alarm(20);
        body(bench);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static struct hipio_request pending;

static void use_the_engine(struct bench *bench)
{
    struct hipio_request request = read_all(bench);

    if (hipio_engine_usable() || hipio_request_run(&request) != -ENOTSUP)
        _exit(1);
    if (!strstr(request.text, "forked"))
        _exit(2);
    if (hipio_request_start(&request) != -ENOTSUP || !hipio_request_test(&request))
        _exit(3);
    if (hipio_request_wait(&pending) < 0 && pending.status != -ENOTSUP)
        _exit(4);
    hipio_engine_shutdown();
    hipio_file_destroy(bench->rig.file);
}

static void leave(struct bench *bench)
{
    (void)bench;
}

static void run_a_program(struct bench *bench)
{
    (void)bench;
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
}

/* R91 */
static void refuses_to_work_in_a_forked_child(void **state)
{
    struct bench *bench = *state;
    struct hipio_request more[32];

    rig_set(&bench->rig, "mapping", "off"); /* they all write the same bytes */
    pattern_fill(fake_bytes(bench->base), 5, 0, SIZE);
    pending = write_all(bench);
    assert_int_equal(hipio_request_start(&pending), 0);
    for (int i = 0; i < 32; i++) {
        more[i] = write_all(bench);
        assert_int_equal(hipio_request_start(&more[i]), 0);
    }
    assert_int_equal(in_child(use_the_engine, bench), 0);
    assert_int_equal(in_child(leave, bench), 0);
    assert_int_equal(in_child(run_a_program, bench), 0);
    assert_int_equal(system("true"), 0);
    assert_int_equal(hipio_request_wait(&pending), 0);
    for (int i = 0; i < 32; i++)
        assert_int_equal(hipio_request_wait(&more[i]), 0);
    rig_check_write(&bench->rig, &pending, 5, 1);
}

/* Threads that run, start, wait and shut down at once. */
static void *use_everything(void *argument)
{
    struct bench *bench = argument;

    for (int i = 0; i < 40; i++) {
        struct hipio_request now = write_all(bench), later = write_all(bench);
        if (hipio_request_start(&later) < 0 || hipio_request_run(&now) < 0)
            return argument;
        if (i % 10 == 0)
            hipio_engine_shutdown();
        while (i % 2 && !hipio_request_test(&later))
            usleep(10);
        if (hipio_request_wait(&later) < 0 || now.done != SIZE || later.done != SIZE)
            return argument;
    }
    return NULL;
}

static void serves_many_threads(void **state)
{
    struct bench *bench = *state;
    pthread_t thread[6];

    rig_set(&bench->rig, "mapping", "off"); /* they all write the same bytes */
    rig_set(&bench->rig, "chunk_size", "8K");
    rig_set(&bench->rig, "lanes", "3");
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use_everything, bench), 0);
    for (int i = 0; i < 6; i++) {
        void *trouble;
        pthread_join(thread[i], &trouble);
        assert_null(trouble);
    }
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_requests), 6 * 80);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_written), 6 * 80 * SIZE);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_device_bytes), 6 * 80 * SIZE);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_bad_arguments),
        TEST(names_a_bad_byte_order_change),
        TEST(refuses_falling_file_offsets),
        TEST(keeps_to_the_access_mode),
        TEST(does_nothing_for_no_bytes),
        TEST(waits_for_the_gpu_as_set),
        TEST(moves_more_than_a_system_call),
        TEST(reads_and_writes_far_out),
        TEST(reads_what_has_no_size),
        TEST(carries_a_thousand_requests),
        TEST(waits_for_requests_in_flight),
        TEST(keeps_errors_apart),
        TEST(refuses_to_work_in_a_forked_child),
        TEST(serves_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
