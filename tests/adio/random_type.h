/* SPDX-License-Identifier: MIT */
/* Random derived datatypes from a seed: every constructor, nested, with gaps, negative bounds and
 * zero-sized parts. */
#pragma once
#include <mpi.h>
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

/* MPI_Type_get_true_extent, but 0 and 0 for a type of size 0. */
void true_span(MPI_Datatype type, MPI_Aint *lb, MPI_Aint *extent);
