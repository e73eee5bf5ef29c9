/* SPDX-License-Identifier: MIT */
/* The copy engine. */
#include "copy.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "flavor.h"
#include "memory.h"
#include "stream.h"

#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PIECE = 256 << 10,      /* long rows move in pieces, so that a torn copy can be seen */
    STAGED_LIMIT = 64 << 10 /* blocking copies from pageable memory up to this do not wait */
};

struct copy_op {
    struct hipsim_op op;
    struct hipsim_copy copy;
    struct hipsim_range to, from;
    void *staged; /* the source's snapshot, for blocking copies that do not wait */
};

struct hipsim_copy hipsim_copy_linear(void *to, const void *from, size_t bytes,
                                      enum hipsim_direction direction)
{
    return (struct hipsim_copy){
        .to = to, .from = from, .width = bytes, .height = 1, .depth = 1, .direction = direction};
}

/* Bytes from the first to the last one touched. False if that overflows. */
static bool span(const struct hipsim_copy *copy, size_t pitch, size_t slice, size_t *bytes)
{
    size_t planes, rows;

    return !__builtin_mul_overflow(copy->depth - 1, slice, &planes) &&
           !__builtin_mul_overflow(copy->height - 1, pitch, &rows) &&
           !__builtin_add_overflow(planes, rows, bytes) &&
           !__builtin_add_overflow(*bytes, copy->width, bytes);
}

static bool on_device(enum hipsim_kind kind)
{
    return kind == HIPSIM_KIND_DEVICE || kind == HIPSIM_KIND_MANAGED;
}

static enum hipsim_direction actual(const struct copy_op *op)
{
    if (on_device(op->from.kind))
        return on_device(op->to.kind) ? HIPSIM_COPY_D2D : HIPSIM_COPY_D2H;
    return on_device(op->to.kind) ? HIPSIM_COPY_H2D : HIPSIM_COPY_H2H;
}

/* Can `kind` stand on a side that was said to be on the device (or on the host)? Managed and
 * pinned memory are at home on both. */
static bool fits(enum hipsim_kind kind, bool device)
{
    return device ? kind != HIPSIM_KIND_PAGEABLE : kind != HIPSIM_KIND_DEVICE;
}

static bool contradicts(const struct copy_op *op)
{
    enum hipsim_direction stated = op->copy.direction;

    if (stated == HIPSIM_COPY_ANY)
        return false;
    return !fits(op->from.kind, stated == HIPSIM_COPY_D2H || stated == HIPSIM_COPY_D2D) ||
           !fits(op->to.kind, stated == HIPSIM_COPY_H2D || stated == HIPSIM_COPY_D2D);
}

static void count_copy(const struct copy_op *op)
{
    static const enum hipsim_counter_id copies[] = {
        HIPSIM_COUNT_copies_h2h, HIPSIM_COUNT_copies_h2d, HIPSIM_COUNT_copies_d2h,
        HIPSIM_COUNT_copies_d2d};
    static const enum hipsim_counter_id bytes[] = {HIPSIM_COUNT_bytes_h2h, HIPSIM_COUNT_bytes_h2d,
                                                   HIPSIM_COUNT_bytes_d2h, HIPSIM_COUNT_bytes_d2d};
    enum hipsim_direction direction = actual(op);
    int64_t total = (int64_t)(op->copy.width * op->copy.height * op->copy.depth);

    hipsim_counters_add(copies[direction], 1);
    hipsim_counters_add(bytes[direction], total);
    if (op->copy.height * op->copy.depth > 1)
        hipsim_counters_add(HIPSIM_COUNT_copies_strided, 1);
    if (!op->staged && (!op->to.block || !op->from.block))
        hipsim_counters_add(HIPSIM_COUNT_bytes_pageable, total);
}

static void copy_row(char *to, const char *from, size_t width)
{
    while (width > PIECE) {
        memmove(to, from, PIECE);
        to += PIECE;
        from += PIECE;
        width -= PIECE;
        sched_yield();
    }
    memmove(to, from, width);
}

static void run_copy(struct hipsim_op *base, struct hipsim_stream *stream)
{
    struct copy_op *op = (struct copy_op *)base;
    const struct hipsim_copy *copy = &op->copy;

    (void)stream;
    for (size_t plane = 0; plane < copy->depth; plane++)
        for (size_t row = 0; row < copy->height; row++)
            copy_row(op->to.view + plane * copy->to_slice + row * copy->to_pitch,
                     op->from.view + plane * copy->from_slice + row * copy->from_pitch,
                     copy->width);
    count_copy(op);
}

static void release_copy(struct hipsim_op *base)
{
    struct copy_op *op = (struct copy_op *)base;

    hipsim_memory_put(&op->to);
    hipsim_memory_put(&op->from);
    free(op->staged);
    free(op);
}

static void count_foreign(const struct hipsim_range *range, int device)
{
    if (range->kind == HIPSIM_KIND_DEVICE && range->block->device != device)
        hipsim_counters_add(HIPSIM_COUNT_foreign_device, 1);
}

