/* SPDX-License-Identifier: MIT */
/*
 * Simulated: runs the kernel's source on hipsim's memory. Every access goes through the simulated
 * device's own check, so that a byte outside an allocation is a fault there as it is on a GPU.
 */
#include "simulated.h"
#include "host.inc"
#include "kernels.h"
#include <stdbool.h>

/* A range that is known to be all there, translated once. */
struct window {
    uint64_t begin;
    uint64_t bytes;
    char *view;
};

/* The launch that this thread is running. */
static _Thread_local struct {
    const struct hipsim_memory *memory;
    struct window packed;
    struct window table;
    bool failed;
    uint64_t nowhere[2]; /* stands in for memory that is not there, until the launch is left */
} launch;

static bool inside(const struct window *window, uint64_t address, uint64_t bytes)
{
    return address >= window->begin && address - window->begin < window->bytes &&
           window->bytes - (address - window->begin) >= bytes;
}

static void *hipio_reach(uint64_t address, uint64_t bytes)
{
    void *view;

    if (inside(&launch.packed, address, bytes))
        return launch.packed.view + (address - launch.packed.begin);
    if (inside(&launch.table, address, bytes))
        return launch.table.view + (address - launch.table.begin);
    view = launch.failed
               ? NULL
               : launch.memory->translate(launch.memory, (const void *)(uintptr_t)address, bytes);
    if (view)
        return view;
    launch.failed = true;
    return launch.nowhere;
}

#include "move.inc"

static void open_window(struct window *window, uint64_t begin, uint64_t bytes)
{
    *window = (struct window){.begin = begin};
    if (begin == 0 || bytes == 0)
        return;
    window->view =
        launch.memory->translate(launch.memory, (const void *)(uintptr_t)begin, (size_t)bytes);
    if (window->view)
        window->bytes = bytes;
    else
        launch.failed = true;
}

static uint64_t table_bytes(const struct hipio_kernel_move *move)
{
    if (move->shape == HIPIO_KERNEL_LIST)
        return move->entries * sizeof(struct hipio_kernel_entry);
    if (move->shape == HIPIO_KERNEL_BLOCKS)
        return (move->skip + move->bytes + move->length - 1) / move->length * sizeof(int64_t);
    return 0;
}

static void run(void **params, const struct hipsim_grid *grid, const struct hipsim_memory *memory)
{
    struct hipio_kernel_move move = *(const struct hipio_kernel_move *)params[0];
    struct hipio_place place = {0, (uint64_t)grid->grid[0] * grid->block[0]};

    launch.memory = memory;
    launch.failed = false;
    launch.packed = launch.table = (struct window){0};
    hipio_move_bind(&move);
    move.late_size = move.late_offset = 0;
    open_window(&launch.packed, move.packed, move.bytes);
    open_window(&launch.table, move.table, table_bytes(&move));
    for (; place.first < place.step && !launch.failed; place.first++)
        hipio_move_run(move, place);
}

static const size_t param_sizes[] = {sizeof(struct hipio_kernel_move)};

static const struct hipsim_kernel kernels[] = {
    {HIPIO_KERNEL_MOVE, run, 1, param_sizes},
};

const struct hipsim_image hipio_kernels_simulated = {
    .magic = {'H', 'I', 'P', 'S', 'I', 'M', 'K', '1'},
    .kernel_count = sizeof kernels / sizeof kernels[0],
    .kernels = kernels,
};
