/* SPDX-License-Identifier: MIT */
/*
 * The data calls of MPI-IO, as a table and as calls.
 */
#include "table.h"
#include <stdlib.h>
#include <string.h>

#define ONE(name, write, pointer, mode, collective)                                                \
    {                                                                                              \
        name, write, OP_##pointer, OP_##mode, collective                                           \
    }
const struct op ops[] = {
    ONE("read_at", false, AT, BLOCKING, false),
    ONE("write_at", true, AT, BLOCKING, false),
    ONE("read", false, INDIVIDUAL, BLOCKING, false),
    ONE("write", true, INDIVIDUAL, BLOCKING, false),
    ONE("read_shared", false, SHARED, BLOCKING, false),
    ONE("write_shared", true, SHARED, BLOCKING, false),
    ONE("read_at_all", false, AT, BLOCKING, true),
    ONE("write_at_all", true, AT, BLOCKING, true),
    ONE("read_all", false, INDIVIDUAL, BLOCKING, true),
    ONE("write_all", true, INDIVIDUAL, BLOCKING, true),
    ONE("read_ordered", false, ORDERED, BLOCKING, true),
    ONE("write_ordered", true, ORDERED, BLOCKING, true),
    ONE("read_at_all_begin", false, AT, SPLIT, true),
    ONE("write_at_all_begin", true, AT, SPLIT, true),
    ONE("read_all_begin", false, INDIVIDUAL, SPLIT, true),
    ONE("write_all_begin", true, INDIVIDUAL, SPLIT, true),
    ONE("read_ordered_begin", false, ORDERED, SPLIT, true),
    ONE("write_ordered_begin", true, ORDERED, SPLIT, true),
    ONE("iread_at", false, AT, NONBLOCKING, false),
    ONE("iwrite_at", true, AT, NONBLOCKING, false),
    ONE("iread", false, INDIVIDUAL, NONBLOCKING, false),
    ONE("iwrite", true, INDIVIDUAL, NONBLOCKING, false),
    ONE("iread_shared", false, SHARED, NONBLOCKING, false),
    ONE("iwrite_shared", true, SHARED, NONBLOCKING, false),
    ONE("iread_at_all", false, AT, NONBLOCKING, true),
    ONE("iwrite_at_all", true, AT, NONBLOCKING, true),
    ONE("iread_all", false, INDIVIDUAL, NONBLOCKING, true),
    ONE("iwrite_all", true, INDIVIDUAL, NONBLOCKING, true),
};
#undef ONE
const int op_count = sizeof ops / sizeof *ops;

static int read_blocking(const struct op *op, MPI_File f, const struct call *c)
{
    switch (op->pointer) {
    case OP_AT:
        return (op->collective ? MPI_File_read_at_all : MPI_File_read_at)(
            f, c->at, c->buffer, c->count, c->type, c->status);
    case OP_INDIVIDUAL:
        return (op->collective ? MPI_File_read_all : MPI_File_read)(f, c->buffer, c->count, c->type,
                                                                    c->status);
    case OP_SHARED:
        return MPI_File_read_shared(f, c->buffer, c->count, c->type, c->status);
    case OP_ORDERED:
        return MPI_File_read_ordered(f, c->buffer, c->count, c->type, c->status);
    }
    abort();
}

static int write_blocking(const struct op *op, MPI_File f, const struct call *c)
{
    switch (op->pointer) {
    case OP_AT:
        return (op->collective ? MPI_File_write_at_all : MPI_File_write_at)(
            f, c->at, c->buffer, c->count, c->type, c->status);
    case OP_INDIVIDUAL:
        return (op->collective ? MPI_File_write_all : MPI_File_write)(f, c->buffer, c->count,
                                                                      c->type, c->status);
    case OP_SHARED:
        return MPI_File_write_shared(f, c->buffer, c->count, c->type, c->status);
    case OP_ORDERED:
        return MPI_File_write_ordered(f, c->buffer, c->count, c->type, c->status);
    }
    abort();
}

/* The end call is made after a failed begin too: ROMIO keeps the split collective open then. */
static int read_split(const struct op *op, MPI_File f, const struct call *c)
{
    int begin, end;

    if (op->pointer == OP_AT) {
        begin = MPI_File_read_at_all_begin(f, c->at, c->buffer, c->count, c->type);
        end = MPI_File_read_at_all_end(f, c->buffer, c->status);
    } else if (op->pointer == OP_INDIVIDUAL) {
        begin = MPI_File_read_all_begin(f, c->buffer, c->count, c->type);
        end = MPI_File_read_all_end(f, c->buffer, c->status);
    } else {
        begin = MPI_File_read_ordered_begin(f, c->buffer, c->count, c->type);
        end = MPI_File_read_ordered_end(f, c->buffer, c->status);
    }
    return begin != MPI_SUCCESS ? begin : end;
}

static int write_split(const struct op *op, MPI_File f, const struct call *c)
{
    int begin, end;

    if (op->pointer == OP_AT) {
        begin = MPI_File_write_at_all_begin(f, c->at, c->buffer, c->count, c->type);
        end = MPI_File_write_at_all_end(f, c->buffer, c->status);
    } else if (op->pointer == OP_INDIVIDUAL) {
        begin = MPI_File_write_all_begin(f, c->buffer, c->count, c->type);
        end = MPI_File_write_all_end(f, c->buffer, c->status);
    } else {
        begin = MPI_File_write_ordered_begin(f, c->buffer, c->count, c->type);
        end = MPI_File_write_ordered_end(f, c->buffer, c->status);
    }
    return begin != MPI_SUCCESS ? begin : end;
}

static int read_nonblocking(const struct op *op, MPI_File f, struct call *c)
{
    if (op->pointer == OP_AT)
        return (op->collective ? MPI_File_iread_at_all : MPI_File_iread_at)(
            f, c->at, c->buffer, c->count, c->type, &c->request);
    if (op->pointer == OP_SHARED)
        return MPI_File_iread_shared(f, c->buffer, c->count, c->type, &c->request);
    return (op->collective ? MPI_File_iread_all : MPI_File_iread)(f, c->buffer, c->count, c->type,
                                                                  &c->request);
}

static int write_nonblocking(const struct op *op, MPI_File f, struct call *c)
{
    if (op->pointer == OP_AT)
        return (op->collective ? MPI_File_iwrite_at_all : MPI_File_iwrite_at)(
            f, c->at, c->buffer, c->count, c->type, &c->request);
    if (op->pointer == OP_SHARED)
        return MPI_File_iwrite_shared(f, c->buffer, c->count, c->type, &c->request);
    return (op->collective ? MPI_File_iwrite_all : MPI_File_iwrite)(f, c->buffer, c->count, c->type,
                                                                    &c->request);
}

void op_issue(const struct op *op, MPI_File file, struct call *call)
{
    call->request = MPI_REQUEST_NULL;
    if (op->mode == OP_BLOCKING)
        call->code = (op->write ? write_blocking : read_blocking)(op, file, call);
    else if (op->mode == OP_SPLIT)
        call->code = (op->write ? write_split : read_split)(op, file, call);
    else
        call->code = (op->write ? write_nonblocking : read_nonblocking)(op, file, call);
}
