/* SPDX-License-Identifier: MIT */
/* Streams: what is ordered, what is not, and that a missing synchronisation shows. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { H2D = 1, D2H = 2, D2D = 3, SIZE = 1 << 16, BUSY = 600, NONBLOCKING = 1 };

static void *const legacy = (void *)1;
static void *const per_thread = (void *)2;

static void *new_stream(unsigned flags)
{
    void *stream;

    OK(hip.hipStreamCreateWithFlags(&stream, flags));
    return stream;
}

/* Without waiting, the host must see old data most of the time; with waiting, never. */
static void missing_sync_shows(void)
{
    void *stream = new_stream(NONBLOCKING);
    char *device = device_alloc(SIZE), *host = pinned_alloc(SIZE);
    int stale = 0;

    for (int i = 1; i <= 100; i++) {
        OK(hip.hipMemsetAsync(device, i, SIZE, stream));
        OK(hip.hipMemcpyAsync(host, device, SIZE, D2H, stream));
        stale += (int)(peek(host + SIZE - 8) & 0xff) != i;
        OK(hip.hipStreamSynchronize(stream));
        EQUAL(host[SIZE - 1], i);
    }
    TRUE(stale > 50);
    OK(hip.hipFree(device));
    OK(hip.hipHostFree(host));
    OK(hip.hipStreamDestroy(stream));
}

/* A pageable source that is reused too early is found out. */
static void late_snapshot(void)
{
    void *stream = new_stream(NONBLOCKING);
    char *device = device_alloc(SIZE), *source = malloc(SIZE), host;
    struct gate gate;

    memset(source, 1, SIZE);
    gate_close(&gate, stream);
    OK(hip.hipMemcpyAsync(device, source, SIZE, H2D, stream));
    memset(source, 2, SIZE);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(stream));
    OK(hip.hipMemcpy(&host, device + 5, 1, D2H));
    EQUAL(host, 2);
    free(source);
    OK(hip.hipFree(device));
    OK(hip.hipStreamDestroy(stream));
}

/* Blocking calls that do not block: device to device, and small pageable sources. */
static void blocking_copies(void)
{
    void *stream = new_stream(0);
    char *device = device_alloc(SIZE), *other = device_alloc(SIZE), source[100], host[100];
    struct gate gate;

    memset(source, 1, sizeof(source));
    gate_close(&gate, stream);
    OK(hip.hipMemcpy(device, source, sizeof(source), H2D));
    memset(source, 2, sizeof(source));
    OK(hip.hipMemcpy(other, device, SIZE, D2D));
    OK(hip.hipMemset(device, 9, SIZE));
    EQUAL(hip.hipStreamQuery(NULL), BUSY);
    gate_open(&gate);
    OK(hip.hipMemcpy(host, other, sizeof(host), D2H));
    EQUAL(host[99], 1);
    OK(hip.hipFree(device));
    OK(hip.hipFree(other));
    OK(hip.hipStreamDestroy(stream));
}

