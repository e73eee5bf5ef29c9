/* SPDX-License-Identifier: MIT */
/*
 * Chunk rig: the storage that goes past the page cache moves one chunk after the other.
 */
#include "chunk_rig.h"
#include "pattern.h"
#include "stats.h"
#include "storage/storage.h"
#include "storage/uring.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct hipio_slot *chunk_borrow_of(const struct hipio_device_ops *ops, uint64_t bytes,
                                   uint64_t limit)
{
    const struct hipio_slots_want want = {.ops = ops, .device = -1, .bytes = bytes, .limit = limit};
    struct hipio_slot *slot;

    assert_int_equal(hipio_slots_borrow(&want, true, &slot), 0);
    assert_true(slot->pinned);
    return slot;
}

struct hipio_slot *chunk_borrow(void)
{
    return chunk_borrow_of(&hipio_device_host, CHUNK, 64 * CHUNK);
}

void chunk_open(struct rig *rig)
{
    rig_open(rig, RIG_READ_WRITE, CHUNK_SEED, CHUNK);
    rig_set(rig, "direct", "force");
}

void chunk_move(struct rig *rig, enum hipio_op op, const struct hipio_slot *slot)
{
    struct hipio_layout *run = rig_run(0, CHUNK);
    struct hipio_cursor cursor;
    uint64_t moved;

    hipio_cursor_init(&cursor, run, 0);
    assert_int_equal(
        hipio_storage_direct.packed(rig->file, op, slot->memory, &cursor, 0, CHUNK, &moved), 0);
    assert_int_equal(moved, CHUNK);
    hipio_layout_release(run);
}

void chunk_use(struct rig *rig, const struct hipio_slot *slot, uint64_t seed)
{
    unsigned char *bytes = malloc(CHUNK);

    pattern_fill(slot->memory, seed, 0, CHUNK);
    chunk_move(rig, HIPIO_WRITE, slot);
    assert_int_equal(pread(rig->fd, bytes, CHUNK, 0), CHUNK);
    assert_int_equal(pattern_check(bytes, seed, 0, CHUNK), CHUNK);
    pattern_fill(bytes, seed + 1, 0, CHUNK);
    assert_int_equal(pwrite(rig->fd, bytes, CHUNK, 0), CHUNK);
    memset(slot->memory, 0xA5, CHUNK);
    chunk_move(rig, HIPIO_READ, slot);
    assert_int_equal(pattern_check(slot->memory, seed + 1, 0, CHUNK), CHUNK);
    free(bytes);
}

uint64_t chunk_registered(void)
{
    return hipio_stats_get(HIPIO_COUNT_registered_bytes);
}

uint64_t chunk_refused(void)
{
    return hipio_stats_get(HIPIO_COUNT_registrations_refused);
}

uint64_t chunk_through_rings(void)
{
    return hipio_stats_get(HIPIO_COUNT_uring_bytes);
}

uint64_t chunk_pinned(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmPin: %llu", &kib) == 1)
            break;
    fclose(file);
    return kib * KIB;
}

void chunk_close(struct rig *rig)
{
    rig_close(rig);
    hipio_slots_shutdown();
    assert_int_equal(chunk_pinned(), 0);
    hipio_uring_shutdown();
}

void chunk_need_registering(void)
{
    struct rig rig;

    chunk_open(&rig);
    struct hipio_slot *slot = chunk_borrow();
    chunk_move(&rig, HIPIO_READ, slot);
    hipio_slots_return(slot);
    if (chunk_registered() == 0)
        exit(77);
    chunk_close(&rig);
    hipio_stats_reset();
}

unsigned chunk_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}
