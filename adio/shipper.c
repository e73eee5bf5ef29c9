/* SPDX-License-Identifier: MIT */
/* Shipper: pieces out, answers in. */
#include "shipper.h"
#include "engine/stats.h"
#include "engine/status.h"
#include "gpu_aware.h"
#include "mail.h"
#include "mpierr.h"
#include <string.h>

static bool reads(const struct hipio_shipper *self)
{
    return self->access->call.op == HIPIO_READ;
}

bool hipio_shipper_is_done(const struct hipio_shipper *self)
{
    return self->route.round < 0 && self->pending == 0;
}

/* ---- Pieces ---- */

static void fail(struct hipio_shipper *self, int rc, const char *words)
{
    if (self->code == MPI_SUCCESS)
        self->code = hipio_access_code(self->access, rc, words);
}

/* A request that moves bytes of the access, between the user's memory and other memory. */
static struct hipio_request part_of(const struct hipio_shipper *self, uint64_t at, uint64_t bytes)
{
    struct hipio_request part = self->access->request;

    part.memory_start += at;
    part.file_start += at;
    part.length = bytes;
    return part;
}

/* The same where the other memory is a slot of the arena, in which they lie packed. */
static struct hipio_request packed_part_of(const struct hipio_shipper *self, uint64_t at,
                                           uint64_t bytes, const void *data)
{
    struct hipio_request part = part_of(self, at, bytes);

    part.file = self->room->arena_file;
    part.file_layout = self->room->arena_layout;
    part.file_base = 0;
    part.file_start = (uint64_t)((const char *)data - self->room->arena);
    return part;
}

/* Some aggregator that has bytes of this rank is on another host. */
static bool sends_messages(const struct hipio_shipper *self)
{
    bool sends = false;

    for (int i = 0; i < self->domains->count; i++)
        sends |= self->room->pair[i].round >= 0 && !self->room->neighbour[i].file[0];
    return sends;
}

/* MPI moves GPU memory by itself, so what the application has queued on the GPU before this access
 * must be over before the first message. */
static int ask_mpi(struct hipio_shipper *self)
{
    struct hipio_request part = packed_part_of(self, 0, self->access->bytes, self->room->arena);
    int rc;

    if (part.memory.kind == HIPIO_MEMORY_HOST) {
        self->mpi_takes = true;
        return 0;
    }
    rc = hipio_gpu_aware_use(&self->access->driven->tunables, &part.memory, &self->mpi_takes);
    if (rc == 0 && self->mpi_takes)
        rc = hipio_request_await(&part);
    return rc;
}

void hipio_shipper_init(struct hipio_shipper *self, struct hipio_exchange_room *room,
                        struct hipio_access *access, const struct hipio_domains *domains)
{
    *self = (struct hipio_shipper){
        .room = room, .access = access, .domains = domains, .found = access->bytes};
    hipio_route_init(&self->route, room, access, domains);
    int rc = sends_messages(self) ? ask_mpi(self) : 0;
    if (rc)
        fail(self, rc, NULL);
}

/* ---- Work in the background ---- */

/* Less than this is done sooner than handed over. */
#define BACKGROUND_MIN (UINT64_C(64) << 10)

/* Starts slot->part, which may be empty: then only its turn in the queue is waited for. An error is
 * found when it is settled. */
static void work(struct hipio_shipper *self, int slot)
{
    struct hipio_request *part = &self->slot[slot].part;

    if (part->length < BACKGROUND_MIN)
        hipio_request_run(part);
    else
        hipio_request_start(part);
    self->slot[slot].working = true;
    self->queue[self->queued++] = slot;
}

/* ---- Making pieces ---- */

/* A message for fewer bytes costs more than their copy. */
#define IN_PLACE_MIN (UINT64_C(32) << 10)

/* Where these bytes of the access are one run of memory that MPI may read and write itself; NULL:
 * they are to be packed. What isn't there is left to the engine, which says so. */
static char *place_of(const struct hipio_shipper *self, uint64_t at, uint64_t bytes)
{
    const struct hipio_request *request = &self->access->request;
    struct hipio_cursor cursor;
    int64_t offset;

    if (!self->mpi_takes || (bytes < IN_PLACE_MIN && bytes < self->room->data))
        return NULL;
    hipio_cursor_init(&cursor, request->memory_layout, request->memory_start + at);
    if (hipio_cursor_next_run(&cursor, bytes, &offset) < bytes)
        return NULL;
    char *memory = (char *)((uintptr_t)request->base + (uintptr_t)offset);
    bool host = request->memory.kind == HIPIO_MEMORY_HOST;
    return !host || hipio_device_probe(memory, bytes) == 0 ? memory : NULL;
}

