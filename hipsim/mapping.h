/* SPDX-License-Identifier: MIT */
/* Address space: the two views of device memory, guard pages, poison and the quarantine of freed
 * ranges. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hipsim_mapping {
    char *pointer; /* what the application sees */
    char *view;    /* what the simulator uses; equal to pointer when the host may touch it */
    size_t length; /* whole pages, without the guard page behind */
};

/* Returns 0 or -1. `split`: the application's pointer faults on every access. */
int hipsim_mapping_create(size_t bytes, bool split, struct hipsim_mapping *mapping);
/* Frees the pages at once; the address range faults for a while before it is used again. */
void hipsim_mapping_destroy(const struct hipsim_mapping *mapping);
/* Frees the pages; both addresses stay reserved, without any memory behind them. */
void hipsim_mapping_withdraw(const struct hipsim_mapping *mapping);
/* Was the address freed so recently that nothing else can be there? */
bool hipsim_mapping_is_freed(const void *pointer);
/* An address range of its own without any memory behind it. */
char *hipsim_mapping_reserve(size_t bytes);
