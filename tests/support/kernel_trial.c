/* SPDX-License-Identifier: MIT */
/*
 * Kernel trial: a random call of the kernel and the same by plain loops, for tests of its C form
 * and of its GPU forms.
 */
#include "kernel_trial.h"
#include <string.h>

static uint64_t seed = 88172645463325252ull;

uint64_t trial_draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

uint64_t trial_seed(void)
{
    return seed;
}

/* A length or distance, often a multiple of a power of two. */
static uint64_t draw_size(uint64_t below)
{
    uint64_t unit = (uint64_t)1 << trial_draw(6);
    uint64_t size = 1 + trial_draw(below);

    if (trial_draw(4) == 0)
        return size;
    return size < unit ? unit : size - size % unit;
}

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

void trial_fill(struct trial_buffers *buffers)
{
    for (size_t i = 0; i < sizeof buffers->memory; i++)
        buffers->memory[i] = (unsigned char)trial_draw(256);
    for (size_t i = 0; i < sizeof buffers->packed; i++)
        buffers->packed[i] = (unsigned char)trial_draw(256);
}

static void add_block(struct trial *trial, int64_t place, uint64_t length)
{
    for (uint64_t i = 0; i < length && trial->bytes < TRIAL_PACKED_MAX; i++)
        trial->place[trial->bytes++] = place + (int64_t)i;
}

/* Drops the first bytes, as a chunk that begins inside the sequence does. */
static void cut(struct trial *trial, uint64_t skip, uint64_t bytes)
{
    memmove(trial->place, trial->place + skip, bytes * sizeof trial->place[0]);
    trial->bytes = bytes;
    trial->move.skip = skip;
    trial->move.bytes = bytes;
}

static void make_strip(struct trial *trial)
{
    uint64_t length = draw_size(trial_draw(3) ? 40 : 3000), count = 1 + trial_draw(200);
    uint64_t stride = length + (trial_draw(3) ? draw_size(100) : 0);
    int64_t start = (int64_t)trial_draw(64);

    while (count > 1 && (count * stride + 64 > TRIAL_ARENA || count * length > TRIAL_PACKED_MAX))
        count--;
    trial->move.stride = (int64_t)stride;
    if (trial_draw(3) == 0) {
        trial->move.stride = -trial->move.stride;
        start = (int64_t)((count - 1) * stride) + (int64_t)trial_draw(16);
    }
    for (uint64_t k = 0; k < count; k++)
        add_block(trial, start + (int64_t)k * trial->move.stride, length);
    trial->move.shape = HIPIO_KERNEL_STRIP;
    trial->move.memory = (uint64_t)start;
    trial->move.length = length;
    uint64_t skip = trial_draw(2) ? trial_draw(length) : 0;
    cut(trial, skip, 1 + trial_draw(trial->bytes - skip));
}

static void make_blocks(struct trial *trial)
{
    uint64_t length = draw_size(trial_draw(3) ? 24 : 500),
             slots = (TRIAL_ARENA - 64) / (length + 16);
    uint64_t count = 1 + trial_draw(slots < 400 ? slots : 400), slot = trial_draw(slots);
    int64_t back = (int64_t)trial_draw(1000);

    while (count > 1 && count * length > TRIAL_PACKED_MAX)
        count--;
    for (uint64_t i = 0; i < count; i++, slot = (slot + 7919) % slots) {
        int64_t place = (int64_t)(slot * (length + 16) + (trial_draw(2) ? 0 : trial_draw(16)));

        trial->table.offset[i] = place - back;
        trial->move.bits |= (uint64_t)trial->table.offset[i];
        add_block(trial, place, length);
    }
    trial->move.shape = HIPIO_KERNEL_BLOCKS;
    trial->move.memory = (uint64_t)back;
    trial->move.length = length;
    trial->move.table = address_of(trial->table.offset);
    trial->move.bits |= count > 1 ? length : 0;
    uint64_t skip = trial_draw(2) ? trial_draw(length) : 0;
    cut(trial, skip, 1 + trial_draw(trial->bytes - skip));
}

static uint64_t make_entry(struct trial *trial, struct hipio_kernel_entry *entry, uint64_t at)
{
    uint64_t length = draw_size(trial_draw(3) ? 24 : 300),
             count = trial_draw(3) ? 1 : 1 + trial_draw(20);
    uint64_t stride = length + draw_size(20);
    uint64_t before = trial->bytes, last = trial_draw(4) ? length : 1 + trial_draw(length);

    entry->packed = before;
    entry->offset = (int64_t)at;
    entry->length = length;
    entry->stride = (int64_t)stride;
    for (uint64_t k = 0; k < count; k++)
        add_block(trial, (int64_t)(at + k * stride), k + 1 < count ? length : last);
    trial->move.bits |= entry->packed | at;
    if (count > 1)
        trial->move.bits |= length | stride;
    return count * stride;
}

static void make_list(struct trial *trial)
{
    uint64_t at = trial_draw(64), n = 1 + trial_draw(TRIAL_ENTRIES_MAX), i;

    for (i = 0; i < n && at + 7000 < TRIAL_ARENA && trial->bytes + 1 < TRIAL_PACKED_MAX; i++)
        at += make_entry(trial, &trial->table.entry[i], at) + trial_draw(3) * draw_size(16);
    trial->move.shape = HIPIO_KERNEL_LIST;
    trial->move.entries = i;
    trial->move.table = address_of(trial->table.entry);
    trial->move.bytes = trial->bytes;
}

void trial_make(struct trial *trial)
{
    memset(trial, 0, sizeof *trial);
    switch (trial_draw(3)) {
    case 0:
        make_strip(trial);
        break;
    case 1:
        make_blocks(trial);
        break;
    default:
        make_list(trial);
    }
    trial->packed_at = trial_draw(2) ? 16 * trial_draw(3) : trial_draw(48);
    trial->move.way = (uint32_t)trial_draw(2);
    if (trial_draw(3) == 0) {
        trial->move.swap = 2u << trial_draw(4);
        trial->move.bytes -= trial->move.bytes % trial->move.swap;
        trial->bytes = trial->move.bytes;
    }
}

void trial_run_plainly(const struct trial *trial, struct trial_buffers *buffers)
{
    unsigned char *packed = buffers->packed + trial->packed_at;
    size_t swap = trial->move.swap ? trial->move.swap : 1;

    for (size_t element = 0; element + swap <= trial->bytes; element += swap)
        for (size_t i = 0; i < swap; i++) {
            unsigned char *place = buffers->memory + trial->place[element + swap - 1 - i];

            if (trial->move.way == HIPIO_KERNEL_PACK)
                packed[element + i] = *place;
            else
                *place = packed[element + i];
        }
}
