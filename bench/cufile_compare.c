/* SPDX-License-Identifier: MIT */
/*
 * Compares, in one run on one file, the ways between GPU memory and storage: cuFile (in its
 * compatibility mode, where nvidia-fs is not loaded), staging through the page cache, through a
 * mapping, with O_DIRECT, with io_uring; and the same for host memory. No MPI: the engine alone.
 *
 *   cufile_compare [--file PATH] [--size BYTES] [--times N]
 *
 * Prints a Markdown table: medians in GB/s, and in brackets the ratio to the first row of the same
 * memory. "cached": the file is in the page cache. "cold": it is not. "write": returns when the
 * engine does. "to disk": with fdatasync. "CPU": seconds of all cores for a GB, over all columns.
 * "by": how the bytes went, as the engine's counters say. Ways take turns, repetition by
 * repetition.
 */
#include "backend.h"
#include "device/device.h"
#include "engine.h"
#include "extent.h"
#include "file.h"
#include "gpu.h"
#include "request.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TIMES_MAX 15

static const struct way {
    enum gpu_kind memory;
    const char *name;
    const char *settings; /* "name=value name=value" */
} ways[] = {
    {GPU_DEVICE, "staged, as it comes", "cufile=off"},
    {GPU_DEVICE, "staged, page cache", "cufile=off mapping=off"},
    {GPU_DEVICE, "staged, O_DIRECT", "cufile=off direct=force uring=off"},
    {GPU_DEVICE, "staged, O_DIRECT, io_uring", "cufile=off direct=force uring_registered=off"},
    {GPU_DEVICE, "the same, registered", "cufile=off direct=force"},
    {GPU_DEVICE, "staged, O_DIRECT, io_uring, chunks of 4M",
     "cufile=off direct=force uring_registered=off chunk_size=4M"},
    {GPU_DEVICE, "the same, registered", "cufile=off direct=force chunk_size=4M"},
    {GPU_DEVICE, "staged, page cache, io_uring", "cufile=off uring=force uring_registered=off"},
    {GPU_DEVICE, "the same, registered", "cufile=off uring=force uring_registered=force"},
    {GPU_DEVICE, "cuFile, 1 call at a time", "cufile=force lanes=1"},
    {GPU_DEVICE, "cuFile, 4 calls", "cufile=force lanes=4"},
    {GPU_DEVICE, "cuFile, 8 calls", "cufile=force lanes=8"},
    {GPU_PINNED, "in place, as it comes", ""},
    {GPU_PINNED, "in place, page cache", "mapping=off"},
    {GPU_PINNED, "in place, page cache, io_uring", "uring=force"},
    {GPU_PINNED, "in place, O_DIRECT", "direct=force uring=off"},
    {GPU_PINNED, "in place, O_DIRECT, io_uring", "direct=force"},
    {GPU_PINNED, "in place, O_DIRECT, io_uring, depth 64", "direct=force queue_depth=64"},
};

#define WAYS (sizeof ways / sizeof ways[0])

enum column { READ_CACHED, READ_COLD, WRITE, WRITE_TO_DISK, COLUMNS };

/* Bytes that went by something: the sum of the engine's counters for it. */
enum by { BY_CUFILE, BY_MAPPING, BY_DIRECT, BY_URING, BY_REGISTERED, BYS };

static const char *const by_names[BYS] = {"cuFile", "mapping", "O_DIRECT", "io_uring",
                                          "registered"};

struct bys {
    uint64_t bytes[BYS];
};

struct results {
    double seconds[WAYS][COLUMNS][TIMES_MAX];
    double cpu[WAYS]; /* seconds */
    struct bys by[WAYS];
    char failure[WAYS][200];
};

struct options {
    const char *path;
    uint64_t size;
    int times;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int apply(const struct way *way, struct hipio_tunables *tunables)
{
    char *copy = strdup(way->settings), *rest = copy, *word;
    int status = 0;

    *tunables = *hipio_tunables_process();
    while (status == 0 && (word = strsep(&rest, " ")) != NULL) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        status = hipio_tunables_set(tunables, word, value);
    }
    free(copy);
    return status;
}

static uint64_t cufile_bytes(void)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < HIPIO_STATS_BACKENDS; i++) {
        const struct hipio_backend *backend = hipio_backend_at(i);
        if (backend && strcmp(backend->name, "cufile") == 0)
            bytes = hipio_stats_backend_get(i, HIPIO_BACKEND_READ) +
                    hipio_stats_backend_get(i, HIPIO_BACKEND_WRITTEN);
    }
    return bytes;
}

static struct bys count_bys(void)
{
    return (struct bys){{
        [BY_CUFILE] = cufile_bytes(),
        [BY_MAPPING] =
            hipio_stats_get(HIPIO_COUNT_mapped_read) + hipio_stats_get(HIPIO_COUNT_mapped_written),
        [BY_DIRECT] = hipio_stats_get(HIPIO_COUNT_direct_bytes),
        [BY_URING] = hipio_stats_get(HIPIO_COUNT_uring_bytes),
        [BY_REGISTERED] = hipio_stats_get(HIPIO_COUNT_registered_bytes),
    }};
}

