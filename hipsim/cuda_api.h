/* SPDX-License-Identifier: MIT */
/* The CUDA face: the driver API's functions under their exact names. Device pointers are 64-bit
 * numbers, handles are untyped. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

typedef unsigned long long cuda_pointer;

struct cuda_copy_2d {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    cuda_pointer from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    void *to_host;
    cuda_pointer to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};
_Static_assert(sizeof(struct cuda_copy_2d) == 128, "CUDA_MEMCPY2D");

struct cuda_copy_3d {
    size_t from_x, from_y, from_z, from_lod;
    int from_type;
    const void *from_host;
    cuda_pointer from_device;
    void *from_array, *reserved_from;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_lod;
    int to_type;
    void *to_host;
    cuda_pointer to_device;
    void *to_array, *reserved_to;
    size_t to_pitch, to_height;
    size_t width, height, depth;
};
_Static_assert(sizeof(struct cuda_copy_3d) == 200, "CUDA_MEMCPY3D");

/* cuda_device.c */
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetUuid(void *uuid, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);
int cuDeviceGetPCIBusId(char *text, int size, int device);
int cuDeviceGetByPCIBusId(int *device, const char *text);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuGetErrorName(int code, const char **name);
int cuGetErrorString(int code, const char **text);
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *status);

/* cuda_context.c */
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuCtxGetDevice(int *device);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxSynchronize(void);
int cuCtxEnablePeerAccess(void *context, unsigned flags);
int cuCtxDisablePeerAccess(void *context);
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device);

/* cuda_memory.c */
int cuPointerGetAttribute(void *value, int attribute, cuda_pointer pointer);
int cuPointerGetAttributes(unsigned count, int *attributes, void **values, cuda_pointer pointer);
int cuMemGetAddressRange_v2(cuda_pointer *base, size_t *bytes, cuda_pointer pointer);
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total);
int cuMemAlloc_v2(cuda_pointer *pointer, size_t bytes);
int cuMemAllocAsync(cuda_pointer *pointer, size_t bytes, void *stream);
int cuMemAllocManaged(cuda_pointer *pointer, size_t bytes, unsigned flags);
int cuMemFree_v2(cuda_pointer pointer);
int cuMemFreeAsync(cuda_pointer pointer, void *stream);
int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags);
int cuMemAllocHost_v2(void **pointer, size_t bytes);
int cuMemFreeHost(void *pointer);
int cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *pointer);
int cuMemHostGetDevicePointer_v2(cuda_pointer *device, void *host, unsigned flags);
int cuMemHostGetFlags(unsigned *flags, void *pointer);

/* cuda_copy.c */
int cuMemcpy(cuda_pointer to, cuda_pointer from, size_t bytes);
int cuMemcpyAsync(cuda_pointer to, cuda_pointer from, size_t bytes, void *stream);
int cuMemcpyHtoD_v2(cuda_pointer to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, cuda_pointer from, size_t bytes);
int cuMemcpyDtoD_v2(cuda_pointer to, cuda_pointer from, size_t bytes);
int cuMemcpyHtoDAsync_v2(cuda_pointer to, const void *from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, cuda_pointer from, size_t bytes, void *stream);
int cuMemcpyDtoDAsync_v2(cuda_pointer to, cuda_pointer from, size_t bytes, void *stream);
int cuMemcpyPeerAsync(cuda_pointer to, void *to_context, cuda_pointer from, void *from_context,
                      size_t bytes, void *stream);
int cuMemcpy2D_v2(const struct cuda_copy_2d *copy);
int cuMemcpy2DUnaligned_v2(const struct cuda_copy_2d *copy);
int cuMemcpy2DAsync_v2(const struct cuda_copy_2d *copy, void *stream);
int cuMemcpy3D_v2(const struct cuda_copy_3d *copy);
int cuMemcpy3DAsync_v2(const struct cuda_copy_3d *copy, void *stream);
int cuMemsetD8_v2(cuda_pointer to, unsigned char value, size_t count);
int cuMemsetD8Async(cuda_pointer to, unsigned char value, size_t count, void *stream);
int cuMemsetD32_v2(cuda_pointer to, unsigned value, size_t count);
int cuMemsetD32Async(cuda_pointer to, unsigned value, size_t count, void *stream);

/* cuda_stream.c */
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int cuStreamDestroy_v2(void *stream);
int cuStreamQuery(void *stream);
int cuStreamSynchronize(void *stream);
int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
int cuStreamGetFlags(void *stream, unsigned *flags);
int cuStreamGetPriority(void *stream, int *priority);
int cuStreamGetCtx(void *stream, void **context);
int cuStreamGetDevice(void *stream, int *device);
int cuStreamIsCapturing(void *stream, int *status);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphDestroy(void *graph);
int cuStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *data,
                        unsigned flags);
int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int cuStreamWaitValue32_v2(void *stream, cuda_pointer pointer, uint32_t value, unsigned flags);
int cuStreamWaitValue64_v2(void *stream, cuda_pointer pointer, uint64_t value, unsigned flags);
int cuStreamWriteValue32_v2(void *stream, cuda_pointer pointer, uint32_t value, unsigned flags);
int cuStreamWriteValue64_v2(void *stream, cuda_pointer pointer, uint64_t value, unsigned flags);

/* cuda_vmm.c */
struct cuda_location {
    int type; /* 1: device */
    int id;
};
struct cuda_allocation {
    int type; /* 1: pinned */
    int handle_types;
    struct cuda_location location;
    void *windows;
    unsigned char flags[8];
};
_Static_assert(sizeof(struct cuda_allocation) == 32, "CUmemAllocationProp");
struct cuda_access {
    struct cuda_location location;
    int flags; /* 3: read and write */
};
int cuMemGetAllocationGranularity(size_t *bytes, const struct cuda_allocation *what, int option);
int cuMemAddressReserve(cuda_pointer *pointer, size_t bytes, size_t alignment, cuda_pointer wish,
                        unsigned long long flags);
int cuMemAddressFree(cuda_pointer pointer, size_t bytes);
int cuMemCreate(uint64_t *handle, size_t bytes, const struct cuda_allocation *what,
                unsigned long long flags);
int cuMemRelease(uint64_t handle);
int cuMemMap(cuda_pointer pointer, size_t bytes, size_t offset, uint64_t handle,
             unsigned long long flags);
int cuMemSetAccess(cuda_pointer pointer, size_t bytes, const struct cuda_access *access,
                   size_t count);
int cuMemUnmap(cuda_pointer pointer, size_t bytes);

/* cuda_event.c */
int cuEventCreate(void **event, unsigned flags);
int cuEventDestroy_v2(void *event);
int cuEventRecord(void *event, void *stream);
int cuEventQuery(void *event);
int cuEventSynchronize(void *event);
int cuEventElapsedTime(float *ms, void *start, void *stop);

/* cuda_module.c */
int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, void *options,
                       void **values);
int cuModuleLoadFatBinary(void **module, const void *image);
int cuModuleUnload(void *module);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                   void *stream, void **params, void **extra);

#pragma GCC visibility pop
