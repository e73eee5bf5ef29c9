/* SPDX-License-Identifier: MIT */
/*
 * Slots: the pool of staging chunks.
 */
#include "slots.h"
#include "log.h"
#include "pulse.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

static struct {
    pthread_mutex_t lock; /* guards the rest; never held over a call of a GPU runtime */
    pthread_cond_t returned;
    struct hipio_slot *idle;
    uint64_t total;  /* pinned bytes: idle, lent, being allocated, and pinned by others */
    uint64_t others; /* of these, pinned by others */
    uint64_t lent;   /* lent, being allocated or being freed: a waiter will hear of them */
    bool refusal_told;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .returned = PTHREAD_COND_INITIALIZER};

static bool fits(const struct hipio_slot *slot, const struct hipio_slots_want *want)
{
    return slot->ops == want->ops && slot->device == want->device && slot->pulse == want->pulse &&
           slot->bytes == want->bytes;
}

/* Takes the first idle slot that fits `want`, or with `foreign` the first that doesn't. */
static struct hipio_slot *take_idle(const struct hipio_slots_want *want, bool foreign)
{
    for (struct hipio_slot **link = &pool.idle; *link; link = &(*link)->next) {
        struct hipio_slot *slot = *link;
        if (fits(slot, want) != foreign) {
            *link = slot->next;
            return slot;
        }
    }
    return NULL;
}

static void free_pinned(struct hipio_slot *slot)
{
    hipio_standing_end(&slot->standing);
    /* What was pinned before the device was reset is gone. */
    if (hipio_pulse_is_same(slot->ops, slot->device, slot->pulse))
        slot->ops->host_free(slot->device, slot->memory);
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, -(int64_t)slot->bytes);
    free(slot);
}

static void unreserve(uint64_t bytes)
{
    pool.total -= bytes;
    pool.lent -= bytes;
    pthread_cond_broadcast(&pool.returned);
}

/* Frees one idle slot of another kind, with the lock held on entry and exit. False: there is none.
 */
static bool evict_foreign(const struct hipio_slots_want *want)
{
    struct hipio_slot *slot = take_idle(want, true);
    if (!slot)
        return false;
    uint64_t bytes = slot->bytes;
    pool.lent += bytes;
    pthread_mutex_unlock(&pool.lock);
    free_pinned(slot);
    pthread_mutex_lock(&pool.lock);
    unreserve(bytes);
    return true;
}

static struct hipio_slot *new_pinned(const struct hipio_slots_want *want)
{
    struct hipio_slot *slot = calloc(1, sizeof *slot);
    if (!slot)
        return NULL;
    if (want->ops->host_alloc(want->device, want->bytes, &slot->memory) < 0) {
        free(slot);
        return NULL;
    }
    slot->bytes = want->bytes;
    slot->pinned = true;
    slot->ops = want->ops;
    slot->device = want->device;
    slot->pulse = want->pulse;
    hipio_standing_begin(&slot->standing, slot->memory, slot->bytes);
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, (int64_t)want->bytes);
    return slot;
}

/* Allocates within the limit, with the lock held on entry and exit. The bytes are reserved while
 * the lock is open. */
static struct hipio_slot *grow(const struct hipio_slots_want *want)
{
    pool.total += want->bytes;
    pool.lent += want->bytes;
    pthread_mutex_unlock(&pool.lock);
    struct hipio_slot *slot = new_pinned(want);
    pthread_mutex_lock(&pool.lock);
    if (!slot)
        unreserve(want->bytes);
    return slot;
}

static bool has_room(const struct hipio_slots_want *want)
{
    return want->bytes <= want->limit && pool.total <= want->limit - want->bytes;
}

/* One try, with the lock held on entry and exit: an idle slot, a new one, or one in place of idle
 * slots of other kinds. */
static struct hipio_slot *try_borrow(const struct hipio_slots_want *want, bool *refused)
{
    for (;;) {
        struct hipio_slot *slot = take_idle(want, false);
        if (slot) {
            pool.lent += slot->bytes;
            return slot;
        }
        if (has_room(want)) {
            slot = grow(want);
            if (slot)
                return slot;
            *refused = true;
        }
        if (want->bytes > want->limit || !evict_foreign(want))
            return NULL;
        *refused = false;
    }
}

