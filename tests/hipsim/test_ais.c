/* SPDX-License-Identifier: MIT */
/* hipAmdFileRead and hipAmdFileWrite. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { H2D = 1, D2H = 2, PAGE = 4096, PAGES = 4, SIZE = PAGES * PAGE, VERSION = 70200000 };

typedef union {
    void *pointer;
    int fd;
    char bytes[8];
} handle;

typedef int transfer(handle, void *, uint64_t, int64_t, uint64_t *, int32_t *);

static transfer *reader, *writer;
static char pattern[SIZE];

static void look_up(void)
{
    EQUAL(hip.hipGetProcAddress("hipAmdFileRead", (void **)&reader, VERSION, 0, NULL), 0);
    EQUAL(hip.hipGetProcAddress("hipAmdFileWrite", (void **)&writer, VERSION, 2, NULL), 0);
}

/* A file that holds the pattern. */
static handle new_file(int flags)
{
    char path[] = "hipsim-test-XXXXXX";
    int fd = mkstemp(path);
    handle file = {.pointer = NULL};

    TRUE(fd >= 0);
    for (size_t i = 0; i < SIZE; i++)
        pattern[i] = (char)(i * 13 + i / PAGE);
    EQUAL(write(fd, pattern, SIZE), SIZE);
    close(fd);
    file.fd = open(path, O_RDWR | flags);
    unlink(path);
    return file;
}

struct result {
    int rc;
    int64_t copied;
    int status;
};

static struct result call(transfer *function, handle file, void *device, uint64_t size,
                          int64_t offset)
{
    uint64_t copied = 111;
    int32_t status = 222;
    int rc = function(file, device, size, offset, &copied, &status);

    return (struct result){rc, (int64_t)copied, status};
}

static void expect(struct result result, int rc, int64_t copied, int status)
{
    EQUAL(result.rc, rc);
    EQUAL(result.copied, copied);
    EQUAL(result.status, status);
}

static void expect_pattern(void *device)
{
    char back[SIZE];

    OK(hip.hipMemcpy(back, device, SIZE, D2H));
    EQUAL(memcmp(back, pattern, SIZE), 0);
}

/* The entry points are reached by hipGetProcAddress of version 7 and no other way. */
static void entry(void)
{
    int status = -1;
    void *function = NULL;
    char name[] = "hipAmdFileRead";

    EQUAL(hip.hipGetProcAddress != NULL, hip.major >= 6);
    if (!hip.hipGetProcAddress)
        return;
    OK(hip.hipGetProcAddress("hipMalloc", &function, VERSION, 0, &status));
    TRUE(*(void **)&hip.hipMalloc == function);
    EQUAL(status, 0);
    EQUAL(hip.hipGetProcAddress("hipNoSuchThing", &function, VERSION, 0, &status), 1);
    EQUAL(status, 1);
    EQUAL(hip.hipGetProcAddress(name, &function, VERSION, 3, &status), 1);
    if (hip.major < 7 || getenv("HIPSIM_AIS")) {
        EQUAL(hip.hipGetProcAddress(name, &function, VERSION, 0, &status), 1);
        EQUAL(status, 1);
        return;
    }
    EQUAL(hip.hipGetProcAddress(name, &function, 60200000, 0, &status), 1);
    EQUAL(status, 2);
    OK(hip.hipGetProcAddress(name, &function, VERSION, 0, &status));
    EQUAL(status, 0);
}

static void healthy(int flags)
{
    handle file = new_file(flags);
    char *device = device_alloc(SIZE + PAGE);

    if (file.fd < 0)
        return; /* the file system has no O_DIRECT */
    look_up();
    expect(call(reader, file, device, SIZE, 0), 0, SIZE, 0);
    expect_pattern(device);
    EQUAL(ftruncate(file.fd, 0), 0);
    expect(call(writer, file, device, SIZE, PAGE), 0, SIZE, 0);
    EQUAL(lseek(file.fd, 0, SEEK_END), SIZE + PAGE);
    expect(call(reader, file, device, SIZE, PAGE), 0, SIZE, 0);
    expect_pattern(device);
    /* At and across the end of the file. */
    expect(call(reader, file, device, SIZE + PAGE, 2 * PAGE), 0, SIZE - PAGE, 0);
    expect(call(reader, file, device, PAGE, SIZE + PAGE), 0, 0, 0);
    EQUAL(hip.counter("ais_buffered") > 0, !(flags & O_DIRECT));
    EQUAL(hip.counter("ais_bytes"), 4 * SIZE - PAGE);
    close(file.fd);
    OK(hip.hipFree(device));
}

