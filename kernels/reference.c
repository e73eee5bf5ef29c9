/* SPDX-License-Identifier: MIT */
/*
 * Reference: the kernel over plain memory, one simulated thread after the other. What the GPU must
 * do, in a form that sanitizers can watch.
 */
#include "host.inc"
#include "kernels.h"

static inline void *hipio_reach(uint64_t address, uint64_t bytes)
{
    (void)bytes;
    return (void *)(uintptr_t)address;
}

#include "move.inc"

void hipio_kernel_run_on_host(const struct hipio_kernel_move *move, unsigned blocks)
{
    const uint64_t threads = (uint64_t)blocks * HIPIO_KERNEL_THREADS;

    for (uint64_t thread = 0; thread < threads; thread++)
        hipio_move_run(*move, (struct hipio_place){.first = thread, .step = threads});
}
