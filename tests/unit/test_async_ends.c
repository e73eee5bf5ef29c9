/* SPDX-License-Identifier: MIT */
/*
 * Async ends: operations of streams that end early, in errors, or not at all: the end of the file,
 * errors at every storage call, refusals, and owners that leave first.
 */
#include "async_rig.h"
#include "device_app.h"
#include "fault_calls.h"
#include "pattern.h"
#include "stats.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096u

static uint64_t buffer_size; /* in force */
static uint64_t slot;
static int devices;

/* The file ends inside: the count says so, and memory behind it stays. */
static void end_of_file(void **state)
{
    const size_t ends[] = {0, 1, slot - 1, slot, slot + 1, 3 * slot + 9, buffer_size};
    const size_t bytes = 2 * buffer_size + 77;
    void *stream = app_create_stream(1);

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct async_call call = {bytes, 0, 0, 0}, next = {10, 0, (off_t)bytes, 0};
        int fd = async_rig_file(7, ends[i]);
        unsigned char *memory = async_rig_memory(0, bytes + 100);
        struct hipio_handle *file = async_rig_open(fd);

        async_rig_must(async_rig_queue(true, file, memory, &call, stream));
        async_rig_must(async_rig_queue(true, file, memory, &next, stream));
        assert_int_equal(async_rig_synchronize(stream), 0);
        async_rig_expect(&call, (ssize_t)ends[i]);
        async_rig_expect(&next, ends[i] < 10 ? (ssize_t)ends[i] : 10);
        async_rig_check_memory(memory, 0, ends[i], 7, 0);
        async_rig_check_poison(memory, ends[i], bytes - ends[i]);
        hipio_deregister_file(file);
        close(fd);
        app_free(memory);
    }
    async_rig_must(hipio_stream_deregister(stream));
    app_destroy_stream(stream);
}

