/* SPDX-License-Identifier: MIT */
/*
 * Pack: turns strips of a layout into copies.
 */
#include "pack.h"
#include "engine.h"
#include "status.h"
#include <errno.h>
#include <string.h>

/* A direct gather of more copies than this, with fewer bytes each than the other, is worth a look
 * at the range around it. */
#define FEW_COPIES 16u
#define SMALL_COPY 4096u
/* Rows that a 2D copy moves as fast as a kernel; it does not take the GPU's processors. Kernels of
 * several processes take turns on a GPU and copies do not: there rows of 64 bytes came to 28 GB/s
 * by copies and to 17 by kernels (8 processes, H200). */
#define WIDE_ROW 1024u
#define WIDE_ROW_AMONG_NEIGHBOURS 64u
/* The range may hold this many bytes for each byte that is wanted. */
#define SPARSEST 4u

static char *address(const struct hipio_pack *pack, int64_t offset)
{
    return (char *)((uintptr_t)pack->base + (uintptr_t)offset);
}

static bool is_grid(const struct hipio_strip *strip)
{
    return strip->count > 1 && strip->stride >= 0 && (uint64_t)strip->stride >= strip->length;
}

static int copy_bytes(const struct hipio_pack *pack, char *memory, char *slot, uint64_t bytes,
                      enum hipio_copy way)
{
    const struct hipio_lane *lane = pack->lane;

    if (way == HIPIO_COPY_TO_HOST)
        return lane->ops->copy(lane->stream, slot, memory, bytes, way);
    return lane->ops->copy(lane->stream, memory, slot, bytes, way);
}

/* How many of the bytes from `memory` on are one allocation to the runtime; all if it can't tell.
 * Keeps the thread's text. */
static uint64_t bytes_of_allocation(const struct hipio_pack *pack, const char *memory,
                                    uint64_t bytes)
{
    char text[HIPIO_TEXT_MAX];
    uintptr_t start;
    uint64_t length;

    memcpy(text, hipio_status_text(), sizeof text);
    int status = pack->lane->ops->range(pack->memory, memory, &start, &length);
    hipio_status_set(0, "%.*s", (int)sizeof text - 1, text);
    if (status < 0 || start + length - (uintptr_t)memory >= bytes)
        return bytes;
    return start + length - (uintptr_t)memory;
}

/* Memory may be mapped from several pieces, and some runtimes (HIP) refuse a copy over the seam
 * between two. The refused copy has done nothing, so the pieces are copied one by one. */
static int copy_run(const struct hipio_pack *pack, char *memory, char *slot, uint64_t bytes,
                    enum hipio_copy way)
{
    int status = copy_bytes(pack, memory, slot, bytes, way);

    while (status == -EINVAL) {
        const uint64_t n = bytes_of_allocation(pack, memory, bytes);

        if (n == bytes)
            return status;
        status = copy_bytes(pack, memory, slot, n, way);
        if (status < 0)
            return status;
        memory += n;
        slot += n;
        bytes -= n;
        status = copy_bytes(pack, memory, slot, bytes, way);
    }
    return status;
}

static int copy_grid(const struct hipio_pack *pack, const struct hipio_strip *strip, char *slot,
                     enum hipio_copy way)
{
    const struct hipio_lane *lane = pack->lane;
    char *memory = address(pack, strip->offset);
    uint64_t stride = (uint64_t)strip->stride;

    if (way == HIPIO_COPY_TO_HOST)
        return lane->ops->copy_2d(lane->stream, slot, strip->length, memory, stride, strip->length,
                                  strip->count, way);
    return lane->ops->copy_2d(lane->stream, memory, stride, slot, strip->length, strip->length,
                              strip->count, way);
}

/* What is known of a range of addresses. */
enum span { INSIDE, CROSSES, UNKNOWN };

/* Does [low, high) lie in one allocation? The last answer is kept: most questions are about it. */
static enum span ask_span(struct hipio_pack *pack, uintptr_t low, uintptr_t high)
{
    uintptr_t start;
    uint64_t length;

    if (low >= pack->known_start && high <= pack->known_end)
        return INSIDE;
    if (pack->lane->ops->range(pack->memory, (const void *)low, &start, &length) < 0)
        return UNKNOWN;
    pack->known_start = start;
    pack->known_end = start + length;
    return high <= pack->known_end ? INSIDE : CROSSES;
}

