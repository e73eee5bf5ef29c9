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
    pthread_mutex_t lock; /* guards the rest; held while a channel is made, so that a stream gets
                             one only. Not held where a channel's thread is waited for */
    pthread_cond_t gone;  /* alive has fallen */
    struct hipio_channel *channels;
    unsigned alive; /* channels that are not destroyed, in the list or not */
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER, .gone = PTHREAD_COND_INITIALIZER};

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

/* A quarter of a second; where a device has failed, nobody says so. With the lock held. */
static bool wait_a_while(struct hipio_channel *channel)
{
    const long step = 250000000, second = 1000000000;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += step;
    until.tv_sec += until.tv_nsec / second;
    until.tv_nsec %= second;
    return pthread_cond_timedwait(&channel->change, &channel->lock, &until) == 0;
}

/* With the lock held on entry and exit: if the device has failed, all operations end here. */
static void look_for_fault(struct hipio_channel *channel)
{
    pthread_mutex_unlock(&channel->lock);
    int status = hipio_channel_query(channel);
    pthread_mutex_lock(&channel->lock);
    if (status != -EIO)
        return;
    channel->broken = true;
    while (channel->head) {
        struct hipio_async_op *op = take(channel);

        pthread_mutex_unlock(&channel->lock);
        hipio_async_carry(op, true);
        pthread_mutex_lock(&channel->lock);
    }
}

static bool has_work(const struct hipio_channel *channel)
{
    return channel->head && channel->begun > channel->carried;
}

/* Waits for the next operation that the stream has reached. NULL: there will be none. With the lock
 * held. */
static struct hipio_async_op *next_op(struct hipio_channel *channel)
{
    while (!has_work(channel)) {
        if (channel->closing && !channel->head && channel->users == 0)
            return NULL;
        if (!channel->head)
            pthread_cond_wait(&channel->change, &channel->lock);
        else if (!wait_a_while(channel) && !has_work(channel))
            look_for_fault(channel);
    }
    return take(channel);
}

static void forget_channel(struct hipio_channel *channel)
{
    hipio_channel_destroy(channel);
    hipio_stats_add(HIPIO_COUNT_threads, -1);
    hipio_stats_add(HIPIO_COUNT_streams, -1);
    pthread_mutex_lock(&streams.lock);
    streams.alive--;
    pthread_cond_broadcast(&streams.gone);
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

    pthread_setname_np(pthread_self(), "hipio-stream");
    /* Its sleeps are short. */
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    pthread_mutex_lock(&channel->lock);
    while ((op = next_op(channel))) {
        pthread_mutex_unlock(&channel->lock);
        hipio_async_carry(op, false);
        pthread_mutex_lock(&channel->lock);
    }
    const bool orphan = channel->orphan;
    pthread_mutex_unlock(&channel->lock);
    if (orphan) {
        wait_for_stream(channel);
        forget_channel(channel);
    }
    return NULL;
}

/* The application's signal handlers must not run on it. */
static int start_thread(struct hipio_channel *channel)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&channel->thread, NULL, carry_operations, channel);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        return hipio_status_set(-err,
                                "can't start a stream's thread: %s; see ulimit -u and the "
                                "cgroup's pids.max",
                                strerror(err));
    hipio_stats_add(HIPIO_COUNT_threads, 1);
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
static struct hipio_channel **find(void *handle)
{
    struct hipio_channel **link = &streams.channels;

    for (; *link; link = &(*link)->next) {
        struct hipio_channel *channel = *link;
        int device;

        if (channel->handle != handle)
            continue;
        if (handle || (channel->ops->user_streams->device_of(handle, &device) == 0 &&
                       device == channel->device))
            break;
    }
    return link;
}

/* With the list's lock held. */
static int make(void *handle, unsigned flags, struct hipio_channel **out)
{
    const struct hipio_device_ops *ops = find_runtime();
    struct hipio_channel *channel;

    if (!ops)
        return hipio_status_set(-ENODEV,
                                "stream %p: the process has no GPU runtime that hipio may "
                                "use (HIPIO_DEVICE)",
                                handle);
    int status = hipio_channel_create(ops, handle, flags,
                                      hipio_tunables_process()->async_buffer_size, &channel);
    if (status < 0)
        return status;
    status = start_thread(channel);
    if (status < 0) {
        hipio_channel_destroy(channel);
        return status;
    }
    hipio_stats_add(HIPIO_COUNT_streams, 1);
    channel->next = streams.channels;
    streams.channels = channel;
    streams.alive++;
    *out = channel;
    return 0;
}

int hipio_streams_enter(void *handle, unsigned flags, struct hipio_channel **out)
{
    int status = 0;

    pthread_mutex_lock(&streams.lock);
    struct hipio_channel *channel = *find(handle);
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
    if (*find(handle))
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
    struct hipio_channel **link = find(handle);
    struct hipio_channel *channel = *link;
    if (channel)
        *link = channel->next;
    pthread_mutex_unlock(&streams.lock);
    if (!channel)
        return hipio_status_set(-ENOENT, "stream %p is not registered", handle);
    close_channel(channel);
    return 0;
}

void hipio_streams_shutdown(void)
{
    pthread_mutex_lock(&streams.lock);
    while (streams.channels) {
        struct hipio_channel *channel = streams.channels;

        streams.channels = channel->next;
        pthread_mutex_unlock(&streams.lock);
        close_channel(channel);
        pthread_mutex_lock(&streams.lock);
    }
    while (streams.alive > 0)
        pthread_cond_wait(&streams.gone, &streams.lock);
    pthread_mutex_unlock(&streams.lock);
}

int hipio_streams_error(void *handle, char *text, size_t size)
{
    int error = -ENOENT;

    pthread_mutex_lock(&streams.lock);
    struct hipio_channel *channel = *find(handle);
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
