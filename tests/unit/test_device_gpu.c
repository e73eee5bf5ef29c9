/* SPDX-License-Identifier: MIT */
/*
 * The contract of a GPU provider (device.h), over whichever runtime the environment names: HIP or
 * CUDA, real or simulated. The application's side is in device_app.c.
 *
 * The first tests run before the runtime is in the process, so their order matters.
 */
#include "device/device.h"
#include "device_gpu.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

const struct hipio_device_ops *provider;
int devices;

struct trace take_trace(void)
{
    struct trace trace = {.current = app_current()};

    return trace;
}

struct hipio_memory classify(const void *address)
{
    struct hipio_memory memory;

    memset(&memory, 0xee, sizeof(memory));
    assert_int_equal(hipio_device_classify(address, &memory), 0);
    return memory;
}

static void *map_nothing(void)
{
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(page != MAP_FAILED);
    return page;
}

static void absent_runtime_is_left_alone(void **state)
{
    struct hipio_memory memory = classify(state);
    void *page = map_nothing();

    (void)state;
    assert_false(provider->present());
    assert_int_equal(provider->attach(false), -ENODEV);
    assert_false(provider->present());
    assert_int_equal(memory.kind, HIPIO_MEMORY_HOST);
    assert_int_equal(memory.device, -1);
    assert_true(memory.cpu_access);
    assert_ptr_equal(memory.ops, &hipio_device_host);
    assert_kind(NULL, HOST);
    assert_kind(page, HOST); /* nobody asks, so nobody pays */
    assert_int_equal(provider->device_count(), 0);
    assert_int_equal(provider->synchronize(0, false), -ENODEV);
    munmap(page, 4096);
}

/* Ends the program as skipped, unless the environment says what has to be there. */
static void leave_without(const char *what)
{
    assert_null(getenv("HIPIO_TEST_VERSION"));
    print_message("no %s here\n", what);
    exit(77);
}

static void loaded_runtime_is_found(void **state)
{
    (void)state;
    if (!app_load())
        leave_without("runtime");
    assert_true(provider->present());
    if (app_is_cuda()) {
        /* A driver that nobody has initialised is not initialised by us. */
        int local;

        assert_kind(&local, HOST);
        assert_int_equal(provider->device_count(), 0);
    }
    devices = app_devices();
    if (devices == 0)
        leave_without("device");
    app_set_device(0);
    assert_int_equal(provider->attach(false), 0);
    assert_int_equal(provider->attach(false), 0);
    assert_int_equal(provider->device_count(), devices);
}

/* Work for one device makes no context on another (CUDA). Runs before anybody touches device 1. */
static void other_devices_are_left_alone(void **state)
{
    int (*get_state)(int, unsigned *, int *);
    struct hipio_stream *stream;
    char text[256];
    unsigned char *device;
    unsigned flags = 0;
    int active = 1;

    (void)state;
    if (!app_is_cuda() || devices < 2)
        skip();
    device = app_alloc(4096);
    assert_kind(device, DEVICE);
    assert_int_equal(provider->synchronize(0, true), 0);
    assert_int_equal(provider->stream_create(0, &stream), 0);
    assert_int_equal(provider->stream_destroy(stream), 0);
    assert_int_equal(provider->device_name(1, text, sizeof(text)), 0);
    assert_true(provider->multiprocessors(1) > 0);
    app_free(device);
    get_state = (int (*)(int, unsigned *, int *))app_function("cuDevicePrimaryCtxGetState");
    assert_int_equal(get_state(1, &flags, &active), 0);
    assert_int_equal(active, 0);
}

