/* SPDX-License-Identifier: MIT */
/*
 * GPU memory for test programs over the CUDA driver, loaded at run time with prototypes of our own:
 * no toolkit is needed to build it, only NVIDIA's driver to run it.
 */
#include "gpu.h"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long cu_pointer;
typedef void *cu_context;
typedef void *cu_stream;

/* The driver's functions by the names that carry today's ABI. */
static struct {
    int (*init)(unsigned);
    int (*error_string)(int, const char **);
    int (*version)(int *);
    int (*count)(int *);
    int (*name)(char *, int, int);
    int (*retain)(cu_context *, int);
    int (*reset)(int);
    int (*set_current)(cu_context);
    int (*get_device)(int *);
    int (*context_state)(int, unsigned *, int *);
    int (*pointer_attribute)(void *, int, cu_pointer);
    int (*synchronize)(void);
    int (*alloc)(cu_pointer *, size_t);
    int (*alloc_managed)(cu_pointer *, size_t, unsigned);
    int (*alloc_host)(void **, size_t, unsigned);
    int (*free)(cu_pointer);
    int (*free_host)(void *);
    int (*host_register)(void *, size_t, unsigned);
    int (*host_unregister)(void *);
    int (*copy)(cu_pointer, cu_pointer, size_t);
    int (*copy_async)(cu_pointer, cu_pointer, size_t, cu_stream);
    int (*set)(cu_pointer, unsigned char, size_t);
    int (*stream_create)(cu_stream *, unsigned);
    int (*stream_synchronize)(cu_stream);
    int (*stream_destroy)(cu_stream);
} cu;

static const struct {
    const char *name;
    void **slot;
} symbols[] = {
    {"cuInit", (void **)&cu.init},
    {"cuGetErrorString", (void **)&cu.error_string},
    {"cuDriverGetVersion", (void **)&cu.version},
    {"cuDeviceGetCount", (void **)&cu.count},
    {"cuDeviceGetName", (void **)&cu.name},
    {"cuDevicePrimaryCtxRetain", (void **)&cu.retain},
    {"cuDevicePrimaryCtxReset_v2", (void **)&cu.reset},
    {"cuCtxSetCurrent", (void **)&cu.set_current},
    {"cuCtxGetDevice", (void **)&cu.get_device},
    {"cuDevicePrimaryCtxGetState", (void **)&cu.context_state},
    {"cuPointerGetAttribute", (void **)&cu.pointer_attribute},
    {"cuCtxSynchronize", (void **)&cu.synchronize},
    {"cuMemAlloc_v2", (void **)&cu.alloc},
    {"cuMemAllocManaged", (void **)&cu.alloc_managed},
    {"cuMemHostAlloc", (void **)&cu.alloc_host},
    {"cuMemFree_v2", (void **)&cu.free},
    {"cuMemFreeHost", (void **)&cu.free_host},
    {"cuMemHostRegister_v2", (void **)&cu.host_register},
    {"cuMemHostUnregister", (void **)&cu.host_unregister},
    {"cuMemcpy", (void **)&cu.copy},
    {"cuMemcpyAsync", (void **)&cu.copy_async},
    {"cuMemsetD8_v2", (void **)&cu.set},
    {"cuStreamCreate", (void **)&cu.stream_create},
    {"cuStreamSynchronize", (void **)&cu.stream_synchronize},
    {"cuStreamDestroy_v2", (void **)&cu.stream_destroy},
};

enum { CU_ATTACH_GLOBAL = 1, CU_STREAM_NON_BLOCKING = 1, CU_POINTER_ORDINAL = 9 };

static void must(int error, const char *what)
{
    const char *text = "unknown error";

    if (error == 0)
        return;
    if (cu.error_string)
        cu.error_string(error, &text);
    fprintf(stderr, "test: %s failed: %s (%d)\n", what, text, error);
    exit(99);
}

/* Loads the driver and starts it, once. */
static bool load(void)
{
    static int state; /* 0 not tried, 1 usable, -1 not */
    void *library;

    if (state)
        return state > 0;
    state = -1;
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        return false;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].slot = dlsym(library, symbols[i].name);
        if (!*symbols[i].slot)
            return false;
    }
    if (cu.init(0) == 0)
        state = 1;
    return state > 0;
}

bool gpu_available(void)
{
    return gpu_device_count() > 0;
}

int gpu_device_count(void)
{
    int count = 0;

    return load() && cu.count(&count) == 0 ? count : 0;
}

