/* SPDX-License-Identifier: MIT */
/* Primary contexts of the CUDA face: a context handle is the address of its device. */
#pragma once

void *hipsim_cuda_context(int device);
/* The device of a context that is retained, or -1. */
int hipsim_cuda_context_device(const void *context);
