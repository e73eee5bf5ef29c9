/* SPDX-License-Identifier: MIT */
/*
 * Pack: gathers the bytes of a memory layout into a packed staging chunk, and scatters a chunk over
 * a layout.
 *
 * Many small pieces are moved by kernels (gather.h). Where there are none to have, copies are
 * queued on the lane's stream, as few as the shape allows: one for a run, one 2D copy for a strip
 * of blocks. A chunk of many tiny runs is gathered by one copy of the range they lie in, if they
 * fill a good part of it and it lies in one allocation, and picked out by the CPU.
 */
#pragma once
#include "device/device.h"
#include "extent.h"
#include "lanes.h"
#include "tunables.h"
#include <stdint.h>

/* The memory side of a request, for one lane. */
struct hipio_pack {
    struct hipio_lane *lane;
    const struct hipio_memory *memory;
    void *base; /* memory offsets are relative to it */
    /* May kernels be used? HIPIO_OFF where the slot is not pinned. */
    enum hipio_switch kernels;
    /* The allocation that was asked about last; both 0: none yet. */
    uintptr_t known_start;
    uintptr_t known_end;
};

/*
 * Queue `bytes` bytes between the layout at `cursor`, which is moved past them, and `slot`.
 * Complete once the stream has passed what was queued (gather may also have waited for a part). The
 * slot must stay as it is until then, also after an error, which is the runtime's, with its text.
 */
int hipio_pack_gather(struct hipio_pack *pack, struct hipio_cursor *cursor, void *slot,
                      uint64_t bytes);
int hipio_pack_scatter(struct hipio_pack *pack, struct hipio_cursor *cursor, const void *slot,
                       uint64_t bytes);
