/* SPDX-License-Identifier: MIT */
/*
 * Collective: blocking accesses that all ranks of a file make together.
 */
#pragma once
#include "access.h"

/* ReadStridedColl and WriteStridedColl. Entered and left by every rank, whatever its buffer is and
 * whatever fails on it. */
void hipio_collective_move(hipio_romio_fd fd, const struct hipio_call *call, MPI_Status *status,
                           int *error);
