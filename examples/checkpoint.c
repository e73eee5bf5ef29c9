/* SPDX-License-Identifier: MIT */
/*
 * checkpoint: a 3-D field of doubles lives in GPU memory, one block with a halo per rank. It is
 * written to one file with a single collective call, halo stripped, and read back by any number of
 * ranks.
 *
 *   mpicc checkpoint.c -D__HIP_PLATFORM_AMD__ -lamdhip64 -o checkpoint
 *   mpirun -n 4 ./checkpoint write FILE 60 70 80
 *   mpirun -n 3 ./checkpoint read FILE
 *
 * Two subarray types do all the work: one cuts the interior out of the block in GPU memory, the
 * other is the file view, which puts each block in its place of the whole field.
 */
#include "gpu.h"
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 3, HALO = 1 };

/* The file starts with this, and the field follows in C order. */
struct header {
    char magic[8];
    int64_t extent[DIMENSIONS];
};
static const char magic[8] = "FIELD3D";

/* What a halo holds: it must never reach the file, nor be touched by a restart. */
static const double halo_value = -1.0;

struct block {
    int rank;
    const char *name;          /* of the file */
    int extent[DIMENSIONS];    /* of the whole field */
    int start[DIMENSIONS];     /* of this rank's block in it */
    int size[DIMENSIONS];      /* of the block, without halo */
    int with_halo[DIMENSIONS]; /* of the block in memory */
    size_t elements;           /* in memory */
    double *host;
    void *gpu;
    MPI_Datatype interior; /* the block in memory */
    MPI_Datatype place;    /* the block in the file */
};

__attribute__((format(printf, 2, 3), noreturn)) static void fail(const struct block *block,
                                                                 const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "checkpoint: rank %d: %s\n", block->rank, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void check_mpi(const struct block *block, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fail(block, "%s %s: %s", what, block->name, text);
}

static void check_gpu(const struct block *block, hipError_t error, const char *what)
{
    if (error != hipSuccess)
        fail(block, "%s: %s", what, hipGetErrorString(error));
}

/* Value of the field at a place: exact in a double, different everywhere. */
static double value_at(const struct block *block, int x, int y, int z)
{
    return ((double)x * block->extent[1] + y) * block->extent[2] + z;
}

/* Cuts the field into one block a rank, as even as it goes, and makes the two types. */
static void divide(struct block *block)
{
    int ranks;
    int grid[DIMENSIONS] = {0, 0, 0};
    int halo[DIMENSIONS] = {HALO, HALO, HALO};

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, DIMENSIONS, grid);
    int at[DIMENSIONS] = {block->rank / (grid[1] * grid[2]), block->rank / grid[2] % grid[1],
                          block->rank % grid[2]};

    block->elements = 1;
    for (int d = 0; d < DIMENSIONS; d++) {
        int64_t extent = block->extent[d];
        block->start[d] = (int)(extent * at[d] / grid[d]);
        block->size[d] = (int)(extent * (at[d] + 1) / grid[d]) - block->start[d];
        if (block->size[d] == 0)
            fail(block, "%d ranks are too many for a field of %d x %d x %d", ranks,
                 block->extent[0], block->extent[1], block->extent[2]);
        block->with_halo[d] = block->size[d] + 2 * HALO;
        block->elements *= (size_t)block->with_halo[d];
    }
    MPI_Type_create_subarray(DIMENSIONS, block->with_halo, block->size, halo, MPI_ORDER_C,
                             MPI_DOUBLE, &block->interior);
    MPI_Type_create_subarray(DIMENSIONS, block->extent, block->size, block->start, MPI_ORDER_C,
                             MPI_DOUBLE, &block->place);
    MPI_Type_commit(&block->interior);
    MPI_Type_commit(&block->place);
}

static void allocate(struct block *block)
{
    MPI_Comm node;
    int local;
    int devices = 0;
    size_t bytes = block->elements * sizeof(double);

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local);
    MPI_Comm_free(&node);
    check_gpu(block, hipGetDeviceCount(&devices), "no GPU found");
    if (devices < 1)
        fail(block, "no GPU found");
    check_gpu(block, hipSetDevice(local % devices), "hipSetDevice");
    check_gpu(block, hipMalloc(&block->gpu, bytes), "cannot get GPU memory");
    block->host = malloc(bytes);
    if (block->host == NULL)
        fail(block, "no memory");
}

static void release(struct block *block)
{
    check_gpu(block, hipFree(block->gpu), "hipFree");
    free(block->host);
    MPI_Type_free(&block->interior);
    MPI_Type_free(&block->place);
}

/* Calls `visit` for every element of the block in memory, with its place in the field, or with
 * inside = false in the halo. */
static void for_each(struct block *block, void (*visit)(struct block *block, double *element,
                                                        const int at[], bool inside))
{
    int at[DIMENSIONS];
    double *element = block->host;

    for (int x = -HALO; x < block->size[0] + HALO; x++) {
        for (int y = -HALO; y < block->size[1] + HALO; y++) {
            for (int z = -HALO; z < block->size[2] + HALO; z++) {
                bool inside = x >= 0 && x < block->size[0] && y >= 0 && y < block->size[1] &&
                              z >= 0 && z < block->size[2];
                at[0] = block->start[0] + x;
                at[1] = block->start[1] + y;
                at[2] = block->start[2] + z;
                visit(block, element++, at, inside);
            }
        }
    }
}

static void set_value(struct block *block, double *element, const int at[], bool inside)
{
    *element = inside ? value_at(block, at[0], at[1], at[2]) : halo_value;
}

