/* SPDX-License-Identifier: MIT */
/*
 * The kernel's PTX on a real NVIDIA GPU, by the driver API alone: the random trials of
 * support/kernel_trial.h, and, with the argument "bench", how fast strided memory reaches pinned
 * memory and comes back. Exit code 77: no GPU here.
 */
#include "kernel_trial.h"
#include "kernels.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIALS 5000
#define MIB ((uint64_t)1 << 20)
#define BENCH_BYTES (256 * MIB)
#define BENCH_SPREAD 4 /* memory bytes for each packed byte */
#define TABLE_BYTES (64 * MIB)

typedef unsigned long long address_t;

/* The driver's functions, and what belongs to the one device in use. */
static struct {
    int (*init)(unsigned);
    int (*device_count)(int *);
    int (*device_get)(int *, int);
    int (*attribute)(int *, int, int);
    int (*name)(char *, int, int);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*alloc)(address_t *, size_t);
    int (*host_alloc)(void **, size_t, unsigned);
    int (*host_pointer)(address_t *, void *, unsigned);
    int (*load)(void **, const void *);
    int (*function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*stream_create)(void **, unsigned);
    int (*stream_synchronize)(void *);
    int (*to_device)(address_t, const void *, size_t);
    int (*to_host)(void *, address_t, size_t);
    int (*to_host_async)(void *, address_t, size_t, void *);
    int (*to_device_async)(address_t, const void *, size_t, void *);
    void *kernel;
    void *stream;
    int multiprocessors;
} gpu;

static void must(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "%s failed: %d\n", what, error);
    exit(1);
}

static void symbol(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);

    if (!address) {
        fprintf(stderr, "libcuda has no %s\n", name);
        exit(1);
    }
    memcpy(function, &address, sizeof address);
}

