/* SPDX-License-Identifier: MIT */
/*
 * Standing: a list. There are as many entries as staging chunks, a few dozen, and a question is
 * asked per transfer of half a MiB and more.
 */
#include "standing.h"
#include <pthread.h>
#include <stddef.h>

static struct {
    pthread_mutex_t lock; /* guards the rest; nothing is called with it held */
    struct hipio_standing *first;
    uint64_t serials; /* given out so far */
    void (*gone)(uint64_t serial);
} standing = {.lock = PTHREAD_MUTEX_INITIALIZER};

void hipio_standing_begin(struct hipio_standing *piece, void *memory, uint64_t bytes)
{
    pthread_mutex_lock(&standing.lock);
    *piece = (struct hipio_standing){memory, bytes, ++standing.serials, standing.first};
    standing.first = piece;
    pthread_mutex_unlock(&standing.lock);
}

void hipio_standing_end(struct hipio_standing *piece)
{
    pthread_mutex_lock(&standing.lock);
    struct hipio_standing **link = &standing.first;
    while (*link != piece)
        link = &(*link)->next;
    *link = piece->next;
    void (*gone)(uint64_t) = standing.gone;
    pthread_mutex_unlock(&standing.lock);
    if (gone)
        gone(piece->serial);
}

static bool holds(const struct hipio_standing *piece, const void *memory, uint64_t bytes)
{
    const uintptr_t start = (uintptr_t)piece->memory, at = (uintptr_t)memory;

    return at >= start && at - start <= piece->bytes && bytes <= piece->bytes - (at - start);
}

bool hipio_standing_find(const void *memory, uint64_t bytes, struct hipio_standing *out)
{
    pthread_mutex_lock(&standing.lock);
    const struct hipio_standing *piece = standing.first;
    while (piece && !holds(piece, memory, bytes))
        piece = piece->next;
    if (piece)
        *out = *piece;
    pthread_mutex_unlock(&standing.lock);
    return piece != NULL;
}

void hipio_standing_watch(void (*gone)(uint64_t serial))
{
    pthread_mutex_lock(&standing.lock);
    standing.gone = gone;
    pthread_mutex_unlock(&standing.lock);
}
