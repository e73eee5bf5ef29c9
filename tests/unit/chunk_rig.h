/* SPDX-License-Identifier: MIT */
/*
 * Chunk rig: staging chunks and a file of one chunk, moved past the page cache, and what the
 * counters and the kernel say of it. For tests that run one by one.
 */
#pragma once
#include "rig.h"
#include "slots.h"
#include <stdint.h>

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define CHUNK MIB
#define CHUNK_SEED 5

/* A chunk within a limit of the pool; the second, of CHUNK bytes of the host's memory. */
struct hipio_slot *chunk_borrow_of(const struct hipio_device_ops *ops, uint64_t bytes,
                                   uint64_t limit);
struct hipio_slot *chunk_borrow(void);

/* A file of CHUNK bytes with pattern CHUNK_SEED. */
void chunk_open(struct rig *rig);
/* Frees the chunks too, and sees that nothing stays pinned. */
void chunk_close(struct rig *rig);

void chunk_move(struct rig *rig, enum hipio_op op, const struct hipio_slot *slot);
/* Writes the chunk with a pattern of its own, and reads another back into it. */
void chunk_use(struct rig *rig, const struct hipio_slot *slot, uint64_t seed);

/* Bytes that went registered, and through rings at all; refused registrations. */
uint64_t chunk_registered(void);
uint64_t chunk_through_rings(void);
uint64_t chunk_refused(void);
/* Bytes that the kernel holds pinned for this process, and descriptors that it has. */
uint64_t chunk_pinned(void);
unsigned chunk_descriptors(void);

/* Leaves with 77 where there is no io_uring, no O_DIRECT, or no registering. */
void chunk_need_registering(void);
