/* SPDX-License-Identifier: MIT */
/*
 * Stream bench: reads and writes queued on a GPU stream against the blocking calls, and a long
 * chain of GPU work, writes and reads that is checked. Uses the C library as a program would; CUDA
 * or HIP is loaded when it runs.
 *
 * stream_bench FILE [MiB]
 */
#include "hipio.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPEATS 5
#define CHAIN 1000
#define CHAIN_BYTES ((size_t)3 << 20 | 12345)
#define SMALL_OPS 500

static void *library;
static bool is_cuda;

/* The runtimes' functions take what fits in registers as integers. */
static int call(const char *hip, const char *cuda, uintptr_t a, uintptr_t b, uintptr_t c,
                uintptr_t d)
{
    int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);
    void *address = dlsym(library, is_cuda ? cuda : hip);

    if (!address) {
        fprintf(stderr, "stream_bench: the runtime has no %s\n", is_cuda ? cuda : hip);
        exit(2);
    }
    memcpy(&function, &address, sizeof function);
    int error = function(a, b, c, d);
    if (error) {
        fprintf(stderr, "stream_bench: %s failed: %d\n", is_cuda ? cuda : hip, error);
        exit(2);
    }
    return error;
}

static void start_gpu(void)
{
    static const char *const names[] = {"libcuda.so.1", "libamdhip64.so", "libamdhip64.so.7",
                                        "libamdhip64.so.6", "libamdhip64.so.5"};
    void *context;

    for (size_t i = 0; !library && i < sizeof names / sizeof names[0]; i++) {
        library = dlopen(names[i], RTLD_NOW);
        is_cuda = i == 0;
    }
    if (!library) {
        fprintf(stderr, "stream_bench: no GPU runtime\n");
        exit(77);
    }
    call("hipInit", "cuInit", 0, 0, 0, 0);
    if (is_cuda) {
        call("", "cuDevicePrimaryCtxRetain", (uintptr_t)&context, 0, 0, 0);
        call("", "cuCtxSetCurrent", (uintptr_t)context, 0, 0, 0);
    }
}

static void *allocate(size_t bytes)
{
    void *memory = NULL;

    call("hipMalloc", "cuMemAlloc_v2", (uintptr_t)&memory, bytes, 0, 0);
    return memory;
}

static void *create_stream(void)
{
    void *stream = NULL;

    call("hipStreamCreateWithFlags", "cuStreamCreate", (uintptr_t)&stream, 1, 0, 0);
    return stream;
}

static void synchronize(void *stream)
{
    call("hipStreamSynchronize", "cuStreamSynchronize", (uintptr_t)stream, 0, 0, 0);
}

static void fill(void *stream, void *memory, int value, size_t bytes)
{
    call("hipMemsetAsync", "cuMemsetD8Async", (uintptr_t)memory, (uintptr_t)value, bytes,
         (uintptr_t)stream);
}

static void copy(void *to, const void *from, size_t bytes)
{
    call("hipMemcpy", "cuMemcpy", (uintptr_t)to, (uintptr_t)from, bytes, 4);
    call("hipDeviceSynchronize", "cuCtxSynchronize", 0, 0, 0, 0);
}

static void must(ssize_t result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "stream_bench: %s\n", hipio_error_text());
    exit(1);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

/* ---- Bandwidth ---- */

static struct hipio_handle *file;
static void *memory;
static size_t bytes;

static double blocking(bool reads)
{
    double seconds[REPEATS];

    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        ssize_t done =
            reads ? hipio_read(file, memory, bytes, 0, 0) : hipio_write(file, memory, bytes, 0, 0);
        seconds[i] = now() - start;
        must(done);
    }
    return (double)bytes / median(seconds, REPEATS) * 1e-9;
}

/* Also how long the queueing call itself takes. */
static double streamed(bool reads, void *stream, double *queueing)
{
    double seconds[REPEATS], calls[REPEATS];
    off_t zero = 0;
    ssize_t done;

    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        must(reads ? hipio_read_async(file, memory, &bytes, &zero, &zero, &done, stream)
                   : hipio_write_async(file, memory, &bytes, &zero, &zero, &done, stream));
        calls[i] = now() - start;
        synchronize(stream);
        seconds[i] = now() - start;
        if (done != (ssize_t)bytes) {
            fprintf(stderr, "stream_bench: %zd of %zu bytes\n", done, bytes);
            exit(1);
        }
    }
    *queueing = median(calls, REPEATS) * 1e3;
    return (double)bytes / median(seconds, REPEATS) * 1e-9;
}

static void measure_bandwidth(void)
{
    static const char *const sizes[] = {"256K", "512K", "1M", "2M", "4M", "8M", "16M", "32M"};
    double write = blocking(false), read = blocking(true), queueing;

    printf("%zu MiB, median of %d\n", bytes >> 20, REPEATS);
    printf("%-28s read %6.2f GB/s   write %6.2f GB/s\n", "blocking", read, write);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *stream = create_stream();

        must(hipio_set("async_buffer_size", sizes[i]));
        must(hipio_stream_register(stream, HIPIO_FIXED_SIZE));
        double write_async = streamed(false, stream, &queueing);
        double read_async = streamed(true, stream, &queueing);
        printf("stream, buffer %-12s  read %6.2f GB/s   write %6.2f GB/s   (%3.0f %%, %3.0f %% of "
               "blocking; the call %.2f ms)\n",
               sizes[i], read_async, write_async, 100 * read_async / read,
               100 * write_async / write, queueing);
        must(hipio_stream_deregister(stream));
        call("hipStreamDestroy", "cuStreamDestroy_v2", (uintptr_t)stream, 0, 0, 0);
    }
    must(hipio_set("async_buffer_size", "1M"));
}

