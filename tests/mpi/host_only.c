/* SPDX-License-Identifier: MIT */
/*
 * A program that knows no GPU: it reads and writes host memory, checks it, and prints which of the
 * libraries named on its command line are in the process. aside.sh runs it with and without hipio.
 */
#include "pattern.h"
#include "process.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 96 << 10 };

static int rank, failures;

static void expect(int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return;
    fprintf(stderr, "host_only: rank %d: %s returned %d\n", rank, what, code);
    failures++;
}

static void compare(const unsigned char *got, MPI_Offset at, const char *what)
{
    if (pattern_check(got, 1, (uint64_t)at, BYTES) == BYTES)
        return;
    fprintf(stderr, "host_only: rank %d: %s brought wrong bytes\n", rank, what);
    failures++;
}

/* What any rank wrote before is there for every rank after, and nobody is still reading. */
static void settle(MPI_File file)
{
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
}

/* Contiguous, then through a view that interleaves the ranks, then nonblocking. */
static void use_file(MPI_File file, int ranks)
{
    MPI_Offset at = (MPI_Offset)rank * BYTES;
    unsigned char *out = malloc(2 * BYTES), *in = out + BYTES;
    MPI_Datatype stripes;
    MPI_Request request;

    pattern_fill(out, 1, (uint64_t)at, BYTES);
    expect(MPI_File_write_at_all(file, at, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
           "write_at_all");
    settle(file);
    expect(MPI_File_read_at(file, at, in, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
    compare(in, at, "read_at");
    settle(file);
    MPI_Type_vector(BYTES / 64, 64, 64 * ranks, MPI_BYTE, &stripes);
    MPI_Type_commit(&stripes);
    expect(MPI_File_set_view(file, 64 * rank, MPI_BYTE, stripes, "native", MPI_INFO_NULL),
           "set_view");
    expect(MPI_File_write_all(file, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "write_all");
    settle(file);
    memset(in, 0, BYTES);
    expect(MPI_File_iread_at(file, 0, in, BYTES, MPI_BYTE, &request), "iread_at");
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
    compare(in, at, "iread_at");
    expect(MPI_File_write_shared(file, out, 0, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
    MPI_Type_free(&stripes);
    free(out);
}

static void print_libraries(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("%s: %s\n", argv[i], process_maps(argv[i]) ? "there" : "not there");
}

int main(int argc, char **argv)
{
    MPI_File file;
    int ranks, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect(MPI_File_open(MPI_COMM_WORLD, "host.dat",
                         MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                         &file),
           "open");
    use_file(file, ranks);
    if (rank == 0)
        print_libraries(argc, argv);
    MPI_File_close(&file);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0)
        printf("host_only: all right\n");
    MPI_Finalize();
    return all != 0;
}
