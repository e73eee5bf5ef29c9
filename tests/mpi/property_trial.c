/* SPDX-License-Identifier: MIT */
/*
 * The property test: what a seed says. Two streams of random numbers follow from it, one that is
 * the same on all ranks and one of this rank's own.
 */
#include "property.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM = MEMORY / 2 - 8192, /* bytes that data may reach from the middle of the buffer */
    MOST_HULL = 400 << 10,    /* bytes of the file that one access may span */
    MOST_CELLS = 60000        /* the same of one type of cells */
};

static MPI_Offset least(MPI_Offset a, MPI_Offset b)
{
    return a < b ? a : b;
}

static int below(struct random_state *random, int n)
{
    return (int)random_below(random, (uint32_t)n);
}

/* ---- What is the same on all ranks ---- */

static void choose_etype(struct trial *trial, struct random_state *common)
{
    static const MPI_Datatype types[] = {MPI_BYTE, MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
    int i = below(common, 6);

    if (i < 5)
        MPI_Type_dup(types[i], &trial->etype);
    else
        MPI_Type_contiguous(3, MPI_BYTE, &trial->etype);
    MPI_Type_commit(&trial->etype);
    MPI_Type_size(trial->etype, &trial->etype_size);
}

static void choose_common(struct trial *trial, struct random_state *common)
{
    trial->call = &calls[below(common, calls_count)];
    trial->write = below(common, 2);
    trial->size = below(common, 4) ? below(common, FILE_MOST) : 0;
    trial->disp = below(common, 3) ? below(common, 5000) : 0;
    if (trial->call->pointer == BY_SHARED || trial->call->pointer == BY_ORDER)
        trial->meeting = SAME;
    else
        trial->meeting = (enum meeting)below(common, trial->write ? OWN : MEETINGS);
    choose_etype(trial, common);
}

/* ---- Views ---- */

/* The type itself, or one of runs with the same bytes; both with that extent. */
static MPI_Datatype tile_of(const struct trial *trial, struct random_state *random)
{
    const struct map *map = &trial->view;
    MPI_Datatype inner, tile;

    if (below(random, 4) == 0)
        inner = map_runs(map, trial->etype, trial->etype_size);
    else
        MPI_Type_dup(map->type, &inner);
    MPI_Type_create_resized(inner, 0, trial->tile, &tile);
    MPI_Type_free(&inner);
    return tile;
}

/* A type of its own, or contiguous data. `random` is the same on all ranks, or is not. */
static MPI_Datatype make_alone(struct trial *trial, struct random_state *random)
{
    const struct random_kind kind = {.rising = true, .leaf = trial->etype};
    MPI_Datatype plain;

    if (below(random, 4) == 0) {
        MPI_Type_dup(trial->etype, &plain);
        map_make(&trial->view, plain);
    } else {
        map_make_random(&trial->view, random, &kind, 4000);
    }
    trial->start = 0;
    trial->tile = trial->view.low + trial->view.span;
    if (trial->view.extent > trial->tile)
        trial->tile = trial->view.extent;
    if (below(random, 3) == 0)
        trial->tile += below(random, 300);
    return tile_of(trial, random);
}

/* The ranks' types side by side in a tile, in the order of ranks or against it. */
static MPI_Datatype make_sides(struct trial *trial, struct random_state *common,
                               struct random_state *own)
{
    const struct random_kind kind = {.rising = true, .leaf = trial->etype};
    MPI_Aint span[RANKS];
    MPI_Datatype inner, placed, view;
    int one = 1, turned = below(common, 2), ranks = case_ranks();

    map_make_random(&trial->view, own, &kind, 4000);
    MPI_Allgather(&trial->view.span, 1, MPI_AINT, span, 1, MPI_AINT, MPI_COMM_WORLD);
    trial->tile = 0;
    for (int i = 0; i < ranks; i++) {
        int rank = turned ? ranks - 1 - i : i;

        trial->tile += below(common, 3) ? 0 : below(common, 3000);
        if (rank == case_rank())
            trial->start = trial->tile - trial->view.low;
        trial->tile += span[rank];
    }
    inner = tile_of(trial, own);
    MPI_Type_create_hindexed(1, &one, &trial->start, inner, &placed);
    MPI_Type_create_resized(placed, 0, trial->tile, &view);
    MPI_Type_free(&placed);
    MPI_Type_free(&inner);
    return view;
}

/* A part of each cell of the type `shape`, whose bytes are the cells. */
static MPI_Datatype cells_of(const struct map *shape, const struct trial *trial, int part,
                             int parts)
{
    int *length = must_have((size_t)shape->bytes * sizeof *length), n = 0;
    MPI_Aint *start = must_have((size_t)shape->bytes * sizeof *start);
    MPI_Aint cell = (MPI_Aint)part * parts, mine = (MPI_Aint)part * ((case_rank() + part) % parts);
    MPI_Datatype plain, one, type;

    for (int k = 0; k < shape->bytes; k++) {
        if (k == 0 || shape->offset[k] != shape->offset[k - 1] + 1)
            start[n++] = shape->offset[k] * cell + mine;
        length[n - 1]++;
    }
    MPI_Type_contiguous(part / trial->etype_size, trial->etype, &plain);
    MPI_Type_create_resized(plain, 0, cell, &one);
    MPI_Type_create_hindexed(n, length, start, one, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&one);
    MPI_Type_free(&plain);
    free(length);
    free(start);
    return type;
}

/* The ranks' bytes alternate as finely as may be. */
static MPI_Datatype make_cells(struct trial *trial, struct random_state *common)
{
    const struct random_kind kind = {.rising = true, .leaf = MPI_DATATYPE_NULL};
    int ranks = case_ranks(), part = trial->etype_size * (1 + below(common, 30)), reach;
    struct map shape = {.type = MPI_DATATYPE_NULL};
    MPI_Datatype view;

    do {
        map_free(&shape);
        map_make_random(&shape, common, &kind, 400);
        reach = (int)(shape.low + shape.span) * ranks;
        if (reach * part > MOST_CELLS)
            part = trial->etype_size;
    } while (reach * part > MOST_CELLS);
    map_make(&trial->view, cells_of(&shape, trial, part, ranks));
    trial->start = 0;
    trial->tile = (MPI_Aint)reach * part + (below(common, 2) ? below(common, 500) : 0);
    map_free(&shape);
    MPI_Type_create_resized(trial->view.type, 0, trial->tile, &view);
    return view;
}

static MPI_Datatype make_view(struct trial *trial, struct random_state *common,
                              struct random_state *own)
{
    MPI_Datatype view;

    if (trial->meeting == SIDES)
        view = make_sides(trial, common, own);
    else if (trial->meeting == CELLS)
        view = make_cells(trial, common);
    else
        view = make_alone(trial, trial->meeting == SAME ? common : own);
    MPI_Type_commit(&view);
    return view;
}

/* ---- The access ---- */

static int common_divisor(int a, int b)
{
    while (b) {
        int rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Bytes of the view in so many bytes of the file. */
static MPI_Offset view_bytes_in(const struct trial *trial, int64_t file_bytes)
{
    return file_bytes / trial->tile * trial->view.bytes;
}

/* How many items make whole etypes and stay within memory and file; 0: no number does. */
static int choose_count(const struct trial *trial, struct random_state *own, int most_bytes)
{
    const struct map *memory = &trial->memory;
    int step = trial->etype_size / common_divisor(memory->bytes, trial->etype_size);
    MPI_Aint reach = labs(memory->extent) * step;
    MPI_Offset most = most_bytes / (memory->bytes * step);

    most = least(most, (ROOM - labs(memory->low) - memory->span) / (reach ? reach : 1));
    most = least(most, view_bytes_in(trial, MOST_HULL) / (memory->bytes * step));
    return most < 1 ? 0 : (1 + below(own, (int)most)) * step;
}

/* A read's memory may not name a byte twice, but where the last one is known to win. */
static void choose_memory(struct trial *trial, struct random_state *own)
{
    struct random_kind kind = {.leaf = MPI_DATATYPE_NULL};
    int most_bytes = below(own, 12) ? 6000 : 40000;

    for (int tries = 0;; tries++) {
        kind.rising = tries > 4 && !trial->write;
        map_make_random(&trial->memory, own, &kind, 3000);
        trial->count = choose_count(trial, own, most_bytes);
        if (trial->count > 0 &&
            (trial->write || trial->in_order || !map_overlaps(&trial->memory, trial->count)))
            break;
        map_free(&trial->memory);
    }
    /* Sooner or later a rank has nothing. */
    if (below(own, 10) == 0)
        trial->count = 0;
    if (trial->call->pointer == BY_SHARED &&
        case_rank() != (int)(trial->seed % (uint64_t)case_ranks()))
        trial->count = 0;
    trial->bytes = (int64_t)trial->count * trial->memory.bytes;
}

/* With one view for all, the ranks' accesses follow each other. */
static void choose_offset(struct trial *trial, struct random_state *common,
                          struct random_state *own)
{
    MPI_Offset most = least(view_bytes_in(trial, MOST_HULL / 2) / trial->etype_size, 3000);
    long long mine = trial->bytes / trial->etype_size, before = 0;

    trial->base = below(common, 3) == 0 ? below(common, (int)most + 1) : 0;
    trial->at = below(own, 3) == 0 ? below(own, (int)most + 1) : 0;
    if (trial->meeting != SAME)
        return;
    MPI_Exscan(&mine, &before, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    trial->at = trial->base + (case_rank() == 0 || trial->call->pointer == BY_SHARED ? 0 : before);
}

void trial_choose(struct trial *trial, MPI_Datatype *view)
{
    struct random_state common, own;

    random_seed(&common, trial->seed * 64 + 63);
    random_seed(&own, trial->seed * 64 + (uint64_t)case_rank());
    choose_common(trial, &common);
    *view = make_view(trial, &common, &own);
    choose_memory(trial, &own);
    choose_offset(trial, &common, &own);
    trial->kind = (enum gpu_kind)below(&own, case_kinds());
}

void trial_free(struct trial *trial)
{
    map_free(&trial->view);
    map_free(&trial->memory);
    MPI_Type_free(&trial->etype);
}

const char *trial_name(const struct trial *trial)
{
    static const char *const meetings[] = {"one view", "side by side", "cells", "any views"};
    static char text[512];

    snprintf(text, sizeof text,
             "seed %llu: %s %s, %s, etype of %d, %s memory, %lld bytes of %d x %d (%s)",
             (unsigned long long)trial->seed, trial->write ? "write" : "read", trial->call->name,
             meetings[trial->meeting], trial->etype_size, gpu_kind_name(trial->kind),
             (long long)trial->bytes, trial->count, trial->memory.bytes, trial->hints);
    return text;
}

int64_t trial_file_offset(const struct trial *trial, int64_t position)
{
    int64_t at = trial->at * trial->etype_size + position;

    return trial->disp + trial->start + at / trial->view.bytes * trial->tile +
           trial->view.offset[at % trial->view.bytes];
}

int64_t trial_memory_offset(const struct trial *trial, int64_t position)
{
    return MEMORY / 2 + position / trial->memory.bytes * trial->memory.extent +
           trial->memory.offset[position % trial->memory.bytes];
}
