/* SPDX-License-Identifier: MIT */
/* Loading, facts, fork, exit. */
#include "harness.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { H2D = 1, D2H = 2, SIZE = 1 << 16 };

static void facts(void)
{
    char text[256];
    unsigned char uuid[16], properties[1024];
    int value, other;
    size_t total;

    OK(hip.hipInit(0));
    EQUAL(hip.hipInit(1), 1);
    OK(hip.hipRuntimeGetVersion(&value));
    EQUAL(value / 10000000, hip.major);
    OK(hip.hipGetDeviceCount(&value));
    EQUAL(value, 1);
    OK(hip.hipDeviceGetName(text, sizeof(text), 0));
    TRUE(strstr(text, "hipsim") && strstr(text, "simulated") && strstr(text, "no GPU"));
    OK(hip.hipDeviceGetUuid(uuid, 0));
    OK(hip.hipDeviceGetPCIBusId(text, sizeof(text), 0));
    OK(hip.hipDeviceGetByPCIBusId(&other, text));
    EQUAL(other, 0);
    EQUAL(hip.hipDeviceGetByPCIBusId(&other, "0000:ff:00.0"), 1);
    EQUAL(hip.hipDeviceGetName(text, sizeof(text), 1), 101);
    OK(hip.hipDeviceTotalMem(&total, 0));
    TRUE(total > 0);
    OK(hip.hipDeviceGetAttribute(&value, 63, 0));
    EQUAL(hip.hipDeviceGetAttribute(&value, 5000, 0), 1);
    memset(properties, 0x5a, sizeof(properties));
    OK(hip.hipGetDeviceProperties(properties, 0));
    EQUAL(properties[791], 0);
    EQUAL(properties[792], 0x5a);
    EQUAL(strcmp((char *)properties, "hipsim: simulated device 0 (no GPU)"), 0);
    EQUAL(strcmp(hip.hipGetErrorName(600), "hipErrorNotReady"), 0);
    EQUAL(strcmp(hip.hipGetErrorName(4711), "hipErrorUnknown"), 0);
    EQUAL(hip.counter("no_such_counter"), -1);
}

/* Run with HIPSIM_DEVICES=0. */
static void no_device(void)
{
    struct hip_pointer_attributes attributes;
    int count = -1, code = hip.major <= 5 ? 101 : 100;

    EQUAL(hip.hipInit(0), code);
    EQUAL(hip.hipGetDeviceCount(&count), 100);
    EQUAL(count, 0);
    EQUAL(hip.hipPointerGetAttributes(&attributes, &count), code);
    EQUAL(hip.hipMalloc((void **)&attributes, 1), code);
    OK(hip.hipRuntimeGetVersion(&count));
}

static void forked(void)
{
    void *device = device_alloc(SIZE), *stream, *other;
    struct gate gate;
    int status;
    pid_t pid;

    OK(hip.hipStreamCreateWithFlags(&stream, 1));
    gate_close(&gate, stream);
    gate_await(&gate);
    pid = fork();
    if (!pid) {
        EQUAL(hip.hipMalloc(&other, 1), 3);
        EQUAL(hip.hipStreamSynchronize(stream), 3);
        EQUAL(hip.hipMemcpy(device, &status, 4, H2D), 3);
        EQUAL(hip.hipFree(device), 3);
        EQUAL(hip.hipStreamDestroy(stream), 3);
        OK(hip.hipRuntimeGetVersion(&status));
        exit(0);
    }
    EQUAL(waitpid(pid, &status, 0), pid);
    EQUAL(status, 0);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(stream));
    OK(hip.hipFree(device));
}

static void leave_everything(void)
{
    static struct gate gate;
    char *device = device_alloc(5 * SIZE);
    void *stream, *word;

    for (int i = 0; i < 4; i++) {
        OK(hip.hipStreamCreate(&stream));
        OK(hip.hipMemsetAsync(device + i * SIZE, i, SIZE, stream));
    }
    gate_close(&gate, stream);
    OK(hip.hipStreamCreateWithFlags(&stream, 1));
    OK(hip.hipExtMallocWithFlags(&word, 8, 2));
    OK(hip.hipStreamWaitValue64(stream, word, 1, 1, ~0ull));
    OK(hip.hipMemsetAsync(device + 4 * SIZE, 1, SIZE, stream));
    exit(0);
}

