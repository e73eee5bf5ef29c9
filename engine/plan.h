/* SPDX-License-Identifier: MIT */
/*
 * Plan: facts in, plan out. Pure: no I/O, no clock, no environment, so that every decision can be
 * tested as a line of a table and shown to a user with its reason.
 */
#pragma once
#include "request.h"
#include "tunables.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request never uses more lanes, whatever the setting says. */
#define HIPIO_PLAN_LANES_MAX 16

struct hipio_plan_facts {
    enum hipio_op op;
    uint64_t length; /* bytes, > 0 */
    bool staged;     /* through staging chunks, else in place */
    bool shared;     /* the file system serves several machines */
    unsigned cores;  /* cores for this process */
    /* Settings, as they are in force. */
    uint64_t lanes;
    uint64_t chunk_size;
    uint64_t pinned_limit;
    uint64_t mapping; /* a hipio_switch */
    /* The file, as far as it matters for a mapping. */
    bool mappable;       /* by hipio_mapping_allows */
    bool fresh;          /* a write ends beyond the end of the file */
    uint64_t run;        /* bytes of a typical contiguous range of the file */
    unsigned neighbours; /* other processes that probably use the file at the same time */
    bool in_memory;      /* the file system has no disk */
    bool direct;         /* past the page cache (hipio_storage_is_direct) */
};

struct hipio_plan {
    unsigned lanes;
    unsigned slots;     /* staging chunks of one lane: 2 overlap storage and GPU copy */
    uint64_t chunk;     /* bytes of one staging chunk */
    uint64_t piece;     /* bytes that a lane takes at a time, at most a chunk when staged */
    const char *reason; /* why so many lanes */
    bool mapped;        /* storage works through a mapping of the file */
    bool reserve;       /* disk space for all of it is reserved first, else `mapped` is in vain */
};

void hipio_plan_make(const struct hipio_plan_facts *facts, struct hipio_plan *plan);

/* One line for people: "2 lanes, each with 2 staging chunks of 1048576 bytes, pieces of ...". */
void hipio_plan_describe(const struct hipio_plan *plan, char *out, size_t size);