static void abandon(struct hipio_piece *piece)
{
    piece->strips = 0;
    piece->bytes = 0;
    piece->flags |= HIPIO_PIECE_LAST | HIPIO_PIECE_ABANDON;
}

/* Makes the next piece of the pair in the slot. */
static void make_piece(struct hipio_shipper *self, int i, int slot, struct hipio_piece *piece)
{
    const struct hipio_exchange_pair *pair = &self->room->pair[i];

    *piece = (struct hipio_piece){.round = pair->round, .slot = (uint32_t)slot};
    if (self->route.pieces == 0) {
        piece->flags = HIPIO_PIECE_FIRST;
        hipio_route_begin(&self->route, i);
    }
    if (self->code == MPI_SUCCESS)
        hipio_route_list(&self->route, i, piece);
    if (self->code != MPI_SUCCESS)
        abandon(piece);
    else if (pair->at + piece->bytes == self->route.limit)
        piece->flags |= HIPIO_PIECE_LAST;
    if (piece->flags & HIPIO_PIECE_FIRST)
        hipio_route_announce(&self->route, i, self->code != MPI_SUCCESS, piece);
    piece->pieces = self->route.pieces + 1;
}

/* A message between the slot and its aggregator. */
static struct hipio_letter letter(const struct hipio_shipper *self, int slot,
                                  enum hipio_exchange_event event, void *bytes, uint64_t length)
{
    return (struct hipio_letter){.request = hipio_exchange_room_request(self->room, event, slot),
                                 .bytes = bytes,
                                 .length = length,
                                 .rank = self->room->aggregator[self->slot[slot].pair]};
}

static void send(struct hipio_shipper *self, int slot, enum hipio_exchange_event event,
                 struct hipio_piece *piece, uint64_t bytes)
{
    struct hipio_letter out = letter(self, slot, event, piece, bytes);

    out.tag = hipio_exchange_room_tag(self->room, piece->round);
    hipio_mail_send(self->room, &out);
}

/* Waits for an answer with so many bytes behind it, or for a word. */
static void await(struct hipio_shipper *self, int slot, int tag, uint64_t bytes)
{
    struct hipio_letter in = letter(self, slot, HIPIO_EXCHANGE_ANSWERED,
                                    hipio_exchange_room_answer(self->room, false, slot),
                                    sizeof(struct hipio_piece_answer) + bytes);

    in.tag = tag;
    hipio_mail_receive(self->room, &in);
}

/* The user's memory itself, beside the piece that names it. */
static struct hipio_letter in_place(const struct hipio_shipper *self, int slot,
                                    const struct hipio_piece *piece)
{
    struct hipio_letter bytes =
        letter(self, slot, HIPIO_EXCHANGE_MOVED, self->slot[slot].in_place, piece->bytes);

    bytes.tag = hipio_exchange_room_bytes_tag(piece->slot);
    return bytes;
}

static struct hipio_piece *piece_in(const struct hipio_shipper *self, int slot)
{
    return (struct hipio_piece *)hipio_exchange_room_slot(self->room, false, slot);
}

/* Asks for bytes. */
static void request_bytes(struct hipio_shipper *self, int slot)
{
    struct hipio_piece *piece = piece_in(self, slot);
    uint64_t packed = piece->bytes;

    if (self->slot[slot].in_place) {
        struct hipio_letter bytes = in_place(self, slot, piece);
        hipio_mail_receive(self->room, &bytes);
        piece->flags |= HIPIO_PIECE_APART;
        packed = 0;
    }
    if (piece->bytes)
        await(self, slot, hipio_exchange_room_answer_tag(slot), packed);
    send(self, slot, HIPIO_EXCHANGE_SHIPPED, piece, hipio_piece_list_bytes(piece));
}

/* Packs bytes behind their list, unless MPI can take them where they are. They are sent when they
 * are at the head of the queue. */
static void pack_bytes(struct hipio_shipper *self, int slot)
{
    struct hipio_piece *piece = piece_in(self, slot);
    struct hipio_request *part = &self->slot[slot].part;

    if (self->slot[slot].in_place) {
        piece->flags |= HIPIO_PIECE_APART;
        piece->slot = piece->pieces;
        part->length = 0;
    } else {
        *part = packed_part_of(self, self->slot[slot].at, piece->bytes,
                               (const char *)piece + hipio_piece_list_bytes(piece));
    }
    work(self, slot);
}

