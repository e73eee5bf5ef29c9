/* SPDX-License-Identifier: MIT */
/* Stream handles: creation, the three default handles, destruction, capture state. */
#include "stream.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "flavor.h"
#include "order.h"
#include "process.h"
#include "settings.h"

#include <stdlib.h>

static struct hipsim_stream *new_stream(int device, unsigned flags, int priority)
{
    static atomic_uint ordinal;
    const struct hipsim_settings *settings = hipsim_settings_get();
    struct hipsim_stream *stream = calloc(1, sizeof(*stream));
    uint64_t number = atomic_fetch_add(&ordinal, 1);

    if (!stream)
        return NULL;
    atomic_init(&stream->refs, 1);
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->progress, NULL);
    stream->random = settings->seed * UINT64_C(0x9e3779b97f4a7c15) + number * 7919 +
                     (uint64_t)(settings->rank + 1) * 104729;
    return stream;
}

/* The device's lock is held. */
static void link_stream(struct hipsim_device *device, struct hipsim_stream *stream)
{
    stream->next = device->streams;
    if (stream->next)
        stream->next->previous = stream;
    device->streams = stream;
}

void hipsim_stream_unlink(struct hipsim_stream *stream)
{
    struct hipsim_device *device = hipsim_device_get(stream->device);

    if (stream->next)
        stream->next->previous = stream->previous;
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        device->streams = stream->next;
    stream->next = stream->previous = NULL;
}

int hipsim_stream_create(int device, unsigned flags, int priority, struct hipsim_stream **out)
{
    struct hipsim_device *owner = hipsim_device_get(device);
    struct hipsim_stream *stream = new_stream(device, flags, priority);

    if (!stream)
        return HIPSIM_OUT_OF_MEMORY;
    pthread_mutex_lock(&owner->lock);
    link_stream(owner, stream);
    pthread_mutex_unlock(&owner->lock);
    hipsim_counters_add(HIPSIM_COUNT_streams, 1);
    hipsim_counters_add(HIPSIM_COUNT_streams_live, 1);
    *out = stream;
    return 0;
}

void hipsim_stream_ref(struct hipsim_stream *stream)
{
    atomic_fetch_add(&stream->refs, 1);
}

