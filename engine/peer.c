/* SPDX-License-Identifier: MIT */
/*
 * Peer: parts, runs and calls of the direct paths.
 */
#include "peer.h"
#include "breaker.h"
#include "lanes.h"
#include "split.h"
#include "storage/storage.h"
#include <errno.h>
#include <stdio.h>

/* Each call pins memory and goes through a lock: below this, staging is faster. */
#define BODY_MIN (64u << 10)
/* With more than one lane, what one takes at a time. */
#define PIECE ((uint64_t)16 << 20)
/* So many runs are looked at to judge a part. */
#define SAMPLE 8

/* ---- Runs that are contiguous in memory and in the file ---- */

struct side {
    struct hipio_cursor cursor;
    int64_t offset;
    uint64_t left; /* of the run at hand */
};

struct walk {
    const struct hipio_request *request;
    struct side memory;
    struct side file;
};

static void walk_init(struct walk *walk, const struct hipio_request *request, uint64_t start)
{
    walk->request = request;
    walk->memory.left = walk->file.left = 0;
    hipio_cursor_init(&walk->memory.cursor, request->memory_layout, request->memory_start + start);
    hipio_cursor_init(&walk->file.cursor, request->file_layout, request->file_start + start);
}

static void fill(struct side *side, uint64_t most)
{
    if (side->left == 0)
        side->left = hipio_cursor_next_run(&side->cursor, most, &side->offset);
}

static void step(struct side *side, uint64_t bytes)
{
    side->offset += (int64_t)bytes;
    side->left -= bytes;
}

struct run {
    uintptr_t address;
    int64_t offset;
    uint64_t length;
};

/* The next run of at most `most` bytes; its length, 0 at the end. */
static uint64_t walk_next(struct walk *walk, uint64_t most, struct run *run)
{
    fill(&walk->memory, most);
    fill(&walk->file, most);
    run->length = walk->memory.left < walk->file.left ? walk->memory.left : walk->file.left;
    if (run->length > most)
        run->length = most;
    run->address = (uintptr_t)walk->request->base + (uintptr_t)walk->memory.offset;
    run->offset = walk->request->file_base + walk->file.offset;
    step(&walk->memory, run->length);
    step(&walk->file, run->length);
    return run->length;
}

/* ---- Which bytes ---- */

/* 4096 is safe everywhere, and a device that wants more says so once the file is open. */
static uint64_t alignment(struct hipio_file *file)
{
    const struct hipio_direct *direct = hipio_direct_known(file);
    uint64_t align = HIPIO_DIRECT_ALIGN;

    if (direct && direct->offset_align > align)
        align = direct->offset_align;
    if (direct && direct->memory_align > align)
        align = direct->memory_align;
    return align;
}

static struct hipio_split_rule rule_for(const struct hipio_request *request)
{
    const uint64_t align = alignment(request->file);
    const bool forced = hipio_file_tunables(request->file)->fastpath == HIPIO_FORCE;

    return (struct hipio_split_rule){align, align, forced ? 1 : BODY_MIN};
}

/* Is most of the part in bodies that are worth a call? The first runs tell. */
static bool is_worth_it(const struct hipio_part *part)
{
    const struct hipio_split_rule rule = rule_for(part->request);
    uint64_t seen = 0, body = 0;
    struct walk walk;
    struct run run;

    walk_init(&walk, part->request, part->start);
    for (int i = 0; i < SAMPLE && seen < part->length; i++) {
        if (walk_next(&walk, part->length - seen, &run) == 0)
            break;
        body += hipio_split_make(&rule, run.address, run.offset, run.length).body;
        seen += run.length;
    }
    return body >= seen - body && body > 0;
}

int hipio_peer_score(const struct hipio_peer *peer, const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    const struct hipio_memory *memory = &request->memory;

    if (memory->ops != peer->ops || memory->kind != HIPIO_MEMORY_DEVICE || memory->cpu_access)
        return -1;
    if (request->swap || hipio_file_window(request->file) || !peer->present(request->file))
        return -1;
    if (hipio_breaker_is_open(request->file, hipio_backend_index(peer->backend), memory->device))
        return -1;
    return is_worth_it(part) ? peer->score : -1;
}

/* Adds a stretch of bytes to the share. False: the share ends before it. */
static bool add(uint64_t bytes, bool own, uint64_t *share, bool *share_own)
{
    if (bytes == 0)
        return true;
    if (*share == 0)
        *share_own = own;
    else if (*share_own != own)
        return false;
    *share += bytes;
    return true;
}

