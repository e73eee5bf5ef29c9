/* SPDX-License-Identifier: MIT */
/*
 * Pattern: bytes that tell where they came from. The byte at `position` of stream `seed` follows
 * from both alone, so that a displaced, repeated or stale byte shows, and nothing needs storing.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

unsigned char pattern_byte(uint64_t seed, uint64_t position);
void pattern_fill(void *out, uint64_t seed, uint64_t position, size_t bytes);
/* Index of the first byte that differs from the pattern, or `bytes`. */
size_t pattern_check(const void *in, uint64_t seed, uint64_t position, size_t bytes);
