/* SPDX-License-Identifier: MIT */
/*
 * Async: reads and writes in the order of streams, of every size around the slots of the bounce
 * buffer, fixed and late-bound, alone and many at once, on whichever runtime the environment names.
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
#define ALL_FIXED (HIPIO_FIXED_BUFFER_OFFSET | HIPIO_FIXED_FILE_OFFSET | HIPIO_FIXED_SIZE)
#define FILE_AT 5   /* nothing is aligned */
#define MEMORY_AT 3 /* ditto */
#define FLIGHTS 8
#define STREAMS 4

static uint64_t buffer_size; /* in force */
static uint64_t slot;
static size_t large;
static int devices;

static void must(int status)
{
    if (status < 0)
        fail_msg("%s", hipio_error_text());
}

static struct hipio_handle *open_file(int fd)
{
    struct hipio_handle *file;

    must(hipio_register_file(fd, "async", &file));
    must(hipio_set_file(file, "mapping", "off"));
    return file;
}

/* Either direction. */
static int queue(bool reads, struct hipio_handle *file, void *memory, struct async_call *call,
                 void *stream)
{
    return reads ? hipio_read_async(file, memory, &call->size, &call->file_offset,
                                    &call->buffer_offset, &call->done, stream)
                 : hipio_write_async(file, memory, &call->size, &call->file_offset,
                                     &call->buffer_offset, &call->done, stream);
}

static void expect_done(const struct async_call *call, ssize_t expected)
{
    if (call->done != expected)
        fail_msg("an operation of %zu bytes ended with %zd, not %zd", call->size, call->done,
                 expected);
}

/* ---- Sizes ---- */

/* Sets a call's parameters when the stream gets to it. */
struct binding {
    struct async_call *call;
    struct async_call values;
};

static void bind(void *argument)
{
    const struct binding *binding = argument;

    *binding->call = binding->values;
}

/* One operation: `late` prepares for more than it turns out to be, at offsets that turn out to be
 * others. */
struct flight {
    struct async_call call;
    struct binding binding;
};

static void take_off(struct flight *flight, bool reads, bool late, struct hipio_handle *file,
                     void *memory, const struct async_call *values, void *stream)
{
    flight->call = *values;
    if (late) {
        flight->binding = (struct binding){&flight->call, *values};
        flight->call =
            (struct async_call){values->size + values->size / 2 + 7, 1 << 30, 1 << 30, 0};
        async_rig_call(stream, bind, &flight->binding);
    }
    must(queue(reads, file, memory, &flight->call, stream));
}

/* `n` operations of `size` bytes on each of `streams` streams, side by side in file and memory. */
static void fly(bool reads, bool late, size_t size, unsigned n, unsigned streams)
{
    const unsigned total = n * streams;
    const size_t step = size + 100;
    const size_t bytes = total * step + 64;
    struct flight *flights = calloc(total, sizeof *flights);
    void *stream[STREAMS];
    int fd = async_rig_file(1, bytes);
    unsigned char *memory = async_rig_memory(reads ? 0 : 2, bytes);
    struct hipio_handle *file = open_file(fd);

    for (unsigned s = 0; s < streams; s++) {
        stream[s] = app_create_stream(1);
        must(hipio_stream_register(stream[s], late ? 0 : ALL_FIXED));
    }
    for (unsigned i = 0; i < total; i++) {
        struct async_call values = {size, (off_t)(FILE_AT + i * step),
                                    (off_t)(MEMORY_AT + i * step), 0};
        take_off(&flights[i], reads, late, file, memory, &values, stream[i % streams]);
    }
    for (unsigned s = 0; s < streams; s++) {
        assert_int_equal(async_rig_synchronize(stream[s]), 0);
        assert_int_equal(hipio_stream_status(stream[s], NULL, 0), 0);
    }
    for (unsigned i = 0; i < total; i++) {
        const uint64_t at = i * step;

        expect_done(&flights[i].call, (ssize_t)size);
        if (reads) {
            async_rig_check_memory(memory, at + MEMORY_AT, size, 1, at + FILE_AT);
            async_rig_check_poison(memory, at + MEMORY_AT + size, 100);
        } else {
            async_rig_check_file(fd, at + FILE_AT, size, 2, at + MEMORY_AT);
            async_rig_check_file(fd, at + FILE_AT + size, 40, 1, at + FILE_AT + size);
        }
    }
    for (unsigned s = 0; s < streams; s++) {
        must(hipio_stream_deregister(stream[s]));
        app_destroy_stream(stream[s]);
    }
    hipio_deregister_file(file);
    close(fd);
    app_free(memory);
    free(flights);
}

