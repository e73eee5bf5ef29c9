/* SPDX-License-Identifier: MIT */
/*
 * Api stream: the public calls on streams (hipio.h).
 */
#include "async.h"
#include "engine.h"
#include "hipio.h"
#include "status.h"
#include "stream.h"
#include <errno.h>

_Static_assert((int)HIPIO_FIXED_BUFFER_OFFSET == (int)HIPIO_ASYNC_BUFFER_OFFSET_FIXED &&
                   (int)HIPIO_FIXED_FILE_OFFSET == (int)HIPIO_ASYNC_FILE_OFFSET_FIXED &&
                   (int)HIPIO_FIXED_SIZE == (int)HIPIO_ASYNC_SIZE_FIXED &&
                   (int)HIPIO_ALL_PAGE_ALIGNED == (int)HIPIO_ASYNC_PAGE_ALIGNED,
               "the flags are one set");

int hipio_stream_register(void *stream, unsigned flags)
{
    if (flags & ~HIPIO_ASYNC_FLAGS)
        return hipio_status_set(-EINVAL, "stream flags %#x: only the bits of %#x mean something",
                                flags, HIPIO_ASYNC_FLAGS);
    int status = hipio_engine_enter();
    if (status < 0)
        return status;
    status = hipio_streams_register(stream, flags);
    hipio_engine_leave();
    return status;
}

int hipio_stream_deregister(void *stream)
{
    int status = hipio_engine_enter();

    if (status < 0)
        return status;
    status = hipio_streams_deregister(stream);
    hipio_engine_leave();
    return status;
}

int hipio_stream_status(void *stream, char *text, size_t size)
{
    int status = hipio_engine_enter();

    if (status < 0)
        return status;
    status = hipio_streams_error(stream, text, size);
    hipio_engine_leave();
    return status;
}

int hipio_read_async(struct hipio_handle *file, void *gpu_base, const size_t *size,
                     const off_t *file_offset, const off_t *buffer_offset, ssize_t *bytes_done,
                     void *stream)
{
    return hipio_async_submit(&(struct hipio_async_call){
        HIPIO_READ, file, gpu_base, size, file_offset, buffer_offset, bytes_done, stream});
}

/* A write only reads the buffer; an operation's base is one pointer for both directions. */
int hipio_write_async(struct hipio_handle *file, const void *gpu_base, const size_t *size,
                      const off_t *file_offset, const off_t *buffer_offset, ssize_t *bytes_done,
                      void *stream)
{
    return hipio_async_submit(
        &(struct hipio_async_call){HIPIO_WRITE, file, (void *)(uintptr_t)gpu_base, size,
                                   file_offset, buffer_offset, bytes_done, stream});
}
