/* SPDX-License-Identifier: MIT */
/* Shipper: pieces out, answers in. */
#include "shipper.h"
#include "engine/status.h"
#include "mpierr.h"

/* The access as its file layout sees it. */
static int64_t offset_of(const struct hipio_shipper *self, uint64_t position)
{
    const struct hipio_request *request = &self->access->request;
    struct hipio_cursor cursor;
    int64_t offset = 0;

    hipio_cursor_init(&cursor, request->file_layout, request->file_start + position);
    hipio_cursor_next_run(&cursor, 1, &offset);
    return request->file_base + offset;
}

/* How many bytes of the access, from `start` on, lie below that offset of the file. */
static uint64_t bytes_below(const struct hipio_shipper *self, uint64_t start, uint64_t bytes,
                            int64_t offset)
{
    const struct hipio_request *request = &self->access->request;

    if (offset == INT64_MAX)
        return bytes;
    return hipio_layout_bytes_below(request->file_layout, request->file_start + start, bytes,
                                    offset - request->file_base);
}

static bool reads(const struct hipio_shipper *self)
{
    return self->access->call.op == HIPIO_READ;
}

/* ---- Whose turn it is ---- */

/* Ranks begin at different aggregators. */
static int pair_at(const struct hipio_shipper *self, int turn)
{
    return (int)(((int64_t)turn + self->room->rank) % self->domains->count);
}

static void init_pairs(struct hipio_shipper *self)
{
    const struct hipio_range *range = &self->room->range[self->room->rank];
    uint64_t at = 0;

    for (int i = 0; i < self->domains->count; i++) {
        struct hipio_exchange_pair *pair = &self->room->pair[i];
        struct hipio_range share = hipio_domains_share(self->domains, i, range);

        pair->at = pair->end = at;
        pair->round = -1;
        if (share.low == share.high)
            continue;
        /* The aggregator waits for us here even if the range has a hole there. */
        pair->round = hipio_domains_round_of(self->domains, i, share.low);
        pair->end = at + bytes_below(self, at, self->access->bytes - at, share.high);
        at = pair->end;
    }
}

static int64_t lowest_round(const struct hipio_shipper *self)
{
    int64_t lowest = -1;

    for (int i = 0; i < self->domains->count; i++) {
        int64_t round = self->room->pair[i].round;
        if (round >= 0 && (lowest < 0 || round < lowest))
            lowest = round;
    }
    return lowest;
}

/* The pair whose piece is next; -1: there is none any more. */
static int next_pair(struct hipio_shipper *self)
{
    while (self->round >= 0) {
        for (; self->visited < self->domains->count; self->visited++) {
            int i = pair_at(self, self->visited);
            if (self->room->pair[i].round == self->round)
                return i;
        }
        self->visited = 0;
        self->round = lowest_round(self);
    }
    return -1;
}

void hipio_shipper_init(struct hipio_shipper *self, struct hipio_exchange_room *room,
                        struct hipio_access *access, const struct hipio_domains *domains, int code)
{
    *self = (struct hipio_shipper){
        .room = room, .access = access, .domains = domains, .code = code, .found = access->bytes};
    init_pairs(self);
    self->round = lowest_round(self);
}

bool hipio_shipper_is_done(const struct hipio_shipper *self)
{
    return self->round < 0 && self->pending == 0;
}

/* ---- Pieces ---- */

static void fail(struct hipio_shipper *self, int rc, const char *words)
{
    if (self->code == MPI_SUCCESS)
        self->code = hipio_access_code(self->access, rc, words);
}

/* What this rank touches of the domain after the current round. */
static void announce_next(const struct hipio_shipper *self, int i, struct hipio_piece *piece)
{
    const struct hipio_exchange_pair *pair = &self->room->pair[i];
    struct hipio_range round;

    if (self->limit == pair->end || piece->flags & HIPIO_PIECE_ABANDON)
        return;
    piece->next_low = offset_of(self, self->limit);
    round = hipio_domains_round(self->domains, i,
                                hipio_domains_round_of(self->domains, i, piece->next_low));
    uint64_t bytes = bytes_below(self, self->limit, pair->end - self->limit, round.high);
    piece->next_high = offset_of(self, self->limit + bytes - 1) + 1;
}

/* Fills the bytes of a write from the user's memory. */
static int pack(struct hipio_shipper *self, struct hipio_piece *piece, uint64_t at)
{
    const struct hipio_request *whole = &self->access->request;
    char *data = (char *)piece + hipio_piece_list_bytes(piece);
    struct hipio_request part = {
        .op = HIPIO_WRITE,
        .file = self->room->arena_file,
        .base = whole->base,
        .memory = whole->memory,
        .memory_layout = whole->memory_layout,
        .memory_start = whole->memory_start + at,
        .file_layout = self->room->arena_layout,
        .file_start = (uint64_t)(data - self->room->arena),
        .length = piece->bytes,
    };
    int rc = hipio_request_run(&part);

    if (rc)
        fail(self, rc, part.text);
    return rc;
}

static void list(const struct hipio_shipper *self, int i, struct hipio_piece *piece)
{
    const struct hipio_request *request = &self->access->request;
    const struct hipio_exchange_pair *pair = &self->room->pair[i];
    struct hipio_piece_source source = {request->file_layout, request->file_base,
                                        hipio_domains_round(self->domains, i, pair->round).low};
    uint64_t bytes = self->limit - pair->at;

    if (bytes > self->room->data)
        bytes = self->room->data;
    hipio_piece_list(piece, &source, request->file_start + pair->at, bytes, self->room->strips);
}

