/* SPDX-License-Identifier: MIT */
/* The CUDA face: streams, host functions, memory values. */
#include "cuda_api.h"

#include "cuda_context.h"
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

int cuStreamCreate(void **stream, unsigned flags)
{
    return create(__func__, stream, flags, 0);
}

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    return create(__func__, stream, flags, priority);
}

int cuStreamDestroy_v2(void *stream)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_stream_destroy(stream));
}

static int open_stream(const char *name, void *handle, struct hipsim_stream **stream)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    return rc ? rc : hipsim_stream_resolve(handle, stream);
}

static int close_stream(struct hipsim_stream *stream, int rc)
{
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

int cuStreamQuery(void *handle)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    return rc ? hipsim_leave(rc) : close_stream(stream, hipsim_stream_query(stream));
}

int cuStreamSynchronize(void *handle)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    return rc ? hipsim_leave(rc) : close_stream(stream, hipsim_stream_synchronize(stream));
}

int cuStreamWaitEvent(void *handle, void *event, unsigned flags)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    return close_stream(stream,
                        flags > 1 ? HIPSIM_INVALID_VALUE : hipsim_event_wait(stream, event));
}

int cuStreamGetFlags(void *handle, unsigned *flags)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (flags)
        *flags = stream->flags;
    return close_stream(stream, flags ? 0 : HIPSIM_INVALID_VALUE);
}

int cuStreamGetPriority(void *handle, int *priority)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (priority)
        *priority = stream->priority;
    return close_stream(stream, priority ? 0 : HIPSIM_INVALID_VALUE);
}

int cuStreamGetCtx(void *handle, void **context)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (context)
        *context = hipsim_cuda_context(stream->device);
    return close_stream(stream, context ? 0 : HIPSIM_INVALID_VALUE);
}

int cuStreamGetDevice(void *handle, int *device)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (device)
        *device = stream->device;
    return close_stream(stream, device ? 0 : HIPSIM_INVALID_VALUE);
}

int cuStreamIsCapturing(void *handle, int *status)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    if (status)
        *status = hipsim_stream_capture_state(stream);
    return close_stream(stream, status ? 0 : HIPSIM_INVALID_VALUE);
}

int cuStreamBeginCapture_v2(void *handle, int mode)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    rc = mode < 0 || mode > 2 ? HIPSIM_INVALID_VALUE : hipsim_stream_begin_capture(stream);
    return close_stream(stream, rc);
}

/* Graphs record nothing here, since a capturing stream refuses work; the handle is an empty one. */
int cuStreamEndCapture(void *handle, void **graph)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

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

int cuGraphDestroy(void *graph)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && !graph)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        free(graph);
    return hipsim_leave(rc);
}

int cuStreamAddCallback(void *handle, void (*callback)(void *, int, void *), void *data,
                        unsigned flags)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    rc = flags ? HIPSIM_INVALID_VALUE : hipsim_hostcall_callback(stream, handle, callback, data);
    return close_stream(stream, rc);
}

int cuLaunchHostFunc(void *handle, void (*function)(void *), void *data)
{
    struct hipsim_stream *stream;
    int rc = open_stream(__func__, handle, &stream);

    if (rc)
        return hipsim_leave(rc);
    return close_stream(stream, hipsim_hostcall_function(stream, function, data));
}

static int value_op(const char *name, void *handle, struct hipsim_value value,
                    int (*queue)(struct hipsim_stream *, const struct hipsim_value *))
{
    struct hipsim_stream *stream;
    int rc = open_stream(name, handle, &stream);

    value.mask = UINT64_MAX;
    return rc ? hipsim_leave(rc) : close_stream(stream, queue(stream, &value));
}

int cuStreamWaitValue32_v2(void *stream, cuda_pointer pointer, uint32_t value, unsigned flags)
{
    struct hipsim_value what = {(void *)(uintptr_t)pointer, value, 0, 4, flags};

    return value_op(__func__, stream, what, hipsim_hostcall_wait_value);
}

int cuStreamWaitValue64_v2(void *stream, cuda_pointer pointer, uint64_t value, unsigned flags)
{
    struct hipsim_value what = {(void *)(uintptr_t)pointer, value, 0, 8, flags};

    return value_op(__func__, stream, what, hipsim_hostcall_wait_value);
}

int cuStreamWriteValue32_v2(void *stream, cuda_pointer pointer, uint32_t value, unsigned flags)
{
    struct hipsim_value what = {(void *)(uintptr_t)pointer, value, 0, 4, flags};

    return value_op(__func__, stream, what, hipsim_hostcall_write_value);
}

int cuStreamWriteValue64_v2(void *stream, cuda_pointer pointer, uint64_t value, unsigned flags)
{
    struct hipsim_value what = {(void *)(uintptr_t)pointer, value, 0, 8, flags};

    return value_op(__func__, stream, what, hipsim_hostcall_write_value);
}
