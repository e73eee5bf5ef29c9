/* SPDX-License-Identifier: MIT */
/* The CUDA face: copies and memsets. Stated directions must fit the pointers. */
#include "cuda_api.h"

#include "copy.h"
#include "cuda_context.h"
#include "error.h"
#include "process.h"
#include "stream.h"

enum { TYPE_HOST = 1, TYPE_DEVICE = 2, TYPE_ARRAY = 3, TYPE_UNIFIED = 4 };

static int run(const char *name, struct hipsim_copy copy, void *handle, bool blocking)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream;

    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    copy.strict = true;
    rc = blocking ? hipsim_copy_blocking(&copy, stream) : hipsim_copy_async(&copy, stream);
    hipsim_stream_unref(stream);
    /* CUDA has no code of its own for a bad pitch. */
    return hipsim_leave(rc == HIPSIM_INVALID_PITCH ? HIPSIM_INVALID_VALUE : rc);
}

static void *address(cuda_pointer pointer)
{
    return (void *)(uintptr_t)pointer;
}

static struct hipsim_copy any(cuda_pointer to, cuda_pointer from, size_t bytes)
{
    return hipsim_copy_linear(address(to), address(from), bytes, HIPSIM_COPY_ANY);
}

static struct hipsim_copy h2d(cuda_pointer to, const void *from, size_t bytes)
{
    return hipsim_copy_linear(address(to), from, bytes, HIPSIM_COPY_H2D);
}

static struct hipsim_copy d2h(void *to, cuda_pointer from, size_t bytes)
{
    return hipsim_copy_linear(to, address(from), bytes, HIPSIM_COPY_D2H);
}

static struct hipsim_copy d2d(cuda_pointer to, cuda_pointer from, size_t bytes)
{
    return hipsim_copy_linear(address(to), address(from), bytes, HIPSIM_COPY_D2D);
}

int cuMemcpy(cuda_pointer to, cuda_pointer from, size_t bytes)
{
    return run(__func__, any(to, from, bytes), NULL, true);
}

int cuMemcpyAsync(cuda_pointer to, cuda_pointer from, size_t bytes, void *stream)
{
    return run(__func__, any(to, from, bytes), stream, false);
}

int cuMemcpyHtoD_v2(cuda_pointer to, const void *from, size_t bytes)
{
    return run(__func__, h2d(to, from, bytes), NULL, true);
}

int cuMemcpyDtoH_v2(void *to, cuda_pointer from, size_t bytes)
{
    return run(__func__, d2h(to, from, bytes), NULL, true);
}

int cuMemcpyDtoD_v2(cuda_pointer to, cuda_pointer from, size_t bytes)
{
    return run(__func__, d2d(to, from, bytes), NULL, true);
}

int cuMemcpyHtoDAsync_v2(cuda_pointer to, const void *from, size_t bytes, void *stream)
{
    return run(__func__, h2d(to, from, bytes), stream, false);
}

int cuMemcpyDtoHAsync_v2(void *to, cuda_pointer from, size_t bytes, void *stream)
{
    return run(__func__, d2h(to, from, bytes), stream, false);
}

int cuMemcpyDtoDAsync_v2(cuda_pointer to, cuda_pointer from, size_t bytes, void *stream)
{
    return run(__func__, d2d(to, from, bytes), stream, false);
}

int cuMemcpyPeerAsync(cuda_pointer to, void *to_context, cuda_pointer from, void *from_context,
                      size_t bytes, void *stream)
{
    if (hipsim_cuda_context_device(to_context) < 0 || hipsim_cuda_context_device(from_context) < 0)
        return HIPSIM_INVALID_CONTEXT;
    return run(__func__, d2d(to, from, bytes), stream, false);
}

/* One side of a 2D or 3D copy: its first byte, or NULL for a type that is not offered. */
static const char *side(int type, const void *host, cuda_pointer device, size_t offset)
{
    if (type == TYPE_HOST)
        return (const char *)host + offset;
    if (type == TYPE_DEVICE || type == TYPE_UNIFIED)
        return (const char *)address(device) + offset;
    return NULL;
}

