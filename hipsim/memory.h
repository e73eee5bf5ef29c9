/* SPDX-License-Identifier: MIT */
/* Allocations. Device memory has two views: the application's pointer, which the host cannot touch,
 * and the simulator's own mapping of the same pages. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hipsim_kind {
    HIPSIM_KIND_PAGEABLE, /* not ours: malloc, stack, files */
    HIPSIM_KIND_DEVICE,
    HIPSIM_KIND_PINNED,
    HIPSIM_KIND_REGISTERED,
    HIPSIM_KIND_MANAGED,
    HIPSIM_KIND_SIGNAL,
};

/* One allocation or registration. Blocks are counted: memory stays mapped while a queued operation
 * holds it, whatever the application frees. */
struct hipsim_block {
    atomic_int refs;
    enum hipsim_kind kind;
    int device;
    unsigned flags;
    bool pooled;       /* stream-ordered allocation */
    bool piece;        /* mapped into a reservation (vmm.h), which keeps the addresses */
    uint64_t id;       /* unique in the process */
    uintptr_t pointer; /* the application's (host) address */
    uintptr_t device_pointer;
    char *view; /* where the simulator reads and writes it */
    size_t size, mapped;
};

/* A pointer taken apart. `block` is NULL for pageable memory and must be given back otherwise. */
struct hipsim_range {
    enum hipsim_kind kind;
    struct hipsim_block *block;
    char *view;
};

/* `bytes` > 0. Returns 0 or HIPSIM_OUT_OF_MEMORY. */
int hipsim_memory_allocate(enum hipsim_kind kind, int device, size_t bytes, unsigned flags,
                           void **pointer);
/* Marks the block at `pointer` as stream-ordered. */
void hipsim_memory_set_pooled(void *pointer);
/* Takes the allocation out of the table; it must be of one of `kinds` (bits) and `pointer` its
 * start, otherwise HIPSIM_INVALID_VALUE. The caller drains the device before. */
int hipsim_memory_free(void *pointer, unsigned kinds);
/* Enters memory that is mapped at both addresses, and takes it out again: its addresses then have
 * nothing behind them. */
int hipsim_memory_add_piece(int device, char *pointer, char *view, size_t bytes);
int hipsim_memory_remove_piece(void *pointer);
/* Frees and unregisters all that was made on the device. */
void hipsim_memory_end_all(int device);
int hipsim_memory_register(void *pointer, size_t bytes, int device, unsigned flags);
int hipsim_memory_unregister(void *pointer);

/* The block that `pointer` lies in, with a reference, or NULL. */
struct hipsim_block *hipsim_memory_find(const void *pointer);
void hipsim_memory_release(struct hipsim_block *block);
/* Takes `pointer` apart and checks that `bytes` fit the allocation, or pieces of a reservation that
 * follow each other: 0 or HIPSIM_INVALID_VALUE, also for memory that was freed lately. */
int hipsim_memory_resolve(const void *pointer, size_t bytes, struct hipsim_range *range);
void hipsim_memory_put(struct hipsim_range *range);

/* True when the host can load and store at the application's pointer. */
bool hipsim_memory_host_accessible(enum hipsim_kind kind);
void hipsim_memory_info(int device, size_t *free_bytes, size_t *total);
