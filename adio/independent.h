/* SPDX-License-Identifier: MIT */
/*
 * Independent: blocking accesses of one rank. Host buffers go down untouched; the rest goes to the
 * engine.
 */
#pragma once
#include "access.h"

/* The four blocking members in one: call->absolute tells contiguous from strided, call->op reads
 * from writes. */
void hipio_independent_move(hipio_romio_fd fd, const struct hipio_call *call, MPI_Status *status,
                            int *error);

/* True: ROMIO can't serve this memory or datatype, or not rightly, so the engine must. */
bool hipio_independent_is_ours(const struct hipio_driven *driven, const struct hipio_call *call,
                               const struct hipio_memory *memory);
