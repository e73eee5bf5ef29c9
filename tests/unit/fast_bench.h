/* SPDX-License-Identifier: MIT */
/*
 * Fast bench: a file, GPU memory of a runtime (device_app.h) and checked requests between the two,
 * for tests of fast paths.
 */
#pragma once
#include "rig.h"
#include <stddef.h>
#include <stdint.h>

#define KIB 1024ull
#define MIB (1024 * KIB)
#define FILE_SEED 3
#define MEMORY_SEED 4

struct bench {
    struct rig rig;
    char *device;  /* GPU memory */
    uint64_t size; /* of it, and of the file at first */
    unsigned char *host;
    struct hipio_memory memory;
};

extern struct bench bench;

/* A file and GPU memory of `size` bytes on the current device. Leaves the process with 77 where
 * there is no runtime or no O_DIRECT. */
void set_up(uint64_t size);

/* Of hipsim. */
uint64_t counter(const char *name);
size_t index_of(const char *backend);
uint64_t moved_by(const char *backend);
uint64_t asked_of(const char *backend);

/* Moves between memory offset `at` and file offset `offset`, and checks every byte of both sides.
 */
struct hipio_request move(enum hipio_op op, uint64_t at, int64_t offset, uint64_t length);
/* After a write: the file is pattern again. */
void restore(void);

void expect(const struct hipio_request *request, int status, uint64_t done);
/* Bytes that `backend` moved, those of the staging path, and fallbacks. */
void expect_bytes(const char *backend, uint64_t fast, uint64_t bounce, uint64_t fallbacks);
