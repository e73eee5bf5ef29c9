/* SPDX-License-Identifier: MIT */
/*
 * Async feed: storage work for the copies that an operation has on its stream.
 *
 * Several lanes take pieces, each of them one slot's worth. Reading, a lane waits until the stream
 * has emptied the piece's slot, fills it from the file, and the gates are armed in the order of the
 * pieces, so that nothing behind the end of the file or an error is delivered. Writing, gates are
 * armed ahead, as far as slots are free; a lane waits until the stream has filled the piece's slot,
 * writes it to the file and frees the slot.
 */
#include "async.h"
#include "lanes.h"
#include "storage/storage.h"
#include <errno.h>
#include <stdio.h>

/* Reading: what a lane has got for a piece whose turn has not come. */
struct catch
{
    uint64_t bytes;
    bool there;
    bool last; /* less than asked for, or an error: nothing follows */
};

struct feed {
    struct hipio_async_op *op;
    struct hipio_channel *channel;
    const struct hipio_part *part;
    struct hipio_haul haul;
    uint64_t pieces;
    bool mapped;       /* storage works through a mapping */
    atomic_bool ended; /* nothing more is armed */

    pthread_mutex_t lock; /* guards what follows, and the slots' words */
    uint64_t armed;       /* pieces */
    uint64_t delivered;   /* bytes of them */
    struct catch caught[HIPIO_CHANNEL_SLOTS_MAX];
    uint64_t
        drained[HIPIO_CHANNEL_SLOTS_MAX]; /* writing: pieces up to this one have left the slot */
    int status;                           /* why the stream can't go on */
    char text[HIPIO_TEXT_MAX];
};

static uint64_t index_of(const struct feed *feed, const struct hipio_piece *piece)
{
    return (piece->start - feed->haul.start) / feed->haul.piece;
}

static unsigned slot_of(const struct feed *feed, uint64_t index)
{
    return (unsigned)((feed->op->used + index) % feed->op->cut.slots);
}

static char *memory_of(const struct feed *feed, uint64_t index)
{
    return feed->channel->buffer + slot_of(feed, index) * feed->op->cut.bytes;
}

static uint64_t gate_of(const struct feed *feed, uint64_t index)
{
    return feed->op->first + feed->op->used + index;
}

/* With the lock held: the stream is of no more use. */
static void give_up(struct feed *feed, int status, const char *text)
{
    if (feed->status == 0) {
        feed->status = status;
        snprintf(feed->text, sizeof feed->text, "%s", text);
    }
    atomic_store(&feed->ended, true);
}

/* Is the copy for the piece on the stream? Waits for the submitter, who may still be at it. */
static bool is_ready(struct feed *feed, uint64_t index)
{
    struct hipio_async_op *op = feed->op;
    struct hipio_channel_pause pause = {0};

    while (atomic_load_explicit(&op->ready, memory_order_acquire) <= op->used + index) {
        if (atomic_load_explicit(&op->sealed, memory_order_acquire) &&
            atomic_load_explicit(&op->ready, memory_order_acquire) <= op->used + index) {
            give_up(feed, op->failed < 0 ? op->failed : -EIO,
                    op->failed < 0 ? op->text : "fewer copies are on the stream than it takes");
            return false;
        }
        if (hipio_channel_pause(feed->channel, &pause) < 0) {
            give_up(feed, -EIO, hipio_status_text());
            return false;
        }
    }
    return true;
}

/* With the lock held: lets the stream copy the next piece, of that many bytes. */
static void arm(struct feed *feed, uint64_t bytes)
{
    const uint64_t index = feed->armed;
    struct hipio_channel_words *words = &feed->channel->words[slot_of(feed, index)];
    const uintptr_t start = (uintptr_t)feed->op->request.base + (uintptr_t)feed->part->start +
                            (uintptr_t)(index * feed->haul.piece);

    if (!is_ready(feed, index))
        return;
    words->bytes = bytes;
    words->offset = (int64_t)(start - (uintptr_t)feed->op->call.base);
    feed->armed++;
    feed->delivered += bytes;
    hipio_channel_arm(feed->channel, gate_of(feed, index));
}

/* Until the stream is past the gate. False: it won't get there, or nobody needs it any more. */
static bool wait_for_gate(struct feed *feed, uint64_t gate)
{
    struct hipio_channel_pause pause = {0};

    while (!hipio_channel_has_passed(feed->channel, gate)) {
        if (atomic_load(&feed->ended))
            return false;
        if (hipio_channel_pause(feed->channel, &pause) < 0) {
            pthread_mutex_lock(&feed->lock);
            give_up(feed, -EIO, hipio_status_text());
            pthread_mutex_unlock(&feed->lock);
            return false;
        }
    }
    return true;
}

static int move_storage(struct feed *feed, const struct hipio_piece *piece, uint64_t *moved)
{
    struct hipio_request *request = &feed->op->request;
    struct hipio_cursor cursor;

    hipio_cursor_init(&cursor, request->file_layout, request->file_start + piece->start);
    return hipio_storage_for(request->file, feed->mapped)
        ->packed(request->file, request->op, memory_of(feed, index_of(feed, piece)), &cursor,
                 request->file_base, piece->length, moved);
}

/* ---- Reading ---- */

/* With the lock held: delivers what has been caught, in order. */
static void deliver(struct feed *feed)
{
    while (feed->armed < feed->pieces && !atomic_load(&feed->ended)) {
        struct catch *catch = &feed->caught[slot_of(feed, feed->armed)];
        const struct catch got = *catch;

        if (!got.there)
            return;
        catch->there = false;
        if (got.bytes > 0)
            arm(feed, got.bytes);
        if (got.last)
            atomic_store(&feed->ended, true);
    }
}

