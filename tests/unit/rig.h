/* SPDX-License-Identifier: MIT */
/*
 * Rig: a temporary file, its settings and small builders, for tests of requests.
 */
#pragma once
#include "extent.h"
#include "file.h"
#include "request.h"
#include "tunables.h"
#include <stdint.h>

#define RIG_READ_WRITE (HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE)

struct rig {
    int fd;
    int64_t size;
    struct hipio_file *file;
    struct hipio_tunables tunables;
};

/* A file of `size` bytes of pattern `seed` (support/pattern.h), unlinked at once. */
void rig_open(struct rig *rig, int access, uint64_t seed, uint64_t size);
void rig_close(struct rig *rig);
/* Puts a setting in force. */
void rig_set(struct rig *rig, const char *name, const char *value);
/* The setting pinned_limit, also below what users may set. */
void rig_limit(struct rig *rig, uint64_t bytes);

struct hipio_layout *rig_run(int64_t offset, uint64_t length);
struct hipio_layout *rig_vector(uint64_t block, uint64_t count, int64_t stride);
/* `n` runs of 1 to `longest` bytes with gaps of the same size; same seed, same layout. */
struct hipio_layout *rig_random(uint64_t seed, uint64_t n, uint64_t longest);

/* A request over whole layouts, as long as the shorter one. */
struct hipio_request rig_request(struct rig *rig, enum hipio_op op, void *base,
                                 const struct hipio_memory *memory,
                                 const struct hipio_layout *memory_layout,
                                 const struct hipio_layout *file_layout);
extern const struct hipio_memory rig_host;

/* What a read of `length` bytes must have done to memory that was 0xA5 all over: fails the test at
 * the first wrong byte. `bytes` is the memory's first byte, at layout offset 0. */
void rig_check_read(const struct hipio_request *request, const unsigned char *bytes, uint64_t size,
                    uint64_t seed);
/* What a write of memory with pattern `seed` (by memory offset) must have done to a file that had
 * `before`: the first `length` bytes and nothing else. */
void rig_check_write(struct rig *rig, const struct hipio_request *request, uint64_t seed,
                     uint64_t before);