static void abandon(struct hipio_piece *piece)
{
    piece->strips = 0;
    piece->bytes = 0;
    piece->flags |= HIPIO_PIECE_LAST | HIPIO_PIECE_ABANDON;
}

/* Makes the next piece of the pair in the slot, and moves the pair on. */
static void make_piece(struct hipio_shipper *self, int i, int slot, struct hipio_piece *piece)
{
    struct hipio_exchange_pair *pair = &self->room->pair[i];

    *piece = (struct hipio_piece){.round = pair->round, .slot = (uint32_t)slot};
    if (self->pieces == 0) {
        piece->flags = HIPIO_PIECE_FIRST;
        self->limit =
            pair->at + bytes_below(self, pair->at, pair->end - pair->at,
                                   hipio_domains_round(self->domains, i, pair->round).high);
    }
    if (self->code == MPI_SUCCESS)
        list(self, i, piece);
    if (self->code != MPI_SUCCESS || (!reads(self) && pack(self, piece, pair->at)))
        abandon(piece);
    else if (pair->at + piece->bytes == self->limit)
        piece->flags |= HIPIO_PIECE_LAST;
    if (piece->flags & HIPIO_PIECE_FIRST)
        announce_next(self, i, piece);
    piece->pieces = self->pieces + 1;
    self->slot[slot].at = pair->at;
    self->slot[slot].bytes = piece->bytes;
}

/* Behind a piece that was sent. */
static void move_on(struct hipio_shipper *self, int i, const struct hipio_piece *piece)
{
    struct hipio_exchange_pair *pair = &self->room->pair[i];

    pair->at += piece->bytes;
    self->pieces++;
    if (!(piece->flags & HIPIO_PIECE_LAST))
        return;
    self->pieces = 0;
    self->visited++;
    if (pair->at == pair->end || piece->flags & HIPIO_PIECE_ABANDON)
        pair->round = -1;
    else
        pair->round = hipio_domains_round_of(self->domains, i, offset_of(self, pair->at));
}

static int free_slot(const struct hipio_shipper *self)
{
    for (int i = 0; i < HIPIO_EXCHANGE_SLOTS; i++) {
        if (hipio_exchange_room_is_idle(self->room, HIPIO_EXCHANGE_SHIPPED, i) &&
            hipio_exchange_room_is_idle(self->room, HIPIO_EXCHANGE_ANSWERED, i))
            return i;
    }
    return -1;
}

bool hipio_shipper_post(struct hipio_shipper *self)
{
    struct hipio_exchange_room *room = self->room;
    int slot = free_slot(self), i = slot < 0 ? -1 : next_pair(self);

    if (i < 0)
        return false;
    struct hipio_piece *piece = (struct hipio_piece *)hipio_exchange_room_slot(room, false, slot);
    make_piece(self, i, slot, piece);
    uint64_t bytes = hipio_piece_list_bytes(piece);
    if (reads(self) && piece->bytes)
        PMPI_Irecv(hipio_exchange_room_answer(room, false, slot),
                   (int)(sizeof(struct hipio_piece_answer) + piece->bytes), MPI_BYTE,
                   room->aggregator[i], hipio_exchange_room_answer_tag(slot), room->comm,
                   hipio_exchange_room_request(room, HIPIO_EXCHANGE_ANSWERED, slot));
    if (!reads(self))
        bytes += piece->bytes;
    PMPI_Isend(piece, (int)bytes, MPI_BYTE, room->aggregator[i],
               hipio_exchange_room_tag(room, piece->round), room->comm,
               hipio_exchange_room_request(room, HIPIO_EXCHANGE_SHIPPED, slot));
    self->pending++;
    move_on(self, i, piece);
    return true;
}

/* ---- Answers ---- */

static void unpack(struct hipio_shipper *self, int slot, const struct hipio_piece_answer *answer)
{
    const struct hipio_request *whole = &self->access->request;
    uint64_t at = self->slot[slot].at;
    uint64_t there = bytes_below(self, at, self->slot[slot].bytes, answer->end);
    struct hipio_request part = {
        .op = HIPIO_READ,
        .file = self->room->arena_file,
        .base = whole->base,
        .memory = whole->memory,
        .memory_layout = whole->memory_layout,
        .memory_start = whole->memory_start + at,
        .file_layout = self->room->arena_layout,
        .file_start = (uint64_t)((const char *)(answer + 1) - self->room->arena),
        .length = there,
    };

    if (there < self->slot[slot].bytes && at + there < self->found)
        self->found = at + there;
    if (there == 0)
        return;
    int rc = hipio_request_run(&part);
    if (rc)
        fail(self, rc, part.text);
}

void hipio_shipper_event(struct hipio_shipper *self, enum hipio_exchange_event event, int slot)
{
    struct hipio_exchange_room *room = self->room;

    if (event == HIPIO_EXCHANGE_ANSWERED) {
        const struct hipio_piece_answer *answer =
            (const struct hipio_piece_answer *)hipio_exchange_room_answer(room, false, slot);
        if (!answer->failed && self->code == MPI_SUCCESS)
            unpack(self, slot, answer);
    }
    if (hipio_exchange_room_is_idle(room, HIPIO_EXCHANGE_SHIPPED, slot) &&
        hipio_exchange_room_is_idle(room, HIPIO_EXCHANGE_ANSWERED, slot))
        self->pending--;
}
