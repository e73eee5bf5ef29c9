/* SPDX-License-Identifier: MIT */
/* Names and texts of the error codes, for both vendors. */
#include "error.h"

#include "flavor.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
    int code;
    const char *hip, *cuda, *text;
};

static const struct entry entries[] = {
    {0, "hipSuccess", "CUDA_SUCCESS", "no error"},
    {1, "hipErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "hipErrorOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "hipErrorNotInitialized", "CUDA_ERROR_NOT_INITIALIZED", "not initialized in this process"},
    {4, "hipErrorDeinitialized", "CUDA_ERROR_DEINITIALIZED", "runtime is shutting down"},
    {9, "hipErrorInvalidConfiguration", NULL, "invalid launch configuration"},
    {12, "hipErrorInvalidPitchValue", NULL, "invalid pitch"},
    {17, "hipErrorInvalidDevicePointer", NULL, "invalid device pointer"},
    {21, "hipErrorInvalidMemcpyDirection", NULL, "invalid copy direction"},
    {34, NULL, "CUDA_ERROR_STUB_LIBRARY", "stub library"},
    {98, "hipErrorInvalidDeviceFunction", NULL, "function belongs to another device"},
    {100, "hipErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no device"},
    {101, "hipErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "hipErrorInvalidImage", "CUDA_ERROR_INVALID_IMAGE", "not a device image"},
    {201, "hipErrorInvalidContext", "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "hipErrorNoBinaryForGpu", "CUDA_ERROR_NO_BINARY_FOR_GPU", "no code for this device"},
    {218, "hipErrorInvalidKernelFile", "CUDA_ERROR_INVALID_PTX", "invalid device code"},
    {301, "hipErrorFileNotFound", "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {304, "hipErrorOperatingSystem", "CUDA_ERROR_OPERATING_SYSTEM", "operating system call failed"},
    {400, "hipErrorInvalidHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
    {500, "hipErrorNotFound", "CUDA_ERROR_NOT_FOUND", "named object not found"},
    {600, "hipErrorNotReady", "CUDA_ERROR_NOT_READY", "work is still under way"},
    {700, "hipErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal address on the device"},
    {701, "hipErrorLaunchOutOfResources", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "launch needs too many resources"},
    {704, "hipErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {705, "hipErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access is not enabled"},
    {709, "hipErrorContextIsDestroyed", "CUDA_ERROR_CONTEXT_IS_DESTROYED",
     "stream or context was destroyed"},
    {712, "hipErrorHostMemoryAlreadyRegistered", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "host memory is already registered"},
    {713, "hipErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "host memory is not registered"},
    {719, "hipErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "kernel failed on the device"},
    {800, NULL, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {801, "hipErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "hipErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "not allowed while the stream is captured"},
    {901, "hipErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "the capture was invalidated"},
    {903, "hipErrorStreamCaptureUnmatched", "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "the stream is not being captured"},
    {906, "hipErrorStreamCaptureImplicit", "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "implicit use of the legacy stream during a capture"},
    {999, "hipErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const struct entry *find(int code)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        if (entries[i].code == code)
            return &entries[i];
    return NULL;
}

const char *hipsim_error_name(int code)
{
    const struct entry *entry = find(code);

    if (!entry)
        return NULL;
    return hipsim_flavor.vendor == HIPSIM_HIP ? entry->hip : entry->cuda;
}

const char *hipsim_error_text(int code)
{
    const struct entry *entry = find(code);

    return entry ? entry->text : NULL;
}

void hipsim_error_die(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "hipsim (%s): ", hipsim_flavor.library);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
