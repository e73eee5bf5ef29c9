/* SPDX-License-Identifier: MIT */
/*
 * GPU: the engine over the HIP provider and a HIP runtime (hipsim in CTest), as an application sees
 * it: the program loads the runtime itself and never names hipio's provider.
 *
 * test_gpu <library> <case>
 */
#include "backend.h"
#include "engine.h"
#include "pattern.h"
#include "request.h"
#include "rig.h"
#include "stats.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE (768 << 10)
#define NON_BLOCKING 1u
#define ANY_WAY 4 /* hipMemcpyDefault */

static struct {
    int (*malloc)(void **, size_t);
    int (*free)(void *);
    int (*malloc_managed)(void **, size_t, unsigned);
    int (*host_malloc)(void **, size_t, unsigned);
    int (*host_free)(void *);
    int (*memcpy)(void *, const void *, size_t, int);
    int (*memcpy_async)(void *, const void *, size_t, int, void *);
    int (*memset_async)(void *, int, size_t, void *);
    int (*stream_create)(void **, unsigned);
    int (*stream_destroy)(void *);
    int (*stream_synchronize)(void *);
    int (*set_device)(int);
    int (*get_device)(int *);
    int (*device_synchronize)(void);
} hip;

static void load_symbol(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        exit(77);
    memcpy(slot, &symbol, sizeof symbol);
}

static void load_runtime(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        print_message("%s\n", dlerror());
        exit(77);
    }
    load_symbol(library, "hipMalloc", &hip.malloc);
    load_symbol(library, "hipFree", &hip.free);
    load_symbol(library, "hipMallocManaged", &hip.malloc_managed);
    load_symbol(library, "hipHostMalloc", &hip.host_malloc);
    load_symbol(library, "hipHostFree", &hip.host_free);
    load_symbol(library, "hipMemcpy", &hip.memcpy);
    load_symbol(library, "hipMemcpyAsync", &hip.memcpy_async);
    load_symbol(library, "hipMemsetAsync", &hip.memset_async);
    load_symbol(library, "hipStreamCreateWithFlags", &hip.stream_create);
    load_symbol(library, "hipStreamDestroy", &hip.stream_destroy);
    load_symbol(library, "hipStreamSynchronize", &hip.stream_synchronize);
    load_symbol(library, "hipSetDevice", &hip.set_device);
    load_symbol(library, "hipGetDevice", &hip.get_device);
    load_symbol(library, "hipDeviceSynchronize", &hip.device_synchronize);
}

enum kind { DEVICE, MANAGED, PINNED, HOST, KINDS };

static void *allocate(enum kind kind, size_t bytes)
{
    void *memory = NULL;

    if (kind == HOST)
        return malloc(bytes);
    int error = kind == DEVICE    ? hip.malloc(&memory, bytes)
                : kind == MANAGED ? hip.malloc_managed(&memory, bytes, 1)
                                  : hip.host_malloc(&memory, bytes, 0);
    assert_int_equal(error, 0);
    return memory;
}

static void release(enum kind kind, void *memory)
{
    if (kind == HOST)
        free(memory);
    else
        assert_int_equal(kind == PINNED ? hip.host_free(memory) : hip.free(memory), 0);
}

static struct rig rig;
static unsigned char *mirror;

static int set_up(void **state)
{
    (void)state;
    hipio_stats_reset();
    rig_open(&rig, RIG_READ_WRITE, 1, SIZE);
    rig_set(&rig, "chunk_size", "64K");
    mirror = malloc(SIZE);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_close(&rig);
    free(mirror);
    hipio_engine_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    return 0;
}

static struct hipio_request prepare(enum hipio_op op, void *base, const struct hipio_layout *memory,
                                    const struct hipio_layout *file)
{
    struct hipio_memory kind;
    assert_int_equal(hipio_device_classify(base, &kind), 0);
    return rig_request(&rig, op, base, &kind, memory, file);
}

static void run(struct hipio_request *request)
{
    if (hipio_request_run(request) < 0)
        fail_msg("%s", request->text);
}

static struct hipio_layout *shape(int i)
{
    if (i == 0)
        return rig_run(3, SIZE - 3);
    if (i == 1)
        return rig_vector(24, 12000, 64);
    return rig_random(9, 7000, 100);
}

static void restore_file(void)
{
    pattern_fill(mirror, 1, 0, SIZE);
    assert_int_equal(pwrite(rig.fd, mirror, SIZE, 0), SIZE);
}

