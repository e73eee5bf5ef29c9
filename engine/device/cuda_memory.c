/* SPDX-License-Identifier: MIT */
/*
 * Cuda: host memory that the GPU reaches, allocated by the driver or made known to it.
 */
#include "cuda.h"
#include "status.h"

int hipio_cuda_host_alloc(int device, size_t bytes, void **out)
{
    bool pushed;
    int rc;

    if (bytes == 0)
        return hipio_status_set(-EINVAL, "cuda: 0 bytes of pinned memory were asked for");
    rc = hipio_cuda_enter_device(device, &pushed);
    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuMemHostAlloc(out, bytes, GPU_HOST_PORTABLE | GPU_HOST_MAPPED);
    return hipio_cuda_leave(pushed, hipio_cuda_check("cuMemHostAlloc", rc));
}

/* Gives memory back by `call`, named `name`. A driver that has ended has freed and forgotten
 * everything. */
static int give_back(int device, const char *name, int (*call)(void *), void *memory)
{
    bool pushed;
    int rc = hipio_cuda_enter_device(device, &pushed);

    if (rc != 0)
        return rc;
    rc = call(memory);
    return hipio_cuda_leave(pushed, rc == GPU_DEINITIALIZED ? 0 : hipio_cuda_check(name, rc));
}

int hipio_cuda_host_free(int device, void *memory)
{
    if (memory == NULL)
        return 0;
    return give_back(device, "cuMemFreeHost", hipio_cuda.cuMemFreeHost, memory);
}

int hipio_cuda_host_register(int device, void *memory, size_t bytes)
{
    bool pushed;
    int rc = hipio_cuda_enter_device(device, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuMemHostRegister_v2(memory, bytes, GPU_HOST_PORTABLE | GPU_HOST_MAPPED);
    return hipio_cuda_leave(pushed, hipio_cuda_check("cuMemHostRegister", rc));
}

int hipio_cuda_host_unregister(int device, void *memory)
{
    return give_back(device, "cuMemHostUnregister", hipio_cuda.cuMemHostUnregister, memory);
}

int hipio_cuda_device_pointer(int device, void *pinned, void **out)
{
    uint64_t address = 0;
    bool pushed;
    int rc = hipio_cuda_enter_device(device, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuMemHostGetDevicePointer_v2(&address, pinned, 0);
    rc = hipio_cuda_leave(pushed, hipio_cuda_check("cuMemHostGetDevicePointer", rc));
    if (rc == 0)
        *out = (void *)(uintptr_t)address;
    return rc;
}
