/* SPDX-License-Identifier: MIT */
/*
 * Device GPU, second half: copies, events, streams, threads and contexts.
 */
#include "device_gpu.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8

static void fill(unsigned char *bytes, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 7);
}

/* Through the device and back, on every device, while another one is current. */
void copies_arrive(void **state)
{
    (void)state;
    for (int i = 0; i < devices; i++) {
        unsigned char *device, *other;
        struct hipio_stream *stream;
        struct trace before;
        void *pinned;

        app_set_device(i);
        device = app_alloc(MIB);
        other = app_alloc(MIB);
        app_set_device(devices - 1 - i);
        before = take_trace();
        assert_int_equal(provider->host_alloc(i, 2 * MIB, &pinned), 0);
        assert_true((uintptr_t)pinned % 4096 == 0);
        assert_kind(pinned, PINNED);
        assert_int_equal(provider->stream_create(i, &stream), 0);
        fill(pinned, MIB, 5);
        memset((char *)pinned + MIB, 0xa5, MIB);
        assert_int_equal(provider->copy(stream, device, pinned, MIB, HIPIO_COPY_TO_DEVICE), 0);
        assert_int_equal(provider->copy(stream, other, device, MIB, HIPIO_COPY_DEVICE), 0);
        assert_int_equal(
            provider->copy(stream, (char *)pinned + MIB, other, MIB, HIPIO_COPY_TO_HOST), 0);
        assert_int_equal(provider->copy(stream, NULL, NULL, 0, HIPIO_COPY_TO_HOST), 0);
        assert_int_equal(provider->stream_synchronize(stream), 0);
        assert_memory_equal(pinned, (char *)pinned + MIB, MIB);
        assert_int_equal(provider->synchronize(i, false), 0);
        assert_int_equal(provider->synchronize(i, true), 0);
        assert_int_equal(provider->stream_destroy(stream), 0);
        assert_int_equal(provider->host_free(i, pinned), 0);
        assert_int_equal(provider->host_free(i, NULL), 0);
        assert_int_equal(provider->host_alloc(i, 0, &pinned), -EINVAL);
        assert_traceless(before);
        app_set_device(i);
        app_free(device);
        app_free(other);
    }
    app_set_device(0);
}

/* The rows of a column of a matrix, packed to the device and unpacked from it. */
void rows_arrive(void **state)
{
    enum { PITCH = 1000, WIDTH = 24, ROWS = 333, SIZE = PITCH * ROWS };
    unsigned char *device = app_alloc(SIZE);
    unsigned char *expected = malloc(SIZE);
    unsigned char *pinned;
    void *memory;
    struct hipio_stream *stream;
    struct trace before = take_trace();

    (void)state;
    assert_int_equal(provider->host_alloc(0, 2 * SIZE, &memory), 0);
    pinned = memory;
    assert_int_equal(provider->stream_create(0, &stream), 0);
    fill(pinned, SIZE, 9);
    memset(expected, 0x3c, SIZE);
    for (int row = 0; row < ROWS; row++)
        memcpy(expected + row * PITCH + 100, pinned + row * PITCH + 7, WIDTH);

    assert_int_equal(provider->copy_2d(stream, device, WIDTH, pinned + 7, PITCH, WIDTH, ROWS,
                                       HIPIO_COPY_TO_DEVICE),
                     0);
    assert_int_equal(provider->stream_synchronize(stream), 0);
    memset(pinned, 0x3c, SIZE);
    assert_int_equal(provider->copy_2d(stream, pinned + 100, PITCH, device, WIDTH, WIDTH, ROWS,
                                       HIPIO_COPY_TO_HOST),
                     0);
    assert_int_equal(provider->stream_synchronize(stream), 0);
    assert_memory_equal(pinned, expected, SIZE);

    assert_int_equal(provider->copy_2d(stream, device, 8, device, 64, 16, 2, HIPIO_COPY_DEVICE),
                     -EINVAL);
    assert_int_equal(
        provider->copy_2d(stream, device, UINT64_C(1) << 32, device, 64, 16, 2, HIPIO_COPY_DEVICE),
        -ENOTSUP);
    assert_int_equal(provider->copy_2d(stream, NULL, 8, NULL, 8, 0, 2, HIPIO_COPY_DEVICE), 0);
    assert_int_equal(provider->stream_destroy(stream), 0);
    assert_int_equal(provider->host_free(0, memory), 0);
    assert_traceless(before);
    app_free(device);
    free(expected);
}

