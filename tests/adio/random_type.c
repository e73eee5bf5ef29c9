/* SPDX-License-Identifier: MIT */
/* Random datatypes: one function a constructor, each within what Open MPI 4.1 itself gets right. */
#include "random_type.h"
#include <stdlib.h>

void random_seed(struct random_state *r, uint64_t seed)
{
    r->x = seed * 0x9E3779B97F4A7C15u + 0x1234567;
    if (!r->x)
        r->x = 1;
    for (int i = 0; i < 8; i++)
        random_below(r, 2);
}

uint32_t random_below(struct random_state *r, uint32_t n)
{
    r->x ^= r->x << 13;
    r->x ^= r->x >> 7;
    r->x ^= r->x << 17;
    return (uint32_t)((r->x >> 16) % n);
}

/* Open MPI 4.1 tells extremes for the true extent of a type without data. */
void true_span(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent)
{
    int size;
    MPI_Type_size(type, &size);
    *lb = *extent = 0;
    if (size > 0)
        MPI_Type_get_true_extent(type, lb, extent);
}

static int pick(struct random_state *r, int low, int high)
{
    return low + (int)random_below(r, (uint32_t)(high - low + 1));
}

static MPI_Datatype leaf(struct random_state *r, const struct random_kind *kind)
{
    const MPI_Datatype named[] = {MPI_BYTE,      MPI_CHAR,      MPI_SHORT,   MPI_INT,
                                  MPI_FLOAT,     MPI_DOUBLE,    MPI_INT64_T, MPI_C_DOUBLE_COMPLEX,
                                  MPI_SHORT_INT, MPI_DOUBLE_INT};
    if (kind->leaf != MPI_DATATYPE_NULL)
        return kind->leaf;
    return named[random_below(r, sizeof named / sizeof named[0])];
}

/* Items of the inner type that its extent must be spread by so that neighbours don't overlap. */
static int span(MPI_Datatype type)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Type_get_extent(type, &lb, &extent);
    true_span(type, &true_lb, &true_extent);
    if (extent <= 0)
        return 1;
    return (int)((true_extent + extent - 1) / extent);
}

static MPI_Datatype make_vector(struct random_state *r, MPI_Datatype inner,
                                const struct random_kind *kind)
{
    MPI_Datatype t;
    int length = pick(r, kind->rising ? 1 : 0, 3), wide = (length + 1) * span(inner);
    int stride = pick(r, wide, wide + 4);
    if (!kind->rising && pick(r, 0, 3) == 0)
        stride = -stride;
    if (pick(r, 0, 1)) {
        MPI_Type_vector(pick(r, 0, 4), length, stride, inner, &t);
        return t;
    }
    MPI_Aint lb, extent;
    MPI_Type_get_extent(inner, &lb, &extent);
    MPI_Type_create_hvector(pick(r, 0, 4), length,
                            stride * extent + (stride > 0 ? pick(r, 0, 5) : 0), inner, &t);
    return t;
}

static MPI_Datatype make_indexed(struct random_state *r, MPI_Datatype inner,
                                 const struct random_kind *kind)
{
    enum { MOST = 5 };
    int n = pick(r, 0, MOST), length[MOST], at[MOST], next = kind->rising ? 0 : pick(r, -6, 6);
    MPI_Aint byte_at[MOST], lb, extent;
    MPI_Datatype t;
    int fixed = pick(r, 1, 3), form = pick(r, 0, 3);

    MPI_Type_get_extent(inner, &lb, &extent);
    for (int i = 0; i < n; i++) {
        length[i] = form >= 2 ? fixed : pick(r, 0, 3);
        at[i] = next + pick(r, 0, 3);
        byte_at[i] = at[i] * extent;
        next = at[i] + (length[i] + 1) * span(inner);
        if (!kind->rising && pick(r, 0, 4) == 0)
            next -= pick(r, 0, 40);
    }
    if (form == 0)
        MPI_Type_indexed(n, length, at, inner, &t);
    else if (form == 1)
        MPI_Type_create_hindexed(n, length, byte_at, inner, &t);
    else if (form == 2)
        MPI_Type_create_indexed_block(n, fixed, at, inner, &t);
    else
        MPI_Type_create_hindexed_block(n, fixed, byte_at, inner, &t);
    return t;
}