/* Makes device 0 current where the thread has none, as the runtime API would. */
static void start(void)
{
    int device;

    if (!gpu_available()) {
        fprintf(stderr, "test: no CUDA device\n");
        exit(99);
    }
    if (cu.get_device(&device) != 0)
        gpu_set_device(0);
}

const char *gpu_name(void)
{
    static char name[256];

    if (!gpu_available())
        return "none";
    must(cu.name(name, sizeof name, 0), "cuDeviceGetName");
    return name;
}

const char *gpu_runtime(void)
{
    static char text[64];
    int version = 0;

    if (!gpu_available())
        return "none";
    must(cu.version(&version), "cuDriverGetVersion");
    snprintf(text, sizeof text, "CUDA driver %d.%d", version / 1000, version % 1000 / 10);
    return text;
}

int gpu_device(void)
{
    int device = -1;

    start();
    must(cu.get_device(&device), "cuCtxGetDevice");
    return device;
}

void gpu_set_device(int device)
{
    cu_context context;

    must(cu.retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cu.set_current(context), "cuCtxSetCurrent");
}

int gpu_device_of(const void *memory)
{
    int device = -1;

    must(cu.pointer_attribute(&device, CU_POINTER_ORDINAL, (uintptr_t)memory),
         "cuPointerGetAttribute");
    return device;
}

int gpu_device_in_use(int device)
{
    unsigned flags;
    int active = -1;

    must(cu.context_state(device, &flags, &active), "cuDevicePrimaryCtxGetState");
    return active;
}

/* As the runtime API: the next use takes hold of the context anew. */
void gpu_reset(void)
{
    const int device = gpu_device();

    must(cu.reset(device), "cuDevicePrimaryCtxReset");
    gpu_set_device(device);
}

void *gpu_alloc(enum gpu_kind kind, size_t bytes)
{
    cu_pointer pointer = 0;
    void *memory = NULL;

    if (kind != GPU_HOST)
        start();
    switch (kind) {
    case GPU_DEVICE:
        must(cu.alloc(&pointer, bytes), "cuMemAlloc");
        return (void *)(uintptr_t)pointer;
    case GPU_MANAGED:
        must(cu.alloc_managed(&pointer, bytes, CU_ATTACH_GLOBAL), "cuMemAllocManaged");
        return (void *)(uintptr_t)pointer;
    case GPU_PINNED:
        must(cu.alloc_host(&memory, bytes, 0), "cuMemHostAlloc");
        return memory;
    default:
        memory = malloc(bytes);
        if (!memory)
            abort();
        return memory;
    }
}

void gpu_free(enum gpu_kind kind, void *memory)
{
    if (kind == GPU_HOST) {
        free(memory);
        return;
    }
    start();
    if (kind == GPU_PINNED)
        must(cu.free_host(memory), "cuMemFreeHost");
    else
        must(cu.free((uintptr_t)memory), "cuMemFree");
}

void gpu_register(void *memory, size_t bytes)
{
    start();
    must(cu.host_register(memory, bytes, 0), "cuMemHostRegister");
}

void gpu_unregister(void *memory)
{
    start();
    must(cu.host_unregister(memory), "cuMemHostUnregister");
}

void gpu_copy(void *to, const void *from, size_t bytes)
{
    start();
    must(cu.copy((uintptr_t)to, (uintptr_t)from, bytes), "cuMemcpy");
    must(cu.synchronize(), "cuCtxSynchronize");
}

void gpu_copy_other_stream(void *to, const void *from, size_t bytes)
{
    cu_stream stream;

    start();
    must(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cu.copy_async((uintptr_t)to, (uintptr_t)from, bytes, stream), "cuMemcpyAsync");
    must(cu.stream_synchronize(stream), "cuStreamSynchronize");
    must(cu.stream_destroy(stream), "cuStreamDestroy");
}

void gpu_copy_queued(void *to, const void *from, size_t bytes)
{
    start();
    must(cu.copy_async((uintptr_t)to, (uintptr_t)from, bytes, NULL), "cuMemcpyAsync");
}

/* The driver sets a device's memory only where that device is current. */
void gpu_set(void *memory, int value, size_t bytes)
{
    int current, owner;

    start();
    current = gpu_device();
    owner = gpu_device_of(memory);
    if (owner != current)
        gpu_set_device(owner);
    must(cu.set((uintptr_t)memory, (unsigned char)value, bytes), "cuMemsetD8");
    must(cu.synchronize(), "cuCtxSynchronize");
    if (owner != current)
        gpu_set_device(current);
}
