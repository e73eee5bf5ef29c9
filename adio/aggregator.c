/* SPDX-License-Identifier: MIT */
/* Aggregator: rounds, pieces and answers. */
#include "aggregator.h"
#include "engine/engine.h"
#include "engine/stats.h"
#include "engine/status.h"
#include "mail.h"
#include "mpierr.h"

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

/* How many aggregators this machine has, where they are dealt out evenly: all other ranks leave the
 * file alone. */
static unsigned sharers(const struct hipio_exchange_room *room, const struct hipio_domains *domains)
{
    uint64_t here = hipio_engine_neighbours(), ranks = (uint64_t)room->ranks;
    uint64_t share = ((uint64_t)domains->count * here + ranks - 1) / ranks;

    return (unsigned)(share < here ? share : here);
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
    room->basin[0].sharers = room->basin[1].sharers = sharers(room, domains);
    self->upcoming = next_round(self);
    int rc = hipio_driver_file(access->driven, &self->file);
    if (rc)
        fail(self, rc, NULL);
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

/* True: storage is at work on the basin, or answers are being sent from it. */
static bool is_in_use(const struct hipio_aggregator *self, struct hipio_basin *basin)
{
    for (int slot = 0; slot < HIPIO_EXCHANGE_SLOTS; slot++) {
        if (self->in_place[slot] == basin && !hipio_exchange_room_is_free(self->room, true, slot))
            return true;
    }
    return hipio_basin_is_busy(basin);
}

/* Once all have sent their first pieces, it is known what they want next. */
static void fetch_ahead(struct hipio_aggregator *self)
{
    struct hipio_basin *basin = other_basin(self);

    if (!reads(self) || self->ahead || self->heard < self->participants || is_in_use(self, basin))
        return;
    int64_t round = next_round(self);
    if (round >= 0)
        load(self, basin, round);
    self->ahead = true;
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
            hipio_mail_send(room, &(struct hipio_letter){.request = &room->word[rank],
                                                         .bytes = &self->word,
                                                         .length = sizeof self->word,
                                                         .rank = rank,
                                                         .tag = hipio_exchange_room_word_tag()});
    }
}

static void begin_round(struct hipio_aggregator *self, struct hipio_basin *basin)
{
    struct hipio_range range = hipio_domains_round(self->domains, self->domain, self->upcoming);
    struct hipio_range span;

    self->basin = basin;
    self->round = self->upcoming;
    self->participants = self->missing = survey(self, &range, &span);
    self->heard = 0;
    self->announced = self->received = 0;
    self->ahead = false;
    open_basin(self, &range);
    hipio_stats_add(HIPIO_COUNT_exchange_rounds, 1);
}

/* Opens the next round if its basin is ready: empty, or fetched. False: storage is still at it. */
static bool open_round(struct hipio_aggregator *self)
{
    struct hipio_basin *basin = other_basin(self);

    self->done = self->upcoming < 0;
    if (self->done)
        return true;
    if (is_in_use(self, basin))
        return false;
    if (!reads(self) || basin->round != self->upcoming)
        load(self, basin, self->upcoming);
    if (reads(self) && is_in_use(self, basin))
        return false;
    begin_round(self, basin);
    return true;
}

static void close_round(struct hipio_aggregator *self)
{
    self->round = -1;
    self->upcoming = next_round(self);
    hipio_mail_note(self->room,
                    PMPI_Waitall(self->room->ranks, self->room->word, MPI_STATUSES_IGNORE),
                    "tell the ranks of this host that they may move their bytes");
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
    return self->missing == 0 && self->received == self->announced && self->filling == 0;
}

/* ---- Messages ---- */

static void receive(struct hipio_aggregator *self, int slot, enum hipio_exchange_event event,
                    struct hipio_letter letter)
{
    letter.request = hipio_exchange_room_request(self->room, event, slot);
    hipio_mail_receive(self->room, &letter);
}

/* Never more receives than pieces that must still come, so that none is left over. */
static bool post_receives(struct hipio_aggregator *self)
{
    struct hipio_exchange_room *room = self->room;
    bool posted = false;

    for (int slot = 0; slot < HIPIO_EXCHANGE_SLOTS; slot++) {
        if ((uint64_t)self->posted >= expected(self))
            break;
        if (!hipio_exchange_room_is_free(room, true, slot))
            continue;
        receive(self, slot, HIPIO_EXCHANGE_ARRIVED,
                (struct hipio_letter){.bytes = hipio_exchange_room_slot(room, true, slot),
                                      .length = hipio_exchange_room_message(room),
                                      .rank = MPI_ANY_SOURCE,
                                      .tag = hipio_exchange_room_tag(room, self->round)});
        self->posted++;
        posted = true;
    }
    return posted;
}

bool hipio_aggregator_post(struct hipio_aggregator *self)
{
    bool turned = false;

    if (self->done)
        return false;
    if (self->round >= 0 && round_is_over(self)) {
        close_round(self);
        turned = true;
    }
    if (self->round < 0 && !open_round(self))
        return turned;
    if (self->done)
        return true;
    fetch_ahead(self);
    return post_receives(self) || turned;
}

