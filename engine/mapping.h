/* SPDX-License-Identifier: MIT */
/*
 * Mapping: shared mappings of a file, in windows of the setting `mapping_window`, of which a file
 * keeps at most HIPIO_MAPPING_WINDOWS_MAX: the least recently used one goes first. A window may
 * reach beyond the end of the file; whoever touches it uses sigbus.h.
 */
#pragma once
#include "file.h"
#include "request.h"
#include <stdbool.h>
#include <stdint.h>

#define HIPIO_MAPPING_WINDOWS_MAX 32

struct hipio_mapping_window {
    char *memory;
    int64_t offset; /* of its first byte in the file */
    uint64_t length;
    /* The room's own. */
    struct hipio_mapping_window *next;
    unsigned users;
    uint64_t known[]; /* a bit for each granule that was seen to be in memory */
};

/*
 * Can reads (writes) of this file go through a mapping? It must be a regular file on a local file
 * system that reports a full disk when a page is touched, and its descriptor open for reading too,
 * without O_DIRECT, O_SYNC, O_DSYNC and O_APPEND, which a mapping can't honour.
 */
bool hipio_mapping_allows(struct hipio_file *file, enum hipio_op op);

/* Has the file system no disk? */
bool hipio_mapping_is_in_memory(struct hipio_file *file);

/* Reserves disk space for a write, without changing the file's size. False: it can't be had, or not
 * in this way; calls will tell. */
bool hipio_mapping_reserve(struct hipio_file *file, int64_t offset, uint64_t length);

/*
 * Has this process made a write call since it first saw the file at this size? A process that makes
 * the file longer shows the new size before it clears the rest of the page in which the file ended;
 * what another stores there through a mapping meanwhile is lost (seen on Linux 6.18, ext4). The
 * kernel lets no other write call in before that is over. So whoever stores through a mapping makes
 * a write call at each new size.
 */
bool hipio_mapping_is_settled(struct hipio_file *file, int64_t size);
/* After such a write call: the size, and hipio_file_resizes, as they were before it. */
void hipio_mapping_settle(struct hipio_file *file, int64_t size, uint64_t resizes);

/* The window with the byte at `offset`, until it is returned. NULL: it can't be had (address space,
 * memory, all windows in use). */
struct hipio_mapping_window *hipio_mapping_borrow(struct hipio_file *file, int64_t offset);
void hipio_mapping_return(struct hipio_file *file, struct hipio_mapping_window *window);

/*
 * Is it quick to touch these bytes of the window (no disk is read)? `size` is the file's. For a
 * write, holes count as quick. What was once seen to be in memory is believed to stay there. It is
 * a hint.
 */
bool hipio_mapping_is_quick(struct hipio_file *file, struct hipio_mapping_window *window,
                            enum hipio_op op, int64_t offset, uint64_t length, int64_t size);

/* True at most once per tick of the file systems' clock: the caller is to write a byte by a system
 * call, for the file's times and for whoever watches it. */
bool hipio_mapping_stamp_is_due(struct hipio_file *file);
