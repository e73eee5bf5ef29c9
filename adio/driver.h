/* SPDX-License-Identifier: MIT */
/*
 * Driver: the table laid over ROMIO's, and what it keeps of each file that it drives.
 */
#pragma once
#include "engine/file.h"
#include "engine/tunables.h"
#include "host/host.h"
#include <stdbool.h>

struct hipio_layout;
struct hipio_exchange_room;
struct hipio_begun;

struct hipio_driven {
    hipio_romio_fd fd;
    void *handle;                        /* the MPI library's file handle */
    const struct hipio_romio_fns *lower; /* the table below ours */
    struct hipio_tunables tunables;      /* settings in force for this file */
    struct hipio_file *file;             /* the engine's name for it; NULL until it is needed */
    bool external32;                     /* the view's representation; ROMIO is told "native" */

    /* The view, flattened at its first use. The types: as the application gave them, where ROMIO
     * has others in their places (plain.h); the glue's. */
    MPI_Datatype etype, filetype;
    struct hipio_layout
        *view; /* one filetype after another to the end of the offset range; NULL: not yet */
    struct hipio_layout *tile; /* one filetype */
    int64_t tile_extent;

    int in_collective;    /* > 0 while ROMIO's own collective runs below us */
    int collective_error; /* what its contiguous accesses met, an MPI error code */
    int argument_error;   /* class of a rank-local argument error that the coming collective must
                             agree on */
    int cb_buffer_size;   /* what io_buf was allocated for */
    int cb_nodes;         /* length of ROMIO's list of aggregators */
    struct hipio_exchange_room *exchange; /* NULL until the first exchange */
    MPI_Comm exchange_comm;               /* its messages' own; MPI_COMM_NULL as long */
    bool beginning;            /* the call under way is the begin of a split collective */
    struct hipio_begun *begun; /* what such a begin has started; NULL: nothing */
};

/*
 * Lays our table over the file's, after the layout proof and the agreement of all ranks. `handle`
 * is the MPI library's file handle. MPI_SUCCESS or a class.
 */
int hipio_driver_attach(hipio_romio_fd fd, void *handle, const struct hipio_tunables *tunables,
                        struct hipio_driven **driven);
/*
 * Waits for background operations, gives the file back to ROMIO's table and forgets it. Before
 * ROMIO's close; also during MPI_Finalize.
 */
void hipio_driver_detach(struct hipio_driven *driven);
/* NULL for a file that is not driven (ROMIO's hidden shared-pointer file). */
struct hipio_driven *hipio_driver_find(hipio_romio_fd fd);

/* After MPI_File_set_view: forgets the flattened view. */
void hipio_driver_view_changed(struct hipio_driven *driven);
/* Puts other settings in force for the file. */
void hipio_driver_set_tunables(struct hipio_driven *driven, const struct hipio_tunables *tunables);

/*
 * Checks what ROMIO would check on this rank alone before a collective data access. Returns the MPI
 * class of the fault, or MPI_SUCCESS. The caller then replaces the arguments by an empty access and
 * stores the class in argument_error, so that all ranks enter and learn of it.
 */
int hipio_driver_check(const struct hipio_driven *driven, bool write, MPI_Offset offset, int count,
                       MPI_Datatype type);

/*
 * The engine's name for the file; opens the descriptor first where ROMIO deferred that. 0 or a
 * negative errno with text.
 */
int hipio_driver_file(struct hipio_driven *driven, struct hipio_file **file);
/* The table below ours, for any file that uses ours (also a hidden one). */
const struct hipio_romio_fns *hipio_driver_lower(hipio_romio_fd fd);