static void facts_are_told(void **state)
{
    const char *version = getenv("HIPIO_TEST_VERSION");
    char text[256] = "";

    (void)state;
    assert_int_equal(provider->runtime_version(text, sizeof(text)), 0);
    print_message("runtime: %s\n", text);
    if (version != NULL)
        assert_memory_equal(text, version, strlen(version));
    for (int i = 0; i < devices; i++) {
        assert_int_equal(provider->device_name(i, text, sizeof(text)), 0);
        assert_true(strlen(text) > 0);
        print_message("device %d: %s\n", i, text);
        assert_int_equal(provider->pci_bus_id(i, text, sizeof(text)), 0);
        assert_non_null(strchr(text, ':'));
        assert_true(provider->multiprocessors(i) > 0);
    }
    assert_true(provider->device_name(devices, text, sizeof(text)) < 0);
    assert_true(provider->multiprocessors(-1) < 0);
    assert_true(provider->synchronize(devices, false) < 0);
}

static void host_memory_is_host(void **state)
{
    static int data;
    int local;
    void *heap = malloc(64);
    void *page = map_nothing();
    struct trace before = take_trace();

    (void)state;
    assert_kind(&local, HOST);
    assert_kind(&data, HOST);
    assert_kind(heap, HOST);
    assert_kind("constant", HOST);
    assert_kind(NULL, HOST);
    assert_int_equal(classify(heap).device, -1);
    assert_ptr_equal(classify(heap).ops, &hipio_device_host);
    assert_traceless(before);
    assert_kind(page, INVALID);
    assert_int_equal(app_last_error(), 0);
    assert_kind((void *)16, INVALID);
    assert_ptr_equal(classify(page).ops, &hipio_device_host);
    assert_false(classify(page).cpu_access);
    assert_traceless(before);
    munmap(page, 4096);
    free(heap);
}

static void device_memory_is_device(void **state)
{
    const char *shape = getenv("HIPIO_TEST_APU");
    bool apu = shape != NULL && strcmp(shape, "1") == 0;

    (void)state;
    for (int i = 0; i < devices; i++) {
        unsigned char *memory;
        struct hipio_memory found;
        struct trace before;

        app_set_device(i);
        memory = app_alloc(MIB);
        app_set_device(devices - 1 - i);
        before = take_trace();
        for (size_t at = 0; at < MIB; at += MIB / 2 - 1) {
            found = classify(memory + at);
            assert_int_equal(found.kind, HIPIO_MEMORY_DEVICE);
            assert_int_equal(found.device, i);
            assert_int_equal(found.cpu_access, apu);
            assert_ptr_equal(found.ops, provider);
        }
        assert_kind(memory + MIB - 1, DEVICE);
        assert_traceless(before);
        app_set_device(i);
        app_free(memory);
        assert_int_not_equal(classify(memory).kind, HIPIO_MEMORY_DEVICE);
    }
    app_set_device(0);
}

static void pinned_and_managed_are_the_cpus_too(void **state)
{
    char *pinned = app_alloc_pinned(MIB);
    char *managed = app_alloc_managed(MIB);
    char *registered = aligned_alloc(4096, 3 * 4096);
    void *alias = NULL;
    struct trace before = take_trace();

    (void)state;
    assert_kind(pinned, PINNED);
    assert_kind(pinned + MIB - 1, PINNED);
    assert_true(classify(pinned + 17).cpu_access);
    assert_in_range(classify(pinned).device, 0, devices - 1);
    assert_ptr_equal(classify(pinned).ops, provider);
    if (managed != NULL) {
        assert_kind(managed, MANAGED);
        assert_kind(managed + MIB - 1, MANAGED);
        assert_true(classify(managed).cpu_access);
        assert_ptr_equal(classify(managed).ops, provider);
        app_free(managed);
    }
    app_register(registered + 4096, 4096);
    assert_int_equal(provider->device_pointer(0, registered + 4096, &alias), 0);
    if (hipio_device_probe(alias, 1) != 0) {
        assert_kind(alias, DEVICE);
        assert_false(classify(alias).cpu_access);
    }
    assert_kind(registered + 4096, PINNED);
    assert_kind(registered + 2 * 4096 - 1, PINNED);
    assert_kind(registered, HOST);
    assert_kind(registered + 2 * 4096, HOST);
    app_unregister(registered + 4096);
    assert_kind(registered + 4096, HOST);
    app_free_pinned(pinned);
    assert_int_not_equal(classify(pinned).kind, HIPIO_MEMORY_PINNED);
    assert_traceless(before);
    free(registered);
}