static bool load_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int count = 0;

    if (!library)
        return false;
    symbol(library, "cuInit", &gpu.init);
    symbol(library, "cuDeviceGetCount", &gpu.device_count);
    symbol(library, "cuDeviceGet", &gpu.device_get);
    symbol(library, "cuDeviceGetAttribute", &gpu.attribute);
    symbol(library, "cuDeviceGetName", &gpu.name);
    symbol(library, "cuDevicePrimaryCtxRetain", &gpu.retain);
    symbol(library, "cuCtxSetCurrent", &gpu.set_current);
    symbol(library, "cuMemAlloc_v2", &gpu.alloc);
    symbol(library, "cuMemHostAlloc", &gpu.host_alloc);
    symbol(library, "cuMemHostGetDevicePointer_v2", &gpu.host_pointer);
    symbol(library, "cuModuleLoadData", &gpu.load);
    symbol(library, "cuModuleGetFunction", &gpu.function);
    symbol(library, "cuLaunchKernel", &gpu.launch);
    symbol(library, "cuStreamCreate", &gpu.stream_create);
    symbol(library, "cuStreamSynchronize", &gpu.stream_synchronize);
    symbol(library, "cuMemcpyHtoD_v2", &gpu.to_device);
    symbol(library, "cuMemcpyDtoH_v2", &gpu.to_host);
    symbol(library, "cuMemcpyDtoHAsync_v2", &gpu.to_host_async);
    symbol(library, "cuMemcpyHtoDAsync_v2", &gpu.to_device_async);
    return gpu.init(0) == 0 && gpu.device_count(&count) == 0 && count > 0;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void set_up(void)
{
    struct hipio_kernel_image image;
    void *context, *module;
    char name[100];
    int device;

    must(gpu.device_get(&device, 0), "cuDeviceGet");
    must(gpu.retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(gpu.set_current(context), "cuCtxSetCurrent");
    must(gpu.name(name, sizeof name, device), "cuDeviceGetName");
    must(gpu.attribute(&gpu.multiprocessors, 16, device), "cuDeviceGetAttribute");
    must(hipio_kernel_image("cuda", &image), "hipio_kernel_image");
    double start = now();
    must(gpu.load(&module, image.data), "cuModuleLoadData");
    must(gpu.function(&gpu.kernel, module, HIPIO_KERNEL_MOVE), "cuModuleGetFunction");
    printf("%s, %d multiprocessors; module loaded in %.1f ms\n", name, gpu.multiprocessors,
           1e3 * (now() - start));
    must(gpu.stream_create(&gpu.stream, 1), "cuStreamCreate");
}

static address_t device_alloc(size_t bytes)
{
    address_t address;

    must(gpu.alloc(&address, bytes), "cuMemAlloc");
    return address;
}

static void *pinned_alloc(size_t bytes, address_t *address)
{
    void *pinned;

    must(gpu.host_alloc(&pinned, bytes, 3), "cuMemHostAlloc");
    must(gpu.host_pointer(address, pinned, 0), "cuMemHostGetDevicePointer");
    return pinned;
}

/* From ordinary memory the driver's call returns before the last bytes are there, and our stream
 * does not wait for the default one, by which they go. */
static void upload(address_t to, const void *from, size_t bytes)
{
    must(gpu.to_device(to, from, bytes), "cuMemcpyHtoD");
    must(gpu.stream_synchronize(NULL), "cuStreamSynchronize");
}

static void launch(struct hipio_kernel_move *move, unsigned blocks)
{
    void *params[] = {move};

    must(gpu.launch(gpu.kernel, blocks, 1, 1, HIPIO_KERNEL_THREADS, 1, 1, 0, gpu.stream, params,
                    NULL),
         "cuLaunchKernel");
}

static void wait(void)
{
    must(gpu.stream_synchronize(gpu.stream), "cuStreamSynchronize");
}

/* Runs a trial on the GPU, between device memory and pinned memory, from the state in `start`. */
static void run_on_gpu(const struct trial *trial, const struct trial_buffers *start,
                       struct trial_buffers *out)
{
    static address_t memory, packed_at, table_at;
    static void *packed, *table;
    struct hipio_kernel_move move = trial->move;

    if (!memory) {
        memory = device_alloc(sizeof start->memory);
        packed = pinned_alloc(sizeof start->packed, &packed_at);
        table = pinned_alloc(sizeof trial->table, &table_at);
    }
    upload(memory, start->memory, sizeof start->memory);
    memcpy(packed, start->packed, sizeof start->packed);
    memcpy(table, &trial->table, sizeof trial->table);
    move.memory += memory;
    move.packed = packed_at + trial->packed_at;
    move.table = move.table ? table_at : 0;
    launch(&move, 1 + (unsigned)trial_draw(4));
    wait();
    must(gpu.to_host(out->memory, memory, sizeof out->memory), "cuMemcpyDtoH");
    memcpy(out->packed, packed, sizeof out->packed);
}

static void check_trials(void)
{
    struct trial *trial = malloc(sizeof *trial);
    struct trial_buffers *expected = aligned_alloc(64, sizeof *expected);
    struct trial_buffers *got = aligned_alloc(64, sizeof *got);

    trial_fill(expected);
    for (int i = 0; i < TRIALS; i++) {
        uint64_t seed = trial_seed();

        trial_make(trial);
        memcpy(got, expected, sizeof *got);
        trial_run_plainly(trial, expected);
        run_on_gpu(trial, got, got);
        if (memcmp(expected, got, sizeof *got) != 0) {
            fprintf(stderr, "trial %d, seed %llu: shape %u, way %u, swap %u, %llu bytes differ\n",
                    i, (unsigned long long)seed, trial->move.shape, trial->move.way,
                    trial->move.swap, (unsigned long long)trial->move.bytes);
            exit(1);
        }
    }
    printf("%d trials are right\n", TRIALS);
    free(trial);
    free(expected);
    free(got);
}

/* Late-bound sizes, written by the host between launches of one stream. */
static void check_late(void)
{
    address_t memory = device_alloc(MIB), packed_at, size_at;
    unsigned char *packed = pinned_alloc(MIB, &packed_at), *source = malloc(MIB);
    uint64_t *size = pinned_alloc(64, &size_at);
    struct hipio_kernel_move move = {.packed = packed_at,
                                     .bytes = MIB,
                                     .memory = memory,
                                     .shape = HIPIO_KERNEL_STRIP,
                                     .length = UINT64_MAX,
                                     .late_size = size_at,
                                     .late_done = 100,
                                     .late_offset = size_at + 8};

    for (size_t i = 0; i < MIB; i++)
        source[i] = (unsigned char)(i * 7 + i / 251);
    upload(memory, source, MIB);
    for (uint64_t due = 0; due < 200000; due += 12347) {
        memset(packed, 0xee, MIB);
        size[0] = 100 + due;
        size[1] = due / 2;
        launch(&move, hipio_kernel_blocks(move.bytes, gpu.multiprocessors));
        wait();
        if (memcmp(packed, source + due / 2, due) != 0 || packed[due] != 0xee) {
            fprintf(stderr, "late size %llu is not kept to\n", (unsigned long long)due);
            exit(1);
        }
    }
    printf("late sizes are right\n");
    free(source);
}

/* What the bench moves: packed position p lies in memory as `shape` says. */
struct subject {
    address_t memory, packed, table;
    char *table_host;
    void *pinned;
};

/* Times `chunk` bytes at a time through one pinned chunk until BENCH_BYTES have gone; GB/s, best of
 * three. The move's `bytes` are a chunk's; memory advances by `step`. */
static double time_moves(struct hipio_kernel_move move, uint64_t chunk, uint64_t step)
{
    const uint64_t memory = move.memory;
    double best = 0;

    move.bytes = chunk;
    for (int turn = 0; turn < 4; turn++) {
        double start = now();

        for (uint64_t done = 0; done < BENCH_BYTES; done += chunk) {
            move.memory = memory + done / chunk * step;
            launch(&move, hipio_kernel_blocks(chunk, gpu.multiprocessors));
        }
        wait();
        double rate = (double)BENCH_BYTES / (now() - start) / 1e9;
        if (turn > 0 && rate > best)
            best = rate;
    }
    return best;
}

static double time_copies(const struct subject *subject, uint64_t chunk, bool to_host)
{
    double best = 0;

    for (int turn = 0; turn < 4; turn++) {
        double start = now();

        for (uint64_t done = 0; done < BENCH_BYTES; done += chunk)
            must(to_host
                     ? gpu.to_host_async(subject->pinned, subject->memory + done, chunk, gpu.stream)
                     : gpu.to_device_async(subject->memory + done, subject->pinned, chunk,
                                           gpu.stream),
                 "copy");
        wait();
        double rate = (double)BENCH_BYTES / (now() - start) / 1e9;
        if (turn > 0 && rate > best)
            best = rate;
    }
    return best;
}

static struct hipio_kernel_move strip_of(const struct subject *subject, uint64_t block)
{
    return (struct hipio_kernel_move){.packed = subject->packed,
                                      .memory = subject->memory,
                                      .shape = HIPIO_KERNEL_STRIP,
                                      .length = block,
                                      .stride = (int64_t)(block * BENCH_SPREAD)};
}

static void report(const char *what, uint64_t block, struct hipio_kernel_move move)
{
    static const uint64_t chunks[] = {MIB, 4 * MIB, 64 * MIB};

    printf("%-22s %6llu", what, (unsigned long long)block);
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++)
        for (int way = 0; way < 2; way++) {
            move.way = way ? HIPIO_KERNEL_UNPACK : HIPIO_KERNEL_PACK;
            printf("  %6.1f", time_moves(move, chunks[i], chunks[i] * BENCH_SPREAD));
        }
    printf("\n");
}