static void legacy_stream(void)
{
    void *blocking = new_stream(0), *free_stream = new_stream(NONBLOCKING);
    char *device = device_alloc(3 * SIZE), *second = device + SIZE, *third = second + SIZE;
    struct gate gate;
    unsigned flags;

    OK(hip.hipStreamGetFlags(free_stream, &flags));
    EQUAL(flags, NONBLOCKING);
    /* The legacy stream waits for a blocking one, a non-blocking one goes on. */
    gate_close(&gate, blocking);
    OK(hip.hipMemsetAsync(device, 1, SIZE, NULL));
    OK(hip.hipMemsetAsync(second, 1, SIZE, free_stream));
    OK(hip.hipStreamSynchronize(free_stream));
    EQUAL(hip.hipStreamQuery(NULL), BUSY);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(NULL));
    OK(hip.hipStreamQuery(blocking));
    /* A blocking stream waits for the legacy one, and so does the per-thread stream. */
    gate_close(&gate, NULL);
    OK(hip.hipMemsetAsync(device, 2, SIZE, blocking));
    OK(hip.hipMemsetAsync(third, 2, SIZE, per_thread));
    OK(hip.hipMemsetAsync(second, 2, SIZE, free_stream));
    OK(hip.hipStreamSynchronize(free_stream));
    EQUAL(hip.hipStreamQuery(blocking), BUSY);
    EQUAL(hip.hipStreamQuery(per_thread), BUSY);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(blocking));
    OK(hip.hipStreamSynchronize(per_thread));
    /* A synchronisation with NULL covers blocking and per-thread streams, no others. */
    gate_close(&gate, per_thread);
    EQUAL(hip.hipStreamQuery(NULL), BUSY);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(NULL));
    OK(hip.hipStreamQuery(per_thread));
    gate_close(&gate, free_stream);
    OK(hip.hipStreamSynchronize(NULL));
    EQUAL(hip.hipStreamQuery(free_stream), BUSY);
    gate_open(&gate);
    OK(hip.hipDeviceSynchronize());
    OK(hip.hipStreamQuery(free_stream));
    if (hip.major >= 6)
        OK(hip.hipStreamSynchronize(legacy));
    else
        EQUAL(hip.hipStreamSynchronize(legacy), 709);
    OK(hip.hipFree(device));
    OK(hip.hipStreamDestroy(blocking));
    OK(hip.hipStreamDestroy(free_stream));
}

static void *own_stream(void *device)
{
    OK(hip.hipMemcpyAsync_spt(device, device, 0, D2D, NULL));
    OK(hip.hipMemsetAsync(device, 3, SIZE, per_thread));
    OK(hip.hipStreamSynchronize_spt(NULL));
    return NULL;
}

static void per_thread_streams(void)
{
    void *device = device_alloc(SIZE);
    struct gate gate;
    pthread_t thread;

    gate_close(&gate, per_thread);
    /* Another thread's per-thread stream is another one. */
    EQUAL(pthread_create(&thread, NULL, own_stream, device), 0);
    EQUAL(pthread_join(thread, NULL), 0);
    EQUAL(hip.hipStreamQuery(per_thread), BUSY);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(per_thread));
    OK(hip.hipFree(device));
}

static void events(void)
{
    void *first = new_stream(NONBLOCKING), *second = new_stream(NONBLOCKING), *event, *plain;
    char *device = device_alloc(SIZE), host = 0;
    struct gate gate;
    float ms = -1;

    OK(hip.hipEventCreate(&event));
    OK(hip.hipEventCreateWithFlags(&plain, 2));
    OK(hip.hipEventQuery(event));
    OK(hip.hipEventSynchronize(event));
    OK(hip.hipStreamWaitEvent(second, event, 0));
    EQUAL(hip.hipEventElapsedTime(&ms, event, event), 400);
    gate_close(&gate, first);
    OK(hip.hipMemsetAsync(device, 4, SIZE, first));
    OK(hip.hipEventRecord(event, first));
    OK(hip.hipStreamWaitEvent(second, event, 0));
    OK(hip.hipMemcpyAsync(&host, device + 9, 1, D2H, second));
    EQUAL(hip.hipEventQuery(event), BUSY);
    EQUAL(hip.hipStreamQuery(second), BUSY);
    EQUAL(hip.hipEventElapsedTime(&ms, event, event), 600);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(second));
    EQUAL(host, 4);
    OK(hip.hipEventSynchronize(event));
    OK(hip.hipEventElapsedTime(&ms, event, event));
    TRUE(ms == 0);
    OK(hip.hipEventRecord(plain, first));
    OK(hip.hipEventSynchronize(plain));
    EQUAL(hip.hipEventElapsedTime(&ms, event, plain), 400);
    /* Destroyed while its point is not reached: the waiting stream still waits. */
    gate_close(&gate, first);
    OK(hip.hipEventRecord(plain, first));
    OK(hip.hipStreamWaitEvent(second, plain, 0));
    OK(hip.hipEventDestroy(plain));
    EQUAL(hip.hipEventQuery(plain), 400);
    EQUAL(hip.hipStreamQuery(second), BUSY);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(second));
    OK(hip.hipEventDestroy(event));
    OK(hip.hipFree(device));
    OK(hip.hipStreamDestroy(first));
    OK(hip.hipStreamDestroy(second));
    EQUAL(hip.counter("events_live"), 0);
}

