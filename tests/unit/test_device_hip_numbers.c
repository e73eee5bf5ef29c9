/* SPDX-License-Identifier: MIT */
/*
 * The HIP provider's own numbers, layouts and prototypes against the vendor's header, where one is
 * installed. The provider's source is included, not linked: what it keeps to itself is compared.
 */
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

/* What headers of this age do not declare yet, as later ones do. */
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR < 602
hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             int *found);
#endif
#if HIP_VERSION_MAJOR * 100 + HIP_VERSION_MINOR < 506
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);
#endif

#include "device/hip.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Casts of function pointers that differ in number, kind or size of the arguments do not compile
 * (-Wcast-function-type with -Werror); those that differ in the names of types do. */
#define HIP_SYMBOL(required, result, name, arguments)                                              \
    static __attribute__((unused)) result(*compare_##name(__typeof__(name) *vendor)) arguments     \
    {                                                                                              \
        return (result(*) arguments)vendor;                                                        \
    }
#include "device/hip_syms.def"
#undef HIP_SYMBOL

#define SAME(ours, vendors) _Static_assert((int)(ours) == (int)(vendors), #ours)

SAME(GPU_INVALID_VALUE, hipErrorInvalidValue);
SAME(GPU_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME(GPU_NOT_INITIALIZED, hipErrorNotInitialized);
SAME(GPU_DEINITIALIZED, hipErrorDeinitialized);
SAME(GPU_NO_DEVICE, hipErrorNoDevice);
SAME(GPU_INVALID_DEVICE, hipErrorInvalidDevice);
SAME(GPU_INVALID_IMAGE, hipErrorInvalidImage);
SAME(GPU_INVALID_CONTEXT, hipErrorInvalidContext);
SAME(GPU_NO_BINARY, hipErrorNoBinaryForGpu);
SAME(GPU_INVALID_CODE, hipErrorInvalidKernelFile);
SAME(GPU_NOT_FOUND, hipErrorNotFound);
SAME(GPU_NOT_READY, hipErrorNotReady);
SAME(GPU_ILLEGAL_ADDRESS, hipErrorIllegalAddress);
SAME(GPU_LAUNCH_OUT_OF_RESOURCES, hipErrorLaunchOutOfResources);
SAME(GPU_LAUNCH_TIMEOUT, hipErrorLaunchTimeOut);
SAME(GPU_CONTEXT_IS_DESTROYED, hipErrorContextIsDestroyed);
SAME(GPU_ASSERT, hipErrorAssert);
SAME(GPU_LAUNCH_FAILURE, hipErrorLaunchFailure);
SAME(GPU_NOT_SUPPORTED, hipErrorNotSupported);
SAME(HIP_INVALID_PITCH, hipErrorInvalidPitchValue);
SAME(HIP_INVALID_DEVICE_POINTER, hipErrorInvalidDevicePointer);
SAME(HIP_ATTRIBUTE_INTEGRATED, hipDeviceAttributeIntegrated);
SAME(HIP_ATTRIBUTE_MULTIPROCESSORS, hipDeviceAttributeMultiprocessorCount);
SAME(HIP_KIND_HOST_TO_DEVICE, hipMemcpyHostToDevice);
SAME(HIP_KIND_DEVICE_TO_HOST, hipMemcpyDeviceToHost);
SAME(HIP_KIND_DEVICE_TO_DEVICE, hipMemcpyDeviceToDevice);
SAME(GPU_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(GPU_EVENT_NO_TIMING, hipEventDisableTiming);
SAME(GPU_HOST_PORTABLE, hipHostMallocPortable);
SAME(GPU_HOST_MAPPED, hipHostMallocMapped);

SAME(sizeof(struct hip_pointer), sizeof(hipPointerAttribute_t));
SAME(offsetof(struct hip_pointer, device), offsetof(hipPointerAttribute_t, device));
SAME(offsetof(struct hip_pointer, device_pointer), offsetof(hipPointerAttribute_t, devicePointer));
SAME(offsetof(struct hip_pointer, host_pointer), offsetof(hipPointerAttribute_t, hostPointer));
SAME(offsetof(struct hip_pointer, managed), offsetof(hipPointerAttribute_t, isManaged));
SAME(offsetof(struct hip_pointer, flags), offsetof(hipPointerAttribute_t, allocationFlags));

/* The header is of one version, so it can confirm one of the two tables. */
static void memory_types_are_the_headers(void **state)
{
    const struct hip_types *types = HIP_VERSION_MAJOR < 6 ? &types_5 : &types_6;

    (void)state;
    assert_int_equal(types->host, hipMemoryTypeHost);
    assert_int_not_equal(types->host, hipMemoryTypeDevice);
    assert_int_not_equal(types->unregistered, hipMemoryTypeDevice);
    assert_int_not_equal(types->managed, hipMemoryTypeDevice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_types_are_the_headers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
