/* SPDX-License-Identifier: MIT */
/*
 * Rings: the idle ones, the last used first, and which memory each has registered.
 */
#include "storage/uring_ring.h"
#include "log.h"
#include "stats.h"
#include "storage/uring.h"
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* A ring is a descriptor. The application needs its own more. */
#define RINGS_MAX 64u
#define DESCRIPTORS_PER_RING 16u

struct ring {
    struct hipio_uring_ring face; /* first: a pointer to one is a pointer to the other */
    struct io_uring uring;
    unsigned depth;
    uint64_t serial; /* of the standing memory that it serves; 0: none */
    struct ring *next;
};

enum answer { UNKNOWN, ABLE, UNABLE };

static struct {
    pthread_mutex_t lock; /* guards idle and made; no call of the kernel is made with it held */
    struct ring *idle;
    unsigned made;           /* rings, idle and lent and being made */
    bool refused;            /* atomic: the kernel has said no to io_uring */
    enum answer registering; /* atomic: what it says to registered buffers */
} rings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_refused(void)
{
    return __atomic_load_n(&rings.refused, __ATOMIC_RELAXED);
}

void hipio_uring_ring_refuse(int err)
{
    static bool told;

    __atomic_store_n(&rings.refused, true, __ATOMIC_RELAXED);
    hipio_log_once(&told, HIPIO_LOG_WARN,
                   "io_uring is refused here (%s%s): files are read and written by ordinary calls",
                   strerror(err), err == ENOMEM ? ", see ulimit -l" : "");
}

/* ---- Registered buffers ---- */

static void tell_refusal(int err)
{
    static bool told;

    hipio_stats_add(HIPIO_COUNT_registrations_refused, 1);
    hipio_log_once(
        &told, HIPIO_LOG_INFO,
        "staging memory can't be registered with io_uring (%s%s): the kernel pins it for "
        "each transfer",
        strerror(err), err == ENOMEM ? ", see ulimit -l" : "");
}

static enum answer can_register(void)
{
    return __atomic_load_n(&rings.registering, __ATOMIC_RELAXED);
}

static void set_registering(enum answer answer)
{
    __atomic_store_n(&rings.registering, answer, __ATOMIC_RELAXED);
}

/*
 * Sparse tables came with Linux 5.19, and so did the rule that a pinned page stays the process's
 * own when it forks or swaps. On older kernels a write to the memory could move it to a page that
 * the ring does not know: they are asked for what they don't have, and their refusal is taken.
 */
static void try_registering(struct ring *ring)
{
    int err = -io_uring_register_buffers_sparse(&ring->uring, 1);

    if (err == 0)
        err = -io_uring_unregister_buffers(&ring->uring);
    if (err != 0)
        tell_refusal(err);
    set_registering(err == 0 ? ABLE : UNABLE);
}

/* Is it about this memory, or about everything? */
static bool is_about_memory(int err)
{
    return err == ENOMEM || err == EFAULT || err == EOPNOTSUPP;
}

static void register_memory(struct ring *ring, const struct hipio_standing *piece)
{
    const struct iovec iov = {piece->memory, piece->bytes};

    if (can_register() == UNKNOWN)
        try_registering(ring);
    if (can_register() == UNABLE)
        return;
    const int err = -io_uring_register_buffers(&ring->uring, &iov, 1);
    ring->face.registered = err == 0;
    if (err == 0)
        return;
    tell_refusal(err);
    if (!is_about_memory(err))
        set_registering(UNABLE);
}

/* The ring serves no memory any more. The pages are free on return: taking a whole table away waits
 * for that, where replacing an entry may leave it for later. 0 or what the kernel said. */
static int release_memory(struct ring *ring)
{
    const int err = ring->face.registered ? -io_uring_unregister_buffers(&ring->uring) : 0;

    ring->face.registered = false;
    ring->serial = 0;
    return err;
}

/* ---- Making and unmaking ---- */

static unsigned most_rings(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / DESCRIPTORS_PER_RING >= RINGS_MAX)
        return RINGS_MAX;
    const unsigned rings_allowed = (unsigned)limit.rlim_cur / DESCRIPTORS_PER_RING;
    return rings_allowed > 0 ? rings_allowed : 1;
}

static bool take_place(void)
{
    const unsigned most = most_rings();

    pthread_mutex_lock(&rings.lock);
    const bool free_place = rings.made < most;
    rings.made += free_place;
    pthread_mutex_unlock(&rings.lock);
    return free_place;
}

