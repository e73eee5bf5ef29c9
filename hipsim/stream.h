/* SPDX-License-Identifier: MIT */
/* Streams: one worker thread each, operations in order, dependencies between streams as points. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hipsim_op;
struct hipsim_device;

enum { HIPSIM_STREAM_NONBLOCKING = 1 };

enum hipsim_capture { HIPSIM_CAPTURE_NONE, HIPSIM_CAPTURE_ACTIVE, HIPSIM_CAPTURE_INVALID };

struct hipsim_stream {
    atomic_int refs;
    int device;
    unsigned flags;
    int priority;
    bool legacy;
    bool standing; /* a default stream, which no reset ends */
    bool closed;   /* the handle is gone; the worker ends once the queue is empty */
    int capture;   /* enum hipsim_capture */
    pthread_t capturer;
    struct hipsim_stream *next, *previous; /* the device's list, under its lock */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t work, progress;
    struct hipsim_op *head, *tail;
    uint64_t submitted, completed;
    unsigned waiters;
    bool started;
    uint64_t random; /* the worker's own */
};

/* A place in a stream's order: reached when the stream has completed `seq` operations. */
struct hipsim_point {
    struct hipsim_stream *stream; /* a counted reference */
    uint64_t seq;
};

/* An operation; the rooms that queue one embed it as first member. */
struct hipsim_op {
    struct hipsim_op *next;
    void (*run)(struct hipsim_op *op, struct hipsim_stream *stream);
    void (*release)(struct hipsim_op *op); /* frees it, run or not */
    struct hipsim_point *after;            /* points to reach first */
    size_t after_count;
    bool runs_broken; /* runs on a broken device too */
    bool prompt;      /* bookkeeping: not delayed */
    int late_fault;   /* breaks the device instead of running */
};

int hipsim_stream_create(int device, unsigned flags, int priority, struct hipsim_stream **out);
/* Handle to stream with a reference: NULL, per-thread and (where the version has it) legacy
 * handles included. Returns 0 or this version's answer to a bad handle. */
int hipsim_stream_resolve(void *handle, struct hipsim_stream **out);
/* The same for the per-thread default stream of the current device. */
int hipsim_stream_per_thread(struct hipsim_stream **out);
/* Closes the handle; queued work still runs. */
int hipsim_stream_destroy(void *handle);
/* Closes the handles of all streams that were created on the device. */
void hipsim_stream_end_all(struct hipsim_device *device);
/* Ends the per-thread streams of an ending thread. */
void hipsim_stream_forget(struct hipsim_stream *stream);
void hipsim_stream_ref(struct hipsim_stream *stream);
void hipsim_stream_unref(struct hipsim_stream *stream);

/* Queues `op` and owns it from here, also on failure. `at` (may be NULL) receives the point that
 * its completion reaches, with a reference. */
int hipsim_stream_submit(struct hipsim_stream *stream, struct hipsim_op *op,
                         struct hipsim_point *at);
/* Adds a point that `op` waits for; takes over the reference. Returns 0 or HIPSIM_OUT_OF_MEMORY. */
int hipsim_stream_op_after(struct hipsim_op *op, struct hipsim_point point);

bool hipsim_stream_reached(const struct hipsim_point *point);
void hipsim_stream_wait(const struct hipsim_point *point);
void hipsim_stream_put_point(struct hipsim_point *point);

/* Everything a synchronisation with `stream` waits for: 0, or the device's sticky error. */
int hipsim_stream_synchronize(struct hipsim_stream *stream);
/* 0, HIPSIM_NOT_READY or the sticky error. */
int hipsim_stream_query(struct hipsim_stream *stream);
/* Runs `op` and waits for it. */
int hipsim_stream_submit_wait(struct hipsim_stream *stream, struct hipsim_op *op);

int hipsim_stream_begin_capture(struct hipsim_stream *stream);
int hipsim_stream_end_capture(struct hipsim_stream *stream);
int hipsim_stream_capture_state(struct hipsim_stream *stream);

/* Worker side: a random pause of up to `us` microseconds, now and then much longer. */
void hipsim_stream_pause(struct hipsim_stream *stream, unsigned us);
