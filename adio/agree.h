/* SPDX-License-Identifier: MIT */
/*
 * Agree: ranks of a collective come to one mind.
 */
#pragma once
#include <mpi.h>

/* Replaces each value by the highest of all ranks. Collective. MPI_SUCCESS or MPI's own error
 * class. */
int hipio_agree_max(MPI_Comm comm, long long *values, int n);

/*
 * Ends a collective: every rank passes its own code (MPI_SUCCESS or an error). A rank with an error
 * gets it back; a rank without one gets MPI_SUCCESS when nobody failed, else an MPI_ERR_IO whose
 * text says that another rank's part failed. Collective. `meanwhile` (NULL: nothing) is called with
 * `context` again and again until all ranks are there.
 */
int hipio_agree_end(MPI_Comm comm, int code, const char *file, void (*meanwhile)(void *),
                    void *context);