/* Blocks in no order inside each chunk's part of memory, of one length; table of at most 1 MiB of
 * packed bytes, so larger chunks are not timed. */
static void report_blocks(const struct subject *subject, uint64_t block)
{
    const uint64_t n = MIB / block;
    int64_t *offset = (int64_t *)subject->table_host;
    struct hipio_kernel_move move = strip_of(subject, block);

    for (uint64_t i = 0; i < n; i++) {
        offset[i] = (int64_t)(i * 7919 % n * block * BENCH_SPREAD);
        move.bits |= (uint64_t)offset[i] | block;
    }
    move.shape = HIPIO_KERNEL_BLOCKS;
    move.table = subject->table;
    printf("%-22s %6llu", "offsets, no order", (unsigned long long)block);
    for (int way = 0; way < 2; way++) {
        move.way = way ? HIPIO_KERNEL_UNPACK : HIPIO_KERNEL_PACK;
        printf("  %6.1f", time_moves(move, MIB, MIB * BENCH_SPREAD));
    }
    printf("\n");
}

/* Entries of `rows` blocks each, as planes of a 3-D array are. */
static void report_list(const struct subject *subject, uint64_t block, uint64_t rows)
{
    const uint64_t n = MIB / block / rows;
    struct hipio_kernel_entry *entry = (struct hipio_kernel_entry *)subject->table_host;
    struct hipio_kernel_move move = strip_of(subject, block);

    for (uint64_t i = 0; i < n; i++) {
        entry[i] = (struct hipio_kernel_entry){
            .packed = i * rows * block,
            .offset = (int64_t)(i * rows * block * BENCH_SPREAD),
            .length = block,
            .stride = move.stride / 2,
        };
        move.bits |=
            entry[i].packed | (uint64_t)entry[i].offset | block | (uint64_t)entry[i].stride;
    }
    move.shape = HIPIO_KERNEL_LIST;
    move.table = subject->table;
    move.entries = n;
    printf("list, %3llu rows an entry %6llu", (unsigned long long)rows, (unsigned long long)block);
    for (int way = 0; way < 2; way++) {
        move.way = way ? HIPIO_KERNEL_UNPACK : HIPIO_KERNEL_PACK;
        printf("  %6.1f", time_moves(move, MIB, MIB * BENCH_SPREAD));
    }
    printf("\n");
}

