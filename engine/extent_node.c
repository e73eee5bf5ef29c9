/* SPDX-License-Identifier: MIT */
/*
 * The node of a layout: its life and the facts that are derived from its parts.
 */
#include "extent_node.h"
#include <stdlib.h>
#include <string.h>

/* ---- Numbers ---- */

int hipio_layout_numbers_create(struct numbers *numbers, uint64_t n, uint64_t largest)
{
    if (n > SIZE_MAX / sizeof(uint64_t))
        return hipio_layout_no_memory();
    if (largest <= UINT32_MAX)
        numbers->narrow = malloc(n * sizeof *numbers->narrow);
    else
        numbers->wide = malloc(n * sizeof *numbers->wide);
    return numbers_present(numbers) ? 0 : hipio_layout_no_memory();
}

static void numbers_free(struct numbers *numbers)
{
    free(numbers->narrow);
    free(numbers->wide);
}

/* ---- Life of a node ---- */

struct hipio_layout *hipio_layout_node_create(void)
{
    struct hipio_layout *node = calloc(1, sizeof *node);

    if (node)
        atomic_init(&node->references, 1);
    return node;
}

struct hipio_layout *hipio_layout_retain(struct hipio_layout *layout)
{
    if (layout)
        atomic_fetch_add_explicit(&layout->references, 1, memory_order_relaxed);
    return layout;
}

void hipio_layout_release(struct hipio_layout *layout)
{
    if (!layout)
        return;
    /* Whoever drops the last reference must see all that the other holders did before. */
    if (atomic_fetch_sub_explicit(&layout->references, 1, memory_order_acq_rel) != 1)
        return;
    if (layout->owner) {
        hipio_layout_release(layout->owner);
    } else {
        hipio_layout_release(layout->child);
        for (uint64_t i = 0; layout->children && i < layout->count; ++i)
            hipio_layout_release(layout->children[i]);
        free(layout->children);
        numbers_free(&layout->delta);
        numbers_free(&layout->prefix);
    }
    free(layout);
}

/* A node of its own with the same description; the arrays and children stay the original's. */
static struct hipio_layout *node_clone(struct hipio_layout *from)
{
    const size_t shared = offsetof(struct hipio_layout, owner);
    struct hipio_layout *node = hipio_layout_node_create();

    if (!node)
        return NULL;
    /* The count of references is left out: other threads may be changing it. */
    memcpy((char *)node + shared, (const char *)from + shared, sizeof *node - shared);
    node->owner = hipio_layout_retain(from->owner ? from->owner : from);
    return node;
}

struct hipio_layout *hipio_layout_node_own(struct hipio_layout *node)
{
    if (atomic_load_explicit(&node->references, memory_order_acquire) == 1)
        return node;
    struct hipio_layout *clone = node_clone(node);
    hipio_layout_release(node);
    return clone;
}

/* ---- Facts of a node ---- */

static void widen(__int128 *low, __int128 *high, const struct hipio_layout *node, uint64_t i,
                  __int128 at)
{
    if (at + part_low(node, i) < *low)
        *low = at + part_low(node, i);
    if (at + part_high(node, i) > *high)
        *high = at + part_high(node, i);
}

static void measure_strided(struct hipio_layout *node, __int128 *low, __int128 *high)
{
    widen(low, high, node, 0, node->offset);
    widen(low, high, node, 0, node->offset + (__int128)(node->count - 1) * node->stride);
    if (node->count > 1 && (__int128)part_high(node, 0) - part_low(node, 0) > node->stride)
        node->monotonic = false;
    if (!node_is_leaf(node) && !node->child->monotonic)
        node->monotonic = false;
}

static void measure_placed(struct hipio_layout *node, __int128 *low, __int128 *high)
{
    for (uint64_t i = 0; i < node->count; ++i) {
        widen(low, high, node, i, (__int128)node->offset + numbers_at(&node->delta, i));
        if (i > 0 && part_start(node, i) < part_end(node, i - 1))
            node->monotonic = false;
        if (!node_is_leaf(node) && !part_child(node, i)->monotonic)
            node->monotonic = false;
    }
}

static uint32_t deepest_child(const struct hipio_layout *node)
{
    uint32_t depth = 0;

    if (node->child)
        return node->child->depth;
    for (uint64_t i = 0; node->children && i < node->count; ++i) {
        if (node->children[i]->depth > depth)
            depth = node->children[i]->depth;
    }
    return depth;
}

/* Derives bounds, depth and order of a node whose parts and size are in place; refuses what leaves
 * 63 bits. */
static int node_measure(struct hipio_layout *node)
{
    __int128 low = INT64_MAX;
    __int128 high = INT64_MIN;

    node->depth = 1 + deepest_child(node);
    if (node->depth > HIPIO_LAYOUT_DEPTH_MAX)
        return hipio_layout_too_large("nested too deeply");
    node->monotonic = true;
    if (node_is_strided(node))
        measure_strided(node, &low, &high);
    else
        measure_placed(node, &low, &high);
    if (low < INT64_MIN || high > INT64_MAX)
        return hipio_layout_too_large("an offset is too large");
    node->low = (int64_t)low;
    node->high = (int64_t)high;
    return 0;
}

int hipio_layout_node_finish(struct hipio_layout *node, struct hipio_layout **out)
{
    int err = node_measure(node);

    if (err) {
        hipio_layout_release(node);
        return err;
    }
    *out = node;
    return 0;
}
