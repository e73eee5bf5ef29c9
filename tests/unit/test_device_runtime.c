/* SPDX-License-Identifier: MIT */
/*
 * Device under circumstances, one per run, named by the first argument: what the setting `device`
 * allows, a runtime that finds no GPU, and a runtime whose calls fail.
 */
#include "device/device.h"
#include "device_app.h"
#include "status.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static const struct hipio_device_ops *provider;

static struct hipio_memory classify(const void *address)
{
    struct hipio_memory memory = {.kind = HIPIO_MEMORY_INVALID};

    assert_int_equal(hipio_device_classify(address, &memory), 0);
    return memory;
}

static const char *explain(const void *address)
{
    static char text[HIPIO_TEXT_MAX];

    hipio_device_explain(address, text, sizeof(text));
    print_message("%s\n", text);
    return text;
}

static void *map_nothing(void)
{
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(page != MAP_FAILED);
    return page;
}

/* A runtime that is there but has no GPU under it is silent, and host memory is host memory. */
static void no_gpu(void **state)
{
    void *page = map_nothing();
    int local = 0;

    (void)state;
    if (provider->attach(true) == 0) {
        print_message("there is a GPU here\n");
        exit(77);
    }
    if (!provider->present()) {
        print_message("no runtime here: %s\n", hipio_status_text());
        exit(77);
    }
    print_message("%s\n", hipio_status_text());
    assert_non_null(strstr(hipio_status_text(), provider->name));
    assert_int_equal(provider->attach(true), -ENODEV);
    assert_int_equal(provider->device_count(), 0);
    assert_int_equal(classify(&local).kind, HIPIO_MEMORY_HOST);
    assert_int_equal(classify(page).kind, HIPIO_MEMORY_INVALID);
    assert_non_null(strstr(explain(page), "can't be used"));
}

/* The setting asks for a runtime that is not installed. */
static void no_library(void **state)
{
    int local = 0;

    (void)state;
    if (provider->attach(true) == 0 || provider->present()) {
        print_message("the runtime is here\n");
        exit(77);
    }
    assert_int_equal(classify(&local).kind, HIPIO_MEMORY_HOST);
    assert_non_null(strstr(explain(map_nothing()), "no GPU runtime library could be loaded"));
}

/* The setting asks for the runtime, so it is loaded though the program has not. */
static void forced(void **state)
{
    int local = 0;

    (void)state;
    assert_false(provider->present());
    assert_int_equal(classify(&local).kind, HIPIO_MEMORY_HOST);
    assert_true(provider->present());
    assert_true(provider->device_count() > 0);
    assert_true(app_load());
    assert_int_equal(app_last_error(), 0);
}

/* The setting keeps us from the runtime that the program uses. */
static void forbidden(void **state)
{
    void *device, *pinned;
    int local = 0;

    (void)state;
    assert_true(app_load());
    if (app_devices() == 0)
        exit(77);
    app_set_device(0);
    device = app_alloc(4096);
    pinned = app_alloc_pinned(4096);
    assert_int_equal(classify(device).kind, HIPIO_MEMORY_INVALID);
    assert_false(classify(device).cpu_access);
    assert_ptr_equal(classify(device).ops, &hipio_device_host);
    assert_int_equal(classify(&local).kind, HIPIO_MEMORY_HOST);
    assert_int_equal(classify(pinned).kind, HIPIO_MEMORY_HOST);
    assert_int_equal(provider->device_count(), 0);
    assert_non_null(strstr(explain(device), "HIPIO_DEVICE"));
    assert_non_null(strstr(explain(device), provider->name));
    app_free(device);
    app_free_pinned(pinned);
}

/* The simulated runtimes' failures, by function and number of the call. */
#define HIP_FAULTS                                                                                 \
    "hipGetDeviceCount:1=2;hipDeviceGetAttribute:1=801;hipSetDevice:1=101;"                        \
    "hipStreamCreateWithFlags:1=999;hipHostMalloc:1=2;hipMemcpyAsync:1=801;hipMemcpyAsync:2=101;"  \
    "hipMemcpyAsync:3=1;hipMemcpyAsync:4=719;hipMemcpy2DAsync:1=12;hipEventQuery:1=600;"           \
    "hipEventSynchronize:1=719;hipModuleLoadData:1=209;hipModuleLoadData:2=218;hipHostFree:1=4;"   \
    "hipPointerGetAttributes:1=2;hipPointerGetAttributes:2-3=719;"                                 \
    "hipStreamSynchronize:1=sticky700"
