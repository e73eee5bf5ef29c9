/* SPDX-License-Identifier: MIT */
/*
 * Flatten_array: dimensions are taken from the fastest to the slowest; each wraps what is there so
 * far in a vector whose stride is the size of all faster dimensions together (MPI 3.1,
 * sections 4.1.3 and 4.1.4).
 */
#include "flatten_array.h"

/* One dimension of a distributed array: blocks of `block` elements, every `stride` elements, from
 * `first` on, below `end`. */
struct blocks {
    int64_t first, block, stride, end;
};

static int fastest_first(int k, int n, int order)
{
    return order == MPI_ORDER_C ? n - 1 - k : k;
}

int hipio_flatten_subarray(const struct hipio_typecontents *contents, struct hipio_layout *child,
                           int64_t extent, struct hipio_layout **layout)
{
    int n = contents->ints[0];
    const int *size = contents->ints + 1, *subsize = size + n, *start = subsize + n;
    int order = start[n];
    int64_t stride = extent;
    int rc = 0;

    for (int k = 0; k < n && rc == 0; k++) {
        int d = fastest_first(k, n, order);
        rc = hipio_layout_vector(child, start[d] * stride, (uint64_t)subsize[d], stride, &child);
        stride *= size[d];
    }
    if (rc == 0)
        *layout = child;
    return rc;
}

/* The share of process `coordinate` of `processes` in a dimension of `size` elements. */
static struct blocks share(int size, int distribution, int argument, int processes, int coordinate)
{
    struct blocks b = {.first = 0, .block = size, .stride = size, .end = size};
    if (distribution == MPI_DISTRIBUTE_NONE)
        return b;
    if (distribution == MPI_DISTRIBUTE_BLOCK) {
        b.block = argument == MPI_DISTRIBUTE_DFLT_DARG ? ((int64_t)size + processes - 1) / processes
                                                       : argument;
        b.stride = b.block * processes;
    } else {
        b.block = argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument;
        b.stride = b.block * processes;
    }
    b.first = b.block * coordinate;
    return b;
}

/* Whole blocks as a vector of vectors, and the cut one at the end behind them. Takes over `child`.
 */
static int wrap(struct hipio_layout *child, const struct blocks *b, int64_t unit,
                struct hipio_layout **out)
{
    struct hipio_layout *part[2];
    int64_t left = b->end - b->first, at[2] = {0, 0};
    int64_t whole = left >= b->block ? (left - b->block) / b->stride + 1 : 0;
    int64_t tail_at = b->first + whole * b->stride;
    int64_t tail = tail_at < b->end ? b->end - tail_at : 0;
    int rc;

    if (tail > b->block)
        tail = b->block;
    hipio_layout_retain(child);
    rc = hipio_layout_vector(child, 0, (uint64_t)b->block, unit, &part[0]);
    if (rc == 0)
        rc = hipio_layout_vector(part[0], b->first * unit, (uint64_t)whole, b->stride * unit,
                                 &part[0]);
    if (rc) {
        hipio_layout_release(child);
        return rc;
    }
    rc = hipio_layout_vector(child, tail_at * unit, (uint64_t)tail, unit, &part[1]);
    if (rc) {
        hipio_layout_release(part[0]);
        return rc;
    }
    return hipio_layout_list(2, at, part, out);
}

int hipio_flatten_darray(const struct hipio_typecontents *contents, struct hipio_layout *child,
                         int64_t extent, struct hipio_layout **layout)
{
    int processes = contents->ints[0], rank = contents->ints[1], n = contents->ints[2];
    const int *size = contents->ints + 3, *distribution = size + n, *argument = distribution + n;
    const int *grid = argument + n;
    int order = grid[n];
    int64_t unit = extent;
    int rc = 0;

    for (int k = 0; k < n && rc == 0; k++) {
        int d = fastest_first(k, n, order);
        /* The process grid is row-major whatever the array's order is. */
        int below = processes, coordinate = rank;
        for (int i = 0; i <= d; i++) {
            below /= grid[i];
            if (i == d)
                coordinate /= below;
            else
                coordinate %= below;
        }
        struct blocks b = share(size[d], distribution[d], argument[d], grid[d], coordinate);
        rc = wrap(child, &b, unit, &child);
        unit *= size[d];
    }
    if (rc == 0)
        *layout = child;
    return rc;
}
