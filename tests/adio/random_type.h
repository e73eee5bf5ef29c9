/* SPDX-License-Identifier: MIT */
/* Random derived datatypes from a seed: every constructor, nested, with gaps, negative bounds and
 * zero-sized parts. */
#pragma once
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* A small generator (xorshift), so that a seed means the same on every machine. */
struct random_state {
    uint64_t x;
};
uint32_t random_below(struct random_state *r, uint32_t n); /* 0 .. n-1; n > 0 */
void random_seed(struct random_state *r, uint64_t seed);

/*
 * A committed type of at most `depth` constructors on top of each other, whose true extent stays
 * below some tens of KiB. `monotonic`: fit for a file view (displacements rise, nothing negative,
 * nothing overlaps).
 */
MPI_Datatype random_type(struct random_state *r, int depth, int monotonic);

/* The same, of one kind. */
struct random_kind {
    bool rising;       /* fit for a file view */
    MPI_Datatype leaf; /* what everything is made of; MPI_DATATYPE_NULL: any predefined types */
};
MPI_Datatype random_type_of(struct random_state *r, int depth, const struct random_kind *kind);

/* MPI_Type_get_true_extent, but 0 and 0 for a type of size 0. */
void true_span(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent);
