/* SPDX-License-Identifier: MIT */
/*
 * Stats: plain 64-bit words that are only touched by relaxed atomic operations, so that MPI_T may
 * read them where they lie.
 */
#include "stats.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Errors beyond it are counted together. */
#define REASONS 256

static const struct description {
    const char *name;
    const char *help;
} descriptions[HIPIO_COUNTERS] = {
#define COUNTER(name, help) {#name, help},
#include "stats.def"
#undef COUNTER
};

static uint64_t counters[HIPIO_COUNTERS];
static uint64_t backends[HIPIO_STATS_BACKENDS][HIPIO_BACKEND_COUNTERS];
static uint64_t reasons[REASONS];
static const char *backend_names[HIPIO_STATS_BACKENDS];

static uint64_t add(uint64_t *word, uint64_t amount)
{
    return __atomic_add_fetch(word, amount, __ATOMIC_RELAXED);
}

static uint64_t get(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static bool known(enum hipio_counter counter)
{
    return (unsigned)counter < HIPIO_COUNTERS;
}

void hipio_stats_add(enum hipio_counter counter, int64_t amount)
{
    if (known(counter))
        add(&counters[counter], (uint64_t)amount);
}

void hipio_stats_level(enum hipio_counter now, enum hipio_counter peak, int64_t amount)
{
    if (!known(now) || !known(peak))
        return;
    const uint64_t level = add(&counters[now], (uint64_t)amount);
    uint64_t highest = get(&counters[peak]);

    /* A failed exchange reloads `highest`. Levels that went below zero are no peaks. */
    while ((int64_t)level > 0 && level > highest &&
           !__atomic_compare_exchange_n(&counters[peak], &highest, level, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

uint64_t hipio_stats_get(enum hipio_counter counter)
{
    return known(counter) ? get(&counters[counter]) : 0;
}

const char *hipio_stats_name(enum hipio_counter counter)
{
    return known(counter) ? descriptions[counter].name : "";
}

const char *hipio_stats_help(enum hipio_counter counter)
{
    return known(counter) ? descriptions[counter].help : "";
}

const uint64_t *hipio_stats_address(enum hipio_counter counter)
{
    return known(counter) ? &counters[counter] : NULL;
}

/* ---- Backends ---- */

static uint64_t *backend_word(size_t backend, enum hipio_backend_counter counter)
{
    if (backend >= HIPIO_STATS_BACKENDS || (unsigned)counter >= HIPIO_BACKEND_COUNTERS)
        return NULL;
    return &backends[backend][counter];
}

void hipio_stats_backend_add(size_t backend, enum hipio_backend_counter counter, uint64_t amount)
{
    uint64_t *word = backend_word(backend, counter);

    if (word)
        add(word, amount);
}

uint64_t hipio_stats_backend_get(size_t backend, enum hipio_backend_counter counter)
{
    const uint64_t *word = backend_word(backend, counter);

    return word ? get(word) : 0;
}

const uint64_t *hipio_stats_backend_address(size_t backend, enum hipio_backend_counter counter)
{
    return backend_word(backend, counter);
}

void hipio_stats_backend_name(size_t backend, const char *name)
{
    if (backend < HIPIO_STATS_BACKENDS)
        __atomic_store_n(&backend_names[backend], name, __ATOMIC_RELEASE);
}

/* ---- Reasons ---- */

static size_t reason_index(int error)
{
    const unsigned positive = error < 0 ? 0u - (unsigned)error : (unsigned)error;

    return positive < REASONS ? positive : 0;
}

void hipio_stats_fallback_reason(int error)
{
    add(&reasons[reason_index(error)], 1);
}

uint64_t hipio_stats_fallbacks_by_reason(int error)
{
    return get(&reasons[reason_index(error)]);
}

void hipio_stats_reset(void)
{
    for (size_t i = 0; i < HIPIO_COUNTERS; ++i)
        __atomic_store_n(&counters[i], 0, __ATOMIC_RELAXED);
    for (size_t i = 0; i < HIPIO_STATS_BACKENDS; ++i) {
        for (size_t k = 0; k < HIPIO_BACKEND_COUNTERS; ++k)
            __atomic_store_n(&backends[i][k], 0, __ATOMIC_RELAXED);
    }
    for (size_t i = 0; i < REASONS; ++i)
        __atomic_store_n(&reasons[i], 0, __ATOMIC_RELAXED);
}

/* ---- Report ---- */

/* Text that ends at a whole line when there is no more room. */
struct page {
    char *out;
    size_t size;
    size_t used;
    bool full;
};

static void __attribute__((format(printf, 2, 3)))
print_line(struct page *page, const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    const int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (page->full || length < 0 || (size_t)length >= sizeof line ||
        (size_t)length >= page->size - page->used) {
        page->full = true;
        return;
    }
    memcpy(page->out + page->used, line, (size_t)length + 1);
    page->used += (size_t)length;
}

/* "backend bounce: 3 requests, 77 bytes read", or nothing. */
static void print_backend(struct page *page, size_t backend)
{
    static const char *const words[HIPIO_BACKEND_COUNTERS] = {
        [HIPIO_BACKEND_REQUESTS] = "requests",
        [HIPIO_BACKEND_READ] = "bytes read",
        [HIPIO_BACKEND_WRITTEN] = "bytes written",
        [HIPIO_BACKEND_FALLBACKS] = "fallbacks",
    };
    const char *name = __atomic_load_n(&backend_names[backend], __ATOMIC_ACQUIRE);
    char number[32], list[HIPIO_BACKEND_COUNTERS * 40];
    int used = 0;

    for (size_t i = 0; i < HIPIO_BACKEND_COUNTERS; ++i) {
        const uint64_t value = get(&backends[backend][i]);

        if (value)
            used += snprintf(list + used, sizeof list - (size_t)used, "%s %llu %s", used ? "," : "",
                             (unsigned long long)value, words[i]);
    }
    snprintf(number, sizeof number, "%zu", backend);
    if (used)
        print_line(page, "backend %s:%s\n", name ? name : number, list);
}

static void print_reason(struct page *page, size_t reason)
{
    const uint64_t value = get(&reasons[reason]);
    char words[96];

    if (value)
        print_line(page, "fallbacks because of error %zu (%s): %llu\n", reason,
                   reason ? strerror_r((int)reason, words, sizeof words) : "any other",
                   (unsigned long long)value);
}

void hipio_stats_report(char *out, size_t size)
{
    struct page page = {.out = out, .size = size};

    if (size == 0)
        return;
    out[0] = '\0';
    for (size_t i = 0; i < HIPIO_COUNTERS; ++i) {
        const uint64_t value = get(&counters[i]);

        if (value)
            print_line(&page, "%s %llu (%s)\n", descriptions[i].name, (unsigned long long)value,
                       descriptions[i].help);
    }
    for (size_t i = 0; i < HIPIO_STATS_BACKENDS; ++i)
        print_backend(&page, i);
    for (size_t i = 0; i < REASONS; ++i)
        print_reason(&page, i);
    if (page.used == 0 && !page.full)
        print_line(&page, "all counters are 0\n");
}
