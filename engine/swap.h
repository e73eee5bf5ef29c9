/* SPDX-License-Identifier: MIT */
/*
 * Swap: byte order change of packed data on its way (external32). Positions are packed positions of
 * the memory layout, whose position 0 starts a period.
 */
#pragma once
#include "request.h"
#include <stdbool.h>
#include <stdint.h>

/* The largest element there may be: a staging chunk is never shorter. */
#define HIPIO_SWAP_ELEMENT_MAX 4096

/* True if the description is sound: groups fill the period exactly, elements fill their group. */
bool hipio_swap_valid(const struct hipio_swap *swap);

/* The largest element boundary <= position; the position itself without a swap. */
uint64_t hipio_swap_align(const struct hipio_swap *swap, uint64_t position);

/*
 * Reverses each element of `buffer`, which holds the bytes at [position, position + bytes);
 * `position` is an element boundary. An element of which only a part is there (a file may end
 * inside one) keeps its bytes as they are.
 */
void hipio_swap_apply(const struct hipio_swap *swap, uint64_t position, void *buffer,
                      uint64_t bytes);
