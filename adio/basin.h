/* SPDX-License-Identifier: MIT */
/*
 * Basin: one round of an aggregator's domain in memory. A write collects the ranks' bytes in it,
 * remembers which ones there are, and stores exactly these, so that what nobody wrote stays as it
 * is in the file. A read fetches what the ranks want into it.
 */
#pragma once
#include "domains.h"
#include "engine/request.h"
#include "piece.h"
#include <stdbool.h>

/* The page cache's unit: a basin begins with one, and no two hosts share one of a file. */
enum { HIPIO_PAGE = 4096 };

struct hipio_basin {
    /* Given by the owner. */
    char *memory;
    uint64_t *covered; /* a bit for each byte of the memory */
    uint64_t ready;    /* bytes that are known to be there; the owner's */
    unsigned sharers;  /* as in a request */
    /* Of the current round. */
    int64_t round;            /* -1: none */
    struct hipio_range range; /* which bytes of the file the memory holds, from its first byte on */
    /* Of the storage access on the way. */
    struct hipio_request request;
    struct hipio_layout *layout; /* NULL: none is on the way */
    int64_t fetched;             /* offset in the file at which a fetch began */
};

/* Bytes of memory that a basin for rounds of `size` bytes needs, bits included. */
uint64_t hipio_basin_bytes(uint64_t size);
/* Bytes of the bits for that much of the memory. */
uint64_t hipio_basin_bits(uint64_t bytes);
/* Lays a basin into that much memory, aligned to a page. */
void hipio_basin_init(struct hipio_basin *basin, void *memory, uint64_t size);

/* Makes it ready for a round. No access may be on the way. */
void hipio_basin_open(struct hipio_basin *basin, int64_t round, struct hipio_range range);
/* Forgets which bytes were put, before the first is put in this round. */
void hipio_basin_clear(struct hipio_basin *basin);
/* Puts a piece's bytes where they belong. The piece is sound. */
void hipio_basin_put(struct hipio_basin *basin, const struct hipio_piece *piece);
/* Marks bytes of the memory, counted from its first, as there, as put does. Several ranks may do so
 * at once for bytes of their own. */
void hipio_basin_cover(const struct hipio_basin *basin, uint64_t from, uint64_t bytes);
/* Takes a piece's bytes out. */
void hipio_basin_take(const struct hipio_basin *basin, const struct hipio_piece *piece, char *to);
/* Where the piece's bytes lie in the memory; NULL: not in one run. */
char *hipio_basin_place(const struct hipio_basin *basin, const struct hipio_piece *piece);

/*
 * Starts to store what was put, or to fetch `want` (within the basin's range), in the background.
 * 0 or a negative errno with text; then nothing is on the way.
 */
int hipio_basin_store(struct hipio_basin *basin, struct hipio_file *file);
int hipio_basin_fetch(struct hipio_basin *basin, struct hipio_file *file, struct hipio_range want);
/*
 * Waits for the access that is on the way, if there is one. Returns its status, once;
 * basin->request has the words.
 */
int hipio_basin_settle(struct hipio_basin *basin);
/* True: an access is on the way and not over yet. */
bool hipio_basin_is_busy(struct hipio_basin *basin);
/* After a fetch: the bytes below this offset of the file are there. */
int64_t hipio_basin_end(const struct hipio_basin *basin);
