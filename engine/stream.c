/* SPDX-License-Identifier: MIT */
/*
 * Stream: the list of channels, and the thread of each.
 */
#include "stream.h"
#include "async.h"
#include "channel.h"
#include "log.h"
#include "stats.h"
#include "status.h"
#include "tunables.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;           /* guards the rest; held while a channel is made, so that a
                                       stream gets one only. Not held where a channel's thread is
                                       waited for */
    pthread_cond_t change;          /* a channel or the watch is gone */
    struct hipio_channel *channels; /* all that are not destroyed */
    unsigned alive;                 /* so many, and those that are being destroyed */
    bool watched;                   /* the watch is on duty */
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static void prepare(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&streams.change, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* ---- The thread of a channel ---- */

static struct hipio_async_op *take(struct hipio_channel *channel)
{
    struct hipio_async_op *op = channel->head;

    channel->head = op->next;
    if (!channel->head)
        channel->tail = NULL;
    channel->carried++;
    return op;
}

/* Something to do: an operation that the stream has reached, or, after a fault, any. */
static bool has_work(const struct hipio_channel *channel)
{
    return channel->head && (channel->begun > channel->carried || atomic_load(&channel->broken));
}

/* Waits for the next operation. NULL: there will be none. With the lock held. */
static struct hipio_async_op *next_op(struct hipio_channel *channel)
{
    while (!has_work(channel)) {
        if (channel->closing && !channel->head && channel->users == 0)
            return NULL;
        pthread_cond_wait(&channel->change, &channel->lock);
    }
    return take(channel);
}

static void forget_channel(struct hipio_channel *channel)
{
    pthread_mutex_lock(&streams.lock);
    struct hipio_channel **link = &streams.channels;
    while (*link != channel)
        link = &(*link)->next;
    *link = channel->next;
    pthread_mutex_unlock(&streams.lock);
    hipio_channel_destroy(channel);
    hipio_stats_add(HIPIO_COUNT_threads, -1);
    hipio_stats_add(HIPIO_COUNT_streams, -1);
    pthread_mutex_lock(&streams.lock);
    streams.alive--;
    pthread_cond_broadcast(&streams.change);
    pthread_mutex_unlock(&streams.lock);
}

/* Not before the stream is past all that reads or writes what is ours. */
static void wait_for_stream(const struct hipio_channel *channel)
{
    struct timespec time = {0, 100000};

    while (hipio_channel_query(channel) == -EAGAIN) {
        nanosleep(&time, NULL);
        if (time.tv_nsec < 20000000)
            time.tv_nsec *= 2;
    }
}

static void *carry_operations(void *argument)
{
    struct hipio_channel *channel = argument;
    struct hipio_async_op *op;

    channel->ops->user_streams->capture_mode(HIPIO_CAPTURE_RELAXED);
    /* Its sleeps are short. */
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    pthread_mutex_lock(&channel->lock);
    while ((op = next_op(channel))) {
        const bool broken = atomic_load(&channel->broken);

        pthread_mutex_unlock(&channel->lock);
        hipio_async_carry(op, broken);
        pthread_mutex_lock(&channel->lock);
        channel->finished++;
    }
    const bool orphan = channel->orphan;
    pthread_mutex_unlock(&channel->lock);
    if (orphan) {
        wait_for_stream(channel);
        forget_channel(channel);
    }
    return NULL;
}

/* ---- The watch ---- */

/* Where a device has failed, nobody tells those who wait for it. With the list's lock held. */
static void look_at(struct hipio_channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    const bool busy = channel->head || channel->carried != channel->finished;
    pthread_mutex_unlock(&channel->lock);
    if (!busy || hipio_channel_query(channel) != -EIO)
        return;
    pthread_mutex_lock(&channel->lock);
    atomic_store(&channel->broken, true);
    pthread_cond_broadcast(&channel->change);
    pthread_mutex_unlock(&channel->lock);
}

static void wait_a_while(void)
{
    const long step = 200000000, second = 1000000000;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += step;
    until.tv_sec += until.tv_nsec / second;
    until.tv_nsec %= second;
    pthread_cond_timedwait(&streams.change, &streams.lock, &until);
}

static void *watch(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&streams.lock);
    while (streams.alive > 0) {
        wait_a_while();
        for (struct hipio_channel *at = streams.channels; at; at = at->next)
            look_at(at);
    }
    streams.watched = false;
    hipio_stats_add(HIPIO_COUNT_threads, -1);
    pthread_cond_broadcast(&streams.change);
    pthread_mutex_unlock(&streams.lock);
    return NULL;
}

/* The application's signal handlers must not run on it. */
static int start_thread(const char *name, void *(*function)(void *), void *argument,
                        pthread_t *thread)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        return hipio_status_set(-err,
                                "can't start a stream's thread: %s; see ulimit -u and the "
                                "cgroup's pids.max",
                                strerror(err));
    pthread_setname_np(*thread, name);
    hipio_stats_add(HIPIO_COUNT_threads, 1);
    return 0;
}

/* With the list's lock held, which the new thread waits for. */
static int start_watch(void)
{
    pthread_t thread;

    if (streams.watched)
        return 0;
    int status = start_thread("hipio-watch", watch, NULL, &thread);
    if (status < 0)
        return status;
    pthread_detach(thread);
    streams.watched = true;
    return 0;
}

/* ---- The list ---- */