/* Begins the next piece of the pair. */
static void ship(struct hipio_shipper *self, int i, int slot)
{
    struct hipio_exchange_pair *pair = &self->room->pair[i];
    struct hipio_piece *piece = piece_in(self, slot);

    make_piece(self, i, slot, piece);
    self->slot[slot].pair = i;
    self->slot[slot].beside = false;
    self->slot[slot].in_place = place_of(self, pair->at, piece->bytes);
    self->slot[slot].round = pair->round;
    self->slot[slot].at = pair->at;
    self->slot[slot].bytes = piece->bytes;
    pair->at += piece->bytes;
    self->route.pieces++;
    if (piece->flags & HIPIO_PIECE_LAST)
        hipio_route_leave(&self->route, i, piece->flags & HIPIO_PIECE_ABANDON);
    if (reads(self))
        request_bytes(self, slot);
    else
        pack_bytes(self, slot);
}

/*
 * Asks for the aggregator's basin, for all of the pair's part of the round. The aggregator of a
 * read is told at once what comes next, so that it can fetch ahead; that of a write at the end.
 */
static void ask(struct hipio_shipper *self, int i, int slot)
{
    struct hipio_exchange_room *room = self->room;
    struct hipio_exchange_pair *pair = &room->pair[i];
    struct hipio_piece *last = piece_in(self, slot);

    hipio_route_begin(&self->route, i);
    self->slot[slot].pair = i;
    self->slot[slot].beside = true;
    self->slot[slot].in_place = NULL;
    self->slot[slot].round = pair->round;
    self->slot[slot].at = pair->at;
    self->slot[slot].bytes = self->route.limit - pair->at;
    *last = (struct hipio_piece){
        .round = pair->round, .flags = HIPIO_PIECE_FIRST | HIPIO_PIECE_LAST, .pieces = 1};
    hipio_route_announce(&self->route, i, self->code != MPI_SUCCESS, last);
    await(self, slot, hipio_exchange_room_word_tag(), 0);
    if (reads(self)) {
        last[1] = *last;
        last[1].flags = HIPIO_PIECE_FIRST;
        last->flags = HIPIO_PIECE_LAST;
        last->pieces = 2;
        send(self, slot, HIPIO_EXCHANGE_TOLD, &last[1], sizeof last[1]);
    }
    pair->at = self->route.limit;
    hipio_route_leave(&self->route, i, false);
}

static bool is_free(const struct hipio_shipper *self, int slot)
{
    return !self->slot[slot].working && hipio_exchange_room_is_free(self->room, false, slot);
}

static int free_slot(const struct hipio_shipper *self)
{
    for (int i = 0; i < HIPIO_EXCHANGE_SLOTS; i++) {
        if (is_free(self, i))
            return i;
    }
    return -1;
}

bool hipio_shipper_post(struct hipio_shipper *self)
{
    int slot = free_slot(self), i = slot < 0 ? -1 : hipio_route_next(&self->route);

    if (i < 0)
        return false;
    if (self->room->neighbour[i].file[0])
        ask(self, i, slot);
    else
        ship(self, i, slot);
    self->pending++;
    return true;
}

/* ---- Answers ---- */

/* How many bytes of the slot are before the end of the file. */
static uint64_t find_end(struct hipio_shipper *self, int slot, int64_t end)
{
    uint64_t at = self->slot[slot].at, bytes = self->slot[slot].bytes;
    uint64_t there = hipio_route_below(&self->route, at, bytes, end);

    if (there < bytes && at + there < self->found)
        self->found = at + there;
    return there;
}

static void unpack(struct hipio_shipper *self, int slot, const struct hipio_piece_answer *answer)
{
    uint64_t there = find_end(self, slot, answer->end);

    self->slot[slot].part = packed_part_of(self, self->slot[slot].at, there, answer + 1);
    work(self, slot);
}

/* Moves the slot's bytes between the user's memory and the basin that is open. */
static void move_beside(struct hipio_shipper *self, int slot, const struct hipio_piece_answer *word)
{
    struct hipio_shipper_slot *at = &self->slot[slot];
    struct hipio_exchange_neighbour *neighbour = &self->room->neighbour[at->pair];
    struct hipio_basin *basin = &neighbour->basin[word->basin];
    struct hipio_range round = hipio_domains_round(self->domains, at->pair, at->round);
    uint64_t bytes = reads(self) ? find_end(self, slot, word->end) : at->bytes;

    hipio_basin_open(basin, at->round, round);
    at->part = part_of(self, at->at, bytes);
    at->part.file = neighbour->file[word->basin];
    at->part.file_base -= round.low;
    work(self, slot);
}

