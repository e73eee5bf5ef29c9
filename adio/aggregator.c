/* SPDX-License-Identifier: MIT */
/* Aggregator: rounds, pieces and answers. */
#include "aggregator.h"
#include "engine/stats.h"
#include "engine/status.h"
#include "mpierr.h"
#include <errno.h>

static bool reads(const struct hipio_aggregator *self)
{
    return self->access->call.op == HIPIO_READ;
}

static void fail(struct hipio_aggregator *self, int rc, const char *words)
{
    if (self->code == MPI_SUCCESS)
        self->code = hipio_access_code(self->access, rc, words);
}

static int own_domain(const struct hipio_exchange_room *room, const struct hipio_domains *domains)
{
    for (int i = 0; i < domains->count; i++) {
        if (room->aggregator[i] == room->rank)
            return i;
    }
    return -1;
}

void hipio_aggregator_init(struct hipio_aggregator *self, struct hipio_exchange_room *room,
                           struct hipio_access *access, const struct hipio_domains *domains)
{
    *self = (struct hipio_aggregator){.room = room,
                                      .access = access,
                                      .domains = domains,
                                      .domain = own_domain(room, domains),
                                      .round = -1};
    self->done = self->domain < 0;
    if (self->done)
        return;
    for (int rank = 0; rank < room->ranks; rank++)
        room->peer[rank] = hipio_domains_share(domains, self->domain, &room->range[rank]);
    room->basin[0].round = room->basin[1].round = -1;
    int rc = hipio_driver_file(access->driven, &self->file);
    if (rc)
        fail(self, rc, NULL);
}

/* ---- Rounds ---- */

static void settle(struct hipio_aggregator *self, struct hipio_basin *basin)
{
    int rc = hipio_basin_settle(basin);

    if (rc)
        fail(self, rc, basin->request.text);
}

static bool is_gone(const struct hipio_range *peer)
{
    return peer->low == peer->high;
}

/* The lowest round that anyone has pieces for; -1: nobody has. */
static int64_t next_round(const struct hipio_aggregator *self)
{
    int64_t lowest = INT64_MAX;

    for (int rank = 0; rank < self->room->ranks; rank++) {
        const struct hipio_range *peer = &self->room->peer[rank];
        if (!is_gone(peer) && peer->low < lowest)
            lowest = peer->low;
    }
    return lowest == INT64_MAX ? -1 : hipio_domains_round_of(self->domains, self->domain, lowest);
}

/* Who has pieces in a round, and what of the file they span. */
static int survey(const struct hipio_aggregator *self, const struct hipio_range *round,
                  struct hipio_range *span)
{
    int participants = 0;

    *span = (struct hipio_range){INT64_MAX, 0};
    for (int rank = 0; rank < self->room->ranks; rank++) {
        const struct hipio_range *peer = &self->room->peer[rank];
        int64_t high = peer->high < round->high ? peer->high : round->high;
        if (is_gone(peer) || peer->low >= round->high)
            continue;
        participants++;
        span->low = peer->low < span->low ? peer->low : span->low;
        span->high = high > span->high ? high : span->high;
    }
    return participants;
}

static struct hipio_basin *other_basin(const struct hipio_aggregator *self)
{
    return &self->room->basin[self->basin == &self->room->basin[0]];
}

/* Shared memory is made as far as it is needed. */
static int ensure_memory(const struct hipio_aggregator *self, struct hipio_basin *basin,
                         uint64_t bytes)
{
    const struct hipio_shared_window *shared = self->room->shared;
    int rc = 0;

    if (bytes <= basin->ready)
        return 0;
    rc = hipio_shared_window_ensure(shared, basin->memory, bytes);
    if (rc == 0)
        rc = hipio_shared_window_ensure(shared, basin->covered, hipio_basin_bits(bytes));
    if (rc == 0)
        basin->ready = bytes;
    return rc;
}

/* Makes a basin ready for a round and, in a read, starts to fetch it. */
static void load(struct hipio_aggregator *self, struct hipio_basin *basin, int64_t round)
{
    struct hipio_range range = hipio_domains_round(self->domains, self->domain, round), span;

    settle(self, basin);
    survey(self, &range, &span);
    hipio_basin_open(basin, round, range);
    int rc = ensure_memory(self, basin, (uint64_t)(range.high - range.low));
    if (rc)
        fail(self, rc, NULL);
    if (self->code != MPI_SUCCESS)
        return;
    if (!reads(self))
        hipio_basin_clear(basin);
    else if ((rc = hipio_basin_fetch(basin, self->file, span)) != 0)
        fail(self, rc, NULL);
}

/* Once all have sent their first pieces, it is known what they want next. */
static void fetch_ahead(struct hipio_aggregator *self)
{
    int64_t round = next_round(self);

    if (reads(self) && round >= 0)
        load(self, other_basin(self), round);
}

/* Ranks of this host put and take their bytes themselves. Sends end with the round, before whose
 * end their receivers must have heard. */
static void open_basin(struct hipio_aggregator *self, const struct hipio_range *round)
{
    struct hipio_exchange_room *room = self->room;

    self->word = (struct hipio_piece_answer){.basin = self->basin != &room->basin[0]};
    if (reads(self))
        settle(self, self->basin);
    self->word.failed = self->code != MPI_SUCCESS;
    if (reads(self) && !self->word.failed)
        self->word.end = hipio_basin_end(self->basin);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (int rank = 0; rank < room->ranks; rank++) {
        const struct hipio_range *peer = &room->peer[rank];
        if (room->beside[rank] && !is_gone(peer) && peer->low < round->high)
            PMPI_Isend(&self->word, sizeof self->word, MPI_BYTE, rank,
                       hipio_exchange_room_word_tag(), room->comm, &room->word[rank]);
    }
}

