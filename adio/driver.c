/* SPDX-License-Identifier: MIT */
/*
 * Driver: THE table. Each member of ours is a few lines that name the room; every other member is
 * ROMIO's own.
 */
#include "driver.h"
#include "begun.h"
#include "collective.h"
#include "engine/log.h"
#include "engine/status.h"
#include "exchange_room.h"
#include "independent.h"
#include "mpierr.h"
#include "nonblocking.h"
#include "view.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Our table over one of ROMIO's; files find the lower one through the table that they use. */
struct stacked {
    struct hipio_romio_fns fns; /* first: a file's table pointer is a pointer to this struct */
    const struct hipio_romio_fns *lower;
};

#define TABLES_MAX 4
static struct {
    pthread_mutex_t lock;
    struct stacked table[TABLES_MAX];
    int n;
} tables = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct hipio_romio_fns *hipio_driver_lower(hipio_romio_fd fd)
{
    return ((const struct stacked *)fd->fns)->lower;
}

struct hipio_driven *hipio_driver_find(hipio_romio_fd fd)
{
    return fd->fs_ptr;
}

static struct hipio_call read_call(void *buf, int count, MPI_Datatype type, int pointer,
                                   long long offset)
{
    return (struct hipio_call){HIPIO_READ, buf, count, type, pointer, offset, false};
}

/* A write only reads the buffer; the request's base is one pointer for both directions. */
static struct hipio_call write_call(const void *buf, int count, MPI_Datatype type, int pointer,
                                    long long offset)
{
    return (struct hipio_call){HIPIO_WRITE, (void *)(uintptr_t)buf, count, type, pointer, offset,
                               false};
}

static void read_contig(hipio_romio_fd fd, void *buf, int count, MPI_Datatype type, int pointer,
                        long long offset, MPI_Status *status, int *error)
{
    struct hipio_call call = read_call(buf, count, type, pointer, offset);
    call.absolute = true;
    hipio_independent_move(fd, &call, status, error);
}

static void write_contig(hipio_romio_fd fd, const void *buf, int count, MPI_Datatype type,
                         int pointer, long long offset, MPI_Status *status, int *error)
{
    struct hipio_call call = write_call(buf, count, type, pointer, offset);
    call.absolute = true;
    hipio_independent_move(fd, &call, status, error);
}

static void read_strided(hipio_romio_fd fd, void *buf, int count, MPI_Datatype type, int pointer,
                         long long offset, MPI_Status *status, int *error)
{
    struct hipio_call call = read_call(buf, count, type, pointer, offset);
    hipio_independent_move(fd, &call, status, error);
}

static void write_strided(hipio_romio_fd fd, const void *buf, int count, MPI_Datatype type,
                          int pointer, long long offset, MPI_Status *status, int *error)
{
    struct hipio_call call = write_call(buf, count, type, pointer, offset);
    hipio_independent_move(fd, &call, status, error);
}

static void read_strided_coll(hipio_romio_fd fd, void *buf, int count, MPI_Datatype type,
                              int pointer, long long offset, MPI_Status *status, int *error)
{
    struct hipio_call call = read_call(buf, count, type, pointer, offset);
    hipio_collective_move(fd, &call, status, error);
}

static void write_strided_coll(hipio_romio_fd fd, const void *buf, int count, MPI_Datatype type,
                               int pointer, long long offset, MPI_Status *status, int *error)
{
    struct hipio_call call = write_call(buf, count, type, pointer, offset);
    hipio_collective_move(fd, &call, status, error);
}

static void iread_contig(hipio_romio_fd fd, void *buf, int count, MPI_Datatype type, int pointer,
                         long long offset, MPI_Request *request, int *error)
{
    struct hipio_call call = read_call(buf, count, type, pointer, offset);
    call.absolute = true;
    hipio_nonblocking_start(fd, &call, request, error);
}

static void iwrite_contig(hipio_romio_fd fd, const void *buf, int count, MPI_Datatype type,
                          int pointer, long long offset, MPI_Request *request, int *error)
{
    struct hipio_call call = write_call(buf, count, type, pointer, offset);
    call.absolute = true;
    hipio_nonblocking_start(fd, &call, request, error);
}

