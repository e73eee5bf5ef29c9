/* SPDX-License-Identifier: MIT */
/*
 * Calls: the data accesses of MPI-IO with their arguments in one struct, and the member of a
 * module's table that each is. Those who stand before several members alike need one function for
 * all of them then.
 */
#pragma once
#include "ompi_config.h"

#include "ompi/file/file.h"
#include "ompi/mca/io/io.h"

struct hipio_access_arguments {
    const void *buf; /* a read writes it */
    int count;
    struct ompi_datatype_t *type;
    MPI_Offset offset;               /* 0 where the call has none */
    ompi_status_public_t *status;    /* of a blocking call, or an end */
    struct ompi_request_t **request; /* of a nonblocking call */
};

/* In each list the writes follow the reads. */
enum hipio_blocking_call {
    HIPIO_CALL_READ,
    HIPIO_CALL_READ_AT,
    HIPIO_CALL_READ_ALL,
    HIPIO_CALL_READ_AT_ALL,
    HIPIO_CALL_READ_SHARED,
    HIPIO_CALL_READ_ORDERED,
    HIPIO_CALL_WRITE,
    HIPIO_CALL_WRITE_AT,
    HIPIO_CALL_WRITE_ALL,
    HIPIO_CALL_WRITE_AT_ALL,
    HIPIO_CALL_WRITE_SHARED,
    HIPIO_CALL_WRITE_ORDERED
};

enum hipio_nonblocking_call {
    HIPIO_CALL_IREAD,
    HIPIO_CALL_IREAD_AT,
    HIPIO_CALL_IREAD_ALL,
    HIPIO_CALL_IREAD_AT_ALL,
    HIPIO_CALL_IREAD_SHARED,
    HIPIO_CALL_IWRITE,
    HIPIO_CALL_IWRITE_AT,
    HIPIO_CALL_IWRITE_ALL,
    HIPIO_CALL_IWRITE_AT_ALL,
    HIPIO_CALL_IWRITE_SHARED
};

enum hipio_split_call {
    HIPIO_CALL_SPLIT_READ_ALL,
    HIPIO_CALL_SPLIT_READ_AT_ALL,
    HIPIO_CALL_SPLIT_READ_ORDERED,
    HIPIO_CALL_SPLIT_WRITE_ALL,
    HIPIO_CALL_SPLIT_WRITE_AT_ALL,
    HIPIO_CALL_SPLIT_WRITE_ORDERED
};

/* Each makes the call of `table` and returns what it returns. */
int hipio_calls_block(const mca_io_base_module_2_0_0_t *table, enum hipio_blocking_call call,
                      ompi_file_t *handle, const struct hipio_access_arguments *arguments);
int hipio_calls_start(const mca_io_base_module_2_0_0_t *table, enum hipio_nonblocking_call call,
                      ompi_file_t *handle, const struct hipio_access_arguments *arguments);
int hipio_calls_begin(const mca_io_base_module_2_0_0_t *table, enum hipio_split_call call,
                      ompi_file_t *handle, const struct hipio_access_arguments *arguments);
/* Of the arguments, the buffer and the status count. */
int hipio_calls_end(const mca_io_base_module_2_0_0_t *table, enum hipio_split_call call,
                    ompi_file_t *handle, const struct hipio_access_arguments *arguments);
