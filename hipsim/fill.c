/* SPDX-License-Identifier: MIT */
/* Memsets. */
#include "copy.h"

#include "counters.h"
#include "error.h"
#include "memory.h"
#include "stream.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fill_op {
    struct hipsim_op op;
    struct hipsim_fill fill;
    struct hipsim_range to;
};

static void fill_row(char *row, const struct hipsim_fill *fill)
{
    if (fill->unit == 1) {
        memset(row, (int)fill->value, fill->width);
        return;
    }
    for (size_t i = 0; i < fill->width; i++)
        memcpy(row + i * fill->unit, &fill->value, fill->unit);
}

static void run_fill(struct hipsim_op *base, struct hipsim_stream *stream)
{
    struct fill_op *op = (struct fill_op *)base;
    const struct hipsim_fill *fill = &op->fill;

    (void)stream;
    for (size_t row = 0; row < fill->height; row++)
        fill_row(op->to.view + row * fill->pitch, fill);
    hipsim_counters_add(HIPSIM_COUNT_fills, 1);
    hipsim_counters_add(HIPSIM_COUNT_bytes_filled,
                        (int64_t)(fill->width * fill->unit * fill->height));
}

static void release_fill(struct hipsim_op *base)
{
    struct fill_op *op = (struct fill_op *)base;

    hipsim_memory_put(&op->to);
    free(op);
}

static int resolve(struct fill_op *op)
{
    const struct hipsim_fill *fill = &op->fill;
    size_t bytes, rows;
    int rc;

    if (__builtin_mul_overflow(fill->width, (size_t)fill->unit, &bytes) ||
        __builtin_mul_overflow(fill->height - 1, fill->pitch, &rows))
        return HIPSIM_INVALID_VALUE;
    if (fill->height > 1 && fill->pitch < bytes)
        return HIPSIM_INVALID_VALUE;
    if (__builtin_add_overflow(bytes, rows, &bytes))
        return HIPSIM_INVALID_VALUE;
    rc = hipsim_memory_resolve(fill->to, bytes, &op->to);
    /* Memory that the device does not know cannot be set by it. */
    return rc ? rc : op->to.block ? 0 : HIPSIM_INVALID_VALUE;
}

static int new_fill(const struct hipsim_fill *fill, int device, struct fill_op **out)
{
    struct fill_op *op = calloc(1, sizeof(*op));
    int rc;

    if (!op)
        return HIPSIM_OUT_OF_MEMORY;
    op->op.run = run_fill;
    op->op.release = release_fill;
    op->fill = *fill;
    rc = resolve(op);
    if (rc) {
        release_fill(&op->op);
        return rc;
    }
    if (op->to.kind == HIPSIM_KIND_DEVICE && op->to.block->device != device)
        hipsim_counters_add(HIPSIM_COUNT_foreign_device, 1);
    *out = op;
    return 0;
}

int hipsim_fill_async(const struct hipsim_fill *fill, struct hipsim_stream *stream)
{
    struct fill_op *op;
    int rc;

    if (!fill->width || !fill->height)
        return 0;
    rc = new_fill(fill, stream->device, &op);
    return rc ? rc : hipsim_stream_submit(stream, &op->op, NULL);
}

int hipsim_fill_blocking(const struct hipsim_fill *fill, struct hipsim_stream *stream)
{
    struct fill_op *op;
    int rc;

    if (!fill->width || !fill->height)
        return 0;
    rc = new_fill(fill, stream->device, &op);
    if (rc)
        return rc;
    if (op->to.kind == HIPSIM_KIND_DEVICE)
        return hipsim_stream_submit(stream, &op->op, NULL);
    return hipsim_stream_submit_wait(stream, &op->op);
}
