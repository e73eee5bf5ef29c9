/* SPDX-License-Identifier: MIT */
/* Calls: one line for each member. */
#include "calls.h"

static void *target(const struct hipio_access_arguments *a)
{
    return (void *)(uintptr_t)a->buf;
}

int hipio_calls_block(const mca_io_base_module_2_0_0_t *table, enum hipio_blocking_call call,
                      ompi_file_t *handle, const struct hipio_access_arguments *a)
{
    switch (call) {
    case HIPIO_CALL_READ:
        return table->io_module_file_read(handle, target(a), a->count, a->type, a->status);
    case HIPIO_CALL_READ_AT:
        return table->io_module_file_read_at(handle, a->offset, target(a), a->count, a->type,
                                             a->status);
    case HIPIO_CALL_READ_ALL:
        return table->io_module_file_read_all(handle, target(a), a->count, a->type, a->status);
    case HIPIO_CALL_READ_AT_ALL:
        return table->io_module_file_read_at_all(handle, a->offset, target(a), a->count, a->type,
                                                 a->status);
    case HIPIO_CALL_READ_SHARED:
        return table->io_module_file_read_shared(handle, target(a), a->count, a->type, a->status);
    case HIPIO_CALL_READ_ORDERED:
        return table->io_module_file_read_ordered(handle, target(a), a->count, a->type, a->status);
    case HIPIO_CALL_WRITE:
        return table->io_module_file_write(handle, a->buf, a->count, a->type, a->status);
    case HIPIO_CALL_WRITE_AT:
        return table->io_module_file_write_at(handle, a->offset, a->buf, a->count, a->type,
                                              a->status);
    case HIPIO_CALL_WRITE_ALL:
        return table->io_module_file_write_all(handle, a->buf, a->count, a->type, a->status);
    case HIPIO_CALL_WRITE_AT_ALL:
        return table->io_module_file_write_at_all(handle, a->offset, a->buf, a->count, a->type,
                                                  a->status);
    case HIPIO_CALL_WRITE_SHARED:
        return table->io_module_file_write_shared(handle, a->buf, a->count, a->type, a->status);
    case HIPIO_CALL_WRITE_ORDERED:
        return table->io_module_file_write_ordered(handle, a->buf, a->count, a->type, a->status);
    }
    return MPI_ERR_INTERN;
}

int hipio_calls_start(const mca_io_base_module_2_0_0_t *table, enum hipio_nonblocking_call call,
                      ompi_file_t *handle, const struct hipio_access_arguments *a)
{
    switch (call) {
    case HIPIO_CALL_IREAD:
        return table->io_module_file_iread(handle, target(a), a->count, a->type, a->request);
    case HIPIO_CALL_IREAD_AT:
        return table->io_module_file_iread_at(handle, a->offset, target(a), a->count, a->type,
                                              a->request);
    case HIPIO_CALL_IREAD_ALL:
        return table->io_module_file_iread_all(handle, target(a), a->count, a->type, a->request);
    case HIPIO_CALL_IREAD_AT_ALL:
        return table->io_module_file_iread_at_all(handle, a->offset, target(a), a->count, a->type,
                                                  a->request);
    case HIPIO_CALL_IREAD_SHARED:
        return table->io_module_file_iread_shared(handle, target(a), a->count, a->type, a->request);
    case HIPIO_CALL_IWRITE:
        return table->io_module_file_iwrite(handle, a->buf, a->count, a->type, a->request);
    case HIPIO_CALL_IWRITE_AT:
        return table->io_module_file_iwrite_at(handle, a->offset, a->buf, a->count, a->type,
                                               a->request);
    case HIPIO_CALL_IWRITE_ALL:
        return table->io_module_file_iwrite_all(handle, a->buf, a->count, a->type, a->request);
    case HIPIO_CALL_IWRITE_AT_ALL:
        return table->io_module_file_iwrite_at_all(handle, a->offset, a->buf, a->count, a->type,
                                                   a->request);
    case HIPIO_CALL_IWRITE_SHARED:
        return table->io_module_file_iwrite_shared(handle, a->buf, a->count, a->type, a->request);
    }
    return MPI_ERR_INTERN;
}

int hipio_calls_begin(const mca_io_base_module_2_0_0_t *table, enum hipio_split_call call,
                      ompi_file_t *handle, const struct hipio_access_arguments *a)
{
    switch (call) {
    case HIPIO_CALL_SPLIT_READ_ALL:
        return table->io_module_file_read_all_begin(handle, target(a), a->count, a->type);
    case HIPIO_CALL_SPLIT_READ_AT_ALL:
        return table->io_module_file_read_at_all_begin(handle, a->offset, target(a), a->count,
                                                       a->type);
    case HIPIO_CALL_SPLIT_READ_ORDERED:
        return table->io_module_file_read_ordered_begin(handle, target(a), a->count, a->type);
    case HIPIO_CALL_SPLIT_WRITE_ALL:
        return table->io_module_file_write_all_begin(handle, a->buf, a->count, a->type);
    case HIPIO_CALL_SPLIT_WRITE_AT_ALL:
        return table->io_module_file_write_at_all_begin(handle, a->offset, a->buf, a->count,
                                                        a->type);
    case HIPIO_CALL_SPLIT_WRITE_ORDERED:
        return table->io_module_file_write_ordered_begin(handle, a->buf, a->count, a->type);
    }
    return MPI_ERR_INTERN;
}

int hipio_calls_end(const mca_io_base_module_2_0_0_t *table, enum hipio_split_call call,
                    ompi_file_t *handle, const struct hipio_access_arguments *a)
{
    switch (call) {
    case HIPIO_CALL_SPLIT_READ_ALL:
        return table->io_module_file_read_all_end(handle, target(a), a->status);
    case HIPIO_CALL_SPLIT_READ_AT_ALL:
        return table->io_module_file_read_at_all_end(handle, target(a), a->status);
    case HIPIO_CALL_SPLIT_READ_ORDERED:
        return table->io_module_file_read_ordered_end(handle, target(a), a->status);
    case HIPIO_CALL_SPLIT_WRITE_ALL:
        return table->io_module_file_write_all_end(handle, a->buf, a->status);
    case HIPIO_CALL_SPLIT_WRITE_AT_ALL:
        return table->io_module_file_write_at_all_end(handle, a->buf, a->status);
    case HIPIO_CALL_SPLIT_WRITE_ORDERED:
        return table->io_module_file_write_ordered_end(handle, a->buf, a->status);
    }
    return MPI_ERR_INTERN;
}
