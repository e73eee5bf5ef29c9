/* SPDX-License-Identifier: MIT */
/*
 * Storage, buffered: pread and pwrite through the page cache. Works on every file.
 *
 * A range of the file is one call. Only small pieces that a read finds close together are fetched
 * with what lies between them and picked out; a write never touches a byte that is not its own.
 */
#include "status.h"
#include "storage/storage.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A write that moves nothing this many times in a row is an error. */
#define IDLE_MAX 16

/* One call costs as much as copying a few KiB. So runs up to PIECE_MAX bytes, not further than
 * GAP_MAX bytes from each other, are read together, WINDOW_MAX bytes at a time. */
#define WINDOW_MAX (64u << 10)
#define WINDOW_PIECES 512
#define PIECE_MAX 4096u
#define GAP_MAX 2048u

/* One contiguous range of memory and file, on the way. */
struct span {
    char *memory;
    int64_t offset;
    uint64_t length;
    uint64_t moved;
};

static const char *name_of(enum hipio_op op)
{
    return op == HIPIO_WRITE ? "write" : "read";
}

static int call_failed(struct hipio_file *file, enum hipio_op op, int64_t offset, uint64_t length)
{
    return hipio_status_set(-errno, "%s: %s of %llu bytes at offset %lld failed: %m",
                            hipio_file_name(file), name_of(op), (unsigned long long)length,
                            (long long)offset);
}

static int no_progress(struct hipio_file *file, int64_t offset, uint64_t length)
{
    return hipio_status_set(-EIO,
                            "%s: write of %llu bytes at offset %lld failed: the file system took "
                            "no byte in %d calls and gave no error",
                            hipio_file_name(file), (unsigned long long)length, (long long)offset,
                            IDLE_MAX);
}

static ssize_t call_once(int fd, enum hipio_op op, const struct span *span)
{
    const uint64_t left = span->length - span->moved;
    const size_t bytes = left < HIPIO_STORAGE_CALL_MAX ? left : HIPIO_STORAGE_CALL_MAX;
    const off_t offset = span->offset + (int64_t)span->moved;

    if (op == HIPIO_WRITE)
        return pwrite(fd, span->memory + span->moved, bytes, offset);
    return pread(fd, span->memory + span->moved, bytes, offset);
}

/* Moves the rest of the span. 0 with span->moved < span->length: a read met the end of the file. */
static int move_span(struct hipio_file *file, enum hipio_op op, struct span *span)
{
    int idle = 0;

    while (span->moved < span->length) {
        const ssize_t n = call_once(hipio_file_descriptor(file), op, span);
        const int64_t offset = span->offset + (int64_t)span->moved;
        const uint64_t left = span->length - span->moved;

        if (n < 0) {
            if (errno == EINTR)
                continue;
            return call_failed(file, op, offset, left);
        }
        if (n == 0) {
            if (op == HIPIO_READ)
                return 0;
            if (++idle == IDLE_MAX)
                return no_progress(file, offset, left);
            continue;
        }
        idle = 0;
        span->moved += (uint64_t)n;
    }
    return 0;
}

/* Where a run of a layout lies in the file. 0 or -EINVAL. */
static int place(struct hipio_file *file, int64_t base, int64_t offset, uint64_t length,
                 int64_t *out)
{
    int64_t end;

    if (__builtin_add_overflow(base, offset, out) || *out < 0 ||
        __builtin_add_overflow(*out, length, &end))
        return hipio_status_set(-EINVAL,
                                "%s: %llu bytes at displacement %lld plus %lld are outside what a "
                                "file can hold",
                                hipio_file_name(file), (unsigned long long)length, (long long)base,
                                (long long)offset);
    return 0;
}

/* ---- Small pieces read together ---- */

/* Pieces at hull offsets piece[i].at; the first lies at 0, and they never fall. */
struct window {
    uint64_t hull;  /* bytes from the first piece's start to the last one's end */
    uint64_t bytes; /* of all pieces */
    unsigned pieces;
    struct {
        uint32_t at;
        uint32_t length;
    } piece[WINDOW_PIECES];
};

static void window_add(struct window *window, uint64_t at, uint64_t length)
{
    window->piece[window->pieces].at = (uint32_t)at;
    window->piece[window->pieces].length = (uint32_t)length;
    ++window->pieces;
    window->hull = at + length;
    window->bytes += length;
}

/* Finds the pieces that follow a first one of `length` bytes at `offset`, which the cursor has just
 * passed, within the next `most` bytes. */
static void window_find(struct window *window, const struct hipio_cursor *cursor, int64_t offset,
                        uint64_t length, uint64_t most)
{
    struct hipio_cursor ahead = *cursor;

    window->hull = 0;
    window->bytes = 0;
    window->pieces = 0;
    window_add(window, 0, length);
    while (window->pieces < WINDOW_PIECES && window->bytes < most) {
        int64_t next = 0;
        const uint64_t n = hipio_cursor_next_run(&ahead, most - window->bytes, &next);
        /* The distance from the first piece; one before it gives a number that is too large. */
        const uint64_t at = (uint64_t)next - (uint64_t)offset;

        if (n == 0 || n > PIECE_MAX || at < window->hull || at - window->hull > GAP_MAX ||
            at + n > WINDOW_MAX)
            return;
        window_add(window, at, n);
    }
}

