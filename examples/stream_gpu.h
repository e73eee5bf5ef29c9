/* SPDX-License-Identifier: MIT */
/* The GPU calls of the stream examples beside those of gpu.h, for HIP and CUDA alike. */
#pragma once
#include "gpu.h"

#ifdef EXAMPLES_CUDA
typedef cudaStream_t hipStream_t;
enum { hipStreamNonBlocking = cudaStreamNonBlocking };

static inline hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithFlags(stream, flags);
}

static inline hipError_t hipStreamSynchronize(hipStream_t stream)
{
    return cudaStreamSynchronize(stream);
}

static inline hipError_t hipStreamDestroy(hipStream_t stream)
{
    return cudaStreamDestroy(stream);
}

static inline hipError_t hipMemsetAsync(void *memory, int value, size_t bytes, hipStream_t stream)
{
    return cudaMemsetAsync(memory, value, bytes, stream);
}
#endif
