/* SPDX-License-Identifier: MIT */
/*
 * The property test: the calls, each as one function from its start to its end.
 */
#include "property.h"

static int at(const struct access *a, MPI_Status *status)
{
    return a->write ? MPI_File_write_at(a->file, a->at, a->at_memory, a->count, a->type, status)
                    : MPI_File_read_at(a->file, a->at, a->at_memory, a->count, a->type, status);
}

static int at_all(const struct access *a, MPI_Status *status)
{
    return a->write ? MPI_File_write_at_all(a->file, a->at, a->at_memory, a->count, a->type, status)
                    : MPI_File_read_at_all(a->file, a->at, a->at_memory, a->count, a->type, status);
}

static int by_pointer(const struct access *a, MPI_Status *status)
{
    return a->write ? MPI_File_write(a->file, a->at_memory, a->count, a->type, status)
                    : MPI_File_read(a->file, a->at_memory, a->count, a->type, status);
}

static int all(const struct access *a, MPI_Status *status)
{
    return a->write ? MPI_File_write_all(a->file, a->at_memory, a->count, a->type, status)
                    : MPI_File_read_all(a->file, a->at_memory, a->count, a->type, status);
}

static int wait_for(int code, MPI_Request *request, MPI_Status *status)
{
    return code == MPI_SUCCESS ? MPI_Wait(request, status) : code;
}

static int i_at(const struct access *a, MPI_Status *status)
{
    MPI_Request request;
    int code = a->write
                   ? MPI_File_iwrite_at(a->file, a->at, a->at_memory, a->count, a->type, &request)
                   : MPI_File_iread_at(a->file, a->at, a->at_memory, a->count, a->type, &request);

    return wait_for(code, &request, status);
}

static int i_at_all(const struct access *a, MPI_Status *status)
{
    MPI_Request request;
    int code =
        a->write ? MPI_File_iwrite_at_all(a->file, a->at, a->at_memory, a->count, a->type, &request)
                 : MPI_File_iread_at_all(a->file, a->at, a->at_memory, a->count, a->type, &request);

    return wait_for(code, &request, status);
}

static int i_by_pointer(const struct access *a, MPI_Status *status)
{
    MPI_Request request;
    int code = a->write ? MPI_File_iwrite(a->file, a->at_memory, a->count, a->type, &request)
                        : MPI_File_iread(a->file, a->at_memory, a->count, a->type, &request);

    return wait_for(code, &request, status);
}

static int i_all(const struct access *a, MPI_Status *status)
{
    MPI_Request request;
    int code = a->write ? MPI_File_iwrite_all(a->file, a->at_memory, a->count, a->type, &request)
                        : MPI_File_iread_all(a->file, a->at_memory, a->count, a->type, &request);

    return wait_for(code, &request, status);
}

static int at_all_begin(const struct access *a, MPI_Status *status)
{
    int code = a->write
                   ? MPI_File_write_at_all_begin(a->file, a->at, a->at_memory, a->count, a->type)
                   : MPI_File_read_at_all_begin(a->file, a->at, a->at_memory, a->count, a->type);
    int end = a->write ? MPI_File_write_at_all_end(a->file, a->at_memory, status)
                       : MPI_File_read_at_all_end(a->file, a->at_memory, status);

    return code != MPI_SUCCESS ? code : end;
}

static int all_begin(const struct access *a, MPI_Status *status)
{
    int code = a->write ? MPI_File_write_all_begin(a->file, a->at_memory, a->count, a->type)
                        : MPI_File_read_all_begin(a->file, a->at_memory, a->count, a->type);
    int end = a->write ? MPI_File_write_all_end(a->file, a->at_memory, status)
                       : MPI_File_read_all_end(a->file, a->at_memory, status);

    return code != MPI_SUCCESS ? code : end;
}

static int shared(const struct access *a, MPI_Status *status)
{
    return a->write ? MPI_File_write_shared(a->file, a->at_memory, a->count, a->type, status)
                    : MPI_File_read_shared(a->file, a->at_memory, a->count, a->type, status);
}

static int i_shared(const struct access *a, MPI_Status *status)
{
    MPI_Request request;
    int code = a->write ? MPI_File_iwrite_shared(a->file, a->at_memory, a->count, a->type, &request)
                        : MPI_File_iread_shared(a->file, a->at_memory, a->count, a->type, &request);

    return wait_for(code, &request, status);
}

static int ordered(const struct access *a, MPI_Status *status)
{
    return a->write ? MPI_File_write_ordered(a->file, a->at_memory, a->count, a->type, status)
                    : MPI_File_read_ordered(a->file, a->at_memory, a->count, a->type, status);
}

static int ordered_begin(const struct access *a, MPI_Status *status)
{
    int code = a->write ? MPI_File_write_ordered_begin(a->file, a->at_memory, a->count, a->type)
                        : MPI_File_read_ordered_begin(a->file, a->at_memory, a->count, a->type);
    int end = a->write ? MPI_File_write_ordered_end(a->file, a->at_memory, status)
                       : MPI_File_read_ordered_end(a->file, a->at_memory, status);

    return code != MPI_SUCCESS ? code : end;
}

/* Collectives stand first and twice, since most of what can go wrong does so in them. */
const struct call calls[] = {
    {"at_all", BY_OFFSET, true, at_all},
    {"all", BY_POINTER, true, all},
    {"at_all_begin", BY_OFFSET, true, at_all_begin},
    {"all_begin", BY_POINTER, true, all_begin},
    {"at_all", BY_OFFSET, true, at_all},
    {"all", BY_POINTER, true, all},
    {"at_all_begin", BY_OFFSET, true, at_all_begin},
    {"all_begin", BY_POINTER, true, all_begin},
    {"i*_at_all", BY_OFFSET, true, i_at_all},
    {"i*_all", BY_POINTER, true, i_all},
    {"at", BY_OFFSET, false, at},
    {"", BY_POINTER, false, by_pointer},
    {"i*_at", BY_OFFSET, false, i_at},
    {"i*", BY_POINTER, false, i_by_pointer},
    {"shared", BY_SHARED, false, shared},
    {"i*_shared", BY_SHARED, false, i_shared},
    {"ordered", BY_ORDER, true, ordered},
    {"ordered_begin", BY_ORDER, true, ordered_begin},
};
const int calls_count = sizeof calls / sizeof *calls;
