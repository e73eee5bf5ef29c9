/* SPDX-License-Identifier: MIT */
/* Reservations and the memory mapped into them. A reservation is twice in the address space: where
 * the application sees it, and where the simulator reads and writes it, so that what is contiguous
 * there is contiguous here. */
#include "vmm.h"

#include "device.h"
#include "error.h"
#include "mapping.h"
#include "memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct reservation {
    char *pointer, *view;
    size_t bytes;
    struct reservation *next;
};

/* The pages live as long as the descriptor or a mapping of it. */
struct physical {
    int device;
    int fd;
    size_t bytes;
    struct physical *next;
};

/* The lock guards both lists and the calls that change what is mapped. */
static struct {
    pthread_mutex_t lock;
    struct reservation *reservations;
    struct physical *memories;
} vmm = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_granular(size_t bytes)
{
    return bytes && bytes % HIPSIM_VMM_GRANULARITY == 0;
}

/* The reservation that holds the whole range, or NULL. The lock is held. */
static struct reservation *find_reservation(const char *pointer, size_t bytes)
{
    struct reservation *at = vmm.reservations;

    while (at && ((size_t)(pointer - at->pointer) >= at->bytes ||
                  bytes > at->bytes - (size_t)(pointer - at->pointer)))
        at = at->next;
    return at;
}

static struct physical *find_physical(void *handle)
{
    struct physical *at = vmm.memories;

    while (at && at != handle)
        at = at->next;
    return at;
}

int hipsim_vmm_reserve(size_t bytes, void **pointer)
{
    struct reservation *made = is_granular(bytes) ? calloc(1, sizeof(*made)) : NULL;

    if (!made)
        return is_granular(bytes) ? HIPSIM_OUT_OF_MEMORY : HIPSIM_INVALID_VALUE;
    made->bytes = bytes;
    made->pointer = hipsim_mapping_reserve(bytes);
    made->view = made->pointer ? hipsim_mapping_reserve(bytes) : NULL;
    if (!made->view) {
        if (made->pointer)
            munmap(made->pointer, bytes);
        free(made);
        return HIPSIM_OUT_OF_MEMORY;
    }
    *pointer = made->pointer;
    pthread_mutex_lock(&vmm.lock);
    made->next = vmm.reservations;
    vmm.reservations = made;
    pthread_mutex_unlock(&vmm.lock);
    return 0;
}

/* The first piece in the range, with a reference, or NULL. */
static struct hipsim_block *first_piece(char *pointer, size_t bytes)
{
    struct hipsim_block *block = NULL;

    for (size_t at = 0; at < bytes && !block; at += HIPSIM_VMM_GRANULARITY)
        block = hipsim_memory_find(pointer + at);
    return block;
}

int hipsim_vmm_unreserve(void *pointer, size_t bytes)
{
    int rc = HIPSIM_INVALID_VALUE;

    pthread_mutex_lock(&vmm.lock);
    struct reservation **link = &vmm.reservations;
    while (*link && ((*link)->pointer != pointer || (*link)->bytes != bytes))
        link = &(*link)->next;
    struct reservation *gone = *link;
    struct hipsim_block *used = gone ? first_piece(pointer, bytes) : NULL;
    if (gone && !used) {
        *link = gone->next;
        munmap(gone->pointer, bytes);
        munmap(gone->view, bytes);
        free(gone);
        rc = 0;
    }
    hipsim_memory_release(used);
    pthread_mutex_unlock(&vmm.lock);
    return rc;
}

int hipsim_vmm_create(int device, size_t bytes, void **handle)
{
    struct physical *made = is_granular(bytes) ? calloc(1, sizeof(*made)) : NULL;

    if (!made)
        return is_granular(bytes) ? HIPSIM_OUT_OF_MEMORY : HIPSIM_INVALID_VALUE;
    made->device = device;
    made->bytes = bytes;
    made->fd = memfd_create("hipsim", MFD_CLOEXEC);
    if (made->fd < 0 || ftruncate(made->fd, (off_t)bytes)) {
        if (made->fd >= 0)
            close(made->fd);
        free(made);
        return HIPSIM_OUT_OF_MEMORY;
    }
    *handle = made;
    pthread_mutex_lock(&vmm.lock);
    made->next = vmm.memories;
    vmm.memories = made;
    pthread_mutex_unlock(&vmm.lock);
    return 0;
}