/* Picks the pieces out of `got` bytes of the hull; returns how many bytes of them were there. */
static uint64_t window_scatter(const struct window *window, const char *hull, uint64_t got,
                               char *to)
{
    uint64_t taken = 0;

    for (unsigned i = 0; i < window->pieces && window->piece[i].at < got; ++i) {
        const uint64_t at = window->piece[i].at;
        const uint64_t there = got - at;
        const uint64_t n = window->piece[i].length < there ? window->piece[i].length : there;

        memcpy(to + taken, hull + at, n);
        taken += n;
    }
    return taken;
}

/* ---- The storage's two entries ---- */

/* A call of packed() on the way. */
struct passage {
    struct hipio_file *file;
    enum hipio_op op;
    char *memory;
    struct hipio_cursor *cursor;
    int64_t base;
    uint64_t length;
    uint64_t moved;
    char *scratch; /* WINDOW_MAX bytes, when a window was needed and could be had */
    bool ended;    /* the end of the file was met */
};

/* Puts the cursor behind the bytes that have moved. */
static void settle(struct passage *passage, uint64_t start, uint64_t moved)
{
    passage->moved += moved;
    if (passage->cursor->position != start + moved)
        hipio_cursor_init(passage->cursor, passage->cursor->root, start + moved);
}

/*
 * Reads the pieces around the run at `offset` in one call, if there are several. False: nothing was
 * done, the run has to be read alone. An error counts as that, because it may lie between the
 * pieces.
 */
static bool try_window(struct passage *passage, uint64_t start, int64_t offset, uint64_t length)
{
    struct window window;
    struct span span = {0};

    if (passage->op != HIPIO_READ || length > PIECE_MAX ||
        length == passage->length - passage->moved)
        return false;
    window_find(&window, passage->cursor, offset, length, passage->length - passage->moved);
    if (window.pieces < 2)
        return false;
    if (!passage->scratch)
        passage->scratch = malloc(WINDOW_MAX);
    span.memory = passage->scratch;
    span.length = window.hull;
    if (!span.memory || place(passage->file, passage->base, offset, window.hull, &span.offset) ||
        move_span(passage->file, HIPIO_READ, &span))
        return false;
    const uint64_t taken =
        window_scatter(&window, span.memory, span.moved, passage->memory + passage->moved);
    passage->ended = taken < window.bytes;
    settle(passage, start, taken);
    return true;
}

/* Moves the next run, or several small ones. */
static int move_next(struct passage *passage)
{
    const uint64_t start = passage->cursor->position;
    struct span span = {.memory = passage->memory + passage->moved};
    int64_t offset = 0;

    span.length = hipio_cursor_next_run(passage->cursor, passage->length - passage->moved, &offset);
    if (span.length == 0)
        return hipio_status_set(-EINVAL, "%s: %s of more bytes than its file layout names",
                                hipio_file_name(passage->file), name_of(passage->op));
    if (try_window(passage, start, offset, span.length))
        return 0;
    int err = place(passage->file, passage->base, offset, span.length, &span.offset);
    if (!err)
        err = move_span(passage->file, passage->op, &span);
    passage->ended = !err && span.moved < span.length;
    settle(passage, start, span.moved);
    return err;
}

static int buffered_packed(struct hipio_file *file, enum hipio_op op, void *buffer,
                           struct hipio_cursor *cursor, int64_t base, uint64_t length,
                           uint64_t *moved)
{
    struct passage passage = {
        .file = file, .op = op, .memory = buffer, .cursor = cursor, .base = base, .length = length};
    int err = 0;

    while (!err && !passage.ended && passage.moved < length)
        err = move_next(&passage);
    free(passage.scratch);
    *moved = passage.moved;
    return err;
}

static ssize_t call_vector(struct hipio_file *file, enum hipio_op op, const struct iovec *iov,
                           int n, int64_t offset)
{
    ssize_t moved;

    do
        moved = op == HIPIO_WRITE ? pwritev(hipio_file_descriptor(file), iov, n, offset)
                                  : preadv(hipio_file_descriptor(file), iov, n, offset);
    while (moved < 0 && errno == EINTR);
    return moved;
}

/* Steps over the pieces that `bytes` fill; what remains is how far into *iov they reach. */
static uint64_t skip_pieces(const struct iovec **iov, int *n, uint64_t bytes)
{
    while (*n > 0 && bytes >= (*iov)->iov_len) {
        bytes -= (*iov)->iov_len;
        ++*iov;
        --*n;
    }
    return bytes;
}

static int buffered_vector(struct hipio_file *file, enum hipio_op op, const struct iovec *iov,
                           int n, int64_t offset, uint64_t *moved)
{
    *moved = 0;
    skip_pieces(&iov, &n, 0);
    while (n > 0) {
        const int64_t at = offset + (int64_t)*moved;
        const ssize_t got = call_vector(file, op, iov, n, at);
        if (got < 0)
            return call_failed(file, op, at, iov->iov_len);
        if (got == 0 && op == HIPIO_READ)
            return 0;
        *moved += (uint64_t)got;
        const uint64_t within = skip_pieces(&iov, &n, (uint64_t)got);
        if (n == 0)
            return 0;
        if (within == 0 && got > 0)
            continue;
        /* The call stopped inside a piece, or at once: that piece is finished alone. */
        struct span span = {iov->iov_base, offset + (int64_t)(*moved - within), iov->iov_len,
                            within};
        int err = move_span(file, op, &span);
        *moved += span.moved - within;
        if (err || span.moved < span.length)
            return err;
        ++iov;
        --n;
        skip_pieces(&iov, &n, 0);
    }
    return 0;
}

const struct hipio_storage hipio_storage_buffered = {
    .name = "buffered",
    .packed = buffered_packed,
    .vector = buffered_vector,
};
