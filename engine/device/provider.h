/* SPDX-License-Identifier: MIT */
/*
 * Provider: what the provider files share: the numbers that are the same in HIP and CUDA, and what
 * the codes mean to the engine.
 */
#pragma once
#include "device/device.h"
#include "status.h"
#include <errno.h>
#include <stdbool.h>

#define PROVIDER(name, choice) extern const struct hipio_device_ops hipio_device_##name;
#include "table.def"
#undef PROVIDER

enum hipio_gpu_flag {
    GPU_STREAM_NON_BLOCKING = 1,
    GPU_EVENT_NO_TIMING = 2,
    GPU_HOST_PORTABLE = 1,
    GPU_HOST_MAPPED = 2
};

enum hipio_gpu_error {
    GPU_INVALID_VALUE = 1,
    GPU_OUT_OF_MEMORY = 2,
    GPU_NOT_INITIALIZED = 3,
    GPU_DEINITIALIZED = 4,
    GPU_STUB_LIBRARY = 34,
    GPU_NO_DEVICE = 100,
    GPU_INVALID_DEVICE = 101,
    GPU_INVALID_IMAGE = 200,
    GPU_INVALID_CONTEXT = 201,
    GPU_NO_BINARY = 209,
    GPU_INVALID_CODE = 218,
    GPU_NO_COMPILER = 221,
    GPU_UNSUPPORTED_CODE = 222,
    GPU_INVALID_HANDLE = 400,
    GPU_NOT_FOUND = 500,
    GPU_NOT_READY = 600,
    GPU_ILLEGAL_ADDRESS = 700,
    GPU_LAUNCH_OUT_OF_RESOURCES = 701,
    GPU_LAUNCH_TIMEOUT = 702,
    GPU_CONTEXT_IS_DESTROYED = 709,
    GPU_ASSERT = 710,
    GPU_HARDWARE_STACK_ERROR = 714,
    GPU_LAUNCH_FAILURE = 719,
    GPU_NOT_SUPPORTED = 801,
    GPU_UNKNOWN = 999
};

static inline int hipio_gpu_errno(int error)
{
    switch (error) {
    case 0:
        return 0;
    case GPU_INVALID_VALUE:
        return -EINVAL;
    case GPU_OUT_OF_MEMORY:
        return -ENOMEM;
    case GPU_NO_DEVICE:
    case GPU_INVALID_DEVICE:
        return -ENODEV;
    case GPU_INVALID_IMAGE:
    case GPU_NO_BINARY:
    case GPU_INVALID_CODE:
    case GPU_NO_COMPILER:
    case GPU_UNSUPPORTED_CODE:
    case GPU_NOT_FOUND:
    case GPU_NOT_SUPPORTED:
        return -ENOTSUP;
    default:
        return -EIO;
    }
}

/* The runtime can't know any pointer, for it is not up (yet, or any more). */
static inline bool hipio_gpu_is_down(int error)
{
    return error == GPU_NOT_INITIALIZED || error == GPU_DEINITIALIZED || error == GPU_NO_DEVICE ||
           error == GPU_INVALID_DEVICE || error == GPU_STUB_LIBRARY;
}

/* The device has faulted. It has no work left, and answers this to every call from then on. */
static inline bool hipio_gpu_is_fault(int error)
{
    return error == GPU_ILLEGAL_ADDRESS || error == GPU_LAUNCH_TIMEOUT ||
           error == GPU_CONTEXT_IS_DESTROYED || error == GPU_ASSERT ||
           (error >= GPU_HARDWARE_STACK_ERROR && error <= GPU_LAUNCH_FAILURE);
}

/* Copy engines take rows up to this far apart. */
#define GPU_PITCH_MAX 0x7fffffffULL

static inline int hipio_gpu_check_pitch(uint64_t to_pitch, uint64_t from_pitch, uint64_t width)
{
    if (to_pitch < width || from_pitch < width)
        return hipio_status_set(-EINVAL, "rows are closer together than they are wide");
    if (to_pitch > GPU_PITCH_MAX || from_pitch > GPU_PITCH_MAX)
        return hipio_status_set(-ENOTSUP, "rows are too far apart for a 2-D copy");
    return 0;
}