static void each_size(bool late, unsigned n, unsigned streams)
{
    const size_t sizes[] = {0,        1,           slot - 1,        slot,
                            slot + 1, buffer_size, buffer_size + 1, n * streams == 1 ? large : 777};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fly(true, late, sizes[i], n, streams);
        fly(false, late, sizes[i], n, streams);
    }
}

static void sizes_fixed(void **state)
{
    (void)state;
    each_size(false, 1, 1);
}

static void sizes_late(void **state)
{
    (void)state;
    each_size(true, 1, 1);
}

static void many_in_flight(void **state)
{
    (void)state;
    each_size(false, FLIGHTS, 1);
    each_size(true, FLIGHTS, 1);
}

static void many_streams(void **state)
{
    (void)state;
    each_size(false, 2, STREAMS);
    each_size(true, 2, STREAMS);
}

/* A thousand operations through a small buffer, which is all the memory that they take. */
static void a_thousand(void **state)
{
    enum { N = 1000, BYTES = 3000 };
    static struct async_call calls[N];
    uint64_t pinned, now;
    int fd = async_rig_file(3, N * BYTES);
    unsigned char *memory = async_rig_memory(0, N * BYTES);
    struct hipio_handle *file = open_file(fd);
    void *stream = app_create_stream(1);

    (void)state;
    must(hipio_statistic("pinned_now", &pinned));
    must(hipio_stream_register(stream, 0));
    for (int i = 0; i < N; i++) {
        calls[i] = (struct async_call){BYTES, i * BYTES, i * BYTES, 0};
        must(queue(true, file, memory, &calls[i], stream));
        must(hipio_statistic("pinned_now", &now));
        assert_true(now <= pinned + buffer_size + PAGE);
    }
    assert_int_equal(async_rig_synchronize(stream), 0);
    for (int i = 0; i < N; i++)
        expect_done(&calls[i], BYTES);
    async_rig_check_memory(memory, 0, N * BYTES, 3, 0);
    must(hipio_stream_deregister(stream));
    must(hipio_statistic("pinned_now", &now));
    assert_int_equal(now, pinned);
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
}

/* ---- Order ---- */

/* Work of the application, a write of it, work over it, a read back, again and again, with nobody
 * looking. Each round's bytes are its own. */
static void chain(void **state)
{
    enum { ROUNDS = 60 };
    const size_t bytes = 2 * slot + 11;
    static struct async_call out[ROUNDS], in[ROUNDS];
    int fd = async_rig_file(0, 0);
    unsigned char *memory = async_rig_memory(0, bytes), *copy = async_rig_memory(0, ROUNDS * bytes);
    unsigned char *host = malloc(bytes);
    struct hipio_handle *file = open_file(fd);
    void *stream = app_create_stream(1);

    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        out[i] = (struct async_call){bytes, 0, 0, 0};
        in[i] = (struct async_call){bytes, 0, (off_t)(i * bytes), 0};
        async_rig_fill(stream, memory, i, bytes);
        must(queue(false, file, memory, &out[i], stream));
        async_rig_fill(stream, memory, 0xEE, bytes);
        must(queue(true, file, copy, &in[i], stream));
    }
    assert_int_equal(async_rig_synchronize(stream), 0);
    for (int i = 0; i < ROUNDS; i++) {
        expect_done(&out[i], (ssize_t)bytes);
        expect_done(&in[i], (ssize_t)bytes);
        app_copy(host, copy + i * bytes, bytes);
        for (size_t k = 0; k < bytes; k++)
            if (host[k] != i)
                fail_msg("round %d read %d at byte %zu", i, host[k], k);
    }
    must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
    app_free(copy);
    free(host);
}

/* The call returns while the stream stands, and nothing happens before its turn. */
static void nothing_happens_early(void **state)
{
    struct async_gate gate;
    struct async_call call = {2 * slot, 0, 0, -77};
    int fd = async_rig_file(4, 2 * slot);
    unsigned char *memory = async_rig_memory(5, 2 * slot);
    struct hipio_handle *file = open_file(fd);
    void *stream = app_create_stream(1);

    (void)state;
    async_rig_close_gate(stream, &gate);
    must(queue(false, file, memory, &call, stream));
    assert_int_equal(call.done, 0);
    usleep(20000);
    async_rig_check_file(fd, 0, 2 * slot, 4, 0);
    gate.open = true;
    assert_int_equal(async_rig_synchronize(stream), 0);
    expect_done(&call, (ssize_t)(2 * slot));
    async_rig_check_file(fd, 0, 2 * slot, 5, 0);
    must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
}