void hipsim_stream_unref(struct hipsim_stream *stream)
{
    if (atomic_fetch_sub(&stream->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->work);
    pthread_cond_destroy(&stream->progress);
    free(stream);
}

static int resolve_legacy(struct hipsim_stream **out)
{
    struct hipsim_device *device = hipsim_device_get(hipsim_current_device());
    int rc = 0;

    if (!device)
        return HIPSIM_INVALID_CONTEXT;
    pthread_mutex_lock(&device->lock);
    if (!device->legacy) {
        device->legacy = new_stream(device->index, 0, 0);
        if (device->legacy) {
            device->legacy->legacy = device->legacy->standing = true;
            link_stream(device, device->legacy);
        }
    }
    if (device->legacy)
        hipsim_stream_ref(device->legacy);
    else
        rc = HIPSIM_OUT_OF_MEMORY;
    *out = device->legacy;
    pthread_mutex_unlock(&device->lock);
    return rc;
}

int hipsim_stream_per_thread(struct hipsim_stream **out)
{
    struct hipsim_thread *thread = hipsim_thread_get();
    int device = hipsim_current_device(), rc;

    if (device < 0)
        return HIPSIM_INVALID_CONTEXT;
    if (!thread->per_thread[device]) {
        rc = hipsim_stream_create(device, 0, 0, &thread->per_thread[device]);
        if (rc)
            return rc;
        thread->per_thread[device]->standing = true;
    }
    hipsim_stream_ref(thread->per_thread[device]);
    *out = thread->per_thread[device];
    return 0;
}

static struct hipsim_stream *find(void *handle)
{
    struct hipsim_device *device;
    struct hipsim_stream *stream = NULL;

    for (int i = 0; !stream && (device = hipsim_device_get(i)); i++) {
        pthread_mutex_lock(&device->lock);
        for (stream = device->streams; stream; stream = stream->next)
            if (stream == handle && !stream->closed && !stream->legacy)
                break;
        if (stream)
            hipsim_stream_ref(stream);
        pthread_mutex_unlock(&device->lock);
    }
    return stream;
}

static int bad_handle(void *handle)
{
    if (hipsim_flavor.vendor == HIPSIM_CUDA)
        return HIPSIM_INVALID_HANDLE;
    if (hipsim_flavor.major >= 7)
        hipsim_error_die("stream %p does not exist (any more); HIP 7 does not check handles and "
                         "would crash",
                         handle);
    return HIPSIM_CONTEXT_DESTROYED;
}

int hipsim_stream_resolve(void *handle, struct hipsim_stream **out)
{
    bool has_legacy = hipsim_flavor.vendor == HIPSIM_CUDA || hipsim_flavor.major >= 6;

    if (!handle || (has_legacy && handle == HIPSIM_STREAM_LEGACY))
        return resolve_legacy(out);
    if (handle == HIPSIM_STREAM_PER_THREAD)
        return hipsim_stream_per_thread(out);
    *out = find(handle);
    return *out ? 0 : bad_handle(handle);
}

static void close_stream(struct hipsim_stream *stream)
{
    struct hipsim_device *device = hipsim_device_get(stream->device);

    pthread_mutex_lock(&device->lock);
    pthread_mutex_lock(&stream->lock);
    stream->closed = true;
    if (stream->capture && !(stream->flags & HIPSIM_STREAM_NONBLOCKING))
        device->capturing--;
    stream->capture = HIPSIM_CAPTURE_NONE;
    if (stream->started)
        pthread_cond_signal(&stream->work);
    else
        hipsim_stream_unlink(stream);
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_unlock(&device->lock);
    hipsim_counters_add(HIPSIM_COUNT_streams_live, -1);
    hipsim_stream_unref(stream);
}

int hipsim_stream_destroy(void *handle)
{
    struct hipsim_stream *stream;

    if (!handle || handle == HIPSIM_STREAM_LEGACY || handle == HIPSIM_STREAM_PER_THREAD)
        return HIPSIM_INVALID_HANDLE;
    stream = find(handle);
    if (!stream)
        return bad_handle(handle);
    close_stream(stream);
    hipsim_stream_unref(stream);
    return 0;
}

/* One at a time: closing takes the lock that guards the list. */
void hipsim_stream_end_all(struct hipsim_device *device)
{
    struct hipsim_stream *stream;

    do {
        pthread_mutex_lock(&device->lock);
        for (stream = device->streams; stream; stream = stream->next)
            if (!stream->standing && !stream->closed)
                break;
        pthread_mutex_unlock(&device->lock);
        if (stream)
            close_stream(stream);
    } while (stream);
}

void hipsim_stream_forget(struct hipsim_stream *stream)
{
    close_stream(stream);
}

int hipsim_stream_begin_capture(struct hipsim_stream *stream)
{
    struct hipsim_device *device = hipsim_device_get(stream->device);
    int rc = 0;

    pthread_mutex_lock(&device->lock);
    if (stream->legacy) {
        rc = HIPSIM_CAPTURE_UNSUPPORTED;
    } else if (stream->capture) {
        rc = HIPSIM_INVALID_VALUE;
    } else {
        stream->capture = HIPSIM_CAPTURE_ACTIVE;
        device->capturing += !(stream->flags & HIPSIM_STREAM_NONBLOCKING);
    }
    pthread_mutex_unlock(&device->lock);
    return rc;
}

int hipsim_stream_end_capture(struct hipsim_stream *stream)
{
    static const int answers[] = {
        [HIPSIM_CAPTURE_NONE] = HIPSIM_CAPTURE_UNMATCHED,
        [HIPSIM_CAPTURE_ACTIVE] = HIPSIM_OK,
        [HIPSIM_CAPTURE_INVALID] = HIPSIM_CAPTURE_INVALIDATED,
    };
    struct hipsim_device *device = hipsim_device_get(stream->device);
    int state;

    pthread_mutex_lock(&device->lock);
    state = stream->capture;
    if (state && !(stream->flags & HIPSIM_STREAM_NONBLOCKING))
        device->capturing--;
    stream->capture = HIPSIM_CAPTURE_NONE;
    pthread_mutex_unlock(&device->lock);
    return answers[state];
}

int hipsim_stream_capture_state(struct hipsim_stream *stream)
{
    struct hipsim_device *device = hipsim_device_get(stream->device);
    int state;

    pthread_mutex_lock(&device->lock);
    state = stream->capture;
    pthread_mutex_unlock(&device->lock);
    return state;
}
