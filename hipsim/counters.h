/* SPDX-License-Identifier: MIT */
/* Counts what the program made the simulated runtime do. */
#pragma once

#include <stdint.h>

enum hipsim_counter_id {
#define COUNTER(name, meaning) HIPSIM_COUNT_##name,
#include "counters.def"
#undef COUNTER
    HIPSIM_COUNT_MAX,
};

void hipsim_counters_add(enum hipsim_counter_id id, int64_t amount);
/* Adds to `id` and raises `peak` to its new value. */
void hipsim_counters_add_peak(enum hipsim_counter_id id, enum hipsim_counter_id peak,
                              int64_t amount);
/* Writes all counters where HIPSIM_STATS says. Called once, when the library is finished. */
void hipsim_counters_report(void);

/* Exported for tests, found with dlsym: the value of a counter, or -1 for an unknown name. */
__attribute__((visibility("default"))) long long hipsim_counter(const char *name);
