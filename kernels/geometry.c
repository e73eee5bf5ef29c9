/* SPDX-License-Identifier: MIT */
/*
 * Geometry: how many blocks a launch gets.
 */
#include "kernels.h"

#define BYTES_OF_BLOCK ((uint64_t)HIPIO_KERNEL_THREADS * 16)
/* Enough to hide the latency of the bus; more would only wait. */
#define BLOCKS_OF_MULTIPROCESSOR 8
#define MULTIPROCESSORS_ASSUMED 60

unsigned hipio_kernel_blocks(uint64_t bytes, int multiprocessors)
{
    /* A range may begin inside a cell and so touch one more. */
    uint64_t wanted = bytes / BYTES_OF_BLOCK + 1;
    uint64_t most = multiprocessors > 0 ? (uint64_t)multiprocessors : MULTIPROCESSORS_ASSUMED;

    most *= BLOCKS_OF_MULTIPROCESSOR;
    return (unsigned)(wanted < most ? wanted : most);
}