/* Runtimes check a 2D copy against the allocation of its first row. */
static bool grid_is_whole(struct hipio_pack *pack, const struct hipio_strip *strip)
{
    uintptr_t low = (uintptr_t)address(pack, strip->offset);
    uint64_t bytes = (strip->count - 1) * (uint64_t)strip->stride + strip->length;

    return ask_span(pack, low, low + bytes) != CROSSES;
}

static int copy_strip(struct hipio_pack *pack, const struct hipio_strip *strip, char *slot,
                      enum hipio_copy way)
{
    if (is_grid(strip) && grid_is_whole(pack, strip)) {
        int status = copy_grid(pack, strip, slot, way);
        if (status != -ENOTSUP)
            return status;
    }
    for (uint64_t i = 0; i < strip->count; i++) {
        int64_t offset = strip->offset + (int64_t)i * strip->stride;
        int status =
            copy_run(pack, address(pack, offset), slot + i * strip->length, strip->length, way);
        if (status < 0)
            return status;
    }
    return 0;
}

static int copy_strips(struct hipio_pack *pack, struct hipio_cursor *cursor, char *slot,
                       uint64_t bytes, enum hipio_copy way)
{
    struct hipio_strip strip;

    while (bytes > 0) {
        uint64_t n = hipio_cursor_next(cursor, bytes, &strip);
        if (n == 0)
            return hipio_status_set(-EINVAL, "the memory layout ends %llu bytes early",
                                    (unsigned long long)bytes);
        int status = copy_strip(pack, &strip, slot, way);
        if (status < 0)
            return status;
        slot += n;
        bytes -= n;
    }
    return 0;
}

/* Would copying strip by strip take many copies of few bytes? Looks no further than it must. */
static bool is_fine_grained(const struct hipio_cursor *cursor, uint64_t bytes)
{
    struct hipio_cursor ahead = *cursor;
    struct hipio_strip strip;
    uint64_t copies = 0;
    uint64_t seen = 0;

    while (seen < bytes && copies <= FEW_COPIES) {
        uint64_t n = hipio_cursor_next(&ahead, bytes - seen, &strip);
        if (n == 0)
            return false;
        seen += n;
        copies += is_grid(&strip) ? 1 : strip.count;
    }
    return copies > FEW_COPIES && seen / copies < SMALL_COPY;
}

/* How many of the next `bytes` bytes, at most, can be gathered through their range; 0: none. */
static uint64_t fit_range(struct hipio_pack *pack, const struct hipio_cursor *cursor,
                          uint64_t bytes, int64_t *low, int64_t *high)
{
    hipio_layout_bounds(cursor->root, cursor->position, bytes, low, high);
    while ((uint64_t)(*high - *low) > HIPIO_LANE_SCRATCH) {
        /* Fewer bytes in more than the scratch memory are too sparse anyway. */
        if (bytes <= HIPIO_LANE_SCRATCH / SPARSEST)
            return 0;
        bytes /= 2;
        hipio_layout_bounds(cursor->root, cursor->position, bytes, low, high);
    }
    if ((uint64_t)(*high - *low) / SPARSEST > bytes)
        return 0;
    uintptr_t from = (uintptr_t)pack->base + (uintptr_t)*low;
    uintptr_t to = (uintptr_t)pack->base + (uintptr_t)*high;
    /* Only memory of one allocation may be read between the runs. */
    return ask_span(pack, from, to) == INSIDE ? bytes : 0;
}

static void pick(struct hipio_cursor *cursor, const char *range, int64_t low, char *slot,
                 uint64_t bytes)
{
    struct hipio_strip strip;

    while (bytes > 0) {
        uint64_t n = hipio_cursor_next(cursor, bytes, &strip);
        for (uint64_t i = 0; i < strip.count; i++) {
            int64_t offset = strip.offset + (int64_t)i * strip.stride;
            memcpy(slot, range + (offset - low), strip.length);
            slot += strip.length;
        }
        bytes -= n;
    }
}

