/* SPDX-License-Identifier: MIT */
/* Allocations, what pointers are classified as, and who may touch what. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { H2D = 1, D2H = 2, D2D = 3, ANY = 4, SIZE = 10000 };

static int host_type(void)
{
    return hip.major <= 5 ? 0 : 1;
}

static int device_type(void)
{
    return hip.major <= 5 ? 1 : 2;
}

static struct hip_pointer_attributes classify(const void *pointer)
{
    struct hip_pointer_attributes attributes = {-7, -7, NULL, NULL, -7, 7};

    OK(hip.hipPointerGetAttributes(&attributes, pointer));
    return attributes;
}

static void expect_unknown(const void *pointer)
{
    struct hip_pointer_attributes attributes = {-7, -7, NULL, NULL, -7, 7};
    int rc = hip.hipPointerGetAttributes(&attributes, pointer);

    if (hip.major <= 5 || (!pointer && hip.major < 7)) {
        EQUAL(rc, 1);
        return;
    }
    EQUAL(rc, 0);
    EQUAL(attributes.type, 0);
    EQUAL(attributes.device, -2);
    TRUE(!attributes.device_pointer && !attributes.host_pointer);
}

static void classes(void)
{
    int local = 0;
    char *heap = malloc(SIZE), *device = device_alloc(SIZE), *pinned = pinned_alloc(SIZE);
    void *managed;
    struct hip_pointer_attributes seen;

    expect_unknown(NULL);
    expect_unknown(&local);
    expect_unknown(heap);
    for (size_t offset = 0; offset < SIZE; offset += SIZE / 2 - 1) {
        seen = classify(device + offset);
        EQUAL(seen.type, device_type());
        EQUAL(seen.device, 0);
        TRUE(seen.device_pointer == device + offset);
        TRUE(!seen.host_pointer);
        seen = classify(pinned + offset);
        EQUAL(seen.type, host_type());
        TRUE(seen.host_pointer == pinned + offset);
    }
    EQUAL(classify(device + SIZE - 1).type, device_type());
    expect_unknown(device + SIZE);
    OK(hip.hipMallocManaged(&managed, SIZE, 1));
    seen = classify(managed);
    EQUAL(seen.type, hip.major <= 5 ? 0 : 3);
    EQUAL(seen.is_managed, 1);
    memset(managed, 1, SIZE);
    OK(hip.hipFree(managed));
    expect_unknown(managed);
    OK(hip.hipFree(device));
    expect_unknown(device);
    OK(hip.hipHostFree(pinned));
    expect_unknown(pinned);
    EQUAL(hip.counter("allocations_live"), 0);
    EQUAL(hip.counter("pinned_bytes"), 0);
    EQUAL(hip.counter("pinned_peak"), SIZE);
    free(heap);
}

static void touch_device(void)
{
    volatile char *device = device_alloc(SIZE);

    device[5] = 1;
}

static void touch_freed(void)
{
    volatile char *pinned = pinned_alloc(SIZE);

    OK(hip.hipHostFree((void *)(uintptr_t)pinned));
    pinned[5] = 1;
}

static void touch_guard(void)
{
    volatile char *pinned = pinned_alloc(4096);

    pinned[4096] = 1;
}

static int temporary_file(void)
{
    char path[] = "hipsim-test-XXXXXX";
    int fd = mkstemp(path);

    TRUE(fd >= 0);
    unlink(path);
    return fd;
}

static void unreadable(void)
{
    char host[512] = {0}, *device;
    int fd = temporary_file();
    struct iovec vector[2] = {{host, sizeof(host)}, {NULL, sizeof(host)}};

    EQUAL(harness_child(touch_device), SIGSEGV);
    EQUAL(harness_child(touch_freed), SIGSEGV);
    EQUAL(harness_child(touch_guard), SIGSEGV);
    device = device_alloc(SIZE);
    EQUAL(ftruncate(fd, SIZE), 0);
    EQUAL(pread(fd, device, 100, 0), -1);
    EQUAL(errno, EFAULT);
    EQUAL(pwrite(fd, device, 100, 0), -1);
    EQUAL(errno, EFAULT);
    vector[1].iov_base = device;
    EQUAL(preadv(fd, vector, 2, 0), sizeof(host));
    OK(hip.hipFree(device));
    EQUAL(pread(fd, device, 100, 0), -1);
    close(fd);
}

/* Run with HIPSIM_APU=1 and with HIPSIM_LARGE_BAR=1. */
static void reachable(void)
{
    char *device = device_alloc(SIZE), host[SIZE];
    int integrated, large_bar;
    bool apu = getenv("HIPSIM_APU") != NULL;

    memset(device, 3, SIZE);
    OK(hip.hipMemcpy(host, device, SIZE, D2H));
    EQUAL(host[SIZE - 1], 3);
    EQUAL(classify(device).type, device_type());
    OK(hip.hipDeviceGetAttribute(&integrated, 16, 0));
    OK(hip.hipDeviceGetAttribute(&large_bar, 10011, 0));
    EQUAL(integrated, apu);
    EQUAL(large_bar, 1);
    OK(hip.hipFree(device));
}

