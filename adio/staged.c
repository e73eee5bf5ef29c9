/* SPDX-License-Identifier: MIT */
/*
 * Staged: every rank calls ROMIO's collective once a round with bytes in host memory, so that ranks
 * with GPU buffers, with host buffers, with nothing left and with an error all look alike to it.
 */
#include "staged.h"
#include "engine/stats.h"
#include "engine/status.h"
#include "view.h"
#include <errno.h>
#include <stdlib.h>

struct window {
    struct hipio_access *access;
    struct hipio_file *file; /* the window as the engine sees it */
    struct hipio_layout *layout;
    char *memory;
    uint64_t size;
    int64_t file_size;
    int code; /* this rank's first error, an MPI code */
};

uint64_t hipio_staged_window(const struct hipio_driven *driven)
{
    uint64_t etype = (uint64_t)driven->fd->etype_size, size = driven->tunables.window_size;
    if (etype == 0)
        return size;
    if (size < etype)
        return etype;
    size -= size % etype;
    /* ROMIO takes a byte count as an int. */
    return size < INT32_MAX ? size : INT32_MAX - INT32_MAX % etype;
}

static int open_window(struct window *w)
{
    int rc;
    w->memory = malloc(w->size);
    if (!w->memory)
        return hipio_status_set(
            -ENOMEM, "no memory for a collective window of %llu bytes (HIPIO_WINDOW_SIZE)",
            (unsigned long long)w->size);
    rc = hipio_layout_run(0, w->size, &w->layout);
    if (rc == 0)
        rc = hipio_file_create_window(w->memory, w->size, "collective window",
                                      &w->access->driven->tunables, &w->file);
    return rc;
}

static void close_window(struct window *w)
{
    hipio_file_destroy(w->file);
    hipio_layout_release(w->layout);
    free(w->memory);
}

/* Moves bytes [start, start + length) of the access between the user's memory and the window. */
static void move_window(struct window *w, enum hipio_op op, uint64_t start, uint64_t length)
{
    const struct hipio_request *whole = &w->access->request;
    struct hipio_request part = {
        .op = op,
        .file = w->file,
        .base = whole->base,
        .memory = whole->memory,
        .memory_layout = whole->memory_layout,
        .memory_start = start,
        .file_layout = w->layout,
        .length = length,
        .swap = whole->swap,
    };
    int rc = hipio_request_run(&part);
    if (rc)
        w->code = hipio_access_code(w->access, rc, part.text);
}

/* The bytes of a round that lie before the end of the file, where its size could be told. */
static uint64_t before_end(const struct window *w, uint64_t start, uint64_t length)
{
    const struct hipio_request *request = &w->access->request;
    if (w->file_size < 0)
        return length;
    return hipio_layout_bytes_below(request->file_layout, request->file_start + start, length,
                                    w->file_size - request->file_base);
}

static void call_lower(struct window *w, uint64_t start, uint64_t length)
{
    struct hipio_driven *driven = w->access->driven;
    uint64_t etype = (uint64_t)driven->fd->etype_size;
    const struct hipio_call call = {
        .op = w->access->call.op,
        .buffer = w->memory,
        .count = (int)length,
        .type = MPI_BYTE,
        .pointer = HIPIO_ROMIO_EXPLICIT_OFFSET,
        .offset = etype ? (int64_t)((w->access->position + start) / etype) : 0,
    };
    int error = hipio_call_lower_collective(driven, &call);

    if (w->code == MPI_SUCCESS && error != MPI_SUCCESS)
        w->code = error;
    hipio_stats_add(HIPIO_COUNT_staged_rounds, 1);
}

static void run_round(struct window *w, uint64_t start, uint64_t length)
{
    struct hipio_request *request = &w->access->request;
    bool read = w->access->call.op == HIPIO_READ;
    uint64_t found;

    if (!read && length && w->code == MPI_SUCCESS)
        move_window(w, HIPIO_WRITE, start, length);
    if (w->code != MPI_SUCCESS)
        length = 0;
    call_lower(w, start, length);
    if (w->code != MPI_SUCCESS)
        return;
    found = read ? before_end(w, start, length) : length;
    if (read && found)
        move_window(w, HIPIO_READ, start, found);
    if (w->code == MPI_SUCCESS)
        request->done += found;
}

int hipio_staged_move(struct hipio_access *access, long long rounds, int64_t file_size)
{
    struct window w = {.access = access, .file_size = file_size};
    uint64_t bytes = access->bytes;
    int rc;

    w.size = hipio_staged_window(access->driven);
    rc = open_window(&w);
    if (rc) {
        w.code = hipio_access_code(access, rc, NULL);
        bytes = 0;
    }
    for (long long k = 0; k < rounds; k++) {
        uint64_t start = (uint64_t)k * w.size;
        uint64_t left = start < bytes ? bytes - start : 0;
        run_round(&w, start < bytes ? start : 0, left < w.size ? left : w.size);
    }
    close_window(&w);
    return w.code;
}
