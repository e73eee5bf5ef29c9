/* SPDX-License-Identifier: MIT */
/* The HIP face: every exported function, declared by us so that hipsim builds without HIP and one
 * source serves all its versions. Handles are untyped here: the ABI knows no more. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct hip_pointer_attributes {
    int type;
    int device;
    void *device_pointer, *host_pointer;
    int is_managed;
    unsigned flags;
};
_Static_assert(sizeof(struct hip_pointer_attributes) == 32, "hipPointerAttribute_t");

struct hip_pitched {
    void *pointer;
    size_t pitch, width, height;
};

struct hip_position {
    size_t x, y, z;
};

struct hip_copy_3d {
    void *from_array;
    struct hip_position from_position;
    struct hip_pitched from;
    void *to_array;
    struct hip_position to_position;
    struct hip_pitched to;
    struct hip_position extent; /* width in bytes, height, depth */
    int kind;
};
_Static_assert(sizeof(struct hip_copy_3d) == 160, "hipMemcpy3DParms");

/* hip_device.c */
int hipInit(unsigned flags);
int hipRuntimeGetVersion(int *version);
int hipDriverGetVersion(int *version);
int hipGetDeviceCount(int *count);
int hipGetDevice(int *device);
int hipSetDevice(int device);
int hipDeviceGet(int *device, int ordinal);
int hipDeviceGetAttribute(int *value, int attribute, int device);
int hipDeviceComputeCapability(int *major, int *minor, int device);
int hipDeviceGetName(char *name, int size, int device);
int hipDeviceGetUuid(void *uuid, int device);
int hipDeviceGetPCIBusId(char *text, int size, int device);
int hipDeviceGetByPCIBusId(int *device, const char *text);
int hipDeviceTotalMem(size_t *bytes, int device);
int hipGetDeviceProperties(void *properties, int device);
int hipDeviceCanAccessPeer(int *can, int device, int peer);
int hipDeviceEnablePeerAccess(int peer, unsigned flags);
int hipDeviceDisablePeerAccess(int peer);
int hipDeviceGetStreamPriorityRange(int *least, int *greatest);
int hipDeviceSynchronize(void);
int hipDeviceReset(void);
int hipGetLastError(void);
int hipPeekAtLastError(void);
int hipExtGetLastError(void);
const char *hipGetErrorName(int code);
const char *hipGetErrorString(int code);
int hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                      int *status);

/* hip_memory.c */
int hipMalloc(void **pointer, size_t bytes);
int hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned flags);
int hipMallocManaged(void **pointer, size_t bytes, unsigned flags);
int hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
int hipMallocAsync(void **pointer, size_t bytes, void *stream);
int hipFree(void *pointer);
int hipFreeAsync(void *pointer, void *stream);
int hipHostMalloc(void **pointer, size_t bytes, unsigned flags);
int hipHostAlloc(void **pointer, size_t bytes, unsigned flags);
int hipMallocHost(void **pointer, size_t bytes);
int hipMemAllocHost(void **pointer, size_t bytes);
int hipHostFree(void *pointer);
int hipFreeHost(void *pointer);
int hipHostRegister(void *pointer, size_t bytes, unsigned flags);
int hipHostUnregister(void *pointer);
int hipHostGetDevicePointer(void **device, void *host, unsigned flags);
int hipHostGetFlags(unsigned *flags, void *pointer);
int hipPointerGetAttributes(struct hip_pointer_attributes *attributes, const void *pointer);
int hipMemGetAddressRange(void **base, size_t *bytes, void *pointer);
int hipMemPtrGetInfo(void *pointer, size_t *bytes);
int hipMemGetInfo(size_t *free_bytes, size_t *total);
int hipMemAdvise(const void *pointer, size_t bytes, int advice, int device);
int hipMemPrefetchAsync(const void *pointer, size_t bytes, int device, void *stream);