static void cover(const struct hipio_shipper *self, int slot)
{
    const struct hipio_exchange_neighbour *neighbour =
        &self->room->neighbour[self->slot[slot].pair];
    const struct hipio_request *part = &self->slot[slot].part;
    int which = part->file == neighbour->file[1];
    uint64_t left = part->length, bytes;
    struct hipio_cursor cursor;
    int64_t offset;

    hipio_cursor_init(&cursor, part->file_layout, part->file_start);
    while (left > 0 && (bytes = hipio_cursor_next_run(&cursor, left, &offset)) > 0) {
        hipio_basin_cover(&neighbour->basin[which], (uint64_t)(part->file_base + offset), bytes);
        left -= bytes;
    }
}

/* Tells the aggregator that this rank has done with its basin. */
static void leave_basin(struct hipio_shipper *self, int slot)
{
    struct hipio_piece *last = piece_in(self, slot);

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    send(self, slot, HIPIO_EXCHANGE_SHIPPED, last, sizeof *last);
}

/* Sends a piece whose turn it is, or, if packing it failed, an empty one in its place: the
 * aggregator counts on it. */
static void send_packed(struct hipio_shipper *self, int slot, int rc)
{
    struct hipio_piece *piece = piece_in(self, slot);

    if (rc) {
        piece->strips = 0;
        piece->bytes = 0;
    }
    uint64_t packed = self->slot[slot].in_place ? 0 : piece->bytes;
    send(self, slot, HIPIO_EXCHANGE_SHIPPED, piece, hipio_piece_list_bytes(piece) + packed);
    if (self->slot[slot].in_place) {
        struct hipio_letter bytes = in_place(self, slot, piece);
        hipio_mail_send(self->room, &bytes);
    }
}

static void count(const struct hipio_shipper *self, int slot, uint64_t bytes)
{
    hipio_stats_add(self->slot[slot].beside ? HIPIO_COUNT_exchange_shared
                                            : HIPIO_COUNT_exchange_sent,
                    (int64_t)bytes);
    if (self->slot[slot].in_place)
        hipio_stats_add(HIPIO_COUNT_exchange_in_place, (int64_t)bytes);
    if (self->slot[slot].in_place && self->access->request.memory.kind == HIPIO_MEMORY_DEVICE)
        hipio_stats_add(HIPIO_COUNT_exchange_gpu, (int64_t)bytes);
}

static void finish(struct hipio_shipper *self, int slot)
{
    struct hipio_request *part = &self->slot[slot].part;
    int rc = part->status;

    if (rc)
        fail(self, rc, part->text);
    else
        count(self, slot, self->slot[slot].in_place ? self->slot[slot].bytes : part->length);
    if (self->slot[slot].beside) {
        if (rc == 0 && !reads(self))
            cover(self, slot);
        leave_basin(self, slot);
    } else if (!reads(self)) {
        send_packed(self, slot, rc);
    }
}

bool hipio_shipper_settle(struct hipio_shipper *self, bool wait)
{
    int slot = self->queue[0];

    if (self->queued == 0 || (!wait && !hipio_request_test(&self->slot[slot].part)))
        return false;
    hipio_request_wait(&self->slot[slot].part);
    self->queued--;
    memmove(self->queue, self->queue + 1, (size_t)self->queued * sizeof self->queue[0]);
    self->slot[slot].working = false;
    finish(self, slot);
    if (is_free(self, slot))
        self->pending--;
    return true;
}

/* ---- Events ---- */

static void heard(struct hipio_shipper *self, int slot)
{
    const struct hipio_piece_answer *answer =
        (const struct hipio_piece_answer *)hipio_exchange_room_answer(self->room, false, slot);
    bool use = !answer->failed && self->code == MPI_SUCCESS;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (self->slot[slot].in_place && use)
        count(self, slot, find_end(self, slot, answer->end));
    else if (!self->slot[slot].beside && use)
        unpack(self, slot, answer);
    else if (use)
        move_beside(self, slot, answer);
    else if (self->slot[slot].beside)
        leave_basin(self, slot);
}

void hipio_shipper_event(struct hipio_shipper *self, enum hipio_exchange_event event, int slot)
{
    if (event == HIPIO_EXCHANGE_ANSWERED)
        heard(self, slot);
    if (is_free(self, slot))
        self->pending--;
}
