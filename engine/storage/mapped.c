/* SPDX-License-Identifier: MIT */
/*
 * Storage, mapped: copies between memory and a shared mapping of the file. On local file systems
 * writers do not wait for each other there, and a small piece costs a copy instead of a call.
 *
 * The mapping is a shortcut and nothing else: whatever it can't do at once and safely (pages that
 * would have to be read from the disk, a full disk, a file that somebody has truncated, no room for
 * a window) goes through the buffered storage, piece by piece, which does it or says what is wrong.
 * So both have the same results, errors and texts.
 *
 * A file grows by a write call for its last byte, never by ftruncate, which could cut off what
 * another process has just appended. The same call at each new size waits for others who make the
 * file longer (mapping.h), and once per tick of the clock gives the file the times that writing
 * must give it.
 */
#include "mapping.h"
#include "sigbus.h"
#include "stats.h"
#include "storage/storage.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef IOV_MAX
#define IOV_MAX 1024
#endif

/* ---- The file's end and times ---- */

/* Where a write lies in the file, and its outermost bytes. */
struct extent {
    int64_t low, end;
    const void *first, *last;
};

/* One byte by a write call. False: not so, which is for the next call to find out about. The limit
 * is looked at first because exceeding it sends a signal. */
static bool put(struct hipio_file *file, int64_t offset, const void *byte)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (uint64_t)offset >= limit.rlim_cur)
        return false;
    if (pwrite(hipio_file_descriptor(file), byte, 1, offset) != 1)
        return false;
    hipio_mapping_stamp_is_due(file);
    return true;
}

/* Is the file large enough for the write, and will what is stored in its pages stay? */
static bool make_room(struct hipio_file *file, const struct extent *extent, int64_t *size)
{
    const uint64_t resizes = hipio_file_resizes(file);
    bool made;

    *size = hipio_file_size(file);
    if (*size < 0)
        return false;
    if (extent->end <= *size && hipio_mapping_is_settled(file, *size))
        return true;
    if (extent->end <= *size)
        made = put(file, extent->low, extent->first);
    else
        made = put(file, extent->end - 1, extent->last);
    if (!made)
        return false;
    if (*size < extent->end)
        *size = extent->end;
    hipio_mapping_settle(file, *size, resizes);
    return true;
}

/* After a write: its last byte once more. */
static int stamp(struct hipio_file *file, int64_t end, void *last)
{
    const struct iovec byte = {last, 1};
    uint64_t moved;

    if (!hipio_mapping_stamp_is_due(file))
        return 0;
    return hipio_storage_buffered.vector(file, HIPIO_WRITE, &byte, 1, end - 1, &moved);
}

static void account(enum hipio_op op, uint64_t bytes)
{
    hipio_stats_add(op == HIPIO_READ ? HIPIO_COUNT_mapped_read : HIPIO_COUNT_mapped_written,
                    (int64_t)bytes);
}

/* ---- Packed ---- */

/* A call of packed() on the way. */
struct passage {
    struct hipio_file *file;
    enum hipio_op op;
    char *memory;
    int64_t size; /* of the file, when the call began; a write has seen to its room */
    struct hipio_mapping_window *window;
    struct hipio_sigbus guard;
    uint64_t moved;
    uint64_t mapped; /* bytes of these that went through a mapping */
    bool ended;      /* the end of the file was met */
};

/* The window with this byte, or NULL. */
static struct hipio_mapping_window *window_at(struct passage *passage, int64_t offset)
{
    struct hipio_mapping_window *window = passage->window;

    if (window && offset >= window->offset && (uint64_t)(offset - window->offset) < window->length)
        return window;
    if (window)
        hipio_mapping_return(passage->file, window);
    passage->window = hipio_mapping_borrow(passage->file, offset);
    return passage->window;
}

/* Copies a piece that lies inside the window. False: it can't be had that way. */
static bool copy(struct passage *passage, int64_t offset, uint64_t length)
{
    struct hipio_mapping_window *window = passage->window;
    char *const mapped = window->memory + (offset - window->offset);
    char *const memory = passage->memory + passage->moved;
    const bool writes = passage->op == HIPIO_WRITE;

    if (!hipio_mapping_is_quick(passage->file, window, passage->op, offset, length, passage->size))
        return false;
    if (hipio_sigbus_copy(&passage->guard, writes ? mapped : memory, writes ? memory : mapped,
                          length, mapped) != 0) {
        hipio_stats_add(HIPIO_COUNT_mapping_faults, 1);
        return false;
    }
    passage->moved += length;
    passage->mapped += length;
    return true;
}

