/* SPDX-License-Identifier: MIT */
/*
 * Rows: copies between the bytes of two layouts, one of GPU memory and one of pinned host memory,
 * as few as the two shapes together allow: rows of equal width on both sides, or rows on one side
 * and a run on the other, are one 2D copy.
 */
#pragma once
#include "device/device.h"
#include "extent.h"
#include <stdbool.h>
#include <stdint.h>

/* One side: the bytes of `layout` from packed position `start` on, at base + offset. */
struct hipio_rows_side {
    void *base;
    const struct hipio_layout *layout;
    uint64_t start;
};

struct hipio_rows {
    struct hipio_rows_side from, to;
    uint64_t bytes;
    enum hipio_copy way;
};

/* Would it take few copies for what they move? Looks no further than it must. */
bool hipio_rows_are_few(const struct hipio_rows *rows);

/*
 * Queues the copies. Complete once the stream has passed them; both sides must stay until then,
 * also after an error, which is the runtime's with its text, or -EINVAL where a layout ends early.
 */
int hipio_rows_copy(const struct hipio_device_ops *ops, struct hipio_stream *stream,
                    const struct hipio_rows *rows);
