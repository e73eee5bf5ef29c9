/* SPDX-License-Identifier: MIT */
/*
 * Breaker: a few words per file, touched by relaxed atomics: a request that does not see the newest
 * one only tries a path once more.
 */
#include "breaker.h"
#include "backend.h"
#include "log.h"
#include "stats.h"
#include "status.h"
#include <stdlib.h>

/* Devices beyond it share words with others, which costs them a fast path at worst. */
#define DEVICES 32

struct word {
    unsigned failures; /* in a row */
    int reason;        /* 0: in use */
};

struct board {
    struct hipio_attachment attachment; /* first */
    struct word word[HIPIO_STATS_BACKENDS][DEVICES];
};

static char room;

static void destroy(struct hipio_attachment *attachment, bool forked)
{
    (void)forked;
    free(attachment);
}

static struct hipio_attachment *make(void)
{
    struct board *board = calloc(1, sizeof *board);

    if (!board)
        return NULL;
    board->attachment.destroy = destroy;
    return &board->attachment;
}

/* NULL: nothing is known, or no memory to know it. */
static struct word *word_of(struct hipio_file *file, size_t backend, int device, bool create)
{
    if (backend >= HIPIO_STATS_BACKENDS || device < 0)
        return NULL;
    struct board *board = (struct board *)hipio_file_attachment(file, &room, create ? make : NULL);
    return board ? &board->word[backend][device % DEVICES] : NULL;
}

int hipio_breaker_reason(struct hipio_file *file, size_t backend, int device)
{
    const struct word *word = word_of(file, backend, device, false);

    return word ? __atomic_load_n(&word->reason, __ATOMIC_RELAXED) : 0;
}

bool hipio_breaker_is_open(struct hipio_file *file, size_t backend, int device)
{
    return hipio_breaker_reason(file, backend, device) != 0;
}

void hipio_breaker_success(struct hipio_file *file, size_t backend, int device)
{
    struct word *word = word_of(file, backend, device, false);

    if (word && __atomic_load_n(&word->failures, __ATOMIC_RELAXED))
        __atomic_store_n(&word->failures, 0, __ATOMIC_RELAXED);
}

void hipio_breaker_failure(struct hipio_file *file, size_t backend, int device, int error,
                           bool for_good)
{
    struct word *word = word_of(file, backend, device, true);
    int none = 0;

    if (!word ||
        (__atomic_add_fetch(&word->failures, 1, __ATOMIC_RELAXED) < HIPIO_BREAKER_PATIENCE &&
         !for_good))
        return;
    if (!__atomic_compare_exchange_n(&word->reason, &none, error ? error : -1, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    const struct hipio_backend *which = hipio_backend_at(backend);
    hipio_stats_add(HIPIO_COUNT_given_up, 1);
    hipio_log(HIPIO_LOG_INFO, "%s: %s is not tried any more on this file: %s",
              hipio_file_name(file), which ? which->name : "a backend", hipio_status_text());
}
