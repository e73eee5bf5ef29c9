/* SPDX-License-Identifier: MIT */
/*
 * Who accesses what: the same answer on every rank, from arithmetic alone.
 */
#include "table.h"
#include <string.h>

enum { FIRST = 3 }; /* etypes before the first access, so that it starts inside a tile */

uint64_t plan_seed(int rank, int call)
{
    return 1000 + (uint64_t)rank * CALLS + (uint64_t)call;
}

static int units_of(const struct cell *cell, int rank, int call)
{
    if (cell->variant == VARIANT_ZERO && (rank + call) % 2 == 1)
        return 0;
    if (cell->variant == VARIANT_LARGE)
        return 400 + 37 * rank - 100 * call;
    return 3 + rank + 2 * call;
}

int64_t plan_offset(const struct plan *plan, int rank, int call, int64_t packed, int64_t *left)
{
    const struct view *view = &plan->view[rank];
    int64_t first = plan->access[rank][call].at * view->etype_size;

    return view->disp + layout_locate(&view->layout, first + packed, left);
}

/* One past the last byte of an access. */
static int64_t end_of(const struct plan *plan, int rank, int call)
{
    int64_t bytes = plan->access[rank][call].bytes, left;

    return bytes ? plan_offset(plan, rank, call, bytes - 1, &left) + 1 : 0;
}

/* Ranks that share a pointer follow each other, call after call. */
static void place_shared(const struct cell *cell, struct plan *plan)
{
    int64_t at = FIRST;

    for (int call = 0; call < CALLS; call++)
        for (int rank = 0; rank < cell->ranks; rank++) {
            plan->access[rank][call].at = at;
            at += plan->access[rank][call].bytes / plan->view[rank].etype_size;
        }
    plan->shared_position = at;
}

/* Other ranks have their own place: by their view, or one behind the other in a common view. */
static void place_own(const struct cell *cell, struct plan *plan)
{
    int64_t at = FIRST;

    for (int rank = 0; rank < cell->ranks; rank++) {
        if (cell->view != VIEW_CONTIG)
            at = FIRST;
        for (int call = 0; call < CALLS; call++) {
            plan->access[rank][call].at = at;
            at += plan->access[rank][call].bytes / plan->view[rank].etype_size;
            if (cell->op->pointer == OP_AT)
                at += 2;
        }
        plan->position[rank] = cell->op->pointer == OP_INDIVIDUAL ? at : 0;
    }
}

static void size_file(const struct cell *cell, struct plan *plan)
{
    int64_t end = 0, left;
    int last = cell->ranks - 1;

    for (int rank = 0; rank < cell->ranks; rank++)
        for (int call = 0; call < CALLS; call++)
            if (end_of(plan, rank, call) > end)
                end = end_of(plan, rank, call);
    plan->size_before = end + 100;
    if (cell->variant == VARIANT_EOF) /* not at the edge of an element */
        plan->size_before =
            plan_offset(plan, last, 0, plan->access[last][0].bytes * 3 / 5, &left) + 1;
    plan->size_after = plan->size_before;
    if (cell->op->write && end > plan->size_after)
        plan->size_after = end;
}

void plan_make(const struct cell *cell, struct plan *plan)
{
    bool common = cell->op->pointer == OP_SHARED || cell->op->pointer == OP_ORDERED;

    memset(plan, 0, sizeof *plan);
    for (int rank = 0; rank < cell->ranks; rank++) {
        view_build(cell->view, common ? 0 : rank, cell->ranks, &plan->view[rank]);
        if (rank != cell->rank)
            view_free(&plan->view[rank]);
        for (int call = 0; call < CALLS; call++) {
            plan->access[rank][call].units = units_of(cell, rank, call);
            plan->access[rank][call].bytes = (int64_t)units_of(cell, rank, call) * UNIT;
        }
    }
    if (common)
        place_shared(cell, plan);
    else
        place_own(cell, plan);
    size_file(cell, plan);
    for (int rank = 0; rank < cell->ranks; rank++)
        for (int call = 0; call < CALLS; call++) {
            struct access *access = &plan->access[rank][call];
            const struct view *view = &plan->view[rank];

            access->avail = access->bytes;
            if (!cell->op->write)
                access->avail = layout_below(&view->layout, access->at * view->etype_size,
                                             access->bytes, plan->size_before - view->disp);
        }
}
