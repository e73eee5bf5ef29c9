/* SPDX-License-Identifier: MIT */
/*
 * Mail: the messages of an exchange on their way. Whoever posts one is told of its end as an event.
 *
 * A message that MPI can't post or deliver ends the exchange, on all ranks: the rank that meets the
 * failure sounds the alarm, which the others hear once they have nothing else to do. From then on
 * nothing more is posted. What is under way still points to memory of ours and of the user, so each
 * rank takes back its receives, and takes in whatever comes until its own sends are done and every
 * rank is at the end of the collective (hipio_mail_clear, hipio_mail_attend). MPI has no way to
 * take a send back: where a rank can't receive at all, those that sent to it wait for ever, and
 * where one can't send at all, nobody learns of it.
 */
#pragma once
#include "exchange_room.h"
#include "rest.h"

struct hipio_letter {
    MPI_Request *request; /* of the room, MPI_REQUEST_NULL so far */
    void *bytes;          /* must stay as they are, or unread, until the request is done */
    uint64_t length;      /* at most that of the room's longest message */
    int rank, tag;
};

void hipio_mail_send(struct hipio_exchange_room *room, const struct hipio_letter *letter);
void hipio_mail_receive(struct hipio_exchange_room *room, const struct hipio_letter *letter);

/* What hipio_mail_next found. */
enum hipio_mail_found {
    HIPIO_MAIL_EVENT,  /* one */
    HIPIO_MAIL_NONE,   /* none yet */
    HIPIO_MAIL_NOTHING /* no message is on its way */
};

/* One message that has ended: its place in room->request, and what MPI says of it. Never blocks. */
enum hipio_mail_found hipio_mail_next(struct hipio_exchange_room *room, int *index,
                                      MPI_Status *status);
/* Rests between two turns (rest.h), and listens for the alarm in pauses. */
void hipio_mail_rest(struct hipio_exchange_room *room, struct hipio_rest *rest, bool idle);

/* MPI_SUCCESS, or why no message is posted any more, an MPI code. */
int hipio_mail_code(const struct hipio_exchange_room *room);
/* Notes what an MPI call on the room's communicator returned; `what` could not be done. */
void hipio_mail_note(struct hipio_exchange_room *room, int rc, const char *what);
/* Ends the exchange for another reason, which is told as text. */
void hipio_mail_break(struct hipio_exchange_room *room, const char *why);

/*
 * After an exchange that has ended early: sounds the alarm where this rank met the failure, and
 * returns when no message of the room is on its way any more from or to this rank's memory. Nothing
 * for any other exchange.
 */
void hipio_mail_clear(struct hipio_exchange_room *room);
/* While a rank whose exchange has ended early waits for the others: takes in what comes. */
void hipio_mail_attend(struct hipio_exchange_room *room);
