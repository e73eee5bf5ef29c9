/* SPDX-License-Identifier: MIT */
/*
 * Extent: cursors. Unless it is at the end (depth 0), a cursor rests on a run that still has
 * bytes: frame[depth - 1] is a leaf, and `within` of its run are taken.
 */
#include "extent.h"
#include "extent_node.h"

static void push(struct hipio_cursor *cursor, const struct hipio_layout *node, uint64_t index,
                 int64_t base)
{
    cursor->frame[cursor->depth].node = node;
    cursor->frame[cursor->depth].index = index;
    cursor->frame[cursor->depth].base = base;
    ++cursor->depth;
}

/* From the part that the top frame is at down to its first run. */
static void descend(struct hipio_cursor *cursor)
{
    for (;;) {
        const uint32_t top = cursor->depth - 1;
        const struct hipio_layout *node = cursor->frame[top].node;
        const uint64_t i = cursor->frame[top].index;

        if (node_is_leaf(node))
            return;
        push(cursor, part_child(node, i), 0,
             offset_add(cursor->frame[top].base, (uint64_t)part_offset(node, i)));
    }
}

/* From a leaf whose parts are all taken to the next run in packed order. */
static void leave_leaf(struct hipio_cursor *cursor)
{
    while (--cursor->depth > 0) {
        const uint32_t top = cursor->depth - 1;

        if (++cursor->frame[top].index < cursor->frame[top].node->count) {
            descend(cursor);
            return;
        }
    }
}

/* Past `count` runs of the leaf, none of which has been cut. */
static inline void skip_runs(struct hipio_cursor *cursor, uint64_t count)
{
    const uint32_t top = cursor->depth - 1;

    cursor->within = 0;
    cursor->frame[top].index += count;
    if (cursor->frame[top].index == cursor->frame[top].node->count)
        leave_leaf(cursor);
}

void hipio_cursor_init(struct hipio_cursor *cursor, const struct hipio_layout *layout,
                       uint64_t position)
{
    const struct hipio_layout *node = layout;
    int64_t base = 0;

    cursor->root = layout;
    cursor->depth = 0;
    cursor->within = 0;
    cursor->position = position < layout->size ? position : layout->size;
    if (position >= layout->size)
        return;
    for (;;) {
        const uint64_t i = part_find(node, position);

        push(cursor, node, i, base);
        position -= part_position(node, i);
        if (node_is_leaf(node))
            break;
        base = offset_add(base, (uint64_t)part_offset(node, i));
        node = part_child(node, i);
    }
    cursor->within = position;
}

/* Offset of the next byte. */
static inline int64_t here(const struct hipio_cursor *cursor)
{
    const uint32_t top = cursor->depth - 1;
    const int64_t start = part_offset(cursor->frame[top].node, cursor->frame[top].index);

    return offset_add(cursor->frame[top].base, (uint64_t)start + cursor->within);
}

uint64_t hipio_cursor_next_run(struct hipio_cursor *cursor, uint64_t most, int64_t *offset)
{
    uint64_t taken = 0;

    if (cursor->depth == 0 || most == 0)
        return 0;

    const int64_t start = here(cursor);
    *offset = start;
    do {
        const uint32_t top = cursor->depth - 1;
        const uint64_t rest =
            part_size(cursor->frame[top].node, cursor->frame[top].index) - cursor->within;

        if (rest > most - taken) {
            cursor->within += most - taken;
            taken = most;
            break;
        }
        taken += rest;
        skip_runs(cursor, 1);
    } while (taken < most && cursor->depth > 0 && here(cursor) == offset_add(start, taken));
    cursor->position += taken;
    return taken;
}

/* How many runs of a leaf, from run i on and at most `limit`, follow each other at one stride. */
static uint64_t even_runs(const struct hipio_layout *leaf, uint64_t i, uint64_t limit)
{
    const uint64_t length = part_size(leaf, i);
    uint64_t count = 1;

    if (limit < 2 || part_size(leaf, i + 1) != length)
        return 1;

    int64_t before = part_offset(leaf, i + 1);
    const uint64_t stride = (uint64_t)before - (uint64_t)part_offset(leaf, i);
    for (count = 2; count < limit && part_size(leaf, i + count) == length; ++count) {
        const int64_t next = part_offset(leaf, i + count);

        if ((uint64_t)next - (uint64_t)before != stride)
            break;
        before = next;
    }
    return count;
}

uint64_t hipio_cursor_next(struct hipio_cursor *cursor, uint64_t most, struct hipio_strip *strip)
{
    uint64_t count = 0;

    if (cursor->depth > 0 && cursor->within == 0) {
        const uint32_t top = cursor->depth - 1;
        const struct hipio_layout *leaf = cursor->frame[top].node;
        const uint64_t i = cursor->frame[top].index;
        const uint64_t length = part_size(leaf, i);
        uint64_t limit = leaf->count - i;

        if (limit > 1 && limit > most / length)
            limit = most / length;
        if (node_is_strided(leaf))
            count = limit;
        else
            count = even_runs(leaf, i, limit);
        if (count > 1) {
            strip->offset = here(cursor);
            strip->length = length;
            strip->count = count;
            strip->stride =
                (int64_t)((uint64_t)part_offset(leaf, i + 1) - (uint64_t)part_offset(leaf, i));
            cursor->position += length * count;
            skip_runs(cursor, count);
            return length * count;
        }
    }
    strip->count = 1;
    strip->stride = 0;
    strip->length = hipio_cursor_next_run(cursor, most, &strip->offset);
    return strip->length;
}
