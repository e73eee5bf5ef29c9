/* SPDX-License-Identifier: MIT */
/*
 * Channel: what hipio has for one stream of the application: a pinned bounce buffer cut in slots, a
 * thread, and two numbers by which the stream and the thread keep step.
 *
 * The submitter queues *gates* on the stream; gate n lets the stream through once the thread has
 * *armed* n. Behind most gates stands a copy between a slot and GPU memory, of as many bytes and at
 * the offset that the slot's words in pinned memory say when the copy runs; after it the stream has
 * *passed* n. So the thread decides late what is copied, and nothing but numbers travels. A gate is
 * a wait for a memory value where the device has that, and a host function that blocks elsewhere.
 * The thread does storage work alone: it calls no GPU runtime, and waits for no GPU stream but this
 * one, and this one only for gates that it has armed. So channels can't block each other however
 * the GPU multiplexes streams, nor can a launch that stands in the runtime because the stream is
 * full.
 *
 * Private to stream.c, async.c and async_feed.c.
 */
#pragma once
#include "device/device.h"
#include "device/user_stream.h"
#include "gather.h"
#include "status.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HIPIO_CHANNEL_SLOTS_MAX 8

/* In pinned memory: what the copy of a slot is to move. */
struct hipio_channel_words {
    uint64_t bytes;
    int64_t offset; /* from the operation's base */
};

struct hipio_async_op;

struct hipio_channel {
    const struct hipio_device_ops *ops;
    int device;
    void *handle; /* the application's */
    struct hipio_stream *stream;
    struct hipio_event *last; /* recorded behind everything that was queued */
    uint64_t pulse;           /* the device's, of when it was made */
    unsigned flags;

    char *buffer; /* pinned; NULL: the device can't run our kernel, and the engine's own staging is
                     used */
    uint64_t buffer_size;
    struct hipio_channel_words *words; /* behind the buffer, one for each slot */
    struct hipio_gather *gather;

    atomic_bool broken; /* the device has failed; nothing can be queued any more */
    bool waits;         /* the stream can wait for memory values */
    struct hipio_word armed_word;
    struct hipio_word passed_word;
    atomic_ullong armed; /* without them; changed under `lock` */
    atomic_ullong passed;
    uint64_t called; /* gates that the runtime has called; by the runtime's one thread at a time */

    pthread_mutex_t submit; /* held while one operation is queued; guards queued */
    uint64_t queued;        /* gates on the stream so far */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t change;
    struct hipio_async_op *head;
    struct hipio_async_op *tail;
    uint64_t begun;    /* operations that the stream has reached */
    uint64_t carried;  /* operations that the thread has taken */
    uint64_t finished; /* of these, over */
    unsigned users;    /* submitters inside */
    bool closing;
    bool orphan; /* nobody joins the thread: it destroys the channel */
    int error;   /* the first since it was asked for */
    char text[HIPIO_TEXT_MAX];
    pthread_t thread;

    /* stream.c's, under the lock of its list. */
    bool registered;
    struct hipio_channel *next;
};

/* How the buffer is cut: `few` where most of it will hardly be used. */
struct hipio_channel_cut {
    unsigned slots;
    uint64_t bytes; /* of a slot, a multiple of 4096 */
};
struct hipio_channel_cut hipio_channel_cut(uint64_t buffer_size, bool few);

/* Makes everything but the thread. 0 or an error with text. */
int hipio_channel_create(const struct hipio_device_ops *ops, void *handle, unsigned flags,
                         uint64_t buffer_size, struct hipio_channel **out);
/* Was its device reset since (pulse.h)? Then all of it is gone. Not for the channel's thread. */
bool hipio_channel_is_gone(const struct hipio_channel *channel);
/* Nothing may be queued any more. */
void hipio_channel_destroy(struct hipio_channel *channel);

/* Submitter: queues the next gate. */
int hipio_channel_queue_gate(struct hipio_channel *channel);
/* Submitter: queues what tells that the stream has passed the last gate and the copy behind it. */
int hipio_channel_queue_mark(struct hipio_channel *channel);

/* Thread: opens all gates up to this one; never less than before. */
void hipio_channel_arm(struct hipio_channel *channel, uint64_t gate);
bool hipio_channel_has_passed(const struct hipio_channel *channel, uint64_t gate);

/* A wait by looking again and again: short at first, then with sleeps. Zero before each wait. */
struct hipio_channel_pause {
    unsigned turns;
};
/* 0; -EIO with text: the device has failed, and what is waited for won't come. */
int hipio_channel_pause(const struct hipio_channel *channel, struct hipio_channel_pause *pause);

/*
 * Has the stream got past everything queued? 0; -EAGAIN: not yet; -EIO with text: it never will.
 * Calls the GPU runtime, and so is not for the channel's thread while it has an operation: somebody
 * may be standing inside the runtime, with its locks, until the stream has room for more.
 */
int hipio_channel_query(const struct hipio_channel *channel);