/* Copies the range around the next bytes in one go and picks them out. Waits for the copy. */
static int gather_range(struct hipio_pack *pack, struct hipio_cursor *cursor, char *slot,
                        uint64_t bytes, int64_t low, int64_t high)
{
    struct hipio_lane *lane = pack->lane;
    char *range = hipio_lanes_scratch(lane);

    if (!range)
        return copy_strips(pack, cursor, slot, bytes, HIPIO_COPY_TO_HOST);
    int status = lane->ops->copy(lane->stream, range, address(pack, low), (uint64_t)(high - low),
                                 HIPIO_COPY_TO_HOST);
    int waited = lane->ops->stream_synchronize(lane->stream);
    if (status < 0 || waited < 0)
        return status < 0 ? status : waited;
    pick(cursor, range, low, slot, bytes);
    return 0;
}

static uint64_t wide_row(void)
{
    return hipio_engine_neighbours() > 1 ? WIDE_ROW_AMONG_NEIGHBOURS : WIDE_ROW;
}

/* Would copies be many? Looks no further than it must. */
static bool suits_kernel(const struct hipio_pack *pack, const struct hipio_cursor *cursor,
                         uint64_t bytes)
{
    struct hipio_cursor ahead = *cursor;
    struct hipio_strip strip;
    uint64_t copies = 0;

    if (pack->kernels != HIPIO_AUTO)
        return pack->kernels == HIPIO_FORCE;
    while (bytes > 0 && copies <= FEW_COPIES) {
        uint64_t n = hipio_cursor_next(&ahead, bytes, &strip);
        if (n == 0)
            return false;
        bytes -= n;
        copies += is_grid(&strip) && strip.length >= wide_row() ? 1 : strip.count;
    }
    return copies > FEW_COPIES;
}

/* Moves the bytes by kernels. -ENOTSUP: not possible, nothing has changed. */
static int move_by_kernel(struct hipio_pack *pack, struct hipio_cursor *cursor, void *slot,
                          uint64_t bytes, enum hipio_copy way)
{
    struct hipio_gather_work work = {
        .base = pack->base, .packed = slot, .bytes = bytes, .way = way};
    struct hipio_cursor start;
    struct hipio_gather *gather;

    if (pack->lane->ops == &hipio_device_host || !suits_kernel(pack, cursor, bytes))
        return -ENOTSUP;
    gather = hipio_lanes_gather(pack->lane);
    if (!gather)
        return -ENOTSUP;
    start = *cursor;
    int status = hipio_gather_run(gather, cursor, &work);
    if (status != -ENOMEM && status != -ENOTSUP)
        return status;
    /* A table could not be pinned, or the runtime has second thoughts. What is queued does no harm.
     */
    *cursor = start;
    return -ENOTSUP;
}

int hipio_pack_gather(struct hipio_pack *pack, struct hipio_cursor *cursor, void *slot,
                      uint64_t bytes)
{
    char *to = slot;
    int64_t low, high;

    int moved = move_by_kernel(pack, cursor, slot, bytes, HIPIO_COPY_TO_HOST);
    if (moved != -ENOTSUP)
        return moved;
    /* The host's copies are as cheap one by one. */
    if (pack->lane->ops == &hipio_device_host || !is_fine_grained(cursor, bytes))
        return copy_strips(pack, cursor, to, bytes, HIPIO_COPY_TO_HOST);
    while (bytes > 0) {
        uint64_t n = fit_range(pack, cursor, bytes, &low, &high);
        if (n == 0)
            return copy_strips(pack, cursor, to, bytes, HIPIO_COPY_TO_HOST);
        int status = gather_range(pack, cursor, to, n, low, high);
        if (status < 0)
            return status;
        to += n;
        bytes -= n;
    }
    return 0;
}

int hipio_pack_scatter(struct hipio_pack *pack, struct hipio_cursor *cursor, const void *slot,
                       uint64_t bytes)
{
    /* The copy direction decides that the slot is only read. */
    char *from = (char *)(uintptr_t)slot;

    int moved = move_by_kernel(pack, cursor, from, bytes, HIPIO_COPY_TO_DEVICE);
    if (moved != -ENOTSUP)
        return moved;
    return copy_strips(pack, cursor, from, bytes, HIPIO_COPY_TO_DEVICE);
}