/* hip_copy.c */
int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int hipMemcpyWithStream(void *to, const void *from, size_t bytes, int kind, void *stream);
int hipMemcpyHtoD(void *to, void *from, size_t bytes);
int hipMemcpyDtoH(void *to, void *from, size_t bytes);
int hipMemcpyDtoD(void *to, void *from, size_t bytes);
int hipMemcpyHtoDAsync(void *to, void *from, size_t bytes, void *stream);
int hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, void *stream);
int hipMemcpyDtoDAsync(void *to, void *from, size_t bytes, void *stream);
int hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes);
int hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                       void *stream);
int hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t height, int kind);
int hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, int kind, void *stream);
int hipMemcpy3D(const struct hip_copy_3d *copy);
int hipMemcpy3DAsync(const struct hip_copy_3d *copy, void *stream);
int hipMemset(void *to, int value, size_t bytes);
int hipMemsetAsync(void *to, int value, size_t bytes, void *stream);
int hipMemsetD8(void *to, unsigned char value, size_t count);
int hipMemsetD8Async(void *to, unsigned char value, size_t count, void *stream);
int hipMemsetD32(void *to, int value, size_t count);
int hipMemsetD32Async(void *to, int value, size_t count, void *stream);
int hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height);
int hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, void *stream);
int hipMemcpy_spt(void *to, const void *from, size_t bytes, int kind);
int hipMemcpyAsync_spt(void *to, const void *from, size_t bytes, int kind, void *stream);
int hipMemset_spt(void *to, int value, size_t bytes);

/* hip_stream.c */
int hipStreamCreate(void **stream);
int hipStreamCreateWithFlags(void **stream, unsigned flags);
int hipStreamCreateWithPriority(void **stream, unsigned flags, int priority);
int hipStreamDestroy(void *stream);
int hipStreamQuery(void *stream);
int hipStreamSynchronize(void *stream);
int hipStreamWaitEvent(void *stream, void *event, unsigned flags);
int hipStreamQuery_spt(void *stream);
int hipStreamSynchronize_spt(void *stream);
int hipStreamWaitEvent_spt(void *stream, void *event, unsigned flags);
int hipStreamGetFlags(void *stream, unsigned *flags);
int hipStreamGetPriority(void *stream, int *priority);
int hipStreamGetDevice(void *stream, int *device);
int hipGetStreamDeviceId(void *stream);
int hipStreamIsCapturing(void *stream, int *status);
int hipStreamBeginCapture(void *stream, int mode);
int hipStreamEndCapture(void *stream, void **graph);
int hipGraphDestroy(void *graph);
int hipStreamAddCallback(void *stream, void (*callback)(void *, int, void *), void *data,
                         unsigned flags);
int hipLaunchHostFunc(void *stream, void (*function)(void *), void *data);
int hipStreamWaitValue32(void *stream, void *pointer, uint32_t value, unsigned flags,
                         uint32_t mask);
int hipStreamWaitValue64(void *stream, void *pointer, uint64_t value, unsigned flags,
                         uint64_t mask);
int hipStreamWriteValue32(void *stream, void *pointer, uint32_t value, unsigned flags);
int hipStreamWriteValue64(void *stream, void *pointer, uint64_t value, unsigned flags);
int hipEventCreate(void **event);
int hipEventCreateWithFlags(void **event, unsigned flags);
int hipEventDestroy(void *event);
int hipEventRecord(void *event, void *stream);
int hipEventQuery(void *event);
int hipEventSynchronize(void *event);
int hipEventElapsedTime(float *ms, void *start, void *stop);

/* hip_vmm.c */
struct hip_access {
    int location[2]; /* type (1: device), number */
    int flags;       /* 3: read and write */
};
int hipMemGetAllocationGranularity(size_t *bytes, const void *properties, int option);
int hipMemAddressReserve(void **pointer, size_t bytes, size_t alignment, void *wish,
                         unsigned long long flags);
int hipMemAddressFree(void *pointer, size_t bytes);
int hipMemCreate(void **handle, size_t bytes, const void *properties, unsigned long long flags);
int hipMemRelease(void *handle);
int hipMemMap(void *pointer, size_t bytes, size_t offset, void *handle, unsigned long long flags);
int hipMemSetAccess(void *pointer, size_t bytes, const struct hip_access *access, size_t count);
int hipMemUnmap(void *pointer, size_t bytes);

/* hip_module.c */
int hipModuleLoadData(void **module, const void *image);
int hipModuleLoadDataEx(void **module, const void *image, unsigned count, void *options,
                        void **values);
int hipModuleLoadFatBinary(void **module, const void *image);
int hipModuleUnload(void *module);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          void *stream, void **params, void **extra);

#pragma GCC visibility pop
