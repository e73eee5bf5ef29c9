/* SPDX-License-Identifier: MIT */
/*
 * Split: which bytes of a run a path with alignment rules may move. Pure.
 *
 * A run is contiguous in memory and in the file. Its body begins and ends at file offsets that the
 * rules allow and at memory that they allow; head and tail are what is left over, and they are
 * moved by a path without rules. No byte outside the run is ever touched, so that two writers of
 * one page never undo each other.
 */
#pragma once
#include <stdint.h>

struct hipio_split_rule {
    uint64_t offset; /* file offset and length are multiples of it, > 0 */
    uint64_t memory; /* the address is a multiple of it, > 0 */
    uint64_t least;  /* a shorter body is not worth it */
};

struct hipio_split {
    uint64_t head;
    uint64_t body;
    uint64_t tail;
};

/* head + body + tail is the length. Without a body, all of it is head. */
struct hipio_split hipio_split_make(const struct hipio_split_rule *rule, uintptr_t address,
                                    int64_t offset, uint64_t length);
