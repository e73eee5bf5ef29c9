/* SPDX-License-Identifier: MIT */
/*
 * Plain: one constructor over data without gaps is left to ROMIO, everything else becomes runs.
 */
#include "plain.h"
#include "engine/status.h"
#include "flatten.h"
#include "typecontents.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* Bytes without a gap, whose extent is their size: named types, and contiguous ones of them. */
static bool is_solid(MPI_Datatype type)
{
    struct hipio_typecontents contents;
    MPI_Count size = 0, lb = 1, extent = 0;
    bool is;

    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent_x(type, &lb, &extent);
    if (size == 0 || lb != 0 || extent != size || hipio_typecontents_get(type, &contents))
        return false;
    if (hipio_typecontents_is_leaf(&contents))
        return true;
    is = (contents.combiner == MPI_COMBINER_DUP || contents.combiner == MPI_COMBINER_CONTIGUOUS) &&
         is_solid(contents.types[0]);
    hipio_typecontents_free(&contents);
    return is;
}

static bool are_positive(const int *ints, int n)
{
    for (int i = 0; i < n; i++) {
        if (ints[i] <= 0)
            return false;
    }
    return true;
}

/* No part of the constructor is empty. */
static bool is_full(const struct hipio_typecontents *contents)
{
    const int *ints = contents->ints;

    switch (contents->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        return ints[0] > 0;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        return ints[0] > 0 && ints[1] > 0;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
        return ints[0] > 0 && are_positive(ints + 1, ints[0]);
    case MPI_COMBINER_SUBARRAY:
        return true; /* MPI allows no empty one */
    default:
        return false;
    }
}

/* Does ROMIO understand it, which may have been resized once? */
static bool is_understood(MPI_Datatype type, bool resized)
{
    struct hipio_typecontents contents;
    bool is;

    if (is_solid(type))
        return true;
    if (hipio_typecontents_get(type, &contents))
        return false;
    if (hipio_typecontents_is_leaf(&contents))
        return false; /* a pair with a gap */
    if (contents.combiner == MPI_COMBINER_DUP)
        is = is_understood(contents.types[0], resized);
    else if (contents.combiner == MPI_COMBINER_RESIZED)
        is = !resized && contents.addresses[0] == 0 && is_understood(contents.types[0], true);
    else
        is = is_full(&contents) && is_solid(contents.types[0]);
    hipio_typecontents_free(&contents);
    return is;
}

/* ---- Runs ---- */

struct runs {
    int n;
    int *length;
    MPI_Aint *at;
};

/* Goes through the layout; stores what fits in `runs`, if there is room, and counts. -EOVERFLOW:
 * more runs than MPI can count. */
static int collect(const struct hipio_layout *layout, struct runs *runs)
{
    struct hipio_cursor cursor;
    uint64_t bytes;
    int64_t at;

    runs->n = 0;
    hipio_cursor_init(&cursor, layout, 0);
    while ((bytes = hipio_cursor_next_run(&cursor, INT_MAX, &at)) > 0) {
        if (runs->n == INT_MAX)
            return hipio_status_set(-EOVERFLOW, "the file type has more than %d blocks", INT_MAX);
        if (runs->at) {
            runs->length[runs->n] = (int)bytes;
            runs->at[runs->n] = at;
        }
        runs->n++;
    }
    return 0;
}

/* Gives the bytes their extent. Takes over `type`. */
static int finish(MPI_Datatype type, MPI_Aint extent, MPI_Datatype *plain)
{
    int rc = PMPI_Type_create_resized(type, 0, extent, plain);

    PMPI_Type_free(&type);
    if (rc == MPI_SUCCESS)
        rc = PMPI_Type_commit(plain);
    return rc == MPI_SUCCESS ? 0 : hipio_status_set(-ENOMEM, "no memory for a file type");
}

static int make_type(const struct runs *runs, MPI_Aint extent, MPI_Datatype *plain)
{
    MPI_Datatype type;

    if (PMPI_Type_create_hindexed(runs->n, runs->length, runs->at, MPI_BYTE, &type) != MPI_SUCCESS)
        return hipio_status_set(-ENOMEM, "no memory for a file type of %d blocks", runs->n);
    return finish(type, extent, plain);
}

/* Of a type without bytes, ROMIO takes this form alone. */
static int make_type_of_nothing(MPI_Aint extent, MPI_Datatype *plain)
{
    MPI_Datatype type;

    if (PMPI_Type_contiguous(0, MPI_BYTE, &type) != MPI_SUCCESS)
        return hipio_status_set(-ENOMEM, "no memory for a file type");
    return finish(type, extent, plain);
}

static int make_of_layout(const struct hipio_layout *layout, MPI_Aint extent, MPI_Datatype *plain)
{
    struct runs runs = {0};
    int rc = collect(layout, &runs);

    if (rc)
        return rc;
    if (runs.n == 0)
        return make_type_of_nothing(extent, plain);
    runs.length = malloc((size_t)runs.n * sizeof *runs.length);
    runs.at = malloc((size_t)runs.n * sizeof *runs.at);
    if (runs.length && runs.at)
        rc = collect(layout, &runs);
    else
        rc = hipio_status_set(-ENOMEM, "no memory for a file type of %d blocks", runs.n);
    if (rc == 0)
        rc = make_type(&runs, extent, plain);
    free(runs.length);
    free(runs.at);
    return rc;
}

int hipio_plain_make(MPI_Datatype type, MPI_Datatype *plain)
{
    MPI_Aint lb, extent;
    struct hipio_layout *layout;

    *plain = MPI_DATATYPE_NULL;
    if (is_understood(type, false))
        return 0;
    if (PMPI_Type_get_extent(type, &lb, &extent) != MPI_SUCCESS)
        return hipio_status_set(-EINVAL, "MPI does not know the extent of the view's type");
    int rc = hipio_flatten(type, 1, &layout);
    if (rc == 0) {
        rc = make_of_layout(layout, extent, plain);
        hipio_layout_release(layout);
    }
    return rc;
}
