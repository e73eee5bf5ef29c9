/* SPDX-License-Identifier: MIT */
/*
 * Staged: a collective access in rounds through a host window and ROMIO's own two-phase code.
 */
#pragma once
#include "access.h"

/* Bytes of the window of one rank: the setting, rounded down to whole etypes (at least one). */
uint64_t hipio_staged_window(const struct hipio_driven *driven);

/*
 * Moves the access in `rounds` rounds, the same number on all ranks. `file_size`: the size that all
 * ranks agreed on (negative: it can't be told); a read moves nothing past it. Returns this rank's
 * MPI code; the ranks have not agreed on it yet.
 */
int hipio_staged_move(struct hipio_access *access, long long rounds, int64_t file_size);
