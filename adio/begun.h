/* SPDX-License-Identifier: MIT */
/*
 * Begun: a split collective of which each rank moves its own blocks, between its begin and its end.
 * The work is done in the background; the end waits for it, and only there the ranks agree on how
 * it went.
 */
#pragma once
#include "access.h"

struct hipio_begun;

/* Room for what a begin starts. NULL: no memory. */
struct hipio_begun *hipio_begun_create(void);

/*
 * Takes over the access, which is empty then, and starts it. An error is kept for the end, so that
 * all ranks come to it.
 */
void hipio_begun_start(struct hipio_begun *begun, struct hipio_access *access);

/* Starts nothing and keeps an error, an MPI code, for the end. */
void hipio_begun_fail(struct hipio_begun *begun, int code);

/*
 * At the end of a split collective that may have been started like this. Waits, agrees with the
 * other ranks, and leaves the bytes in the file's split_status. Collective, but for a file of which
 * nothing was started. An MPI code.
 */
int hipio_begun_end(struct hipio_driven *driven);

/* Waits for what goes on. NULL is allowed. */
void hipio_begun_destroy(struct hipio_begun *begun);
