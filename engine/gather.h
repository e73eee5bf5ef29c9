/* SPDX-License-Identifier: MIT */
/*
 * Gather: moves the bytes of a layout between GPU memory and pinned memory by kernels, which touch
 * both sides directly. The cost is that of the packed bytes, however small the blocks are.
 *
 * A description that is more than one strip is written
 * to a pinned table for the GPU to read; that table is all the memory there is, whatever the
 * layout.
 */
#pragma once
#include "device/device.h"
#include "extent.h"
#include <stdint.h>

/* What one stream needs for its launches. One thread at a time. */
struct hipio_gather;

/*
 * 0, or -ENOTSUP: the device can't run our kernel (module.h); -ENOMEM; or the runtime's error, with
 * text.
 */
int hipio_gather_create(const struct hipio_device_ops *ops, int device, struct hipio_stream *stream,
                        struct hipio_gather **out);
/* What it launched must be complete. NULL is allowed. */
void hipio_gather_destroy(struct hipio_gather *gather);
/* Its device was reset (pulse.h): what it had there is no longer counted, nor touched. */
void hipio_gather_abandon(struct hipio_gather *gather);

struct hipio_gather_work {
    void *base;   /* memory offsets are relative to it */
    void *packed; /* `bytes` bytes of pinned memory */
    uint64_t bytes;
    enum hipio_copy way; /* HIPIO_COPY_TO_HOST packs, HIPIO_COPY_TO_DEVICE unpacks */
    /* 0, or 2, 4, 8, 16: reverses the bytes of each element of that size. The first packed byte
     * begins an element; bytes and all runs are of whole elements (-EINVAL). */
    uint32_t swap;
};

/*
 * Queues the launches that move work->bytes bytes between the layout at `cursor`, which is moved
 * past them, and work->packed. Waits for the stream whenever the table is full. Complete once the
 * stream has passed what was queued; the packed memory must stay until then, also after an error,
 * which is the runtime's, with text.
 */
int hipio_gather_run(struct hipio_gather *gather, struct hipio_cursor *cursor,
                     const struct hipio_gather_work *work);

/*
 * Queues a copy whose size is known only when the stream reaches it: between memory at
 * `memory` + *offset and `packed`, as many bytes as *size says there are beyond the first `done`,
 * at most `bytes`. `size` and `offset` are pinned memory; either may be NULL.
 */
struct hipio_gather_late {
    void *memory;
    void *packed;
    uint64_t bytes;
    enum hipio_copy way;
    const uint64_t *size;
    uint64_t done;
    const int64_t *offset;
};
int hipio_gather_copy(struct hipio_gather *gather, const struct hipio_gather_late *late);
