/* SPDX-License-Identifier: MIT */
/*
 * Mapping: windows, the order of their use, and what is known of the pages behind them.
 */
#include "mapping.h"
#include "pagecache.h"
#include "stats.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What is looked at in one go. */
#define GRANULE ((uint64_t)256 << 10)

/* From so many bytes on, the pages of fresh memory are better made in one call than one by one. */
#define POPULATE_MIN ((uint64_t)32 << 10)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct mapping {
    struct hipio_attachment attachment; /* first */
    pthread_mutex_t lock; /* guards the list, the windows' users, and what is settled */
    struct hipio_mapping_window *windows; /* the last used first */
    unsigned count;
    atomic_int facts; /* see below */
    _Atomic int64_t stamp;
    int64_t settled;  /* see hipio_mapping_is_settled; -1: no size yet */
    uint64_t resizes; /* hipio_file_resizes of that time */
};

enum facts { LOOKED = 1, READABLE = 2, WRITABLE = 4, IN_MEMORY = 8 };

static char room;

/* ---- The file ---- */

static void unmap(struct hipio_mapping_window *window)
{
    munmap(window->memory, window->length);
    hipio_stats_level(HIPIO_COUNT_mapped_now, HIPIO_COUNT_mapped_peak, -(int64_t)window->length);
    free(window);
}

static void destroy(struct hipio_attachment *attachment, bool forked)
{
    struct mapping *mapping = (struct mapping *)attachment;

    while (mapping->windows) {
        struct hipio_mapping_window *next = mapping->windows->next;

        unmap(mapping->windows);
        mapping->windows = next;
    }
    if (!forked)
        pthread_mutex_destroy(&mapping->lock);
    free(mapping);
}

static struct hipio_attachment *make(void)
{
    struct mapping *mapping = calloc(1, sizeof *mapping);

    if (!mapping)
        return NULL;
    pthread_mutex_init(&mapping->lock, NULL);
    mapping->settled = -1;
    mapping->attachment.destroy = destroy;
    return &mapping->attachment;
}

static struct mapping *find(struct hipio_file *file)
{
    return (struct mapping *)hipio_file_attachment(file, &room, make);
}

static bool is_suitable(const char *system)
{
    static const char *const names[] = {"ext4", "xfs", "btrfs", "f2fs", "tmpfs"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], system) == 0)
            return true;
    return false;
}

static int look(const struct hipio_file *file)
{
    const int fd = hipio_file_descriptor(file);
    const int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    struct stat status;

    if (flags < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        !is_suitable(hipio_file_system(file)) ||
        (flags & (O_DIRECT | O_SYNC | O_DSYNC | O_APPEND | O_PATH)))
        return LOOKED;
    const int memory = strcmp(hipio_file_system(file), "tmpfs") == 0 ? IN_MEMORY : 0;
    if ((flags & O_ACCMODE) == O_RDWR)
        return LOOKED | memory | READABLE | WRITABLE;
    return (flags & O_ACCMODE) == O_RDONLY ? LOOKED | memory | READABLE : LOOKED;
}

static int facts_of(struct hipio_file *file)
{
    struct mapping *mapping = find(file);

    if (!mapping)
        return 0;
    int facts = atomic_load_explicit(&mapping->facts, memory_order_relaxed);
    if (!facts) {
        facts = look(file);
        atomic_store_explicit(&mapping->facts, facts, memory_order_relaxed);
    }
    return facts;
}

bool hipio_mapping_allows(struct hipio_file *file, enum hipio_op op)
{
    return facts_of(file) & (op == HIPIO_WRITE ? WRITABLE : READABLE);
}

bool hipio_mapping_is_in_memory(struct hipio_file *file)
{
    return facts_of(file) & IN_MEMORY;
}

bool hipio_mapping_reserve(struct hipio_file *file, int64_t offset, uint64_t length)
{
    return fallocate(hipio_file_descriptor(file), FALLOC_FL_KEEP_SIZE, offset, (off_t)length) == 0;
}

bool hipio_mapping_stamp_is_due(struct hipio_file *file)
{
    struct mapping *mapping = find(file);
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    const int64_t tick = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return mapping && atomic_exchange(&mapping->stamp, tick) != tick;
}

bool hipio_mapping_is_settled(struct hipio_file *file, int64_t size)
{
    struct mapping *mapping = find(file);

    if (!mapping)
        return false;
    pthread_mutex_lock(&mapping->lock);
    const bool is = mapping->settled == size && mapping->resizes == hipio_file_resizes(file);
    pthread_mutex_unlock(&mapping->lock);
    return is;
}

void hipio_mapping_settle(struct hipio_file *file, int64_t size, uint64_t resizes)
{
    struct mapping *mapping = find(file);

    if (!mapping)
        return;
    pthread_mutex_lock(&mapping->lock);
    mapping->settled = size;
    mapping->resizes = resizes;
    pthread_mutex_unlock(&mapping->lock);
}

/* ---- Windows ---- */

static bool has(const struct hipio_mapping_window *window, int64_t offset)
{
    return offset >= window->offset && (uint64_t)(offset - window->offset) < window->length;
}

