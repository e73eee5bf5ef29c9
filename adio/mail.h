/* SPDX-License-Identifier: MIT */
/*
 * Mail: the messages of an exchange on their way. Whoever posts one is told of its end as an event;
 * a message that can't be posted, or fails, ends the exchange (hipio_mail_code).
 */
#pragma once
#include "exchange_room.h"

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

/* How long nothing has happened. Begins as zeros. */
struct hipio_mail_rest {
    uint64_t turns;
    int64_t since; /* ns of the monotonic clock */
};

/*
 * After each turn; `idle`: nothing happened in it. MPI would wait for a message with the core in
 * its hands. The ranks' own threads need that core, as do other ranks where there are more of them
 * than cores; so after a while it is offered to them, and later left to them for a moment.
 */
void hipio_mail_rest(struct hipio_mail_rest *rest, bool idle);

/* MPI_SUCCESS, or the first error of a message, an MPI code. */
int hipio_mail_code(const struct hipio_exchange_room *room);
