/* SPDX-License-Identifier: MIT */
/*
 * Channel: the buffer of a stream and the numbers by which the stream and its thread keep step.
 */
#include "channel.h"
#include "log.h"
#include "pulse.h"
#include "stats.h"
#include "tunables.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE 4096u
#define KIB(n) ((uint64_t)(n) << 10)
/* A copy of fewer bytes is dominated by its launch. */
#define SLOT_MIN KIB(128)
/* Fewer slots overlap storage and copies badly. */
#define SLOTS_MIN 4u

struct hipio_channel_cut hipio_channel_cut(uint64_t buffer_size, bool few)
{
    uint64_t slots = buffer_size / SLOT_MIN;

    if (slots > HIPIO_CHANNEL_SLOTS_MAX)
        slots = HIPIO_CHANNEL_SLOTS_MAX;
    if (slots < SLOTS_MIN)
        slots = SLOTS_MIN;
    if (few)
        slots = 2;
    while (buffer_size / slots < PAGE)
        slots /= 2;
    return (struct hipio_channel_cut){(unsigned)slots, buffer_size / slots / PAGE * PAGE};
}

/* ---- Making and unmaking ---- */

static void count_buffer(const struct hipio_channel *channel, int sign)
{
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak,
                      sign * (int64_t)(channel->buffer_size + PAGE));
}

/* The words have the last page of the allocation. */
static int make_buffer(struct hipio_channel *channel)
{
    void *memory;

    int status = channel->ops->host_alloc(channel->device, channel->buffer_size + PAGE, &memory);
    if (status < 0)
        return status;
    channel->buffer = memory;
    channel->words = (struct hipio_channel_words *)(channel->buffer + channel->buffer_size);
    memset(channel->words, 0, PAGE);
    count_buffer(channel, 1);
    return 0;
}

static void free_buffer(struct hipio_channel *channel)
{
    if (!channel->buffer)
        return;
    channel->ops->host_free(channel->device, channel->buffer);
    count_buffer(channel, -1);
    channel->buffer = NULL;
}

/* Without a kernel there are no copies on the stream, and no buffer for them. */
static int make_copies(struct hipio_channel *channel)
{
    int status = -ENOTSUP;

    if (hipio_tunables_process()->kernels != HIPIO_OFF)
        status =
            hipio_gather_create(channel->ops, channel->device, channel->stream, &channel->gather);
    if (status != -ENOTSUP)
        return status < 0 ? status : make_buffer(channel);
    hipio_log(HIPIO_LOG_INFO,
              "no kernel of hipio runs on device %d: operations on its streams are staged by the "
              "copy engine",
              channel->device);
    return 0;
}

static int make_words(struct hipio_channel *channel)
{
    const struct hipio_user_stream_ops *streams = channel->ops->user_streams;
    int status = streams->word_create(channel->device, &channel->armed_word);

    if (status == 0)
        status = streams->word_create(channel->device, &channel->passed_word);
    channel->waits = status == 0;
    if (status == -ENOTSUP) {
        hipio_log(HIPIO_LOG_INFO, "%s; operations on them are carried by host functions",
                  hipio_status_text());
        return 0;
    }
    return status;
}

static void init_locks(struct hipio_channel *channel)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&channel->change, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&channel->lock, NULL);
    pthread_mutex_init(&channel->submit, NULL);
}

static int make(struct hipio_channel *channel)
{
    const struct hipio_user_stream_ops *streams = channel->ops->user_streams;
    int status = streams->wrap(channel->handle, &channel->stream);

    if (status == 0)
        status = streams->device_of(channel->handle, &channel->device);
    if (status == 0)
        channel->pulse = hipio_pulse(channel->ops, channel->device);
    if (status == 0)
        status = streams->check(channel->stream);
    if (status == 0)
        status = channel->ops->event_create(channel->device, &channel->last);
    if (status == 0)
        status = make_copies(channel);
    if (status == 0)
        status = make_words(channel);
    return status;
}

int hipio_channel_create(const struct hipio_device_ops *ops, void *handle, unsigned flags,
                         uint64_t buffer_size, struct hipio_channel **out)
{
    struct hipio_channel *channel = calloc(1, sizeof *channel);

    if (!channel)
        return hipio_status_set(-ENOMEM, "no memory to register a stream");
    channel->ops = ops;
    channel->handle = handle;
    channel->flags = flags;
    channel->buffer_size = buffer_size;
    init_locks(channel);
    int status = make(channel);
    if (status < 0)
        hipio_channel_destroy(channel);
    else
        *out = channel;
    return status;
}

static struct {
    pthread_mutex_t lock;
    struct hipio_channel *channels;
} lost = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* After a fault of the device, the runtime may still call what it was given; after a reset of it,
 * nothing may be called for what is gone. */
