/* SPDX-License-Identifier: MIT */
/*
 * Uring: one contiguous transfer as many small ones that are in flight together, through io_uring.
 * Containers often forbid it; then, and where the library was built without liburing, the caller's
 * ordinary calls do the same work.
 */
#pragma once
#include "request.h"
#include <stdbool.h>
#include <stdint.h>

/* Bytes of one small transfer, a multiple of every usual alignment. */
#define HIPIO_URING_BLOCK ((uint64_t)256 << 10)
#define HIPIO_URING_DEPTH_MAX 256u

/* One contiguous range of a file and as much memory. */
struct hipio_uring_trip {
    int fd;
    enum hipio_op op;
    void *memory;
    int64_t offset;
    uint64_t length;
    unsigned depth;  /* blocks in flight */
    bool registered; /* standing memory (standing.h) is registered with the ring that moves it */
};

/*
 * Moves up to trip->length bytes between memory and the descriptor. *moved is the gap-free prefix,
 * also on error. 0 with less: something that an ordinary call at that place has to find out (the
 * end of the file, a short or refused transfer), or io_uring ceased to work; a negative errno is
 * what storage answered. -ENOTSUP: there is no ring to have; where the kernel refuses io_uring,
 * that is announced once; nothing has moved. Nothing is in flight on return.
 */
int hipio_uring_move(const struct hipio_uring_trip *trip, uint64_t *moved);

/* Closes the idle rings; no transfer may be under way (engine.c). */
void hipio_uring_shutdown(void);
