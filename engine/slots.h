/* SPDX-License-Identifier: MIT */
/*
 * Slots: staging chunks of pinned memory, one bounded pool for the process.
 *
 * Pinning is slow (0.8 ms for 1 MiB), so a chunk is allocated when first needed and kept until
 * shutdown, or until another device or chunk size needs its share of the limit. A lane may wait for
 * its first slot, while it holds none, and takes a second one only if it is there: whoever holds a
 * slot can finish, so waiting always ends.
 */
#pragma once
#include "device/device.h"
#include "standing.h"
#include <stdbool.h>
#include <stdint.h>

struct hipio_slot {
    void *memory;
    uint64_t bytes;
    bool pinned;
    /* The pool's own. */
    const struct hipio_device_ops *ops;
    int device;
    uint64_t pulse;
    struct hipio_standing standing; /* of pinned memory, as long as it is allocated */
    struct hipio_slot *next;
};

struct hipio_slots_want {
    const struct hipio_device_ops *ops;
    int device;
    uint64_t pulse; /* the device's (pulse.h) */
    uint64_t bytes; /* multiple of 4096 */
    uint64_t limit; /* most pinned bytes of the process (setting pinned_limit) */
};

/*
 * Borrows one slot of want->bytes, page aligned. Blocks only when `wait` is set: the caller then
 * holds no slot. Where pinning is refused, or the limit has no room for even one, `wait` gets
 * ordinary memory instead, counted and announced once. 0; -EAGAIN (no `wait`): none free now;
 * -ENOMEM with text: no memory of any kind.
 */
int hipio_slots_borrow(const struct hipio_slots_want *want, bool wait, struct hipio_slot **out);
void hipio_slots_return(struct hipio_slot *slot);

/*
 * Counts memory that somebody else pins; idle slots give way to it. False: with it there would be
 * more than `limit` bytes pinned.
 */
bool hipio_slots_reserve(uint64_t bytes, uint64_t limit);
void hipio_slots_unreserve(uint64_t bytes);

/* Frees all slots; none may be lent. */
void hipio_slots_shutdown(void);
