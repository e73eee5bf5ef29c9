/* SPDX-License-Identifier: MIT */
/*
 * Swap: reverses elements in place, group by group.
 */
#include "swap.h"
#include <string.h>

bool hipio_swap_valid(const struct hipio_swap *swap)
{
    uint64_t sum = 0;

    if (swap->n == 0 || !swap->group)
        return false;
    for (uint64_t i = 0; i < swap->n; i++) {
        const struct hipio_swap_group *group = &swap->group[i];
        if (group->size == 0 || group->size > HIPIO_SWAP_ELEMENT_MAX ||
            group->bytes % group->size != 0)
            return false;
        if (__builtin_add_overflow(sum, group->bytes, &sum))
            return false;
    }
    return sum > 0 && sum == swap->period;
}

/* The group that `inside` (a position inside the period) falls into, and where that group starts.
 */
static const struct hipio_swap_group *find_group(const struct hipio_swap *swap, uint64_t inside,
                                                 uint64_t *start)
{
    const struct hipio_swap_group *group = swap->group;

    *start = 0;
    while (inside - *start >= group->bytes) {
        *start += group->bytes;
        group++;
    }
    return group;
}

uint64_t hipio_swap_align(const struct hipio_swap *swap, uint64_t position)
{
    uint64_t start;

    if (!swap)
        return position;
    uint64_t inside = position % swap->period;
    const struct hipio_swap_group *group = find_group(swap, inside, &start);
    return position - (inside - start) % group->size;
}

static void reverse_bytes(unsigned char *element, uint32_t size)
{
    for (uint32_t i = 0, j = size - 1; i < j; i++, j--) {
        unsigned char byte = element[i];
        element[i] = element[j];
        element[j] = byte;
    }
}

/* The sizes of all ordinary types go by whole words; memcpy because nothing is aligned here. */
static void reverse_elements(unsigned char *at, uint64_t bytes, uint32_t size)
{
    if (size == 2) {
        for (uint64_t i = 0; i < bytes; i += 2) {
            uint16_t word;
            memcpy(&word, at + i, 2);
            word = __builtin_bswap16(word);
            memcpy(at + i, &word, 2);
        }
    } else if (size == 4) {
        for (uint64_t i = 0; i < bytes; i += 4) {
            uint32_t word;
            memcpy(&word, at + i, 4);
            word = __builtin_bswap32(word);
            memcpy(at + i, &word, 4);
        }
    } else if (size == 8) {
        for (uint64_t i = 0; i < bytes; i += 8) {
            uint64_t word;
            memcpy(&word, at + i, 8);
            word = __builtin_bswap64(word);
            memcpy(at + i, &word, 8);
        }
    } else if (size > 1) {
        for (uint64_t i = 0; i < bytes; i += size)
            reverse_bytes(at + i, size);
    }
}

void hipio_swap_apply(const struct hipio_swap *swap, uint64_t position, void *buffer,
                      uint64_t bytes)
{
    uint64_t start;
    uint64_t inside = position % swap->period;
    const struct hipio_swap_group *group = find_group(swap, inside, &start);
    const struct hipio_swap_group *end = swap->group + swap->n;
    unsigned char *at = buffer;
    uint64_t left_in_group = group->bytes - (inside - start);

    while (bytes > 0) {
        uint64_t n = bytes < left_in_group ? bytes : left_in_group;
        reverse_elements(at, n - n % group->size, group->size);
        at += n;
        bytes -= n;
        if (++group == end)
            group = swap->group;
        left_in_group = group->bytes;
    }
}
