/* SPDX-License-Identifier: MIT */
/*
 * Flatten: each constructor of MPI 3.1 section 4.1.2 becomes a vector or a list of what it was made
 * from.
 */
#include "flatten.h"
#include "engine/status.h"
#include "flatten_array.h"
#include "typecontents.h"
#include <errno.h>
#include <stdlib.h>

static int flatten_one(MPI_Datatype type, struct hipio_layout **layout);

static int extent_of(MPI_Datatype type, int64_t *extent)
{
    MPI_Count lb, wide;
    if (PMPI_Type_get_extent_x(type, &lb, &wide) != MPI_SUCCESS)
        return hipio_status_set(-EINVAL, "MPI does not know the extent of a datatype");
    *extent = wide;
    return 0;
}

/* A predefined type is one run, but for the one pair type that has a gap. */
static int flatten_leaf(MPI_Datatype type, struct hipio_layout **layout)
{
    static const int64_t gap_at[2] = {0, 4};
    static const uint64_t gap_length[2] = {2, 4};
    MPI_Count size;

    if (type == MPI_SHORT_INT)
        return hipio_layout_runs(2, gap_at, gap_length, layout);
    if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS)
        return hipio_status_set(-EINVAL, "MPI does not know the size of a datatype");
    return hipio_layout_run(0, (uint64_t)size, layout);
}

/* `count` blocks of `length` items of `child`, `stride` bytes apart. Takes over `child`. */
static int strided(struct hipio_layout *child, int64_t extent, const int64_t shape[3],
                   struct hipio_layout **layout)
{
    struct hipio_layout *block;
    int rc = hipio_layout_vector(child, 0, (uint64_t)shape[1], extent, &block);
    return rc ? rc : hipio_layout_vector(block, 0, (uint64_t)shape[0], shape[2], layout);
}

/* Where the i-th block lies and how many items it has, for the four indexed constructors. */
struct blocks {
    const struct hipio_typecontents *contents;
    int64_t extent;
};

static int64_t block_count(const struct blocks *b, int i)
{
    const struct hipio_typecontents *c = b->contents;
    bool fixed =
        c->combiner == MPI_COMBINER_INDEXED_BLOCK || c->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    return c->ints[fixed ? 1 : 1 + i];
}

static int64_t block_at(const struct blocks *b, int i)
{
    const struct hipio_typecontents *c = b->contents;
    if (c->combiner == MPI_COMBINER_INDEXED)
        return c->ints[1 + c->ints[0] + i] * b->extent;
    if (c->combiner == MPI_COMBINER_INDEXED_BLOCK)
        return c->ints[2 + i] * b->extent;
    return c->addresses[i];
}

/* Items without gaps between them: the blocks are runs. */
static int indexed_runs(const struct blocks *b, uint64_t size, int64_t shift,
                        struct hipio_layout **layout)
{
    int n = b->contents->ints[0], rc = -ENOMEM;
    int64_t *at = malloc(sizeof *at * (size_t)(n + 1));
    uint64_t *length = malloc(sizeof *length * (size_t)(n + 1));

    if (at && length) {
        for (int i = 0; i < n; i++) {
            at[i] = block_at(b, i) + shift;
            length[i] = (uint64_t)block_count(b, i) * size;
        }
        rc = hipio_layout_runs((uint64_t)n, at, length, layout);
    }
    free(at);
    free(length);
    return rc;
}

static void release_all(struct hipio_layout **part, int n)
{
    for (int i = 0; i < n; i++)
        hipio_layout_release(part[i]);
}

/* Any items: the blocks are vectors of them. `child` stays the caller's. */
static int indexed_list(const struct blocks *b, struct hipio_layout *child,
                        struct hipio_layout **layout)
{
    int n = b->contents->ints[0], made = 0, rc = 0;
    int64_t *at = malloc(sizeof *at * (size_t)(n + 1));
    struct hipio_layout **part = malloc(sizeof *part * (size_t)(n + 1));

    if (!at || !part)
        rc = -ENOMEM;
    for (; made < n && rc == 0; made++) {
        at[made] = block_at(b, made);
        rc = hipio_layout_vector(hipio_layout_retain(child), 0, (uint64_t)block_count(b, made),
                                 b->extent, &part[made]);
        if (rc)
            break;
    }
    if (rc == 0)
        rc = hipio_layout_list((uint64_t)n, at, part, layout);
    else if (part)
        release_all(part, made);
    free(at);
    free(part);
    return rc;
}

