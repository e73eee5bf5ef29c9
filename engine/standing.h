/* SPDX-License-Identifier: MIT */
/*
 * Standing: memory of the engine's own that serves transfer after transfer, such as a staging
 * chunk. Whoever owns such memory tells here; a storage that can prepare memory once for many
 * transfers asks here. The application's buffers are never in it: it may free one and get another
 * at the same address at any time, and nobody would hear of it.
 *
 * Serial numbers are never used again, addresses are. Whatever is kept about standing memory is
 * kept by its serial number.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct hipio_standing {
    void *memory;
    uint64_t bytes;
    uint64_t serial;             /* never 0 */
    struct hipio_standing *next; /* standing.c's own */
};

/* Begins: the owner keeps the struct until the end, and lends the memory to one thread at a time.
 */
void hipio_standing_begin(struct hipio_standing *piece, void *memory, uint64_t bytes);
/* Ends, before the memory is freed; no transfer may be using it. Nobody knows of it on return. */
void hipio_standing_end(struct hipio_standing *piece);

/* Copies to *out the standing memory that holds these bytes as a whole. False: there is none. */
bool hipio_standing_find(const void *memory, uint64_t bytes, struct hipio_standing *out);

/* `gone` is called from hipio_standing_end, without a lock, in the thread that ends the memory. One
 * watcher; the last one counts. */
void hipio_standing_watch(void (*gone)(uint64_t serial));