static void there_and_back(void *base, const struct hipio_layout *memory,
                           const struct hipio_layout *file)
{
    memset(mirror, 0xA5, SIZE);
    assert_int_equal(hip.memcpy(base, mirror, SIZE, ANY_WAY), 0);
    struct hipio_request request = prepare(HIPIO_READ, base, memory, file);
    run(&request);
    assert_int_equal(request.done, request.length);
    assert_int_equal(hip.memcpy(mirror, base, SIZE, ANY_WAY), 0);
    rig_check_read(&request, mirror, SIZE, 1);

    pattern_fill(mirror, 2, 0, SIZE);
    assert_int_equal(hip.memcpy(base, mirror, SIZE, ANY_WAY), 0);
    request.op = HIPIO_WRITE;
    run(&request);
    assert_int_equal(request.done, request.length);
    rig_check_write(&rig, &request, 2, 1);
    restore_file();
}

static void serves_every_kind_of_memory(void **state)
{
    (void)state;
    static const char *const fallback[] = {"auto", "force"};

    for (int i = 0; i < 2 * KINDS; i++) {
        void *base = allocate(i / 2, SIZE);
        struct hipio_layout *memory = shape(i % 3), *file = shape(i / 3 % 3);
        rig_set(&rig, "fallback", fallback[i % 2]);
        rig_set(&rig, "lanes", i % 4 ? "3" : "1");
        there_and_back(base, memory, file);
        hipio_layout_release(memory);
        hipio_layout_release(file);
        release(i / 2, base);
    }
}

static void serves_every_shape(void **state)
{
    (void)state;
    void *base = allocate(DEVICE, SIZE);

    for (int i = 0; i < 9; i++) {
        struct hipio_layout *memory = shape(i % 3), *file = shape(i / 3);
        there_and_back(base, memory, file);
        hipio_layout_release(memory);
        hipio_layout_release(file);
    }
    release(DEVICE, base);
}

static void check_all(const unsigned char *bytes, int value)
{
    for (int i = 0; i < SIZE; i++)
        if (bytes[i] != value)
            fail_msg("byte %d is %d, not %d", i, bytes[i], value);
}

/* A write sees what was queued before it on the default stream and on a blocking stream; a read
 * lets what was queued there look at the old bytes first. */
static void waits_for_earlier_work(void **state)
{
    (void)state;
    void *base = allocate(DEVICE, SIZE), *blocking;
    unsigned char *copy = allocate(PINNED, SIZE);
    struct hipio_layout *whole = rig_run(0, SIZE);

    assert_int_equal(hip.stream_create(&blocking, 0), 0);
    for (int i = 0; i < 20; i++) {
        void *stream = i % 2 ? blocking : NULL;
        assert_int_equal(hip.memset_async(base, i, SIZE, stream), 0);
        struct hipio_request request = prepare(HIPIO_WRITE, base, whole, whole);
        run(&request);
        assert_int_equal(pread(rig.fd, mirror, SIZE, 0), SIZE);
        check_all(mirror, i);

        restore_file();
        assert_int_equal(hip.memcpy_async(copy, base, SIZE, ANY_WAY, stream), 0);
        request.op = HIPIO_READ;
        run(&request);
        assert_int_equal(hip.device_synchronize(), 0);
        check_all(copy, i);
    }
    hipio_layout_release(whole);
    assert_int_equal(hip.stream_destroy(blocking), 0);
    release(PINNED, copy);
    release(DEVICE, base);
}

/* R15: the bytes of a read are there for a stream that waits for nothing. The slots and the file
 * change all the time. */
static void lands_before_it_returns(void **state)
{
    (void)state;
    const uint64_t bytes = 100000;
    void *base = allocate(DEVICE, SIZE), *stream;
    struct hipio_layout *part = rig_run(0, bytes);

    assert_int_equal(hip.stream_create(&stream, NON_BLOCKING), 0);
    unsigned char *copy = allocate(PINNED, SIZE);
    for (uint64_t i = 0; i < 300; i++) {
        pattern_fill(mirror, i, 0, bytes);
        assert_int_equal(pwrite(rig.fd, mirror, bytes, 0), bytes);
        struct hipio_request request = prepare(HIPIO_READ, base, part, part);
        run(&request);
        assert_int_equal(hip.memcpy_async(copy, base, bytes, ANY_WAY, stream), 0);
        assert_int_equal(hip.stream_synchronize(stream), 0);
        assert_memory_equal(copy, mirror, bytes);
    }
    hipio_layout_release(part);
    assert_int_equal(hip.stream_destroy(stream), 0);
    release(PINNED, copy);
    release(DEVICE, base);
}

