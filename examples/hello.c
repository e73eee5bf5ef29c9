/* SPDX-License-Identifier: MIT */
/*
 * Each rank writes an array that lies in GPU memory into one file. Plain HIP and MPI: nothing here
 * knows of hipio. README.md ("Your own program") compiles and runs it.
 */
#include <hip/hip_runtime_api.h>
#include <mpi.h>
#include <stdio.h>

#define N (1 << 20)

int main(int argc, char **argv)
{
    static double array[N];
    double *gpu;
    int rank, error;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < N; i++)
        array[i] = rank * (double)N + i;
    if (hipMalloc((void **)&gpu, sizeof array) != hipSuccess ||
        hipMemcpy(gpu, array, sizeof array, hipMemcpyHostToDevice) != hipSuccess)
        MPI_Abort(MPI_COMM_WORLD, 1);
    error = MPI_File_open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "hello.dat",
                          MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    if (!error)
        error = MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof array, gpu, N, MPI_DOUBLE,
                                      MPI_STATUS_IGNORE);
    if (!error)
        error = MPI_File_close(&file);
    printf("rank %d: %s\n", rank, error ? "failed" : "written");
    MPI_Finalize();
    return error != 0;
}