/* Exit with work in flight, a gate closed and a value never written: no hang, no crash. */
static void exit_in_flight(void)
{
    double start = now_ms();

    EQUAL(harness_child(leave_everything), 0);
    TRUE(now_ms() - start < 5000);
}

static void *use_and_end(void *unused)
{
    void *device = device_alloc(64);

    (void)unused;
    OK(hip.hipMemsetAsync(device, 1, 64, (void *)2));
    OK(hip.hipFree(device));
    return NULL;
}

static void reload(void)
{
    for (int i = 0; i < 5; i++) {
        pthread_t thread;

        EQUAL(pthread_create(&thread, NULL, use_and_end, NULL), 0);
        EQUAL(pthread_join(thread, NULL), 0);
        EQUAL(dlclose(hip.library), 0);
        harness_load(hip.major);
    }
    EQUAL(hip.counter("streams"), 5);
    EQUAL(hip.counter("streams_live"), 0);
}

/* Run with HIPSIM_STATS=hipsim-stats.txt. */
static void do_some_work(void)
{
    char host[100];
    void *device = device_alloc(SIZE);

    OK(hip.hipMemcpy(host, device, sizeof(host), D2H));
    OK(hip.hipFree(device));
    exit(0);
}

static void report(void)
{
    char path[64], text[4096] = "";
    size_t length;
    FILE *file;

    snprintf(path, sizeof(path), "hipsim-stats-%d.txt", (int)getpid());
    setenv("HIPSIM_STATS", path, 1);
    EQUAL(harness_child(do_some_work), 0);
    file = fopen(path, "r");
    TRUE(file != NULL);
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    unlink(path);
    TRUE(length > 0);
    TRUE(strstr(text, "\ncopies_d2h 1\n") != NULL);
    TRUE(strstr(text, "\nbytes_d2h 100\n") != NULL);
    TRUE(strstr(text, "\nallocations_live 0\n") != NULL);
    unsetenv("HIPSIM_STATS");
}

static void late_call(void)
{
    int value;

    /* Runs after hipsim's own end, which was registered later. */
    if (hip.hipGetDevice(&value) != 4)
        _exit(3);
}

__attribute__((destructor(101))) static void last_of_all(void)
{
    if (getenv("HIPSIM_TEST_LATE"))
        late_call();
}

static void use_late(void)
{
    device_alloc(16);
    setenv("HIPSIM_TEST_LATE", "1", 1);
    exit(0);
}

static void after_the_end(void)
{
    int status = harness_child(use_late);

    /* Who ends first depends on the loader; either way nothing hangs or crashes. */
    TRUE(status == 0 || status == -3);
}

/* Nothing of the device is left, of other devices all; the default stream works on. */
static void reset(void)
{
    void *memory = device_alloc(100), *pinned = pinned_alloc(100), *other, *stream, *event;
    char host[100];

    OK(hip.hipSetDevice(1));
    other = device_alloc(100);
    OK(hip.hipSetDevice(0));
    OK(hip.hipStreamCreate(&stream));
    OK(hip.hipEventCreateWithFlags(&event, 0));
    OK(hip.hipMemsetAsync(memory, 1, 100, stream));
    OK(hip.hipDeviceReset());
    EQUAL(hip.counter("streams_live"), 0);
    EQUAL(hip.counter("events_live"), 0);
    EQUAL(hip.counter("allocations_live"), 1);
    EQUAL(hip.counter("pinned_bytes"), 0);
    EQUAL(hip.hipMemcpy(host, memory, 100, 2), 1);
    EQUAL(hip.hipHostFree(pinned), 1);
    TRUE(hip.hipEventQuery(event) != 0);
    OK(hip.hipMemcpy(host, other, 100, 2));
    memory = device_alloc(100);
    OK(hip.hipMemset(memory, 3, 100));
    OK(hip.hipMemcpy(host, memory, 100, 2));
    EQUAL(host[99], 3);
    OK(hip.hipFree(memory));
    OK(hip.hipFree(other));
}

static const struct test_case cases[] = {
    {"reset", reset},
    {"facts", facts},
    {"no_device", no_device},
    {"forked", forked},
    {"reload", reload},
    {"report", report},
    {"exit_in_flight", exit_in_flight},
    {"after_the_end", after_the_end},
};

int main(int argc, char **argv)
{
    return harness_run(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
