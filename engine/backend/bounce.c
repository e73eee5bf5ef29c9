/* SPDX-License-Identifier: MIT */
/*
 * Bounce: the fallback. Every kind of memory through pinned staging chunks, the storage copy of one
 * chunk overlapped with the GPU copy of the one before.
 *
 * A lane works in stages, one per slot it holds. Reading, a stage begins with the storage copy and
 * the queued scatter, and is settled when its event has passed; writing, it begins with the queued
 * gather and is settled by waiting for it and the storage copy. So with two slots one stage's GPU
 * copy always runs under the other's storage copy.
 */
#include "../backend.h"
#include "../buffer.h"
#include "../lanes.h"
#include "../pack.h"
#include "../slots.h"
#include "../storage/storage.h"
#include "../swap.h"
#include <errno.h>
#include <stdio.h>

#define SCORE 10

struct bounce {
    struct hipio_request *request;
    const struct hipio_device_ops *ops; /* who copies */
    struct hipio_slots_want want;
    unsigned slots; /* of one lane */
    bool mapped;    /* storage works through a mapping */
};

struct stage {
    struct hipio_slot *slot;
    struct hipio_event *event;
    struct hipio_piece piece;
    uint64_t moved; /* read: bytes that storage gave */
    int status;
    bool busy;
};

struct carrier {
    const struct bounce *bounce;
    struct hipio_haul *haul;
    struct hipio_lane *lane;
    struct hipio_pack pack;
    struct hipio_cursor memory;
    struct hipio_cursor file;
    struct stage stage[2];
    unsigned stages;
};

/*
 * The CPU copies ordinary and pinned memory. Managed and device memory is the runtime's even where
 * the CPU may touch it: it may come here because the kernel could not.
 */
static const struct hipio_device_ops *copier(const struct hipio_memory *memory)
{
    if (memory->kind == HIPIO_MEMORY_HOST || memory->kind == HIPIO_MEMORY_PINNED)
        return &hipio_device_host;
    return memory->ops;
}

static int score(const struct hipio_part *part)
{
    return part->request->memory.kind == HIPIO_MEMORY_INVALID ? -1 : SCORE;
}

/* Cursors go on where they stand, as long as the lane's pieces follow each other. */
static void seek(struct hipio_cursor *cursor, const struct hipio_layout *layout, uint64_t position)
{
    if (cursor->root != layout || cursor->position != position)
        hipio_cursor_init(cursor, layout, position);
}

static int move_storage(struct carrier *self, struct stage *stage)
{
    const struct hipio_request *request = self->bounce->request;

    seek(&self->file, request->file_layout, request->file_start + stage->piece.start);
    return hipio_storage_for(request->file, self->bounce->mapped)
        ->packed(request->file, request->op, stage->slot->memory, &self->file, request->file_base,
                 stage->piece.length, &stage->moved);
}

static void swap_slot(const struct carrier *self, const struct stage *stage, uint64_t bytes)
{
    const struct hipio_request *request = self->bounce->request;

    if (request->swap)
        hipio_swap_apply(request->swap, request->memory_start + stage->piece.start,
                         stage->slot->memory, bytes);
}

static int queue_copy(struct carrier *self, struct stage *stage, uint64_t bytes)
{
    const struct hipio_request *request = self->bounce->request;
    struct hipio_lane *lane = self->lane;

    seek(&self->memory, request->memory_layout, request->memory_start + stage->piece.start);
    int status = request->op == HIPIO_READ
                     ? hipio_pack_scatter(&self->pack, &self->memory, stage->slot->memory, bytes)
                     : hipio_pack_gather(&self->pack, &self->memory, stage->slot->memory, bytes);
    if (status == 0)
        status = lane->ops->event_record(stage->event, lane->stream);
    lane->broken |= status < 0;
    return status < 0 ? hipio_buffer_blame(request, status) : 0;
}

/* A chunk whose storage copy failed delivers nothing: what it holds is not known to be whole. */
static int begin_read(struct carrier *self, struct stage *stage)
{
    int status = move_storage(self, stage);

    if (status < 0)
        stage->moved = 0;
    if (stage->moved == 0)
        return status;
    swap_slot(self, stage, stage->moved);
    return queue_copy(self, stage, stage->moved);
}

static int begin_write(struct carrier *self, struct stage *stage)
{
    return queue_copy(self, stage, stage->piece.length);
}

static void begin(struct carrier *self, struct stage *stage, const struct hipio_piece *piece)
{
    stage->piece = *piece;
    stage->moved = 0;
    stage->busy = true;
    stage->status = self->bounce->request->op == HIPIO_READ ? begin_read(self, stage)
                                                            : begin_write(self, stage);
    if (stage->status < 0) {
        /* Some copies may be queued: neither the slot nor the memory is free before they ran. The
         * failure's own words are reported before this could change them. */
        hipio_lanes_report(self->haul, piece, 0, stage->status);
        self->lane->ops->stream_synchronize(self->lane->stream);
        stage->busy = false;
    } else if (self->bounce->request->op == HIPIO_READ && stage->moved == 0) {
        hipio_lanes_report(self->haul, piece, 0, 0);
        stage->busy = false;
    }
}