int hipsim_vmm_release(void *handle)
{
    pthread_mutex_lock(&vmm.lock);
    struct physical **link = &vmm.memories;
    while (*link && *link != handle)
        link = &(*link)->next;
    struct physical *gone = *link;
    if (gone)
        *link = gone->next;
    pthread_mutex_unlock(&vmm.lock);
    if (!gone)
        return HIPSIM_INVALID_VALUE;
    close(gone->fd);
    free(gone);
    return 0;
}

/* The lock is held. */
static int map_piece(char *pointer, size_t bytes, const struct physical *memory)
{
    const struct reservation *home = find_reservation(pointer, bytes);
    struct hipsim_block *there = home ? first_piece(pointer, bytes) : NULL;
    const bool seen = hipsim_memory_host_accessible(HIPSIM_KIND_DEVICE);
    char *view;

    hipsim_memory_release(there);
    if (!home || there)
        return HIPSIM_INVALID_VALUE;
    view = home->view + (pointer - home->pointer);
    if (mmap(view, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->fd, 0) ==
            MAP_FAILED ||
        mmap(pointer, bytes, seen ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_SHARED | MAP_FIXED,
             memory->fd, 0) == MAP_FAILED)
        return HIPSIM_OUT_OF_MEMORY;
    return hipsim_memory_add_piece(memory->device, pointer, view, bytes);
}

int hipsim_vmm_map(void *pointer, size_t bytes, size_t offset, void *handle)
{
    int rc = HIPSIM_INVALID_VALUE;

    pthread_mutex_lock(&vmm.lock);
    struct physical *memory = find_physical(handle);
    /* The real ones map whole handles only, too. */
    if (memory && offset == 0 && bytes == memory->bytes && (uintptr_t)pointer % 4096 == 0)
        rc = map_piece(pointer, bytes, memory);
    pthread_mutex_unlock(&vmm.lock);
    return rc;
}

/* Calls for each piece of a range that is mapped without a gap. */
static int each_piece(char *pointer, size_t bytes, int (*visit)(const struct hipsim_block *))
{
    int rc = 0;

    while (bytes && !rc) {
        struct hipsim_block *block = hipsim_memory_find(pointer);
        const size_t length = block ? block->size : 0;

        if (!block || block->pointer != (uintptr_t)pointer || !block->piece || length > bytes)
            rc = HIPSIM_INVALID_VALUE;
        else
            rc = visit(block);
        hipsim_memory_release(block);
        pointer += length;
        bytes -= length < bytes ? length : bytes;
    }
    return rc;
}

static int leave_alone(const struct hipsim_block *block)
{
    (void)block;
    return 0;
}

int hipsim_vmm_access(void *pointer, size_t bytes)
{
    pthread_mutex_lock(&vmm.lock);
    int rc = bytes ? each_piece(pointer, bytes, leave_alone) : HIPSIM_INVALID_VALUE;
    pthread_mutex_unlock(&vmm.lock);
    return rc;
}

/* Until the table and the visitor alone hold the block: an operation that is over may still be
 * about to let go, and would take away what is mapped here next. */
static int drain(const struct hipsim_block *block)
{
    hipsim_device_drain(block->device);
    while (atomic_load(&block->refs) > 2)
        sched_yield();
    return 0;
}

static int remove_piece(const struct hipsim_block *block)
{
    return hipsim_memory_remove_piece((void *)block->pointer);
}

int hipsim_vmm_unmap(void *pointer, size_t bytes)
{
    pthread_mutex_lock(&vmm.lock);
    int rc = bytes ? each_piece(pointer, bytes, drain) : HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = each_piece(pointer, bytes, remove_piece);
    pthread_mutex_unlock(&vmm.lock);
    return rc;
}
