/* SPDX-License-Identifier: MIT */
/*
 * Storage, direct: past the page cache (O_DIRECT) where file offset, length and memory allow it,
 * several transfers in flight through io_uring where that can be had. Heads, tails and whatever is
 * unaligned go through the page cache, so that no write ever touches a byte that is not its own.
 */
#include "direct.h"
#include "log.h"
#include "split.h"
#include "stats.h"
#include "status.h"
#include "storage/storage.h"
#include "storage/uring.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Smaller runs are left to the buffered storage, which reads neighbours together. */
#define RUN_MIN ((uint64_t)64 << 10)
/* A write that moves nothing this many times in a row is an error. */
#define IDLE_MAX 16

/* How this file is reached now. */
struct ways {
    struct hipio_file *file;
    enum hipio_op op;
    int plain;  /* descriptor through the page cache; -1: there is none */
    int direct; /* descriptor with O_DIRECT; -1: none, or not wanted */
    struct hipio_split_rule rule;
    unsigned depth;      /* of io_uring; 0: not wanted */
    bool uring_is_plain; /* io_uring also through the page cache */
    enum hipio_switch registered;
};

static struct ways find_ways(struct hipio_file *file, enum hipio_op op)
{
    const struct hipio_tunables *settings = hipio_file_tunables(file);
    const struct hipio_direct *direct;
    struct ways ways = {
        .file = file,
        .op = op,
        .plain = hipio_file_descriptor(file),
        .direct = -1,
        .depth = settings->uring == HIPIO_OFF ? 0 : (unsigned)settings->queue_depth,
        .uring_is_plain = settings->uring == HIPIO_FORCE,
        .registered = (enum hipio_switch)settings->uring_registered,
    };

    if (hipio_direct_open(file, &direct) < 0)
        return ways;
    ways.plain = direct->plain;
    if (hipio_storage_is_direct(file))
        ways.direct = direct->fd;
    ways.rule = (struct hipio_split_rule){direct->offset_align, direct->memory_align, 1};
    /* Its only descriptor, whatever the setting says: better some transfers than none. */
    if (ways.plain < 0)
        ways.direct = direct->fd;
    return ways;
}

/* A run on its way: contiguous in memory and in the file. */
struct span {
    char *memory;
    int64_t offset;
    uint64_t length;
    uint64_t moved;
};

static int call_failed(const struct ways *ways, const struct span *span, int err)
{
    return hipio_status_set(-err, "%s: %s of %llu bytes at offset %lld failed: %s",
                            hipio_file_name(ways->file), ways->op == HIPIO_READ ? "read" : "write",
                            (unsigned long long)(span->length - span->moved),
                            (long long)span->offset + (long long)span->moved, strerror(err));
}

static ssize_t call(const struct ways *ways, int fd, const struct span *span, uint64_t end)
{
    const uint64_t left = end - span->moved;
    const size_t bytes = left < HIPIO_STORAGE_CALL_MAX ? left : HIPIO_STORAGE_CALL_MAX;
    const off_t offset = span->offset + (int64_t)span->moved;

    if (ways->op == HIPIO_READ)
        return pread(fd, span->memory + span->moved, bytes, offset);
    return pwrite(fd, span->memory + span->moved, bytes, offset);
}

