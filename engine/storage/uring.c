/* SPDX-License-Identifier: MIT */
/*
 * Uring: rings, lent to one thread at a time, and the window of blocks that are in flight.
 */
#include "storage/uring.h"
#include "log.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <liburing.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Rings ---- */

struct ring {
    struct io_uring uring;
    unsigned depth;
    struct ring *next;
};

static struct {
    pthread_mutex_t lock; /* guards idle */
    struct ring *idle;
    bool refused; /* atomic: the kernel has said no */
} rings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_refused(void)
{
    return __atomic_load_n(&rings.refused, __ATOMIC_RELAXED);
}

static void refuse(int err)
{
    static bool told;

    __atomic_store_n(&rings.refused, true, __ATOMIC_RELAXED);
    hipio_log_once(&told, HIPIO_LOG_WARN,
                   "io_uring is refused here (%s%s): files are read and written by ordinary calls",
                   strerror(err), err == ENOMEM ? ", see ulimit -l" : "");
}

static struct ring *take_idle(unsigned depth)
{
    struct ring *ring;

    pthread_mutex_lock(&rings.lock);
    struct ring **link = &rings.idle;
    while ((ring = *link) && ring->depth != depth)
        link = &ring->next;
    if (ring)
        *link = ring->next;
    pthread_mutex_unlock(&rings.lock);
    return ring;
}

static struct ring *borrow_ring(unsigned depth)
{
    struct ring *ring = take_idle(depth);

    if (ring)
        return ring;
    ring = calloc(1, sizeof *ring);
    const int err = ring ? -io_uring_queue_init(depth, &ring->uring, 0) : 0;
    if (ring && err == 0) {
        ring->depth = depth;
        return ring;
    }
    free(ring);
    /* Too many descriptors is a state of the process, not an answer about io_uring. */
    if (err != 0 && err != EMFILE && err != ENFILE)
        refuse(err);
    return NULL;
}

static void destroy_ring(struct ring *ring)
{
    io_uring_queue_exit(&ring->uring);
    free(ring);
}

static void return_ring(struct ring *ring)
{
    pthread_mutex_lock(&rings.lock);
    ring->next = rings.idle;
    rings.idle = ring;
    pthread_mutex_unlock(&rings.lock);
}

void hipio_uring_shutdown(void)
{
    pthread_mutex_lock(&rings.lock);
    struct ring *ring = rings.idle;
    rings.idle = NULL;
    pthread_mutex_unlock(&rings.lock);
    while (ring) {
        struct ring *next = ring->next;
        destroy_ring(ring);
        ring = next;
    }
}

/* ---- A transfer ---- */

#define IN_FLIGHT INT_MIN

/* Blocks [first, next) were prepared and have not all moved; each has a place for its result. */
struct voyage {
    struct io_uring *uring;
    int fd;
    enum hipio_op op;
    char *memory;
    int64_t offset;
    uint64_t length;
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
    const uint64_t left = voyage->length - block * HIPIO_URING_BLOCK;

    return left < HIPIO_URING_BLOCK ? left : HIPIO_URING_BLOCK;
}

static bool is_left(const struct voyage *voyage)
{
    return voyage->next * HIPIO_URING_BLOCK < voyage->length;
}

static void prepare_block(struct voyage *voyage, struct io_uring_sqe *sqe)
{
    const uint64_t start = voyage->next * HIPIO_URING_BLOCK;
    const unsigned bytes = (unsigned)block_bytes(voyage, voyage->next);
    const uint64_t offset = (uint64_t)voyage->offset + start;

    if (voyage->op == HIPIO_READ)
        io_uring_prep_read(sqe, voyage->fd, voyage->memory + start, bytes, offset);
    else
        io_uring_prep_write(sqe, voyage->fd, voyage->memory + start, bytes, offset);
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
            refuse(-n);
            strand(voyage);
        }
        reap(voyage);
        advance(voyage);
    }
}

/* Answers of io_uring or of the moment, after which an ordinary call may well succeed. */
static bool is_doubtful(int err)
{
    return err == EAGAIN || err == EINTR || err == EINVAL || err == EOPNOTSUPP ||
           err == ECANCELED || err == ENOSYS || err == EPERM;
}

static int sum_up(const struct voyage *voyage, uint64_t *moved)
{
    const uint64_t start = voyage->first * HIPIO_URING_BLOCK;

    *moved = start < voyage->length ? start : voyage->length;
    if (voyage->first == voyage->next)
        return 0;
    const int result = voyage->result[voyage->first % voyage->depth];
    if (result >= 0)
        *moved += (uint64_t)result;
    return result >= 0 || result == IN_FLIGHT || is_doubtful(-result) ? 0 : result;
}

int hipio_uring_move(int fd, enum hipio_op op, void *memory, int64_t offset, uint64_t length,
                     unsigned depth, uint64_t *moved)
{
    struct ring *ring;

    *moved = 0;
    depth = depth < 1 ? 1 : depth > HIPIO_URING_DEPTH_MAX ? HIPIO_URING_DEPTH_MAX : depth;
    ring = is_refused() ? NULL : borrow_ring(depth);
    if (!ring)
        return -ENOTSUP;
    struct voyage voyage = {
        .uring = &ring->uring,
        .fd = fd,
        .op = op,
        .memory = memory,
        .offset = offset,
        .length = length,
        .depth = depth,
    };
    sail(&voyage);
    if (voyage.broken)
        destroy_ring(ring);
    else
        return_ring(ring);
    const int status = sum_up(&voyage, moved);
    hipio_stats_add(HIPIO_COUNT_uring_bytes, (int64_t)*moved);
    return status;
}
