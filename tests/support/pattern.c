/* SPDX-License-Identifier: MIT */
/*
 * Pattern: bytes that tell where they came from.
 */
#include "pattern.h"

unsigned char pattern_byte(uint64_t seed, uint64_t position)
{
    uint64_t x = (position + 1) * 0x9e3779b97f4a7c15u ^ (seed + 1) * 0xd6e8feb86659fd93u;

    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return (unsigned char)(x >> 56);
}

void pattern_fill(void *out, uint64_t seed, uint64_t position, size_t bytes)
{
    unsigned char *to = out;

    for (size_t i = 0; i < bytes; i++)
        to[i] = pattern_byte(seed, position + i);
}

size_t pattern_check(const void *in, uint64_t seed, uint64_t position, size_t bytes)
{
    const unsigned char *from = in;
    size_t i = 0;

    while (i < bytes && from[i] == pattern_byte(seed, position + i))
        i++;
    return i;
}