static int flatten_indexed(const struct hipio_typecontents *contents, struct hipio_layout *child,
                           int64_t extent, struct hipio_layout **layout)
{
    struct blocks b = {contents, extent};
    uint64_t size = hipio_layout_size(child);
    int64_t shift = 0;
    int rc;

    if (hipio_layout_is_contiguous(child, &shift) && (int64_t)size == extent)
        rc = indexed_runs(&b, size, shift, layout);
    else
        rc = indexed_list(&b, child, layout);
    hipio_layout_release(child);
    return rc;
}

static int flatten_struct(const struct hipio_typecontents *contents, struct hipio_layout **layout)
{
    int n = contents->ints[0], made = 0, rc = 0;
    int64_t *at = malloc(sizeof *at * (size_t)(n + 1));
    struct hipio_layout **part = malloc(sizeof *part * (size_t)(n + 1));

    if (!at || !part)
        rc = -ENOMEM;
    for (; made < n && rc == 0; made++) {
        at[made] = contents->addresses[made];
        rc = hipio_flatten(contents->types[made], contents->ints[1 + made], &part[made]);
        if (rc)
            break;
    }
    if (rc == 0)
        rc = hipio_layout_list((uint64_t)n, at, part, layout);
    else if (part)
        release_all(part, made);
    free(at);
    free(part);
    return rc;
}

/* Constructors over one item type. Takes over `child`. */
static int flatten_over(const struct hipio_typecontents *c, struct hipio_layout *child,
                        int64_t extent, struct hipio_layout **layout)
{
    int64_t shape[3] = {1, 1, 0};

    switch (c->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        *layout = child;
        return 0;
    case MPI_COMBINER_CONTIGUOUS:
        return hipio_layout_vector(child, 0, (uint64_t)c->ints[0], extent, layout);
    case MPI_COMBINER_VECTOR:
        shape[0] = c->ints[0], shape[1] = c->ints[1], shape[2] = c->ints[2] * extent;
        return strided(child, extent, shape, layout);
    case MPI_COMBINER_HVECTOR:
        shape[0] = c->ints[0], shape[1] = c->ints[1], shape[2] = c->addresses[0];
        return strided(child, extent, shape, layout);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        return flatten_indexed(c, child, extent, layout);
    case MPI_COMBINER_SUBARRAY:
        return hipio_flatten_subarray(c, child, extent, layout);
    case MPI_COMBINER_DARRAY:
        return hipio_flatten_darray(c, child, extent, layout);
    default:
        hipio_layout_release(child);
        return hipio_status_set(-ENOTSUP, "datatype constructor %d is not known to hipio",
                                c->combiner);
    }
}

static int flatten_contents(const struct hipio_typecontents *contents, struct hipio_layout **layout)
{
    struct hipio_layout *child;
    int64_t extent = 0;
    int rc;

    if (contents->combiner == MPI_COMBINER_STRUCT)
        return flatten_struct(contents, layout);
    rc = extent_of(contents->types[0], &extent);
    if (rc == 0)
        rc = flatten_one(contents->types[0], &child);
    return rc ? rc : flatten_over(contents, child, extent, layout);
}

static int flatten_one(MPI_Datatype type, struct hipio_layout **layout)
{
    struct hipio_typecontents contents;
    int rc = hipio_typecontents_get(type, &contents);
    if (rc)
        return rc;
    if (hipio_typecontents_is_leaf(&contents))
        return flatten_leaf(type, layout);
    rc = flatten_contents(&contents, layout);
    hipio_typecontents_free(&contents);
    return rc;
}

int hipio_flatten(MPI_Datatype type, int64_t count, struct hipio_layout **layout)
{
    struct hipio_layout *one;
    int64_t extent = 0;
    int rc = extent_of(type, &extent);

    if (rc == 0)
        rc = flatten_one(type, &one);
    if (rc == 0)
        rc = hipio_layout_vector(one, 0, (uint64_t)count, extent, layout);
    if (rc == -EOVERFLOW)
        return hipio_status_set(
            rc, "the datatype reaches past the range of 63-bit offsets, or is nested too deep");
    return rc;
}