static void reply(struct hipio_aggregator *self, int slot, enum hipio_exchange_event event,
                  struct hipio_letter letter)
{
    letter.request = hipio_exchange_room_request(self->room, event, slot);
    hipio_mail_send(self->room, &letter);
    self->replying++;
}

/* The bytes of an answer that are there, straight from the basin where they are one run in it. */
static void reply_apart(struct hipio_aggregator *self, const struct hipio_piece *piece, int slot,
                        struct hipio_letter letter)
{
    const struct hipio_piece_answer *head = letter.bytes;
    char *place = hipio_basin_place(self->basin, piece);
    int64_t there = head->end - self->basin->range.low;

    letter.bytes = place ? place : (char *)letter.bytes + sizeof *head;
    letter.length =
        head->failed ? 0 : hipio_piece_bytes_below(piece, there < 0 ? 0 : (uint64_t)there);
    letter.tag = hipio_exchange_room_bytes_tag(piece->slot);
    if (place)
        self->in_place[slot] = self->basin;
    if (letter.length && !place)
        hipio_basin_take(self->basin, piece, letter.bytes);
    reply(self, slot, HIPIO_EXCHANGE_GIVEN, letter);
}

static void answer(struct hipio_aggregator *self, const struct hipio_piece *piece, int slot,
                   int rank)
{
    struct hipio_exchange_room *room = self->room;
    struct hipio_piece_answer *head =
        (struct hipio_piece_answer *)hipio_exchange_room_answer(room, true, slot);
    struct hipio_letter letter = {.bytes = head,
                                  .length = sizeof *head,
                                  .rank = rank,
                                  .tag = hipio_exchange_room_answer_tag((int)piece->slot)};
    bool apart = piece->flags & HIPIO_PIECE_APART;

    *head = (struct hipio_piece_answer){.failed = self->code != MPI_SUCCESS};
    if (!head->failed)
        head->end = hipio_basin_end(self->basin);
    if (!head->failed && !apart) {
        hipio_basin_take(self->basin, piece, (char *)(head + 1));
        letter.length += piece->bytes;
    }
    reply(self, slot, HIPIO_EXCHANGE_REPLIED, letter);
    if (apart)
        reply_apart(self, piece, slot, letter);
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
}

/* Where a piece's bytes arrive that come apart: in the basin itself, where they are one run in it
 * and the basin is in order; else behind their list. */
static void fill(struct hipio_aggregator *self, struct hipio_piece *piece, int slot, int rank)
{
    char *place = self->code == MPI_SUCCESS ? hipio_basin_place(self->basin, piece) : NULL;

    if (place)
        self->in_place[slot] = self->basin;
    receive(self, slot, HIPIO_EXCHANGE_FILLED,
            (struct hipio_letter){.bytes =
                                      place ? place : (char *)piece + hipio_piece_list_bytes(piece),
                                  .length = piece->bytes,
                                  .rank = rank,
                                  .tag = hipio_exchange_room_bytes_tag(piece->slot)});
    self->filling++;
}

static struct hipio_piece *piece_in(const struct hipio_aggregator *self, int slot)
{
    return (struct hipio_piece *)hipio_exchange_room_slot(self->room, true, slot);
}

static bool is_sound(const struct hipio_aggregator *self, const struct hipio_piece *piece,
                     uint64_t received)
{
    uint64_t size = (uint64_t)(self->basin->range.high - self->basin->range.low);
    bool data = !reads(self) && !(piece->flags & HIPIO_PIECE_APART);

    return piece->round == self->round && hipio_piece_is_sound(piece, received, size, data) &&
           piece->bytes <= self->room->data;
}

static void take(struct hipio_aggregator *self, int slot, const MPI_Status *status)
{
    struct hipio_piece *piece = piece_in(self, slot);
    int received = 0;

    self->posted--;
    self->in_place[slot] = NULL;
    hipio_mail_note(self->room, PMPI_Get_count(status, MPI_BYTE, &received), "measure a message");
    if (!is_sound(self, piece, (uint64_t)received)) {
        hipio_mail_break(self->room, "a message is damaged");
        return;
    }
    if (!reads(self) && piece->flags & HIPIO_PIECE_APART)
        fill(self, piece, slot, status->MPI_SOURCE);
    else if (!reads(self) && self->code == MPI_SUCCESS)
        hipio_basin_put(self->basin, piece);
    if (reads(self) && piece->bytes)
        answer(self, piece, slot, status->MPI_SOURCE);
    note(self, piece, status->MPI_SOURCE);
}

static void put(struct hipio_aggregator *self, int slot)
{
    const struct hipio_piece *piece = piece_in(self, slot);
    const struct hipio_piece_strip *strip = (const struct hipio_piece_strip *)(piece + 1);

    self->filling--;
    if (self->code != MPI_SUCCESS)
        return;
    if (self->in_place[slot])
        hipio_basin_cover(self->basin, strip->offset, piece->bytes);
    else
        hipio_basin_put(self->basin, piece);
}

void hipio_aggregator_event(struct hipio_aggregator *self, enum hipio_exchange_event event,
                            int slot, const MPI_Status *status)
{
    if (event == HIPIO_EXCHANGE_ARRIVED)
        take(self, slot, status);
    else if (event == HIPIO_EXCHANGE_FILLED)
        put(self, slot);
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