/* How many are left. */
static unsigned leave_place(void)
{
    pthread_mutex_lock(&rings.lock);
    const unsigned left = --rings.made;
    pthread_mutex_unlock(&rings.lock);
    return left;
}

static struct ring *create_ring(unsigned depth)
{
    if (!take_place())
        return NULL;
    struct ring *ring = calloc(1, sizeof *ring);
    const int err = ring ? -io_uring_queue_init(depth, &ring->uring, 0) : 0;
    if (ring && err == 0) {
        ring->face.uring = &ring->uring;
        ring->depth = depth;
        return ring;
    }
    free(ring);
    const unsigned others = leave_place();
    /* Too many descriptors is a state of the process, not an answer about io_uring, and so is a
     * limit of locked memory that rings before this one and their buffers have used up. */
    if (err != 0 && err != EMFILE && err != ENFILE && (err != ENOMEM || others == 0))
        hipio_uring_ring_refuse(err);
    return NULL;
}

static void destroy_ring(struct ring *ring)
{
    /* Closing a ring would release the memory too, but later, and never while a forked child has
     * the descriptor. */
    release_memory(ring);
    io_uring_queue_exit(&ring->uring);
    free(ring);
    leave_place();
}

/* ---- Lending ---- */

static struct ring *take(struct ring **link)
{
    struct ring *ring = *link;

    if (ring)
        *link = ring->next;
    return ring;
}

static void put(struct ring *ring)
{
    pthread_mutex_lock(&rings.lock);
    ring->next = rings.idle;
    rings.idle = ring;
    pthread_mutex_unlock(&rings.lock);
}

/* An idle ring that serves this memory. */
static struct ring *take_serving(uint64_t serial)
{
    pthread_mutex_lock(&rings.lock);
    struct ring **link = &rings.idle;
    while (*link && (*link)->serial != serial)
        link = &(*link)->next;
    struct ring *ring = take(link);
    pthread_mutex_unlock(&rings.lock);
    return ring;
}

/* An idle ring of this depth; `any`: also one that serves some memory, the longest unused one. */
static struct ring *take_deep(unsigned depth, bool any)
{
    struct ring **found = NULL, *ring = NULL;

    pthread_mutex_lock(&rings.lock);
    for (struct ring **link = &rings.idle; *link; link = &(*link)->next)
        if ((*link)->depth >= depth && (any || (*link)->serial == 0))
            found = link;
    if (found)
        ring = take(found);
    pthread_mutex_unlock(&rings.lock);
    return ring;
}

static void give_back(struct ring *ring, bool broken)
{
    if (broken)
        destroy_ring(ring);
    else
        put(ring);
}

/* Called where memory ends (standing.h). */
static void forget(uint64_t serial)
{
    struct ring *ring;

    while ((ring = take_serving(serial)))
        give_back(ring, release_memory(ring) != 0);
}

static void watch(void)
{
    hipio_standing_watch(forget);
}

/* Makes the ring serve `piece`. NULL: it has been destroyed. */
static struct ring *dedicate(struct ring *ring, const struct hipio_standing *piece)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (release_memory(ring) != 0) {
        destroy_ring(ring);
        return NULL;
    }
    if (piece) {
        pthread_once(&once, watch);
        ring->serial = piece->serial;
        register_memory(ring, piece);
    }
    return ring;
}

static struct ring *borrow(unsigned depth, const struct hipio_standing *piece)
{
    struct ring *ring = piece ? take_serving(piece->serial) : NULL;

    if (ring && ring->depth >= depth)
        return ring;
    /* Of use for nothing but this memory, and too small for it. */
    if (ring)
        destroy_ring(ring);
    ring = take_deep(depth, false);
    if (!ring)
        ring = create_ring(depth);
    if (!ring)
        ring = take_deep(depth, true);
    return ring ? dedicate(ring, piece) : NULL;
}

struct hipio_uring_ring *hipio_uring_ring_borrow(unsigned depth, const struct hipio_standing *piece)
{
    if (is_refused())
        return NULL;
    struct ring *ring = borrow(depth, can_register() == UNABLE ? NULL : piece);
    return ring ? &ring->face : NULL;
}

void hipio_uring_ring_return(struct hipio_uring_ring *ring, bool broken)
{
    give_back((struct ring *)ring, broken);
}

void hipio_uring_shutdown(void)
{
    struct ring *ring;

    while ((ring = take_deep(0, true)))
        destroy_ring(ring);
}
