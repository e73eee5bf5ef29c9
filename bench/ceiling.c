/* SPDX-License-Identifier: MIT */
/*
 * Ceiling: threads that read, write and map a cached file in chunks of 1 MiB, and the link to the
 * GPU.
 */
#include "ceiling.h"
#include "gpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CHUNK ((uint64_t)1 << 20)
#define THREADS_MAX 256

enum way { CALL_READ, CALL_WRITE, MAP_READ, MAP_WRITE, WAYS };

static const char *const names[WAYS] = {"pread, cached file", "pwrite, cached file",
                                        "copy from a mapping", "copy to a mapping"};

struct worker {
    enum way way;
    int fd;
    char *map;
    uint64_t bytes;
    int number;
    int threads;
    bool failed;
};

static bool move_chunk(const struct worker *worker, char *chunk, uint64_t at)
{
    switch (worker->way) {
    case CALL_READ:
        return pread(worker->fd, chunk, CHUNK, (off_t)at) == (ssize_t)CHUNK;
    case CALL_WRITE:
        return pwrite(worker->fd, chunk, CHUNK, (off_t)at) == (ssize_t)CHUNK;
    case MAP_READ:
        memcpy(chunk, worker->map + at, CHUNK);
        /* A copy that nobody reads could be left out. */
        __asm__ volatile("" : : "r"(chunk) : "memory");
        return true;
    default:
        memcpy(worker->map + at, chunk, CHUNK);
        return true;
    }
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    char *chunk = malloc(CHUNK);

    worker->failed = !chunk;
    if (chunk)
        memset(chunk, 1, CHUNK);
    for (uint64_t at = (uint64_t)worker->number * CHUNK; !worker->failed && at < worker->bytes;
         at += (uint64_t)worker->threads * CHUNK)
        worker->failed = !move_chunk(worker, chunk, at);
    free(chunk);
    return NULL;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* GB/s, or 0 after a failure. */
static double run(const struct worker *job)
{
    static struct worker worker[THREADS_MAX];
    static pthread_t thread[THREADS_MAX];
    const double start = seconds();
    bool failed = false;
    int n = 0;

    for (; n < job->threads; n++) {
        worker[n] = *job;
        worker[n].number = n;
        if (pthread_create(&thread[n], NULL, work, &worker[n]) != 0)
            break;
    }
    failed = n < job->threads;
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        failed |= worker[i].failed;
    }
    return failed ? 0 : 1e-9 * (double)job->bytes / (seconds() - start);
}

static void print_line(const char *what, const char *system, int threads, double first,
                       double later)
{
    printf("ceiling\t%s\t%s\t%d\t%.3f\t%.3f\n", what, system, threads, first, later);
    fflush(stdout);
}

static void measure_link(uint64_t bytes)
{
    if (!gpu_available())
        return;
    char *pinned = gpu_alloc(GPU_PINNED, bytes);
    char *device = gpu_alloc(GPU_DEVICE, bytes);
    double rate[2][2];

    memset(pinned, 1, bytes);
    for (int i = 0; i < 4; i++) {
        const double start = seconds();
        if (i % 2)
            gpu_copy(pinned, device, bytes);
        else
            gpu_copy(device, pinned, bytes);
        rate[i % 2][i / 2] = 1e-9 * (double)bytes / (seconds() - start);
    }
    print_line("pinned memory to GPU", "-", 1, rate[0][0], rate[0][1]);
    print_line("GPU to pinned memory", "-", 1, rate[1][0], rate[1][1]);
    gpu_free(GPU_DEVICE, device);
    gpu_free(GPU_PINNED, pinned);
}

static bool measure_file(struct worker *job, const char *system, int most)
{
    for (int threads = 1; threads <= most; threads *= threads < 4 ? 4 : 2) {
        job->threads = threads;
        for (int way = 0; way < WAYS; way++) {
            job->way = (enum way)way;
            /* Each number of threads meets pages that this process has not mapped yet. */
            job->map = mmap(NULL, job->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, job->fd, 0);
            if (job->map == MAP_FAILED)
                return false;
            const double first = run(job);
            print_line(names[way], system, threads, first, run(job));
            munmap(job->map, job->bytes);
        }
    }
    return true;
}

bool ceiling_measure(const char *folder, const char *system, uint64_t bytes, int threads)
{
    char path[512];
    struct worker job = {.way = CALL_WRITE, .bytes = bytes / CHUNK * CHUNK, .threads = 1};

    snprintf(path, sizeof path, "%s/hipio-bench-ceiling", folder);
    job.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (job.fd < 0) {
        perror(path);
        return false;
    }
    unlink(path);
    bool done = run(&job) > 0; /* makes the file */
    if (done)
        done = measure_file(&job, system, threads < THREADS_MAX ? threads : THREADS_MAX);
    close(job.fd);
    if (done)
        measure_link(bytes / 4);
    return done;
}