static void ranges(void)
{
    char *device = device_alloc(SIZE), *other = device_alloc(SIZE);
    unsigned char host[SIZE];
    void *base;
    size_t bytes;

    OK(hip.hipMemcpy(host, device, SIZE, D2H));
    for (size_t i = 0; i < SIZE; i++)
        EQUAL(host[i], 0xd7);
    OK(hip.hipMemGetAddressRange(&base, &bytes, device + 77));
    TRUE(base == device);
    EQUAL(bytes, SIZE);
    EQUAL(hip.hipMemGetAddressRange(&base, &bytes, host), 500);
    OK(hip.hipMemPtrGetInfo(device, &bytes));
    EQUAL(bytes, SIZE);
    EQUAL(hip.hipMemcpy(device, host, SIZE + 1, H2D), 1);
    EQUAL(hip.hipMemcpy(device + 1, host, SIZE, H2D), 1);
    EQUAL(hip.hipMemcpy(host, device + SIZE - 5, 6, D2H), 1);
    EQUAL(hip.hipMemcpy(other, device + 1, SIZE, D2D), 1);
    EQUAL(hip.hipMemset(device, 0, SIZE + 1), 1);
    EQUAL(hip.hipMemset(host, 0, SIZE), 1);
    EQUAL(hip.hipMemcpy(device, host, SIZE, 7), 21);
    EQUAL(hip.hipMemcpy(NULL, host, SIZE, H2D), 1);
    EQUAL(hip.hipMemcpy(host, host + 1, 10, D2D), 1);
    OK(hip.hipMemcpy(NULL, NULL, 0, H2D));
    EQUAL(hip.hipFree(device + 1), 1);
    EQUAL(hip.hipFree(host), 1);
    EQUAL(hip.hipHostFree(device), 1);
    OK(hip.hipFree(device));
    EQUAL(hip.hipFree(device), 1);
    EQUAL(hip.hipMemcpy(device, host, 10, H2D), 1);
    EQUAL(hip.hipMemcpyAsync(host, device, 10, ANY, NULL), 1);
    OK(hip.hipFree(NULL));
    OK(hip.hipMalloc(&base, 0));
    TRUE(!base);
    EQUAL(hip.hipMalloc(NULL, 1), 1);
    OK(hip.hipFree(other));
}

/* Two pieces of address space that is reserved for three: each is an allocation to questions and,
 * in HIP, to copies; other work goes over the seam. */
