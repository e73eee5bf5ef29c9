/* SPDX-License-Identifier: MIT */
/* Independent: ReadContig, WriteContig, ReadStrided, WriteStrided. */
#include "independent.h"
#include "engine/stats.h"
#include "mpierr.h"
#include "view.h"

static void run_lower(hipio_romio_fd fd, const struct hipio_call *call, MPI_Status *status,
                      int *error)
{
    const struct hipio_romio_fns *lower = hipio_driver_lower(fd);

    if (call->op == HIPIO_READ)
        (call->absolute ? lower->read_contig : lower->read_strided)(
            fd, call->buffer, call->count, call->type, call->pointer, call->offset, status, error);
    else
        (call->absolute ? lower->write_contig : lower->write_strided)(
            fd, call->buffer, call->count, call->type, call->pointer, call->offset, status, error);
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
 * Through a view with gaps ROMIO as shipped reads and writes whole stretches of the file: a write
 * puts back old bytes over what another rank has just written without a lock, a read finds the
 * wrong place beyond 2 GiB. The engine touches only what the view names. A user who asks for data
 * sieving by its hint gets ROMIO's.
 */
static bool is_gapped(const struct hipio_driven *driven, const struct hipio_call *call)
{
    const struct hipio_romio_hints *hints = driven->fd->hints;
    int sieve = call->op == HIPIO_READ ? hints->ds_read : hints->ds_write;

    return !call->absolute && !hipio_view_is_contiguous(driven) && sieve != HIPIO_ROMIO_HINT_ENABLE;
}

/* ROMIO's strided read counts bytes past the end of the file as read and overwrites the memory for
 * them. */
static bool reads_past_end(struct hipio_access *access)
{
    int64_t size;

    if (access->call.op != HIPIO_READ || access->bytes == 0 ||
        hipio_driver_file(access->driven, &access->request.file))
        return false;
    size = hipio_file_size(access->request.file);
    return size >= 0 && hipio_access_end(access) > size;
}

/* Chooses who serves an access that may be strided. */
static void serve_strided(struct hipio_access *access, bool ours, MPI_Status *status, int *error)
{
    struct hipio_driven *driven = access->driven;
    const struct hipio_call *call = &access->call;

    if (ours || is_gapped(driven, call) || (!call->absolute && reads_past_end(access))) {
        run_ours(access, status, error);
        return;
    }
    hipio_stats_add(HIPIO_COUNT_host_passed, 1);
    run_lower(driven->fd, call, status, error);
}

static void serve(struct hipio_driven *driven, const struct hipio_call *call, MPI_Status *status,
                  int *error)
{
    struct hipio_access access = {.driven = driven, .call = *call, .lock_fd = -1};
    struct hipio_memory memory;
    int rc = hipio_call_memory(call, &memory);
    bool ours = rc == 0 && hipio_independent_is_ours(driven, call, &memory);

    if (rc) {
        *error = hipio_access_code(&access, rc, NULL);
        return;
    }
    if (!ours && call->absolute) {
        hipio_stats_add(HIPIO_COUNT_host_passed, 1);
        run_lower(driven->fd, call, status, error);
        return;
    }
    rc = hipio_access_prepare(driven, call, &memory, &access);
    if (rc)
        *error = hipio_access_code(&access, rc, NULL);
    else
        serve_strided(&access, ours, status, error);
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
