/* SPDX-License-Identifier: MIT */
/* Kernel images and launches. */
#include "harness.h"

#include "../../hipsim/hipsim_kernel.h"

#include <stdlib.h>
#include <string.h>

enum { H2D = 1, D2H = 2, COUNT = 1000 };

/* y[i] = a * x[i] + y[i], for the threads of the grid. */
static void axpy(void **params, const struct hipsim_grid *grid, const struct hipsim_memory *memory)
{
    int *y = *(int **)params[0];
    const int *x = *(const int **)params[1];
    int a = *(int *)params[2];
    size_t count = (size_t)grid->grid[0] * grid->block[0];

    y = memory->translate(memory, y, count * sizeof(*y));
    x = memory->translate(memory, x, count * sizeof(*x));
    for (size_t i = 0; x && y && i < count; i++)
        y[i] += a * x[i];
}

static void store_one(void **params, const struct hipsim_grid *grid,
                      const struct hipsim_memory *memory)
{
    int *out = memory->translate(memory, *(void **)params[0], sizeof(*out));

    (void)grid;
    if (out)
        *out = 1;
}

static const size_t axpy_sizes[] = {sizeof(void *), sizeof(void *), sizeof(int)};
static const struct hipsim_kernel kernels[] = {
    {"axpy", axpy, 3, axpy_sizes},
    {"store_one", store_one, 1, axpy_sizes},
};
static const struct hipsim_image image = {{'H', 'I', 'P', 'S', 'I', 'M', 'K', '1'}, 2, kernels};

static int launch(void *function, unsigned blocks, unsigned threads, void *stream, void **params)
{
    return hip.hipModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, params,
                                     NULL);
}

static void images(void)
{
    static const char elf[64] = "\177ELF", bundle[4096] = "__CLANG_OFFLOAD_BUNDLE__", empty[8];
    void *module, *function;

    EQUAL(hip.hipModuleLoadData(&module, elf), 209);
    EQUAL(hip.hipModuleLoadData(&module, bundle), 209);
    EQUAL(hip.hipModuleLoadData(&module, empty), 200);
    EQUAL(hip.hipModuleLoadData(&module, "x"), 200);
    EQUAL(hip.hipModuleLoadData(&module, NULL), 1);
    OK(hip.hipModuleLoadData(&module, &image));
    EQUAL(hip.hipModuleGetFunction(&function, module, "missing"), 500);
    OK(hip.hipModuleGetFunction(&function, module, "axpy"));
    OK(hip.hipModuleUnload(module));
    EQUAL(hip.hipModuleUnload(module), 400);
    EQUAL(hip.hipModuleGetFunction(&function, module, "axpy"), 400);
    EQUAL(hip.hipModuleLoadFatBinary != NULL, hip.major >= 7);
}

static void launches(void)
{
    int x[COUNT], y[COUNT], a = 3, *device_x = device_alloc(sizeof(x)),
                            *pinned = pinned_alloc(sizeof(y));
    void *module, *function, *stream, *params[] = {&pinned, &device_x, &a};
    struct gate gate;

    for (int i = 0; i < COUNT; i++) {
        x[i] = i;
        pinned[i] = 7;
    }
    OK(hip.hipModuleLoadData(&module, &image));
    OK(hip.hipModuleGetFunction(&function, module, "axpy"));
    OK(hip.hipStreamCreateWithFlags(&stream, 1));
    OK(hip.hipMemcpy(device_x, x, sizeof(x), H2D));
    OK(hip.hipStreamSynchronize(NULL));
    gate_close(&gate, stream);
    OK(launch(function, 10, COUNT / 10, stream, params));
    /* The arguments were copied and the module stays until the launch is done. */
    a = 1000;
    OK(hip.hipModuleUnload(module));
    EQUAL(pinned[1], 7);
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(stream));
    memcpy(y, pinned, sizeof(y));
    for (int i = 0; i < COUNT; i++)
        EQUAL(y[i], 7 + 3 * i);
    EQUAL(hip.counter("launches"), 1);
    EQUAL(hip.counter("modules_live"), 0);
    OK(hip.hipStreamDestroy(stream));
    OK(hip.hipFree(device_x));
    OK(hip.hipHostFree(pinned));
}