static MPI_Datatype make_struct(struct random_state *r, MPI_Datatype inner, int depth,
                                const struct random_kind *kind)
{
    MPI_Datatype part[3] = {inner, random_type_of(r, depth - 1, kind), leaf(r, kind)}, t;
    MPI_Aint at[3], true_lb, true_extent, next = kind->rising ? 0 : pick(r, -20, 20);
    int length[3], bytes;

    for (int i = 0; i < 3; i++) {
        MPI_Aint lb, extent;
        MPI_Type_get_extent(part[i], &lb, &extent);
        true_span(part[i], &true_lb, &true_extent);
        /* Open MPI 4.1 packs a struct with an empty part as if it had no gaps; only its absence can
         * be compared. */
        MPI_Type_size(part[i], &bytes);
        length[i] = bytes ? pick(r, 1, 2) : 0;
        at[i] = next + pick(r, 0, 9) - (kind->rising ? (true_lb < 0 ? true_lb : 0) : 0);
        next = at[i] + (extent > 0 ? extent : 0) * length[i] + true_lb + true_extent;
    }
    MPI_Type_create_struct(3, length, at, part, &t);
    MPI_Type_free(&part[1]);
    return t;
}

static MPI_Datatype make_subarray(struct random_state *r, MPI_Datatype inner)
{
    int n = pick(r, 1, 3), size[3], sub[3], start[3];
    MPI_Datatype t;
    for (int i = 0; i < n; i++) {
        size[i] = pick(r, 1, 5);
        sub[i] = pick(r, 1, size[i]);
        start[i] = pick(r, 0, size[i] - sub[i]);
    }
    MPI_Type_create_subarray(n, size, sub, start, pick(r, 0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                             inner, &t);
    return t;
}

static MPI_Datatype make_darray(struct random_state *r, MPI_Datatype inner)
{
    const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    int n = pick(r, 1, 3), size[3], kind[3], argument[3], grid[3], processes = 1, bytes;
    MPI_Datatype t;

    MPI_Type_size(inner, &bytes);
    if (bytes == 0) { /* Open MPI 4.1 refuses a darray of nothing. */
        MPI_Type_dup(inner, &t);
        return t;
    }
    for (int i = 0; i < n; i++) {
        size[i] = pick(r, 1, 7);
        kind[i] = kinds[pick(r, 0, 2)];
        grid[i] = kind[i] == MPI_DISTRIBUTE_NONE ? 1 : pick(r, 1, 3);
        argument[i] = MPI_DISTRIBUTE_DFLT_DARG;
        if (pick(r, 0, 1) && kind[i] == MPI_DISTRIBUTE_CYCLIC)
            argument[i] = pick(r, 1, 3);
        if (pick(r, 0, 1) && kind[i] == MPI_DISTRIBUTE_BLOCK)
            argument[i] = (size[i] + grid[i] - 1) / grid[i] + pick(r, 0, 1);
        processes *= grid[i];
    }
    MPI_Type_create_darray(processes, pick(r, 0, processes - 1), n, size, kind, argument, grid,
                           pick(r, 0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner, &t);
    return t;
}

/* Where order is free, the extent may be less than what the data span: items then interleave. */
static MPI_Datatype make_resized(struct random_state *r, MPI_Datatype inner,
                                 const struct random_kind *kind)
{
    MPI_Aint true_lb, true_extent, extent;
    MPI_Datatype t;
    true_span(inner, &true_lb, &true_extent);
    MPI_Aint lb = kind->rising ? 0 : pick(r, -8, 8);
    extent = (true_lb > 0 ? true_lb : 0) + true_extent + pick(r, 0, 16);
    if (!kind->rising && extent > 1 && pick(r, 0, 2) == 0)
        extent = 1 + (MPI_Aint)random_below(r, (uint32_t)extent);
    MPI_Type_create_resized(inner, lb, extent, &t);
    return t;
}

static MPI_Datatype construct(struct random_state *r, MPI_Datatype inner, int depth,
                              const struct random_kind *kind)
{
    MPI_Datatype t;
    switch (pick(r, 0, 7)) {
    case 0:
        MPI_Type_contiguous(pick(r, 0, 3), inner, &t);
        return t;
    case 1:
        MPI_Type_dup(inner, &t);
        return t;
    case 2:
        return make_vector(r, inner, kind);
    case 3:
        return make_indexed(r, inner, kind);
    case 4:
        return make_struct(r, inner, depth, kind);
    case 5:
        return make_subarray(r, inner);
    case 6:
        return make_darray(r, inner);
    default:
        return make_resized(r, inner, kind);
    }
}

MPI_Datatype random_type_of(struct random_state *r, int depth, const struct random_kind *kind)
{
    MPI_Datatype inner, t;
    if (depth <= 0) {
        MPI_Type_dup(leaf(r, kind), &t);
        MPI_Type_commit(&t);
        return t;
    }
    inner = random_type_of(r, depth - 1, kind);
    t = construct(r, inner, depth, kind);
    MPI_Type_free(&inner);
    MPI_Type_commit(&t);
    return t;
}

MPI_Datatype random_type(struct random_state *r, int depth, int monotonic)
{
    const struct random_kind kind = {.rising = monotonic, .leaf = MPI_DATATYPE_NULL};

    return random_type_of(r, depth, &kind);
}
