/* SPDX-License-Identifier: MIT */
/*
 * Cuda context: where the provider's calls happen.
 *
 * Ours for a device is the context that its memory was last seen in; else the thread's current one
 * if it is of the device; else the device's primary context, which the CUDA runtime uses too. It is
 * pushed for a call and popped after it, so that the caller finds its own again.
 */
#include "device/cuda.h"
#include "log.h"
#include <stdatomic.h>

static struct {
    _Atomic(void *) seen;    /* where the memory that was classified last lives, or NULL */
    _Atomic(void *) primary; /* retained for the life of the process, or NULL */
} contexts[CUDA_DEVICES];

/* The last answer that this thread got about a pointer. */
static _Thread_local struct {
    int device;
    void *context;
} thread_seen = {.device = -1};

/* Remembers in which context the memory lives; the caller goes on to work with it. */
void hipio_cuda_remember_context(int device, void *context)
{
    thread_seen.device = device;
    thread_seen.context = context;
    atomic_store_explicit(&contexts[device].seen, context, memory_order_release);
}

/* The thread's current context if it is one of `device`, else NULL. */
static void *current_context(int device)
{
    void *context = NULL;
    int owner = -1;

    if (hipio_cuda.cuCtxGetCurrent(&context) != 0 || context == NULL)
        return NULL;
    return hipio_cuda.cuCtxGetDevice(&owner) == 0 && owner == device ? context : NULL;
}

/*
 * Holds the device's primary context for the life of the process and returns it in *out. One that
 * nobody has made active is only made with `create`.
 */
static int retain_primary(int ordinal, int device, bool create, void **out)
{
    void *context = atomic_load_explicit(&contexts[ordinal].primary, memory_order_acquire);
    unsigned flags = 0;
    int active = 0;
    int rc;

    *out = context;
    if (context != NULL)
        return 0;
    rc = hipio_cuda_check("cuDevicePrimaryCtxGetState",
                          hipio_cuda.cuDevicePrimaryCtxGetState(device, &flags, &active));
    if (rc != 0 || (!active && !create))
        return rc;
    rc = hipio_cuda_check("cuDevicePrimaryCtxRetain",
                          hipio_cuda.cuDevicePrimaryCtxRetain(&context, device));
    if (rc != 0)
        return rc;
    atomic_store_explicit(&contexts[ordinal].primary, context, memory_order_release);
    *out = context;
    return 0;
}

/* The context to work in for the device. */
int hipio_cuda_find_context(int ordinal, void **out)
{
    void *context, *primary;
    int device = -1;
    int rc;

    if (!hipio_cuda_usable())
        return hipio_status_set(-ENODEV, "cuda: the driver is not attached");
    if (ordinal < 0 || ordinal >= CUDA_DEVICES)
        return hipio_status_set(-ENODEV, "cuda: there is no device %d", ordinal);
    rc = hipio_cuda_check("cuDeviceGet", hipio_cuda.cuDeviceGet(&device, ordinal));
    if (rc != 0)
        return rc;
    context = thread_seen.device == ordinal ? thread_seen.context : NULL;
    if (context == NULL)
        context = atomic_load_explicit(&contexts[ordinal].seen, memory_order_acquire);
    if (context == NULL)
        context = current_context(device);
    /* A primary context that is in use is held even where another one is taken: the two are most
     * often the same, and it must not end while our streams are in it. */
    rc = retain_primary(ordinal, device, context == NULL, &primary);
    if (rc == 0)
        *out = context != NULL ? context : primary;
    return rc;
}

/* Makes the context current; *pushed says whether leave has to pop it. */
int hipio_cuda_enter(void *context, bool *pushed)
{
    void *current = NULL;
    int rc;

    *pushed = false;
    if (!hipio_cuda_usable())
        return hipio_status_set(-ENODEV, "cuda: the driver is not attached");
    rc = hipio_cuda_check("cuCtxGetCurrent", hipio_cuda.cuCtxGetCurrent(&current));
    if (rc != 0 || current == context)
        return rc;
    rc = hipio_cuda_check("cuCtxPushCurrent", hipio_cuda.cuCtxPushCurrent_v2(context));
    *pushed = rc == 0;
    return rc;
}

int hipio_cuda_enter_device(int device, bool *pushed)
{
    void *context = NULL;
    int rc = hipio_cuda_find_context(device, &context);

    return rc != 0 ? rc : hipio_cuda_enter(context, pushed);
}

/* Undoes enter; returns `rc`, the result of what was done between. */
int hipio_cuda_leave(bool pushed, int rc)
{
    void *context = NULL;
    int error;

    if (!pushed)
        return rc;
    error = hipio_cuda.cuCtxPopCurrent_v2(&context);
    if (error != 0)
        hipio_log(HIPIO_LOG_ERROR,
                  "cuda: the caller's context could not be made current again (%d)", error);
    return rc;
}
