/* SPDX-License-Identifier: MIT */
/*
 * User stream: what can be queued on a stream that belongs to the application.
 *
 * A provider fills one struct hipio_user_stream_ops and names it in its struct hipio_device_ops. A
 * wrapped stream is a struct hipio_stream like any other: launch, event_record and
 * stream_synchronize of the provider take it too. It is never destroyed, only unwrapped, and that
 * may be done when the application has destroyed the stream itself.
 */
#pragma once
#include "device/device.h"
#include <stdint.h>

/* Eight bytes that the host reads and writes with atomics and that a stream can wait for. */
struct hipio_word {
    uint64_t *host; /* 0 when created */
    void *device;   /* the same bytes as the device knows them */
};

typedef void (*hipio_user_function)(void *argument, bool failed);

/* Numbers of HIP and CUDA. */
enum hipio_capture_mode {
    HIPIO_CAPTURE_GLOBAL,       /* a capture of any thread counts: the default */
    HIPIO_CAPTURE_THREAD_LOCAL, /* this thread's own do */
    HIPIO_CAPTURE_RELAXED       /* none does */
};

struct hipio_user_stream_ops {
    /*
     * Finds the device of a stream by its handle; NULL is the default stream of the current device.
     * 0; -EINVAL: no such stream, where the runtime can tell (HIP 7 can't: it would crash);
     * -ENOTSUP: a handle that means another stream in every thread.
     */
    int (*device_of)(void *handle, int *device);
    /* Makes our name for the stream. 0 or -ENOMEM, or as device_of. */
    int (*wrap)(void *handle, struct hipio_stream **out);
    void (*unwrap)(struct hipio_stream *stream);
    /* Can work be queued now? 0; -EBUSY: the stream is being captured to a graph; -EINVAL:
     * destroyed, or of a context in which kernels of ours can't run. With text. */
    int (*check)(struct hipio_stream *stream);

    /*
     * Sets whether captures of graphs that are under way elsewhere forbid this thread what can't be
     * captured, such as asking an event, and returns what was set. Where a runtime knows no such
     * thing, nothing is forbidden.
     */
    enum hipio_capture_mode (*capture_mode)(enum hipio_capture_mode mode);

    /* Queues a call of the function, which must not call the GPU runtime. After a fault of the
     * device it may never come, or come with `failed`. One thread at a time for each wrapped
     * stream. */
    int (*call)(struct hipio_stream *stream, hipio_user_function function, void *argument);

    /* -ENOTSUP: streams of the device can't wait for memory values. */
    int (*word_create)(int device, struct hipio_word *out);
    void (*word_destroy)(int device, struct hipio_word *word);
    /* The stream stands until the word is at least `value`. */
    int (*wait)(struct hipio_stream *stream, const struct hipio_word *word, uint64_t value);
    /* The stream stores `value` once its earlier work is visible to the host. */
    int (*write)(struct hipio_stream *stream, const struct hipio_word *word, uint64_t value);
};

/* For a provider whose streams are not the application's: refuses everything. */
extern const struct hipio_user_stream_ops hipio_user_stream_none;
