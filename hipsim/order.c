/* SPDX-License-Identifier: MIT */
/* Order within and between streams: submission, the rules of the legacy stream, waiting, and the
 * worker thread that runs a stream's operations. */
#include "order.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "process.h"
#include "settings.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static void release_op(struct hipsim_op *op)
{
    for (size_t i = 0; i < op->after_count; i++)
        hipsim_stream_put_point(&op->after[i]);
    free(op->after);
    op->release(op);
}

void hipsim_stream_put_point(struct hipsim_point *point)
{
    if (point->stream)
        hipsim_stream_unref(point->stream);
    point->stream = NULL;
}

int hipsim_stream_op_after(struct hipsim_op *op, struct hipsim_point point)
{
    struct hipsim_point *grown = realloc(op->after, (op->after_count + 1) * sizeof(*grown));

    if (!grown) {
        hipsim_stream_put_point(&point);
        return HIPSIM_OUT_OF_MEMORY;
    }
    op->after = grown;
    op->after[op->after_count++] = point;
    return 0;
}

bool hipsim_stream_reached(const struct hipsim_point *point)
{
    bool reached;

    pthread_mutex_lock(&point->stream->lock);
    reached = point->stream->completed >= point->seq;
    pthread_mutex_unlock(&point->stream->lock);
    return reached;
}

void hipsim_stream_wait(const struct hipsim_point *point)
{
    struct hipsim_stream *stream = point->stream;

    pthread_mutex_lock(&stream->lock);
    stream->waiters++;
    while (stream->completed < point->seq)
        pthread_cond_wait(&stream->progress, &stream->lock);
    stream->waiters--;
    pthread_mutex_unlock(&stream->lock);
}

static uint64_t next_random(struct hipsim_stream *stream)
{
    uint64_t z = stream->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void hipsim_stream_pause(struct hipsim_stream *stream, unsigned us)
{
    struct timespec time = {0, 0};
    uint64_t random = next_random(stream), ns;

    /* Half of all operations run at once, so that both orders of a race occur. */
    if (!us || random & 1)
        return;
    ns = (random >> 16) % (us * UINT64_C(1000));
    if ((random >> 1) % 64 == 0)
        ns *= 8;
    time.tv_sec = (time_t)(ns / 1000000000);
    time.tv_nsec = (long)(ns % 1000000000);
    nanosleep(&time, NULL);
}

static void run_op(struct hipsim_stream *stream, struct hipsim_op *op)
{
    for (size_t i = 0; i < op->after_count; i++)
        hipsim_stream_wait(&op->after[i]);
    if (!op->prompt)
        hipsim_stream_pause(stream, hipsim_settings_get()->delay_us);
    if (op->late_fault) {
        hipsim_device_break(stream->device, op->late_fault);
        return;
    }
    if (op->runs_broken || !hipsim_device_sticky(stream->device))
        op->run(op, stream);
}

static struct hipsim_op *next_op(struct hipsim_stream *stream)
{
    struct hipsim_op *op;

    pthread_mutex_lock(&stream->lock);
    while (!stream->head && !stream->closed)
        pthread_cond_wait(&stream->work, &stream->lock);
    op = stream->head;
    if (op)
        stream->head = op->next;
    if (!stream->head)
        stream->tail = NULL;
    pthread_mutex_unlock(&stream->lock);
    return op;
}

static void *worker(void *argument)
{
    struct hipsim_stream *stream = argument;
    struct hipsim_device *device = hipsim_device_get(stream->device);
    struct hipsim_op *op;

    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    prctl(PR_SET_NAME, "hipsim stream", 0ul, 0ul, 0ul);
    while ((op = next_op(stream))) {
        run_op(stream, op);
        /* Released before it counts as complete: what it held is free after a synchronisation. */
        release_op(op);
        pthread_mutex_lock(&stream->lock);
        stream->completed++;
        if (stream->waiters)
            pthread_cond_broadcast(&stream->progress);
        pthread_mutex_unlock(&stream->lock);
    }
    pthread_mutex_lock(&device->lock);
    hipsim_stream_unlink(stream);
    pthread_mutex_unlock(&device->lock);
    hipsim_stream_unref(stream);
    return NULL;
}

/* The stream's lock is held. The application's signals are not for this thread. */
static int start_worker(struct hipsim_stream *stream)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    pthread_t thread;
    int rc;

    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    hipsim_stream_ref(stream);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, &attributes, worker, stream);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    if (rc) {
        hipsim_stream_unref(stream);
        return HIPSIM_OUT_OF_MEMORY;
    }
    stream->started = true;
    return 0;
}

static int enqueue(struct hipsim_stream *stream, struct hipsim_op *op, struct hipsim_point *at)
{
    int rc = 0;

    pthread_mutex_lock(&stream->lock);
    if (!stream->started)
        rc = start_worker(stream);
    if (!rc) {
        if (stream->tail)
            stream->tail->next = op;
        else
            stream->head = op;
        stream->tail = op;
        stream->submitted++;
        if (at) {
            hipsim_stream_ref(stream);
            *at = (struct hipsim_point){stream, stream->submitted};
        }
        pthread_cond_signal(&stream->work);
    }
    pthread_mutex_unlock(&stream->lock);
    return rc;
}

