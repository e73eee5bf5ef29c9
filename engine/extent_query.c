/* SPDX-License-Identifier: MIT */
/*
 * Extent: questions about a layout, answered from its description without walking its bytes.
 */
#include "extent.h"
#include "extent_node.h"

uint64_t hipio_layout_size(const struct hipio_layout *layout)
{
    return layout->size;
}

bool hipio_layout_is_contiguous(const struct hipio_layout *layout, int64_t *offset)
{
    if (!node_is_run(layout))
        return false;
    *offset = layout->offset;
    return true;
}

bool hipio_layout_is_monotonic(const struct hipio_layout *layout)
{
    return layout->monotonic;
}

/* ---- Bounds ---- */

struct bounds {
    int64_t low;
    int64_t high;
};

static void bounds_add(struct bounds *bounds, int64_t low, int64_t high)
{
    if (low < bounds->low)
        bounds->low = low;
    if (high > bounds->high)
        bounds->high = high;
}

static void add_range(struct bounds *bounds, const struct hipio_layout *node, int64_t base,
                      uint64_t start, uint64_t length);

/* `length` bytes of part i, from its byte `start` on. */
static void add_piece(struct bounds *bounds, const struct hipio_layout *node, int64_t base,
                      uint64_t i, const uint64_t piece[2])
{
    const int64_t at = offset_add(base, (uint64_t)part_offset(node, i));

    if (node_is_leaf(node))
        bounds_add(bounds, offset_add(at, piece[0]), offset_add(at, piece[0] + piece[1]));
    else
        add_range(bounds, part_child(node, i), at, piece[0], piece[1]);
}

static void add_part(struct bounds *bounds, const struct hipio_layout *node, int64_t base,
                     uint64_t i)
{
    bounds_add(bounds, offset_add(base, (uint64_t)part_start(node, i)),
               offset_add(base, (uint64_t)part_end(node, i)));
}

/* Whole parts first .. last. Only unordered arrays have to be looked through. */
static void add_parts(struct bounds *bounds, const struct hipio_layout *node, int64_t base,
                      uint64_t first, uint64_t last)
{
    if (node_is_strided(node) || node->monotonic) {
        add_part(bounds, node, base, first);
        add_part(bounds, node, base, last);
        return;
    }
    for (uint64_t i = first; i <= last; ++i)
        add_part(bounds, node, base, i);
}

/* Recursion ends at the leaves, at most HIPIO_LAYOUT_DEPTH_MAX levels down, and only the first and
 * the last part of a node are entered. */
static void add_range(struct bounds *bounds, const struct hipio_layout *node, int64_t base,
                      uint64_t start, uint64_t length)
{
    if (length == node->size) {
        bounds_add(bounds, offset_add(base, (uint64_t)node->low),
                   offset_add(base, (uint64_t)node->high));
        return;
    }

    const uint64_t end = start + length;
    const uint64_t first = part_find(node, start);
    const uint64_t last = part_find(node, end - 1);
    const uint64_t skipped = start - part_position(node, first);
    if (first == last) {
        add_piece(bounds, node, base, first, (uint64_t[]){skipped, length});
        return;
    }
    add_piece(bounds, node, base, first, (uint64_t[]){skipped, part_size(node, first) - skipped});
    add_piece(bounds, node, base, last, (uint64_t[]){0, end - part_position(node, last)});
    if (last - first > 1)
        add_parts(bounds, node, base, first + 1, last - 1);
}

void hipio_layout_bounds(const struct hipio_layout *layout, uint64_t start, uint64_t length,
                         int64_t *low, int64_t *high)
{
    struct bounds bounds = {INT64_MAX, INT64_MIN};

    *low = 0;
    *high = 0;
    if (start >= layout->size || length == 0)
        return;
    if (length > layout->size - start)
        length = layout->size - start;
    add_range(&bounds, layout, 0, start, length);
    *low = bounds.low;
    *high = bounds.high;
}

/* ---- Bytes below a limit ---- */

/* Last part of a monotonic node that begins below `limit`, which is above the node's lowest byte.
 */
static uint64_t last_part_below(const struct hipio_layout *node, int64_t limit)
{
    uint64_t low = 0;
    uint64_t high = node->count;

    if (node->count == 1)
        return 0;
    if (node_is_strided(node)) {
        /* A monotonic node's stride is at least its part's span, so above zero. */
        uint64_t i = ((uint64_t)limit - (uint64_t)node->low - 1) / (uint64_t)node->stride;
        return i < node->count ? i : node->count - 1;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (part_start(node, middle) < limit)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Bytes of a monotonic layout that lie below `limit`. */
static uint64_t bytes_below(const struct hipio_layout *node, __int128 limit)
{
    uint64_t below = 0;

    for (;;) {
        if (limit <= node->low)
            return below;
        if (limit >= node->high)
            return below + node->size;

        const uint64_t i = last_part_below(node, (int64_t)limit);
        below += part_position(node, i);
        limit += part_low(node, i) - (__int128)part_start(node, i);
        if (node_is_leaf(node)) {
            const uint64_t size = part_size(node, i);
            return below + (limit < (__int128)size ? (uint64_t)limit : size);
        }
        node = part_child(node, i);
    }
}

uint64_t hipio_layout_bytes_below(const struct hipio_layout *layout, uint64_t start,
                                  uint64_t length, int64_t limit)
{
    if (start >= layout->size)
        return 0;
    if (length > layout->size - start)
        length = layout->size - start;

    const uint64_t below = bytes_below(layout, limit);
    if (below <= start)
        return 0;
    return below - start < length ? below - start : length;
}