/* Said to be on the device, unknown to the runtime, and no memory that anyone can read. */
static bool unreadable(const struct hipsim_range *range, bool device)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {range->view, 1};

    return device && !range->block && process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1;
}

/* HIP holds a copy against the allocation that it begins in, and takes each piece of a reservation
 * for one. CUDA copies over seams. */
static bool crosses_seam(const struct hipsim_range *range, size_t bytes)
{
    return hipsim_flavor.vendor == HIPSIM_HIP && range->block && range->block->piece &&
           bytes > range->block->size - (size_t)(range->view - range->block->view);
}

/* Takes both sides apart and checks them as the real runtime does. */
static int resolve(struct copy_op *op, int device)
{
    const struct hipsim_copy *copy = &op->copy;
    size_t to_bytes, from_bytes;
    int rc;

    if (!span(copy, copy->to_pitch, copy->to_slice, &to_bytes) ||
        !span(copy, copy->from_pitch, copy->from_slice, &from_bytes))
        return HIPSIM_INVALID_VALUE;
    rc = hipsim_memory_resolve(copy->to, to_bytes, &op->to);
    if (!rc)
        rc = hipsim_memory_resolve(copy->from, from_bytes, &op->from);
    if (rc)
        return rc;
    if (crosses_seam(&op->to, to_bytes) || crosses_seam(&op->from, from_bytes))
        return HIPSIM_INVALID_VALUE;
    /* A direction is stated that cannot be: neither pointer is the runtime's, or the one that is
     * said to be on the device is no memory that anyone can read. */
    if (unreadable(&op->to,
                   copy->direction == HIPSIM_COPY_H2D || copy->direction == HIPSIM_COPY_D2D) ||
        unreadable(&op->from,
                   copy->direction == HIPSIM_COPY_D2H || copy->direction == HIPSIM_COPY_D2D))
        return HIPSIM_INVALID_VALUE;
    if (!op->to.block && !op->from.block && copy->direction != HIPSIM_COPY_H2H &&
        copy->direction != HIPSIM_COPY_ANY)
        return HIPSIM_INVALID_VALUE;
    if (contradicts(op)) {
        hipsim_counters_add(HIPSIM_COUNT_kind_mismatch, 1);
        if (copy->strict)
            return HIPSIM_INVALID_VALUE;
    }
    count_foreign(&op->to, device);
    count_foreign(&op->from, device);
    return 0;
}

static int check_shape(const struct hipsim_copy *copy)
{
    if (copy->direction < HIPSIM_COPY_H2H || copy->direction > HIPSIM_COPY_ANY)
        return HIPSIM_INVALID_DIRECTION;
    if (copy->height > 1 && (copy->width > copy->to_pitch || copy->width > copy->from_pitch))
        return HIPSIM_INVALID_PITCH;
    if (copy->to_pitch > INT32_MAX || copy->from_pitch > INT32_MAX)
        return HIPSIM_INVALID_VALUE;
    return 0;
}

static int new_copy(const struct hipsim_copy *copy, int device, struct copy_op **out)
{
    struct copy_op *op;
    int rc = check_shape(copy);

    if (rc)
        return rc;
    op = calloc(1, sizeof(*op));
    if (!op)
        return HIPSIM_OUT_OF_MEMORY;
    op->op.run = run_copy;
    op->op.release = release_copy;
    op->copy = *copy;
    rc = resolve(op, device);
    if (rc)
        release_copy(&op->op);
    else
        *out = op;
    return rc;
}

static bool is_empty(const struct hipsim_copy *copy)
{
    return !copy->width || !copy->height || !copy->depth;
}

int hipsim_copy_async(const struct hipsim_copy *copy, struct hipsim_stream *stream)
{
    struct copy_op *op;
    int rc;

    if (is_empty(copy))
        return 0;
    rc = new_copy(copy, stream->device, &op);
    return rc ? rc : hipsim_stream_submit(stream, &op->op, NULL);
}

/* Replaces a small contiguous pageable source by a snapshot. */
static bool stage(struct copy_op *op)
{
    const struct hipsim_copy *copy = &op->copy;

    if (op->from.block || copy->height * copy->depth != 1 || copy->width > STAGED_LIMIT ||
        actual(op) != HIPSIM_COPY_H2D)
        return false;
    op->staged = malloc(copy->width);
    if (!op->staged)
        return false;
    memcpy(op->staged, op->from.view, copy->width);
    op->from.view = op->staged;
    return true;
}

int hipsim_copy_blocking(const struct hipsim_copy *copy, struct hipsim_stream *stream)
{
    struct copy_op *op;
    int rc;

    if (is_empty(copy))
        return 0;
    rc = new_copy(copy, stream->device, &op);
    if (rc)
        return rc;
    if (stage(op) || (op->from.kind == HIPSIM_KIND_DEVICE && op->to.kind == HIPSIM_KIND_DEVICE))
        return hipsim_stream_submit(stream, &op->op, NULL);
    return hipsim_stream_submit_wait(stream, &op->op);
}