/* An event is complete when the copy before it is, and asking early leaves no trace. */
void events_order(void **state)
{
    unsigned char *device = app_alloc(16 * MIB);
    struct hipio_stream *stream;
    struct hipio_event *event;
    struct trace before;
    void *pinned;
    int early = 0;

    (void)state;
    app_set_device(devices - 1);
    before = take_trace();
    assert_int_equal(provider->host_alloc(0, 16 * MIB, &pinned), 0);
    assert_int_equal(provider->stream_create(0, &stream), 0);
    assert_int_equal(provider->event_create(0, &event), 0);
    for (int i = 0; i < 10; i++) {
        int rc;

        memset(pinned, i, 64);
        assert_int_equal(provider->copy(stream, device, pinned, 16 * MIB, HIPIO_COPY_TO_DEVICE), 0);
        assert_int_equal(provider->event_record(event, stream), 0);
        rc = provider->event_query(event);
        assert_true(rc == 0 || rc == -EAGAIN);
        early += rc == -EAGAIN;
        assert_int_equal(app_last_error(), 0);
        if (i % 2 == 0)
            assert_int_equal(provider->event_synchronize(event), 0);
        while (provider->event_query(event) == -EAGAIN)
            usleep(10);
        assert_int_equal(provider->event_query(event), 0);
    }
    assert_true(early > 0);
    assert_int_equal(provider->event_destroy(event), 0);
    assert_int_equal(provider->stream_destroy(stream), 0);
    assert_int_equal(provider->host_free(0, pinned), 0);
    assert_traceless(before);
    app_set_device(0);
    app_free(device);
}

/* Queues a nap that ends with *flag set, on a stream of the application's (NULL: the default one).
 */
static void nap(void *stream, unsigned milliseconds, _Atomic bool *flag)
{
    static struct app_nap naps[64];
    static int n;

    naps[n] = (struct app_nap){.milliseconds = milliseconds, .flag = flag};
    app_queue_nap(stream, &naps[n++ % 64]);
}

/* What synchronize waits for: the default stream and blocking streams, or all. */
void synchronize_waits(void **state)
{
    void *blocking = app_create_stream(0), *loose = app_create_stream(1);
    _Atomic bool flag = false;

    (void)state;
    for (int i = 0; i < 3; i++) {
        nap(NULL, 20, &flag);
        assert_int_equal(provider->synchronize(0, i == 0), 0);
        assert_true(flag);
        flag = false;
        nap(blocking, 20, &flag);
        assert_int_equal(provider->synchronize(0, i == 0), 0);
        assert_true(flag);
        flag = false;
        nap(loose, 20, &flag);
        assert_int_equal(provider->synchronize(0, true), 0);
        assert_true(flag);
        flag = false;
    }
    app_destroy_stream(blocking);
    app_destroy_stream(loose);

    /* It is the device that was named, not the current one. */
    app_set_device(devices - 1);
    nap(NULL, 50, &flag);
    app_set_device(0);
    assert_int_equal(provider->synchronize(devices - 1, false), 0);
    assert_true(flag);
}

/* Our streams do not wait for the application's default stream. Where the machine is slow the nap
 * may be over by chance, so one success out of several is enough. */