/* Serves both IreadStrided and IreadStridedColl, whose second is a NULL pointer in ROMIO as
 * shipped. */
static void iread_strided(hipio_romio_fd fd, void *buf, int count, MPI_Datatype type, int pointer,
                          long long offset, MPI_Request *request, int *error)
{
    struct hipio_call call = read_call(buf, count, type, pointer, offset);
    hipio_nonblocking_start(fd, &call, request, error);
}

static void iwrite_strided(hipio_romio_fd fd, const void *buf, int count, MPI_Datatype type,
                           int pointer, long long offset, MPI_Request *request, int *error)
{
    struct hipio_call call = write_call(buf, count, type, pointer, offset);
    hipio_nonblocking_start(fd, &call, request, error);
}

/* ROMIO's write path takes the size from its info, its read path from its hints. */
static void keep_buffer_size(hipio_romio_fd fd, int size)
{
    char text[16];

    snprintf(text, sizeof text, "%d", size);
    PMPI_Info_set(fd->info, "cb_buffer_size", text);
    fd->hints->cb_buffer_size = size;
}

/* ROMIO would overrun io_buf when cb_buffer_size grows after open, and crash or hang with the pfr
 * hints. */
static void set_info(hipio_romio_fd fd, MPI_Info info, int *error)
{
    static bool told_size, told_pfr;
    struct hipio_driven *driven = hipio_driver_find(fd);

    hipio_driver_lower(fd)->set_info(fd, info, error);
    if (!driven)
        return;
    if (fd->hints->cb_buffer_size > driven->cb_buffer_size) {
        hipio_log_once(&told_size, HIPIO_LOG_WARN,
                       "%s: cb_buffer_size can't grow after open; it stays %d bytes", fd->filename,
                       driven->cb_buffer_size);
        keep_buffer_size(fd, driven->cb_buffer_size);
    }
    if (fd->hints->cb_pfr != HIPIO_ROMIO_HINT_DISABLE) {
        hipio_log_once(&told_pfr, HIPIO_LOG_WARN,
                       "%s: romio_cb_pfr is broken in this ROMIO and stays disabled", fd->filename);
        fd->hints->cb_pfr = HIPIO_ROMIO_HINT_DISABLE;
    }
}

/* Rank 0 has done it when this returns, on all ranks. */
static void resize(hipio_romio_fd fd, long long size, int *error)
{
    struct hipio_driven *driven = hipio_driver_find(fd);

    hipio_driver_lower(fd)->resize(fd, size, error);
    if (driven && driven->file)
        hipio_file_resized(driven->file);
}

static void lay_over(struct stacked *table, const struct hipio_romio_fns *lower)
{
    table->lower = lower;
    table->fns = *lower;
    table->fns.read_contig = read_contig;
    table->fns.write_contig = write_contig;
    table->fns.read_strided = read_strided;
    table->fns.write_strided = write_strided;
    table->fns.read_strided_coll = read_strided_coll;
    table->fns.write_strided_coll = write_strided_coll;
    table->fns.iread_contig = iread_contig;
    table->fns.iwrite_contig = iwrite_contig;
    table->fns.iread_strided = iread_strided;
    table->fns.iwrite_strided = iwrite_strided;
    table->fns.iread_strided_coll = iread_strided;
    table->fns.iwrite_strided_coll = iwrite_strided;
    table->fns.set_info = set_info;
    table->fns.resize = resize;
}

/* Our table over `lower`; made at its first use. NULL: more lower tables than ROMIO has. */
static const struct stacked *table_over(const struct hipio_romio_fns *lower)
{
    const struct stacked *found = NULL;

    pthread_mutex_lock(&tables.lock);
    for (int i = 0; i < tables.n && !found; i++) {
        if (tables.table[i].lower == lower)
            found = &tables.table[i];
    }
    if (!found && tables.n < TABLES_MAX) {
        lay_over(&tables.table[tables.n], lower);
        found = &tables.table[tables.n++];
    }
    pthread_mutex_unlock(&tables.lock);
    return found;
}

int hipio_driver_attach(hipio_romio_fd fd, void *handle, const struct hipio_tunables *tunables,
                        struct hipio_driven **driven)
{
    struct hipio_driven *made = calloc(1, sizeof *made);
    const struct stacked *table;