/* How many storage calls a read of so many bytes is. */
static unsigned storage_calls(struct hipio_handle *file, void *memory, size_t bytes, void *stream)
{
    struct async_call call = {bytes, 0, 0, 0};

    fault_calls = (struct fault_calls){.error_at = 0};
    async_rig_must(async_rig_queue(true, file, memory, &call, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    async_rig_expect(&call, (ssize_t)bytes);
    return fault_calls.calls;
}

/* An error at each storage call: told by its operation, with its number; the next one is well. */
static void errors_stay_home(void **state)
{
    const size_t bytes = 5 * slot + 9;
    void *stream = app_create_stream(1);
    char text[256];
    int fd = async_rig_file(8, bytes);
    unsigned char *memory = async_rig_memory(8, bytes);
    struct hipio_handle *file = async_rig_open(fd);

    (void)state;
    async_rig_must(hipio_set_file(file, "lanes", "1"));
    async_rig_must(hipio_set_file(file, "fastpath", "off"));
    const unsigned calls = storage_calls(file, memory, bytes, stream);
    for (unsigned at = 1; at <= calls; at++) {
        for (int reads = 0; reads < 2; reads++) {
            struct async_call call = {bytes, 0, 0, 0}, next = {bytes, 0, 0, 0};

            fault_calls = (struct fault_calls){.error_at = at, .error = at % 2 ? ENOSPC : EIO};
            async_rig_must(async_rig_queue(reads, file, memory, &call, stream));
            async_rig_must(async_rig_queue(reads, file, memory, &next, stream));
            assert_int_equal(async_rig_synchronize(stream), 0);
            fault_calls = (struct fault_calls){.error_at = 0};
            async_rig_expect(&call, at % 2 ? -ENOSPC : -EIO);
            async_rig_expect(&next, (ssize_t)bytes);
            assert_int_equal(hipio_stream_status(stream, text, sizeof text),
                             at % 2 ? -ENOSPC : -EIO);
            assert_non_null(strstr(text, "async"));
            assert_int_equal(hipio_stream_status(stream, text, sizeof text), 0);
        }
    }
    async_rig_check_memory(memory, 0, bytes, 8, 0);
    async_rig_check_file(fd, 0, bytes, 8, 0);
    async_rig_must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
}

static void grow(void *argument)
{
    ((struct async_call *)argument)->size++;
}

static void go_negative(void *argument)
{
    ((struct async_call *)argument)->file_offset = -1;
}

static void late_values_are_checked(void **state)
{
    void (*const spoil[])(void *) = {grow, go_negative};
    int fd = async_rig_file(9, slot);
    unsigned char *memory = async_rig_memory(0, slot);
    struct hipio_handle *file = async_rig_open(fd);
    void *stream = app_create_stream(1);

    (void)state;
    for (size_t i = 0; i < sizeof spoil / sizeof spoil[0]; i++) {
        struct async_call call = {100, 0, 0, 0}, next = {100, 0, 0, 0};
        struct async_gate gate;

        async_rig_poison(memory, slot);
        async_rig_close_gate(stream, &gate);
        async_rig_call(stream, spoil[i], &call);
        async_rig_must(async_rig_queue(true, file, memory, &call, stream));
        gate.open = true;
        async_rig_must(async_rig_queue(true, file, memory + 200, &next, stream));
        assert_int_equal(async_rig_synchronize(stream), 0);
        assert_int_equal(call.done, -EINVAL);
        assert_int_equal(next.done, 100);
        async_rig_check_poison(memory, 0, 200);
        async_rig_check_memory(memory, 200, 100, 9, 0);
        assert_int_equal(hipio_stream_status(stream, NULL, 0), -EINVAL);
    }
    async_rig_must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
}

/* ---- Refusals ---- */

static int begin_capture(void *stream)
{
    int (*function)(void *, int);
    void *address =
        app_function(app_is_cuda() ? "cuStreamBeginCapture_v2" : "hipStreamBeginCapture");

    memcpy(&function, &address, sizeof function);
    return function(stream, 0);
}

static void end_capture(void *stream)
{
    int (*function)(void *, void **);
    void *graph = NULL;
    void *address = app_function(app_is_cuda() ? "cuStreamEndCapture" : "hipStreamEndCapture");

    memcpy(&function, &address, sizeof function);
    function(stream, &graph);
    int (*destroy)(void *);
    address = app_function(app_is_cuda() ? "cuGraphDestroy" : "hipGraphDestroy");
    memcpy(&destroy, &address, sizeof destroy);
    destroy(graph);
}

static uint64_t queued(void)
{
    return hipio_stats_get(HIPIO_COUNT_queued);
}

static void refusals(void **state)
{
    struct async_call call = {100, 0, 0, 0};
    int fd = async_rig_file(1, 100), read_only = open("/dev/null", O_RDONLY);
    unsigned char *memory = async_rig_memory(0, 100);
    struct hipio_handle *file = async_rig_open(fd), *no_writes = async_rig_open(read_only);
    void *stream = app_create_stream(1);
    void *nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t before = queued();

    (void)state;
    assert_int_equal(hipio_stream_register(stream, 16), -EINVAL);
    async_rig_must(hipio_stream_register(stream, HIPIO_ALL_PAGE_ALIGNED));
    assert_int_equal(hipio_stream_register(stream, 0), -EEXIST);
    assert_int_equal(hipio_stream_register((void *)2, 0), -ENOTSUP);
    assert_int_equal(async_rig_queue(true, NULL, memory, &call, stream), -EINVAL);
    assert_int_equal(async_rig_queue(true, file, NULL, &call, stream), -EFAULT);
    assert_int_equal(async_rig_queue(true, file, nothing, &call, stream), -EFAULT);
    assert_int_equal(async_rig_queue(false, no_writes, memory, &call, stream), -EBADF);
    assert_int_equal(hipio_read_async(file, memory, NULL, &call.file_offset, &call.buffer_offset,
                                      &call.done, stream),
                     -EINVAL);
    assert_int_equal(begin_capture(stream), 0);
    assert_int_equal(async_rig_queue(true, file, memory, &call, stream), -EBUSY);
    assert_non_null(strstr(hipio_error_text(), "captured"));
    end_capture(stream);
    async_rig_must(async_rig_queue(true, file, memory, &call, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    assert_int_equal(queued(), before + 1);
    async_rig_must(hipio_stream_deregister(stream));
    assert_int_equal(hipio_stream_deregister(stream), -ENOENT);
    assert_int_equal(hipio_stream_status(stream, NULL, 0), -ENOENT);
    munmap(nothing, PAGE);
    hipio_deregister_file(file);
    hipio_deregister_file(no_writes);
    close(fd);
    close(read_only);
    app_destroy_stream(stream);
    app_free(memory);
}

/* Where the runtime can tell (HIP 7 can't). */
static void a_destroyed_stream(void **state)
{
    struct async_call call = {100, 0, 0, 0};
    int fd = async_rig_file(1, 100);
    unsigned char *memory = async_rig_memory(0, 100);
    struct hipio_handle *file = async_rig_open(fd);
    void *stream = app_create_stream(1);
    const uint64_t before = queued();

    (void)state;
    async_rig_must(hipio_stream_register(stream, 0));
    app_destroy_stream(stream);
    assert_int_equal(async_rig_queue(true, file, memory, &call, stream), -EINVAL);
    assert_non_null(strstr(hipio_error_text(), "destroyed"));
    assert_int_equal(queued(), before);
    async_rig_must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    app_free(memory);
}

static void two_devices(void **state)
{
    if (devices < 2)
        skip();
    struct async_call call = {slot + 1, 0, 0, 0};
    int fd = async_rig_file(1, slot + 1);
    struct hipio_handle *file = async_rig_open(fd);

    (void)state;
    app_set_device(1);
    unsigned char *there = async_rig_memory(0, slot + 1);
    void *other = app_create_stream(1);
    app_set_device(0);
    unsigned char *here = async_rig_memory(0, slot + 1);
    void *stream = app_create_stream(1);

    assert_int_equal(async_rig_queue(true, file, there, &call, stream), -EXDEV);
    async_rig_must(async_rig_queue(true, file, there, &call, other));
    assert_int_equal(app_get_device(), 0);
    assert_int_equal(async_rig_synchronize(other), 0);
    async_rig_expect(&call, (ssize_t)(slot + 1));
    async_rig_check_memory(there, 0, slot + 1, 1, 0);
    async_rig_must(async_rig_queue(true, file, here, &call, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    assert_int_equal(app_get_device(), 0);
    async_rig_must(hipio_stream_deregister(stream));
    async_rig_must(hipio_stream_deregister(other));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_destroy_stream(other);
    app_free(here);
    app_free(there);
}

static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* File closed, handle and stream given up while all of it is still to come. */
static void closed_early(void **state)
{
    struct async_gate gate;
    const size_t bytes = buffer_size + 100;
    static struct async_call calls[3];
    const int before = count_descriptors();
    uint64_t pinned, threads, now;
    unsigned char *memory = async_rig_memory(2, 3 * bytes);
    void *stream = app_create_stream(1);
    int fd = async_rig_file(1, 3 * bytes), check = dup(fd);
    struct hipio_handle *file = async_rig_open(fd);

    (void)state;
    async_rig_must(hipio_statistic("pinned_now", &pinned));
    async_rig_must(hipio_statistic("threads", &threads));
    async_rig_close_gate(stream, &gate);
    for (int i = 0; i < 3; i++) {
        calls[i] = (struct async_call){bytes, (off_t)(i * bytes), (off_t)(i * bytes), 0};
        async_rig_must(async_rig_queue(false, file, memory, &calls[i], stream));
    }
    close(fd);
    hipio_deregister_file(file);
    async_rig_must(hipio_stream_deregister(stream));
    app_destroy_stream(stream);
    gate.open = true;
    for (int i = 0; i < 10000; i++) {
        async_rig_must(hipio_statistic("streams", &now));
        if (now == 0)
            break;
        usleep(1000);
    }
    assert_int_equal(now, 0);
    for (int i = 0; i < 3; i++)
        async_rig_expect(&calls[i], (ssize_t)bytes);
    async_rig_check_file(check, 0, 3 * bytes, 2, 0);
    close(check);
    async_rig_must(hipio_statistic("pinned_now", &now));
    assert_int_equal(now, pinned);
    async_rig_must(hipio_statistic("threads", &now));
    assert_true(now <= threads + 8); /* the engine's own may have come */
    assert_int_equal(count_descriptors(), before);
    app_free(memory);
}

static int start(void **state)
{
    (void)state;
    devices = async_rig_start();
    buffer_size = async_rig_buffer();
    slot = async_rig_slot();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hipio_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_streams), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_of_file),
        cmocka_unit_test(errors_stay_home),
        cmocka_unit_test(late_values_are_checked),
        cmocka_unit_test(refusals),
        cmocka_unit_test(closed_early),
        cmocka_unit_test(two_devices),
        cmocka_unit_test(a_destroyed_stream),
    };
    const size_t n = sizeof tests / sizeof tests[0];
    const char *library = getenv("HIPIO_TEST_LIBRARY");
    const bool can_tell = library && strstr(library, "hipsim") && !strstr(library, ".so.7");

    return _cmocka_run_group_tests("async_ends", tests, can_tell ? n : n - 1, start, stop);
}
