/* SPDX-License-Identifier: MIT */
/*
 * Async: reads and writes that a stream of the application comes to in its own time.
 */
#pragma once
#include "backend.h"
#include "channel.h"
#include "handle.h"
#include "request.h"
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* What an application declares of its streams; the same bits as in hipio.h. */
enum hipio_async_flag {
    HIPIO_ASYNC_BUFFER_OFFSET_FIXED = 1,
    HIPIO_ASYNC_FILE_OFFSET_FIXED = 2,
    HIPIO_ASYNC_SIZE_FIXED = 4,
    HIPIO_ASYNC_PAGE_ALIGNED = 8
};
#define HIPIO_ASYNC_FLAGS 15u

/* What the application passes: all that is pointed to is its own, and is read when the stream gets
 * there unless it was declared fixed. */
struct hipio_async_call {
    enum hipio_op op;
    struct hipio_handle *handle;
    void *base;
    const size_t *size;
    const off_t *file_offset;
    const off_t *buffer_offset;
    ssize_t *bytes_done;
    void *stream;
};

/* Queues it. 0; or an error with text, after which nothing was queued, or, where the GPU runtime
 * failed in the middle, the operation ends with that error. */
int hipio_async_submit(const struct hipio_async_call *call);

/* ---- For the stream's thread ---- */

struct hipio_async_op {
    struct hipio_async_op *next;
    struct hipio_channel *channel;
    struct hipio_async_call call;
    struct hipio_memory memory;
    /* As they were at submission; the size is the most that was prepared for. */
    uint64_t size;
    int64_t file_offset;
    int64_t buffer_offset;

    struct hipio_channel_cut cut;
    uint64_t first;      /* gate of the first copy */
    uint64_t copies;     /* that were meant to be queued */
    atomic_ullong ready; /* that are queued */
    atomic_bool sealed;  /* nothing more will be: the submitter's last touch */
    uint64_t last;       /* gate that was queued last; before `sealed` */
    int failed;          /* why not all was queued; before `sealed` */
    char text[HIPIO_TEXT_MAX];
    bool table; /* a fast path may take it: the engine chooses */

    uint64_t used; /* copies that have been put to work */
    struct hipio_request request;
};

/* Does what the application asked for, tells it the result and frees the operation. The stream has
 * reached it, or (`broken`) never will. */
void hipio_async_carry(struct hipio_async_op *op, bool broken);

/* The backend hipio_backend_stream: moves a part of the operation's request by the copies that are
 * queued on the stream. */
int hipio_async_feed(struct hipio_part *part);
