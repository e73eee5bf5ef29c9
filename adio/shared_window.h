/* SPDX-License-Identifier: MIT */
/*
 * Shared window: memory of one rank that the ranks beside it on its host can address.
 *
 * It is a nameless file in memory which the neighbours open through their owner's /proc entry.
 * MPI's own shared windows are not used: where Open MPI 4.1 has no room for one, the rank that
 * finds out leaves and the others wait for it for ever; and they can't be freed by a rank alone.
 */
#pragma once
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct hipio_shared_window;

/*
 * Collective over `comm`. Offers `bytes` of zeroed memory of this rank (0: none), none of which may
 * be touched before hipio_shared_window_ensure, and maps what the others offer. `group`: how many
 * consecutive ranks of a host share; 0: all. Always gives a window; where sharing fails for one
 * rank of a group, it fails for the whole group, and then no rank has neighbours nor memory. NULL:
 * no memory even for that.
 */
struct hipio_shared_window *hipio_shared_window_create(MPI_Comm comm, uint64_t bytes,
                                                       uint64_t group);
/* Local; neighbours keep what they have mapped. NULL is allowed. */
void hipio_shared_window_destroy(struct hipio_shared_window *window);

/*
 * Sees to it that these bytes of this rank's own memory are there, so that no later touch of them
 * by any rank can fail. 0 or a negative errno with text.
 */
int hipio_shared_window_ensure(const struct hipio_shared_window *window, const void *memory,
                               uint64_t bytes);

/* True: the rank of `comm` can address this rank's memory and offers its own; also for this rank
 * itself. */
bool hipio_shared_window_reaches(const struct hipio_shared_window *window, int rank);
/* The memory that the rank offers, at an address of this process; NULL: none that can be reached.
 */
void *hipio_shared_window_of(const struct hipio_shared_window *window, int rank);
