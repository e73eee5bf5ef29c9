/* SPDX-License-Identifier: MIT */
/* Independent: ReadContig, WriteContig, ReadStrided, WriteStrided. */
#include "independent.h"
#include "engine/stats.h"
#include "mpierr.h"
#include "view.h"
#include <errno.h>
#include <string.h>

/* ROMIO's access. Its error is a class; what errno says of it is put into words. */
static void run_lower(hipio_romio_fd fd, const struct hipio_call *call, MPI_Status *status,
                      int *error)
{
    const struct hipio_romio_fns *lower = hipio_driver_lower(fd);
    struct hipio_access access = {.driven = hipio_driver_find(fd), .call = *call, .lock_fd = -1};

    errno = 0;
    if (call->op == HIPIO_READ)
        (call->absolute ? lower->read_contig : lower->read_strided)(
            fd, call->buffer, call->count, call->type, call->pointer, call->offset, status, error);
    else
        (call->absolute ? lower->write_contig : lower->write_strided)(
            fd, call->buffer, call->count, call->type, call->pointer, call->offset, status, error);
    if (*error != MPI_SUCCESS && access.driven && errno != 0)
        *error = hipio_access_code(&access, -errno, strerror(errno));
}

static void run_ours(struct hipio_access *access, MPI_Status *status, int *error)
{
    *error = hipio_access_run(access);
    if (*error != MPI_SUCCESS) {
        hipio_view_touch(access->driven);
        return;
    }
    hipio_access_advance(access, access->request.done);
    hipio_mpierr_set_bytes(status, access->request.done);
}

bool hipio_independent_is_ours(const struct hipio_driven *driven, const struct hipio_call *call,
                               const struct hipio_memory *memory)
{
    return driven->external32 || memory->kind == HIPIO_MEMORY_DEVICE ||
           memory->kind == HIPIO_MEMORY_MANAGED || hipio_call_is_displaced(call);
}

/*
 * Contiguous host accesses are ROMIO's. Its strided ones are not left to it: it puts back old bytes
 * over what another rank has just written without a lock, finds the wrong place beyond 2 GiB, takes
 * some nested types for others, fills holes with stale memory, and counts bytes past the end of the
 * file as read. The engine touches only the bytes that the access names.
 */
static void serve(struct hipio_driven *driven, const struct hipio_call *call, MPI_Status *status,
                  int *error)
{
    struct hipio_access access = {.driven = driven, .call = *call, .lock_fd = -1};
    struct hipio_memory memory;
    int rc = hipio_call_memory(call, &memory);

    if (rc == 0 && call->absolute && !hipio_independent_is_ours(driven, call, &memory)) {
        hipio_stats_add(HIPIO_COUNT_host_passed, 1);
        run_lower(driven->fd, call, status, error);
        return;
    }
    if (rc == 0)
        rc = hipio_access_prepare(driven, call, &memory, &access);
    if (rc)
        *error = hipio_access_code(&access, rc, NULL);
    else
        run_ours(&access, status, error);
    hipio_access_release(&access);
}

/*
 * ROMIO's two-phase code leaves its exchange at the first failing access and the other ranks wait
 * for ever. So inside it accesses never fail; collective.c asks afterwards. Its own buffers go
 * straight down; a user's strided access, which it hands on where it does not aggregate, is served
 * as any other.
 */
static void run_inside_collective(struct hipio_driven *driven, const struct hipio_call *call,
                                  MPI_Status *status, int *error)
{
    if (call->absolute)
        run_lower(driven->fd, call, status, error);
    else
        serve(driven, call, status, error);
    if (*error != MPI_SUCCESS && driven->collective_error == MPI_SUCCESS)
        driven->collective_error = *error;
    *error = MPI_SUCCESS;
}

void hipio_independent_move(hipio_romio_fd fd, const struct hipio_call *call, MPI_Status *status,
                            int *error)
{
    struct hipio_driven *driven = hipio_driver_find(fd);

    if (!driven)
        run_lower(fd, call, status, error);
    else if (driven->in_collective)
        run_inside_collective(driven, call, status, error);
    else
        serve(driven, call, status, error);
}