#define CUDA_FAULTS                                                                                \
    "cuCtxPushCurrent_v2:1=101;cuStreamCreate:1=999;cuMemHostAlloc:1=2;"                           \
    "cuMemcpyHtoDAsync_v2:1=801;cuMemcpyHtoDAsync_v2:2=101;cuMemcpyHtoDAsync_v2:3=1;"              \
    "cuMemcpyHtoDAsync_v2:4=719;cuMemcpy2DAsync_v2:1=1;cuEventQuery:1=600;"                        \
    "cuEventSynchronize:1=719;cuModuleLoadData:1=209;cuModuleLoadData:2=222;cuMemFreeHost:1=4;"    \
    "cuPointerGetAttributes:1=2;cuPointerGetAttributes:2-3=719;"                                   \
    "cuStreamSynchronize:1=sticky700"

/* The text names the runtime, the call and the code. */
static void assert_text(const char *call, int code)
{
    char number[16];

    snprintf(number, sizeof(number), "(%d): ", code);
    assert_memory_equal(hipio_status_text(), provider->name, strlen(provider->name));
    assert_non_null(strstr(hipio_status_text(), call));
    assert_non_null(strstr(hipio_status_text(), number));
}

static void faults_of_attach(void **state)
{
    const void *current;

    (void)state;
    assert_true(app_load());
    if (!app_is_cuda()) {
        assert_int_equal(provider->attach(false), -ENODEV);
        assert_text("hipGetDeviceCount failed: ", 2);
        assert_int_equal(app_last_error(), 0);
    }
    assert_int_equal(provider->attach(false), 0);
    assert_int_equal(app_devices(), 2);
    assert_int_equal(app_last_error(), 0);
    assert_int_equal(provider->device_count(), 2);
    if (app_is_cuda())
        app_set_device(0);
    current = app_current();
    assert_int_equal(provider->synchronize(1, false), -ENODEV);
    assert_text(app_is_cuda() ? "cuCtxPushCurrent" : "hipSetDevice", 101);
    assert_ptr_equal(app_current(), current);
    assert_int_equal(app_last_error(), 0);
}

static void faults_of_classify(void **state)
{
    void *device = app_alloc(4096);
    struct hipio_memory memory;

    (void)state;
    assert_int_equal(hipio_device_classify(device, &memory), -ENOMEM);
    assert_text("PointerGetAttributes failed: ", 2);
    assert_int_equal(classify(device).kind, HIPIO_MEMORY_INVALID);
    assert_non_null(strstr(explain(device), "(719)"));
    assert_int_equal(classify(device).kind, HIPIO_MEMORY_DEVICE);
    assert_int_equal(app_last_error(), 0);
    app_free(device);
}

/* Each code becomes its errno, with the runtime's words, on the other device and back. */
static void faults_of_calls(void **state)
{
    static const int expected[] = {-ENOTSUP, -ENODEV, -EINVAL, -EIO};
    struct hipio_stream *stream = NULL;
    struct hipio_event *event;
    unsigned char *device;
    void *pinned = NULL, *module = NULL;

    (void)state;
    app_set_device(1);
    device = app_alloc(4096);
    app_set_device(0);
    assert_int_equal(provider->stream_create(1, &stream), -EIO);
    assert_null(stream);
    assert_text("StreamCreate", 999);
    assert_int_equal(provider->stream_create(1, &stream), 0);
    assert_int_equal(provider->event_create(1, &event), 0);
    assert_int_equal(provider->host_alloc(1, 4096, &pinned), -ENOMEM);
    assert_int_equal(provider->host_alloc(1, 4096, &pinned), 0);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_int_equal(provider->copy(stream, device, pinned, 64, HIPIO_COPY_TO_DEVICE),
                         expected[i]);
        assert_int_equal(app_last_error(), 0);
        assert_int_equal(app_get_device(), 0);
    }
    assert_int_equal(provider->copy_2d(stream, device, 64, pinned, 64, 8, 8, HIPIO_COPY_TO_DEVICE),
                     -ENOTSUP);
    assert_int_equal(provider->event_record(event, stream), 0);
    assert_int_equal(provider->event_query(event), -EAGAIN);
    assert_int_equal(app_last_error(), 0);
    assert_int_equal(provider->event_synchronize(event), -EIO);
    assert_int_equal(provider->event_synchronize(event), 0);
    assert_int_equal(provider->module_load(1, "", &module), -ENOTSUP);
    assert_int_equal(provider->module_load(1, "", &module), -ENOTSUP);
    assert_int_equal(provider->host_free(1, pinned), 0);
    assert_int_equal(provider->event_destroy(event), 0);
    assert_int_equal(provider->stream_destroy(stream), 0);
    assert_int_equal(app_last_error(), 0);
    assert_int_equal(app_get_device(), 0);
}

