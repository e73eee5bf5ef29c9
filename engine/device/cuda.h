/* SPDX-License-Identifier: MIT */
/*
 * Cuda: what the two files of the CUDA provider share: the driver's functions, and the contexts in
 * which they are called. Private to the provider.
 */
#pragma once
#include "device/provider.h"
#include "device/user_stream.h"

/* Devices of one process that are served. */
#define CUDA_DEVICES 64

struct cuda_copy_2d;

/* The driver's functions, by their names in the binary. Constant once the driver is attached. */
struct cuda_functions {
#define CUDA_SYMBOL(required, name, arguments) int(*name) arguments;
#include "cuda_syms.def"
#undef CUDA_SYMBOL
};

extern struct cuda_functions hipio_cuda;

/* A stream or an event, which live in a context. */
struct cuda_handle {
    void *context;
    void *handle;
};

/* Ours or, if wrapped, the application's. */
struct hipio_stream {
    struct cuda_handle on;
    int device;
    struct cuda_call *calls; /* what it was given to call */
};

/* Host memory that the GPU reaches (cuda_memory.c). */
int hipio_cuda_host_alloc(int device, size_t bytes, void **out);
int hipio_cuda_host_free(int device, void *memory);
int hipio_cuda_host_register(int device, void *memory, size_t bytes);
int hipio_cuda_host_unregister(int device, void *memory);
int hipio_cuda_device_pointer(int device, void *pinned, void **out);

/* Work on the application's streams (cuda_stream.c). */
extern const struct hipio_user_stream_ops hipio_cuda_user_streams;

/* True while the driver may be called. */
bool hipio_cuda_usable(void);
/* Turns the driver's answer to `call` into 0 or a negative errno with text. */
int hipio_cuda_check(const char *call, int error);

/* Remembers in which context memory of the device was seen; NULL: in none. This thread's next work
 * on the device happens there. */
void hipio_cuda_remember_context(int device, void *context);
/* The context to work in for the device, valid for the life of the process unless the program
 * destroys a context of its own. */
int hipio_cuda_find_context(int device, void **out);

/* Makes a context current for the calls that follow. *pushed is for leave, which has to be called
 * if this returns 0, and only then. */
int hipio_cuda_enter(void *context, bool *pushed);
int hipio_cuda_enter_device(int device, bool *pushed);
/* Undoes enter; returns `rc`, the result of what was done between. */
int hipio_cuda_leave(bool pushed, int rc);
