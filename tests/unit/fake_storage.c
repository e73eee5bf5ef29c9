/* SPDX-License-Identifier: MIT */
/*
 * Fake storage: pread and pwrite with a bad byte.
 */
#include "fake_storage.h"
#include "status.h"
#include "storage/storage.h"
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic int64_t bad_offset = -1;
static atomic_int bad_error;
static _Atomic uint64_t calls;

void fake_storage_fail(int64_t offset, int error)
{
    bad_error = error;
    bad_offset = offset;
}

static void (*observer)(void);

void fake_storage_observe(void (*function)(void))
{
    observer = function;
}

uint64_t fake_storage_calls(void)
{
    return calls;
}

void fake_storage_reset(void)
{
    bad_offset = -1;
    calls = 0;
}

/* One range: stops at the bad byte, or where a read meets the end. */
static int transfer(struct hipio_file *file, enum hipio_op op, const struct iovec *iov,
                    int64_t offset, uint64_t *moved)
{
    int fd = hipio_file_descriptor(file);
    int64_t bad = bad_offset;
    uint64_t length = iov->iov_len;

    calls++;
    if (observer)
        observer();
    *moved = 0;
    if (bad >= offset && (uint64_t)(bad - offset) < length)
        length = (uint64_t)(bad - offset);
    while (*moved < length) {
        char *at = (char *)iov->iov_base + *moved;
        ssize_t n = op == HIPIO_READ ? pread(fd, at, length - *moved, offset + (int64_t)*moved)
                                     : pwrite(fd, at, length - *moved, offset + (int64_t)*moved);
        if (n < 0)
            return hipio_status_set(-errno, "fake storage: errno %d", errno);
        if (n == 0)
            return 0;
        *moved += (uint64_t)n;
    }
    if (length < iov->iov_len)
        return hipio_status_set(bad_error, "fake storage: the byte at %lld is bad", (long long)bad);
    return 0;
}

static int packed(struct hipio_file *file, enum hipio_op op, void *buffer,
                  struct hipio_cursor *cursor, int64_t base, uint64_t length, uint64_t *moved)
{
    int64_t offset;

    *moved = 0;
    while (*moved < length) {
        uint64_t got;
        uint64_t n = hipio_cursor_next_run(cursor, length - *moved, &offset);
        struct iovec piece = {(char *)buffer + *moved, n};
        int status = transfer(file, op, &piece, base + offset, &got);
        *moved += got;
        if (status < 0 || got < n)
            return status;
    }
    return 0;
}

static int vector(struct hipio_file *file, enum hipio_op op, const struct iovec *iov, int n,
                  int64_t offset, uint64_t *moved)
{
    *moved = 0;
    for (int i = 0; i < n; i++) {
        uint64_t got;
        int status = transfer(file, op, &iov[i], offset + (int64_t)*moved, &got);
        *moved += got;
        if (status < 0 || got < iov[i].iov_len)
            return status;
    }
    return 0;
}

const struct hipio_storage hipio_storage_buffered = {
    .name = "fake", .packed = packed, .vector = vector};
const struct hipio_storage hipio_storage_mapped = {
    .name = "fake", .packed = packed, .vector = vector};
