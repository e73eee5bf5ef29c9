/* SPDX-License-Identifier: MIT */
/*
 * Kernels: what a GPU does for us. One kernel moves bytes between memory (described by blocks) and
 * a packed range, in either direction; both sides may be device memory or mapped pinned memory.
 *
 * Its source (move.inc) is compiled for AMD, for NVIDIA (as PTX text) and as C. This header is the
 * contract between that source and whoever launches it, and is read by the GPU compilers as well.
 *
 * The kernel takes one argument, a struct hipio_kernel_move by value. Threads of a block:
 * HIPIO_KERNEL_THREADS; any number of blocks. Alignment is never the caller's concern: the packed
 * side is accessed in aligned units of 16 bytes but for its two ends, the memory side in the
 * largest unit (16, 8, 4, 2, 1) that all blocks allow. Not a byte outside the blocks and the packed
 * range is read or written. Where blocks overlap, an unpack leaves each byte from one of them.
 */
#pragma once
#include <stdint.h>

#define HIPIO_KERNEL_MOVE "hipio_kernel_move" /* its name in the images */
#define HIPIO_KERNEL_THREADS 256

enum hipio_kernel_way {
    HIPIO_KERNEL_PACK,  /* memory -> packed */
    HIPIO_KERNEL_UNPACK /* packed -> memory */
};

enum hipio_kernel_shape {
    /*
     * Blocks of `length` bytes, `stride` apart, as many as there are bytes. The first packed byte
     * is `skip` bytes into this sequence. A contiguous range is one block of at least skip + bytes.
     */
    HIPIO_KERNEL_STRIP,
    /* Blocks of `length` bytes; `table` is the address of int64_t offsets, one for each. The first
     * packed byte is `skip` bytes into this sequence. */
    HIPIO_KERNEL_BLOCKS,
    /* `table` is the address of `entries` struct hipio_kernel_entry. */
    HIPIO_KERNEL_LIST
};

/* Blocks of `length` bytes (not 0), `stride` apart, as many as it takes to get from the entry's
 * packed position to that of the next, or of the end; the last block may be cut. */
struct hipio_kernel_entry {
    uint64_t packed; /* position in the packed range; 0 in the first entry, rising */
    int64_t offset;  /* from `memory` */
    uint64_t length;
    int64_t stride;
};

/* All addresses are those that the GPU knows. What a shape does not name is 0. */
struct hipio_kernel_move {
    uint64_t packed; /* address of the packed range */
    uint64_t bytes;  /* how many of them to move; 0 is allowed */
    uint64_t memory; /* address of the strip's first block, or that offsets are relative to */
    uint32_t shape;  /* enum hipio_kernel_shape */
    uint32_t way;    /* enum hipio_kernel_way */
    /*
     * 0, or 2, 4, 8, 16: reverses the bytes of each element of that size on the way. The first
     * packed byte begins an element and `bytes` is a multiple of the size. Blocks may cut elements.
     */
    uint32_t swap;
    uint32_t reserved;
    uint64_t length; /* not 0 where the shape has it */
    int64_t stride;
    uint64_t skip;
    uint64_t table; /* a multiple of 8 */
    uint64_t entries;
    /*
     * Tells how the blocks are aligned to `memory`: or-ed together, for BLOCKS all offsets and, if
     * there are several, the length; for LIST all offsets and packed positions, and the length and
     * stride of each entry of several blocks. Too many bits cost speed, too few are an error.
     */
    uint64_t bits;
    /*
     * Where not 0, addresses of values that are read when the kernel runs, written before it by the
     * host or by earlier work of the stream. Of a uint64_t: so many bytes there are in all, of
     * which the first late_done are not this launch's; it moves the rest, at most `bytes` (and
     * keeps to the rule of `swap`). Of an int64_t: added to `memory`.
     */
    uint64_t late_size;
    uint64_t late_done;
    uint64_t late_offset;
};

#ifndef HIPIO_KERNEL_SOURCE
#include <stddef.h>

/* Something that a provider's module_load may take. `data` is page-aligned and followed by a NUL.
 * Copy it to anonymous memory before a GPU runtime sees it: HIP would open the file it lies in. */
struct hipio_kernel_image {
    const char *name; /* for people */
    const void *data;
    size_t size;
};

/*
 * The image for a family: "hip" and "cuda", as a provider's image_family says, or "hipsim" for the
 * simulated HIP runtime. 0, or -1 where none was built.
 */
int hipio_kernel_image(const char *family, struct hipio_kernel_image *image);

/* Blocks to launch for that many packed bytes on a GPU of that many multiprocessors (<= 0: not
 * known). Never 0. */
unsigned hipio_kernel_blocks(uint64_t bytes, int multiprocessors);

/* The same source compiled for the CPU: does over plain memory what a launch of `blocks` blocks
 * would, in the calling thread. */
void hipio_kernel_run_on_host(const struct hipio_kernel_move *move, unsigned blocks);
#endif
