/* SPDX-License-Identifier: MIT */
/*
 * Stats: counters that can neither fail nor cause a retry. Adding is one relaxed atomic; readers
 * may see counters of one event at different times.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum hipio_counter {
#define COUNTER(name, help) HIPIO_COUNT_##name,
#include "stats.def"
#undef COUNTER
    HIPIO_COUNTERS
};

void hipio_stats_add(enum hipio_counter counter, int64_t amount);
/* Adds to `now` and keeps the highest value in `peak`. */
void hipio_stats_level(enum hipio_counter now, enum hipio_counter peak, int64_t amount);
uint64_t hipio_stats_get(enum hipio_counter counter);
const char *hipio_stats_name(enum hipio_counter counter);
const char *hipio_stats_help(enum hipio_counter counter);
/* Where the value lives, for MPI_T; lives as long as the process. */
const uint64_t *hipio_stats_address(enum hipio_counter counter);

/* Counters of one backend, by its index in the table (out of range: ignored). */
enum hipio_backend_counter {
    HIPIO_BACKEND_REQUESTS,
    HIPIO_BACKEND_READ,
    HIPIO_BACKEND_WRITTEN,
    HIPIO_BACKEND_FALLBACKS,
    HIPIO_BACKEND_COUNTERS
};
#define HIPIO_STATS_BACKENDS 16
void hipio_stats_backend_add(size_t backend, enum hipio_backend_counter counter, uint64_t amount);
uint64_t hipio_stats_backend_get(size_t backend, enum hipio_backend_counter counter);
const uint64_t *hipio_stats_backend_address(size_t backend, enum hipio_backend_counter counter);
/* The backend's name in the report; must live as long as the process. */
void hipio_stats_backend_name(size_t backend, const char *name);

/* One event of a fallback with its reason (negative errno); readable by reason. */
void hipio_stats_fallback_reason(int error);
uint64_t hipio_stats_fallbacks_by_reason(int error);

/* Sets all to zero (tests). */
void hipio_stats_reset(void);
/* The report in lines of text, at most `size` bytes, of what is not 0; for HIPIO_STATS and tools.
 */
void hipio_stats_report(char *out, size_t size);
