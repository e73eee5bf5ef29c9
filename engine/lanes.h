/* SPDX-License-Identifier: MIT */
/*
 * Lanes: the parallel carriers of one request.
 *
 * A haul is a range of packed positions, cut in pieces that lanes take in order. Lane 0 is the
 * calling thread, the others are threads of the process's one crew; a busy crew only means fewer
 * lanes, so a haul never waits for another. Whoever takes a piece reports what came of it; the haul
 * adds up to the gap-free prefix and to the first error in packed order.
 */
#pragma once
#include "backend.h"
#include "device/device.h"
#include "gather.h"
#include "plan.h"
#include "workers.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A stream with what belongs to it: one lane's hold on a device. Made once, lent again and again.
 */
struct hipio_lane {
    const struct hipio_device_ops *ops;
    int device;
    struct hipio_stream *stream;
    struct hipio_event *event[2];
    void *scratch; /* pageable memory of HIPIO_LANE_SCRATCH bytes, or NULL until it is needed */
    struct hipio_gather *gather; /* or NULL until it is needed */
    bool gather_refused;         /* none to have on this device */
    bool broken;                 /* a call on it failed: it is not lent again */
    uint64_t pulse;              /* the device's, of when it was made */
    struct hipio_lane *next;
};

#define HIPIO_LANE_SCRATCH ((uint64_t)2 << 20)

/* Lends a lane of the device: an idle one or a new one. 0, or the runtime's error with text. */
int hipio_lanes_borrow(const struct hipio_device_ops *ops, int device, struct hipio_lane **out);
/* Nothing may be queued on its stream any more. Where a call on it failed, its streams may be those
 * of a context that is gone, as may those of all idle lanes of the device: none is lent again. */
void hipio_lanes_return(struct hipio_lane *lane);
/* The lane's scratch memory, NULL if there is none to have. */
void *hipio_lanes_scratch(struct hipio_lane *lane);
/* The lane's kernel launches, NULL if there are none to have. */
struct hipio_gather *hipio_lanes_gather(struct hipio_lane *lane);

struct hipio_piece {
    uint64_t start; /* as the haul's */
    uint64_t length;
};

struct hipio_haul {
    /* Filled by the caller. */
    uint64_t start; /* position inside the request */
    uint64_t length;
    uint64_t piece;                /* bytes of a piece; cut shorter at an element of `swap` */
    unsigned lanes;                /* at most HIPIO_PLAN_LANES_MAX */
    const struct hipio_swap *swap; /* or NULL */
    uint64_t swap_start;           /* packed position of the request's byte 0 in the swap pattern */
    /* Carries pieces until none is left; called once per lane, on its thread, with numbers from 0.
     */
    void (*carry)(struct hipio_haul *haul, unsigned lane);
    void *context;

    /* The haul's own; `lock` guards it. */
    pthread_mutex_t lock;
    pthread_cond_t change;
    uint64_t next;
    uint64_t broken; /* start of the first piece that did not go through; UINT64_MAX: none */
    uint64_t end;    /* one past the gap-free prefix, when broken */
    int status;      /* of the broken piece */
    int setup;       /* why a lane could not work at all */
    unsigned running;
    char text[HIPIO_TEXT_MAX];
    char setup_text[HIPIO_TEXT_MAX];
};

/* Carries the haul and returns when every lane is out of it: 0 or the first error in packed order
 * with its text; *moved is the gap-free prefix. */
int hipio_lanes_run(struct hipio_haul *haul, uint64_t *moved);

/* The next piece in order; false when there is none or a piece has broken. Each piece taken is
 * reported by hipio_lanes_report. */
bool hipio_lanes_take(struct hipio_haul *haul, struct hipio_piece *piece);
/* False once a piece before this one has broken: carrying it on would be in vain. */
bool hipio_lanes_wanted(struct hipio_haul *haul, const struct hipio_piece *piece);
/* What came of a piece: bytes surely moved; the status, whose text is the thread's. Fewer bytes
 * with status 0 are the end of the file. */
void hipio_lanes_report(struct hipio_haul *haul, const struct hipio_piece *piece, uint64_t moved,
                        int status);
/* A lane has nothing to work with. It counts only if no lane has carried the rest. */
void hipio_lanes_unfit(struct hipio_haul *haul, int status);

/* The plan for a part of a request, from its file's settings and this process's cores. */
void hipio_lanes_plan(const struct hipio_part *part, bool staged, struct hipio_plan *plan);
/* The same for a backend that works on the file by storage.h, which may go through a mapping. */
void hipio_lanes_plan_storage(const struct hipio_part *part, bool staged, struct hipio_plan *plan);

/* Joins the threads and destroys streams and events; no haul may be running. */
void hipio_lanes_shutdown(void);