/* A device that has faulted answers errors, and nothing of ours waits or loops. */
static void faults_that_stick(void **state)
{
    void *device = app_alloc(4096);
    struct hipio_stream *stream;
    struct hipio_event *event;
    int local;

    (void)state;
    assert_int_equal(provider->stream_create(0, &stream), 0);
    assert_int_equal(provider->event_create(0, &event), 0);
    assert_int_equal(provider->stream_synchronize(stream), -EIO);
    assert_int_equal(provider->stream_synchronize(stream), -EIO);
    assert_int_equal(provider->copy(stream, device, device, 64, HIPIO_COPY_DEVICE), -EIO);
    assert_int_equal(provider->event_record(event, stream), -EIO);
    assert_int_equal(provider->synchronize(0, true), -EIO);
    assert_int_equal(classify(&local).kind, HIPIO_MEMORY_HOST);
    assert_int_not_equal(classify(device).kind, HIPIO_MEMORY_HOST);
    (void)provider->event_destroy(event);
    (void)provider->stream_destroy(stream);
}

static const struct CMUnitTest no_gpu_tests[] = {cmocka_unit_test(no_gpu)};
static const struct CMUnitTest no_library_tests[] = {cmocka_unit_test(no_library)};
static const struct CMUnitTest forced_tests[] = {cmocka_unit_test(forced)};
static const struct CMUnitTest forbidden_tests[] = {cmocka_unit_test(forbidden)};
static const struct CMUnitTest fault_tests[] = {
    cmocka_unit_test(faults_of_attach),
    cmocka_unit_test(faults_of_classify),
    cmocka_unit_test(faults_of_calls),
    cmocka_unit_test(faults_that_stick),
};

int main(int argc, char **argv)
{
    const char *run = argc == 2 ? argv[1] : "";

    provider = hipio_device_provider(app_is_cuda() ? 1 : 0);
    setenv("HIPIO_DEVICE", provider->name, 1);
    if (strcmp(run, "no-gpu") == 0)
        return cmocka_run_group_tests(no_gpu_tests, NULL, NULL);
    if (strcmp(run, "no-library") == 0)
        return cmocka_run_group_tests(no_library_tests, NULL, NULL);
    if (strcmp(run, "forced") == 0)
        return cmocka_run_group_tests(forced_tests, NULL, NULL);
    setenv("HIPIO_DEVICE", "off", 1);
    if (strcmp(run, "off") == 0)
        return cmocka_run_group_tests(forbidden_tests, NULL, NULL);
    setenv("HIPIO_DEVICE", app_is_cuda() ? "hip" : "cuda", 1);
    if (strcmp(run, "other") == 0)
        return cmocka_run_group_tests(forbidden_tests, NULL, NULL);
    setenv("HIPIO_DEVICE", "auto", 1);
    setenv("HIPSIM_FAIL", app_is_cuda() ? CUDA_FAULTS : HIP_FAULTS, 1);
    setenv("HIPSIM_DEVICES", "2", 1);
    if (strcmp(run, "faults") == 0)
        return cmocka_run_group_tests(fault_tests, NULL, NULL);
    fprintf(stderr, "usage: %s no-gpu|no-library|forced|off|other|faults\n", argv[0]);
    return 2;
}
