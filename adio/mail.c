/* SPDX-License-Identifier: MIT */
/* Mail: posts, tests and pauses. */
#include "mail.h"
#include "mpierr.h"
#include <sched.h>
#include <time.h>

/*
 * Idle turns, a few microseconds, in which no one else is let in: what is on its way is likely to
 * be here sooner than a change of threads. Then the core is offered, for about as long as a message
 * takes. A core that is only offered comes back at once where nobody waits for it on that very
 * core, and then a worker that the kernel has put beside another rank's main thread waits in vain:
 * pauses gave half as much again where cores were short, and cost nothing where they were not.
 */
#define TURNS_BEFORE_YIELD 32
#define YIELD_NS INT64_C(200000)
#define PAUSE_NS 50000

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

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void hipio_mail_rest(struct hipio_mail_rest *rest, bool idle)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    rest->turns = idle ? rest->turns + 1 : 0;
    if (rest->turns < TURNS_BEFORE_YIELD)
        return;
    if (rest->turns == TURNS_BEFORE_YIELD)
        rest->since = now();
    if (now() - rest->since < YIELD_NS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

int hipio_mail_code(const struct hipio_exchange_room *room)
{
    return room->mail_code;
}
