/* SPDX-License-Identifier: MIT */
/* The CUDA face: events. */
#include "cuda_api.h"

#include "error.h"
#include "event.h"
#include "process.h"
#include "stream.h"

int cuEventCreate(void **event, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_event *made;

    if (!rc && (!event || flags > 7))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_event_create(hipsim_current_device(), flags, &made);
    if (!rc)
        *event = made;
    return hipsim_leave(rc);
}

int cuEventDestroy_v2(void *event)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_event_destroy(event));
}

int cuEventRecord(void *event, void *handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream;

    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    rc = hipsim_event_record(event, stream);
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

int cuEventQuery(void *event)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_event_query(event));
}

int cuEventSynchronize(void *event)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_event_synchronize(event));
}

int cuEventElapsedTime(float *ms, void *start, void *stop)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && !ms)
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_event_elapsed(ms, start, stop));
}
