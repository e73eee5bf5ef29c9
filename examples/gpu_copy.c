/* SPDX-License-Identifier: MIT */
/*
 * gpu_copy: reads a file into GPU memory with MPI_File_read_all, writes it out again from GPU
 * memory with MPI_File_write_all, and compares the two files byte for byte by plain read(2).
 *
 *   mpicc gpu_copy.c report.c -D__HIP_PLATFORM_AMD__ -lamdhip64 -o gpu_copy
 *   mpirun -n 4 ./gpu_copy [-p PIECE_MIB] FILE [OUT]
 *
 * Each rank takes one contiguous share of the file and moves it in pieces, so that GPU memory stays
 * bounded. A piece may be larger than 2 GiB. Nothing in here knows of hipio, but for the question
 * whether it drives the files: without it, MPI can't be given GPU memory.
 */
#include "gpu.h"
#include "report.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((int64_t)1 << 20)
#define COMPARE_BYTES (4 * MIB)

struct job {
    int rank;
    int ranks;
    const char *in;
    char out[PATH_MAX];
    int64_t piece; /* bytes a rank moves in one call */
    int64_t size;  /* of the input */
    int64_t start; /* of this rank's share */
    int64_t share;
    int devices;
    char device[256];
    char driver[64]; /* hipio's version */
    void *gpu;
    double read_seconds;
    double write_seconds;
};

/* Ends the whole job: a rank that fails must not leave the others waiting. */
__attribute__((format(printf, 2, 3), noreturn)) static void fail(const struct job *job,
                                                                 const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "gpu_copy: rank %d: %s\n", job->rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void check_mpi(const struct job *job, int code, const char *what, const char *name)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fail(job, "%s %s: %s", what, name, text);
}

static void check_gpu(const struct job *job, hipError_t error, const char *what)
{
    if (error != hipSuccess)
        fail(job, "%s: %s", what, hipGetErrorString(error));
}

/* One GPU per rank of a node, round robin. */
static void choose_device(struct job *job)
{
    MPI_Comm node;
    int local;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);

    hipError_t error = hipGetDeviceCount(&job->devices);
    if (error != hipSuccess || job->devices < 1)
        fail(job,
             "no GPU found (%s); scripts/demo runs this program on a simulated one where there is "
             "none",
             hipGetErrorString(error));
    check_gpu(job, hipSetDevice(local % job->devices), "hipSetDevice");
    check_gpu(job, hipDeviceGetName(job->device, sizeof job->device, local % job->devices),
              "hipDeviceGetName");
}

/* Rank 0 looks at the names before MPI does, because its words are clearer. */
static void check_names(const struct job *job)
{
    struct stat in, out;

    if (job->rank != 0)
        return;
    if (stat(job->in, &in) != 0)
        fail(job, "cannot read %s: %s", job->in, strerror(errno));
    if (!S_ISREG(in.st_mode))
        fail(job, "%s is not a regular file", job->in);
    if (stat(job->out, &out) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        fail(job, "%s and %s are the same file", job->in, job->out);
}

static MPI_File open_file(struct job *job, const char *name, int mode)
{
    MPI_File file;

    check_mpi(job, MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file), "cannot open",
              name);
    if (!report_driver(file, job->driver, sizeof job->driver))
        fail(job,
             "hipio does not drive %s, and plain MPI-IO can't take GPU memory; load it first: "
             "eval \"$(hipio-env)\"",
             name);
    return file;
}

/* `bytes` bytes as MPI takes them: a count that is an int, and a type. Free it with free_amount. */
static int make_amount(int64_t bytes, MPI_Datatype *type)
{
    MPI_Datatype mib, body;

    *type = MPI_BYTE;
    if (bytes <= INT_MAX)
        return (int)bytes;
    MPI_Type_contiguous((int)MIB, MPI_BYTE, &mib);
    MPI_Type_contiguous((int)(bytes / MIB), mib, &body);
    MPI_Type_create_struct(2, (int[]){1, (int)(bytes % MIB)},
                           (MPI_Aint[]){0, (MPI_Aint)(bytes / MIB * MIB)},
                           (MPI_Datatype[]){body, MPI_BYTE}, type);
    MPI_Type_commit(type);
    MPI_Type_free(&body);
    MPI_Type_free(&mib);
    return 1;
}

