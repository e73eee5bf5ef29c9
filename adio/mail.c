/* SPDX-License-Identifier: MIT */
/* Mail: posts and tests; the alarm, and what is done about messages that nobody waits for. */
#include "mail.h"
#include "engine/log.h"
#include "engine/status.h"
#include "mpierr.h"
#include <stdio.h>
#include <stdlib.h>

#define LETTERS (HIPIO_EXCHANGE_EVENTS * HIPIO_EXCHANGE_SLOTS)

/* ---- Failures ---- */

static void fail(struct hipio_exchange_room *room, const char *why)
{
    char text[HIPIO_TEXT_MAX + 64];

    if (room->mail_code != MPI_SUCCESS)
        return;
    snprintf(text, sizeof text, "collective exchange: %s; the data are not complete", why);
    hipio_log(HIPIO_LOG_INFO, "%s", text);
    room->mail_code = hipio_mpierr_code(MPI_ERR_OTHER, text);
    room->broken = true;
}

void hipio_mail_break(struct hipio_exchange_room *room, const char *why)
{
    room->alarm |= room->mail_code == MPI_SUCCESS;
    fail(room, why);
}

void hipio_mail_note(struct hipio_exchange_room *room, int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "", why[HIPIO_TEXT_MAX];
    int length = 0;

    if (rc == MPI_SUCCESS)
        return;
    PMPI_Error_string(rc, text, &length);
    snprintf(why, sizeof why, "MPI could not %s (%.200s)", what, text);
    hipio_mail_break(room, why);
}

int hipio_mail_code(const struct hipio_exchange_room *room)
{
    return room->mail_code;
}

/* ---- Messages ---- */

void hipio_mail_send(struct hipio_exchange_room *room, const struct hipio_letter *letter)
{
    if (room->mail_code != MPI_SUCCESS)
        return;
    hipio_mail_note(room,
                    PMPI_Isend(letter->bytes, (int)letter->length, MPI_BYTE, letter->rank,
                               letter->tag, room->comm, letter->request),
                    "send a message");
}

void hipio_mail_receive(struct hipio_exchange_room *room, const struct hipio_letter *letter)
{
    if (room->mail_code != MPI_SUCCESS)
        return;
    room->inbound[letter->request - room->request] = true;
    hipio_mail_note(room,
                    PMPI_Irecv(letter->bytes, (int)letter->length, MPI_BYTE, letter->rank,
                               letter->tag, room->comm, letter->request),
                    "receive a message");
}

enum hipio_mail_found hipio_mail_next(struct hipio_exchange_room *room, int *index,
                                      MPI_Status *status)
{
    int found = 0;
    int rc = PMPI_Testany(LETTERS, room->request, index, &found, status);

    hipio_mail_note(room, rc, "move a message");
    if (rc != MPI_SUCCESS || !found)
        return HIPIO_MAIL_NONE;
    if (*index == MPI_UNDEFINED)
        return HIPIO_MAIL_NOTHING;
    room->inbound[*index] = false;
    return HIPIO_MAIL_EVENT;
}

/* ---- The alarm ---- */

static void sound(struct hipio_exchange_room *room)
{
    room->alarm = false;
    for (int rank = 0; rank < room->ranks; rank++) {
        if (rank != room->rank &&
            PMPI_Send(NULL, 0, MPI_BYTE, rank, hipio_exchange_room_alarm_tag(), room->comm))
            hipio_log(HIPIO_LOG_WARN,
                      "collective exchange: rank %d can't be told that MPI has failed here", rank);
    }
}

static void listen(struct hipio_exchange_room *room)
{
    MPI_Status status;
    int there = 0;

    hipio_mail_note(
        room,
        PMPI_Iprobe(MPI_ANY_SOURCE, hipio_exchange_room_alarm_tag(), room->comm, &there, &status),
        "look for messages");
    if (there)
        fail(room, "MPI has failed on another rank");
}

void hipio_mail_rest(struct hipio_exchange_room *room, struct hipio_rest *rest, bool idle)
{
    if (hipio_rest(rest, idle))
        listen(room);
}

/* ---- After a failure ---- */

/* Takes in a message that nobody waits for, so that its sender's request ends. */
static void take_in(struct hipio_exchange_room *room, const MPI_Status *status)
{
    int bytes = 0;
    void *memory;

    if (PMPI_Get_count(status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < 0)
        bytes = 0;
    memory = malloc((size_t)bytes + 1);
    if (memory)
        PMPI_Recv(memory, bytes, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, room->comm,
                  MPI_STATUS_IGNORE);
    free(memory);
}

void hipio_mail_attend(struct hipio_exchange_room *room)
{
    MPI_Status status;
    int there = 0;

    if (!room->broken)
        return;
    if (PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, room->comm, &there, &status) == MPI_SUCCESS &&
        there)
        take_in(room, &status);
}

/* What has been matched already is moved to its end instead: then its sender is at it too. */
static void take_back_receives(struct hipio_exchange_room *room)
{
    for (int i = 0; i < LETTERS; i++) {
        if (room->request[i] == MPI_REQUEST_NULL || !room->inbound[i])
            continue;
        PMPI_Cancel(&room->request[i]);
        PMPI_Wait(&room->request[i], MPI_STATUS_IGNORE);
        room->inbound[i] = false;
    }
}

/* A request that has failed is over, too. */
static bool all_sent(MPI_Request *request, int n)
{
    bool all = true;

    for (int i = 0; i < n; i++) {
        int done = 1;
        if (request[i] != MPI_REQUEST_NULL &&
            PMPI_Test(&request[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            all &= done != 0;
    }
    return all;
}

void hipio_mail_clear(struct hipio_exchange_room *room)
{
    struct hipio_rest rest = {0, 0};

    if (!room->broken)
        return;
    if (room->alarm)
        sound(room);
    take_back_receives(room);
    while (!all_sent(room->request, LETTERS) || !all_sent(room->word, room->ranks)) {
        hipio_mail_attend(room);
        hipio_rest(&rest, true);
    }
}
