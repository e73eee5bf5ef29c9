/* SPDX-License-Identifier: MIT */
/*
 * Engine: life of the process's one context: worker threads, pinned memory, providers.
 *
 * Nothing has to be called first: the first request starts what it needs. After fork the child's
 * engine refuses requests with -ENOTSUP
 * ("the process was forked after hipio was used") and touches nothing.
 */
#pragma once
#include <stdbool.h>

/* Joins the threads, frees pinned memory while the GPU runtime still works. Requests in flight are
 * waited for. Later requests start it again. */
void hipio_engine_shutdown(void);
/* False in a forked child of a process that had used the engine. */
bool hipio_engine_usable(void);

/* How many processes share the cores this one may run on (MPI's ranks of the node), itself
 * included; 1 until it is said. The automatic number of lanes is divided by it, and where there are
 * several, the default of the setting chunk_size is 4M. To be said before the first request. */
void hipio_engine_set_neighbours(unsigned processes);
unsigned hipio_engine_neighbours(void);

/*
 * Every use of threads, slots or a GPU stands between these two (the engine's own rooms call them,
 * nobody above does). enter: 0, or -ENOTSUP with text in a forked child; waits while a shutdown is
 * under way. Not nested.
 */
int hipio_engine_enter(void);
void hipio_engine_leave(void);