static void set_flag(void *stream, int status, void *data)
{
    (void)stream;
    atomic_store((atomic_int *)data, 100 + status);
}

static void set_flag_plain(void *data)
{
    atomic_store((atomic_int *)data, 7);
}

static void destroyed_early(void)
{
    void *stream = new_stream(NONBLOCKING);
    atomic_int flag = 0;
    struct gate gate;

    gate_close(&gate, stream);
    OK(hip.hipStreamAddCallback(stream, set_flag, &flag, 0));
    OK(hip.hipStreamDestroy(stream));
    if (hip.major <= 6)
        EQUAL(hip.hipStreamSynchronize(stream), 709);
    EQUAL(atomic_load(&flag), 0);
    gate_open(&gate);
    OK(hip.hipDeviceSynchronize());
    EQUAL(atomic_load(&flag), 100);
    EQUAL(hip.hipStreamDestroy(NULL), 400);
    EQUAL(hip.hipStreamDestroy(per_thread), 400);
}

static void use_stale_stream(void)
{
    void *stream = new_stream(0);

    OK(hip.hipStreamDestroy(stream));
    hip.hipStreamSynchronize(stream);
}

static void stale_handle(void)
{
    EQUAL(harness_child(use_stale_stream), hip.major >= 7 ? SIGABRT : 0);
}

static void call_inside(void *stream, int status, void *data)
{
    (void)stream;
    (void)status;
    (void)data;
    hip.hipDeviceSynchronize();
}

static void misuse_callback(void)
{
    OK(hip.hipStreamAddCallback(NULL, call_inside, NULL, 0));
    hip.hipStreamSynchronize(NULL);
}

static void host_functions(void)
{
    atomic_int flag = 0;

    EQUAL(harness_child(misuse_callback), SIGABRT);
    OK(hip.hipStreamAddCallback(NULL, set_flag, &flag, 0));
    OK(hip.hipStreamSynchronize(NULL));
    EQUAL(atomic_load(&flag), 100);
    EQUAL(hip.hipStreamAddCallback(NULL, NULL, &flag, 0), 1);
    EQUAL(hip.hipStreamAddCallback(NULL, set_flag, &flag, 1), 1);
    EQUAL(hip.hipLaunchHostFunc != NULL, hip.major >= 6);
    if (hip.hipLaunchHostFunc) {
        OK(hip.hipLaunchHostFunc(NULL, set_flag_plain, &flag));
        OK(hip.hipDeviceSynchronize());
        EQUAL(atomic_load(&flag), 7);
    }
    EQUAL(hip.counter("host_functions"), hip.major >= 6 ? 2 : 1);
}

static void capture(void)
{
    void *stream = new_stream(0), *quiet = new_stream(NONBLOCKING), *graph;
    void *device = device_alloc(SIZE);
    int status = -1;

    OK(hip.hipStreamIsCapturing(stream, &status));
    EQUAL(status, 0);
    EQUAL(hip.hipStreamBeginCapture(NULL, 0), 900);
    OK(hip.hipStreamBeginCapture(stream, 0));
    EQUAL(hip.hipStreamBeginCapture(stream, 0), 1);
    OK(hip.hipStreamIsCapturing(stream, &status));
    EQUAL(status, 1);
    EQUAL(hip.hipMemsetAsync(device, 0, SIZE, stream), 900);
    EQUAL(hip.hipMemsetAsync(device, 0, SIZE, NULL), 906);
    EQUAL(hip.hipStreamSynchronize(NULL), 906);
    OK(hip.hipMemsetAsync(device, 0, SIZE, quiet));
    OK(hip.hipStreamEndCapture(stream, &graph));
    OK(hip.hipGraphDestroy(graph));
    OK(hip.hipStreamBeginCapture(stream, 2));
    EQUAL(hip.hipStreamSynchronize(stream), 900);
    OK(hip.hipStreamIsCapturing(stream, &status));
    EQUAL(status, 2);
    EQUAL(hip.hipStreamEndCapture(stream, &graph), 901);
    EQUAL(hip.hipStreamEndCapture(stream, &graph), 903);
    OK(hip.hipStreamSynchronize(quiet));
    OK(hip.hipMemsetAsync(device, 0, SIZE, stream));
    OK(hip.hipStreamSynchronize(NULL));
    OK(hip.hipFree(device));
    OK(hip.hipStreamDestroy(stream));
    OK(hip.hipStreamDestroy(quiet));
}