void own_streams_do_not_wait(void **state)
{
    unsigned char *device = app_alloc(4096);
    struct hipio_stream *stream;
    _Atomic bool flag = false;
    bool overtaken = false;
    void *pinned;

    (void)state;
    if (!app_is_cuda() && getenv("HIPIO_TEST_VERSION") == NULL)
        skip(); /* a host function that sleeps holds up every stream of a real AMD device */
    assert_int_equal(provider->host_alloc(0, 4096, &pinned), 0);
    assert_int_equal(provider->stream_create(0, &stream), 0);
    for (int i = 0; i < 5 && !overtaken; i++) {
        flag = false;
        nap(NULL, 200, &flag);
        assert_int_equal(provider->copy(stream, device, pinned, 4096, HIPIO_COPY_TO_DEVICE), 0);
        assert_int_equal(provider->stream_synchronize(stream), 0);
        overtaken = !flag;
        assert_int_equal(provider->synchronize(0, false), 0);
        assert_true(flag);
    }
    assert_true(overtaken);
    assert_int_equal(provider->stream_destroy(stream), 0);
    assert_int_equal(provider->host_free(0, pinned), 0);
    app_free(device);
}

void kernels_see_pinned_memory(void **state)
{
    static const char garbage[8192] = "this is no code";
    struct trace before = take_trace();
    void *pinned, *seen = NULL, *module = NULL;

    (void)state;
    assert_int_equal(provider->host_alloc(0, 4096, &pinned), 0);
    assert_int_equal(provider->device_pointer(0, pinned, &seen), 0);
    assert_non_null(seen);
    assert_int_equal(provider->host_free(0, pinned), 0);
    assert_int_equal(provider->module_load(0, garbage, &module), -ENOTSUP);
    assert_non_null(strstr(hipio_status_text(), provider->name));
    assert_non_null(strstr(hipio_status_text(), "ModuleLoadData failed: "));
    print_message("%s\n", hipio_status_text());
    assert_traceless(before);
}

/* Errors of a call name it, and leave neither the device nor the last error changed. */
void errors_leave_no_trace(void **state)
{
    unsigned char *device = app_alloc(4096);
    struct hipio_stream *stream;
    struct trace before;
    void *pinned;
    int rc;

    (void)state;
    app_set_device(devices - 1);
    before = take_trace();
    assert_int_equal(provider->stream_create(0, &stream), 0);
    assert_int_equal(provider->host_alloc(0, UINT64_C(1) << 60, &pinned), -ENOMEM);
    assert_non_null(strstr(hipio_status_text(), app_is_cuda() ? "(2)" : "hipErrorOutOfMemory (2)"));
    assert_traceless(before);
    rc = provider->copy(stream, device, NULL, 4096, HIPIO_COPY_TO_DEVICE);
    assert_int_equal(rc, -EINVAL);
    print_message("%s\n", hipio_status_text());
    assert_traceless(before);
    assert_int_equal(provider->stream_destroy(stream), 0);
    app_set_device(0);
    app_free(device);
}

/* From ROCm 7 on the application's own pending error survives our successful calls, and those of
 * our failures that the runtime does not store. */
void pending_errors_survive(void **state)
{
    const char *version = getenv("HIPIO_TEST_VERSION");
    struct hipio_stream *stream;
    struct hipio_event *event;
    int local, pending;

    (void)state;
    if (app_is_cuda() || version == NULL || strcmp(version, "HIP 7") < 0)
        skip();
    assert_int_equal(provider->stream_create(devices - 1, &stream), 0);
    assert_int_equal(provider->event_create(devices - 1, &event), 0);
    pending = app_provoke_error();
    assert_int_not_equal(pending, 0);
    assert_kind(&local, HOST);
    assert_int_equal(provider->synchronize(devices - 1, true), 0);
    assert_int_equal(provider->event_record(event, stream), 0);
    (void)provider->event_query(event);
    assert_int_equal(provider->event_synchronize(event), 0);
    assert_int_equal(app_last_error(), pending);
    ((int (*)(void))app_function("hipGetLastError"))();
    assert_int_equal(provider->event_destroy(event), 0);
    assert_int_equal(provider->stream_destroy(stream), 0);
}

struct worker {
    pthread_t thread;
    int device;
    unsigned char *memory;
    int failed; /* line */
};

