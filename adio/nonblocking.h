/* SPDX-License-Identifier: MIT */
/*
 * Nonblocking: accesses that return at once and are carried by the engine's threads.
 */
#pragma once
#include "access.h"

/*
 * The six nonblocking members in one. A collective one needs no other rank: each rank moves its own
 * blocks, so that starting it is a local act, as MPI wants it (MPI 3.1, section 13.4.5). *request
 * is MPI_REQUEST_NULL on error.
 */
void hipio_nonblocking_start(hipio_romio_fd fd, const struct hipio_call *call, MPI_Request *request,
                             int *error);