static void keep(struct hipio_channel *channel)
{
    pthread_mutex_lock(&lost.lock);
    channel->next = lost.channels;
    lost.channels = channel;
    pthread_mutex_unlock(&lost.lock);
}

bool hipio_channel_is_gone(const struct hipio_channel *channel)
{
    return !hipio_pulse_is_same(channel->ops, channel->device, channel->pulse);
}

static void abandon(struct hipio_channel *channel)
{
    hipio_gather_abandon(channel->gather);
    if (channel->buffer)
        count_buffer(channel, -1);
    keep(channel);
}

void hipio_channel_destroy(struct hipio_channel *channel)
{
    const struct hipio_user_stream_ops *streams = channel->ops->user_streams;

    if (hipio_channel_is_gone(channel)) {
        abandon(channel);
        return;
    }
    if (channel->armed_word.host)
        streams->word_destroy(channel->device, &channel->armed_word);
    if (channel->passed_word.host)
        streams->word_destroy(channel->device, &channel->passed_word);
    hipio_gather_destroy(channel->gather);
    free_buffer(channel);
    if (channel->last)
        channel->ops->event_destroy(channel->last);
    if (channel->broken) {
        keep(channel);
        return;
    }
    if (channel->stream)
        streams->unwrap(channel->stream);
    pthread_mutex_destroy(&channel->submit);
    pthread_mutex_destroy(&channel->lock);
    pthread_cond_destroy(&channel->change);
    free(channel);
}

/* ---- Gates ---- */

/* A gate where streams can't wait for values. What stood before it on the stream is done. */
static void stand_at_gate(void *argument, bool failed)
{
    struct hipio_channel *channel = argument;

    (void)failed;

    const uint64_t gate = ++channel->called;
    atomic_store_explicit(&channel->passed, gate - 1, memory_order_release);
    pthread_mutex_lock(&channel->lock);
    while (atomic_load_explicit(&channel->armed, memory_order_relaxed) < gate)
        pthread_cond_wait(&channel->change, &channel->lock);
    pthread_mutex_unlock(&channel->lock);
}

int hipio_channel_queue_gate(struct hipio_channel *channel)
{
    const struct hipio_user_stream_ops *streams = channel->ops->user_streams;
    int status = channel->waits
                     ? streams->wait(channel->stream, &channel->armed_word, channel->queued + 1)
                     : streams->call(channel->stream, stand_at_gate, channel);

    if (status == 0)
        channel->queued++;
    return status;
}

int hipio_channel_queue_mark(struct hipio_channel *channel)
{
    if (!channel->waits)
        return 0; /* the next gate tells */
    return channel->ops->user_streams->write(channel->stream, &channel->passed_word,
                                             channel->queued);
}

void hipio_channel_arm(struct hipio_channel *channel, uint64_t gate)
{
    if (channel->waits) {
        /* What the copies behind the gate read was written before. */
        __atomic_store_n(channel->armed_word.host, gate, __ATOMIC_RELEASE);
        return;
    }
    pthread_mutex_lock(&channel->lock);
    atomic_store_explicit(&channel->armed, gate, memory_order_release);
    pthread_cond_broadcast(&channel->change);
    pthread_mutex_unlock(&channel->lock);
}

bool hipio_channel_has_passed(const struct hipio_channel *channel, uint64_t gate)
{
    if (channel->waits)
        return __atomic_load_n(channel->passed_word.host, __ATOMIC_ACQUIRE) >= gate;
    return atomic_load_explicit(&channel->passed, memory_order_acquire) >= gate;
}

int hipio_channel_query(const struct hipio_channel *channel)
{
    const struct hipio_user_stream_ops *streams = channel->ops->user_streams;

    if (hipio_channel_is_gone(channel))
        return 0;
    const enum hipio_capture_mode before = streams->capture_mode(HIPIO_CAPTURE_RELAXED);
    int status = channel->ops->event_query(channel->last);

    streams->capture_mode(before);
    return status == 0 || status == -EAGAIN ? status : -EIO;
}

#define TURNS_AWAKE 200u
#define TURNS_A_SLEEP 64u /* then sleeps double */
#define SLEEP_SHORT 5000u
#define SLEEP_LONG 200000u

int hipio_channel_pause(const struct hipio_channel *channel, struct hipio_channel_pause *pause)
{
    struct timespec time = {0, SLEEP_SHORT};
    unsigned turn = pause->turns++;

    if (atomic_load_explicit(&channel->broken, memory_order_relaxed))
        return hipio_status_set(-EIO, "stream %p: its device has failed", channel->handle);
    if (turn < TURNS_AWAKE) {
        sched_yield();
        return 0;
    }
    for (turn -= TURNS_AWAKE; turn > TURNS_A_SLEEP && time.tv_nsec < (long)SLEEP_LONG;
         turn -= TURNS_A_SLEEP)
        time.tv_nsec *= 2;
    nanosleep(&time, NULL);
    return 0;
}
