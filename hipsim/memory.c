/* SPDX-License-Identifier: MIT */
/* The table of allocations, sorted by address. */
#include "memory.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "mapping.h"
#include "settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A block is listed once per address range it answers to: registered memory may have two. */
struct slot {
    uintptr_t start;
    struct hipsim_block *block;
};

static struct {
    pthread_rwlock_t lock;
    struct slot *slots;
    size_t count, room;
    uint64_t next_id;
    uint64_t used[HIPSIM_MAX_DEVICES]; /* bytes of device memory */
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* Index of the first slot that starts behind `address`. */
static size_t upper_bound(uintptr_t address)
{
    size_t low = 0, high = table.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table.slots[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct hipsim_block *lookup(uintptr_t address)
{
    size_t index = upper_bound(address);

    if (!index)
        return NULL;
    if (address - table.slots[index - 1].start >= table.slots[index - 1].block->size)
        return NULL;
    return table.slots[index - 1].block;
}

static int insert(uintptr_t start, struct hipsim_block *block)
{
    size_t index;

    if (table.count == table.room) {
        size_t room = table.room ? 2 * table.room : 64;
        struct slot *grown = realloc(table.slots, room * sizeof(*grown));

        if (!grown)
            return HIPSIM_OUT_OF_MEMORY;
        table.slots = grown;
        table.room = room;
    }
    index = upper_bound(start);
    memmove(&table.slots[index + 1], &table.slots[index],
            (table.count - index) * sizeof(*table.slots));
    table.slots[index] = (struct slot){start, block};
    table.count++;
    return 0;
}

static void erase(uintptr_t start)
{
    size_t index = upper_bound(start) - 1;

    memmove(&table.slots[index], &table.slots[index + 1],
            (table.count - index - 1) * sizeof(*table.slots));
    table.count--;
}

bool hipsim_memory_host_accessible(enum hipsim_kind kind)
{
    const struct hipsim_settings *settings = hipsim_settings_get();

    return kind != HIPSIM_KIND_DEVICE || settings->apu || settings->large_bar;
}

static void count_block(const struct hipsim_block *block, int sign)
{
    int64_t bytes = sign * (int64_t)block->size;

    if (block->kind == HIPSIM_KIND_PINNED || block->kind == HIPSIM_KIND_REGISTERED) {
        hipsim_counters_add_peak(HIPSIM_COUNT_pinned_bytes, HIPSIM_COUNT_pinned_peak, bytes);
        hipsim_counters_add(HIPSIM_COUNT_pinned_allocations, sign > 0);
        return;
    }
    hipsim_counters_add(HIPSIM_COUNT_allocations, sign > 0);
    hipsim_counters_add(HIPSIM_COUNT_allocations_live, sign);
    if (block->kind == HIPSIM_KIND_DEVICE)
        hipsim_counters_add_peak(HIPSIM_COUNT_device_bytes, HIPSIM_COUNT_device_peak, bytes);
}

/* Does [start, start + bytes) touch a block? The table's lock is held. */
static bool overlaps(uintptr_t start, size_t bytes)
{
    size_t index = upper_bound(start + bytes - 1);

    if (!index)
        return false;
    return table.slots[index - 1].start + table.slots[index - 1].block->size > start;
}

/* Enters the block under both its addresses, or under none. */
static int publish(struct hipsim_block *block)
{
    bool limited = block->kind == HIPSIM_KIND_DEVICE;
    int rc = 0;

    pthread_rwlock_wrlock(&table.lock);
    if (block->kind == HIPSIM_KIND_REGISTERED && overlaps(block->pointer, block->size))
        rc = HIPSIM_ALREADY_REGISTERED;
    if (limited && block->size > hipsim_settings_get()->memory - table.used[block->device])
        rc = HIPSIM_OUT_OF_MEMORY;
    if (!rc)
        rc = insert(block->pointer, block);
    if (!rc && block->device_pointer != block->pointer) {
        rc = insert(block->device_pointer, block);
        if (rc)
            erase(block->pointer);
    }
    if (!rc) {
        block->id = ++table.next_id;
        if (limited)
            table.used[block->device] += block->size;
    }
    pthread_rwlock_unlock(&table.lock);
    if (!rc)
        count_block(block, 1);
    return rc;
}

/* The table's lock is held for writing. */
static void unpublish(struct hipsim_block *block)
{
    erase(block->pointer);
    if (block->device_pointer != block->pointer)
        erase(block->device_pointer);
    if (block->kind == HIPSIM_KIND_DEVICE)
        table.used[block->device] -= block->size;
}

static void destroy(struct hipsim_block *block)
{
    struct hipsim_mapping mapping = {(char *)block->pointer, block->view, block->mapped};

    if (block->piece) {
        hipsim_mapping_withdraw(&mapping);
    } else if (block->kind != HIPSIM_KIND_REGISTERED) {
        hipsim_mapping_destroy(&mapping);
    } else if (block->device_pointer != block->pointer) {
        mapping.pointer = mapping.view = (char *)block->device_pointer;
        hipsim_mapping_destroy(&mapping);
    }
    free(block);
}

int hipsim_memory_allocate(enum hipsim_kind kind, int device, size_t bytes, unsigned flags,
                           void **pointer)
{
    struct hipsim_block *block = calloc(1, sizeof(*block));
    struct hipsim_mapping mapping;
    int rc;

    if (!block)
        return HIPSIM_OUT_OF_MEMORY;
    if (kind == HIPSIM_KIND_DEVICE && bytes > hipsim_settings_get()->memory)
        goto undo_block;
    if (hipsim_mapping_create(bytes, !hipsim_memory_host_accessible(kind), &mapping))
        goto undo_block;
    atomic_init(&block->refs, 1);
    block->kind = kind;
    block->device = device;
    block->flags = flags;
    block->pointer = block->device_pointer = (uintptr_t)mapping.pointer;
    block->view = mapping.view;
    block->size = bytes;
    block->mapped = mapping.length;
    rc = publish(block);
    if (rc) {
        destroy(block);
        return rc;
    }
    *pointer = mapping.pointer;
    return 0;

undo_block:
    free(block);
    return HIPSIM_OUT_OF_MEMORY;
}

void hipsim_memory_set_pooled(void *pointer)
{
    struct hipsim_block *block;

    pthread_rwlock_wrlock(&table.lock);
    block = lookup((uintptr_t)pointer);
    if (block)
        block->pooled = true;
    pthread_rwlock_unlock(&table.lock);
}

static struct hipsim_block *take(void *pointer, unsigned kinds, bool piece)
{
    struct hipsim_block *block;

    pthread_rwlock_wrlock(&table.lock);
    block = lookup((uintptr_t)pointer);
    if (block && (block->pointer != (uintptr_t)pointer || block->piece != piece ||
                  !(kinds >> block->kind & 1)))
        block = NULL;
    if (block)
        unpublish(block);
    pthread_rwlock_unlock(&table.lock);
    if (block)
        count_block(block, -1);
    return block;
}

int hipsim_memory_free(void *pointer, unsigned kinds)
{
    struct hipsim_block *block = take(pointer, kinds, false);

    if (!block)
        return HIPSIM_INVALID_VALUE;
    hipsim_memory_release(block);
    return 0;
}

int hipsim_memory_add_piece(int device, char *pointer, char *view, size_t bytes)
{
    struct hipsim_block *block = calloc(1, sizeof(*block));
    int rc;

    if (!block)
        return HIPSIM_OUT_OF_MEMORY;
    atomic_init(&block->refs, 1);
    block->kind = HIPSIM_KIND_DEVICE;
    block->piece = true;
    block->device = device;
    block->pointer = block->device_pointer = (uintptr_t)pointer;
    block->view = view;
    block->size = block->mapped = bytes;
    rc = publish(block);
    if (rc)
        destroy(block);
    return rc;
}

int hipsim_memory_remove_piece(void *pointer)
{
    struct hipsim_block *block = take(pointer, 1u << HIPSIM_KIND_DEVICE, true);

    if (!block)
        return HIPSIM_INVALID_VALUE;
    hipsim_memory_release(block);
    return 0;
}

int hipsim_memory_register(void *pointer, size_t bytes, int device, unsigned flags)
{
    struct hipsim_block *block = calloc(1, sizeof(*block));
    char *alias = NULL;
    int rc;

    if (!block)
        return HIPSIM_OUT_OF_MEMORY;
    atomic_init(&block->refs, 1);
    block->kind = HIPSIM_KIND_REGISTERED;
    block->device = device;
    block->flags = flags;
    block->pointer = block->device_pointer = (uintptr_t)pointer;
    block->view = pointer;
    block->size = bytes;
    block->mapped = (bytes + 4095) & ~(size_t)4095;
    if (hipsim_settings_get()->register_alias) {
        /* The quarantine gives back the guard page too. */
        alias = hipsim_mapping_reserve(block->mapped + 4096);
        block->device_pointer = alias ? (uintptr_t)alias : block->device_pointer;
    }
    rc = publish(block);
    if (rc)
        destroy(block);
    return rc;
}

int hipsim_memory_unregister(void *pointer)
{
    struct hipsim_block *block = take(pointer, 1u << HIPSIM_KIND_REGISTERED, false);

    if (!block)
        return HIPSIM_NOT_REGISTERED;
    hipsim_memory_release(block);
    return 0;
}

void hipsim_memory_end_all(int device)
{
    struct hipsim_block *block;

    do {
        block = NULL;
        pthread_rwlock_wrlock(&table.lock);
        for (size_t i = 0; i < table.count && !block; i++)
            if (table.slots[i].block->device == device)
                block = table.slots[i].block;
        if (block)
            unpublish(block);
        pthread_rwlock_unlock(&table.lock);
        if (block) {
            count_block(block, -1);
            hipsim_memory_release(block);
        }
    } while (block);
}

struct hipsim_block *hipsim_memory_find(const void *pointer)
{
    struct hipsim_block *block;

    pthread_rwlock_rdlock(&table.lock);
    block = lookup((uintptr_t)pointer);
    if (block)
        atomic_fetch_add(&block->refs, 1);
    pthread_rwlock_unlock(&table.lock);
    return block;
}

void hipsim_memory_release(struct hipsim_block *block)
{
    if (block && atomic_fetch_sub(&block->refs, 1) == 1)
        destroy(block);
}

/* Do pieces of the same reservation go on behind this one for so many bytes? */
static bool goes_on(const struct hipsim_block *block, size_t bytes)
{
    bool there = block->piece;
    uintptr_t pointer = block->pointer;
    char *view = block->view;

    pthread_rwlock_rdlock(&table.lock);
    for (size_t length = block->size; there && bytes > 0;
         bytes -= length < bytes ? length : bytes) {
        pointer += length;
        view += length;
        block = lookup(pointer);
        there = block && block->piece && block->pointer == pointer && block->view == view;
        length = there ? block->size : 1;
    }
    pthread_rwlock_unlock(&table.lock);
    return there;
}

int hipsim_memory_resolve(const void *pointer, size_t bytes, struct hipsim_range *range)
{
    struct hipsim_block *block = hipsim_memory_find(pointer);
    uintptr_t address = (uintptr_t)pointer;
    size_t offset;

    *range = (struct hipsim_range){HIPSIM_KIND_PAGEABLE, NULL, (char *)address};
    if (!block)
        return pointer && !hipsim_mapping_is_freed(pointer) ? 0 : HIPSIM_INVALID_VALUE;
    offset = address - block->pointer < block->size ? address - block->pointer
                                                    : address - block->device_pointer;
    if (bytes > block->size - offset && !goes_on(block, bytes - (block->size - offset))) {
        hipsim_memory_release(block);
        return HIPSIM_INVALID_VALUE;
    }
    *range = (struct hipsim_range){block->kind, block, block->view + offset};
    return 0;
}

void hipsim_memory_put(struct hipsim_range *range)
{
    hipsim_memory_release(range->block);
    range->block = NULL;
}

void hipsim_memory_info(int device, size_t *free_bytes, size_t *total)
{
    pthread_rwlock_rdlock(&table.lock);
    *total = hipsim_settings_get()->memory;
    *free_bytes = *total - table.used[device];
    pthread_rwlock_unlock(&table.lock);
}
