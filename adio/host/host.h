/* SPDX-License-Identifier: MIT */
/*
 * Host: what the glue to one MPI library supplies to the driver. Private structures of that library
 * end here.
 */
#pragma once
#include "romio321.h"
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Functions of the ROMIO in this process, found by the proof. */
struct hipio_host_romio {
    /* Reads the shared file pointer and moves it by `advance` etypes. */
    void (*get_shared_pointer)(hipio_romio_fd fd, long long advance, long long *pointer,
                               int *error);
    void (*immediate_open)(hipio_romio_fd fd,
                           int *error); /* opens a file whose open was deferred */
};
const struct hipio_host_romio *hipio_host_romio(void);

/*
 * At MPI_THREAD_MULTIPLE, ROMIO holds one lock of the process during each of its calls, so also
 * while the driver's functions run. Whoever waits for other ranks there must let go of it: they may
 * be waiting for a rank of which another thread has it. Between the two, ROMIO is not called.
 */
void hipio_host_let_go(void);
void hipio_host_take_back(void);

/*
 * What MPI_Type_get_contents tells of a derived type, in arrays that have room for what
 * MPI_Type_get_envelope says. NULL: that array is not wanted. The types inside are the datatype's,
 * without references. False: MPI does not tell.
 */
bool hipio_host_type_arrays(MPI_Datatype type, int *ints, MPI_Aint *addresses, MPI_Datatype *types);

/*
 * A background operation behind an MPI request. The request's errors reach the file's error
 * handler. `test` is called from MPI's progress; it must not block nor call MPI. When it has
 * returned true, `finish` is called once, gives the bytes moved and the MPI error code, and frees
 * the operation.
 */
struct hipio_host_operation {
    bool (*test)(struct hipio_host_operation *operation);
    void (*finish)(struct hipio_host_operation *operation, uint64_t *bytes, int *code);
};

/* `file` is the MPI library's file handle. MPI_SUCCESS and *request, or a class; then `finish` has
 * not been called. */
int hipio_host_request_start(void *file, struct hipio_host_operation *operation,
                             MPI_Request *request);
/* A request that is complete from the start, without an error. */
int hipio_host_request_completed(void *file, uint64_t bytes, MPI_Request *request);
/* Blocks until no operation of the file is in flight; their requests stay valid for MPI_Wait. */
void hipio_host_requests_drain(void *file);
