/* SPDX-License-Identifier: MIT */
/*
 * Window: host memory in place of a file (hipio_file_create_window), for callers that move a
 * request's bytes on by other means than a file, such as a collective's exchange.
 */
#include "../status.h"
#include "storage.h"
#include <errno.h>
#include <string.h>

/* Bytes of the window from `offset` on, at most `length`; a window ends as a file does. */
static uint64_t inside(const struct hipio_file *file, int64_t offset, uint64_t length)
{
    uint64_t size = (uint64_t)hipio_file_size(file);
    uint64_t at = (uint64_t)offset;

    if (at >= size)
        return 0;
    return length < size - at ? length : size - at;
}

static int move(struct hipio_file *file, enum hipio_op op, void *memory, int64_t offset,
                uint64_t length, uint64_t *moved)
{
    char *at = (char *)hipio_file_window(file) + offset;

    *moved = inside(file, offset, length);
    if (op == HIPIO_READ)
        memcpy(memory, at, *moved);
    else
        memcpy(at, memory, *moved);
    if (op == HIPIO_WRITE && *moved < length)
        return hipio_status_set(-ENOSPC, "%s: write past its %lld bytes", hipio_file_name(file),
                                (long long)hipio_file_size(file));
    return 0;
}

static int packed(struct hipio_file *file, enum hipio_op op, void *buffer,
                  struct hipio_cursor *cursor, int64_t base, uint64_t length, uint64_t *moved)
{
    int64_t offset;
    int rc = 0;

    *moved = 0;
    while (*moved < length && rc == 0) {
        uint64_t got, run = hipio_cursor_next_run(cursor, length - *moved, &offset);
        if (run == 0)
            break;
        rc = move(file, op, (char *)buffer + *moved, base + offset, run, &got);
        *moved += got;
        if (got < run)
            break;
    }
    return rc;
}

static int vector(struct hipio_file *file, enum hipio_op op, const struct iovec *iov, int n,
                  int64_t offset, uint64_t *moved)
{
    int rc = 0;

    *moved = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        uint64_t got;
        rc = move(file, op, iov[i].iov_base, offset + (int64_t)*moved, iov[i].iov_len, &got);
        *moved += got;
        if (got < iov[i].iov_len)
            break;
    }
    return rc;
}

const struct hipio_storage hipio_storage_window = {
    .name = "window",
    .packed = packed,
    .vector = vector,
};
