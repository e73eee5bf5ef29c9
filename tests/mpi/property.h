/* SPDX-License-Identifier: MIT */
/*
 * The property test: random nested datatypes in memory and as views, on ranks that differ, through
 * every call, against MPI_Pack and plain pwrite on the host. A seed says everything about a trial;
 * BATCH seeds in a row share an open file and its hints.
 */
#pragma once
#include "../adio/random_type.h"
#include "cases.h"

enum {
    BATCH = 20,
    RANKS = 16,
    MEMORY = 256 << 10,   /* bytes of a buffer; data lie around its middle */
    MOST_SPAN = 20000,    /* of one item of a type */
    FILE_MOST = 200 << 10 /* bytes of the file before a trial */
};

/* ---- What a datatype means (property_map.c) ---- */

struct map {
    MPI_Datatype type;
    int bytes;
    MPI_Aint low, span; /* of one item's bytes */
    MPI_Aint extent;
    int *offset; /* of each packed byte of one item */
};

/* Asks MPI_Pack. Takes over the type. */
void map_make(struct map *map, MPI_Datatype type);
void map_free(struct map *map);
/* Makes a map of a random type that has bytes, few enough and close enough together. */
void map_make_random(struct map *map, struct random_state *random, const struct random_kind *kind,
                     int most_bytes);
/* Offsets never fall, and no byte is named twice. */
bool map_rises(const struct map *map);
/* `count` items one extent apart name a byte twice. */
bool map_overlaps(const struct map *map, int count);
/* A type of runs in the order of the map, each of `unit`'s (of `size` bytes). */
MPI_Datatype map_runs(const struct map *map, MPI_Datatype unit, int size);
void *must_have(size_t bytes);

/* ---- The calls (property_call.c) ---- */

enum pointer { BY_OFFSET, BY_POINTER, BY_SHARED, BY_ORDER };

struct access {
    MPI_File file;
    void *at_memory;
    int count;
    MPI_Datatype type;
    MPI_Offset at; /* etypes */
    bool write;
};

struct call {
    const char *name;
    enum pointer pointer;
    bool collective;
    int (*run)(const struct access *access, MPI_Status *status);
};
extern const struct call calls[];
extern const int calls_count;

/* ---- A trial ---- */

/* How the ranks' views stand to each other. */
enum meeting {
    SAME,  /* one view; the ranks' accesses begin at different offsets */
    SIDES, /* one rank's type beside the other's, in tiles */
    CELLS, /* every byte of one type is a cell, of which each rank has a part */
    OWN,   /* any view of its own, for reads */
    MEETINGS
};

struct trial {
    uint64_t seed;
    /* The same on all ranks. */
    const struct call *call;
    bool write;
    enum meeting meeting;
    MPI_Datatype etype;
    int etype_size;
    MPI_Offset disp;
    MPI_Offset base; /* etypes before the first access, where the ranks share a view */
    int64_t size;    /* of the file before it */
    const char *hints;
    bool in_order; /* by these, bytes reach memory in the order of the type map */
    /* This rank's. */
    struct map view, memory;
    MPI_Aint tile, start; /* the view repeats after `tile` bytes; the type begins at `start` */
    int count;
    int64_t bytes;
    MPI_Offset at; /* etypes */
    enum gpu_kind kind;
    struct buffer *buffer;
};

/* Chooses everything about the trial (property_trial.c). Collective. */
void trial_choose(struct trial *trial, MPI_Datatype *view);
void trial_free(struct trial *trial);
/* Text for messages: what was done. */
const char *trial_name(const struct trial *trial);
/* Offset in the file of the byte at a position of the access; offset in the buffer. */
int64_t trial_file_offset(const struct trial *trial, int64_t position);
int64_t trial_memory_offset(const struct trial *trial, int64_t position);

/* ---- What should be (property_check.c) ---- */

/* Puts both files into the state that the trial begins with. Rank 0. */
void files_prepare(const struct trial *trial);
void files_open(void);
void files_close(void);
/* Fills the buffer, and writes what the access must into the right file. */
void trial_prepare(const struct trial *trial);
/* After all ranks are through. */
void trial_check(const struct trial *trial, int code, const MPI_Status *status);