static void wait_value(void)
{
    void *stream = new_stream(NONBLOCKING), *pinned = pinned_alloc(64), *word;
    atomic_ullong *signal;
    int offered;

    OK(hip.hipDeviceGetAttribute(&offered, 10013, 0));
    OK(hip.hipExtMallocWithFlags(&word, 8, 2));
    EQUAL(hip.hipExtMallocWithFlags(&word, 16, 2), 1);
    OK(hip.hipExtMallocWithFlags(&word, 8, 2));
    signal = word;
    EQUAL(atomic_load(signal), 0);
    if (!offered) {
        EQUAL(hip.hipStreamWaitValue64(stream, word, 1, 0, ~0ull), 801);
        EQUAL(hip.hipStreamWriteValue64(stream, word, 1, 0), 801);
        return;
    }
    EQUAL(hip.hipStreamWaitValue64(stream, pinned, 1, 0, ~0ull), 1);
    EQUAL(hip.hipStreamWaitValue64(stream, word, 1, 4, ~0ull), 1);
    OK(hip.hipStreamWaitValue64(stream, word, 5, 0, ~0ull));
    OK(hip.hipStreamWriteValue32(stream, pinned, 77, 0));
    sleep_ms(5);
    EQUAL(hip.hipStreamQuery(stream), BUSY);
    atomic_store(signal, 6);
    OK(hip.hipStreamSynchronize(stream));
    EQUAL(*(int *)pinned, 77);
    OK(hip.hipStreamWaitValue64(stream, word, 0x10, 1, 0xf0));
    EQUAL(hip.hipStreamQuery(stream), BUSY);
    atomic_store(signal, 0x1f);
    OK(hip.hipStreamWaitValue32(stream, word, 8, 2, ~0u));
    OK(hip.hipStreamWriteValue64(stream, word, 99, 0));
    OK(hip.hipStreamSynchronize(stream));
    EQUAL(atomic_load(signal), 99);
    OK(hip.hipFree(word));
    OK(hip.hipHostFree(pinned));
    OK(hip.hipStreamDestroy(stream));
}

static void *hammer(void *argument)
{
    unsigned char value = (unsigned char)(uintptr_t)argument, host[4096], source[4096];
    void *device = device_alloc(sizeof(host)), *other = device_alloc(sizeof(host)), *event;
    void *stream = new_stream(value & 1);

    OK(hip.hipEventCreateWithFlags(&event, 2));
    memset(source, value, sizeof(source));
    for (int i = 0; i < 50; i++) {
        memset(host, 0, sizeof(host));
        OK(hip.hipMemcpyAsync(device, source, sizeof(host), H2D, stream));
        OK(hip.hipMemcpyAsync(host, device, sizeof(host), D2H, stream));
        OK(hip.hipEventRecord(event, stream));
        if (i % 10 == 0)
            OK(hip.hipMemsetAsync(other, value, sizeof(host), NULL));
        OK(hip.hipEventSynchronize(event));
        EQUAL(memcmp(host, source, sizeof(host)), 0);
    }
    OK(hip.hipEventDestroy(event));
    OK(hip.hipStreamDestroy(stream));
    OK(hip.hipFree(device));
    OK(hip.hipFree(other));
    return NULL;
}