static void tell_refusal(const struct hipio_slots_want *want, bool refused, uint64_t in_use)
{
    struct rlimit locked;

    if (getrlimit(RLIMIT_MEMLOCK, &locked) < 0)
        locked.rlim_cur = 0;
    hipio_log_once(&pool.refusal_told, HIPIO_LOG_WARN,
                   "pinned memory %s: %llu bytes needed, %llu in use, pinned_limit %llu, "
                   "RLIMIT_MEMLOCK %lld (-1: none); staging goes through ordinary memory, slower",
                   refused ? "was refused" : "does not fit the setting pinned_limit",
                   (unsigned long long)want->bytes, (unsigned long long)in_use,
                   (unsigned long long)want->limit,
                   locked.rlim_cur == RLIM_INFINITY ? -1LL : (long long)locked.rlim_cur);
}

static int new_unpinned(const struct hipio_slots_want *want, struct hipio_slot **out)
{
    struct hipio_slot *slot = calloc(1, sizeof *slot);
    if (!slot || posix_memalign(&slot->memory, 4096, want->bytes) != 0) {
        free(slot);
        return hipio_status_set(-ENOMEM,
                                "no memory for a staging chunk of %llu bytes; lower chunk_size",
                                (unsigned long long)want->bytes);
    }
    slot->bytes = want->bytes;
    hipio_stats_add(HIPIO_COUNT_unpinned_slots, 1);
    *out = slot;
    return 0;
}

int hipio_slots_borrow(const struct hipio_slots_want *want, bool wait, struct hipio_slot **out)
{
    struct hipio_slot *slot;
    bool refused = false;

    pthread_mutex_lock(&pool.lock);
    for (;;) {
        refused = false;
        slot = try_borrow(want, &refused);
        /* Waiting helps only while someone holds what could be given back. */
        if (slot || !wait || pool.lent == 0 || want->bytes > want->limit)
            break;
        pthread_cond_wait(&pool.returned, &pool.lock);
    }
    uint64_t in_use = pool.total;
    pthread_mutex_unlock(&pool.lock);

    if (slot) {
        *out = slot;
        return 0;
    }
    if (!wait)
        return -EAGAIN;
    tell_refusal(want, refused, in_use);
    return new_unpinned(want, out);
}

void hipio_slots_return(struct hipio_slot *slot)
{
    if (!slot)
        return;
    if (!slot->pinned) {
        free(slot->memory);
        free(slot);
        return;
    }
    pthread_mutex_lock(&pool.lock);
    pool.lent -= slot->bytes;
    slot->next = pool.idle;
    pool.idle = slot;
    pthread_cond_broadcast(&pool.returned);
    pthread_mutex_unlock(&pool.lock);
}

bool hipio_slots_reserve(uint64_t bytes, uint64_t limit)
{
    const struct hipio_slots_want nothing = {.device = -1};

    pthread_mutex_lock(&pool.lock);
    bool fits_in = bytes <= limit && pool.total <= limit - bytes;
    while (!fits_in && bytes <= limit && evict_foreign(&nothing))
        fits_in = pool.total <= limit - bytes;
    if (fits_in) {
        pool.total += bytes;
        pool.others += bytes;
    }
    pthread_mutex_unlock(&pool.lock);
    if (fits_in)
        hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, (int64_t)bytes);
    return fits_in;
}

void hipio_slots_unreserve(uint64_t bytes)
{
    pthread_mutex_lock(&pool.lock);
    pool.total -= bytes;
    pool.others -= bytes;
    pthread_cond_broadcast(&pool.returned);
    pthread_mutex_unlock(&pool.lock);
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, -(int64_t)bytes);
}

void hipio_slots_shutdown(void)
{
    pthread_mutex_lock(&pool.lock);
    struct hipio_slot *slot = pool.idle;
    pool.idle = NULL;
    pool.total = pool.lent + pool.others;
    pthread_mutex_unlock(&pool.lock);
    while (slot) {
        struct hipio_slot *next = slot->next;
        free_pinned(slot);
        slot = next;
    }
}
