/* SPDX-License-Identifier: MIT */
/*
 * Faults of storage calls, put between the program and libc by the linker (--wrap).
 */
#include "fault_calls.h"
#include <errno.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

struct fault_calls fault_calls;

ssize_t __real_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __real_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_preadv(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset);

/* 1: the call goes on with at most *bytes; else what it returns. */
static ssize_t judge(size_t *bytes)
{
    const unsigned call = ++fault_calls.calls;

    if (*bytes > fault_calls.largest)
        fault_calls.largest = *bytes;
    if (fault_calls.interrupt_at && call >= fault_calls.interrupt_at &&
        call <= fault_calls.interrupt_at + fault_calls.interrupt_for) {
        errno = EINTR;
        return -1;
    }
    if (call == fault_calls.error_at) {
        errno = fault_calls.error;
        return -1;
    }
    if (call == fault_calls.zero_at || (fault_calls.zero_from && call >= fault_calls.zero_from))
        return 0;
    if (fault_calls.most && *bytes > fault_calls.most)
        *bytes = fault_calls.most;
    return 1;
}

ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    const ssize_t verdict = judge(&bytes);

    return verdict == 1 ? __real_pread(fd, buffer, bytes, offset) : verdict;
}

ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
    const ssize_t verdict = judge(&bytes);

    return verdict == 1 ? __real_pwrite(fd, buffer, bytes, offset) : verdict;
}

/* The vector calls move piece after piece, until one is cut short. */
static ssize_t move_pieces(int fd, const struct iovec *iov, int n, off_t offset, int writing)
{
    size_t bytes = 0;
    ssize_t moved = 0;

    for (int i = 0; i < n; ++i)
        bytes += iov[i].iov_len;
    const ssize_t verdict = judge(&bytes);
    if (verdict != 1)
        return verdict;
    for (int i = 0; i < n && bytes > 0; ++i) {
        const size_t part = iov[i].iov_len < bytes ? iov[i].iov_len : bytes;
        const ssize_t got = writing ? __real_pwrite(fd, iov[i].iov_base, part, offset + moved)
                                    : __real_pread(fd, iov[i].iov_base, part, offset + moved);

        if (got < 0)
            return moved ? moved : got;
        moved += got;
        bytes -= (size_t)got;
        if ((size_t)got < part)
            break;
    }
    return moved;
}

ssize_t __wrap_preadv(int fd, const struct iovec *iov, int n, off_t offset)
{
    return move_pieces(fd, iov, n, offset, 0);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
    return move_pieces(fd, iov, n, offset, 1);
}
