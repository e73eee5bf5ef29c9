/* SPDX-License-Identifier: MIT */
/*
 * Typecontents: one constructor call of an MPI datatype, taken apart.
 */
#pragma once
#include <mpi.h>
#include <stdbool.h>

struct hipio_typecontents {
    MPI_Datatype type;
    int combiner;
    int n_ints, n_addresses, n_types;
    int *ints;
    MPI_Aint *addresses; /* NULL for MPI_COMBINER_HINDEXED until they are asked for */
    MPI_Datatype *types; /* the datatype's own, gone with it */
};

/* 0; -ENOMEM; -EINVAL when MPI refuses the type. A named type has no contents. */
int hipio_typecontents_get(MPI_Datatype type, struct hipio_typecontents *contents);
/* Gets the addresses of MPI_COMBINER_HINDEXED, which may be many. 0; -ENOMEM. */
int hipio_typecontents_get_addresses(struct hipio_typecontents *contents);
void hipio_typecontents_free(struct hipio_typecontents *contents);
/* MPI_COMBINER_NAMED and Fortran's parametrised types: nothing inside. */
bool hipio_typecontents_is_leaf(const struct hipio_typecontents *contents);
