/* SPDX-License-Identifier: MIT */
/*
 * Extent: where the bytes of a request lie, in memory or in a file.
 *
 * A layout is an ordered sequence of bytes, each at an offset from a base that is given elsewhere
 * (an address, or a file displacement). Its n bytes have the *packed positions* 0 .. n-1. It is
 * kept as a small tree (run, vector, list), so that a vector stays a vector however many blocks it
 * has, and memory follows the description, not the data.
 *
 * Layouts are immutable and counted by reference; a cursor walks one without allocating. Offsets
 * and strides may be negative. Adjacent bytes are merged where the builder can see it (a vector
 * whose stride equals its block is one run).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct hipio_layout;

/* Levels of vectors and lists that a layout may have; deeper ones are refused with -EOVERFLOW. */
#define HIPIO_LAYOUT_DEPTH_MAX 64

/*
 * Builders. They take over the caller's reference to each child (also when they fail), return 0 and
 * a new layout with one reference in *out, or -ENOMEM, or -EOVERFLOW where sizes or offsets leave
 * 63 bits. An empty layout is legal everywhere.
 */
int hipio_layout_run(int64_t offset, uint64_t length, struct hipio_layout **out);
/* `count` times `child`, the k-th moved by offset + k * stride. */
int hipio_layout_vector(struct hipio_layout *child, int64_t offset, uint64_t count, int64_t stride,
                        struct hipio_layout **out);
/* One after another: for each i, `count[i]` bytes at `offset[i]` (arrays are copied). Equal lengths
 * are stored once. */
int hipio_layout_runs(uint64_t n, const int64_t *offset, const uint64_t *length,
                      struct hipio_layout **out);
/* The same, told one by one: `get` is called with rising i, several times over. */
struct hipio_run_source {
    uint64_t n;
    void (*get)(const struct hipio_run_source *source, uint64_t i, int64_t *offset,
                uint64_t *length);
};
/*
 * `room` is memory from malloc, of at least 4 * n bytes, that the builder takes over, to keep the
 * layout's numbers in it if they fit; or NULL. `get` may read from the same memory: when it is
 * asked for run i for the last time, no byte beyond the first 4 * i has been changed.
 */
int hipio_layout_runs_from(const struct hipio_run_source *source, void *room,
                           struct hipio_layout **out);
/* One after another: child[i] moved by offset[i] (arrays are copied; the same child may stand
 * several times, one reference each). */
int hipio_layout_list(uint64_t n, const int64_t *offset, struct hipio_layout *const *child,
                      struct hipio_layout **out);

struct hipio_layout *hipio_layout_retain(struct hipio_layout *layout);
void hipio_layout_release(struct hipio_layout *layout); /* NULL is allowed */

uint64_t hipio_layout_size(const struct hipio_layout *layout); /* bytes */
/* True: one run (or empty); *offset is where it starts. */
bool hipio_layout_is_contiguous(const struct hipio_layout *layout, int64_t *offset);
/* Lowest offset and one past the highest of the bytes at packed positions [start, start + length).
 * Both 0 when empty. */
void hipio_layout_bounds(const struct hipio_layout *layout, uint64_t start, uint64_t length,
                         int64_t *low, int64_t *high);
/* True if offsets never fall along the packed order and no byte is named twice (what a file view
 * promises). */
bool hipio_layout_is_monotonic(const struct hipio_layout *layout);
/*
 * For a monotonic layout: how many of the bytes at packed positions [start, start + length) lie
 * below `limit`. What a read finds before the end of a file.
 */
uint64_t hipio_layout_bytes_below(const struct hipio_layout *layout, uint64_t start,
                                  uint64_t length, int64_t limit);

/* `count` blocks of `length` bytes, the k-th at offset + k * stride; count 1: a run. In packed
 * order. */
struct hipio_strip {
    int64_t offset;
    uint64_t length;
    uint64_t count;
    int64_t stride;
};

/* A place in a layout. Copy it to remember the place. Valid while the layout lives. */
struct hipio_cursor {
    const struct hipio_layout *root;
    uint64_t position; /* packed position of the next byte */
    uint32_t depth;
    struct {
        const struct hipio_layout *node;
        uint64_t index;
        int64_t base;
    } frame[HIPIO_LAYOUT_DEPTH_MAX];
    uint64_t within; /* bytes of the current run already taken */
};

/* Puts the cursor on packed position `position` (up to and including the size). Logarithmic in the
 * layout's description. */
void hipio_cursor_init(struct hipio_cursor *cursor, const struct hipio_layout *layout,
                       uint64_t position);

/*
 * Takes the next strip of at most `most` bytes (> 0), all of equal blocks, and moves past it.
 * Returns its bytes (length * count), 0 at the end. A block is cut when `most` falls inside it.
 * Runs that touch are given as one where that needs no look-back.
 */
uint64_t hipio_cursor_next(struct hipio_cursor *cursor, uint64_t most, struct hipio_strip *strip);

/* The same, but always a single run (count 1): for files and for callers that can't do strips. */
uint64_t hipio_cursor_next_run(struct hipio_cursor *cursor, uint64_t most, int64_t *offset);