static void bad_launches(void)
{
    void *module, *function, *device = device_alloc(16), *params[] = {&device};
    void *extra[] = {(void *)3};

    OK(hip.hipModuleLoadData(&module, &image));
    OK(hip.hipModuleGetFunction(&function, module, "store_one"));
    EQUAL(launch(function, 0, 1, NULL, params), 1);
    EQUAL(launch(function, 1, 1025, NULL, params), 1);
    EQUAL(launch(function, 1u << 24, 256, NULL, params), 1);
    EQUAL(launch(function, 1, 1, NULL, NULL), 1);
    EQUAL(launch(module, 1, 1, NULL, params), 400);
    EQUAL(hip.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), 801);
    OK(launch(function, (1u << 24) - 1, 256, NULL, params));
    OK(hip.hipStreamSynchronize(NULL));
}

/* A kernel that leaves its memory breaks the device. */
static void out_of_range(void)
{
    void *module, *function, *device = device_alloc(16), *beyond = (char *)device + 13;
    void *params[] = {&beyond};

    OK(hip.hipModuleLoadData(&module, &image));
    OK(hip.hipModuleGetFunction(&function, module, "store_one"));
    OK(launch(function, 1, 1, NULL, params));
    EQUAL(hip.hipStreamSynchronize(NULL), 700);
    EQUAL(hip.hipFree(device), 700);
}

static void host_pointer(void)
{
    int local;
    void *module, *function, *where = &local, *params[] = {&where};

    OK(hip.hipModuleLoadData(&module, &image));
    OK(hip.hipModuleGetFunction(&function, module, "store_one"));
    OK(launch(function, 1, 1, NULL, params));
    EQUAL(hip.hipDeviceSynchronize(), 700);
}

/* Run with HIPSIM_REGISTER_ALIAS=1: a kernel needs the device's address of registered memory. */
static void registered(void)
{
    int *heap = calloc(4, sizeof(*heap));
    void *module, *function, *where, *params[] = {&where};

    OK(hip.hipModuleLoadData(&module, &image));
    OK(hip.hipModuleGetFunction(&function, module, "store_one"));
    OK(hip.hipHostRegister(heap, 4 * sizeof(*heap), 0));
    OK(hip.hipHostGetDevicePointer(&where, heap + 2, 0));
    OK(launch(function, 1, 1, NULL, params));
    OK(hip.hipStreamSynchronize(NULL));
    EQUAL(heap[2], 1);
    where = heap;
    OK(launch(function, 1, 1, NULL, params));
    EQUAL(hip.hipStreamSynchronize(NULL), 700);
    EQUAL(heap[0], 0);
    free(heap);
}

/* Run with HIPSIM_DEVICES=2. */
static void two_devices(void)
{
    void *module, *function, *device = device_alloc(16), *params[] = {&device}, *own;

    OK(hip.hipSetDevice(1));
    OK(hip.hipModuleLoadData(&module, &image));
    OK(hip.hipModuleGetFunction(&function, module, "store_one"));
    own = device_alloc(16);
    OK(hip.hipSetDevice(0));
    EQUAL(launch(function, 1, 1, NULL, params), 98);
    OK(hip.hipSetDevice(1));
    params[0] = &own;
    OK(launch(function, 1, 1, NULL, params));
    OK(hip.hipStreamSynchronize(NULL));
    params[0] = &device;
    OK(hip.hipDeviceEnablePeerAccess(0, 0));
    OK(launch(function, 1, 1, NULL, params));
    OK(hip.hipStreamSynchronize(NULL));
    OK(hip.hipDeviceDisablePeerAccess(0));
    OK(launch(function, 1, 1, NULL, params));
    EQUAL(hip.hipStreamSynchronize(NULL), 700);
    OK(hip.hipSetDevice(0));
    OK(hip.hipFree(device));
}

static const struct test_case cases[] = {
    {"images", images},           {"launches", launches},         {"bad_launches", bad_launches},
    {"registered", registered},   {"out_of_range", out_of_range}, {"host_pointer", host_pointer},
    {"two_devices", two_devices},
};

int main(int argc, char **argv)
{
    return harness_run(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