/* What a helper thread does whose first call to the runtime goes through us. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct hipio_stream *stream = NULL;
    struct hipio_memory memory;
    void *pinned = NULL;

#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            worker->failed = __LINE__;                                                             \
            return NULL;                                                                           \
        }                                                                                          \
    } while (0)
    need(hipio_device_classify(worker->memory, &memory) == 0);
    need(memory.kind == HIPIO_MEMORY_DEVICE && memory.device == worker->device);
    need(provider->stream_create(memory.device, &stream) == 0);
    need(provider->host_alloc(memory.device, 8192, &pinned) == 0);
    for (int i = 0; i < 20; i++) {
        memset(pinned, worker->device + i, 4096);
        memset((char *)pinned + 4096, 0, 4096);
        need(provider->copy(stream, worker->memory, pinned, 4096, HIPIO_COPY_TO_DEVICE) == 0);
        need(provider->copy(stream, (char *)pinned + 4096, worker->memory, 4096,
                            HIPIO_COPY_TO_HOST) == 0);
        need(provider->stream_synchronize(stream) == 0);
        need(memcmp(pinned, (char *)pinned + 4096, 4096) == 0);
        need(provider->synchronize(memory.device, false) == 0);
    }
    need(provider->host_free(memory.device, pinned) == 0);
    need(provider->stream_destroy(stream) == 0);
    need(app_is_cuda() ? app_current() == NULL : app_get_device() == 0);
    return NULL;
#undef need
}

void threads_work_side_by_side(void **state)
{
    struct worker workers[THREADS] = {0};

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        workers[i].device = i % devices;
        app_set_device(workers[i].device);
        workers[i].memory = app_alloc(4096);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failed, 0);
        app_set_device(workers[i].device);
        app_free(workers[i].memory);
    }
    app_set_device(0);
}

/* Memory of a context that the program has made itself is served in that context (CUDA). */
void own_contexts_are_followed(void **state)
{
    int (*create)(void **, unsigned, int);
    int (*destroy)(void *);
    struct hipio_stream *stream;
    unsigned char *device;
    void *own = NULL, *pinned;
    const void *primary = app_current();

    (void)state;
    if (!app_is_cuda() || app_function("cuCtxCreate_v2") == NULL)
        skip();
    create = (int (*)(void **, unsigned, int))app_function("cuCtxCreate_v2");
    destroy = (int (*)(void *))app_function("cuCtxDestroy_v2");
    assert_int_equal(create(&own, 0, 0), 0);
    device = app_alloc(8192);
    app_set_device(0);
    assert_ptr_equal(app_current(), primary);
    for (int i = 0; i < 2; i++) {
        assert_kind(device, DEVICE);
        assert_int_equal(provider->synchronize(0, i == 0), 0);
        assert_int_equal(provider->stream_create(0, &stream), 0);
        assert_int_equal(provider->host_alloc(0, 8192, &pinned), 0);
        fill(pinned, 4096, 11);
        assert_int_equal(provider->copy(stream, device, pinned, 4096, HIPIO_COPY_TO_DEVICE), 0);
        assert_int_equal(provider->copy(stream, device + 4096, device, 4096, HIPIO_COPY_DEVICE), 0);
        assert_int_equal(
            provider->copy(stream, (char *)pinned + 4096, device + 4096, 4096, HIPIO_COPY_TO_HOST),
            0);
        assert_int_equal(provider->stream_synchronize(stream), 0);
        assert_memory_equal(pinned, (char *)pinned + 4096, 4096);
        assert_int_equal(provider->host_free(0, pinned), 0);
        assert_int_equal(provider->stream_destroy(stream), 0);
        app_drop_current();
    }
    assert_null(app_current());
    app_set_device(0);
    app_free(device);
    device = app_alloc(4096);
    assert_kind(device, DEVICE);
    assert_int_equal(destroy(own), 0);
    app_set_device(0);
    assert_int_equal(provider->synchronize(0, false), 0);
    app_free(device);
}

/* A thread without a current context (CUDA) gets none from us. */
void nothing_current_stays_so(void **state)
{
    unsigned char *device = app_alloc(4096);
    const void *none;

    (void)state;
    app_drop_current();
    none = app_current();
    assert_kind(device, DEVICE);
    assert_int_equal(provider->synchronize(0, false), 0);
    assert_ptr_equal(app_current(), none);
    app_set_device(0);
    app_free(device);
}
