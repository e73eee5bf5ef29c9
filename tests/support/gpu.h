/* SPDX-License-Identifier: MIT */
/*
 * GPU memory for test programs: the few calls that a program needs, over HIP (gpu_hip.c) or over
 * the CUDA driver (gpu_cuda.c). Which one is in a program is decided when it is linked.
 *
 * A call that fails ends the program with the runtime's own words: a test can't go on without its
 * memory. No call is made before the program asks for memory that is not plain host memory.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum gpu_kind { GPU_HOST, GPU_DEVICE, GPU_MANAGED, GPU_PINNED, GPU_KINDS };

/* "host", "device", "managed", "pinned". */
const char *gpu_kind_name(enum gpu_kind kind);

/* False where there is no GPU or no runtime; never ends the program. */
bool gpu_available(void);
/* The same for a test, which ends with 99 when HIPIO_TEST_NEEDS_GPU is set and there is none: what
 * was meant to test GPU memory must not pass without. */
bool gpu_wanted(void);
/* The first device as the runtime names it, and the runtime; "none" without one. */
const char *gpu_name(void);
const char *gpu_runtime(void);
int gpu_device_count(void);
int gpu_device(void);
void gpu_set_device(int device);
/* On which device such memory lies. */
int gpu_device_of(const void *memory);
/* Has this process anything on the device? 1: yes, 0: no, -1: the runtime does not tell. */
int gpu_device_in_use(int device);

/* Ends everything that the process has on the current device. */
void gpu_reset(void);

/* Memory of that kind; the bytes are undefined. Released with the same kind. */
void *gpu_alloc(enum gpu_kind kind, size_t bytes);
void gpu_free(enum gpu_kind kind, void *memory);
/* Makes plain host memory known to the runtime, and ends that. */
void gpu_register(void *memory, size_t bytes);
void gpu_unregister(void *memory);

/* Copies between memory of any two kinds and returns when the bytes are there. */
void gpu_copy(void *to, const void *from, size_t bytes);
/* The same by the GPU's copy engine, on a new stream that does not wait for the default stream. */
void gpu_copy_other_stream(void *to, const void *from, size_t bytes);
/* Queues a copy on the default stream and returns. The host side must be pinned. */
void gpu_copy_queued(void *to, const void *from, size_t bytes);
/* Sets every byte. */
void gpu_set(void *memory, int value, size_t bytes);
