/* SPDX-License-Identifier: MIT */
/* A program that knows HIP and nothing else: compiled with the real headers, linked against the
 * real library, started with hipsim in its place. */
#include <hip/hip_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(hipPointerAttribute_t) == 32, "pointer attributes");
_Static_assert(sizeof(hipDeviceProp_t) == 792, "device properties");
_Static_assert(sizeof(hipMemcpy3DParms) == 160, "3D copy");
_Static_assert(hipMemcpyHostToDevice == 1 && hipMemcpyDefault == 4, "copy kinds");
_Static_assert(hipErrorNotReady == 600 && hipErrorHostMemoryNotRegistered == 713, "errors");
_Static_assert(hipDeviceAttributeIntegrated == 16 && hipDeviceAttributeManagedMemory == 24 &&
                   hipDeviceAttributeMultiprocessorCount == 63 &&
                   hipDeviceAttributeMaxPitch == 58 && hipDeviceAttributeWarpSize == 87 &&
                   hipDeviceAttributeIsLargeBar == 10011 &&
                   hipDeviceAttributeCanUseStreamWaitValue == 10013,
               "attributes");

enum { CHUNK = 1 << 18, CHUNKS = 24, SLOTS = 3 };

static void check(hipError_t rc, const char *what, int line)
{
    if (rc == hipSuccess)
        return;
    printf("line %d: %s: %s (%s)\n", line, what, hipGetErrorString(rc), hipGetErrorName(rc));
    exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

struct slot {
    char *in, *out;
    void *first, *second;
    hipStream_t stream;
    hipEvent_t done;
};

static void make_slot(struct slot *slot)
{
    CHECK(hipHostMalloc((void **)&slot->in, CHUNK, hipHostMallocDefault));
    CHECK(hipHostMalloc((void **)&slot->out, CHUNK, hipHostMallocPortable));
    CHECK(hipMalloc(&slot->first, CHUNK));
    CHECK(hipMalloc(&slot->second, CHUNK));
    CHECK(hipStreamCreateWithFlags(&slot->stream, hipStreamNonBlocking));
    CHECK(hipEventCreateWithFlags(&slot->done, hipEventDisableTiming));
}

static void drop_slot(struct slot *slot)
{
    CHECK(hipStreamSynchronize(slot->stream));
    CHECK(hipEventDestroy(slot->done));
    CHECK(hipStreamDestroy(slot->stream));
    CHECK(hipFree(slot->first));
    CHECK(hipFree(slot->second));
    CHECK(hipHostFree(slot->in));
    CHECK(hipHostFree(slot->out));
}

/* A ring of slots: host to device, device to device, device to host, all in flight at once. */
static void pipeline(const char *source, char *target)
{
    struct slot slots[SLOTS];

    for (int i = 0; i < SLOTS; i++)
        make_slot(&slots[i]);
    for (int i = 0; i < CHUNKS + SLOTS; i++) {
        struct slot *slot = &slots[i % SLOTS];

        if (i >= SLOTS) {
            CHECK(hipEventSynchronize(slot->done));
            memcpy(target + (size_t)(i - SLOTS) * CHUNK, slot->out, CHUNK);
        }
        if (i >= CHUNKS)
            continue;
        memcpy(slot->in, source + (size_t)i * CHUNK, CHUNK);
        CHECK(hipMemcpyAsync(slot->first, slot->in, CHUNK, hipMemcpyHostToDevice, slot->stream));
        CHECK(hipMemcpyDtoDAsync(slot->second, slot->first, CHUNK, slot->stream));
        CHECK(hipMemcpyDtoHAsync(slot->out, slot->second, CHUNK, slot->stream));
        CHECK(hipEventRecord(slot->done, slot->stream));
    }
    for (int i = 0; i < SLOTS; i++)
        drop_slot(&slots[i]);
}

static void pointers(void)
{
    void *device, *managed;
    hipPointerAttribute_t seen;
    hipDeviceProp_t properties;
    int local = 0, pipe_ends[2];

    CHECK(hipGetDeviceProperties(&properties, 0));
    printf("%s, %zu bytes, %d processors\n", properties.name, properties.totalGlobalMem,
           properties.multiProcessorCount);
    CHECK(hipMalloc(&device, 4096));
    CHECK(hipMallocManaged(&managed, 4096, hipMemAttachGlobal));
    CHECK(hipPointerGetAttributes(&seen, (char *)device + 100));
    if (seen.memoryType != hipMemoryTypeDevice || seen.devicePointer != (char *)device + 100)
        check(hipErrorUnknown, "device pointer attributes", __LINE__);
    CHECK(hipPointerGetAttributes(&seen, managed));
    if (!seen.isManaged)
        check(hipErrorUnknown, "managed pointer attributes", __LINE__);
    if (hipPointerGetAttributes(&seen, &local) != hipErrorInvalidValue)
        check(hipErrorUnknown, "attributes of a local variable", __LINE__);
    if (hipGetLastError() != hipErrorInvalidValue)
        check(hipErrorUnknown, "last error", __LINE__);
    /* The host must not get at device memory. */
    if (pipe(pipe_ends) || write(pipe_ends[1], device, 16) != -1)
        check(hipErrorUnknown, "a system call read device memory", __LINE__);
    memset(managed, 1, 4096);
    CHECK(hipMemset(device, 0, 4096));
    CHECK(hipMemcpy(device, managed, 4096, hipMemcpyDefault));
    CHECK(hipMemcpy(&local, device, sizeof(local), hipMemcpyDeviceToHost));
    if (local != 0x01010101)
        check(hipErrorUnknown, "managed to device to host", __LINE__);
    CHECK(hipFree(device));
    CHECK(hipFree(managed));
}

int main(void)
{
    size_t bytes = (size_t)CHUNK * CHUNKS;
    char *source = malloc(bytes), *target = calloc(1, bytes);
    int devices, version;

    if (!source || !target)
        return 1;
    CHECK(hipRuntimeGetVersion(&version));
    CHECK(hipGetDeviceCount(&devices));
    for (size_t i = 0; i < bytes; i++)
        source[i] = (char)(i * 31 + i / CHUNK);
    pipeline(source, target);
    pointers();
    if (memcmp(source, target, bytes)) {
        printf("wrong data\n");
        return 1;
    }
    CHECK(hipDeviceSynchronize());
    printf("HIP %d: %zu bytes through %d device(s): PASSED\n", version, bytes, devices);
    free(source);
    free(target);
    return 0;
}
