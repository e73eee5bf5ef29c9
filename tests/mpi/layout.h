/* SPDX-License-Identifier: MIT */
/*
 * Layout: the byte model of a datatype, for the oracle. Made by hand beside each datatype, never
 * asked from MPI, so that a fault in a datatype's handling can't hide in the expectation.
 *
 * A layout is a tile of runs that repeats endlessly at `extent`. "Packed" positions count the bytes
 * of the runs alone, in the order of the type map.
 */
#pragma once
#include <stdint.h>

enum { LAYOUT_RUNS = 8 };

struct layout {
    int64_t start[LAYOUT_RUNS];
    int64_t length[LAYOUT_RUNS];
    int runs;
    int64_t bytes; /* of all runs */
    int64_t extent;
};

void layout_init(struct layout *layout, int64_t extent);
void layout_add(struct layout *layout, int64_t start, int64_t length);
/* Offset of packed byte `packed`; *left: how many bytes follow there without a gap, itself
 * included. */
int64_t layout_locate(const struct layout *layout, int64_t packed, int64_t *left);
/* How many packed bytes from `packed` on, at most `bytes`, have an offset below `end`. The runs
 * must ascend. */
int64_t layout_below(const struct layout *layout, int64_t packed, int64_t bytes, int64_t end);