    if (!made) {
        hipio_status_set(-ENOMEM, "no memory to drive a file");
        return MPI_ERR_NO_MEM;
    }
    table = table_over(fd->fns);
    if (!table) {
        free(made);
        hipio_status_set(-EIO, "this ROMIO has more kinds of files than are known");
        return MPI_ERR_INTERN;
    }
    made->fd = fd;
    made->handle = handle;
    made->etype = made->filetype = MPI_DATATYPE_NULL;
    made->lower = table->lower;
    made->exchange_comm = MPI_COMM_NULL;
    made->tunables = *tunables;
    made->cb_buffer_size = fd->hints->cb_buffer_size;
    made->cb_nodes = fd->hints->cb_nodes;
    fd->hints->cb_pfr = HIPIO_ROMIO_HINT_DISABLE;
    hipio_mpierr_prepare();
    fd->fs_ptr = made;
    fd->fns = &table->fns;
    *driven = made;
    return MPI_SUCCESS;
}

void hipio_driver_detach(struct hipio_driven *driven)
{
    hipio_host_requests_drain(driven->handle);
    hipio_begun_destroy(driven->begun);
    hipio_exchange_room_leave(driven);
    hipio_file_destroy(driven->file);
    hipio_driver_view_changed(driven);
    driven->fd->fns = driven->lower;
    driven->fd->fs_ptr = NULL;
    free(driven);
}

void hipio_driver_view_changed(struct hipio_driven *driven)
{
    hipio_layout_release(driven->view);
    hipio_layout_release(driven->tile);
    driven->view = driven->tile = NULL;
}

void hipio_driver_set_tunables(struct hipio_driven *driven, const struct hipio_tunables *tunables)
{
    driven->tunables = *tunables;
    if (driven->file)
        hipio_file_set_tunables(driven->file, tunables);
    if (driven->exchange)
        hipio_exchange_room_set_tunables(driven->exchange, tunables);
}

/* ROMIO says "open" after a deferred open that failed, so the descriptor has the last word. */
static int ensure_open(hipio_romio_fd fd)
{
    int error = MPI_SUCCESS;

    if (!fd->is_open)
        hipio_host_romio()->immediate_open(fd, &error);
    if (error != MPI_SUCCESS || !fd->is_open || fd->fd_sys < 0)
        return hipio_status_set(
            -EIO, "the file could not be opened on this rank (its open had been deferred by "
                  "romio_no_indep_rw)");
    return 0;
}

int hipio_driver_file(struct hipio_driven *driven, struct hipio_file **file)
{
    hipio_romio_fd fd = driven->fd;
    int access = 0, rc;

    if (!driven->file) {
        rc = ensure_open(fd);
        if (rc)
            return rc;
        if (fd->access_mode & (MPI_MODE_RDONLY | MPI_MODE_RDWR))
            access |= HIPIO_ACCESS_READ;
        if (fd->access_mode & (MPI_MODE_WRONLY | MPI_MODE_RDWR))
            access |= HIPIO_ACCESS_WRITE;
        rc = hipio_file_create(fd->fd_sys, fd->filename, access, &driven->tunables, &driven->file);
        if (rc)
            return rc;
    }
    *file = driven->file;
    return 0;
}

int hipio_driver_check(const struct hipio_driven *driven, bool write, MPI_Offset offset, int count,
                       MPI_Datatype type)
{
    const struct hipio_romio_file *fd = driven->fd;
    MPI_Count size = 0;

    if (count < 0)
        return MPI_ERR_COUNT;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) != MPI_SUCCESS)
        return MPI_ERR_TYPE;
    if (offset < 0)
        return MPI_ERR_ARG;
    if (fd->etype_size && (MPI_Count)((uint64_t)size * (uint64_t)count % (uint64_t)fd->etype_size))
        return MPI_ERR_IO;
    if (write && (fd->access_mode & MPI_MODE_RDONLY))
        return MPI_ERR_READ_ONLY;
    if (!write && (fd->access_mode & MPI_MODE_WRONLY))
        return MPI_ERR_ACCESS;
    return MPI_SUCCESS;
}
