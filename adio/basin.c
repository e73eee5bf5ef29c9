/* SPDX-License-Identifier: MIT */
/* Basin: bytes in and out, the bits for them, and the way to storage. */
#include "basin.h"
#include "engine/status.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs of one storage request; more of them are more requests. */
#define RUNS_MAX 8192

#define WORD_BITS 64u

uint64_t hipio_basin_bits(uint64_t bytes)
{
    return (bytes / WORD_BITS + 1) * sizeof(uint64_t);
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + HIPIO_PAGE - 1) / HIPIO_PAGE * HIPIO_PAGE;
}

uint64_t hipio_basin_bytes(uint64_t size)
{
    return whole_pages(size) + whole_pages(hipio_basin_bits(size));
}

void hipio_basin_init(struct hipio_basin *basin, void *memory, uint64_t size)
{
    memset(basin, 0, sizeof *basin);
    basin->memory = memory;
    basin->covered = (uint64_t *)((char *)memory + whole_pages(size));
    basin->round = -1;
}

static uint64_t size_of(const struct hipio_basin *basin)
{
    return (uint64_t)(basin->range.high - basin->range.low);
}

void hipio_basin_open(struct hipio_basin *basin, int64_t round, struct hipio_range range)
{
    basin->round = round;
    basin->range = range;
}

void hipio_basin_clear(struct hipio_basin *basin)
{
    memset(basin->covered, 0, hipio_basin_bits(size_of(basin)));
}

/* ---- Bits ---- */

static void set_bits(uint64_t *word, uint64_t bits)
{
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
}

/* Neighbours share the first and the last word; those between are the caller's alone. */
static void cover(uint64_t *bits, uint64_t from, uint64_t to)
{
    uint64_t first = from / WORD_BITS, last = to / WORD_BITS;
    uint64_t head = ~UINT64_C(0) << from % WORD_BITS;
    uint64_t tail = ~(~UINT64_C(0) << to % WORD_BITS);

    if (first == last) {
        set_bits(&bits[first], head & tail);
        return;
    }
    set_bits(&bits[first], head);
    if (last > first + 1)
        memset(&bits[first + 1], 0xff, (last - first - 1) * sizeof *bits);
    if (tail)
        set_bits(&bits[last], tail);
}

void hipio_basin_cover(const struct hipio_basin *basin, uint64_t from, uint64_t bytes)
{
    cover(basin->covered, from, from + bytes);
}

/* The first position from `from` on whose bit is `value`; `size` where there is none. */
static uint64_t find(const uint64_t *bits, uint64_t from, uint64_t size, bool value)
{
    uint64_t flip = value ? 0 : ~UINT64_C(0);

    while (from < size) {
        uint64_t word = (bits[from / WORD_BITS] ^ flip) >> from % WORD_BITS;
        if (word) {
            from += (uint64_t)__builtin_ctzll(word);
            return from < size ? from : size;
        }
        from = (from / WORD_BITS + 1) * WORD_BITS;
    }
    return size;
}

/* ---- Bytes ---- */

void hipio_basin_put(struct hipio_basin *basin, const struct hipio_piece *piece)
{
    const struct hipio_piece_strip *strip = (const struct hipio_piece_strip *)(piece + 1);
    const char *from = (const char *)piece + hipio_piece_list_bytes(piece);

    for (uint32_t i = 0; i < piece->strips; i++) {
        uint64_t at = strip[i].offset, length = strip[i].length;
        for (uint32_t k = 0; k < strip[i].count; k++, at += strip[i].stride, from += length) {
            memcpy(basin->memory + at, from, length);
            cover(basin->covered, at, at + length);
        }
    }
}

void hipio_basin_take(const struct hipio_basin *basin, const struct hipio_piece *piece, char *to)
{
    const struct hipio_piece_strip *strip = (const struct hipio_piece_strip *)(piece + 1);

    for (uint32_t i = 0; i < piece->strips; i++) {
        uint64_t at = strip[i].offset, length = strip[i].length;
        for (uint32_t k = 0; k < strip[i].count; k++, at += strip[i].stride, to += length)
            memcpy(to, basin->memory + at, length);
    }
}