static enum hipsim_direction direction(int to_type, int from_type)
{
    if (to_type == TYPE_UNIFIED || from_type == TYPE_UNIFIED)
        return HIPSIM_COPY_ANY;
    if (from_type == TYPE_HOST)
        return to_type == TYPE_HOST ? HIPSIM_COPY_H2H : HIPSIM_COPY_H2D;
    return to_type == TYPE_HOST ? HIPSIM_COPY_D2H : HIPSIM_COPY_D2D;
}

static int run_box(const char *name, const struct cuda_copy_3d *box, void *stream, bool blocking)
{
    size_t from_slice = box->from_pitch * box->from_height,
           to_slice = box->to_pitch * box->to_height;
    size_t from_offset = box->from_z * from_slice + box->from_y * box->from_pitch + box->from_x;
    size_t to_offset = box->to_z * to_slice + box->to_y * box->to_pitch + box->to_x;
    struct hipsim_copy copy = {
        .to = (void *)(uintptr_t)side(box->to_type, box->to_host, box->to_device, to_offset),
        .from = side(box->from_type, box->from_host, box->from_device, from_offset),
        .to_pitch = box->to_pitch,
        .to_slice = to_slice,
        .from_pitch = box->from_pitch,
        .from_slice = from_slice,
        .width = box->width,
        .height = box->height,
        .depth = box->depth,
        .direction = direction(box->to_type, box->from_type),
    };

    if (!copy.to || !copy.from)
        return HIPSIM_INVALID_VALUE;
    return run(name, copy, stream, blocking);
}

static int run_rows(const char *name, const struct cuda_copy_2d *rows, void *stream, bool blocking)
{
    struct cuda_copy_3d box;

    if (!rows)
        return HIPSIM_INVALID_VALUE;
    box = (struct cuda_copy_3d){
        .from_x = rows->from_x,
        .from_y = rows->from_y,
        .from_type = rows->from_type,
        .from_host = rows->from_host,
        .from_device = rows->from_device,
        .from_pitch = rows->from_pitch ? rows->from_pitch : rows->width,
        .to_x = rows->to_x,
        .to_y = rows->to_y,
        .to_type = rows->to_type,
        .to_host = rows->to_host,
        .to_device = rows->to_device,
        .to_pitch = rows->to_pitch ? rows->to_pitch : rows->width,
        .width = rows->width,
        .height = rows->height,
        .depth = 1,
    };
    return run_box(name, &box, stream, blocking);
}

int cuMemcpy2D_v2(const struct cuda_copy_2d *copy)
{
    return run_rows(__func__, copy, NULL, true);
}

int cuMemcpy2DUnaligned_v2(const struct cuda_copy_2d *copy)
{
    return run_rows(__func__, copy, NULL, true);
}

int cuMemcpy2DAsync_v2(const struct cuda_copy_2d *copy, void *stream)
{
    return run_rows(__func__, copy, stream, false);
}

int cuMemcpy3D_v2(const struct cuda_copy_3d *copy)
{
    return copy ? run_box(__func__, copy, NULL, true) : HIPSIM_INVALID_VALUE;
}

int cuMemcpy3DAsync_v2(const struct cuda_copy_3d *copy, void *stream)
{
    return copy ? run_box(__func__, copy, stream, false) : HIPSIM_INVALID_VALUE;
}

static int fill(const char *name, struct hipsim_fill what, void *handle, bool blocking)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream;

    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    rc = blocking ? hipsim_fill_blocking(&what, stream) : hipsim_fill_async(&what, stream);
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

static struct hipsim_fill units(cuda_pointer to, unsigned value, unsigned unit, size_t count)
{
    return (struct hipsim_fill){
        .to = address(to), .value = value, .unit = unit, .width = count, .height = 1};
}

int cuMemsetD8_v2(cuda_pointer to, unsigned char value, size_t count)
{
    return fill(__func__, units(to, value, 1, count), NULL, true);
}

int cuMemsetD8Async(cuda_pointer to, unsigned char value, size_t count, void *stream)
{
    return fill(__func__, units(to, value, 1, count), stream, false);
}

int cuMemsetD32_v2(cuda_pointer to, unsigned value, size_t count)
{
    return fill(__func__, units(to, value, 4, count), NULL, true);
}

int cuMemsetD32Async(cuda_pointer to, unsigned value, size_t count, void *stream)
{
    return fill(__func__, units(to, value, 4, count), stream, false);
}
