/* SPDX-License-Identifier: MIT */
/*
 * Page cache: asked through cachestat (Linux 6.5), else mincore; holes through FIEMAP, which leaves
 * the descriptor's position alone.
 */
#include "pagecache.h"
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same number on all architectures; C libraries learn it late. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

struct cache_range {
    uint64_t offset;
    uint64_t length;
};

struct cache_answer {
    uint64_t cached;
    uint64_t dirty;
    uint64_t writeback;
    uint64_t evicted;
    uint64_t recently_evicted;
};

static uint64_t page_size(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

#define AT_ONCE 256

static bool ask_mincore(char *start, uint64_t pages)
{
    unsigned char there[AT_ONCE];
    const uint64_t page = page_size();

    while (pages > 0) {
        const uint64_t n = pages < AT_ONCE ? pages : AT_ONCE;

        if (mincore(start, n * page, there) != 0)
            return false;
        for (uint64_t i = 0; i < n; i++)
            if (!(there[i] & 1))
                return false;
        start += n * page;
        pages -= n;
    }
    return true;
}

bool hipio_pagecache_holds(int fd, int64_t offset, uint64_t length, void *mapped)
{
    static atomic_bool refused; /* the kernel has no cachestat, or a filter forbids it */
    const uint64_t page = page_size();
    const uint64_t first = (uint64_t)offset / page;
    const uint64_t pages = ((uint64_t)offset + length - 1) / page - first + 1;
    struct cache_range range = {first * page, pages * page};
    struct cache_answer answer;

    if (!atomic_load_explicit(&refused, memory_order_relaxed)) {
        if (syscall(SYS_cachestat, fd, &range, &answer, 0) == 0)
            return answer.cached >= pages;
        atomic_store_explicit(&refused, true, memory_order_relaxed);
    }
    return ask_mincore((char *)mapped - ((uint64_t)offset - first * page), pages);
}

#define EXTENTS 8

/* Reserved or preallocated space: there is nothing on the disk yet. */
#define EMPTY (FIEMAP_EXTENT_UNWRITTEN | FIEMAP_EXTENT_DELALLOC)

bool hipio_pagecache_is_hole(int fd, int64_t offset, uint64_t length)
{
    union {
        struct fiemap map;
        char room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
    } ask;

    memset(&ask, 0, sizeof ask);
    ask.map.fm_start = (uint64_t)offset;
    ask.map.fm_length = length;
    ask.map.fm_extent_count = EXTENTS;
    if (ioctl(fd, FS_IOC_FIEMAP, &ask.map) != 0 || ask.map.fm_mapped_extents >= EXTENTS)
        return false;
    for (unsigned i = 0; i < ask.map.fm_mapped_extents; i++)
        if (!(ask.map.fm_extents[i].fe_flags & EMPTY))
            return false;
    return true;
}
