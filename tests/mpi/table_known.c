/* SPDX-License-Identifier: MIT */
/*
 * What plain ROMIO does wrong, as the oracle sees it. Each entry names the cells and the check that
 * it excuses; the reference run proves that everything else equals the oracle. Under hipio nothing
 * is excused: there ROMIO's faults end.
 */
#include "table.h"
#include <stdio.h>

static bool nonblocking_collective(const struct cell *cell)
{
    return cell->op->mode == OP_NONBLOCKING && cell->op->collective;
}

/* Only a contiguous blocking read that is not aggregated says how much it got. */
static bool end_of_file(const struct cell *cell)
{
    bool contiguous = cell->shape == SHAPE_CONTIG && cell->view == VIEW_CONTIG;
    bool alone = !cell->op->collective || cell->hints != HINTS_CB;

    if (cell->variant != VARIANT_EOF || cell->op->write)
        return false;
    return !contiguous || !alone || cell->op->mode == OP_NONBLOCKING;
}

static bool empty_collective(const struct cell *cell)
{
    return cell->variant == VARIANT_ZERO && cell->op->collective && cell->shape == SHAPE_CONTIG &&
           cell->view == VIEW_CONTIG && cell->hints != HINTS_CB;
}

/* Holes beyond the former end get whatever was in a sieving or collective buffer. */
static bool new_hole(const struct cell *cell)
{
    return cell->variant == VARIANT_EOF && cell->op->write && cell->view != VIEW_CONTIG &&
           cell->hints != HINTS_NOCB;
}

static bool lower_bound(const struct cell *cell)
{
    return cell->shape == SHAPE_LB;
}

static const struct known {
    enum check check;
    bool (*applies)(const struct cell *cell);
    const char *reason;
} known[] = {
    {CHECK_RUNS, nonblocking_collective, "nonblocking collectives jump to address 0"},
    {CHECK_RUNS, lower_bound,
     "data is displaced by a lower bound that MPI_Type_create_resized set"},
    {CHECK_COUNT, end_of_file, "reads past the end of the file report what was asked for"},
    {CHECK_PAST_EOF, end_of_file, "reads past the end of the file leave other bytes there"},
    {CHECK_COUNT, empty_collective, "an empty collective access leaves the status untouched"},
    {CHECK_HOLE, new_hole, "holes that a write makes beyond the end of the file hold stale memory"},
};
static long hits[sizeof known / sizeof *known];

const char *known_fault(const struct cell *cell, enum check check, bool romio)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (romio && known[i].check == check && known[i].applies(cell)) {
            hits[i]++;
            return known[i].reason;
        }
    return NULL;
}

void known_print(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (hits[i])
            printf("known fault of ROMIO, %ld times on rank 0: %s\n", hits[i], known[i].reason);
}
