/* SPDX-License-Identifier: MIT */
/* The HIP face: streams, host functions, memory values. */
#include "hip_api.h"

#include "device.h"
#include "error.h"
#include "event.h"
#include "hostcall.h"
#include "process.h"
#include "stream.h"

#include <stdlib.h>

static int create(const char *name, void **stream, unsigned flags, int priority)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *made;

    if (!rc && (!stream || flags > HIPSIM_STREAM_NONBLOCKING))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_stream_create(hipsim_current_device(), flags, priority, &made);
    if (!rc)
        *stream = made;
    return hipsim_leave(rc);
}

int hipStreamCreate(void **stream)
{
    return create(__func__, stream, 0, 0);
}

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    return create(__func__, stream, flags, 0);
}

int hipStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    return create(__func__, stream, flags, priority);
}

int hipStreamDestroy(void *stream)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_stream_destroy(stream));
}

/* The way in for functions on one stream. `per_thread`: NULL means the thread's own stream. */
static int open_stream(const char *name, void *handle, bool per_thread,
                       struct hipsim_stream **stream)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    if (rc)
        return rc;
    if (!handle && per_thread)
        return hipsim_stream_per_thread(stream);
    return hipsim_stream_resolve(handle, stream);
}

static int close_stream(struct hipsim_stream *stream, int rc)
{
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

static int query(const char *name, void *handle, bool per_thread)
{
    struct hipsim_stream *stream;
    int rc = open_stream(name, handle, per_thread, &stream);

    return rc ? hipsim_leave(rc) : close_stream(stream, hipsim_stream_query(stream));
}

static int synchronize(const char *name, void *handle, bool per_thread)
{
    struct hipsim_stream *stream;
    int rc = open_stream(name, handle, per_thread, &stream);

    return rc ? hipsim_leave(rc) : close_stream(stream, hipsim_stream_synchronize(stream));
}

static int wait_event(const char *name, void *handle, bool per_thread, void *event)
{
    struct hipsim_stream *stream;
    int rc = open_stream(name, handle, per_thread, &stream);

    return rc ? hipsim_leave(rc) : close_stream(stream, hipsim_event_wait(stream, event));
}

int hipStreamQuery(void *stream)
{
    return query(__func__, stream, false);
}

int hipStreamQuery_spt(void *stream)
{
    return query(__func__, stream, true);
}

int hipStreamSynchronize(void *stream)
{
    return synchronize(__func__, stream, false);
}

int hipStreamSynchronize_spt(void *stream)
{
    return synchronize(__func__, stream, true);
}

int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    return flags ? hipsim_leave(HIPSIM_INVALID_VALUE) : wait_event(__func__, stream, false, event);
}

int hipStreamWaitEvent_spt(void *stream, void *event, unsigned flags)
{
    return flags ? hipsim_leave(HIPSIM_INVALID_VALUE) : wait_event(__func__, stream, true, event);
}

int hipStreamGetFlags(void *handle, unsigned *flags)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (flags)
        *flags = stream->flags;
    return close_stream(stream, flags ? 0 : HIPSIM_INVALID_VALUE);
}

int hipStreamGetPriority(void *handle, int *priority)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (priority)
        *priority = stream->priority;
    return close_stream(stream, priority ? 0 : HIPSIM_INVALID_VALUE);
}

int hipStreamGetDevice(void *handle, int *device)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (device)
        *device = stream->device;
    return close_stream(stream, device ? 0 : HIPSIM_INVALID_VALUE);
}

/* Answers a device, or -1; it is not one of the calls that keep a last error. */
int hipGetStreamDeviceId(void *handle)
{
    struct hipsim_stream *stream;
    int device;

    if (open_stream(__func__, handle, false, &stream))
        return -1;
    device = stream->device;
    hipsim_stream_unref(stream);
    return device;
}

int hipStreamIsCapturing(void *handle, int *status)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (status)
        *status = hipsim_stream_capture_state(stream);
    return close_stream(stream, status ? 0 : HIPSIM_INVALID_VALUE);
}

int hipStreamBeginCapture(void *handle, int mode)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    rc = mode < 0 || mode > 2 ? HIPSIM_INVALID_VALUE : hipsim_stream_begin_capture(stream);
    return close_stream(stream, rc);
}

/* Graphs record nothing here, since a capturing stream refuses work; the handle is an empty one. */
int hipStreamEndCapture(void *handle, void **graph)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (!graph)
        return close_stream(stream, HIPSIM_INVALID_VALUE);
    *graph = NULL;
    rc = hipsim_stream_end_capture(stream);
    if (!rc) {
        *graph = malloc(1);
        rc = *graph ? 0 : HIPSIM_OUT_OF_MEMORY;
    }
    return close_stream(stream, rc);
}

int hipGraphDestroy(void *graph)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && !graph)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        free(graph);
    return hipsim_leave(rc);
}

int hipStreamAddCallback(void *handle, void (*callback)(void *, int, void *), void *data,
                         unsigned flags)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    rc = flags ? HIPSIM_INVALID_VALUE : hipsim_hostcall_callback(stream, handle, callback, data);
    return close_stream(stream, rc);
}

int hipLaunchHostFunc(void *handle, void (*function)(void *), void *data)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, false, &stream);

    if (rc)
        return hipsim_leave(rc);
    return close_stream(stream, hipsim_hostcall_function(stream, function, data));
}

static int wait_value(const char *name, void *handle, const struct hipsim_value *value)
{
    struct hipsim_stream *stream;
    int rc = open_stream(name, handle, false, &stream);

    return rc ? hipsim_leave(rc) : close_stream(stream, hipsim_hostcall_wait_value(stream, value));
}

static int write_value(const char *name, void *handle, const struct hipsim_value *value)
{
    struct hipsim_stream *stream;
    int rc = open_stream(name, handle, false, &stream);

    return rc ? hipsim_leave(rc) : close_stream(stream, hipsim_hostcall_write_value(stream, value));
}

int hipStreamWaitValue32(void *stream, void *pointer, uint32_t value, unsigned flags, uint32_t mask)
{
    struct hipsim_value what = {pointer, value, mask, 4, flags};

    return wait_value(__func__, stream, &what);
}

int hipStreamWaitValue64(void *stream, void *pointer, uint64_t value, unsigned flags, uint64_t mask)
{
    struct hipsim_value what = {pointer, value, mask, 8, flags};

    return wait_value(__func__, stream, &what);
}

int hipStreamWriteValue32(void *stream, void *pointer, uint32_t value, unsigned flags)
{
    struct hipsim_value what = {pointer, value, UINT32_MAX, 4, flags};

    return write_value(__func__, stream, &what);
}

int hipStreamWriteValue64(void *stream, void *pointer, uint64_t value, unsigned flags)
{
    struct hipsim_value what = {pointer, value, UINT64_MAX, 8, flags};

    return write_value(__func__, stream, &what);
}