/* Whose streams a process has: the runtime that is in it and that the settings allow. */
static const struct hipio_device_ops *find_runtime(void)
{
    const struct hipio_tunables *settings = hipio_tunables_process();
    struct hipio_memory memory;
    char choice[32];
    int here;

    /* Attaches what is there. */
    if (hipio_device_classify(&here, &memory) < 0 || settings->device == HIPIO_DEVICE_OFF)
        return NULL;
    hipio_tunables_format(settings, hipio_tunables_index("device"), choice, sizeof choice);
    for (size_t i = 0; i < hipio_device_count_providers(); i++) {
        const struct hipio_device_ops *ops = hipio_device_provider(i);

        if (settings->device != HIPIO_DEVICE_AUTO && strcmp(choice, ops->name) != 0)
            continue;
        if (ops->present() && ops->device_count() > 0)
            return ops;
    }
    return NULL;
}

/* With the list's lock held. NULL is a stream of the current device, and so one of several. */
static struct hipio_channel *find(void *handle)
{
    struct hipio_channel *channel = streams.channels;

    for (; channel; channel = channel->next) {
        int device;

        if (channel->handle != handle || !channel->registered || hipio_channel_is_gone(channel))
            continue;
        if (handle || (channel->ops->user_streams->device_of(handle, &device) == 0 &&
                       device == channel->device))
            break;
    }
    return channel;
}

/* With the list's lock held. */
static int make(void *handle, unsigned flags, struct hipio_channel **out)
{
    const struct hipio_device_ops *ops = find_runtime();
    struct hipio_channel *channel;

    pthread_once(&prepared, prepare);
    if (!ops)
        return hipio_status_set(-ENODEV,
                                "stream %p: the process has no GPU runtime that hipio may "
                                "use (HIPIO_DEVICE)",
                                handle);
    int status = hipio_channel_create(ops, handle, flags,
                                      hipio_tunables_process()->async_buffer_size, &channel);
    if (status < 0)
        return status;
    status = start_thread("hipio-stream", carry_operations, channel, &channel->thread);
    if (status < 0) {
        hipio_channel_destroy(channel);
        return status;
    }
    hipio_stats_add(HIPIO_COUNT_streams, 1);
    channel->registered = true;
    channel->next = streams.channels;
    streams.channels = channel;
    streams.alive++;
    /* Without it a fault of the device leaves waiters; with it at the next stream's, nothing. */
    if (start_watch() < 0)
        hipio_log(HIPIO_LOG_WARN, "%s: failures of a GPU will not be noticed", hipio_status_text());
    *out = channel;
    return 0;
}

int hipio_streams_enter(void *handle, unsigned flags, struct hipio_channel **out)
{
    int status = 0;

    pthread_mutex_lock(&streams.lock);
    struct hipio_channel *channel = find(handle);
    if (!channel)
        status = make(handle, flags, &channel);
    if (status == 0) {
        pthread_mutex_lock(&channel->lock);
        channel->users++;
        pthread_mutex_unlock(&channel->lock);
        *out = channel;
    }
    pthread_mutex_unlock(&streams.lock);
    return status;
}

void hipio_streams_leave(struct hipio_channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    channel->users--;
    pthread_cond_broadcast(&channel->change);
    pthread_mutex_unlock(&channel->lock);
}

int hipio_streams_register(void *handle, unsigned flags)
{
    struct hipio_channel *channel;
    int status;

    pthread_mutex_lock(&streams.lock);
    if (find(handle))
        status = hipio_status_set(-EEXIST, "stream %p is registered already", handle);
    else
        status = make(handle, flags, &channel);
    pthread_mutex_unlock(&streams.lock);
    return status;
}

/* Lets the thread end, and destroys the channel unless the stream or a submitter still needs it. A
 * stream that is past everything has left the thread nothing but its last steps. */
static void close_channel(struct hipio_channel *channel)
{
    const pthread_t thread = channel->thread;
    const bool past = hipio_channel_query(channel) != -EAGAIN;

    pthread_mutex_lock(&channel->lock);
    const bool idle = past && !channel->head && channel->users == 0;
    channel->closing = true;
    channel->orphan = !idle;
    pthread_cond_broadcast(&channel->change);
    pthread_mutex_unlock(&channel->lock);
    if (idle) {
        pthread_join(thread, NULL);
        forget_channel(channel);
    } else {
        pthread_detach(thread);
    }
}

int hipio_streams_deregister(void *handle)
{
    pthread_mutex_lock(&streams.lock);
    struct hipio_channel *channel = find(handle);
    if (channel)
        channel->registered = false;
    pthread_mutex_unlock(&streams.lock);
    if (!channel)
        return hipio_status_set(-ENOENT, "stream %p is not registered", handle);
    close_channel(channel);
    return 0;
}

void hipio_streams_shutdown(void)
{
    struct hipio_channel *channel;

    pthread_once(&prepared, prepare);
    pthread_mutex_lock(&streams.lock);
    do {
        for (channel = streams.channels; channel && !channel->registered;)
            channel = channel->next;
        if (channel) {
            channel->registered = false;
            pthread_mutex_unlock(&streams.lock);
            close_channel(channel);
            pthread_mutex_lock(&streams.lock);
        }
    } while (channel);
    while (streams.alive > 0 || streams.watched)
        pthread_cond_wait(&streams.change, &streams.lock);
    pthread_mutex_unlock(&streams.lock);
}

int hipio_streams_error(void *handle, char *text, size_t size)
{
    int error = -ENOENT;

    pthread_mutex_lock(&streams.lock);
    struct hipio_channel *channel = find(handle);
    if (channel) {
        pthread_mutex_lock(&channel->lock);
        error = channel->error;
        channel->error = 0;
        if (text && size > 0)
            snprintf(text, size, "%s", error ? channel->text : "");
        pthread_mutex_unlock(&channel->lock);
    }
    pthread_mutex_unlock(&streams.lock);
    if (!channel)
        hipio_status_set(error, "stream %p is not registered", handle);
    return error;
}
