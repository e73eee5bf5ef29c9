/* SPDX-License-Identifier: MIT */
/*
 * Rings of io_uring, lent to one transfer at a time, each with at most one registered buffer: the
 * kernel pins its pages once, and not for every transfer.
 *
 * A ring serves one piece of standing memory, or none. So a piece is registered once, whatever the
 * number of rings: what the kernel counts against the limit of locked memory is what the pool of
 * staging chunks counts. And a ring that is lent has no registration but that of the memory it is
 * moving, so that where memory ends, only idle rings have to be looked at.
 */
#pragma once
#include "standing.h"
#include <stdbool.h>
#include <stdint.h>

struct io_uring;

/* What a transfer sees of its ring. */
struct hipio_uring_ring {
    struct io_uring *uring;
    bool registered; /* the standing memory is buffer 0 of the ring */
};

/*
 * Lends a ring of at least this depth. `piece`: the standing memory that will be moved, registered
 * if the kernel agrees, or NULL. NULL: there is no ring now; where io_uring itself is refused, that
 * has been announced.
 */
struct hipio_uring_ring *hipio_uring_ring_borrow(unsigned depth,
                                                 const struct hipio_standing *piece);
/* Nothing may be in flight. `broken`: the ring is not lent again. */
void hipio_uring_ring_return(struct hipio_uring_ring *ring, bool broken);

/* From now on no ring is lent: the kernel has said no. Announced once. */
void hipio_uring_ring_refuse(int err);
