/* SPDX-License-Identifier: MIT */
/*
 * Split: head, body, tail.
 */
#include "split.h"

struct hipio_split hipio_split_make(const struct hipio_split_rule *rule, uintptr_t address,
                                    int64_t offset, uint64_t length)
{
    const uint64_t over = (uint64_t)offset % rule->offset;
    const uint64_t head = over ? rule->offset - over : 0;
    struct hipio_split split = {.head = length};

    if (head >= length || (address + head) % rule->memory != 0)
        return split;
    const uint64_t tail = (length - head) % rule->offset;
    const uint64_t body = length - head - tail;
    if (body == 0 || body < rule->least)
        return split;
    return (struct hipio_split){head, body, tail};
}
