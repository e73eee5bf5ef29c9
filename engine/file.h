/* SPDX-License-Identifier: MIT */
/*
 * File: what the engine knows of one open file. It borrows the descriptor: whoever opened it closes
 * it, after hipio_file_destroy.
 */
#pragma once
#include "tunables.h"
#include <stdbool.h>
#include <stdint.h>

struct hipio_file;

enum hipio_file_access { HIPIO_ACCESS_READ = 1, HIPIO_ACCESS_WRITE = 2 };

/*
 * Names the file of descriptor `fd` for the engine. `name` is copied (for messages). `tunables` is
 * copied: the settings in force for this file. 0; -EBADF; -ENOMEM.
 */
int hipio_file_create(int fd, const char *name, int access, const struct hipio_tunables *tunables,
                      struct hipio_file **out);
/*
 * A file that is a piece of host memory: reads and writes copy from and to it. The memory stays the
 * caller's and must live until hipio_file_destroy. 0; -ENOMEM.
 */
int hipio_file_create_window(void *memory, uint64_t length, const char *name,
                             const struct hipio_tunables *tunables, struct hipio_file **out);
/* The memory of such a file; NULL for one with a descriptor. */
void *hipio_file_window(const struct hipio_file *file);

/* Waits for requests of the file that are in flight, then forgets it. Never closes the caller's
 * descriptor. */
void hipio_file_destroy(struct hipio_file *file);

/* Replaces the settings for requests that start later. */
void hipio_file_set_tunables(struct hipio_file *file, const struct hipio_tunables *tunables);
const struct hipio_tunables *hipio_file_tunables(const struct hipio_file *file);

int hipio_file_descriptor(const struct hipio_file *file);
/* Was the descriptor opened with O_DIRECT? */
bool hipio_file_is_direct(const struct hipio_file *file);
const char *hipio_file_name(const struct hipio_file *file);
int hipio_file_access(const struct hipio_file *file);
/* The file has been cut or made longer by an explicit call, on this rank or another
 * (MPI_File_set_size). */
void hipio_file_resized(struct hipio_file *file);
/* How often that was said. */
uint64_t hipio_file_resizes(const struct hipio_file *file);
/* Size in bytes now (fstat), or a negative errno. Block devices: their size. */
int64_t hipio_file_size(const struct hipio_file *file);
/* The file system's name ("ext4", "tmpfs", "nfs", "lustre", "unknown") and whether other machines
 * may write to it. */
const char *hipio_file_system(const struct hipio_file *file);
bool hipio_file_is_shared(const struct hipio_file *file);

/* A request of the file begins, and is over (request.c calls them, nobody else):
 * hipio_file_destroy waits until none is left. */
void hipio_file_hold(struct hipio_file *file);
void hipio_file_drop(struct hipio_file *file);

/*
 * What a room keeps with a file, embedded in a struct of its own: made at its first need, gone with
 * the file.
 */
struct hipio_attachment {
    const void *room; /* whose it is: an address that only the room has */
    /* Frees what was made. `forked`: in a child of the process that made the file, which must not
     * take locks that other threads may have held. */
    void (*destroy)(struct hipio_attachment *attachment, bool forked);
    struct hipio_attachment *next;
};

/*
 * The room's attachment of this file. Where there is none yet, `make` makes one, by one thread at a
 * time; it must neither block nor use the file's attachments. NULL: there is none and `make` is
 * NULL, or made none. hipio_file_destroy destroys them, the last one first.
 */
struct hipio_attachment *hipio_file_attachment(struct hipio_file *file, const void *room,
                                               struct hipio_attachment *(*make)(void));

/*
 * Where the setting `fastpath` is force: can GPU memory be read and written without staging on this
 * file? For whoever opens it, once, to refuse the file on all ranks alike. 0: yes, or the process
 * has no GPU runtime, or the setting is another; -ENOTSUP with the reason; -EINVAL: `fallback` is
 * force too.
 */
int hipio_file_check_fastpath(struct hipio_file *file);
