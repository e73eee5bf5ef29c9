/* SPDX-License-Identifier: MIT */
/* The HIP face: copies and memsets. */
#include "hip_api.h"

#include "copy.h"
#include "device.h"
#include "error.h"
#include "flavor.h"
#include "process.h"
#include "stream.h"

enum { DEVICE_TO_DEVICE_NO_CU = 1024 };

/* Which default stream NULL means: the plain functions' or the _spt functions'. */
enum null_stream { LEGACY, PER_THREAD };

static int resolve(void *handle, enum null_stream null, struct hipsim_stream **stream)
{
    if (!handle && null == PER_THREAD)
        return hipsim_stream_per_thread(stream);
    return hipsim_stream_resolve(handle, stream);
}

static int run_copy(struct hipsim_copy copy, void *handle, enum null_stream null, bool blocking)
{
    struct hipsim_stream *stream;
    int rc = resolve(handle, null, &stream);

    if (rc)
        return rc;
    if (copy.direction == (enum hipsim_direction)DEVICE_TO_DEVICE_NO_CU && hipsim_flavor.major >= 6)
        copy.direction = HIPSIM_COPY_D2D;
    rc = blocking ? hipsim_copy_blocking(&copy, stream) : hipsim_copy_async(&copy, stream);
    hipsim_stream_unref(stream);
    return rc;
}

static int copy_linear(const char *name, struct hipsim_copy copy, void *handle, bool blocking)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : run_copy(copy, handle, LEGACY, blocking));
}

static struct hipsim_copy linear(void *to, const void *from, size_t bytes, int kind)
{
    return hipsim_copy_linear(to, from, bytes, (enum hipsim_direction)kind);
}

int hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    return copy_linear(__func__, linear(to, from, bytes, kind), NULL, true);
}

int hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    return copy_linear(__func__, linear(to, from, bytes, kind), stream, false);
}

int hipMemcpyWithStream(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    return copy_linear(__func__, linear(to, from, bytes, kind), stream, true);
}

int hipMemcpyHtoD(void *to, void *from, size_t bytes)
{
    return copy_linear(__func__, linear(to, from, bytes, HIPSIM_COPY_H2D), NULL, true);
}

int hipMemcpyDtoH(void *to, void *from, size_t bytes)
{
    return copy_linear(__func__, linear(to, from, bytes, HIPSIM_COPY_D2H), NULL, true);
}

int hipMemcpyDtoD(void *to, void *from, size_t bytes)
{
    return copy_linear(__func__, linear(to, from, bytes, HIPSIM_COPY_D2D), NULL, true);
}

int hipMemcpyHtoDAsync(void *to, void *from, size_t bytes, void *stream)
{
    return copy_linear(__func__, linear(to, from, bytes, HIPSIM_COPY_H2D), stream, false);
}

int hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, void *stream)
{
    return copy_linear(__func__, linear(to, from, bytes, HIPSIM_COPY_D2H), stream, false);
}

int hipMemcpyDtoDAsync(void *to, void *from, size_t bytes, void *stream)
{
    return copy_linear(__func__, linear(to, from, bytes, HIPSIM_COPY_D2D), stream, false);
}

static int copy_peer(const char *name, struct hipsim_copy copy, const int devices[2], void *stream)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    if (!rc && (!hipsim_device_get(devices[0]) || !hipsim_device_get(devices[1])))
        rc = HIPSIM_INVALID_DEVICE;
    return hipsim_leave(rc ? rc : run_copy(copy, stream, LEGACY, false));
}

int hipMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return copy_peer(__func__, linear(to, from, bytes, HIPSIM_COPY_D2D),
                     (int[]){to_device, from_device}, NULL);
}

int hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                       void *stream)
{
    return copy_peer(__func__, linear(to, from, bytes, HIPSIM_COPY_D2D),
                     (int[]){to_device, from_device}, stream);
}

static struct hipsim_copy rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                               size_t width, size_t height, int kind)
{
    struct hipsim_copy copy = linear(to, from, width, kind);

    copy.to_pitch = to_pitch;
    copy.from_pitch = from_pitch;
    copy.height = height;
    return copy;
}

int hipMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t height, int kind)
{
    struct hipsim_copy copy = rows(to, to_pitch, from, from_pitch, width, height, kind);

    return copy_linear(__func__, copy, NULL, true);
}

int hipMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, int kind, void *stream)
{
    struct hipsim_copy copy = rows(to, to_pitch, from, from_pitch, width, height, kind);

    return copy_linear(__func__, copy, stream, false);
}

static size_t first_byte(const struct hip_pitched *side, const struct hip_position *position)
{
    return position->z * side->pitch * side->height + position->y * side->pitch + position->x;
}

static int copy_box(const char *name, const struct hip_copy_3d *box, void *stream, bool blocking)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);
    struct hipsim_copy copy;

    if (!rc && !box)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc && (box->to_array || box->from_array))
        rc = HIPSIM_NOT_SUPPORTED;
    if (rc)
        return hipsim_leave(rc);
    copy = (struct hipsim_copy){
        .to = (char *)box->to.pointer + first_byte(&box->to, &box->to_position),
        .from = (const char *)box->from.pointer + first_byte(&box->from, &box->from_position),
        .to_pitch = box->to.pitch,
        .to_slice = box->to.pitch * box->to.height,
        .from_pitch = box->from.pitch,
        .from_slice = box->from.pitch * box->from.height,
        .width = box->extent.x,
        .height = box->extent.y,
        .depth = box->extent.z,
        .direction = (enum hipsim_direction)box->kind,
    };
    return hipsim_leave(run_copy(copy, stream, LEGACY, blocking));
}

int hipMemcpy3D(const struct hip_copy_3d *copy)
{
    return copy_box(__func__, copy, NULL, true);
}

int hipMemcpy3DAsync(const struct hip_copy_3d *copy, void *stream)
{
    return copy_box(__func__, copy, stream, false);
}

static int run_fill(const struct hipsim_fill *fill, void *handle, enum null_stream null,
                    bool blocking)
{
    struct hipsim_stream *stream;
    int rc = resolve(handle, null, &stream);

    if (rc)
        return rc;
    rc = blocking ? hipsim_fill_blocking(fill, stream) : hipsim_fill_async(fill, stream);
    hipsim_stream_unref(stream);
    return rc;
}

static int fill(const char *name, struct hipsim_fill what, void *stream, bool blocking)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : run_fill(&what, stream, LEGACY, blocking));
}

static struct hipsim_fill units(void *to, unsigned value, unsigned unit, size_t count)
{
    return (struct hipsim_fill){
        .to = to, .value = value, .unit = unit, .width = count, .height = 1};
}

int hipMemset(void *to, int value, size_t bytes)
{
    return fill(__func__, units(to, (unsigned)value, 1, bytes), NULL, true);
}

int hipMemsetAsync(void *to, int value, size_t bytes, void *stream)
{
    return fill(__func__, units(to, (unsigned)value, 1, bytes), stream, false);
}

int hipMemsetD8(void *to, unsigned char value, size_t count)
{
    return fill(__func__, units(to, value, 1, count), NULL, true);
}

int hipMemsetD8Async(void *to, unsigned char value, size_t count, void *stream)
{
    return fill(__func__, units(to, value, 1, count), stream, false);
}

int hipMemsetD32(void *to, int value, size_t count)
{
    return fill(__func__, units(to, (unsigned)value, 4, count), NULL, true);
}

int hipMemsetD32Async(void *to, int value, size_t count, void *stream)
{
    return fill(__func__, units(to, (unsigned)value, 4, count), stream, false);
}

static struct hipsim_fill box(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return (struct hipsim_fill){.to = to,
                                .value = (unsigned)value,
                                .unit = 1,
                                .width = width,
                                .height = height,
                                .pitch = pitch};
}

int hipMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return fill(__func__, box(to, pitch, value, width, height), NULL, true);
}

int hipMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height, void *stream)
{
    return fill(__func__, box(to, pitch, value, width, height), stream, false);
}

int hipMemcpy_spt(void *to, const void *from, size_t bytes, int kind)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : run_copy(linear(to, from, bytes, kind), NULL, PER_THREAD, true));
}

int hipMemcpyAsync_spt(void *to, const void *from, size_t bytes, int kind, void *stream)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc
                           : run_copy(linear(to, from, bytes, kind), stream, PER_THREAD, false));
}

int hipMemset_spt(void *to, int value, size_t bytes)
{
    struct hipsim_fill what = units(to, (unsigned)value, 1, bytes);
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : run_fill(&what, NULL, PER_THREAD, true));
}