static void open_round(struct hipio_aggregator *self)
{
    int64_t round = next_round(self);
    struct hipio_range range, span;

    self->done = round < 0;
    if (self->done)
        return;
    self->basin = other_basin(self);
    if (!reads(self) || self->basin->round != round)
        load(self, self->basin, round);
    range = hipio_domains_round(self->domains, self->domain, round);
    self->round = round;
    self->participants = self->missing = survey(self, &range, &span);
    self->heard = 0;
    self->announced = self->received = 0;
    open_basin(self, &range);
    hipio_stats_add(HIPIO_COUNT_exchange_rounds, 1);
}

static void close_round(struct hipio_aggregator *self)
{
    self->round = -1;
    PMPI_Waitall(self->room->ranks, self->room->word, MPI_STATUSES_IGNORE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (reads(self) || self->code != MPI_SUCCESS)
        return;
    int rc = hipio_basin_store(self->basin, self->file);
    if (rc)
        fail(self, rc, NULL);
}

/* Pieces that are certain to come still. */
static uint64_t expected(const struct hipio_aggregator *self)
{
    uint64_t open = self->announced > self->received ? self->announced - self->received : 0;

    return (uint64_t)self->missing + open;
}

static bool round_is_over(const struct hipio_aggregator *self)
{
    return self->missing == 0 && self->received == self->announced;
}

/* ---- Messages ---- */

/* Never more receives than pieces that must still come, so that none is left over. */
static void post_receives(struct hipio_aggregator *self)
{
    struct hipio_exchange_room *room = self->room;

    for (int slot = 0; slot < HIPIO_EXCHANGE_SLOTS; slot++) {
        if ((uint64_t)self->posted >= expected(self))
            return;
        if (!hipio_exchange_room_is_free(room, true, slot))
            continue;
        PMPI_Irecv(hipio_exchange_room_slot(room, true, slot),
                   (int)hipio_exchange_room_message(room), MPI_BYTE, MPI_ANY_SOURCE,
                   hipio_exchange_room_tag(room, self->round), room->comm,
                   hipio_exchange_room_request(room, HIPIO_EXCHANGE_ARRIVED, slot));
        self->posted++;
    }
}

void hipio_aggregator_post(struct hipio_aggregator *self)
{
    if (self->done)
        return;
    if (self->round >= 0 && round_is_over(self))
        close_round(self);
    if (self->round < 0)
        open_round(self);
    if (!self->done)
        post_receives(self);
}

static void answer(struct hipio_aggregator *self, const struct hipio_piece *piece, int slot,
                   int rank)
{
    struct hipio_exchange_room *room = self->room;
    struct hipio_piece_answer *head =
        (struct hipio_piece_answer *)hipio_exchange_room_answer(room, true, slot);
    uint64_t bytes = sizeof *head;

    settle(self, self->basin);
    *head = (struct hipio_piece_answer){.failed = self->code != MPI_SUCCESS};
    if (!head->failed) {
        head->end = hipio_basin_end(self->basin);
        hipio_basin_take(self->basin, piece, (char *)(head + 1));
        bytes += piece->bytes;
    }
    PMPI_Isend(head, (int)bytes, MPI_BYTE, rank, hipio_exchange_room_answer_tag((int)piece->slot),
               room->comm, hipio_exchange_room_request(room, HIPIO_EXCHANGE_REPLIED, slot));
    self->replying++;
}

/* What a piece says of its sender's further pieces. */
static void note(struct hipio_aggregator *self, const struct hipio_piece *piece, int rank)
{
    struct hipio_range *peer = &self->room->peer[rank];

    self->received++;
    if (piece->flags & HIPIO_PIECE_FIRST) {
        *peer = (struct hipio_range){piece->next_low, piece->next_high};
        self->heard++;
    }
    if (piece->flags & HIPIO_PIECE_ABANDON)
        *peer = (struct hipio_range){0, 0};
    if (piece->flags & HIPIO_PIECE_LAST) {
        self->announced += piece->pieces;
        self->missing--;
    }
    if (piece->flags & HIPIO_PIECE_FIRST && self->heard == self->participants)
        fetch_ahead(self);
}

static void take(struct hipio_aggregator *self, int slot, const MPI_Status *status)
{
    const struct hipio_piece *piece =
        (const struct hipio_piece *)hipio_exchange_room_slot(self->room, true, slot);
    uint64_t size = (uint64_t)(self->basin->range.high - self->basin->range.low);
    int received = 0;

    self->posted--;
    PMPI_Get_count(status, MPI_BYTE, &received);
    if (piece->round != self->round ||
        !hipio_piece_is_sound(piece, (uint64_t)received, size, !reads(self)))
        fail(self, -EPROTO, "a message of the collective exchange is damaged");
    else if (!reads(self) && self->code == MPI_SUCCESS)
        hipio_basin_put(self->basin, piece);
    if (reads(self) && piece->bytes)
        answer(self, piece, slot, status->MPI_SOURCE);
    note(self, piece, status->MPI_SOURCE);
}

void hipio_aggregator_event(struct hipio_aggregator *self, enum hipio_exchange_event event,
                            int slot, const MPI_Status *status)
{
    if (event == HIPIO_EXCHANGE_ARRIVED)
        take(self, slot, status);
    else
        self->replying--;
}

bool hipio_aggregator_is_done(const struct hipio_aggregator *self)
{
    return self->done && self->replying == 0;
}

int hipio_aggregator_finish(struct hipio_aggregator *self)
{
    for (int i = 0; i < 2 && self->domain >= 0; i++)
        settle(self, &self->room->basin[i]);
    return self->code;
}