/* Memory that the CPU can address, and the default stream. */
static void other_memory(void **state)
{
    const size_t bytes = buffer_size + 5;
    struct async_call call = {bytes, 0, 0, 0};
    int fd = async_rig_file(6, bytes);
    struct hipio_handle *file = open_file(fd);
    unsigned char *pinned = app_alloc_pinned(bytes), *host = malloc(bytes);
    unsigned char *managed = app_alloc_managed(bytes);
    unsigned char *all[] = {pinned, host, managed};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!all[i])
            continue;
        must(queue(true, file, all[i], &call, NULL));
        assert_int_equal(async_rig_synchronize(NULL), 0);
        expect_done(&call, (ssize_t)bytes);
        assert_int_equal(pattern_check(all[i], 6, 0, bytes), bytes);
    }
    must(hipio_stream_deregister(NULL));
    hipio_deregister_file(file);
    close(fd);
    app_free_pinned(pinned);
    if (managed)
        app_free(managed);
    free(host);
}

/* ---- Ends and errors ---- */

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
        struct hipio_handle *file = open_file(fd);

        must(queue(true, file, memory, &call, stream));
        must(queue(true, file, memory, &next, stream));
        assert_int_equal(async_rig_synchronize(stream), 0);
        expect_done(&call, (ssize_t)ends[i]);
        expect_done(&next, ends[i] < 10 ? (ssize_t)ends[i] : 10);
        async_rig_check_memory(memory, 0, ends[i], 7, 0);
        async_rig_check_poison(memory, ends[i], bytes - ends[i]);
        hipio_deregister_file(file);
        close(fd);
        app_free(memory);
    }
    must(hipio_stream_deregister(stream));
    app_destroy_stream(stream);
}

