/* SPDX-License-Identifier: MIT */
/* The CUDA face: primary contexts and the thread's stack of current ones. */
#include "cuda_context.h"
#include "cuda_api.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "process.h"
#include "settings.h"

void *hipsim_cuda_context(int device)
{
    return hipsim_device_get(device);
}

int hipsim_cuda_context_device(const void *context)
{
    struct hipsim_device *device;

    for (int i = 0; (device = hipsim_device_get(i)); i++)
        if (device == context)
            return atomic_load(&device->contexts) > 0 ? i : -1;
    return -1;
}

int cuCtxGetCurrent(void **context)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && !context)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        *context = hipsim_cuda_context(hipsim_current_device());
    return hipsim_leave(rc);
}

static int push(struct hipsim_thread *thread, void *context)
{
    int device = hipsim_cuda_context_device(context);

    if (device < 0 || thread->context_count == HIPSIM_CONTEXT_DEPTH)
        return HIPSIM_INVALID_CONTEXT;
    thread->contexts[thread->context_count++] = device;
    return 0;
}

/* Replaces the top of the stack; NULL takes it away. */
int cuCtxSetCurrent(void *context)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_thread *thread = hipsim_thread_get();

    if (!rc && context && hipsim_cuda_context_device(context) < 0)
        rc = HIPSIM_INVALID_CONTEXT;
    if (rc)
        return hipsim_leave(rc);
    if (thread->context_count)
        thread->context_count--;
    return hipsim_leave(context ? push(thread, context) : 0);
}

int cuCtxGetDevice(int *device)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && !device)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        *device = hipsim_current_device();
    return hipsim_leave(rc);
}

int cuCtxPushCurrent_v2(void *context)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : push(hipsim_thread_get(), context));
}

int cuCtxPopCurrent_v2(void **context)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_thread *thread = hipsim_thread_get();

    if (!rc && !thread->context_count)
        rc = HIPSIM_INVALID_CONTEXT;
    if (rc)
        return hipsim_leave(rc);
    if (context)
        *context = hipsim_cuda_context(hipsim_current_device());
    thread->context_count--;
    return hipsim_leave(0);
}

int cuCtxSynchronize(void)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_device_drain(hipsim_current_device()));
}

int cuCtxEnablePeerAccess(void *context, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    int peer = hipsim_cuda_context_device(context);

    if (!rc && flags)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc && peer < 0)
        rc = HIPSIM_INVALID_CONTEXT;
    return hipsim_leave(rc ? rc : hipsim_device_enable_peer(hipsim_current_device(), peer));
}

int cuCtxDisablePeerAccess(void *context)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    int peer = hipsim_cuda_context_device(context);

    if (!rc && peer < 0)
        rc = HIPSIM_INVALID_CONTEXT;
    return hipsim_leave(rc ? rc : hipsim_device_disable_peer(hipsim_current_device(), peer));
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_device *self = rc ? NULL : hipsim_device_get(device);

    if (!rc && !self)
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc && (!flags || !active))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc) {
        *flags = 0;
        *active = atomic_load(&self->contexts) > 0 && !atomic_load(&self->reset);
    }
    return hipsim_leave(rc);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_device *self = rc ? NULL : hipsim_device_get(device);

    if (!rc && !self)
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc && !context)
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        return hipsim_leave(rc);
    if (atomic_fetch_add(&self->contexts, 1) == 0)
        hipsim_counters_add(HIPSIM_COUNT_contexts, 1);
    atomic_store(&self->reset, false);
    *context = hipsim_cuda_context(device);
    return hipsim_leave(0);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_device *self = rc ? NULL : hipsim_device_get(device);

    if (!rc && !self)
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc && atomic_fetch_sub(&self->contexts, 1) <= 0) {
        atomic_fetch_add(&self->contexts, 1);
        rc = HIPSIM_INVALID_CONTEXT;
    }
    return hipsim_leave(rc);
}

/* Who has retained the context still has; it works again when somebody retains it anew. */
int cuDevicePrimaryCtxReset_v2(int device)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_device *self = rc ? NULL : hipsim_device_get(device);

    if (!rc && !self)
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc) {
        hipsim_device_reset(device);
        atomic_store(&self->reset, true);
    }
    return hipsim_leave(rc);
}