/* R12: a write in the background, while the program fills other memory. */
static void writes_in_the_background(void **state)
{
    (void)state;
    void *base = allocate(DEVICE, SIZE);
    struct hipio_layout *whole = rig_run(0, SIZE);

    pattern_fill(mirror, 5, 0, SIZE);
    assert_int_equal(hip.memcpy(base, mirror, SIZE, ANY_WAY), 0);
    struct hipio_request request = prepare(HIPIO_WRITE, base, whole, whole);
    assert_int_equal(hipio_request_start(&request), 0);
    for (int i = 0; i < 200; i++) {
        char *other = malloc(100000);
        memset(other, i, 100000);
        free(other);
    }
    assert_int_equal(hipio_request_wait(&request), 0);
    rig_check_write(&rig, &request, 5, 1);
    hipio_layout_release(whole);
    release(DEVICE, base);
}

/* R61, R63: the buffer decides the device, the caller's stays, and a thread may come fresh. */
static void *read_on_a_fresh_thread(void *argument)
{
    struct hipio_request *request = argument;
    hipio_request_run(request);
    return NULL;
}

static void uses_the_device_of_the_buffer(void **state)
{
    (void)state;
    struct hipio_layout *whole = rig_run(0, SIZE);
    int device = -1;

    assert_int_equal(hip.set_device(1), 0);
    void *base = allocate(DEVICE, SIZE);
    assert_int_equal(hip.set_device(0), 0);
    struct hipio_request request = prepare(HIPIO_READ, base, whole, whole);
    assert_int_equal(request.memory.device, 1);
    run(&request);
    assert_int_equal(hip.get_device(&device), 0);
    assert_int_equal(device, 0);

    pthread_t thread;
    pthread_create(&thread, NULL, read_on_a_fresh_thread, &request);
    pthread_join(thread, NULL);
    assert_int_equal(request.status, 0);
    assert_int_equal(hip.memcpy(mirror, base, SIZE, ANY_WAY), 0);
    assert_int_equal(pattern_check(mirror, 1, 0, SIZE), SIZE);
    hipio_layout_release(whole);
    release(DEVICE, base);
}

/* R88: the runtime refuses all pinned memory. */
static void goes_on_without_pinned_memory(void **state)
{
    (void)state;
    void *base = allocate(DEVICE, SIZE);

    for (int i = 0; i < 3; i++) {
        struct hipio_layout *memory = shape(i), *file = shape(2 - i);
        there_and_back(base, memory, file);
        hipio_layout_release(memory);
        hipio_layout_release(file);
    }
    assert_true(hipio_stats_get(HIPIO_COUNT_unpinned_slots) >= 6);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), 0);
    release(DEVICE, base);
}

/* The device breaks in the middle: an error with the runtime's words, no hang, and no byte counted
 * that did not arrive. */
static void reports_a_broken_device(void **state)
{
    (void)state;
    void *base = allocate(DEVICE, SIZE);
    struct hipio_layout *whole = rig_run(0, SIZE);
    struct hipio_request request = prepare(HIPIO_WRITE, base, whole, whole);

    rig_set(&rig, "lanes", "1");
    rig_set(&rig, "fastpath", "off"); /* copies, not a path of the runtime's own */
    assert_int_equal(hipio_request_run(&request), -EIO);
    assert_true(request.done < SIZE);
    assert_true(strlen(request.text) > 10);
    print_message("%s\n", request.text);
    assert_int_equal(hipio_request_run(&request), -EIO);
    hipio_layout_release(whole);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {
        TEST(serves_every_kind_of_memory), TEST(serves_every_shape),
        TEST(waits_for_earlier_work),      TEST(lands_before_it_returns),
        TEST(writes_in_the_background),
    };
    const struct CMUnitTest devices[] = {TEST(uses_the_device_of_the_buffer)};
    const struct CMUnitTest unpinned[] = {TEST(goes_on_without_pinned_memory)};
    const struct CMUnitTest broken[] = {TEST(reports_a_broken_device)};

    if (argc != 3)
        return 2;
    load_runtime(argv[1]);
    if (strcmp(argv[2], "devices") == 0)
        return cmocka_run_group_tests(devices, NULL, NULL);
    if (strcmp(argv[2], "unpinned") == 0)
        return cmocka_run_group_tests(unpinned, NULL, NULL);
    if (strcmp(argv[2], "broken") == 0)
        return cmocka_run_group_tests(broken, NULL, NULL);
    return cmocka_run_group_tests(all, NULL, NULL);
}