static void free_amount(MPI_Datatype *type)
{
    if (*type != MPI_BYTE)
        MPI_Type_free(type);
}

static void check_moved(const struct job *job, const MPI_Status *status, int64_t want,
                        const char *what)
{
    MPI_Count moved = 0;

    MPI_Get_elements_x(status, MPI_BYTE, &moved);
    if (moved != want)
        fail(job, "%s moved %" PRId64 " bytes of %" PRId64, what, (int64_t)moved, want);
}

/* All ranks make the same number of calls; those whose share is used up take part with nothing. */
static void copy_pieces(struct job *job, MPI_File in, MPI_File out)
{
    int64_t largest = job->size / job->ranks + 1;
    int64_t rounds = (largest + job->piece - 1) / job->piece;

    check_mpi(job, MPI_File_seek(in, job->start, MPI_SEEK_SET), "cannot seek in", job->in);
    check_mpi(job, MPI_File_seek(out, job->start, MPI_SEEK_SET), "cannot seek in", job->out);
    for (int64_t round = 0; round < rounds; round++) {
        int64_t left = job->share - round * job->piece;
        int64_t bytes = left < 0 ? 0 : left < job->piece ? left : job->piece;
        MPI_Datatype type;
        int count = make_amount(bytes, &type);
        MPI_Status status;

        double begin = MPI_Wtime();
        check_mpi(job, MPI_File_read_all(in, job->gpu, count, type, &status), "cannot read",
                  job->in);
        check_moved(job, &status, bytes, "MPI_File_read_all");
        double middle = MPI_Wtime();
        check_mpi(job, MPI_File_write_all(out, job->gpu, count, type, &status), "cannot write",
                  job->out);
        check_moved(job, &status, bytes, "MPI_File_write_all");
        job->write_seconds += MPI_Wtime() - middle;
        job->read_seconds += middle - begin;
        free_amount(&type);
    }
}

