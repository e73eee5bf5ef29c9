/* SPDX-License-Identifier: MIT */
/* The HIP face: events. */
#include "hip_api.h"

#include "error.h"
#include "event.h"
#include "process.h"
#include "stream.h"

/* blocking-sync, disable-timing, interprocess, release-to-device, release-to-system */
static const unsigned known_flags = 0xc0000007u;

static int create(const char *name, void **event, unsigned flags)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);
    struct hipsim_event *made;

    if (!rc && (!event || flags & ~known_flags))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_event_create(hipsim_current_device(), flags, &made);
    if (!rc)
        *event = made;
    return hipsim_leave(rc);
}

int hipEventCreate(void **event)
{
    return create(__func__, event, 0);
}

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    return create(__func__, event, flags);
}

int hipEventDestroy(void *event)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_event_destroy(event));
}

int hipEventRecord(void *event, void *handle)
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

int hipEventQuery(void *event)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_event_query(event));
}

int hipEventSynchronize(void *event)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_event_synchronize(event));
}

int hipEventElapsedTime(float *ms, void *start, void *stop)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && !ms)
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_event_elapsed(ms, start, stop));
}
