/* SPDX-License-Identifier: MIT */
/* Maps and unmaps simulated memory. */
#include "mapping.h"

#include "settings.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, QUARANTINED = 256, POISON = 0xd7 };

/* Freed ranges, oldest at `next`. */
static struct {
    pthread_mutex_t lock;
    struct {
        char *address;
        size_t length;
    } ranges[QUARANTINED];
    unsigned next;
} quarantine = {.lock = PTHREAD_MUTEX_INITIALIZER};

char *hipsim_mapping_reserve(size_t bytes)
{
    char *address =
        mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return address == MAP_FAILED ? NULL : address;
}

/* The descriptor is closed at once: the two mappings keep the pages. */
static int map_split(struct hipsim_mapping *mapping)
{
    int fd = memfd_create("hipsim", MFD_CLOEXEC);
    void *seen = MAP_FAILED, *view = MAP_FAILED;

    if (fd < 0)
        return -1;
    if (!ftruncate(fd, (off_t)mapping->length)) {
        seen = mmap(mapping->pointer, mapping->length, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
        view = mmap(NULL, mapping->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (seen != MAP_FAILED && view != MAP_FAILED) {
        mapping->view = view;
        return 0;
    }
    if (view != MAP_FAILED)
        munmap(view, mapping->length);
    return -1;
}

static int map_plain(struct hipsim_mapping *mapping)
{
    void *seen = mmap(mapping->pointer, mapping->length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

    if (seen == MAP_FAILED)
        return -1;
    mapping->view = seen;
    return 0;
}

/* Large allocations are poisoned at both ends only, so that they cost no memory before use. */
static void poison(const struct hipsim_mapping *mapping, size_t bytes)
{
    uint64_t limit = hipsim_settings_get()->poison;

    if (bytes <= 2 * limit) {
        memset(mapping->view, POISON, bytes);
        return;
    }
    memset(mapping->view, POISON, limit);
    memset(mapping->view + bytes - limit, POISON, limit);
}

int hipsim_mapping_create(size_t bytes, bool split, struct hipsim_mapping *mapping)
{
    size_t length = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);

    if (length < bytes)
        return -1;
    mapping->length = length;
    mapping->pointer = hipsim_mapping_reserve(length + PAGE);
    if (!mapping->pointer)
        return -1;
    if (split ? map_split(mapping) : map_plain(mapping)) {
        munmap(mapping->pointer, length + PAGE);
        return -1;
    }
    poison(mapping, bytes);
    return 0;
}

static void empty(char *address, size_t length)
{
    mmap(address, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
}

void hipsim_mapping_withdraw(const struct hipsim_mapping *mapping)
{
    empty(mapping->pointer, mapping->length);
    empty(mapping->view, mapping->length);
}

void hipsim_mapping_destroy(const struct hipsim_mapping *mapping)
{
    char *oldest;
    size_t length;

    if (mapping->view != mapping->pointer)
        munmap(mapping->view, mapping->length);
    empty(mapping->pointer, mapping->length);
    pthread_mutex_lock(&quarantine.lock);
    oldest = quarantine.ranges[quarantine.next].address;
    length = quarantine.ranges[quarantine.next].length;
    quarantine.ranges[quarantine.next].address = mapping->pointer;
    quarantine.ranges[quarantine.next].length = mapping->length + PAGE;
    quarantine.next = (quarantine.next + 1) % QUARANTINED;
    pthread_mutex_unlock(&quarantine.lock);
    if (oldest)
        munmap(oldest, length);
}

bool hipsim_mapping_is_freed(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    bool found = false;

    pthread_mutex_lock(&quarantine.lock);
    for (unsigned i = 0; i < QUARANTINED && !found; i++)
        found = address - (uintptr_t)quarantine.ranges[i].address < quarantine.ranges[i].length;
    pthread_mutex_unlock(&quarantine.lock);
    return found;
}