char *hipio_basin_place(const struct hipio_basin *basin, const struct hipio_piece *piece)
{
    const struct hipio_piece_strip *strip = (const struct hipio_piece_strip *)(piece + 1);

    if (piece->strips != 1 || (strip->count > 1 && strip->stride != strip->length))
        return NULL;
    return basin->memory + strip->offset;
}

/* ---- Storage ---- */

/* A request between the memory and the same bytes of the file. Takes the reference to `layout`. */
static void prepare(struct hipio_basin *basin, struct hipio_file *file, enum hipio_op op,
                    struct hipio_layout *layout)
{
    basin->layout = layout;
    basin->request = (struct hipio_request){
        .op = op,
        .file = file,
        .base = basin->memory,
        .memory = {HIPIO_MEMORY_HOST, -1, true, &hipio_device_host},
        .memory_layout = layout,
        .file_layout = layout,
        .file_base = basin->range.low,
        .length = hipio_layout_size(layout),
        .sharers = basin->sharers,
    };
}

static void forget(struct hipio_basin *basin)
{
    hipio_layout_release(basin->layout);
    basin->layout = NULL;
}

static int start(struct hipio_basin *basin)
{
    int rc = hipio_request_start(&basin->request);

    if (rc) {
        hipio_status_set(rc, "%s", basin->request.text);
        forget(basin);
    }
    return rc;
}

/* The runs from `*at` on, as many as one request takes; moves *at behind them. */
static int next_runs(const struct hipio_basin *basin, uint64_t *at, struct hipio_layout **out)
{
    uint64_t size = size_of(basin), n = 0, end;
    int64_t *offset = malloc(RUNS_MAX * sizeof *offset);
    uint64_t *length = malloc(RUNS_MAX * sizeof *length);
    int rc = -ENOMEM;

    if (offset && length) {
        for (; n < RUNS_MAX && *at < size; n++, *at = find(basin->covered, end, size, true)) {
            end = find(basin->covered, *at, size, false);
            offset[n] = (int64_t)*at;
            length[n] = end - *at;
        }
        rc = hipio_layout_runs(n, offset, length, out);
    }
    free(offset);
    free(length);
    return rc ? hipio_status_set(rc, "no memory to list the written parts of a round") : 0;
}

int hipio_basin_store(struct hipio_basin *basin, struct hipio_file *file)
{
    uint64_t size = size_of(basin), at = find(basin->covered, 0, size, true);
    struct hipio_layout *layout;
    int rc = 0;

    while (at < size && rc == 0) {
        rc = next_runs(basin, &at, &layout);
        if (rc)
            break;
        prepare(basin, file, HIPIO_WRITE, layout);
        rc = start(basin);
        if (rc == 0 && at < size) {
            rc = hipio_basin_settle(basin);
            if (rc)
                hipio_status_set(rc, "%s", basin->request.text);
        }
    }
    return rc;
}

int hipio_basin_fetch(struct hipio_basin *basin, struct hipio_file *file, struct hipio_range want)
{
    struct hipio_layout *layout;
    int rc =
        hipio_layout_run(want.low - basin->range.low, (uint64_t)(want.high - want.low), &layout);
    if (rc)
        return rc;
    basin->fetched = want.low;
    prepare(basin, file, HIPIO_READ, layout);
    return start(basin);
}

int hipio_basin_settle(struct hipio_basin *basin)
{
    int rc = 0;

    if (basin->layout) {
        rc = hipio_request_wait(&basin->request);
        forget(basin);
    }
    return rc;
}

bool hipio_basin_is_busy(struct hipio_basin *basin)
{
    return basin->layout && !hipio_request_test(&basin->request);
}

int64_t hipio_basin_end(const struct hipio_basin *basin)
{
    const struct hipio_request *request = &basin->request;

    /* What was fetched is one run, so its end is where the last byte was found. A fetch that found
     * all says nothing about what lies behind. */
    if (request->done == request->length)
        return INT64_MAX;
    return basin->fetched + (int64_t)request->done;
}
