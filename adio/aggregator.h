/* SPDX-License-Identifier: MIT */
/*
 * Aggregator: the part in an exchange of a rank that owns a domain of the file. It takes the pieces
 * of all ranks, round after round, and moves the rounds between its memory and the file in the
 * background, one ahead of or behind the messages. An error ends its work on the file, not the
 * exchange: it goes on taking pieces until nobody has one for it.
 */
#pragma once
#include "access.h"
#include "exchange_room.h"

struct hipio_aggregator {
    struct hipio_exchange_room *room;
    struct hipio_access *access; /* for words */
    const struct hipio_domains *domains;
    struct hipio_file *file;   /* NULL: it could not be opened */
    int domain;                /* -1: this rank owns none */
    int64_t round;             /* open now; -1: none */
    struct hipio_basin *basin; /* of that round */
    int participants;          /* ranks that have pieces in it */
    int heard;                 /* of these, how many sent their first piece, */
    int missing;               /* and how many have not sent their last one */
    uint64_t announced;        /* pieces that the others sent in all, */
    uint64_t received;         /* and pieces that came, of any rank */
    int posted;                /* receives of pieces, */
    int filling;               /* and of bytes that come apart from them */
    int replying;              /* sends */
    int64_t upcoming;          /* the round that is opened next; -1: none */
    bool ahead;                /* read: it is being fetched, or there is none */
    /* Whose memory the bytes that are on their way apart from a slot's message lie in; NULL: they
     * are in the slot. */
    struct hipio_basin *in_place[HIPIO_EXCHANGE_SLOTS];
    struct hipio_piece_answer word; /* what the ranks beside us are told of this round */
    bool done;
    int code; /* the first error, an MPI code */
};

/* room->range says what each rank touches. */
void hipio_aggregator_init(struct hipio_aggregator *self, struct hipio_exchange_room *room,
                           struct hipio_access *access, const struct hipio_domains *domains);
/* Opens and closes rounds and posts receives, as far as nothing has to be waited for. False: there
 * was nothing to do. */
bool hipio_aggregator_post(struct hipio_aggregator *self);
/* Handles an event of a slot: ARRIVED, FILLED, REPLIED or GIVEN. */
void hipio_aggregator_event(struct hipio_aggregator *self, enum hipio_exchange_event event,
                            int slot, const MPI_Status *status);
/* All rounds are over; storage may still be at work (finish waits for it). */
bool hipio_aggregator_is_done(const struct hipio_aggregator *self);
/* Waits for storage. Returns the first error, an MPI code. */
int hipio_aggregator_finish(struct hipio_aggregator *self);
