/* SPDX-License-Identifier: MIT */
/*
 * GPU memory for test programs over HIP, as an application uses it: headers, and the library
 * linked. Nothing here knows of hipio or of the simulated runtime.
 */
#define __HIP_PLATFORM_AMD__
#include "gpu.h"
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(hipError_t error, const char *what)
{
    if (error == hipSuccess)
        return;
    fprintf(stderr, "test: %s failed: %s (%d)\n", what, hipGetErrorString(error), (int)error);
    exit(99);
}

bool gpu_available(void)
{
    int count = 0;

    return hipGetDeviceCount(&count) == hipSuccess && count > 0;
}

const char *gpu_name(void)
{
    static char name[256];

    if (!gpu_available())
        return "none";
    if (hipDeviceGetName(name, sizeof name, 0) != hipSuccess)
        return "unnamed";
    return name;
}

const char *gpu_runtime(void)
{
    static char text[64];
    int version = 0;

    if (hipRuntimeGetVersion(&version) != hipSuccess)
        return "none";
    snprintf(text, sizeof text, "HIP %d.%d", version / 10000000, version / 100000 % 100);
    return text;
}

int gpu_device_count(void)
{
    int count = 0;

    return hipGetDeviceCount(&count) == hipSuccess ? count : 0;
}

int gpu_device(void)
{
    int device = -1;

    must(hipGetDevice(&device), "hipGetDevice");
    return device;
}

void gpu_set_device(int device)
{
    must(hipSetDevice(device), "hipSetDevice");
}

int gpu_device_of(const void *memory)
{
    hipPointerAttribute_t attributes;

    must(hipPointerGetAttributes(&attributes, memory), "hipPointerGetAttributes");
    return attributes.device;
}

int gpu_device_in_use(int device)
{
    (void)device;
    return -1;
}

void gpu_reset(void)
{
    must(hipDeviceReset(), "hipDeviceReset");
}

void *gpu_alloc(enum gpu_kind kind, size_t bytes)
{
    void *memory = NULL;

    switch (kind) {
    case GPU_DEVICE:
        must(hipMalloc(&memory, bytes), "hipMalloc");
        break;
    case GPU_MANAGED:
        must(hipMallocManaged(&memory, bytes, hipMemAttachGlobal), "hipMallocManaged");
        break;
    case GPU_PINNED:
        must(hipHostMalloc(&memory, bytes, hipHostMallocDefault), "hipHostMalloc");
        break;
    default:
        memory = malloc(bytes);
        must(memory ? hipSuccess : hipErrorOutOfMemory, "malloc");
    }
    return memory;
}

void gpu_free(enum gpu_kind kind, void *memory)
{
    if (kind == GPU_HOST)
        free(memory);
    else if (kind == GPU_PINNED)
        must(hipHostFree(memory), "hipHostFree");
    else
        must(hipFree(memory), "hipFree");
}

void gpu_register(void *memory, size_t bytes)
{
    must(hipHostRegister(memory, bytes, hipHostRegisterDefault), "hipHostRegister");
}

void gpu_unregister(void *memory)
{
    must(hipHostUnregister(memory), "hipHostUnregister");
}

void gpu_copy(void *to, const void *from, size_t bytes)
{
    must(hipMemcpy(to, from, bytes, hipMemcpyDefault), "hipMemcpy");
    must(hipDeviceSynchronize(), "hipDeviceSynchronize");
}

void gpu_copy_other_stream(void *to, const void *from, size_t bytes)
{
    hipStream_t stream;

    must(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags");
    must(hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream), "hipMemcpyAsync");
    must(hipStreamSynchronize(stream), "hipStreamSynchronize");
    must(hipStreamDestroy(stream), "hipStreamDestroy");
}

void gpu_copy_queued(void *to, const void *from, size_t bytes)
{
    must(hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, NULL), "hipMemcpyAsync");
}

void gpu_set(void *memory, int value, size_t bytes)
{
    must(hipMemset(memory, value, bytes), "hipMemset");
    must(hipDeviceSynchronize(), "hipDeviceSynchronize");
}