static struct hipio_mapping_window *map(struct hipio_file *file, int64_t offset)
{
    const uint64_t length = hipio_file_tunables(file)->mapping_window;
    const uint64_t words = length / GRANULE / 64 + 1;
    const int protection = PROT_READ | (facts_of(file) & WRITABLE ? PROT_WRITE : 0);
    struct hipio_mapping_window *window = calloc(1, sizeof *window + words * sizeof(uint64_t));

    if (!window)
        return NULL;
    window->offset = (int64_t)((uint64_t)offset / length * length);
    window->length = length;
    window->memory =
        mmap(NULL, length, protection, MAP_SHARED, hipio_file_descriptor(file), window->offset);
    if (window->memory == MAP_FAILED) {
        free(window);
        return NULL;
    }
    hipio_stats_level(HIPIO_COUNT_mapped_now, HIPIO_COUNT_mapped_peak, (int64_t)length);
    return window;
}

/* With the lock held: the last window of the list that nobody uses goes, if there is one. */
static void evict(struct mapping *mapping)
{
    struct hipio_mapping_window **found = NULL;

    for (struct hipio_mapping_window **at = &mapping->windows; *at; at = &(*at)->next)
        if ((*at)->users == 0)
            found = at;
    if (!found)
        return;
    struct hipio_mapping_window *window = *found;
    *found = window->next;
    mapping->count--;
    unmap(window);
}

/* With the lock held: the window goes to the front of the list. */
static struct hipio_mapping_window *take(struct mapping *mapping, int64_t offset)
{
    struct hipio_mapping_window **at = &mapping->windows;

    while (*at && !has(*at, offset))
        at = &(*at)->next;
    struct hipio_mapping_window *window = *at;
    if (!window)
        return NULL;
    *at = window->next;
    window->next = mapping->windows;
    mapping->windows = window;
    window->users++;
    return window;
}

struct hipio_mapping_window *hipio_mapping_borrow(struct hipio_file *file, int64_t offset)
{
    struct mapping *mapping = find(file);

    if (!mapping)
        return NULL;
    pthread_mutex_lock(&mapping->lock);
    struct hipio_mapping_window *window = take(mapping, offset);
    if (!window && mapping->count >= HIPIO_MAPPING_WINDOWS_MAX)
        evict(mapping);
    if (!window && mapping->count < HIPIO_MAPPING_WINDOWS_MAX && (window = map(file, offset))) {
        window->users = 1;
        window->next = mapping->windows;
        mapping->windows = window;
        mapping->count++;
    }
    pthread_mutex_unlock(&mapping->lock);
    return window;
}

void hipio_mapping_return(struct hipio_file *file, struct hipio_mapping_window *window)
{
    struct mapping *mapping = find(file);

    pthread_mutex_lock(&mapping->lock);
    window->users--;
    pthread_mutex_unlock(&mapping->lock);
}

/* ---- Pages ---- */

static bool is_known(const struct hipio_mapping_window *window, uint64_t granule)
{
    return __atomic_load_n(&window->known[granule / 64], __ATOMIC_RELAXED) >> granule % 64 & 1;
}

static void set_known(struct hipio_mapping_window *window, uint64_t granule)
{
    __atomic_fetch_or(&window->known[granule / 64], UINT64_C(1) << granule % 64, __ATOMIC_RELAXED);
}

/* Looks at a whole granule, as far as the file reaches, so that the next piece of it costs nothing.
 */
static bool is_there(const struct hipio_file *file, struct hipio_mapping_window *window,
                     uint64_t granule, int64_t size)
{
    const int64_t offset = window->offset + (int64_t)(granule * GRANULE);
    uint64_t length = GRANULE;

    if (is_known(window, granule))
        return true;
    if (offset >= size)
        return false;
    if (length > (uint64_t)(size - offset))
        length = (uint64_t)(size - offset);
    if (!hipio_pagecache_holds(hipio_file_descriptor(file), offset, length,
                               window->memory + granule * GRANULE))
        return false;
    set_known(window, granule);
    return true;
}

/* A file in memory is never read from a disk, but its pages may have to be made: in one call, where
 * that pays. Its error will be met again at the page that causes it. */
static void make_pages(struct hipio_mapping_window *window, uint64_t start, uint64_t length)
{
    const uint64_t granule = start / GRANULE;
    const uint64_t low = start & ~(uint64_t)4095;

    if (length < POPULATE_MIN || is_known(window, granule))
        return;
    madvise(window->memory + low, start + length - low, MADV_POPULATE_WRITE);
    for (uint64_t i = granule; i <= (start + length - 1) / GRANULE; i++)
        set_known(window, i);
}

bool hipio_mapping_is_quick(struct hipio_file *file, struct hipio_mapping_window *window,
                            enum hipio_op op, int64_t offset, uint64_t length, int64_t size)
{
    const uint64_t start = (uint64_t)(offset - window->offset);

    if (op == HIPIO_WRITE && (facts_of(file) & IN_MEMORY)) {
        make_pages(window, start, length);
        return true;
    }
    for (uint64_t i = start / GRANULE; i <= (start + length - 1) / GRANULE; i++)
        if (!is_there(file, window, i, size))
            return op == HIPIO_WRITE &&
                   hipio_pagecache_is_hole(hipio_file_descriptor(file), offset, length);
    return true;
}
