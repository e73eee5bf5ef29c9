/* SPDX-License-Identifier: MIT */
/* Mail: posts, tests and pauses. */
#include "mail.h"
#include "mpierr.h"
#include <sched.h>

/* Turns without an event, a few microseconds, in which no one else is let in: what is on its way
 * is likely to be here sooner than a change of threads. */
#define POLLS_BEFORE_YIELD 32

static void note(struct hipio_exchange_room *room, int rc)
{
    if (rc != MPI_SUCCESS && room->mail_code == MPI_SUCCESS)
        room->mail_code = hipio_mpierr_class_of(rc);
}

void hipio_mail_send(struct hipio_exchange_room *room, const struct hipio_letter *letter)
{
    if (room->mail_code == MPI_SUCCESS)
        note(room, PMPI_Isend(letter->bytes, (int)letter->length, MPI_BYTE, letter->rank,
                              letter->tag, room->comm, letter->request));
}

void hipio_mail_receive(struct hipio_exchange_room *room, const struct hipio_letter *letter)
{
    if (room->mail_code == MPI_SUCCESS)
        note(room, PMPI_Irecv(letter->bytes, (int)letter->length, MPI_BYTE, letter->rank,
                              letter->tag, room->comm, letter->request));
}

enum hipio_mail_found hipio_mail_next(struct hipio_exchange_room *room, int *index,
                                      MPI_Status *status)
{
    int found = 0;
    int rc = PMPI_Testany(HIPIO_EXCHANGE_EVENTS * HIPIO_EXCHANGE_SLOTS, room->request, index,
                          &found, status);

    note(room, rc);
    if (rc != MPI_SUCCESS || !found)
        return HIPIO_MAIL_NONE;
    return *index == MPI_UNDEFINED ? HIPIO_MAIL_NOTHING : HIPIO_MAIL_EVENT;
}

void hipio_mail_rest(uint64_t idle)
{
    if (idle > POLLS_BEFORE_YIELD)
        sched_yield();
}

int hipio_mail_code(const struct hipio_exchange_room *room)
{
    return room->mail_code;
}