/* Adds what `stream` has been given so far to the op's points, if it is not done. */
static int after_stream(struct hipsim_op *op, struct hipsim_stream *stream)
{
    struct hipsim_point point = {stream, 0};
    bool busy;

    pthread_mutex_lock(&stream->lock);
    point.seq = stream->submitted;
    busy = stream->completed < stream->submitted;
    pthread_mutex_unlock(&stream->lock);
    if (!busy)
        return 0;
    hipsim_stream_ref(stream);
    return hipsim_stream_op_after(op, point);
}

static bool is_blocking(const struct hipsim_stream *stream)
{
    return !(stream->flags & HIPSIM_STREAM_NONBLOCKING);
}

/* The legacy stream waits for the blocking streams, and they for it. The device's lock is held. */
static int order_op(struct hipsim_device *device, struct hipsim_stream *stream,
                    struct hipsim_op *op)
{
    int rc = 0;

    if (!is_blocking(stream))
        return 0;
    if (!stream->legacy)
        return device->legacy ? after_stream(op, device->legacy) : 0;
    for (struct hipsim_stream *s = device->streams; s && !rc; s = s->next)
        if (s != stream && is_blocking(s))
            rc = after_stream(op, s);
    return rc;
}

/* May the stream be used now? The device's lock is held. */
static int usable(struct hipsim_device *device, struct hipsim_stream *stream, bool synchronises)
{
    if (stream->closed)
        return HIPSIM_CONTEXT_DESTROYED;
    if (stream->capture) {
        if (synchronises)
            stream->capture = HIPSIM_CAPTURE_INVALID;
        return HIPSIM_CAPTURE_UNSUPPORTED;
    }
    return stream->legacy && device->capturing ? HIPSIM_CAPTURE_IMPLICIT : 0;
}

int hipsim_stream_submit(struct hipsim_stream *stream, struct hipsim_op *op,
                         struct hipsim_point *at)
{
    struct hipsim_device *device = hipsim_device_get(stream->device);
    struct hipsim_thread *thread = hipsim_thread_get();
    int rc = hipsim_device_sticky(stream->device);

    if (stream->device != hipsim_current_device())
        hipsim_counters_add(HIPSIM_COUNT_foreign_stream, 1);
    if (thread->fault.action == HIPSIM_FAULT_LATE) {
        op->late_fault = thread->fault.code;
        thread->fault.action = HIPSIM_FAULT_NONE;
    }
    pthread_mutex_lock(&device->lock);
    if (!rc)
        rc = usable(device, stream, false);
    if (!rc)
        rc = order_op(device, stream, op);
    if (!rc)
        rc = enqueue(stream, op, at);
    pthread_mutex_unlock(&device->lock);
    if (rc)
        release_op(op);
    return rc;
}

int hipsim_stream_submit_wait(struct hipsim_stream *stream, struct hipsim_op *op)
{
    struct hipsim_point at = {NULL, 0};
    int rc = hipsim_stream_submit(stream, op, &at);

    if (rc)
        return rc;
    hipsim_stream_wait(&at);
    hipsim_stream_put_point(&at);
    return hipsim_device_sticky(stream->device);
}

static void release_nothing(struct hipsim_op *op)
{
    (void)op;
}

/* Collects in `points->after` what a synchronisation with the stream means. */
static int sync_points(struct hipsim_stream *stream, struct hipsim_op *points)
{
    struct hipsim_device *device = hipsim_device_get(stream->device);
    int rc;

    pthread_mutex_lock(&device->lock);
    rc = usable(device, stream, true);
    if (!rc && stream->legacy)
        rc = order_op(device, stream, points);
    if (!rc)
        rc = after_stream(points, stream);
    pthread_mutex_unlock(&device->lock);
    return rc;
}

int hipsim_stream_synchronize(struct hipsim_stream *stream)
{
    struct hipsim_op points = {.release = release_nothing};
    int rc = sync_points(stream, &points);

    hipsim_counters_add(HIPSIM_COUNT_syncs_stream, 1);
    for (size_t i = 0; i < points.after_count && !rc; i++)
        hipsim_stream_wait(&points.after[i]);
    release_op(&points);
    return rc ? rc : hipsim_device_sticky(stream->device);
}

int hipsim_stream_query(struct hipsim_stream *stream)
{
    struct hipsim_op points = {.release = release_nothing};
    int rc = sync_points(stream, &points);

    hipsim_counters_add(HIPSIM_COUNT_queries, 1);
    for (size_t i = 0; i < points.after_count && !rc; i++)
        if (!hipsim_stream_reached(&points.after[i]))
            rc = HIPSIM_NOT_READY;
    release_op(&points);
    if (!rc || rc == HIPSIM_NOT_READY)
        rc = hipsim_device_sticky(stream->device) ? hipsim_device_sticky(stream->device) : rc;
    return rc;
}