/* Moves one range of the file, window by window. */
static int move_run(struct passage *passage, int64_t offset, uint64_t length)
{
    while (length > 0 && !passage->ended) {
        const struct hipio_mapping_window *window = window_at(passage, offset);
        uint64_t n = length;
        uint64_t moved = n;

        if (window && n > window->length - (uint64_t)(offset - window->offset))
            n = moved = window->length - (uint64_t)(offset - window->offset);
        if (!window || !copy(passage, offset, n)) {
            const struct iovec piece = {passage->memory + passage->moved, n};
            int err = hipio_storage_buffered.vector(passage->file, passage->op, &piece, 1, offset,
                                                    &moved);
            passage->moved += moved;
            if (err)
                return err;
            passage->ended = moved < n;
        }
        offset += (int64_t)moved;
        length -= moved;
    }
    return 0;
}

static int move_runs(struct passage *passage, struct hipio_cursor *cursor, int64_t base,
                     uint64_t length)
{
    int err = 0;

    while (!err && !passage->ended && passage->moved < length) {
        int64_t offset = 0;
        uint64_t run = hipio_cursor_next_run(cursor, length - passage->moved, &offset);
        const uint64_t left =
            base + offset < passage->size ? (uint64_t)(passage->size - base - offset) : 0;
        const bool beyond = passage->op == HIPIO_READ && run > left;

        err = move_run(passage, base + offset, beyond ? left : run);
        passage->ended |= beyond;
    }
    return err;
}

/* Where the call's bytes lie in the file. False: not in a file at all, or the layout names fewer.
 */
static bool place(const struct hipio_cursor *cursor, int64_t base, uint64_t length,
                  struct extent *extent)
{
    const struct hipio_layout *layout = cursor->root;
    int64_t high = 0;

    if (length == 0 || hipio_layout_size(layout) - cursor->position < length)
        return false;
    hipio_layout_bounds(layout, cursor->position, length, &extent->low, &high);
    return !__builtin_add_overflow(base, extent->low, &extent->low) && extent->low >= 0 &&
           !__builtin_add_overflow(base, high, &extent->end);
}

/* A read that somebody's truncation has overtaken may have seen zeros where no file was any more:
 * it is done again by calls. */
static bool was_cut(const struct passage *passage, int64_t end)
{
    const int64_t now = hipio_file_size(passage->file);

    return now < passage->size && now < end;
}

/* True: the mapping was used, and *err is what came of it. False: nothing is certain. */
static bool through_mapping(struct passage *passage, struct hipio_cursor *cursor, int64_t base,
                            uint64_t length, int *err)
{
    const uint64_t start = cursor->position;
    char *const last = length > 0 ? passage->memory + (length - 1) : NULL;
    const bool writes = passage->op == HIPIO_WRITE;
    struct extent extent = {.first = passage->memory, .last = last};

    if (!place(cursor, base, length, &extent))
        return false;
    if (writes && !make_room(passage->file, &extent, &passage->size))
        return false;
    if (!writes && (passage->size = hipio_file_size(passage->file)) < 0)
        return false;
    if (hipio_sigbus_enter(&passage->guard) != 0)
        return false;
    *err = move_runs(passage, cursor, base, length);
    if (passage->window)
        hipio_mapping_return(passage->file, passage->window);
    hipio_sigbus_leave(&passage->guard);
    if (!writes && passage->mapped > 0 && was_cut(passage, extent.end)) {
        hipio_cursor_init(cursor, cursor->root, start);
        return false;
    }
    if (writes && !*err && passage->mapped > 0)
        *err = stamp(passage->file, extent.end, last);
    if (cursor->position != start + passage->moved)
        hipio_cursor_init(cursor, cursor->root, start + passage->moved);
    return true;
}

