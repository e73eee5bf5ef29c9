/* SPDX-License-Identifier: MIT */
/* Events. */
#include "event.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* One recording. The queued operation and the event share it. */
struct mark {
    atomic_int refs;
    atomic_int recorded; /* the operation ran and `time` is valid */
    struct timespec time;
};

struct hipsim_event {
    struct hipsim_event *next, *previous;
    int device;
    unsigned flags;
    struct mark *mark; /* NULL before the first recording */
    struct hipsim_point point;
};

struct record_op {
    struct hipsim_op op;
    struct mark *mark;
};

/* All live events, so that a stale handle is found out; the lock guards their contents too. */
static struct {
    pthread_mutex_t lock;
    struct hipsim_event *first;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void put_mark(struct mark *mark)
{
    if (mark && atomic_fetch_sub(&mark->refs, 1) == 1)
        free(mark);
}

int hipsim_event_create(int device, unsigned flags, struct hipsim_event **out)
{
    struct hipsim_event *event = calloc(1, sizeof(*event));

    if (!event)
        return HIPSIM_OUT_OF_MEMORY;
    event->device = device;
    event->flags = flags;
    pthread_mutex_lock(&events.lock);
    event->next = events.first;
    if (event->next)
        event->next->previous = event;
    events.first = event;
    pthread_mutex_unlock(&events.lock);
    hipsim_counters_add(HIPSIM_COUNT_events_live, 1);
    *out = event;
    return 0;
}

/* The lock is held. */
static struct hipsim_event *find(void *handle)
{
    struct hipsim_event *event = events.first;

    while (event && event != handle)
        event = event->next;
    return event;
}

int hipsim_event_destroy(void *handle)
{
    struct hipsim_event *event;

    pthread_mutex_lock(&events.lock);
    event = find(handle);
    if (event) {
        if (event->next)
            event->next->previous = event->previous;
        if (event->previous)
            event->previous->next = event->next;
        else
            events.first = event->next;
    }
    pthread_mutex_unlock(&events.lock);
    if (!event)
        return HIPSIM_INVALID_HANDLE;
    hipsim_counters_add(HIPSIM_COUNT_events_live, -1);
    put_mark(event->mark);
    hipsim_stream_put_point(&event->point);
    free(event);
    return 0;
}

void hipsim_event_end_all(int device)
{
    struct hipsim_event *event;

    do {
        pthread_mutex_lock(&events.lock);
        event = events.first;
        while (event && event->device != device)
            event = event->next;
        pthread_mutex_unlock(&events.lock);
        if (event)
            hipsim_event_destroy(event);
    } while (event);
}

static void run_record(struct hipsim_op *op, struct hipsim_stream *stream)
{
    struct mark *mark = ((struct record_op *)op)->mark;

    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, &mark->time);
    atomic_store(&mark->recorded, 1);
}

static void release_record(struct hipsim_op *op)
{
    put_mark(((struct record_op *)op)->mark);
    free(op);
}

static struct record_op *new_record(void)
{
    struct record_op *record = calloc(1, sizeof(*record));
    struct mark *mark = calloc(1, sizeof(*mark));

    if (!record || !mark) {
        free(record);
        free(mark);
        return NULL;
    }
    atomic_init(&mark->refs, 2); /* the operation's and the event's */
    record->mark = mark;
    record->op.run = run_record;
    record->op.release = release_record;
    record->op.prompt = true;
    return record;
}

int hipsim_event_record(void *handle, struct hipsim_stream *stream)
{
    struct record_op *record = new_record();
    struct hipsim_event *event;
    struct hipsim_point point = {NULL, 0};
    struct mark *mark;
    int rc;

    if (!record)
        return HIPSIM_OUT_OF_MEMORY;
    mark = record->mark;
    pthread_mutex_lock(&events.lock);
    event = find(handle);
    /* An event belongs to the device that was current when it was made. */
    if (!event || event->device != stream->device) {
        rc = HIPSIM_INVALID_HANDLE;
        release_record(&record->op);
    } else {
        rc = hipsim_stream_submit(stream, &record->op, &point);
    }
    if (rc) {
        put_mark(mark);
    } else {
        put_mark(event->mark);
        hipsim_stream_put_point(&event->point);
        event->mark = mark;
        event->point = point;
    }
    pthread_mutex_unlock(&events.lock);
    return rc;
}

/* Copies the event's point out, with a reference; its stream is NULL if nothing was recorded. */
static int get_point(void *handle, struct hipsim_point *point, int *device)
{
    struct hipsim_event *event;

    pthread_mutex_lock(&events.lock);
    event = find(handle);
    if (event) {
        *point = event->point;
        *device = event->device;
        if (point->stream)
            hipsim_stream_ref(point->stream);
    }
    pthread_mutex_unlock(&events.lock);
    return event ? 0 : HIPSIM_INVALID_HANDLE;
}

int hipsim_event_query(void *handle)
{
    struct hipsim_point point;
    int device, rc = get_point(handle, &point, &device);

    if (rc)
        return rc;
    hipsim_counters_add(HIPSIM_COUNT_queries, 1);
    if (point.stream && !hipsim_stream_reached(&point))
        rc = HIPSIM_NOT_READY;
    hipsim_stream_put_point(&point);
    return hipsim_device_sticky(device) ? hipsim_device_sticky(device) : rc;
}

int hipsim_event_synchronize(void *handle)
{
    struct hipsim_point point;
    int device, rc = get_point(handle, &point, &device);

    if (rc)
        return rc;
    hipsim_counters_add(HIPSIM_COUNT_syncs_event, 1);
    if (point.stream)
        hipsim_stream_wait(&point);
    hipsim_stream_put_point(&point);
    return hipsim_device_sticky(device);
}

/* The lock is held. */
static int recorded_time(void *handle, struct timespec *time)
{
    struct hipsim_event *event = find(handle);

    if (!event || !event->mark || event->flags & HIPSIM_EVENT_NO_TIMING)
        return HIPSIM_INVALID_HANDLE;
    if (!atomic_load(&event->mark->recorded))
        return HIPSIM_NOT_READY;
    *time = event->mark->time;
    return 0;
}

int hipsim_event_elapsed(float *ms, void *start, void *stop)
{
    struct timespec from, to;
    int rc;

    pthread_mutex_lock(&events.lock);
    rc = recorded_time(start, &from);
    if (!rc)
        rc = recorded_time(stop, &to);
    pthread_mutex_unlock(&events.lock);
    if (!rc)
        *ms = (float)((double)(to.tv_sec - from.tv_sec) * 1e3 +
                      (double)(to.tv_nsec - from.tv_nsec) / 1e6);
    return rc;
}

static void run_nothing(struct hipsim_op *op, struct hipsim_stream *stream)
{
    (void)op;
    (void)stream;
}

static void release_wait(struct hipsim_op *op)
{
    free(op);
}

int hipsim_event_wait(struct hipsim_stream *stream, void *handle)
{
    struct hipsim_op *op;
    struct hipsim_point point;
    int device, rc = get_point(handle, &point, &device);

    if (rc || !point.stream)
        return rc;
    op = calloc(1, sizeof(*op));
    if (!op) {
        hipsim_stream_put_point(&point);
        return HIPSIM_OUT_OF_MEMORY;
    }
    op->run = run_nothing;
    op->release = release_wait;
    op->prompt = true;
    rc = hipsim_stream_op_after(op, point);
    if (rc) {
        free(op);
        return rc;
    }
    return hipsim_stream_submit(stream, op, NULL);
}
