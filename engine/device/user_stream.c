/* SPDX-License-Identifier: MIT */
/*
 * User stream: the table of a provider that has none.
 */
#include "device/user_stream.h"
#include "status.h"
#include <errno.h>

static int refuse(void)
{
    return hipio_status_set(-ENOTSUP, "host memory has no streams to queue work on");
}

static int device_of(void *handle, int *device)
{
    (void)handle;
    (void)device;
    return refuse();
}

static int wrap(void *handle, struct hipio_stream **out)
{
    (void)handle;
    (void)out;
    return refuse();
}

static void unwrap(struct hipio_stream *stream)
{
    (void)stream;
}

static int check(struct hipio_stream *stream)
{
    (void)stream;
    return refuse();
}

static enum hipio_capture_mode capture_mode(enum hipio_capture_mode mode)
{
    return mode;
}

static int call(struct hipio_stream *stream, hipio_user_function function, void *argument)
{
    (void)stream;
    (void)function;
    (void)argument;
    return refuse();
}

static int word_create(int device, struct hipio_word *out)
{
    (void)device;
    (void)out;
    return refuse();
}

static void word_destroy(int device, struct hipio_word *word)
{
    (void)device;
    (void)word;
}

static int queue_value(struct hipio_stream *stream, const struct hipio_word *word, uint64_t value)
{
    (void)stream;
    (void)word;
    (void)value;
    return refuse();
}

const struct hipio_user_stream_ops hipio_user_stream_none = {
    .device_of = device_of,
    .wrap = wrap,
    .unwrap = unwrap,
    .check = check,
    .capture_mode = capture_mode,
    .call = call,
    .word_create = word_create,
    .word_destroy = word_destroy,
    .wait = queue_value,
    .write = queue_value,
};
