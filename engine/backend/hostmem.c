/* SPDX-License-Identifier: MIT */
/*
 * Host memory: memory that the CPU can address is read and written in place by the storage's
 * vectored calls, without a staging copy. That is ordinary, pinned and managed memory (once the
 * application's GPU work is complete) and an APU's device memory.
 */
#include "../backend.h"
#include "../buffer.h"
#include "../lanes.h"
#include "../storage/storage.h"
#include <errno.h>
#include <limits.h>

#ifndef IOV_MAX
#define IOV_MAX 1024
#endif

#define SCORE 50

static bool addressable(const struct hipio_memory *memory)
{
    return memory->cpu_access || memory->kind == HIPIO_MEMORY_HOST ||
           memory->kind == HIPIO_MEMORY_PINNED;
}

static int score(const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;

    if (request->memory.kind == HIPIO_MEMORY_INVALID || request->swap)
        return -1;
    return addressable(&request->memory) ? SCORE : -1;
}

struct work {
    const struct hipio_request *request;
    const struct hipio_storage *storage;
};

/* Both sides of a piece on their way. */
struct walk {
    const struct hipio_request *request;
    const struct hipio_storage *storage;
    struct hipio_cursor memory;
    struct hipio_cursor file;
    struct iovec iov[IOV_MAX];
};

/* Collects memory runs for the next `bytes` bytes, as many as one call takes. */
static int collect(struct walk *walk, uint64_t bytes, uint64_t *collected)
{
    uintptr_t base = (uintptr_t)walk->request->base;
    int n = 0;
    int64_t offset;

    *collected = 0;
    while (n < IOV_MAX && *collected < bytes) {
        uint64_t run = hipio_cursor_next_run(&walk->memory, bytes - *collected, &offset);
        if (run == 0)
            break;
        walk->iov[n].iov_base = (void *)(base + (uintptr_t)offset);
        walk->iov[n].iov_len = run;
        *collected += run;
        n++;
    }
    return n;
}

/* Moves one run of the file. Less than its length with status 0: the file ended. */
static int move_run(struct walk *walk, int64_t offset, uint64_t length, uint64_t *moved)
{
    const struct hipio_request *request = walk->request;

    *moved = 0;
    while (*moved < length) {
        uint64_t asked, got;
        int n = collect(walk, length - *moved, &asked);
        int status = walk->storage->vector(request->file, request->op, walk->iov, n,
                                           offset + (int64_t)*moved, &got);
        *moved += got;
        if (status < 0 || got < asked)
            return status;
    }
    return 0;
}

static int move_piece(struct walk *walk, const struct hipio_piece *piece, uint64_t *moved)
{
    const struct hipio_request *request = walk->request;
    int64_t offset;

    *moved = 0;
    hipio_cursor_init(&walk->memory, request->memory_layout, request->memory_start + piece->start);
    hipio_cursor_init(&walk->file, request->file_layout, request->file_start + piece->start);
    while (*moved < piece->length) {
        uint64_t got;
        uint64_t run = hipio_cursor_next_run(&walk->file, piece->length - *moved, &offset);
        int status = move_run(walk, request->file_base + offset, run, &got);
        *moved += got;
        if (status < 0 || got < run || run == 0)
            return status;
    }
    return 0;
}

static void carry(struct hipio_haul *haul, unsigned lane)
{
    const struct work *work = haul->context;
    struct walk walk = {.request = work->request, .storage = work->storage};
    struct hipio_piece piece;
    uint64_t moved;

    (void)lane;
    while (hipio_lanes_take(haul, &piece)) {
        int status = move_piece(&walk, &piece, &moved);
        hipio_lanes_report(haul, &piece, moved, status);
    }
}

static int io(struct hipio_part *part)
{
    struct hipio_plan plan;

    hipio_lanes_plan_storage(part, false, &plan);
    struct work work = {part->request, hipio_storage_for(part->request->file, plan.mapped)};
    struct hipio_haul haul = {
        .start = part->start,
        .length = part->length,
        .piece = plan.piece,
        .lanes = plan.lanes,
        .carry = carry,
        .context = &work,
    };
    int status = hipio_lanes_run(&haul, &part->moved);
    return status == -EFAULT ? hipio_buffer_blame(part->request, status) : status;
}

/* The kernel may be unable to reach memory that the GPU runtime can copy. Ordinary memory that it
 * can't reach is out of everyone's reach. */
static bool eligible(const struct hipio_part *part, int error)
{
    return error == -EFAULT && part->request->memory.kind != HIPIO_MEMORY_HOST;
}

const struct hipio_backend hipio_backend_hostmem = {
    .name = "hostmem",
    .kind = HIPIO_BACKEND_FAST_PATH,
    .score = score,
    .io = io,
    .eligible = eligible,
    .share = hipio_backend_whole,
    .usable = hipio_backend_unconcerned,
};
