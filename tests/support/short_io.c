/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a test program: system calls that move data of regular files do what the kernel
 * may do and seldom does. They move at most 1000 bytes. With HIPIO_TEST_INTERRUPT set, every
 * seventh call is interrupted (EINTR), which ROMIO's own code does not survive. With
 * HIPIO_TEST_STUCK_WRITE set, writes move nothing, for ever.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST = 1000, INTERRUPT_EVERY = 7, VECTORS = 8 };

ssize_t pread64(int fd, void *buffer, size_t bytes, off_t at);
ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off_t at);

ssize_t preadv64(int fd, const struct iovec *vector, int count, off_t at);
ssize_t pwritev64(int fd, const struct iovec *vector, int count, off_t at);

static int regular(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

/* What becomes of a call on that descriptor: -1 it is interrupted, else how many bytes it may
 * move. */
static ssize_t allowed(int fd, size_t bytes)
{
    static atomic_uint calls;

    if (!regular(fd))
        return (ssize_t)bytes;
    if (getenv("HIPIO_TEST_INTERRUPT") &&
        atomic_fetch_add(&calls, 1) % INTERRUPT_EVERY == INTERRUPT_EVERY - 1) {
        errno = EINTR;
        return -1;
    }
    return bytes < MOST ? (ssize_t)bytes : MOST;
}

static int stuck(int fd)
{
    return getenv("HIPIO_TEST_STUCK_WRITE") && regular(fd);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    ssize_t may = allowed(fd, bytes);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread64");
    return may < 0 ? may : real(fd, buffer, (size_t)may, at);
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t at)
{
    return pread64(fd, buffer, bytes, at);
}

ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);
    ssize_t may = allowed(fd, bytes);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
    if (stuck(fd))
        return 0;
    return may < 0 ? may : real(fd, buffer, (size_t)may, at);
}

ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t at)
{
    return pwrite64(fd, buffer, bytes, at);
}

/* Cuts a vector to its first entries and MOST bytes; returns how many entries are left. */
static int cut(const struct iovec *vector, int count, struct iovec out[VECTORS])
{
    size_t room = MOST;
    int entries = 0;

    while (entries < count && entries < VECTORS && room > 0) {
        out[entries] = vector[entries];
        if (out[entries].iov_len > room)
            out[entries].iov_len = room;
        room -= out[entries].iov_len;
        entries++;
    }
    return entries;
}

ssize_t preadv64(int fd, const struct iovec *vector, int count, off_t at)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t);
    struct iovec some[VECTORS];

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "preadv64");
    if (allowed(fd, MOST) < 0)
        return -1;
    if (!regular(fd))
        return real(fd, vector, count, at);
    return real(fd, some, cut(vector, count, some), at);
}

ssize_t preadv(int fd, const struct iovec *vector, int count, off_t at)
{
    return preadv64(fd, vector, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *vector, int count, off_t at)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t);
    struct iovec some[VECTORS];

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwritev64");
    if (stuck(fd))
        return 0;
    if (allowed(fd, MOST) < 0)
        return -1;
    if (!regular(fd))
        return real(fd, vector, count, at);
    return real(fd, some, cut(vector, count, some), at);
}

ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
    return pwritev64(fd, vector, count, at);
}
