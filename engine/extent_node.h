/* SPDX-License-Identifier: MIT */
/*
 * The node of a layout, known only to extent.c, extent_node.c, extent_cursor.c and
 * extent_query.c.
 *
 * A node is `count` parts in packed order, none of them empty. A part is a run of bytes (a leaf's)
 * or a child. Two independent choices say how the parts are described:
 *   where part i begins: offset + i * stride, or offset + delta[i] where there is an array;
 *   how many bytes it has: length, or prefix[i + 1] - prefix[i] where there is an array.
 * So a run is a leaf of one part, an MPI vector two numbers more, and eight million equal blocks
 * cost four bytes each while they span less than 4 GiB. The empty layout is a leaf of one part
 * with length 0, and never stands below another node.
 */
#pragma once
#include "extent.h"
#include "status.h"
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* Unsigned numbers, in 32 bits each where all of them fit. Absent when both pointers are NULL. */
struct numbers {
    uint32_t *narrow;
    uint64_t *wide;
};

struct hipio_layout {
    _Atomic uint64_t references;
    /* From here on nothing changes while there is more than one reference. */
    struct hipio_layout *owner; /* of the arrays, where they are another node's; else NULL */
    uint64_t size;
    int64_t low;  /* lowest offset of a byte, */
    int64_t high; /* and one past the highest */
    uint64_t count;
    int64_t offset;
    int64_t stride;
    struct numbers delta;
    uint64_t length;
    struct numbers prefix;
    struct hipio_layout *child;     /* every part is this one, */
    struct hipio_layout **children; /* or part i is children[i]; a leaf has neither */
    uint32_t depth;                 /* frames that a cursor needs */
    bool monotonic;
};

/* Sums of offsets wrap on the way and are right in the end: the builders have checked the ends. */
static inline int64_t offset_add(int64_t a, uint64_t b)
{
    return (int64_t)((uint64_t)a + b);
}

static inline void numbers_put(struct numbers *numbers, uint64_t i, uint64_t value)
{
    if (numbers->narrow)
        numbers->narrow[i] = (uint32_t)value;
    else
        numbers->wide[i] = value;
}

static inline bool numbers_present(const struct numbers *numbers)
{
    return numbers->narrow || numbers->wide;
}

static inline uint64_t numbers_at(const struct numbers *numbers, uint64_t i)
{
    return numbers->narrow ? numbers->narrow[i] : numbers->wide[i];
}

static inline bool node_is_leaf(const struct hipio_layout *node)
{
    return !node->child && !node->children;
}

static inline bool node_is_strided(const struct hipio_layout *node)
{
    return !numbers_present(&node->delta);
}

static inline bool node_is_uniform(const struct hipio_layout *node)
{
    return !numbers_present(&node->prefix);
}

static inline bool node_is_run(const struct hipio_layout *node)
{
    return node_is_leaf(node) && node->count == 1;
}

static inline const struct hipio_layout *part_child(const struct hipio_layout *node, uint64_t i)
{
    return node->child ? node->child : node->children[i];
}

/* Where part i begins: a run's first byte, or the origin of a child. */
static inline int64_t part_offset(const struct hipio_layout *node, uint64_t i)
{
    if (node_is_strided(node))
        return offset_add(node->offset, i * (uint64_t)node->stride);
    return offset_add(node->offset, numbers_at(&node->delta, i));
}

static inline uint64_t part_size(const struct hipio_layout *node, uint64_t i)
{
    if (node_is_uniform(node))
        return node->length;
    return numbers_at(&node->prefix, i + 1) - numbers_at(&node->prefix, i);
}

/* Packed position of the first byte of part i. */
static inline uint64_t part_position(const struct hipio_layout *node, uint64_t i)
{
    return node_is_uniform(node) ? i * node->length : numbers_at(&node->prefix, i);
}

/* Lowest offset of part i, and one past its highest, relative to where the part begins. */
static inline int64_t part_low(const struct hipio_layout *node, uint64_t i)
{
    return node_is_leaf(node) ? 0 : part_child(node, i)->low;
}

static inline int64_t part_high(const struct hipio_layout *node, uint64_t i)
{
    return node_is_leaf(node) ? (int64_t)part_size(node, i) : part_child(node, i)->high;
}

/* The same relative to the node's own origin. The origin of a child alone may lie outside 63 bits
 * and wrap; where its bytes are does not. */
static inline int64_t part_start(const struct hipio_layout *node, uint64_t i)
{
    return offset_add(part_offset(node, i), (uint64_t)part_low(node, i));
}

static inline int64_t part_end(const struct hipio_layout *node, uint64_t i)
{
    return offset_add(part_offset(node, i), (uint64_t)part_high(node, i));
}

/* The part that holds packed position `position` (below the node's size). */
static inline uint64_t part_find(const struct hipio_layout *node, uint64_t position)
{
    if (node->count == 1)
        return 0;
    if (node_is_uniform(node))
        return position / node->length;

    uint64_t low = 0;
    uint64_t high = node->count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (numbers_at(&node->prefix, middle) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The errors of the builders, with their texts. */
static inline int hipio_layout_no_memory(void)
{
    (void)hipio_status_set(-ENOMEM, "no memory for the description of a data layout");
    return -ENOMEM;
}

static inline int hipio_layout_too_large(const char *what)
{
    (void)hipio_status_set(-EOVERFLOW,
                           "data layout: %s; sizes and offsets must stay below 2^63, nesting at %d "
                           "levels: describe it in smaller parts",
                           what, HIPIO_LAYOUT_DEPTH_MAX);
    return -EOVERFLOW;
}

/* Room for n numbers, none above `largest`. 0 or -ENOMEM. */
int hipio_layout_numbers_create(struct numbers *numbers, uint64_t n, uint64_t largest);

/* A node with one reference and all fields zero; NULL: no memory. */
struct hipio_layout *hipio_layout_node_create(void);
/* The caller's reference becomes one to a node that nobody else sees; NULL: no memory, and the
 * reference is gone. */
struct hipio_layout *hipio_layout_node_own(struct hipio_layout *node);
/* Derives bounds, depth and order of a node whose parts and size are in place, and hands it out;
 * -EOVERFLOW, and the node is dropped, where an offset leaves 63 bits or it is nested too deeply.
 */
int hipio_layout_node_finish(struct hipio_layout *node, struct hipio_layout **out);
