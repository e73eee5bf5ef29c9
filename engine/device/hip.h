/* SPDX-License-Identifier: MIT */
/*
 * Hip: the numbers and layouts of the HIP runtime, and the door for the one backend that calls it
 * beside the provider. Private to those two.
 */
#pragma once
#include "device/provider.h"
#include "device/user_stream.h"

/* A stream or an event, ours or, if wrapped, the application's. */
struct hipio_stream {
    int device;
    void *handle;
    struct hip_callback *callbacks; /* what it was given to call */
};

struct hipio_event {
    int device;
    void *handle;
};

/* Codes of HIP alone; the others are in provider.h. */
enum hip_error { HIP_INVALID_PITCH = 12, HIP_INVALID_DEVICE_POINTER = 17 };

enum hip_attribute {
    HIP_ATTRIBUTE_INTEGRATED = 16,
    HIP_ATTRIBUTE_MULTIPROCESSORS = 63,
    HIP_ATTRIBUTE_WAIT_VALUE = 10013
};

enum hip_copy_kind {
    HIP_KIND_HOST_TO_DEVICE = 1,
    HIP_KIND_DEVICE_TO_HOST = 2,
    HIP_KIND_DEVICE_TO_DEVICE = 3
};

/* What the runtime says of a pointer; the same in all versions but for the values of `type`. */
struct hip_pointer {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int managed;
    unsigned flags;
};

/* The memory types that mean something to us, by version; -2 where a version has none. */
struct hip_types {
    int unregistered;
    int host;
    int managed;
};

/* The runtime's functions, by their names. */
struct hip_functions {
#define HIP_SYMBOL(required, result, name, arguments) result(*name) arguments;
#include "hip_syms.def"
#undef HIP_SYMBOL
};

/* The table; NULL while the runtime may not be called. */
const struct hip_functions *hipio_hip_functions(void);
/* Turns the runtime's answer to `call` into 0 or a negative errno with text. */
int hipio_hip_check(const char *call, int error);

/*
 * A function that the library does not export but gives out by name and version. 0; -ENODEV: the
 * runtime is not attached; -ENOTSUP: it has no such function.
 */
int hipio_hip_find(const char *name, void **function);

/*
 * Runs `call` with the device current and the caller's own current again afterwards; *code is what
 * `call` returned, and a failure leaves no trace in the application's last error. 0, or why the
 * call could not be made.
 */
int hipio_hip_call(int device, int (*call)(void *context), void *context, int *code);

/* The CPU and this GPU share its memory; false also where there is no such device. */
bool hipio_hip_is_integrated(int device);

/* Host memory that the GPU reaches (hip_memory.c). */
int hipio_hip_host_alloc(int device, size_t bytes, void **out);
int hipio_hip_host_free(int device, void *memory);
int hipio_hip_host_register(int device, void *memory, size_t bytes);
int hipio_hip_host_unregister(int device, void *memory);
int hipio_hip_device_pointer(int device, void *pinned, void **out);

/* Work on the application's streams (hip_stream.c). */
extern const struct hipio_user_stream_ops hipio_hip_user_streams;
