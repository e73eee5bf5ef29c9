/* SPDX-License-Identifier: MIT */
/* What libcuda offers to the simulated libcufile: the same process state, memory and faults. */
#pragma once

#include "counters.h"
#include "memory.h"
#include "process.h"

struct hipsim_bridge {
    int (*enter)(const char *name, enum hipsim_need need);
    struct hipsim_fault (*fault)(void); /* of the call that was entered last in this thread */
    int (*resolve)(const void *pointer, size_t bytes, struct hipsim_range *range);
    void (*put)(struct hipsim_range *range);
    void (*count)(enum hipsim_counter_id id, int64_t amount);
};

/* Exported by the CUDA face only. */
__attribute__((visibility("default"))) const struct hipsim_bridge *hipsim_bridge_get(void);