static int mapped_packed(struct hipio_file *file, enum hipio_op op, void *buffer,
                         struct hipio_cursor *cursor, int64_t base, uint64_t length,
                         uint64_t *moved)
{
    struct passage passage;
    int err = 0;

    passage.file = file;
    passage.op = op;
    passage.memory = buffer;
    passage.size = 0;
    passage.window = NULL;
    passage.moved = passage.mapped = 0;
    passage.ended = false;
    if (!hipio_mapping_allows(file, op) || !through_mapping(&passage, cursor, base, length, &err))
        return hipio_storage_buffered.packed(file, op, buffer, cursor, base, length, moved);
    account(op, passage.mapped);
    *moved = passage.moved;
    return err;
}

/* ---- Vector ---- */

/*
 * The memory of a vector is the application's, and only the kernel can find out about it without a
 * crash. process_vm_writev copies from one address range of this process to another, takes no lock
 * of the file, and answers EFAULT wherever a page can't be had, on either side. It may be
 * forbidden in containers.
 */
static bool copy_vector(struct hipio_file *file, const struct iovec *iov, int n, int64_t offset,
                        uint64_t length, int64_t size, uint64_t *moved)
{
    struct hipio_mapping_window *window = hipio_mapping_borrow(file, offset);
    ssize_t got = -1;

    *moved = 0;
    if (!window)
        return false;
    const uint64_t within = (uint64_t)(offset - window->offset);
    if (length > window->length - within)
        length = window->length - within;
    if (hipio_mapping_is_quick(file, window, HIPIO_WRITE, offset, length, size)) {
        const struct iovec target = {window->memory + within, length};
        got = process_vm_writev(getpid(), iov, (unsigned long)n, &target, 1, 0);
        if (got < 0)
            hipio_stats_add(HIPIO_COUNT_mapping_faults, 1);
    }
    hipio_mapping_return(file, window);
    if (got <= 0)
        return false;
    *moved = (uint64_t)got;
    account(HIPIO_WRITE, *moved);
    return true;
}

/* Steps over the bytes that have moved. */
static void advance(struct iovec **iov, int *n, uint64_t bytes)
{
    while (*n > 0 && bytes >= (*iov)->iov_len) {
        bytes -= (*iov)->iov_len;
        ++*iov;
        --*n;
    }
    if (*n > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + bytes;
        (*iov)->iov_len -= bytes;
    }
}

static int write_vector(struct hipio_file *file, struct iovec *iov, int n, int64_t offset,
                        uint64_t length, int64_t size, uint64_t *moved)
{
    *moved = 0;
    while (*moved < length) {
        const int64_t at = offset + (int64_t)*moved;
        uint64_t got;

        if (!copy_vector(file, iov, n, at, length - *moved, size, &got)) {
            int err = hipio_storage_buffered.vector(file, HIPIO_WRITE, iov, n, at, &got);
            *moved += got;
            return err;
        }
        *moved += got;
        advance(&iov, &n, got);
    }
    return 0;
}

static int mapped_vector(struct hipio_file *file, enum hipio_op op, const struct iovec *iov, int n,
                         int64_t offset, uint64_t *moved)
{
    struct iovec rest[IOV_MAX];
    uint64_t length = 0;
    int64_t end;
    int64_t size;
    int count = 0;

    /* A read call takes no lock either. */
    if (op == HIPIO_READ || !hipio_mapping_allows(file, op) || n > IOV_MAX)
        return hipio_storage_buffered.vector(file, op, iov, n, offset, moved);
    for (int i = 0; i < n; i++) {
        if (iov[i].iov_len > 0)
            rest[count++] = iov[i];
        length += iov[i].iov_len;
    }
    if (count == 0 || offset < 0 || __builtin_add_overflow(offset, length, &end))
        return hipio_storage_buffered.vector(file, op, iov, n, offset, moved);
    char *const last = (char *)rest[count - 1].iov_base + rest[count - 1].iov_len - 1;
    const struct extent extent = {offset, end, rest[0].iov_base, last};
    if (!make_room(file, &extent, &size))
        return hipio_storage_buffered.vector(file, op, iov, n, offset, moved);
    int err = write_vector(file, rest, count, offset, length, size, moved);
    return err ? err : stamp(file, end, last);
}

const struct hipio_storage hipio_storage_mapped = {
    .name = "mapped",
    .packed = mapped_packed,
    .vector = mapped_vector,
};
