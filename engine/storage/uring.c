/* SPDX-License-Identifier: MIT */
/*
 * Uring: the window of blocks that are in flight.
 */
#include "storage/uring.h"
#include "stats.h"
#include "storage/uring_ring.h"
#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <time.h>

#define IN_FLIGHT INT_MIN

/* Blocks [first, next) were prepared and have not all moved; each has a place for its result. */
struct voyage {
    const struct hipio_uring_trip *trip;
    struct io_uring *uring;
    bool registered; /* the memory is buffer 0 of the ring */
    uint64_t first;
    uint64_t next;
    unsigned depth;
    unsigned afloat; /* prepared or in flight, without a result */
    bool stopped;    /* a block did not move as a whole: no more are sent */
    bool broken;     /* the kernel takes no more calls for this ring */
    int result[HIPIO_URING_DEPTH_MAX];
};

static uint64_t block_bytes(const struct voyage *voyage, uint64_t block)
{
    const uint64_t left = voyage->trip->length - block * HIPIO_URING_BLOCK;

    return left < HIPIO_URING_BLOCK ? left : HIPIO_URING_BLOCK;
}

static bool is_left(const struct voyage *voyage)
{
    return voyage->next * HIPIO_URING_BLOCK < voyage->trip->length;
}

static void describe_block(const struct voyage *voyage, struct io_uring_sqe *sqe)
{
    const struct hipio_uring_trip *trip = voyage->trip;
    const uint64_t start = voyage->next * HIPIO_URING_BLOCK;
    const unsigned bytes = (unsigned)block_bytes(voyage, voyage->next);
    const uint64_t offset = (uint64_t)trip->offset + start;
    char *memory = (char *)trip->memory + start;

    if (voyage->registered && trip->op == HIPIO_READ)
        io_uring_prep_read_fixed(sqe, trip->fd, memory, bytes, offset, 0);
    else if (voyage->registered)
        io_uring_prep_write_fixed(sqe, trip->fd, memory, bytes, offset, 0);
    else if (trip->op == HIPIO_READ)
        io_uring_prep_read(sqe, trip->fd, memory, bytes, offset);
    else
        io_uring_prep_write(sqe, trip->fd, memory, bytes, offset);
}

static void prepare_block(struct voyage *voyage, struct io_uring_sqe *sqe)
{
    describe_block(voyage, sqe);
    io_uring_sqe_set_data64(sqe, voyage->next);
    voyage->result[voyage->next % voyage->depth] = IN_FLIGHT;
    voyage->next++;
    voyage->afloat++;
}

static void prepare_blocks(struct voyage *voyage)
{
    while (!voyage->stopped && is_left(voyage) && voyage->next - voyage->first < voyage->depth) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(voyage->uring);
        if (!sqe)
            return;
        prepare_block(voyage, sqe);
    }
}

/* Takes the results that are there. Makes no system call. */
static void reap(struct voyage *voyage)
{
    struct io_uring_cqe *cqe;
    unsigned head, n = 0;

    io_uring_for_each_cqe(voyage->uring, head, cqe)
    {
        const uint64_t block = io_uring_cqe_get_data64(cqe);
        voyage->result[block % voyage->depth] = cqe->res;
        if (cqe->res < 0 || (uint64_t)cqe->res < block_bytes(voyage, block))
            voyage->stopped = true;
        n++;
    }
    io_uring_cq_advance(voyage->uring, n);
    voyage->afloat -= n;
}

/* Moves `first` past the blocks that are whole. */
static void advance(struct voyage *voyage)
{
    while (voyage->first < voyage->next) {
        const int result = voyage->result[voyage->first % voyage->depth];
        if (result < 0 || (uint64_t)result < block_bytes(voyage, voyage->first))
            return;
        voyage->first++;
    }
}

/*
 * The kernel refuses the call that submits and waits (a filter that was installed after the ring
 * was made, say). What it had not taken was never begun; for the rest only time can be waited for:
 * memory must not be given back while it is written to.
 */
static void strand(struct voyage *voyage)
{
    const struct timespec pause = {0, 50000};

    voyage->stopped = voyage->broken = true;
    voyage->afloat -= io_uring_sq_ready(voyage->uring);
    for (reap(voyage); voyage->afloat > 0; reap(voyage))
        nanosleep(&pause, NULL);
}

static void sail(struct voyage *voyage)
{
    for (;;) {
        prepare_blocks(voyage);
        if (voyage->afloat == 0)
            return;
        const int n = io_uring_submit_and_wait(voyage->uring, 1);
        if (n < 0 && n != -EINTR && n != -EAGAIN && n != -EBUSY) {
            hipio_uring_ring_refuse(-n);
            strand(voyage);
        }
        reap(voyage);
        advance(voyage);
    }
}

/* Answers of io_uring or of the moment, after which an ordinary call may well succeed. */
static bool is_doubtful(const struct voyage *voyage, int err)
{
    return (err == EFAULT && voyage->registered) || err == EAGAIN || err == EINTR ||
           err == EINVAL || err == EOPNOTSUPP || err == ECANCELED || err == ENOSYS || err == EPERM;
}

static int sum_up(const struct voyage *voyage, uint64_t *moved)
{
    const uint64_t start = voyage->first * HIPIO_URING_BLOCK;

    *moved = start < voyage->trip->length ? start : voyage->trip->length;
    if (voyage->first == voyage->next)
        return 0;
    const int result = voyage->result[voyage->first % voyage->depth];
    if (result >= 0)
        *moved += (uint64_t)result;
    return result >= 0 || result == IN_FLIGHT || is_doubtful(voyage, -result) ? 0 : result;
}

static unsigned choose_depth(const struct hipio_uring_trip *trip)
{
    return trip->depth < 1                       ? 1
           : trip->depth > HIPIO_URING_DEPTH_MAX ? HIPIO_URING_DEPTH_MAX
                                                 : trip->depth;
}

int hipio_uring_move(const struct hipio_uring_trip *trip, uint64_t *moved)
{
    struct hipio_standing piece;
    const bool standing =
        trip->registered && hipio_standing_find(trip->memory, trip->length, &piece);
    const unsigned depth = choose_depth(trip);

    *moved = 0;
    struct hipio_uring_ring *ring = hipio_uring_ring_borrow(depth, standing ? &piece : NULL);
    if (!ring)
        return -ENOTSUP;
    struct voyage voyage = {
        .trip = trip,
        .uring = ring->uring,
        .registered = ring->registered,
        .depth = depth,
    };
    sail(&voyage);
    hipio_uring_ring_return(ring, voyage.broken);
    const int status = sum_up(&voyage, moved);
    hipio_stats_add(HIPIO_COUNT_uring_bytes, (int64_t)*moved);
    if (voyage.registered)
        hipio_stats_add(HIPIO_COUNT_registered_bytes, (int64_t)*moved);
    return status;
}