/* Its slot is free when the copy before in the same slot has been passed. */
static bool wait_for_slot(struct feed *feed, uint64_t index)
{
    const uint64_t copy = feed->op->used + index;

    return copy < feed->op->cut.slots ||
           wait_for_gate(feed, feed->op->first + copy - feed->op->cut.slots);
}

static void read_piece(struct feed *feed, const struct hipio_piece *piece)
{
    const uint64_t index = index_of(feed, piece);
    uint64_t moved = 0;

    if (!wait_for_slot(feed, index)) {
        hipio_lanes_report(&feed->haul, piece, 0, 0);
        return;
    }
    int status = move_storage(feed, piece, &moved);
    /* What came before an error is not known to be whole. */
    if (status < 0)
        moved = 0;
    hipio_lanes_report(&feed->haul, piece, moved, status);
    pthread_mutex_lock(&feed->lock);
    feed->caught[slot_of(feed, index)] = (struct catch){
        .bytes = moved,
        .there = true,
        .last = moved < piece->length,
    };
    deliver(feed);
    pthread_mutex_unlock(&feed->lock);
}

/* ---- Writing ---- */

/* With the lock held: arms as far as slots are free. */
static void arm_ahead(struct feed *feed)
{
    const unsigned slots = feed->op->cut.slots;

    while (feed->armed < feed->pieces && !atomic_load(&feed->ended)) {
        const uint64_t index = feed->armed;
        const uint64_t rest = feed->haul.length - index * feed->haul.piece;

        if (index >= slots && feed->drained[slot_of(feed, index)] < index - slots + 1)
            return;
        arm(feed, rest < feed->haul.piece ? rest : feed->haul.piece);
    }
}

static void write_piece(struct feed *feed, const struct hipio_piece *piece)
{
    const uint64_t index = index_of(feed, piece);
    uint64_t moved = 0;
    int status = 0;

    if (wait_for_gate(feed, gate_of(feed, index)))
        status = move_storage(feed, piece, &moved);
    hipio_lanes_report(&feed->haul, piece, moved, status);
    pthread_mutex_lock(&feed->lock);
    feed->drained[slot_of(feed, index)] = index + 1;
    if (moved < piece->length)
        atomic_store(&feed->ended, true);
    arm_ahead(feed);
    pthread_mutex_unlock(&feed->lock);
}

/* ---- Both ---- */

static void carry(struct hipio_haul *haul, unsigned lane)
{
    struct feed *feed = haul->context;
    struct hipio_piece piece;

    (void)lane;
    while (hipio_lanes_take(haul, &piece)) {
        if (feed->op->call.op == HIPIO_READ)
            read_piece(feed, &piece);
        else
            write_piece(feed, &piece);
    }
}

/* Where a host function at the next gate tells that a gate has been passed, and the submitter has
 * failed before it, nobody tells. */
static bool will_be_told(const struct hipio_async_op *op, uint64_t gate)
{
    return op->channel->waits || !atomic_load_explicit(&op->sealed, memory_order_acquire) ||
           op->last > gate;
}

/* The copies that were armed are over when this returns: slots and words are free, and what was
 * read is in place. Otherwise only the stream's next operation may touch them. */
static void settle(struct feed *feed)
{
    struct hipio_async_op *op = feed->op;
    struct hipio_channel_pause pause = {0};

    if (feed->armed > 0) {
        const uint64_t gate = gate_of(feed, feed->armed - 1);

        while (!hipio_channel_has_passed(feed->channel, gate) && will_be_told(op, gate)) {
            if (hipio_channel_pause(feed->channel, &pause) < 0) {
                give_up(feed, -EIO, hipio_status_text());
                break;
            }
        }
    }
    op->used += feed->armed;
}

static int sum_up(const struct feed *feed, int status, uint64_t *moved)
{
    if (feed->op->call.op == HIPIO_READ && *moved > feed->delivered)
        *moved = feed->delivered;
    if (feed->status < 0) {
        if (feed->op->call.op == HIPIO_READ)
            *moved = 0;
        return hipio_status_set(feed->status, "%s", feed->text);
    }
    return status;
}

int hipio_async_feed(struct hipio_part *part)
{
    struct hipio_async_op *op =
        (struct hipio_async_op *)((char *)part->request - offsetof(struct hipio_async_op, request));
    struct hipio_plan plan;

    hipio_lanes_plan_storage(part, true, &plan);
    struct feed feed = {
        .op = op,
        .channel = op->channel,
        .part = part,
        .pieces = (part->length - 1) / op->cut.bytes + 1,
        .mapped = plan.mapped,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    feed.haul = (struct hipio_haul){
        .start = part->start,
        .length = part->length,
        .piece = op->cut.bytes,
        .lanes = plan.lanes < op->cut.slots ? plan.lanes : op->cut.slots,
        .carry = carry,
        .context = &feed,
    };
    if (op->call.op == HIPIO_WRITE) {
        pthread_mutex_lock(&feed.lock);
        arm_ahead(&feed);
        pthread_mutex_unlock(&feed.lock);
    }
    int status = hipio_lanes_run(&feed.haul, &part->moved);
    settle(&feed);
    status = sum_up(&feed, status, &part->moved);
    pthread_mutex_destroy(&feed.lock);
    return status;
}
