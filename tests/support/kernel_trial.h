/* SPDX-License-Identifier: MIT */
/*
 * Kernel trial: a random call of the kernel and the same by plain loops, for tests of its C form
 * and of its GPU forms.
 */
#pragma once
#include "kernels.h"
#include <stddef.h>
#include <stdint.h>

#define TRIAL_ARENA ((size_t)1 << 16)
#define TRIAL_PACKED_MAX ((size_t)6016)
#define TRIAL_ENTRIES_MAX 300

/* One random case: the argument, and where in the arena each packed byte lies. */
struct trial {
    struct hipio_kernel_move move;
    union {
        int64_t offset[TRIAL_PACKED_MAX];
        struct hipio_kernel_entry entry[TRIAL_ENTRIES_MAX];
    } table;
    int64_t place[2 * TRIAL_PACKED_MAX];
    size_t bytes;
    size_t packed_at; /* offset of the packed range in its buffer */
};

struct trial_buffers {
    unsigned char memory[TRIAL_ARENA] __attribute__((aligned(64)));
    unsigned char packed[TRIAL_PACKED_MAX + 64] __attribute__((aligned(64)));
};

/* Random numbers below a limit; the seed that leads to the next ones. */
uint64_t trial_draw(uint64_t below);
uint64_t trial_seed(void);

void trial_fill(struct trial_buffers *buffers);
/* `move.memory` is left relative to the arena, `move.packed` 0; both are the caller's to set, as is
 * `move.table` where it is not the trial's own. */
void trial_make(struct trial *trial);
/* The trial by plain loops. */
void trial_run_plainly(const struct trial *trial, struct trial_buffers *buffers);
