/* SPDX-License-Identifier: MIT */
/*
 * The GPU calls of the examples. They are written in HIP. On a machine with an AMD GPU (or with the
 * simulated one) this is HIP's own header; with EXAMPLES_CUDA the same names stand on the CUDA
 * runtime, because HIP's own headers for NVIDIA do not compile with every CUDA release.
 */
#pragma once
#include <stddef.h>
#include <stdio.h>

#ifndef EXAMPLES_CUDA
#include <hip/hip_runtime_api.h>
#else
#include <cuda_runtime_api.h>

typedef int hipError_t;
typedef int hipDevice_t;
enum { hipSuccess = cudaSuccess };
enum { hipMemcpyHostToDevice = cudaMemcpyHostToDevice };
enum { hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost };

static inline const char *hipGetErrorString(hipError_t error)
{
    return cudaGetErrorString((cudaError_t)error);
}

static inline hipError_t hipGetDeviceCount(int *count)
{
    return cudaGetDeviceCount(count);
}

static inline hipError_t hipSetDevice(int device)
{
    return cudaSetDevice(device);
}

static inline hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device)
{
    struct cudaDeviceProp properties;
    hipError_t error = cudaGetDeviceProperties(&properties, device);

    if (error == hipSuccess)
        snprintf(name, (size_t)size, "%s", properties.name);
    return error;
}

static inline hipError_t hipMalloc(void **memory, size_t bytes)
{
    return cudaMalloc(memory, bytes);
}

static inline hipError_t hipFree(void *memory)
{
    return cudaFree(memory);
}

static inline hipError_t hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return cudaMemcpy(to, from, bytes, (enum cudaMemcpyKind)kind);
}
#endif
