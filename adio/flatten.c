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
    struct hipio_run_source source; /* first; the blocks as runs of items without gaps */
    int combiner;
    int fixed; /* items of every block, where the constructor has one number for all */
    const int *ints;
    const MPI_Aint *addresses;
    int64_t extent; /* of an item, */
    uint64_t size;  /* and the bytes of one without gaps, */
    int64_t shift;  /* and where they begin */
};

static int64_t block_count(const struct blocks *b, uint64_t i)
{
    if (b->combiner == MPI_COMBINER_INDEXED_BLOCK || b->combiner == MPI_COMBINER_HINDEXED_BLOCK)
        return b->fixed;
    return b->ints[1 + i];
}

static int64_t block_at(const struct blocks *b, uint64_t i)
{
    if (b->combiner == MPI_COMBINER_INDEXED)
        return b->ints[1 + b->source.n + i] * b->extent;
    if (b->combiner == MPI_COMBINER_INDEXED_BLOCK)
        return b->ints[2 + i] * b->extent;
    return b->addresses[i];
}

static void block_run(const struct hipio_run_source *source, uint64_t i, int64_t *offset,
                      uint64_t *length)
{
    const struct blocks *b = (const struct blocks *)source;

    *offset = block_at(b, i) + b->shift;
    *length = (uint64_t)block_count(b, i) * b->size;
}

/*
 * Items without gaps between them: the blocks are runs. There may be millions of them, so that the
 * layout gets the memory that MPI's numbers came in, and takes no other. Of these numbers, each is
 * at least as far from the start as the layout's of the same block.
 */
static int indexed_runs(const struct blocks *b, struct hipio_typecontents *contents,
                        struct hipio_layout **layout)
{
    void *room;

    if (b->combiner == MPI_COMBINER_INDEXED || b->combiner == MPI_COMBINER_INDEXED_BLOCK) {
        room = contents->ints;
        contents->ints = NULL;
    } else {
        room = contents->addresses;
        contents->addresses = NULL;
    }
    return hipio_layout_runs_from(&b->source, room, layout);
}

static void release_all(struct hipio_layout **part, int n)
{
    for (int i = 0; i < n; i++)
        hipio_layout_release(part[i]);
}

/* The i-th block as a vector of items; blocks of one length after another are one vector. */
static int make_block(const struct blocks *b, int i, struct hipio_layout *child,
                      struct hipio_layout **part)
{
    if (i > 0 && block_count(b, (uint64_t)i) == block_count(b, (uint64_t)i - 1)) {
        part[i] = hipio_layout_retain(part[i - 1]);
        return 0;
    }
    return hipio_layout_vector(hipio_layout_retain(child), 0, (uint64_t)block_count(b, (uint64_t)i),
                               b->extent, &part[i]);
}

/* Any items: the blocks are vectors of them. `child` stays the caller's. */
static int indexed_list(const struct blocks *b, struct hipio_layout *child,
                        struct hipio_layout **layout)
{
    int n = (int)b->source.n, made = 0, rc = 0;
    int64_t *at = malloc(sizeof *at * (size_t)(n + 1));
    struct hipio_layout **part = malloc(sizeof *part * (size_t)(n + 1));

    if (!at || !part)
        rc = -ENOMEM;
    for (; made < n && rc == 0; made++) {
        at[made] = block_at(b, (uint64_t)made);
        rc = make_block(b, made, child, part);
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

/* Are the blocks runs: of items that touch, or of single ones? */
static bool are_runs(struct blocks *b, const struct hipio_layout *child)
{
    if (!hipio_layout_is_contiguous(child, &b->shift))
        return false;
    for (uint64_t i = 0; (int64_t)b->size != b->extent && i < b->source.n; i++) {
        if (block_count(b, i) > 1)
            return false;
    }
    return true;
}

/* Blocks of one length, as most are, need no array of lengths: it goes before that of addresses
 * comes. */
static int settle_hindexed(struct hipio_typecontents *contents, struct blocks *b)
{
    bool equal = true;

    for (uint64_t i = 1; i < b->source.n && equal; i++)
        equal = contents->ints[1 + i] == contents->ints[1];
    if (equal) {
        b->combiner = MPI_COMBINER_HINDEXED_BLOCK;
        free(contents->ints);
        contents->ints = NULL;
    }
    int rc = hipio_typecontents_get_addresses(contents);
    b->ints = contents->ints;
    b->addresses = contents->addresses;
    return rc;
}

static int flatten_indexed(struct hipio_typecontents *contents, struct hipio_layout *child,
                           int64_t extent, struct hipio_layout **layout)
{
    struct blocks b = {.source = {(uint64_t)contents->ints[0], block_run},
                       .combiner = contents->combiner,
                       .fixed = contents->n_ints > 1 ? contents->ints[1] : 0,
                       .ints = contents->ints,
                       .addresses = contents->addresses,
                       .extent = extent,
                       .size = hipio_layout_size(child)};
    int rc = b.combiner == MPI_COMBINER_HINDEXED ? settle_hindexed(contents, &b) : 0;

    if (rc == 0 && are_runs(&b, child))
        rc = indexed_runs(&b, contents, layout);
    else if (rc == 0)
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
static int flatten_over(struct hipio_typecontents *c, struct hipio_layout *child, int64_t extent,
                        struct hipio_layout **layout)
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

static int flatten_contents(struct hipio_typecontents *contents, struct hipio_layout **layout)
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