/* How many storage calls a read of so many bytes is. */
static unsigned storage_calls(struct hipio_handle *file, void *memory, size_t bytes, void *stream)
{
    struct async_call call = {bytes, 0, 0, 0};

    fault_calls = (struct fault_calls){.error_at = 0};
    must(queue(true, file, memory, &call, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    expect_done(&call, (ssize_t)bytes);
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
    struct hipio_handle *file = open_file(fd);

    (void)state;
    must(hipio_set_file(file, "lanes", "1"));
    must(hipio_set_file(file, "fastpath", "off"));
    const unsigned calls = storage_calls(file, memory, bytes, stream);
    for (unsigned at = 1; at <= calls; at++) {
        for (int reads = 0; reads < 2; reads++) {
            struct async_call call = {bytes, 0, 0, 0}, next = {bytes, 0, 0, 0};

            fault_calls = (struct fault_calls){.error_at = at, .error = at % 2 ? ENOSPC : EIO};
            must(queue(reads, file, memory, &call, stream));
            must(queue(reads, file, memory, &next, stream));
            assert_int_equal(async_rig_synchronize(stream), 0);
            fault_calls = (struct fault_calls){.error_at = 0};
            expect_done(&call, at % 2 ? -ENOSPC : -EIO);
            expect_done(&next, (ssize_t)bytes);
            assert_int_equal(hipio_stream_status(stream, text, sizeof text),
                             at % 2 ? -ENOSPC : -EIO);
            assert_non_null(strstr(text, "async"));
            assert_int_equal(hipio_stream_status(stream, text, sizeof text), 0);
        }
    }
    async_rig_check_memory(memory, 0, bytes, 8, 0);
    async_rig_check_file(fd, 0, bytes, 8, 0);
    must(hipio_stream_deregister(stream));
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
    struct hipio_handle *file = open_file(fd);
    void *stream = app_create_stream(1);

    (void)state;
    for (size_t i = 0; i < sizeof spoil / sizeof spoil[0]; i++) {
        struct async_call call = {100, 0, 0, 0}, next = {100, 0, 0, 0};
        struct async_gate gate;

        async_rig_poison(memory, slot);
        async_rig_close_gate(stream, &gate);
        async_rig_call(stream, spoil[i], &call);
        must(queue(true, file, memory, &call, stream));
        gate.open = true;
        must(queue(true, file, memory + 200, &next, stream));
        assert_int_equal(async_rig_synchronize(stream), 0);
        assert_int_equal(call.done, -EINVAL);
        assert_int_equal(next.done, 100);
        async_rig_check_poison(memory, 0, 200);
        async_rig_check_memory(memory, 200, 100, 9, 0);
        assert_int_equal(hipio_stream_status(stream, NULL, 0), -EINVAL);
    }
    must(hipio_stream_deregister(stream));
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
    struct hipio_handle *file = open_file(fd), *no_writes = open_file(read_only);
    void *stream = app_create_stream(1);
    void *nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t before = queued();

    (void)state;
    assert_int_equal(hipio_stream_register(stream, 16), -EINVAL);
    must(hipio_stream_register(stream, HIPIO_ALL_PAGE_ALIGNED));
    assert_int_equal(hipio_stream_register(stream, 0), -EEXIST);
    assert_int_equal(hipio_stream_register((void *)2, 0), -ENOTSUP);
    assert_int_equal(queue(true, NULL, memory, &call, stream), -EINVAL);
    assert_int_equal(queue(true, file, NULL, &call, stream), -EFAULT);
    assert_int_equal(queue(true, file, nothing, &call, stream), -EFAULT);
    assert_int_equal(queue(false, no_writes, memory, &call, stream), -EBADF);
    assert_int_equal(hipio_read_async(file, memory, NULL, &call.file_offset, &call.buffer_offset,
                                      &call.done, stream),
                     -EINVAL);
    assert_int_equal(begin_capture(stream), 0);
    assert_int_equal(queue(true, file, memory, &call, stream), -EBUSY);
    assert_non_null(strstr(hipio_error_text(), "captured"));
    end_capture(stream);
    must(queue(true, file, memory, &call, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    assert_int_equal(queued(), before + 1);
    must(hipio_stream_deregister(stream));
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
    struct hipio_handle *file = open_file(fd);
    void *stream = app_create_stream(1);
    const uint64_t before = queued();

    (void)state;
    must(hipio_stream_register(stream, 0));
    app_destroy_stream(stream);
    assert_int_equal(queue(true, file, memory, &call, stream), -EINVAL);
    assert_non_null(strstr(hipio_error_text(), "destroyed"));
    assert_int_equal(queued(), before);
    must(hipio_stream_deregister(stream));
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
    struct hipio_handle *file = open_file(fd);

    (void)state;
    app_set_device(1);
    unsigned char *there = async_rig_memory(0, slot + 1);
    void *other = app_create_stream(1);
    app_set_device(0);
    unsigned char *here = async_rig_memory(0, slot + 1);
    void *stream = app_create_stream(1);

    assert_int_equal(queue(true, file, there, &call, stream), -EXDEV);
    must(queue(true, file, there, &call, other));
    assert_int_equal(app_get_device(), 0);
    assert_int_equal(async_rig_synchronize(other), 0);
    expect_done(&call, (ssize_t)(slot + 1));
    async_rig_check_memory(there, 0, slot + 1, 1, 0);
    must(queue(true, file, here, &call, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    assert_int_equal(app_get_device(), 0);
    must(hipio_stream_deregister(stream));
    must(hipio_stream_deregister(other));
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
    struct hipio_handle *file = open_file(fd);

    (void)state;
    must(hipio_statistic("pinned_now", &pinned));
    must(hipio_statistic("threads", &threads));
    async_rig_close_gate(stream, &gate);
    for (int i = 0; i < 3; i++) {
        calls[i] = (struct async_call){bytes, (off_t)(i * bytes), (off_t)(i * bytes), 0};
        must(queue(false, file, memory, &calls[i], stream));
    }
    close(fd);
    hipio_deregister_file(file);
    must(hipio_stream_deregister(stream));
    app_destroy_stream(stream);
    gate.open = true;
    for (int i = 0; i < 10000; i++) {
        must(hipio_statistic("streams", &now));
        if (now == 0)
            break;
        usleep(1000);
    }
    assert_int_equal(now, 0);
    for (int i = 0; i < 3; i++)
        expect_done(&calls[i], (ssize_t)bytes);
    async_rig_check_file(check, 0, 3 * bytes, 2, 0);
    close(check);
    must(hipio_statistic("pinned_now", &now));
    assert_int_equal(now, pinned);
    must(hipio_statistic("threads", &now));
    assert_true(now <= threads + 8); /* the engine's own may have come */
    assert_int_equal(count_descriptors(), before);
    app_free(memory);
}

static int start(void **state)
{
    char value[32];

    (void)state;
    devices = async_rig_start();
    large = getenv("HIPIO_TEST_LONG") ? (64u << 20) + 3 : (8u << 20) + 3;
    must(hipio_get(NULL, "async_buffer_size", value, sizeof value));
    buffer_size = strtoull(value, NULL, 10) * (strchr(value, 'M') ? 1024 : 1) * 1024;
    slot = buffer_size / (buffer_size >= (1u << 20) ? 8 : 4);
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
        cmocka_unit_test(sizes_fixed),
        cmocka_unit_test(sizes_late),
        cmocka_unit_test(many_in_flight),
        cmocka_unit_test(many_streams),
        cmocka_unit_test(a_thousand),
        cmocka_unit_test(chain),
        cmocka_unit_test(nothing_happens_early),
        cmocka_unit_test(other_memory),
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

    return _cmocka_run_group_tests("async", tests, can_tell ? n : n - 1, start, stop);
}