uint64_t hipio_peer_share(const struct hipio_part *part, bool *own)
{
    const struct hipio_split_rule rule = rule_for(part->request);
    uint64_t seen = 0, share = 0;
    struct walk walk;
    struct run run;

    *own = true;
    walk_init(&walk, part->request, part->start);
    while (seen < part->length && walk_next(&walk, part->length - seen, &run)) {
        const struct hipio_split split =
            hipio_split_make(&rule, run.address, run.offset, run.length);
        if (!add(split.head, false, &share, own) || !add(split.body, true, &share, own) ||
            !add(split.tail, false, &share, own))
            break;
        seen += run.length;
    }
    return share;
}

/* ---- What a failure means ---- */

bool hipio_peer_is_for_good(int error)
{
    return error == -ENODEV || error == -EREMOTEIO || error == -ENOTTY || error == -EOPNOTSUPP ||
           error == -ENOSYS;
}

bool hipio_peer_is_eligible(int error)
{
    return hipio_peer_is_for_good(error) || error == -EINVAL || error == -ENODATA ||
           error == -ENOMEM;
}

/* ---- Calls ---- */

struct work {
    const struct hipio_peer *peer;
    const struct hipio_request *request;
    uint64_t align;
};

static int ended_early(const struct work *work, const struct run *run, uint64_t moved)
{
    const bool reads = work->request->op == HIPIO_READ;

    return hipio_status_set(-ENODATA, "%s: %s of %llu bytes at offset %lld by %s ended after %llu",
                            hipio_file_name(work->request->file), reads ? "read" : "write",
                            (unsigned long long)run->length, (long long)run->offset,
                            work->peer->backend->name, (unsigned long long)moved);
}

/* Moves an aligned run. 0 with less than its length: a read met the end of the file. */
static int move_run(const struct work *work, const struct run *run, uint64_t *moved)
{
    const uint64_t call_max = HIPIO_STORAGE_CALL_MAX / work->align * work->align;

    *moved = 0;
    while (*moved < run->length) {
        const uint64_t left = run->length - *moved;
        const uint64_t asked = left < call_max ? left : call_max;
        const int64_t offset = run->offset + (int64_t)*moved;
        uint64_t got = 0;
        int status =
            work->peer->call(work->request, (void *)(run->address + *moved), offset, asked, &got);
        if (got > asked)
            return hipio_status_set(-EIO, "%s: %s says that it moved %llu of %llu bytes",
                                    hipio_file_name(work->request->file), work->peer->backend->name,
                                    (unsigned long long)got, (unsigned long long)asked);
        *moved += got;
        if (status < 0)
            return status;
        if (got == 0 && work->request->op == HIPIO_READ &&
            hipio_file_size(work->request->file) <= offset)
            return 0;
        if (got == 0 || got % work->align != 0)
            return ended_early(work, run, *moved);
    }
    return 0;
}

static int move_piece(const struct work *work, const struct hipio_piece *piece, uint64_t *moved)
{
    struct walk walk;
    struct run run;

    *moved = 0;
    walk_init(&walk, work->request, piece->start);
    while (*moved < piece->length && walk_next(&walk, piece->length - *moved, &run)) {
        uint64_t got;
        if ((run.address | (uint64_t)run.offset | run.length) % work->align != 0)
            return hipio_status_set(-EINVAL, "%s: the device wants %llu-byte alignment",
                                    hipio_file_name(work->request->file),
                                    (unsigned long long)work->align);
        int status = move_run(work, &run, &got);
        *moved += got;
        if (status < 0 || got < run.length)
            return status;
    }
    return 0;
}

static void carry(struct hipio_haul *haul, unsigned lane)
{
    struct hipio_piece piece;
    uint64_t moved;

    (void)lane;
    while (hipio_lanes_take(haul, &piece)) {
        int status = move_piece(haul->context, &piece, &moved);
        hipio_lanes_report(haul, &piece, moved, status);
    }
}

static int move_part(const struct hipio_peer *peer, struct hipio_part *part)
{
    struct work work = {peer, part->request, alignment(part->request->file)};
    struct hipio_plan plan;

    hipio_lanes_plan(part, false, &plan);
    struct hipio_haul haul = {
        .start = part->start,
        .length = part->length,
        .lanes = plan.lanes < peer->lanes ? plan.lanes : peer->lanes,
        .carry = carry,
        .context = &work,
    };
    haul.piece = haul.lanes > 1 ? (PIECE + work.align - 1) / work.align * work.align : part->length;
    return hipio_lanes_run(&haul, &part->moved);
}

int hipio_peer_io(const struct hipio_peer *peer, struct hipio_part *part)
{
    struct hipio_file *file = part->request->file;
    const int device = part->request->memory.device;
    const size_t index = hipio_backend_index(peer->backend);

    int status = peer->prepare(file, device);
    if (status == 0)
        status = move_part(peer, part);
    if (status == 0)
        hipio_breaker_success(file, index, device);
    else if (hipio_peer_is_eligible(status))
        hipio_breaker_failure(file, index, device, status, hipio_peer_is_for_good(status));
    return status;
}