static void copy(struct job *job)
{
    MPI_File in = open_file(job, job->in, MPI_MODE_RDONLY);
    MPI_File out = open_file(job, job->out, MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset size = 0;

    check_mpi(job, MPI_File_set_size(out, 0), "cannot empty", job->out);
    check_mpi(job, MPI_File_get_size(in, &size), "cannot get the size of", job->in);
    job->size = size;
    job->share = size / job->ranks + (job->rank < size % job->ranks);
    job->start = size / job->ranks * job->rank;
    job->start += job->rank < size % job->ranks ? job->rank : size % job->ranks;
    if (job->piece > job->share)
        job->piece = job->share;
    MPI_Allreduce(MPI_IN_PLACE, &job->piece, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (job->piece == 0)
        job->piece = 1;
    check_gpu(job, hipMalloc(&job->gpu, (size_t)job->piece), "cannot get GPU memory");
    copy_pieces(job, in, out);
    check_mpi(job, MPI_File_close(&in), "cannot close", job->in);
    check_mpi(job, MPI_File_close(&out), "cannot close", job->out);
    check_gpu(job, hipFree(job->gpu), "hipFree");
}

/* Reads up to `bytes` bytes at `offset`; returns how many there were. */
static size_t read_host(const struct job *job, int fd, char *to, size_t bytes, off_t offset)
{
    size_t got = 0;

    while (got < bytes) {
        ssize_t n = pread(fd, to + got, bytes - got, offset + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail(job, "read: %s", strerror(errno));
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return got;
}

static int open_host(const struct job *job, const char *name)
{
    struct stat facts;
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &facts) != 0)
        fail(job, "cannot check %s: %s", name, strerror(errno));
    if (facts.st_size != job->size)
        fail(job, "%s has %" PRId64 " bytes, not %" PRId64, name, (int64_t)facts.st_size,
             job->size);
    return fd;
}

/* Without MPI-IO, and split in another way than the copy was. */
static void verify(const struct job *job)
{
    int in = open_host(job, job->in);
    int out = open_host(job, job->out);
    char *a = malloc(COMPARE_BYTES);
    char *b = malloc(COMPARE_BYTES);

    if (a == NULL || b == NULL)
        fail(job, "no memory for the comparison");
    for (int64_t at = job->rank * COMPARE_BYTES; at < job->size; at += job->ranks * COMPARE_BYTES) {
        int64_t left = job->size - at;
        size_t want = (size_t)(left < COMPARE_BYTES ? left : COMPARE_BYTES);

        if (read_host(job, in, a, want, at) != want || read_host(job, out, b, want, at) != want)
            fail(job, "a file became shorter during the comparison");
        if (memcmp(a, b, want) == 0)
            continue;
        for (size_t i = 0; i < want; i++)
            if (a[i] != b[i])
                fail(job, "%s and %s differ at byte %" PRId64, job->in, job->out, at + (int64_t)i);
    }
    free(a);
    free(b);
    close(in);
    close(out);
}

static void report(const struct job *job)
{
    char mpi[256], romio[256];
    double seconds[2] = {job->read_seconds, job->write_seconds};
    double gigabytes = (double)job->size / 1e9;

    MPI_Allreduce(MPI_IN_PLACE, seconds, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    report_mpi(mpi, sizeof mpi);
    report_romio(romio, sizeof romio);
    if (job->rank == 0) {
        /* The simulated runtime says in its devices' names what it is. */
        bool simulated = strstr(job->device, "hipsim") != NULL;
        printf("device:  %s (%d rank%s, %d device%s)\n",
               simulated ? "simulated, no GPU found" : job->device, job->ranks,
               job->ranks == 1 ? "" : "s", job->devices, job->devices == 1 ? "" : "s");
        printf("mpi:     %s, ROMIO %s\n", mpi, romio);
        printf("driver:  hipio %s\n", job->driver);
        printf("input:   %s, %" PRId64 " bytes, in pieces of %" PRId64 "\n", job->in, job->size,
               job->piece);
        printf("output:  %s\n", job->out);
    }
    report_counters(MPI_COMM_WORLD);
    if (job->rank == 0) {
        printf("read:    %.3f GB/s into GPU memory\n", gigabytes / seconds[0]);
        printf("write:   %.3f GB/s from GPU memory\n", gigabytes / seconds[1]);
    }
}

/* Names and piece size from the command line; false: it is not usable. */
static bool parse(struct job *job, int argc, char **argv)
{
    int option;

    job->piece = 64 * MIB;
    while ((option = getopt(argc, argv, "p:")) != -1) {
        char *end = NULL;
        long mib = option == 'p' ? strtol(optarg, &end, 10) : 0;

        if (mib < 1 || mib > (1 << 20) || *end != '\0')
            return false;
        job->piece = mib * MIB;
    }
    if (argc - optind < 1 || argc - optind > 2)
        return false;
    job->in = argv[optind];
    if (argc - optind == 2) {
        snprintf(job->out, sizeof job->out, "%s", argv[optind + 1]);
    } else {
        const char *slash = strrchr(job->in, '/');
        snprintf(job->out, sizeof job->out, "%s.copy", slash == NULL ? job->in : slash + 1);
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct job job;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    if (!parse(&job, argc, argv)) {
        if (job.rank == 0)
            fprintf(stderr, "usage: mpirun -n RANKS gpu_copy [-p PIECE_MIB] FILE [OUT]\n");
        MPI_Finalize();
        return 2;
    }
    check_names(&job);
    MPI_Barrier(MPI_COMM_WORLD);
    choose_device(&job);
    copy(&job);
    MPI_Barrier(MPI_COMM_WORLD);
    verify(&job);
    report(&job);
    MPI_Barrier(MPI_COMM_WORLD);
    if (job.rank == 0)
        printf("verified\n");
    MPI_Finalize();
    return 0;
}