static void set_halo(struct block *block, double *element, const int at[], bool inside)
{
    (void)block;
    (void)at;
    (void)inside;
    *element = halo_value;
}

static void check_value(struct block *block, double *element, const int at[], bool inside)
{
    double want = inside ? value_at(block, at[0], at[1], at[2]) : halo_value;

    if (*element != want)
        fail(block, "%s at (%d, %d, %d): %g instead of %g", inside ? "field" : "halo", at[0], at[1],
             at[2], *element, want);
}

static void check_count(const struct block *block, const MPI_Status *status)
{
    int count = 0;

    MPI_Get_count(status, block->interior, &count);
    if (count != 1)
        fail(block, "%s: the block did not move as a whole", block->name);
}

static void set_view(struct block *block, MPI_File file)
{
    check_mpi(block,
              MPI_File_set_view(file, sizeof(struct header), MPI_DOUBLE, block->place, "native",
                                MPI_INFO_NULL),
              "cannot set the view of");
}

/* Without hipio, MPI-IO can't take GPU memory, and some of it does not even notice. */
static void check_driver(const struct block *block, MPI_File file)
{
    MPI_Info info;
    char version[64];
    int found = 0;

    check_mpi(block, MPI_File_get_info(file, &info), "cannot ask about");
    MPI_Info_get(info, "hipio", sizeof version - 1, version, &found);
    MPI_Info_free(&info);
    if (!found)
        fail(block, "hipio does not drive %s; load it first: eval \"$(hipio-env)\"", block->name);
}

static void write_field(struct block *block)
{
    MPI_File file;
    MPI_Status status;
    struct header header;

    divide(block);
    allocate(block);
    for_each(block, set_value);
    check_gpu(
        block,
        hipMemcpy(block->gpu, block->host, block->elements * sizeof(double), hipMemcpyHostToDevice),
        "hipMemcpy");

    memcpy(header.magic, magic, sizeof header.magic);
    for (int d = 0; d < DIMENSIONS; d++)
        header.extent[d] = block->extent[d];
    check_mpi(block,
              MPI_File_open(MPI_COMM_WORLD, block->name, MPI_MODE_CREATE | MPI_MODE_RDWR,
                            MPI_INFO_NULL, &file),
              "cannot open");
    check_driver(block, file);
    check_mpi(block, MPI_File_set_size(file, 0), "cannot empty");
    if (block->rank == 0)
        check_mpi(block, MPI_File_write_at(file, 0, &header, sizeof header, MPI_BYTE, &status),
                  "cannot write the header of");
    set_view(block, file);
    check_mpi(block, MPI_File_write_all(file, block->gpu, 1, block->interior, &status),
              "cannot write");
    check_count(block, &status);
    check_mpi(block, MPI_File_close(&file), "cannot close");
    release(block);
}

/* Every rank reads the header for itself; the field's extent is in it. */
static void read_header(struct block *block, MPI_File file)
{
    struct header header;
    MPI_Status status;
    int count = 0;

    check_mpi(block, MPI_File_read_at_all(file, 0, &header, sizeof header, MPI_BYTE, &status),
              "cannot read the header of");
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != (int)sizeof header || memcmp(header.magic, magic, sizeof magic) != 0)
        fail(block, "%s is no checkpoint", block->name);
    for (int d = 0; d < DIMENSIONS; d++) {
        if (header.extent[d] < 1 || header.extent[d] > INT32_MAX)
            fail(block, "%s: the header is damaged", block->name);
        block->extent[d] = (int)header.extent[d];
    }
}

static void read_field(struct block *block)
{
    MPI_File file;
    MPI_Status status;
    size_t bytes;

    check_mpi(block,
              MPI_File_open(MPI_COMM_WORLD, block->name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
              "cannot open");
    check_driver(block, file);
    read_header(block, file);
    divide(block);
    allocate(block);
    bytes = block->elements * sizeof(double);
    for_each(block, set_halo);
    check_gpu(block, hipMemcpy(block->gpu, block->host, bytes, hipMemcpyHostToDevice), "hipMemcpy");
    set_view(block, file);
    check_mpi(block, MPI_File_read_all(file, block->gpu, 1, block->interior, &status),
              "cannot read");
    check_count(block, &status);
    check_mpi(block, MPI_File_close(&file), "cannot close");
    check_gpu(block, hipMemcpy(block->host, block->gpu, bytes, hipMemcpyDeviceToHost), "hipMemcpy");
    for_each(block, check_value);
    release(block);
}

static bool parse_extent(struct block *block, char **argv)
{
    for (int d = 0; d < DIMENSIONS; d++) {
        char *end;
        long extent = strtol(argv[d], &end, 10);
        if (extent < 1 || extent > 1 << 20 || *end != '\0')
            return false;
        block->extent[d] = (int)extent;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct block block;
    bool writes, reads;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &block.rank);
    writes = argc == 6 && strcmp(argv[1], "write") == 0 && parse_extent(&block, argv + 3);
    reads = argc == 3 && strcmp(argv[1], "read") == 0;
    if (!writes && !reads) {
        if (block.rank == 0)
            fprintf(stderr, "usage: checkpoint write FILE NX NY NZ\n       checkpoint read FILE\n");
        MPI_Finalize();
        return 2;
    }
    block.name = argv[2];
    if (writes)
        write_field(&block);
    else
        read_field(&block);
    MPI_Barrier(MPI_COMM_WORLD);
    if (block.rank == 0)
        printf("%s\n", writes ? "written" : "verified");
    MPI_Finalize();
    return 0;
}
