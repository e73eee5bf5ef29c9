/* SPDX-License-Identifier: MIT */
/*
 * Rest: what a rank does between two looks for messages of others. MPI would wait for one with the
 * core in its hands. The ranks' own threads need that core, as do other ranks where there are more
 * of them than cores; so after a while it is offered to them, and later left to them for a moment.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* How long nothing has happened. Begins as zeros. */
struct hipio_rest {
    uint64_t turns;
    int64_t since; /* ns of the monotonic clock */
};

/* After each look; `idle`: nothing had happened. True: so long that this was a pause. */
bool hipio_rest(struct hipio_rest *rest, bool idle);
