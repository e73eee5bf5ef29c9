/* SPDX-License-Identifier: MIT */
/*
 * The CUDA provider's own numbers, layouts and prototypes against the vendor's header, where one is
 * installed. The provider's source is included, not linked: what it keeps to itself is compared.
 */
#include <cuda.h>

#include "device/cuda.c"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Casts of function pointers that differ in number, kind or size of the arguments do not compile
 * (-Wcast-function-type with -Werror); those that differ in the names of types do. */
#define CUDA_SYMBOL(required, name, arguments)                                                     \
    static __attribute__((unused)) int(*compare_##name(__typeof__(name) *vendor)) arguments        \
    {                                                                                              \
        return (int(*) arguments)vendor;                                                           \
    }
#include "device/cuda_syms.def"
#undef CUDA_SYMBOL

#define SAME(ours, vendors) _Static_assert((int)(ours) == (int)(vendors), #ours)

SAME(GPU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(GPU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(GPU_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(GPU_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED);
SAME(GPU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
SAME(GPU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(GPU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME(GPU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(GPU_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(GPU_NO_BINARY, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(GPU_INVALID_CODE, CUDA_ERROR_INVALID_PTX);
SAME(GPU_NO_COMPILER, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
SAME(GPU_UNSUPPORTED_CODE, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(GPU_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(GPU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(GPU_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(GPU_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(GPU_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME(GPU_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME(GPU_ASSERT, CUDA_ERROR_ASSERT);
SAME(GPU_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME(GPU_LAUNCH_FAILURE, CUDA_ERROR_LAUNCH_FAILED);
SAME(GPU_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_ATTRIBUTE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_ATTRIBUTE_CONCURRENT_MANAGED, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
SAME(CUDA_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CUDA_POINTER_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CUDA_POINTER_HOST, CU_POINTER_ATTRIBUTE_HOST_POINTER);
SAME(CUDA_POINTER_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CUDA_POINTER_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CUDA_TYPE_HOST, CU_MEMORYTYPE_HOST);
SAME(CUDA_TYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(GPU_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(GPU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(GPU_HOST_MAPPED, CU_MEMHOSTALLOC_DEVICEMAP);

SAME(sizeof(struct cuda_copy_2d), sizeof(CUDA_MEMCPY2D));
SAME(offsetof(struct cuda_copy_2d, from.x), offsetof(CUDA_MEMCPY2D, srcXInBytes));
SAME(offsetof(struct cuda_copy_2d, from.type), offsetof(CUDA_MEMCPY2D, srcMemoryType));
SAME(offsetof(struct cuda_copy_2d, from.host), offsetof(CUDA_MEMCPY2D, srcHost));
SAME(offsetof(struct cuda_copy_2d, from.device), offsetof(CUDA_MEMCPY2D, srcDevice));
SAME(offsetof(struct cuda_copy_2d, from.pitch), offsetof(CUDA_MEMCPY2D, srcPitch));
SAME(offsetof(struct cuda_copy_2d, to.x), offsetof(CUDA_MEMCPY2D, dstXInBytes));
SAME(offsetof(struct cuda_copy_2d, to.type), offsetof(CUDA_MEMCPY2D, dstMemoryType));
SAME(offsetof(struct cuda_copy_2d, to.host), offsetof(CUDA_MEMCPY2D, dstHost));
SAME(offsetof(struct cuda_copy_2d, to.device), offsetof(CUDA_MEMCPY2D, dstDevice));
SAME(offsetof(struct cuda_copy_2d, to.pitch), offsetof(CUDA_MEMCPY2D, dstPitch));
SAME(offsetof(struct cuda_copy_2d, width), offsetof(CUDA_MEMCPY2D, WidthInBytes));
SAME(offsetof(struct cuda_copy_2d, height), offsetof(CUDA_MEMCPY2D, Height));

/* The vendor's macros turn a name into the one that its header's callers get from the library. If
 * that name is not in our list, we would be calling an older interface. */
#define NAME(name) NAME_EXPANDED(name)
#define NAME_EXPANDED(name) #name

static void names_are_the_headers(void **state)
{
    static const char *const expanded[] = {NAME(cuCtxPushCurrent),
                                           NAME(cuCtxPopCurrent),
                                           NAME(cuMemGetAddressRange),
                                           NAME(cuMemHostGetDevicePointer),
                                           NAME(cuStreamDestroy),
                                           NAME(cuMemcpyAsync),
                                           NAME(cuMemcpyHtoDAsync),
                                           NAME(cuMemcpyDtoHAsync),
                                           NAME(cuMemcpy2DAsync),
                                           NAME(cuEventDestroy),
                                           NAME(cuMemHostAlloc),
                                           NAME(cuMemFreeHost),
                                           NAME(cuStreamCreate),
                                           NAME(cuEventCreate),
                                           NAME(cuEventRecord),
                                           NAME(cuLaunchKernel),
                                           NAME(cuModuleLoadData),
                                           NAME(cuPointerGetAttributes),
                                           NAME(cuDevicePrimaryCtxRetain),
                                           NAME(cuDevicePrimaryCtxGetState)};

    (void)state;
    for (size_t i = 0; i < sizeof(expanded) / sizeof(expanded[0]); i++) {
        bool listed = false;

        for (size_t k = 0; k < sizeof(symbols) / sizeof(symbols[0]); k++)
            listed = listed || strcmp(symbols[k].name, expanded[i]) == 0;
        if (!listed)
            fail_msg("%s is not in cuda_syms.def", expanded[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_the_headers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