/* Ordinary calls up to byte `end` of the span. 0 with less: a read met the end of the file. */
static int move_by_calls(const struct ways *ways, int fd, struct span *span, uint64_t end)
{
    int idle = 0;

    while (span->moved < end) {
        const ssize_t n = call(ways, fd, span, end);
        if (n < 0 && errno != EINTR)
            return call_failed(ways, span, errno);
        if (n == 0 && ways->op == HIPIO_READ)
            return 0;
        if (n == 0 && ++idle == IDLE_MAX)
            return call_failed(ways, span, EIO);
        span->moved += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

/*
 * Registered memory saves the pinning of each transfer: a third of the CPU time with O_DIRECT.
 * Through the page cache nothing is pinned, and nothing was gained.
 */
static bool wants_registered(const struct ways *ways, int fd)
{
    return ways->registered == HIPIO_FORCE ||
           (ways->registered == HIPIO_AUTO && fd == ways->direct);
}

/* io_uring up to byte `end`, where it is wanted and worth it. Any less than that is for ordinary
 * calls, unless it is an error. */
static int move_by_uring(const struct ways *ways, int fd, struct span *span, uint64_t end)
{
    const uint64_t bytes = end - span->moved;
    uint64_t moved;

    if (ways->depth == 0 || (bytes < 2 * HIPIO_URING_BLOCK && !ways->uring_is_plain))
        return 0;
    const struct hipio_uring_trip trip = {
        .fd = fd,
        .op = ways->op,
        .memory = span->memory + span->moved,
        .offset = span->offset + (int64_t)span->moved,
        .length = bytes,
        .depth = ways->depth,
        .registered = wants_registered(ways, fd),
    };
    const int status = hipio_uring_move(&trip, &moved);
    span->moved += moved;
    if (status == 0 || status == -ENOTSUP)
        return 0;
    return call_failed(ways, span, -status);
}

static int move_plain(const struct ways *ways, struct span *span, uint64_t end)
{
    if (ways->plain < 0)
        return hipio_status_set(-EINVAL,
                                "%s: %llu bytes at offset %lld are not aligned as O_DIRECT wants, "
                                "and no second descriptor without it could be opened",
                                hipio_file_name(ways->file),
                                (unsigned long long)(end - span->moved),
                                (long long)span->offset + (long long)span->moved);
    int status = ways->uring_is_plain ? move_by_uring(ways, ways->plain, span, end) : 0;
    if (status == 0)
        status = move_by_calls(ways, ways->plain, span, end);
    return status;
}

/* An aligned stretch. What a short transfer leaves, at the end of the file or elsewhere, and what
 * the file system refuses although it is aligned, the page cache finishes. */
static int move_direct(const struct ways *ways, struct span *span, uint64_t end)
{
    const uint64_t before = span->moved;
    int status = move_by_uring(ways, ways->direct, span, end);

    while (status == 0 && span->moved < end && (span->moved - before) % ways->rule.offset == 0) {
        const ssize_t n = call(ways, ways->direct, span, end);
        if (n > 0)
            span->moved += (uint64_t)n;
        else if (n == 0)
            break;
        else if (errno == EINVAL || errno == EOPNOTSUPP)
            break;
        else if (errno != EINTR)
            status = call_failed(ways, span, errno);
    }
    hipio_stats_add(HIPIO_COUNT_direct_bytes, (int64_t)(span->moved - before));
    if (status < 0 || span->moved == end)
        return status;
    if (ways->plain < 0 && ways->op == HIPIO_READ)
        return 0;
    return move_plain(ways, span, end);
}

/* Where direct reads end: the kernel fills the memory of a whole block, also where the file ends in
 * the middle of it. */
static uint64_t readable(const struct ways *ways, const struct span *span)
{
    const int64_t size = hipio_file_size(ways->file);

    if (size < 0 || size - span->offset >= (int64_t)span->length)
        return span->length;
    return size > span->offset ? (uint64_t)(size - span->offset) : 0;
}

/* 0 with less than the length: a read met the end of the file. */
static int move_span(const struct ways *ways, struct span *span)
{
    if (ways->direct < 0)
        return move_plain(ways, span, span->length);
    const uint64_t length = ways->op == HIPIO_READ ? readable(ways, span) : span->length;
    const struct hipio_split split =
        hipio_split_make(&ways->rule, (uintptr_t)span->memory, span->offset, length);
    int status = split.head ? move_plain(ways, span, split.head) : 0;
    if (status == 0 && split.body && span->moved == split.head)
        status = move_direct(ways, span, split.head + split.body);
    /* The tail, and what a read asks for behind the end of the file. */
    if (status == 0 && span->moved == split.head + split.body && span->moved < span->length)
        status = move_plain(ways, span, span->length);
    return status;
}

static bool begins_small(const struct hipio_cursor *cursor, uint64_t length)
{
    struct hipio_cursor ahead = *cursor;
    int64_t offset;

    return length > RUN_MIN && hipio_cursor_next_run(&ahead, length, &offset) < RUN_MIN;
}

static bool has_own_plain(const struct ways *ways)
{
    return ways->plain == hipio_file_descriptor(ways->file);
}

static int direct_packed(struct hipio_file *file, enum hipio_op op, void *buffer,
                         struct hipio_cursor *cursor, int64_t base, uint64_t length,
                         uint64_t *moved)
{
    const struct ways ways = find_ways(file, op);
    int status = 0;

    if (has_own_plain(&ways) && begins_small(cursor, length))
        return hipio_storage_buffered.packed(file, op, buffer, cursor, base, length, moved);
    *moved = 0;
    while (status == 0 && *moved < length) {
        const uint64_t start = cursor->position;
        struct span span = {.memory = (char *)buffer + *moved};
        span.length = hipio_cursor_next_run(cursor, length - *moved, &span.offset);
        if (span.length == 0)
            return hipio_status_set(-EINVAL, "%s: more bytes than the file layout names",
                                    hipio_file_name(file));
        span.offset += base;
        status = move_span(&ways, &span);
        *moved += span.moved;
        if (span.moved < span.length) {
            hipio_cursor_init(cursor, cursor->root, start + span.moved);
            break;
        }
    }
    return status;
}

/* How many of the pieces from *iov on are small, and their bytes. */
static int count_small(const struct iovec *iov, int n, uint64_t *bytes)
{
    int small = 0;

    for (*bytes = 0; small < n && iov[small].iov_len < RUN_MIN; small++)
        *bytes += iov[small].iov_len;
    return small;
}

static int direct_vector(struct hipio_file *file, enum hipio_op op, const struct iovec *iov, int n,
                         int64_t offset, uint64_t *moved)
{
    const struct ways ways = find_ways(file, op);
    int status = 0;

    *moved = 0;
    while (n > 0) {
        const int64_t at = offset + (int64_t)*moved;
        struct span span = {iov->iov_base, at, iov->iov_len, 0};
        int taken = 1;
        if (has_own_plain(&ways) && n > 1 && iov->iov_len < RUN_MIN) {
            taken = count_small(iov, n, &span.length);
            status = hipio_storage_buffered.vector(file, op, iov, taken, at, &span.moved);
        } else {
            status = move_span(&ways, &span);
        }
        *moved += span.moved;
        if (status < 0 || span.moved < span.length)
            return status;
        iov += taken;
        n -= taken;
    }
    return 0;
}

const struct hipio_storage hipio_storage_direct = {
    .name = "direct",
    .packed = direct_packed,
    .vector = direct_vector,
};