static void pieces(void)
{
    enum { PIECE = 2 << 20 };
    /* Type 1, device 0, where 5.2 and where later releases keep them. */
    const int properties[8] = {hip.major == 5 ? 0 : 1, hip.major == 5, hip.major == 5 ? 0 : 1};
    const struct hip_access access = {{1, 0}, 3};
    void *base, *memory, *at;
    size_t bytes = 0;
    char host[64];

    OK(hip.hipMemGetAllocationGranularity(&bytes, properties, 0));
    EQUAL(bytes, PIECE);
    EQUAL(hip.hipMemAddressReserve(&base, PIECE + 4096, 0, NULL, 0), 1);
    OK(hip.hipMemAddressReserve(&base, 3 * PIECE, 0, NULL, 0));
    char *start = base, *seam = start + PIECE;
    EQUAL(hip.hipMemcpy(host, start, 1, D2H), 1);
    for (int i = 0; i < 2; i++) {
        OK(hip.hipMemCreate(&memory, PIECE, properties, 0));
        OK(hip.hipMemMap(start + (size_t)i * PIECE, PIECE, 0, memory, 0));
        EQUAL(hip.hipMemMap(start + (size_t)i * PIECE, PIECE, 0, memory, 0), 1);
        OK(hip.hipMemRelease(memory));
        EQUAL(hip.hipMemRelease(memory), 1);
    }
    EQUAL(hip.hipMemSetAccess(start, 3 * PIECE, &access, 1), 1);
    OK(hip.hipMemSetAccess(start, 2 * PIECE, &access, 1));
    OK(hip.hipMemGetAddressRange(&at, &bytes, seam + 5));
    TRUE(at == seam);
    EQUAL(bytes, PIECE);
    OK(hip.hipMemset(seam - 32, 7, 64));
    EQUAL(hip.hipMemcpy(host, seam - 32, 64, D2H), 1);
    OK(hip.hipMemcpy(host, seam - 32, 32, D2H));
    OK(hip.hipMemcpy(host + 32, seam, 32, D2H));
    for (size_t i = 0; i < sizeof host; i++)
        EQUAL(host[i], 7);
    EQUAL(hip.hipMemset(seam + PIECE - 32, 7, 64), 1);
    EQUAL(hip.hipFree(start), 1);
    EQUAL(hip.hipMemAddressFree(start, 3 * PIECE), 1);
    EQUAL(hip.hipMemUnmap(start, 3 * PIECE), 1);
    OK(hip.hipMemUnmap(start, 2 * PIECE));
    EQUAL(hip.hipMemcpy(host, start, 1, D2H), 1);
    OK(hip.hipMemAddressFree(start, 3 * PIECE));
}

static void registered(void)
{
    char *heap = malloc(2 * SIZE), host[SIZE];
    void *device_view, *device = device_alloc(SIZE);
    bool alias = getenv("HIPSIM_REGISTER_ALIAS") != NULL;
    int same;

    OK(hip.hipHostRegister(heap, SIZE, 1));
    EQUAL(classify(heap + 5).type, host_type());
    EQUAL(hip.hipHostRegister(heap, SIZE, 0), 712);
    EQUAL(hip.hipHostRegister(heap + SIZE - 1, 2, 0), 712);
    EQUAL(hip.hipHostRegister(heap + SIZE, 16, 16), 1);
    OK(hip.hipHostGetDevicePointer(&device_view, heap + 7, 0));
    EQUAL((char *)device_view != heap + 7, alias);
    OK(hip.hipDeviceGetAttribute(&same, 4, 0));
    EQUAL(same, !alias);
    EQUAL(classify(device_view).type, host_type());
    TRUE(classify(device_view).host_pointer == heap + 7);
    memset(heap, 9, SIZE);
    OK(hip.hipMemcpy(device, device_view, SIZE - 7, ANY));
    OK(hip.hipMemcpy(host, device, SIZE - 7, D2H));
    EQUAL(host[SIZE - 8], 9);
    EQUAL(hip.hipMemcpy(device, device_view, SIZE, ANY), 1);
    EQUAL(hip.hipHostUnregister(heap + 1), 713);
    OK(hip.hipHostUnregister(heap));
    EQUAL(hip.hipHostUnregister(heap), 713);
    expect_unknown(heap);
    EQUAL(hip.hipHostGetDevicePointer(&device_view, heap, 0), 1);
    OK(hip.hipFree(device));
    free(heap);
}

/* Run with HIPSIM_MEMORY=1M. */
static void limit(void)
{
    size_t free_bytes, total;
    void *first = device_alloc(1 << 19), *second, *pinned = pinned_alloc(4 << 20);

    OK(hip.hipMemGetInfo(&free_bytes, &total));
    EQUAL(total, 1 << 20);
    EQUAL(free_bytes, 1 << 19);
    EQUAL(hip.hipMalloc(&second, (1 << 19) + 1), 2);
    EQUAL(hip.hipMalloc(&second, SIZE_MAX), 2);
    OK(hip.hipMalloc(&second, 1 << 19));
    OK(hip.hipFree(first));
    OK(hip.hipMalloc(&first, 1 << 19));
    OK(hip.hipFree(first));
    OK(hip.hipFree(second));
    OK(hip.hipHostFree(pinned));
    EQUAL(hip.counter("device_peak"), 1 << 20);
}

