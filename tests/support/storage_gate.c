/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a test program: a gate before one file. While it is held, the calls that move
 * bytes of that file wait in it, and nothing reaches the file or comes from it. The program's first
 * thread, which calls MPI, does not wait, lest the test hang, and nobody waits longer than some
 * seconds; both count as trespassers.
 *
 * The program finds the three functions at the end by dlsym.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 3 };

ssize_t pread64(int fd, void *buffer, size_t bytes, off_t at);
ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off_t at);
ssize_t preadv64(int fd, const struct iovec *vector, int count, off_t at);
ssize_t pwritev64(int fd, const struct iovec *vector, int count, off_t at);

void storage_gate_hold(const char *path);
void storage_gate_release(void);
int storage_gate_trespassers(void);

static struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    struct stat file;
    bool held;
    int trespassers; /* since the gate was last held */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

/* With the lock held. */
static bool is_held(int fd)
{
    struct stat info;

    return gate.held && fstat(fd, &info) == 0 && info.st_dev == gate.file.st_dev &&
           info.st_ino == gate.file.st_ino;
}

static void pass(int fd)
{
    struct timespec end;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&gate.lock);
    if (is_held(fd) && gettid() == getpid())
        gate.trespassers++;
    else
        while (is_held(fd) && !late)
            late = pthread_cond_timedwait(&gate.opened, &gate.lock, &end);
    gate.trespassers += late != 0;
    pthread_mutex_unlock(&gate.lock);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread64");
    pass(fd);
    return real(fd, buffer, bytes, at);
}

ssize_t pread(int fd, void *buffer, size_t bytes, off_t at)
{
    return pread64(fd, buffer, bytes, at);
}

ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off_t);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
    pass(fd);
    return real(fd, buffer, bytes, at);
}

ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t at)
{
    return pwrite64(fd, buffer, bytes, at);
}

ssize_t preadv64(int fd, const struct iovec *vector, int count, off_t at)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "preadv64");
    pass(fd);
    return real(fd, vector, count, at);
}

ssize_t preadv(int fd, const struct iovec *vector, int count, off_t at)
{
    return preadv64(fd, vector, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *vector, int count, off_t at)
{
    static ssize_t (*real)(int, const struct iovec *, int, off_t);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwritev64");
    pass(fd);
    return real(fd, vector, count, at);
}

ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
    return pwritev64(fd, vector, count, at);
}

void storage_gate_hold(const char *path)
{
    pthread_mutex_lock(&gate.lock);
    gate.held = stat(path, &gate.file) == 0;
    gate.trespassers = 0;
    pthread_mutex_unlock(&gate.lock);
}

void storage_gate_release(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.held = false;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
}

int storage_gate_trespassers(void)
{
    pthread_mutex_lock(&gate.lock);
    int trespassers = gate.trespassers;
    pthread_mutex_unlock(&gate.lock);
    return trespassers;
}