static void bounds_are_told(void **state)
{
    char *memory = app_alloc(3 * MIB);
    struct hipio_memory found = classify(memory + MIB);
    struct trace before = take_trace();
    uintptr_t start = 1;
    uint64_t length = 1;
    int local;

    (void)state;
    assert_int_equal(provider->range(&found, memory + MIB, &start, &length), 0);
    assert_true(start == (uintptr_t)memory);
    assert_true(length == 3 * MIB);
    start = 1;
    assert_int_equal(provider->range(&found, &local, &start, &length), -EINVAL);
    assert_true(start == 1);
    assert_traceless(before);
    app_free(memory);
}

static void unserved_memory_is_explained(void **state)
{
    char text[HIPIO_TEXT_MAX] = "";
    void *page = map_nothing();
    struct trace before = take_trace();

    (void)state;
    hipio_device_explain(page, text, sizeof(text));
    print_message("%s\n", text);
    assert_non_null(strstr(text, provider->name));
    assert_non_null(strstr(text, "does not know it"));
    assert_traceless(before);
    hipio_device_explain(page, text, 10);
    assert_int_equal(strlen(text), 9);
    munmap(page, 4096);
}

/* The child of fork is refused without touching the runtime, and can still use its own memory. */
static void children_are_refused(void **state)
{
    unsigned char *device = app_alloc(4096);
    int status = -1;
    pid_t child;

    (void)state;
    child = fork();
    if (child == 0) {
        struct hipio_memory memory;
        char text[HIPIO_TEXT_MAX];
        int local;

        if (provider->attach(false) != -ENODEV || provider->attach(true) != -ENODEV)
            _exit(1);
        if (hipio_device_classify(&local, &memory) != 0 || memory.kind != HIPIO_MEMORY_HOST)
            _exit(2);
        if (provider->synchronize(0, false) != -ENODEV || provider->device_count() != 0)
            _exit(3);
        hipio_device_explain(device, text, sizeof(text));
        _exit(strstr(text, "forked") != NULL ? 0 : 4);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(provider->synchronize(0, false), 0);
    app_free(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_runtime_is_left_alone),
        cmocka_unit_test(loaded_runtime_is_found),
        cmocka_unit_test(other_devices_are_left_alone),
        cmocka_unit_test(facts_are_told),
        cmocka_unit_test(host_memory_is_host),
        cmocka_unit_test(device_memory_is_device),
        cmocka_unit_test(pinned_and_managed_are_the_cpus_too),
        cmocka_unit_test(bounds_are_told),
        cmocka_unit_test(unserved_memory_is_explained),
        cmocka_unit_test(copies_arrive),
        cmocka_unit_test(rows_arrive),
        cmocka_unit_test(events_order),
        cmocka_unit_test(synchronize_waits),
        cmocka_unit_test(own_streams_do_not_wait),
        cmocka_unit_test(kernels_see_pinned_memory),
        cmocka_unit_test(errors_leave_no_trace),
        cmocka_unit_test(pending_errors_survive),
        cmocka_unit_test(threads_work_side_by_side),
        cmocka_unit_test(own_contexts_are_followed),
        cmocka_unit_test(nothing_current_stays_so),
        cmocka_unit_test(children_are_refused),
    };

    for (size_t i = 0; i < hipio_device_count_providers(); i++)
        if (strcmp(hipio_device_provider(i)->name, app_is_cuda() ? "cuda" : "hip") == 0)
            provider = hipio_device_provider(i);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