/* Finishes what a stage began and reports it. A piece behind a broken one is dropped. */
static void settle(struct carrier *self, struct stage *stage)
{
    if (!stage->busy)
        return;
    stage->busy = false;
    int status = self->lane->ops->event_synchronize(stage->event);
    if (status < 0) {
        hipio_buffer_blame(self->bounce->request, status);
        hipio_lanes_report(self->haul, &stage->piece, 0, status);
        self->lane->ops->stream_synchronize(self->lane->stream);
        self->lane->broken = true;
        return;
    }
    if (self->bounce->request->op == HIPIO_WRITE) {
        if (!hipio_lanes_wanted(self->haul, &stage->piece))
            return;
        swap_slot(self, stage, stage->piece.length);
        status = move_storage(self, stage);
    }
    hipio_lanes_report(self->haul, &stage->piece, stage->moved, status);
}

static void carry_pieces(struct carrier *self)
{
    struct hipio_piece piece;
    unsigned turn = 0;

    while (hipio_lanes_take(self->haul, &piece)) {
        struct stage *stage = &self->stage[turn++ % self->stages];
        settle(self, stage);
        begin(self, stage, &piece);
    }
    for (unsigned i = 0; i < self->stages; i++)
        settle(self, &self->stage[turn++ % self->stages]);
}

/* The first slot may be waited for by lane 0 alone, the second by nobody. */
static int borrow_slots(struct carrier *self, unsigned lane)
{
    const struct bounce *bounce = self->bounce;
    struct hipio_slots_want want = bounce->want;

    want.pulse = self->lane->pulse;
    int status = hipio_slots_borrow(&want, lane == 0, &self->stage[0].slot);
    if (status < 0)
        return status;
    self->stages = 1;
    if (self->stage[0].slot->pinned)
        self->pack.kernels = (enum hipio_switch)hipio_file_tunables(bounce->request->file)->kernels;
    if (bounce->slots > 1 && self->stage[0].slot->pinned &&
        hipio_slots_borrow(&want, false, &self->stage[1].slot) == 0)
        self->stages = 2;
    return 0;
}

static void carry(struct hipio_haul *haul, unsigned lane)
{
    struct carrier self = {.bounce = haul->context, .haul = haul};
    const struct hipio_request *request = self.bounce->request;

    int status = hipio_lanes_borrow(self.bounce->ops, self.bounce->want.device, &self.lane);
    if (status < 0) {
        hipio_lanes_unfit(haul, status);
        return;
    }
    self.pack = (struct hipio_pack){
        .lane = self.lane,
        .memory = &request->memory,
        .base = request->base,
        .kernels = HIPIO_OFF,
    };
    self.stage[0].event = self.lane->event[0];
    self.stage[1].event = self.lane->event[1];

    status = borrow_slots(&self, lane);
    if (status == 0)
        carry_pieces(&self);
    else if (lane == 0)
        hipio_lanes_unfit(haul, status);
    for (unsigned i = 0; i < self.stages; i++)
        hipio_slots_return(self.stage[i].slot);
    hipio_lanes_return(self.lane);
}

/* A CPU copy of memory that isn't there would be a crash where a system call answers EFAULT. */
static int probe_memory(const struct hipio_part *part)
{
    const struct hipio_request *request = part->request;
    int64_t low, high;

    if (copier(&request->memory) != &hipio_device_host)
        return 0;
    hipio_layout_bounds(request->memory_layout, request->memory_start + part->start, part->length,
                        &low, &high);
    const void *first = (const void *)((uintptr_t)request->base + (uintptr_t)low);
    int status = hipio_device_probe(first, (uint64_t)(high - low));
    return status < 0 ? hipio_buffer_blame(request, status) : 0;
}

static int io(struct hipio_part *part)
{
    struct hipio_request *request = part->request;
    struct hipio_plan plan;

    int status = probe_memory(part);
    if (status < 0)
        return status;
    hipio_lanes_plan_storage(part, true, &plan);
    struct bounce bounce = {
        .request = request,
        .ops = copier(&request->memory),
        .slots = plan.slots,
        .mapped = plan.mapped,
    };
    bounce.want = (struct hipio_slots_want){
        .ops = bounce.ops,
        .device = bounce.ops == &hipio_device_host ? -1 : request->memory.device,
        .bytes = plan.chunk,
        .limit = hipio_file_tunables(request->file)->pinned_limit,
    };
    struct hipio_haul haul = {
        .start = part->start,
        .length = part->length,
        .piece = plan.piece,
        .lanes = plan.lanes,
        .swap = request->swap,
        .swap_start = request->memory_start,
        .carry = carry,
        .context = &bounce,
    };
    return hipio_lanes_run(&haul, &part->moved);
}

static bool eligible(const struct hipio_part *part, int error)
{
    (void)part;
    (void)error;
    return false;
}

const struct hipio_backend hipio_backend_bounce = {
    .name = "bounce",
    .kind = HIPIO_BACKEND_STAGING,
    .score = score,
    .io = io,
    .eligible = eligible,
    .share = hipio_backend_whole,
    .usable = hipio_backend_unconcerned,
};
