/* SPDX-License-Identifier: MIT */
/*
 * Scratch: a file of random bytes on a chosen file system, a model of what it must hold, and
 * transfers through one storage that are compared with it.
 */
#pragma once
#include "storage/storage.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scratch {
    const struct hipio_storage *storage;
    struct hipio_file *file;
    int fd;
    unsigned char *model;
    size_t size;     /* of the model; the file may be shorter */
    size_t ends;     /* the file's size */
    bool overtaken;  /* the file is cut while it is read: memory behind the bytes read may change */
    uint64_t random; /* state */
};

/* In folder `where`, unlinked at once, served with windows of 1 MiB. The model has `size` bytes, of
 * which the file holds the first `ends`; the rest of the model is zero. */
void scratch_open(struct scratch *scratch, const char *where, size_t size, size_t ends);
void scratch_close(struct scratch *scratch);
/* Lets `access` and the flags of open be others: the file is reopened under its number. */
void scratch_reopen(struct scratch *scratch, int flags, int access);

uint64_t scratch_roll(struct scratch *scratch, uint64_t below);
/* Runs with gaps, neither longer than the model: several orders of magnitude. */
struct hipio_layout *scratch_runs(struct scratch *scratch, uint64_t most);
struct hipio_layout *scratch_vector(uint64_t block, uint64_t count, int64_t stride);

/* Reads the first `length` bytes of the layout and expects what the model holds up to the file's
 * end. */
void scratch_read(struct scratch *scratch, const struct hipio_layout *layout, uint64_t length);
/* Writes random bytes, to the model too, which must be successful. */
void scratch_write(struct scratch *scratch, const struct hipio_layout *layout, uint64_t length);
/* Transfers `length` bytes of a buffer and returns the storage's answer. */
int scratch_move(struct scratch *scratch, enum hipio_op op, const struct hipio_layout *layout,
                 void *buffer, uint64_t length, uint64_t *moved);
/* The file as read calls see it is the model. */
void scratch_compare(const struct scratch *scratch);
