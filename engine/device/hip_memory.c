/* SPDX-License-Identifier: MIT */
/*
 * Hip: host memory that the GPU reaches, allocated by the runtime or made known to it.
 */
#include "hip.h"
#include "status.h"

struct host_call {
    const struct hip_functions *f;
    void *memory;
    size_t bytes;
};

/* Makes `call`, which is known to users as `name`, on the device. */
static int call_on(int device, const char *name, int (*call)(void *), struct host_call *what)
{
    int error = 0;

    what->f = hipio_hip_functions();
    if (what->f == NULL)
        return hipio_status_set(-ENODEV, "hip: the runtime is not attached");
    int rc = hipio_hip_call(device, call, what, &error);
    return rc != 0 ? rc : hipio_hip_check(name, error);
}

static int allocate(void *context)
{
    struct host_call *what = context;

    return what->f->hipHostMalloc(&what->memory, what->bytes, GPU_HOST_PORTABLE | GPU_HOST_MAPPED);
}

int hipio_hip_host_alloc(int device, size_t bytes, void **out)
{
    struct host_call what = {.bytes = bytes};

    if (bytes == 0)
        return hipio_status_set(-EINVAL, "hip: 0 bytes of pinned memory were asked for");
    int rc = call_on(device, "hipHostMalloc", allocate, &what);
    if (rc == 0)
        *out = what.memory;
    return rc;
}

/* A runtime that has ended has freed and forgotten everything, which is no error. */
static int unless_ended(const struct host_call *what, int error)
{
    if (error != GPU_DEINITIALIZED)
        return error;
    (void)what->f->hipGetLastError();
    return 0;
}

static int release(void *context)
{
    struct host_call *what = context;

    return unless_ended(what, what->f->hipHostFree(what->memory));
}

int hipio_hip_host_free(int device, void *memory)
{
    struct host_call what = {.memory = memory};

    return memory == NULL ? 0 : call_on(device, "hipHostFree", release, &what);
}

static int make_known(void *context)
{
    struct host_call *what = context;

    return what->f->hipHostRegister(what->memory, what->bytes, GPU_HOST_PORTABLE | GPU_HOST_MAPPED);
}

int hipio_hip_host_register(int device, void *memory, size_t bytes)
{
    struct host_call what = {.memory = memory, .bytes = bytes};

    return call_on(device, "hipHostRegister", make_known, &what);
}

static int forget(void *context)
{
    struct host_call *what = context;

    return unless_ended(what, what->f->hipHostUnregister(what->memory));
}

int hipio_hip_host_unregister(int device, void *memory)
{
    struct host_call what = {.memory = memory};

    return call_on(device, "hipHostUnregister", forget, &what);
}

static int translate(void *context)
{
    struct host_call *what = context;

    return what->f->hipHostGetDevicePointer(&what->memory, what->memory, 0);
}

int hipio_hip_device_pointer(int device, void *pinned, void **out)
{
    struct host_call what = {.memory = pinned};

    int rc = call_on(device, "hipHostGetDevicePointer", translate, &what);
    if (rc == 0)
        *out = what.memory;
    return rc;
}
