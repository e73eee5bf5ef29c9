/* SPDX-License-Identifier: MIT */
/*
 * Uring: one contiguous transfer as many small ones that are in flight together, through io_uring.
 * Containers often forbid it; then, and where the library was built without liburing, the caller's
 * ordinary calls do the same work.
 */
#pragma once
#include "request.h"
#include <stdint.h>

/* Bytes of one small transfer, a multiple of every usual alignment. */
#define HIPIO_URING_BLOCK ((uint64_t)256 << 10)
#define HIPIO_URING_DEPTH_MAX 256u

/*
 * Moves up to `length` bytes between memory and the descriptor. *moved is the gap-free prefix, also
 * on error. 0 with less: something that an ordinary call at that place has to find out (the end of
 * the file, a short or refused transfer), or io_uring ceased to work; a negative errno is what
 * storage answered. -ENOTSUP: there is no io_uring, which is announced once; nothing has moved.
 * Nothing is in flight on return.
 */
int hipio_uring_move(int fd, enum hipio_op op, void *memory, int64_t offset, uint64_t length,
                     unsigned depth, uint64_t *moved);

/* Closes the idle rings; no transfer may be under way (engine.c). */
void hipio_uring_shutdown(void);