static void many_threads(void)
{
    pthread_t threads[8];

    for (uintptr_t i = 0; i < 8; i++)
        EQUAL(pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++)
        EQUAL(pthread_join(threads[i], NULL), 0);
    EQUAL(hip.counter("streams_live"), 0);
    EQUAL(hip.counter("allocations_live"), 0);
}

static void idle_is_cheap(void)
{
    void *streams[8], *word;
    double before;

    for (int i = 0; i < 8; i++) {
        streams[i] = new_stream(NONBLOCKING);
        OK(hip.hipExtMallocWithFlags(&word, 8, 2));
        OK(hip.hipStreamWriteValue64(streams[i], word, 1, 0));
    }
    OK(hip.hipDeviceSynchronize());
    before = cpu_ms();
    sleep_ms(300);
    TRUE(cpu_ms() - before < 20);
    OK(hip.hipStreamWaitValue64(streams[0], word, 2, 1, ~0ull));
    before = cpu_ms();
    sleep_ms(300);
    TRUE(cpu_ms() - before < 60);
    poke(word, 2);
    OK(hip.hipStreamSynchronize(streams[0]));
}

/* Run with HIPSIM_DEVICES=2. */
static void two_devices(void)
{
    void *stream, *other, *event, *first = device_alloc(SIZE), *second;
    char host[8] = {0};
    int device = -1, can = 0;

    OK(hip.hipStreamCreate(&stream));
    OK(hip.hipSetDevice(1));
    second = device_alloc(SIZE);
    OK(hip.hipStreamCreate(&other));
    OK(hip.hipEventCreate(&event));
    EQUAL(hip.hipEventRecord(event, stream), 400);
    OK(hip.hipEventRecord(event, other));
    EQUAL(hip.hipGetStreamDeviceId(other), 1);
    if (hip.hipStreamGetDevice) {
        OK(hip.hipStreamGetDevice(stream, &device));
        EQUAL(device, 0);
    }
    OK(hip.hipMemsetAsync(second, 6, SIZE, other));
    OK(hip.hipEventRecord(event, other));
    OK(hip.hipStreamWaitEvent(stream, event, 0));
    OK(hip.hipMemcpyPeerAsync(first, 0, second, 1, SIZE, stream));
    OK(hip.hipMemcpyDtoHAsync(host, first, sizeof(host), stream));
    OK(hip.hipStreamSynchronize(stream));
    EQUAL(host[7], 6);
    EQUAL(hip.counter("foreign_device"), 1);
    EQUAL(hip.counter("foreign_stream"), 3);
    EQUAL(hip.hipSetDevice(2), 101);
    OK(hip.hipGetDevice(&device));
    EQUAL(device, 1);
    OK(hip.hipDeviceCanAccessPeer(&can, 0, 1));
    EQUAL(can, 1);
    OK(hip.hipDeviceEnablePeerAccess(0, 0));
    EQUAL(hip.hipDeviceEnablePeerAccess(0, 0), 704);
    OK(hip.hipDeviceDisablePeerAccess(0));
    EQUAL(hip.hipDeviceDisablePeerAccess(0), 705);
    OK(hip.hipFree(first));
    OK(hip.hipFree(second));
}

static const struct test_case cases[] = {
    {"missing_sync_shows", missing_sync_shows},
    {"late_snapshot", late_snapshot},
    {"blocking_copies", blocking_copies},
    {"legacy_stream", legacy_stream},
    {"per_thread_streams", per_thread_streams},
    {"events", events},
    {"destroyed_early", destroyed_early},
    {"stale_handle", stale_handle},
    {"host_functions", host_functions},
    {"capture", capture},
    {"wait_value", wait_value},
    {"many_threads", many_threads},
    {"idle_is_cheap", idle_is_cheap},
    {"two_devices", two_devices},
};

int main(int argc, char **argv)
{
    return harness_run(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
