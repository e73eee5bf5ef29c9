/* SPDX-License-Identifier: MIT */
/* What a kernel compiled as C looks like to hipsim. An image made of this header is handed to
 * hipModuleLoadData or cuModuleLoadData in place of a code object. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HIPSIM_KERNEL_MAGIC "HIPSIMK1" /* 8 bytes, no terminator */

/* A launch: sizes in blocks and threads, as given. */
struct hipsim_grid {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    int device;
};

/* The device's memory while a kernel runs. */
struct hipsim_memory {
    /* Where the kernel can load and store the `bytes` bytes at a device, managed or pinned pointer;
     * valid until `run` returns. NULL when the range is not inside one allocation that this device
     * may use: the launch then fails (error 700) and the kernel should return at once. */
    void *(*translate)(const struct hipsim_memory *memory, const void *pointer, size_t bytes);
};

struct hipsim_kernel {
    const char *name;
    /* Does the whole launch. Runs once per launch on the stream's own thread. `params` points to
     * copies of the arguments, taken at the launch. */
    void (*run)(void **params, const struct hipsim_grid *grid, const struct hipsim_memory *memory);
    size_t param_count;
    const size_t *param_sizes;
};

struct hipsim_image {
    char magic[8];
    size_t kernel_count;
    const struct hipsim_kernel *kernels;
};