static void measure_small(void)
{
    static const size_t sizes[] = {4096, 65536, 1 << 20};
    void *stream = create_stream();
    off_t zero = 0;
    ssize_t done;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double start = now();
        for (int k = 0; k < SMALL_OPS; k++)
            must(hipio_read(file, memory, sizes[i], 0, 0));
        double apart = now();
        for (int k = 0; k < SMALL_OPS; k++) {
            must(hipio_read_async(file, memory, &sizes[i], &zero, &zero, &done, stream));
            synchronize(stream);
        }
        double one = now();
        for (int k = 0; k < SMALL_OPS; k++)
            must(hipio_read_async(file, memory, &sizes[i], &zero, &zero, &done, stream));
        synchronize(stream);
        double many = now();
        printf(
            "read of %7zu bytes: blocking %6.1f us, on a stream and waited for %6.1f us, %d in a "
            "row %6.1f us each\n",
            sizes[i], (apart - start) / SMALL_OPS * 1e6, (one - apart) / SMALL_OPS * 1e6, SMALL_OPS,
            (many - one) / SMALL_OPS * 1e6);
    }
    must(hipio_stream_deregister(stream));
}

/* ---- The chain ---- */

/* Work, a write of its result, work over it, a read of the result, CHAIN times; each read is copied
 * aside by the GPU in the order of the stream and looked at in the end. */
static int check_chain(void)
{
    const size_t kept = 4096;
    static ssize_t written[CHAIN], got[CHAIN];
    size_t size = CHAIN_BYTES;
    off_t offset = 12345, zero = 0, ends[CHAIN];
    unsigned char *back = allocate(CHAIN_BYTES), *aside = allocate(2 * kept * CHAIN);
    unsigned char *host = malloc(2 * kept * CHAIN);
    void *stream = create_stream();
    int wrong = 0;
    double start = now();

    for (int i = 0; i < CHAIN; i++) {
        fill(stream, memory, i % 251, size);
        must(hipio_write_async(file, memory, &size, &offset, &zero, &written[i], stream));
        fill(stream, memory, 0xFE, size);
        must(hipio_read_async(file, back, &size, &offset, &zero, &got[i], stream));
        ends[i] = (off_t)(size - kept);
        call("hipMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2",
             (uintptr_t)(aside + 2 * kept * (size_t)i), (uintptr_t)back, kept, (uintptr_t)stream);
        call("hipMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2",
             (uintptr_t)(aside + (2 * (size_t)i + 1) * kept), (uintptr_t)back + (uintptr_t)ends[i],
             kept, (uintptr_t)stream);
    }
    synchronize(stream);
    double seconds = now() - start;
    copy(host, aside, 2 * kept * CHAIN);
    for (int i = 0; i < CHAIN; i++) {
        bool right = written[i] == (ssize_t)size && got[i] == (ssize_t)size;
        for (size_t k = 0; k < 2 * kept && right; k++)
            right = host[2 * kept * (size_t)i + k] == i % 251;
        wrong += !right;
    }
    printf("chain of %d times work, write, work, read of %zu bytes: %d wrong, %.2f GB/s each way\n",
           CHAIN, size, wrong, (double)size * CHAIN / seconds * 1e-9);
    must(hipio_stream_deregister(stream));
    return wrong;
}

/* A whole transfer of pattern, out and back. */
static int check_large(void)
{
    unsigned char *host = malloc(bytes);
    void *stream = create_stream();
    off_t zero = 0;
    ssize_t out, in;
    size_t wrong = 0;

    for (size_t i = 0; i < bytes; i++)
        host[i] = (unsigned char)(i * 2654435761u >> 13);
    copy(memory, host, bytes);
    must(hipio_write_async(file, memory, &bytes, &zero, &zero, &out, stream));
    fill(stream, memory, 0, bytes);
    must(hipio_read_async(file, memory, &bytes, &zero, &zero, &in, stream));
    synchronize(stream);
    memset(host, 0, bytes);
    copy(host, memory, bytes);
    for (size_t i = 0; i < bytes; i++)
        wrong += host[i] != (unsigned char)(i * 2654435761u >> 13);
    printf("%zu MiB of pattern out and back on a stream: %zu bytes wrong\n", bytes >> 20, wrong);
    must(hipio_stream_deregister(stream));
    free(host);
    return wrong != 0 || out != (ssize_t)bytes || in != (ssize_t)bytes;
}

int main(int argc, char **argv)
{
    int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    char report[8192];
    uint64_t pinned;

    if (fd < 0) {
        fprintf(stderr, "usage: stream_bench FILE [MiB]\n");
        return 2;
    }
    bytes = (argc > 2 ? strtoul(argv[2], NULL, 10) : 1024) << 20;
    if (bytes < CHAIN_BYTES + 65536)
        bytes = CHAIN_BYTES + 65536;
    start_gpu();
    memory = allocate(bytes);
    must(hipio_register_file(fd, argv[1], &file));
    fill(NULL, memory, 1, bytes);
    int wrong = check_large();
    wrong += check_chain();
    measure_bandwidth();
    measure_small();
    must(hipio_statistic("pinned_now", &pinned));
    printf("pinned now: %llu bytes\n", (unsigned long long)pinned);
    hipio_report(report, sizeof report);
    fputs(report, stdout);
    hipio_deregister_file(file);
    hipio_shutdown();
    return wrong != 0;
}
