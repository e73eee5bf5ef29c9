/* SPDX-License-Identifier: MIT */
/*
 * MPI-IO in the order of a GPU stream: each rank writes what its own non-blocking stream computes,
 * without synchronising that stream itself.
 *
 * The info hint hipio_stream names the stream. The nonblocking write returns while the stream is
 * still at work, the blocking one waits for it; in both the data are those of the work queued
 * before the call. What stands for a kernel here is hipMemsetAsync, so that a C compiler is enough.
 *
 *     mpirun -n 4 stream_mpi FILE
 */
#include "stream_gpu.h"
#include <mpi.h>
#include <stdlib.h>

#define FIELD (3 << 20)
#define STEPS 8

static void gpu(hipError_t error)
{
    if (error == hipSuccess)
        return;
    fprintf(stderr, "stream_mpi: %s\n", hipGetErrorString(error));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void mpi(int error)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "stream_mpi: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The hint is a pointer of this process, so every rank gives its own. */
static MPI_File open_behind(const char *path, hipStream_t stream)
{
    char pointer[32];
    MPI_Info info;
    MPI_File file;

    snprintf(pointer, sizeof pointer, "%p", (void *)stream);
    MPI_Info_create(&info);
    MPI_Info_set(info, "hipio_stream", pointer);
    mpi(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file));
    MPI_Info_free(&info);
    return file;
}

static int value_of(int rank, int step)
{
    return 1 + (rank * STEPS + step) % 250;
}

static MPI_Offset place_of(int rank, int ranks, int step)
{
    return ((MPI_Offset)step * ranks + rank) * FIELD;
}

/* Two fields in turn: while one is written, the stream computes the other. */
static void compute_and_write(MPI_File file, char *field[2], int rank, int ranks,
                              hipStream_t stream)
{
    MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;

    for (int step = 0; step < STEPS; step++) {
        const int turn = step % 2;

        mpi(MPI_Wait(&request[turn], &status));
        gpu(hipMemsetAsync(field[turn], value_of(rank, step), FIELD, stream));
        if (step < STEPS - 1)
            mpi(MPI_File_iwrite_at(file, place_of(rank, ranks, step), field[turn], FIELD, MPI_BYTE,
                                   &request[turn]));
        else
            mpi(MPI_File_write_at(file, place_of(rank, ranks, step), field[turn], FIELD, MPI_BYTE,
                                  &status));
    }
    mpi(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
}

static int check(MPI_File file, int rank, int ranks)
{
    unsigned char *host = malloc(FIELD);
    MPI_Status status;
    int wrong = 0;

    for (int step = 0; step < STEPS && !wrong; step++) {
        mpi(MPI_File_read_at(file, place_of(rank, ranks, step), host, FIELD, MPI_BYTE, &status));
        for (int k = 0; k < FIELD && !wrong; k++)
            wrong = host[k] != value_of(rank, step);
        if (wrong)
            fprintf(stderr, "rank %d: step %d is wrong\n", rank, step);
    }
    free(host);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, ranks, devices, wrong, any;
    hipStream_t stream;
    void *field[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 2) {
        fprintf(stderr, "usage: stream_mpi FILE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    gpu(hipGetDeviceCount(&devices));
    gpu(hipSetDevice(rank % devices));
    for (int i = 0; i < 2; i++)
        gpu(hipMalloc(&field[i], FIELD));
    gpu(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));

    MPI_File file = open_behind(argv[1], stream);
    compute_and_write(file, (char **)field, rank, ranks, stream);
    wrong = check(file, rank, ranks);
    mpi(MPI_File_close(&file));

    gpu(hipStreamDestroy(stream));
    for (int i = 0; i < 2; i++)
        gpu(hipFree(field[i]));
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any)
        printf("verified\n");
    MPI_Finalize();
    return any;
}
