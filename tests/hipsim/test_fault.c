/* SPDX-License-Identifier: MIT */
/* Injected faults and the last error's rules. HIPSIM_FAIL is set by CMakeLists.txt per case. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { H2D = 1, D2H = 2, SIZE = 4096 };

/* hipHostMalloc:2=2;hipMalloc:3+=2;hipStreamCreate:%2=999 */
static void nth_call(void)
{
    void *pointer;

    for (int call = 1; call <= 4; call++) {
        EQUAL(hip.hipHostMalloc(&pointer, SIZE, 0), call == 2 ? 2 : 0);
        EQUAL(hip.hipMalloc(&pointer, SIZE), call >= 3 ? 2 : 0);
        EQUAL(hip.hipStreamCreate(&pointer), call % 2 ? 0 : 999);
    }
    EQUAL(hip.counter("faults"), 5);
    EQUAL(hip.counter("pinned_allocations"), 3);
    EQUAL(hip.counter("streams"), 2);
}

/* hipEventQuery:1-20=600 */
static void not_ready_storm(void)
{
    void *event;
    int storms = 0;

    OK(hip.hipEventCreate(&event));
    OK(hip.hipEventRecord(event, NULL));
    OK(hip.hipEventSynchronize(event));
    while (hip.hipEventQuery(event) == 600)
        storms++;
    EQUAL(storms, 20);
    OK(hip.hipEventDestroy(event));
}

static void count_status(void *stream, int status, void *data)
{
    (void)stream;
    atomic_store((atomic_int *)data, status);
}

static void must_not_run(void *data)
{
    atomic_store((atomic_int *)data, 1);
}

/* Whether the calls behind it are still queued depends on timing.
 * hipMemcpyAsync:2=late700: the call succeeds, then the device is lost. */
static void late_and_sticky(void)
{
    void *device, *stream, *pinned, *pointer;
    atomic_int status = -1, ran = 0;

    OK(hip.hipMalloc(&device, SIZE));
    OK(hip.hipHostMalloc(&pinned, SIZE, 0));
    OK(hip.hipStreamCreateWithFlags(&stream, 1));
    OK(hip.hipMemcpyAsync(device, pinned, SIZE, H2D, stream));
    OK(hip.hipStreamSynchronize(stream));
    OK(hip.hipMemcpyAsync(device, pinned, SIZE, H2D, stream));
    /* Queued behind it: callbacks learn of the error, host functions never run. */
    hip.hipStreamAddCallback(stream, count_status, &status, 0);
    if (hip.hipLaunchHostFunc)
        hip.hipLaunchHostFunc(stream, must_not_run, &ran);
    EQUAL(hip.hipStreamSynchronize(stream), 700);
    sleep_ms(5);
    TRUE(atomic_load(&status) == 700 || atomic_load(&status) == -1);
    EQUAL(atomic_load(&ran), 0);
    EQUAL(hip.hipStreamQuery(stream), 700);
    EQUAL(hip.hipMemcpyAsync(device, pinned, SIZE, H2D, stream), 700);
    EQUAL(hip.hipDeviceSynchronize(), 700);
    EQUAL(hip.hipMalloc(&pointer, SIZE), 700);
    EQUAL(hip.hipFree(device), 700);
    EQUAL(hip.hipGetLastError(), 700);
    EQUAL(hip.counter("copies_h2d"), 1);
}

/* hipMemcpy:1=sticky719 */
static void sticky(void)
{
    void *device;
    int count;

    OK(hip.hipMalloc(&device, SIZE));
    EQUAL(hip.hipMemcpy(device, &count, sizeof(count), H2D), 719);
    EQUAL(hip.hipMemset(device, 0, 1), 719);
    OK(hip.hipGetDeviceCount(&count));
    EQUAL(strcmp(hip.hipGetErrorName(719), "hipErrorLaunchFailure"), 0);
    TRUE(strlen(hip.hipGetErrorString(719)) > 0);
}

/* hipMalloc:1=2@3, run as rank 3 and as rank 2 */
static void one_rank(void)
{
    void *pointer;

    EQUAL(hip.hipMalloc(&pointer, SIZE), atoi(getenv("OMPI_COMM_WORLD_RANK")) == 3 ? 2 : 0);
}

static void bad_setting(void)
{
    void *pointer;

    hip.hipMalloc(&pointer, 0);
}

/* Every bad rule ends the process. */
static void bad_rules(void)
{
    static const char *const rules[] = {"hipMalloc",
                                        "hipMalloc:1",
                                        "hipMalloc:0=2",
                                        "hipMalloc:x=2",
                                        ":1=2",
                                        "hipMalloc:1=0",
                                        "hipMalloc:1=2x",
                                        "hipMalloc:1=errnoEFOO",
                                        "hipMalloc:1=short",
                                        "hipMalloc:%0=2"};

    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        setenv("HIPSIM_FAIL", rules[i], 1);
        EQUAL(harness_child(bad_setting), SIGABRT);
    }
    unsetenv("HIPSIM_FAIL");
    setenv("HIPSIM_DELAY_US", "fast", 1);
    EQUAL(harness_child(bad_setting), SIGABRT);
    setenv("HIPSIM_DELAY_US", "5X", 1);
    EQUAL(harness_child(bad_setting), SIGABRT);
    unsetenv("HIPSIM_DELAY_US");
    setenv("HIPSIM_AIS", "maybe", 1);
    EQUAL(harness_child(bad_setting), SIGABRT);
    unsetenv("HIPSIM_AIS");
    EQUAL(harness_child(bad_setting), 0);
}

/* Up to 6.4 each call overwrites the last error, from 7.0 only failures do. */
static void last_error(void)
{
    static struct gate gate;
    void *event;
    int count;

    OK(hip.hipGetLastError());
    EQUAL(hip.hipMalloc(NULL, 1), 1);
    EQUAL(hip.hipPeekAtLastError(), 1);
    EQUAL(hip.hipPeekAtLastError(), 1);
    OK(hip.hipGetDeviceCount(&count));
    EQUAL(hip.hipPeekAtLastError(), hip.major >= 7 ? 1 : 0);
    EQUAL(hip.hipGetLastError(), hip.major >= 7 ? 1 : 0);
    OK(hip.hipGetLastError());
    OK(hip.hipEventCreate(&event));
    gate_close(&gate, NULL);
    OK(hip.hipEventRecord(event, NULL));
    EQUAL(hip.hipEventQuery(event), 600);
    EQUAL(hip.hipGetLastError(), hip.major >= 7 ? 0 : 600);
    gate_open(&gate);
    if (hip.hipExtGetLastError) {
        EQUAL(hip.hipMalloc(NULL, 1), 1);
        EQUAL(hip.hipExtGetLastError(), 1);
        OK(hip.hipGetDeviceCount(&count));
        OK(hip.hipExtGetLastError());
    }
    EQUAL(hip.hipExtGetLastError != NULL, hip.major >= 6);
}

static const struct test_case cases[] = {
    {"nth_call", nth_call},     {"not_ready_storm", not_ready_storm},
    {"sticky", sticky},         {"late_and_sticky", late_and_sticky},
    {"one_rank", one_rank},     {"bad_rules", bad_rules},
    {"last_error", last_error},
};

int main(int argc, char **argv)
{
    return harness_run(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