static void direct(void)
{
    healthy(O_DIRECT);
}

static void buffered(void)
{
    healthy(0);
}

/* Run with HIPSIM_DEVICES=2. */
static void refusals(void)
{
    handle file = new_file(0), closed = {.pointer = NULL};
    char *device = device_alloc(SIZE), *pinned = pinned_alloc(SIZE);

    look_up();
    closed.fd = 1000;
    expect(call(reader, file, device, 0, 0), 0, 111, 222);
    expect(call(reader, file, device, PAGE + 1, 0), 999, 0, -EINVAL);
    expect(call(reader, file, device, PAGE, 512), 999, 0, -EINVAL);
    expect(call(reader, file, device + 512, PAGE, 0), 999, 0, -EINVAL);
    expect(call(reader, closed, device, PAGE, 0), 999, 0, -EBADF);
    expect(call(reader, file, device, SIZE + PAGE, 0), 999, 111, 222);
    expect(call(reader, file, pinned, PAGE, 0), 999, 111, 222);
    expect(call(reader, file, pattern, PAGE, 0), 999, 111, 222);
    expect(call(reader, file, NULL, PAGE, 0), 1, 111, 222);
    expect(call(reader, file, device, PAGE, -PAGE), 1, 111, 222);
    OK(hip.hipSetDevice(1));
    expect(call(reader, file, device, PAGE, 0), 999, 111, 222);
    OK(hip.hipSetDevice(0));
    expect(call(reader, file, device, PAGE, 0), 0, PAGE, 0);
    EQUAL(hip.hipGetLastError(), 999 * (hip.major >= 7));
    close(file.fd);
}

static void too_long(void)
{
    handle file = new_file(0);
    char *device = device_alloc(UINT64_C(0x80000000));

    look_up();
    expect(call(reader, file, device, UINT64_C(0x7ffff000) + PAGE, 0), 999, 0, -ESPIPE);
    expect(call(reader, file, device, 0x7ffff000, 0), 0, SIZE, 0);
    close(file.fd);
}

/* Run with HIPSIM_AIS=refuse and with HIPSIM_APU=1. */
static void refused(void)
{
    handle file = new_file(0);

    look_up();
    expect(call(writer, file, device_alloc(SIZE), PAGE, 0), 999, 0, -ENODEV);
    close(file.fd);
}

/* Run with HIPSIM_AIS=strict: no file system in memory. */
static void strict(void)
{
    int fd = open("/dev/shm", O_RDWR | O_TMPFILE, 0600);
    handle file = {.pointer = NULL};

    if (fd < 0)
        return;
    file.fd = fd;
    look_up();
    expect(call(writer, file, device_alloc(SIZE), PAGE, 0), 999, 0, -ENODEV);
    close(fd);
}

/* hipAmdFileRead:1=errnoENODEV;hipAmdFileRead:2=errnoEREMOTEIO/8192;hipAmdFileRead:3=short/4096;
 * hipAmdFileRead:4=101 */
static void faults(void)
{
    handle file = new_file(0);
    char *device = device_alloc(SIZE);

    look_up();
    expect(call(reader, file, device, SIZE, 0), 999, 0, -ENODEV);
    expect(call(reader, file, device, SIZE, 0), 999, 2 * PAGE, -EREMOTEIO);
    expect(call(reader, file, device, SIZE, 0), 0, PAGE, 0);
    expect(call(reader, file, device, SIZE, 0), 101, 111, 222);
    expect(call(reader, file, device, SIZE, 0), 0, SIZE, 0);
    expect_pattern(device);
    close(file.fd);
}

static const struct test_case cases[] = {
    {"entry", entry},       {"direct", direct},   {"buffered", buffered}, {"refusals", refusals},
    {"too_long", too_long}, {"refused", refused}, {"strict", strict},     {"faults", faults},
};

int main(int argc, char **argv)
{
    return harness_run(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