static void stream_ordered(void)
{
    struct gate gate;
    void *stream, *pointer;
    char host[SIZE];

    OK(hip.hipStreamCreateWithFlags(&stream, 1));
    OK(hip.hipMallocAsync(&pointer, SIZE, stream));
    EQUAL(classify(pointer).type, device_type());
    OK(hip.hipMemsetAsync(pointer, 5, SIZE, stream));
    OK(hip.hipMemcpyAsync(host, pointer, SIZE, D2H, stream));
    OK(hip.hipStreamSynchronize(stream));
    EQUAL(host[SIZE - 1], 5);
    gate_close(&gate, stream);
    OK(hip.hipFreeAsync(pointer, stream));
    EQUAL(classify(pointer).type, device_type());
    gate_open(&gate);
    OK(hip.hipStreamSynchronize(stream));
    expect_unknown(pointer);
    EQUAL(hip.hipFreeAsync(pointer, stream), 1);
    OK(hip.hipStreamDestroy(stream));
}

static void boxes(void)
{
    enum { WIDTH = 24, ROWS = 5, PLANES = 3, PITCH = 64 };
    char host[PLANES * ROWS * PITCH], back[sizeof(host)];
    char *device = device_alloc(sizeof(host));
    struct hip_copy_3d box = {
        .from = {host, PITCH, WIDTH, ROWS},
        .to = {device, PITCH, WIDTH, ROWS},
        .extent = {WIDTH, ROWS, PLANES},
        .kind = H2D,
    };

    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (char)(i * 7 + 1);
    OK(hip.hipMemset(device, 0, sizeof(host)));
    OK(hip.hipMemcpy3DAsync(&box, NULL));
    OK(hip.hipMemcpy(back, device, sizeof(back), D2H));
    for (size_t i = 0; i < sizeof(host); i++)
        EQUAL(back[i], i % PITCH < WIDTH ? host[i] : 0);
    OK(hip.hipMemset(device, 0, sizeof(host)));
    OK(hip.hipMemcpy2DAsync(device + 3, PITCH, host, WIDTH, WIDTH, ROWS, H2D, NULL));
    OK(hip.hipMemcpy2D(back, WIDTH, device + 3, PITCH, WIDTH, ROWS, D2H));
    EQUAL(memcmp(back, host, WIDTH * ROWS), 0);
    EQUAL(hip.hipMemcpy2D(back, WIDTH - 1, device, PITCH, WIDTH, ROWS, D2H), 12);
    EQUAL(hip.hipMemcpy2D(back, WIDTH, device, PITCH, WIDTH, PLANES * ROWS + 1, D2H), 1);
    EQUAL(hip.hipMemcpy2D(back, WIDTH, device + PITCH - WIDTH, PITCH, WIDTH, PLANES * ROWS, D2H),
          0);
    EQUAL(hip.counter("copies_strided"), 4);
    OK(hip.hipMemset2DAsync(device, PITCH, 1, WIDTH, ROWS, NULL));
    OK(hip.hipMemsetD32Async(device + PITCH * ROWS, 0x01020304, 4, NULL));
    OK(hip.hipMemcpy(back, device, sizeof(back), D2H));
    EQUAL(back[PITCH * (ROWS - 1) + WIDTH - 1], 1);
    EQUAL(back[PITCH * ROWS + 15], 1);
    EQUAL(back[PITCH * ROWS + 16] == 1, 0);
    OK(hip.hipFree(device));
}

static const struct test_case cases[] = {
    {"classes", classes}, {"unreadable", unreadable},         {"reachable", reachable},
    {"ranges", ranges},   {"registered", registered},         {"limit", limit},
    {"boxes", boxes},     {"stream_ordered", stream_ordered}, {"pieces", pieces},
};

int main(int argc, char **argv)
{
    return harness_run(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
