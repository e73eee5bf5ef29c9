/* SPDX-License-Identifier: MIT */
/*
 * Measure: times an access from the barrier before it to the slowest rank's end.
 *
 * By hand means what a careful user writes without hipio: one pinned buffer, made once, one copy
 * between it and the GPU, and the same MPI call on it. The whole extent is copied, because that is
 * one fast copy; what lies between the blocks is left to MPI's datatype.
 */
#include "measure.h"
#include "counters.h"
#include "gpu.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMES_MAX 64
#define SALT 2

struct stage {
    const struct measure_options *options;
    struct access access;
    char path[512];
    char *device; /* the user's buffer; ordinary memory with `host` */
    char *pinned; /* by hand; NULL with hipio, and with `host` */
    MPI_File file;
};

static void must(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "hipio-bench: %s failed: %.*s\n", what, length, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_file(struct stage *stage)
{
    const struct access *access = &stage->access;

    must(MPI_File_open(MPI_COMM_WORLD, stage->path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                       &stage->file),
         "MPI_File_open");
    must(MPI_File_set_view(stage->file, (MPI_Offset)access->displacement, MPI_BYTE,
                           access->file_type, "native", MPI_INFO_NULL),
         "MPI_File_set_view");
}

static void remove_file(const struct stage *stage)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (stage->access.rank == 0)
        unlink(stage->path);
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool is_collective(const struct row *row)
{
    return row->shape == ROW_INTERLEAVED || row->shape == ROW_GRID;
}

static void call(struct stage *stage, bool reads, void *memory)
{
    const struct access *access = &stage->access;
    MPI_Status status;

    if (reads && is_collective(access->row))
        must(MPI_File_read_at_all(stage->file, 0, memory, 1, access->memory_type, &status),
             "MPI_File_read_at_all");
    else if (reads)
        must(MPI_File_read_at(stage->file, 0, memory, 1, access->memory_type, &status),
             "MPI_File_read_at");
    else if (is_collective(access->row))
        must(MPI_File_write_at_all(stage->file, 0, memory, 1, access->memory_type, &status),
             "MPI_File_write_at_all");
    else
        must(MPI_File_write_at(stage->file, 0, memory, 1, access->memory_type, &status),
             "MPI_File_write_at");
}

static void access_once(struct stage *stage, bool reads)
{
    const uint64_t extent = stage->access.extent;

    if (!stage->pinned) {
        call(stage, reads, stage->device);
        return;
    }
    if (!reads)
        gpu_copy(stage->pinned, stage->device, extent);
    call(stage, reads, stage->pinned);
    if (reads)
        gpu_copy(stage->device, stage->pinned, extent);
}

/* Seconds of the slowest rank. */
static double time_once(struct stage *stage, bool reads)
{
    double slowest;

    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    access_once(stage, reads);
    const double mine = MPI_Wtime() - start;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void copy(const struct stage *stage, void *to, const void *from)
{
    if (stage->options->host)
        memcpy(to, from, stage->access.extent);
    else
        gpu_copy(to, from, stage->access.extent);
}

static void set(const struct stage *stage, int value)
{
    if (stage->options->host)
        memset(stage->device, value, stage->access.extent);
    else
        gpu_set(stage->device, value, stage->access.extent);
}

/* Puts data into the GPU memory, which takes longer than most accesses: any data will do where they
 * are not checked. */
static void load(struct stage *stage)
{
    if (!stage->options->verify) {
        set(stage, 0x5a);
        return;
    }
    char *memory = malloc(stage->access.extent);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    bench_access_fill(&stage->access, memory, SALT);
    copy(stage, stage->device, memory);
    free(memory);
}

static bool check_memory(struct stage *stage)
{
    char *memory = malloc(stage->access.extent);

    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    copy(stage, memory, stage->device);
    const bool right = bench_access_check(&stage->access, memory, SALT);
    free(memory);
    return right;
}

/* Each rank reads another part of the file than it has written, by plain calls. */
static bool check_file(const struct stage *stage)
{
    const uint64_t share = stage->access.bytes;
    const uint64_t from = (uint64_t)((stage->access.rank + 1) % stage->access.ranks) * share;
    const int fd = open(stage->path, O_RDONLY);
    char *bytes = malloc(share);
    uint64_t got = 0;
    bool right = fd >= 0 && bytes;

    while (right && got < share) {
        const ssize_t n = pread(fd, bytes + got, share - got, (off_t)(from + got));
        right = n > 0;
        got += n > 0 ? (uint64_t)n : 0;
    }
    right = right && bench_file_check(bytes, from, share, SALT);
    free(bytes);
    if (fd >= 0)
        close(fd);
    return right;
}

static bool agree(bool right)
{
    int mine = right;
    int all;

    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

/* The file as the row finds it: written once by the same way, open. */
static void prepare(struct stage *stage)
{
    const enum row_file kind = stage->access.row->file;

    remove_file(stage);
    if (kind == ROW_FRESH)
        return;
    open_file(stage);
    if (kind == ROW_READ)
        load(stage);
    else
        set(stage, 0);
    access_once(stage, false);
    MPI_Barrier(MPI_COMM_WORLD);
    if (kind == ROW_READ)
        set(stage, 0);
    else
        load(stage);
}

/* A fresh file is made anew each time; other rows keep theirs open. */
static void run_times(struct stage *stage, double *seconds)
{
    const enum row_file kind = stage->access.row->file;

    for (int i = 0; i < stage->options->times; i++) {
        if (kind == ROW_FRESH) {
            if (i > 0)
                MPI_File_close(&stage->file);
            remove_file(stage);
            open_file(stage);
        }
        seconds[i] = time_once(stage, kind == ROW_READ);
    }
}

static bool verify(struct stage *stage)
{
    bool right = stage->access.row->file == ROW_READ ? check_memory(stage) : true;

    MPI_File_close(&stage->file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (stage->access.row->file != ROW_READ)
        right = check_file(stage);
    return agree(right);
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static void print_line(const struct stage *stage, double *seconds, const char *verdict,
                       const char *details)
{
    const struct measure_options *options = stage->options;
    const double gigabytes = 1e-9 * (double)stage->access.bytes * stage->access.ranks;
    const double first = gigabytes / seconds[0];
    const int later = options->times > 1;
    const int n = options->times - later;

    qsort(seconds + later, (size_t)n, sizeof *seconds, compare);
    printf("bench\t%s\t%s\t%d\t%s\t%.3f\t%.3f\t%s\t%s\n", stage->access.row->name, options->system,
           stage->access.ranks, options->way, first, gigabytes / seconds[later + n / 2], verdict,
           details);
    fflush(stdout);
}

bool measure_row(const struct row *row, const struct measure_options *options)
{
    struct stage stage = {.options = options};
    static struct counters before, after;
    double seconds[TIMES_MAX];
    char details[4096] = "";
    bool right = true;

    bench_access_create(row, options->bytes, MPI_COMM_WORLD, &stage.access);
    snprintf(stage.path, sizeof stage.path, "%s/hipio-bench-file", options->folder);
    stage.device = gpu_alloc(options->host ? GPU_HOST : GPU_DEVICE, stage.access.extent);
    if (!options->host && strcmp(options->way, "hipio") != 0)
        stage.pinned = gpu_alloc(GPU_PINNED, stage.access.extent);
    if (row->file == ROW_FRESH)
        load(&stage);
    prepare(&stage);
    counters_read(&before);
    run_times(&stage, seconds);
    counters_read(&after);
    counters_report(&before, &after, MPI_COMM_WORLD, details, sizeof details);
    if (options->verify)
        right = verify(&stage);
    else
        MPI_File_close(&stage.file);
    if (stage.access.rank == 0)
        print_line(&stage, seconds, !options->verify ? "-" : right ? "right" : "WRONG", details);
    remove_file(&stage);
    if (stage.pinned)
        gpu_free(GPU_PINNED, stage.pinned);
    gpu_free(options->host ? GPU_HOST : GPU_DEVICE, stage.device);
    bench_access_destroy(&stage.access);
    return right;
}
