/* SPDX-License-Identifier: MIT */
/*
 * Window: between GPU memory and a window of host memory, such as the memory that a collective's
 * ranks share, by the GPU's own copies: once the window is pinned, nothing has to be staged.
 */
#include "../backend.h"
#include "../lanes.h"
#include "../pack.h"
#include "../registered.h"
#include "../rows.h"
#include "../stats.h"
#include "../status.h"
#include <errno.h>
#include <stdio.h>

/* Above those of all that serve GPU memory. */
#define SCORE 60

/* The address of an offset of the file. It need not be one of the window's. */
static void *place_of(const struct hipio_request *request, int64_t offset)
{
    const uint64_t at = (uint64_t)request->file_base + (uint64_t)offset;

    return (void *)((uintptr_t)hipio_file_window(request->file) + at);
}

/* The window's side as one run; NULL: it is more than that. */
static void *run_of(const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    struct hipio_cursor cursor;
    int64_t offset;

    hipio_cursor_init(&cursor, request->file_layout, request->file_start + part->start);
    if (hipio_cursor_next_run(&cursor, part->length, &offset) < part->length)
        return NULL;
    return place_of(request, offset);
}

static struct hipio_rows rows_of(const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    const struct hipio_rows_side gpu = {request->base, request->memory_layout,
                                        request->memory_start + part->start};
    const struct hipio_rows_side host = {place_of(request, 0), request->file_layout,
                                         request->file_start + part->start};

    if (request->op == HIPIO_READ)
        return (struct hipio_rows){host, gpu, part->length, HIPIO_COPY_TO_DEVICE};
    return (struct hipio_rows){gpu, host, part->length, HIPIO_COPY_TO_HOST};
}

static bool is_inside(const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    int64_t low, high;

    hipio_layout_bounds(request->file_layout, request->file_start + part->start, part->length, &low,
                        &high);
    return low + request->file_base >= 0 &&
           high + request->file_base <= hipio_file_size(request->file);
}

static int score(const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    const struct hipio_memory *memory = &request->memory;

    if (!hipio_file_window(request->file) || memory->kind != HIPIO_MEMORY_DEVICE ||
        memory->cpu_access || request->swap)
        return -1;
    if (!hipio_registered_is_possible(request->file, memory) || !is_inside(part))
        return -1;
    const struct hipio_rows rows = rows_of(part);
    return run_of(part) || hipio_rows_are_few(&rows) ? SCORE : -1;
}

/* Runtimes refuse a copy over the seam of two allocations, such as those that an address range is
 * mapped from. What can't be told may be one. */
static bool is_one_allocation(const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    int64_t low, high;
    uintptr_t start;
    uint64_t length;

    hipio_layout_bounds(request->memory_layout, request->memory_start + part->start, part->length,
                        &low, &high);
    const uintptr_t first = (uintptr_t)request->base + (uintptr_t)low;
    if (request->memory.ops->range(&request->memory, (const void *)first, &start, &length) < 0)
        return true;
    return first + (uintptr_t)(high - low) <= start + length;
}

/* A run is packed like a staging chunk, by kernels where they are better. */
static int queue(const struct hipio_part *part, struct hipio_lane *lane)
{
    const struct hipio_request *request = part->request;
    struct hipio_pack pack = {
        .lane = lane,
        .memory = &request->memory,
        .base = request->base,
        .kernels = (enum hipio_switch)hipio_file_tunables(request->file)->kernels,
    };
    struct hipio_cursor cursor;
    void *run = run_of(part);

    if (!run && !is_one_allocation(part))
        return hipio_status_set(-ENOTSUP, "the buffer is mapped from several pieces");
    if (!run) {
        const struct hipio_rows rows = rows_of(part);
        return hipio_rows_copy(lane->ops, lane->stream, &rows);
    }
    hipio_cursor_init(&cursor, request->memory_layout, request->memory_start + part->start);
    if (request->op == HIPIO_READ)
        return hipio_pack_scatter(&pack, &cursor, run, part->length);
    return hipio_pack_gather(&pack, &cursor, run, part->length);
}

/* Waits also after a failure: what was queued may still run. */
static int move(const struct hipio_part *part, struct hipio_lane *lane)
{
    int rc = queue(part, lane);
    char text[HIPIO_TEXT_MAX];

    if (rc == 0)
        return lane->ops->stream_synchronize(lane->stream);
    snprintf(text, sizeof text, "%s", hipio_status_text());
    lane->ops->stream_synchronize(lane->stream);
    return hipio_status_set(rc, "%s", text);
}

static int io(struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    struct hipio_lane *lane;

    int rc = hipio_registered_ensure(request->file, &request->memory);
    if (rc == 0)
        rc = hipio_lanes_borrow(request->memory.ops, request->memory.device, &lane);
    if (rc < 0)
        return rc;
    rc = move(part, lane);
    lane->broken |= rc < 0 && rc != -ENOTSUP;
    hipio_lanes_return(lane);
    if (rc < 0)
        return rc;
    part->moved = part->length;
    hipio_stats_add(HIPIO_COUNT_window_bytes, (int64_t)part->moved);
    return 0;
}

/* Memory that could not be pinned, or lies in pieces, is staged. */
static bool eligible(const struct hipio_part *part, int error)
{
    (void)part;
    return error == -ENOTSUP;
}

const struct hipio_backend hipio_backend_window = {
    .name = "window",
    .kind = HIPIO_BACKEND_FAST_PATH,
    .score = score,
    .io = io,
    .eligible = eligible,
    .share = hipio_backend_whole,
    .usable = hipio_backend_unconcerned,
};
