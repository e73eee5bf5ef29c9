/* SPDX-License-Identifier: MIT */
/* Virtual memory management: address ranges that the application reserves, and physical memory that
 * it maps into them piece by piece. Each piece is an allocation to every question; copies and
 * kernels run over the seams between them (HIP's copies do not). */
#pragma once

#include <stddef.h>

enum { HIPSIM_VMM_GRANULARITY = 2 << 20 };

/* All return 0 or an error code. */
int hipsim_vmm_reserve(size_t bytes, void **pointer);
/* Nothing may be mapped there any more. */
int hipsim_vmm_unreserve(void *pointer, size_t bytes);
int hipsim_vmm_create(int device, size_t bytes, void **handle);
/* What is mapped stays. */
int hipsim_vmm_release(void *handle);
int hipsim_vmm_map(void *pointer, size_t bytes, size_t offset, void *handle);
/* Is all of the range mapped? The simulator gives access with the mapping. */
int hipsim_vmm_access(void *pointer, size_t bytes);
/* Waits for the device. The range begins and ends with pieces. */
int hipsim_vmm_unmap(void *pointer, size_t bytes);