/* Brings the file into the state that the column is about. */
static void prepare(int fd, enum column column, uint64_t size)
{
    static char block[1 << 20];

    if (column == READ_COLD) {
        fdatasync(fd);
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        return;
    }
    if (column == READ_CACHED)
        for (uint64_t at = 0; at < size; at += sizeof block)
            if (pread(fd, block, sizeof block, (off_t)at) <= 0)
                return;
    if (column == WRITE || column == WRITE_TO_DISK)
        fdatasync(fd);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

struct cost {
    double seconds;
    double cpu;
};

static struct cost run(struct hipio_file *file, int fd, void *memory, enum column column,
                       const struct options *options, struct hipio_request *request)
{
    struct hipio_layout *layout;
    struct cost cost;

    hipio_layout_run(0, options->size, &layout);
    *request = (struct hipio_request){
        .op = column == READ_CACHED || column == READ_COLD ? HIPIO_READ : HIPIO_WRITE,
        .file = file,
        .base = memory,
        .memory_layout = layout,
        .file_layout = layout,
        .length = options->size,
    };
    hipio_device_classify(memory, &request->memory);
    prepare(fd, column, options->size);
    cost = (struct cost){now(), cpu_seconds()};
    hipio_request_run(request);
    if (column == WRITE_TO_DISK)
        fdatasync(fd);
    cost = (struct cost){now() - cost.seconds, cpu_seconds() - cost.cpu};
    hipio_layout_release(layout);
    return cost;
}

/* One way, all columns, once. */
static void measure(size_t index, int turn, int fd, void *memory, const struct options *options,
                    struct results *results)
{
    struct hipio_tunables tunables;
    struct hipio_request request;
    struct hipio_file *file;
    /* The first round is for the warmth of everything. */
    const bool counted = turn >= 0;
    const int time = counted ? turn : 0;
    const struct bys before = count_bys();

    if (results->failure[index][0])
        return;
    if (apply(&ways[index], &tunables) < 0 ||
        hipio_file_create(fd, options->path, HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE, &tunables,
                          &file) < 0) {
        snprintf(results->failure[index], sizeof results->failure[index], "%s",
                 hipio_status_text());
        return;
    }
    for (int column = 0; column < COLUMNS; column++) {
        const struct cost cost = run(file, fd, memory, (enum column)column, options, &request);
        results->seconds[index][column][time] = cost.seconds;
        results->cpu[index] += counted ? cost.cpu : 0;
        if (request.status < 0 || request.done != options->size)
            snprintf(results->failure[index], sizeof results->failure[index], "%.190s",
                     request.status < 0 ? request.text : "short transfer");
    }
    const struct bys after = count_bys();
    for (int by = 0; counted && by < BYS; by++)
        results->by[index].bytes[by] += after.bytes[by] - before.bytes[by];
    hipio_file_destroy(file);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_rate(const struct results *results, size_t way, int column,
                          const struct options *options)
{
    double sorted[TIMES_MAX];

    memcpy(sorted, results->seconds[way][column], sizeof sorted);
    qsort(sorted, (size_t)options->times, sizeof sorted[0], compare_doubles);
    return (double)options->size / sorted[options->times / 2] / 1e9;
}

static void print_by(const struct bys *bys, double all)
{
    const char *separator = "";

    for (int by = 0; by < BYS; by++)
        if (bys->bytes[by] > 0) {
            printf("%s %s %.0f %%", separator, by_names[by], 100 * (double)bys->bytes[by] / all);
            separator = ",";
        }
    printf(" |\n");
}

static void print_way(const struct results *results, size_t way, size_t base,
                      const struct options *options)
{
    const double all = (double)options->size * COLUMNS * options->times;

    printf("| %s memory | %s |", gpu_kind_name(ways[way].memory), ways[way].name);
    if (results->failure[way][0]) {
        printf(" failed: %s | | | | | |\n", results->failure[way]);
        return;
    }
    for (int column = 0; column < COLUMNS; column++) {
        const double rate = median_rate(results, way, column, options);
        printf(" %.2f (%.2f) |", rate, rate / median_rate(results, base, column, options));
    }
    printf(" %.3f |", results->cpu[way] / all * 1e9);
    print_by(&results->by[way], all);
}

static void print(const struct results *results, const struct options *options)
{
    size_t base = 0;

    printf("%s, %s; %llu bytes, medians of %d, GB/s (ratio to the first row)\n\n", gpu_name(),
           gpu_runtime(), (unsigned long long)options->size, options->times);
    printf("| memory | way | read cached | read cold | write | write to disk | CPU | by |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < WAYS; i++) {
        if (i > 0 && ways[i].memory != ways[base].memory)
            base = i;
        print_way(results, i, base, options);
    }
}

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return false;
        if (strcmp(argv[i], "--file") == 0)
            options->path = argv[i + 1];
        else if (strcmp(argv[i], "--times") == 0)
            options->times = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--size") != 0 ||
                 hipio_tunables_parse_size(argv[i + 1], &options->size) < 0)
            return false;
    }
    return options->times > 0 && options->times <= TIMES_MAX && options->size >= 4096;
}

int main(int argc, char **argv)
{
    struct options options = {"cufile_compare.dat", (uint64_t)1 << 30, 3};
    static struct results results;
    void *memory[GPU_KINDS] = {NULL};

    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: cufile_compare [--file PATH] [--size BYTES] [--times N <= %d]\n",
                TIMES_MAX);
        return 2;
    }
    if (!gpu_available()) {
        fprintf(stderr, "cufile_compare: no GPU\n");
        return 77;
    }
    const int fd = open(options.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)options.size) != 0) {
        fprintf(stderr, "cufile_compare: %s: %s\n", options.path, strerror(errno));
        return 1;
    }
    for (int kind = GPU_DEVICE; kind <= GPU_PINNED; kind += GPU_PINNED - GPU_DEVICE) {
        memory[kind] = gpu_alloc((enum gpu_kind)kind, options.size);
        gpu_set(memory[kind], 0x5a, options.size);
    }
    for (int turn = -1; turn < options.times; turn++)
        for (size_t i = 0; i < WAYS; i++)
            measure(i, turn, fd, memory[ways[i].memory], &options, &results);
    print(&results, &options);
    close(fd);
    unlink(options.path);
    hipio_engine_shutdown();
    return 0;
}