static void bench(void)
{
    static const uint64_t blocks[] = {1, 2, 3, 4, 7, 8, 12, 16, 24, 64, 100, 512, 4096, 65536};
    struct subject subject = {.memory = device_alloc(BENCH_BYTES * (BENCH_SPREAD + 1))};

    subject.pinned = pinned_alloc(64 * MIB, &subject.packed);
    subject.table_host = pinned_alloc(TABLE_BYTES, &subject.table);
    memset(subject.pinned, 1, 64 * MIB);
    printf(
        "GB/s of packed bytes, pinned memory            1 MiB at a time   4 MiB          64 MiB\n"
        "                        block    pack  unpack    pack  unpack    pack  unpack\n");
    printf("%-22s %6s", "copy engine", "all");
    for (uint64_t chunk = MIB; chunk <= 64 * MIB; chunk *= chunk == MIB ? 4 : 16)
        printf("  %6.1f  %6.1f", time_copies(&subject, chunk, true),
               time_copies(&subject, chunk, false));
    printf("\n");
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        report("strip", blocks[i], strip_of(&subject, blocks[i]));
    struct hipio_kernel_move move = strip_of(&subject, 1);
    move.length = UINT64_MAX;
    report("one block", 0, move);
    move.memory += 3;
    report("one block, 3 off", 0, move);
    move = strip_of(&subject, 64);
    move.swap = 8;
    report("strip, swapped by 8", 64, move);
    report_blocks(&subject, 4);
    report_blocks(&subject, 8);
    report_blocks(&subject, 64);
    report_list(&subject, 64, 1);
    report_list(&subject, 8, 1);
    report_list(&subject, 64, 16);
    report_list(&subject, 8, 16);
}

int main(int argc, char **argv)
{
    if (!load_driver()) {
        fprintf(stderr, "no NVIDIA GPU here\n");
        return 77;
    }
    set_up();
    check_trials();
    check_late();
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        bench();
    return 0;
}
