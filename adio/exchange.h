/* SPDX-License-Identifier: MIT */
/*
 * Exchange: collective buffering of our own. The ranks' bytes go through aggregators, each of which
 * moves its own part of the file in large rounds. Every rank calls each function; none is left
 * waiting, whatever fails on another.
 */
#pragma once
#include "access.h"
#include "exchange_room.h"

enum hipio_exchange_verdict {
    HIPIO_EXCHANGE_IMPOSSIBLE, /* some rank has no memory for it */
    HIPIO_EXCHANGE_NEEDLESS,   /* no rank's range overlaps another's, or an exchange would have more
                                  rounds than messages can be told apart */
    HIPIO_EXCHANGE_POSSIBLE    /* all of it, or all that the caller insists on */
};

/* What this rank would agree to: ROMIO's hints, and the block of the file system. */
void hipio_exchange_propose(struct hipio_driven *driven, struct hipio_exchange_terms *terms);

/*
 * Tells all ranks what each of them touches, and what follows from it, the same on all. `insist`:
 * exchange even where nothing overlaps. Returns this rank's MPI code, an error only where the
 * verdict is "impossible"; the ranks have not agreed on it yet.
 */
int hipio_exchange_survey(struct hipio_access *access, const struct hipio_exchange_terms *terms,
                          bool insist, enum hipio_exchange_verdict *verdict);
/*
 * Moves the access, after a survey that found it possible; request.done says how far it came.
 * Returns this rank's MPI code; the ranks have not agreed on it yet.
 */
int hipio_exchange_move(struct hipio_access *access);

/* True: MPI has failed in the file's last exchange, as far as this rank knows. The next one needs
 * terms that say so. */
bool hipio_exchange_is_broken(const struct hipio_driven *driven);
/* For hipio_agree_end after a survey or an exchange; the context is the driven file. */
void hipio_exchange_attend(void *driven);
