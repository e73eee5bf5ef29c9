/* SPDX-License-Identifier: MIT */
/*
 * Device app: an application's side of HIP or CUDA.
 */
#include "device_app.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *library;

bool app_is_cuda(void)
{
    const char *runtime = getenv("HIPIO_TEST_RUNTIME");

    return runtime != NULL && strcmp(runtime, "cuda") == 0;
}

bool app_load(void)
{
    const char *name = getenv("HIPIO_TEST_LIBRARY");

    if (name == NULL)
        name = app_is_cuda() ? "libcuda.so.1" : "libamdhip64.so.5";
    if (library == NULL)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return library != NULL;
}

void *app_function(const char *name)
{
    return dlsym(library, name);
}

/* All functions that the application calls return int and take up to four arguments that fit in
 * registers as integers, so that one type of pointer calls them all on the machines that have GPUs.
 */
typedef int (*call_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static int try(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    call_fn function;
    void *address = app_function(name);

    if (address == NULL) {
        fprintf(stderr, "app: the runtime has no %s\n", name);
        exit(99);
    }
    memcpy(&function, &address, sizeof(function));
    return function(a, b, c, d);
}

static void must(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
{
    int error = try(name, a, b, c, d);

    if (error == 0)
        return;
    fprintf(stderr, "app: %s failed: %d\n", name, error);
    exit(99);
}

int app_devices(void)
{
    int count = 0;

    if (app_is_cuda() && try("cuInit", 0, 0, 0, 0) != 0)
        return 0;
    if (try(app_is_cuda() ? "cuDeviceGetCount" : "hipGetDeviceCount", (uintptr_t)&count, 0, 0, 0))
        return 0;
    return count;
}

void app_set_device(int device)
{
    void *context = NULL;

    if (!app_is_cuda()) {
        must("hipSetDevice", (uintptr_t)device, 0, 0, 0);
        return;
    }
    must("cuDevicePrimaryCtxRetain", (uintptr_t)&context, (uintptr_t)device, 0, 0);
    must("cuCtxSetCurrent", (uintptr_t)context, 0, 0, 0);
}

int app_get_device(void)
{
    int device = -1;

    must(app_is_cuda() ? "cuCtxGetDevice" : "hipGetDevice", (uintptr_t)&device, 0, 0, 0);
    return device;
}

const void *app_current(void)
{
    void *context = NULL;

    if (!app_is_cuda())
        return (const void *)(intptr_t)app_get_device();
    must("cuCtxGetCurrent", (uintptr_t)&context, 0, 0, 0);
    return context;
}

void app_drop_current(void)
{
    if (app_is_cuda())
        must("cuCtxSetCurrent", 0, 0, 0, 0);
}

void *app_alloc(size_t bytes)
{
    void *memory = NULL;

    must(app_is_cuda() ? "cuMemAlloc_v2" : "hipMalloc", (uintptr_t)&memory, bytes, 0, 0);
    return memory;
}

void app_free(void *device)
{
    must(app_is_cuda() ? "cuMemFree_v2" : "hipFree", (uintptr_t)device, 0, 0, 0);
}

void *app_alloc_pinned(size_t bytes)
{
    void *memory = NULL;

    must(app_is_cuda() ? "cuMemHostAlloc" : "hipHostMalloc", (uintptr_t)&memory, bytes, 0, 0);
    return memory;
}

void app_free_pinned(void *pinned)
{
    must(app_is_cuda() ? "cuMemFreeHost" : "hipHostFree", (uintptr_t)pinned, 0, 0, 0);
}

void *app_alloc_managed(size_t bytes)
{
    void *memory = NULL;
    int error = try(app_is_cuda() ? "cuMemAllocManaged" : "hipMallocManaged", (uintptr_t)&memory,
                    bytes, 1, 0);

    if (error != 0 && !app_is_cuda())
        try("hipGetLastError", 0, 0, 0, 0);
    return error == 0 ? memory : NULL;
}

void app_register(void *host, size_t bytes)
{
    must(app_is_cuda() ? "cuMemHostRegister_v2" : "hipHostRegister", (uintptr_t)host, bytes, 0, 0);
}

void app_unregister(void *host)
{
    must(app_is_cuda() ? "cuMemHostUnregister" : "hipHostUnregister", (uintptr_t)host, 0, 0, 0);
}

void app_copy(void *to, const void *from, size_t bytes)
{
    if (app_is_cuda()) {
        must("cuMemcpy", (uintptr_t)to, (uintptr_t)from, bytes, 0);
        must("cuCtxSynchronize", 0, 0, 0, 0);
    } else {
        must("hipMemcpy", (uintptr_t)to, (uintptr_t)from, bytes, 4);
        must("hipDeviceSynchronize", 0, 0, 0, 0);
    }
}

int app_last_error(void)
{
    return app_is_cuda() ? 0 : try("hipPeekAtLastError", 0, 0, 0, 0);
}

int app_provoke_error(void)
{
    return try("hipSetDevice", 4711, 0, 0, 0);
}

void *app_create_stream(unsigned flags)
{
    void *stream = NULL;

    must(app_is_cuda() ? "cuStreamCreate" : "hipStreamCreateWithFlags", (uintptr_t)&stream, flags,
         0, 0);
    return stream;
}

void app_destroy_stream(void *stream)
{
    must(app_is_cuda() ? "cuStreamDestroy_v2" : "hipStreamDestroy", (uintptr_t)stream, 0, 0, 0);
}

static void take_nap(void *stream, int status, void *argument)
{
    const struct app_nap *nap = argument;

    (void)stream;
    (void)status;
    usleep(nap->milliseconds * 1000);
    *nap->flag = true;
}

void app_queue_nap(void *stream, struct app_nap *nap)
{
    must(app_is_cuda() ? "cuStreamAddCallback" : "hipStreamAddCallback", (uintptr_t)stream,
         (uintptr_t)take_nap, (uintptr_t)nap, 0);
}
