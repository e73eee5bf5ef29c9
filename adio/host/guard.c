/* SPDX-License-Identifier: MIT */
/* Guard: each data access with a look at its buffer first. */
#include "ompi_config.h"

#include "guard.h"

#include "access.h"
#include "engine/log.h"
#include "engine/status.h"
#include "mpierr.h"
#include "ompi/file/file.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* One over ROMIO's files that could not be driven, and one over each other component's. */
#define GUARDS 8

/* Why a file is not driven. */
struct reason {
    const ompi_file_t *handle;
    struct reason *next;
    char text[HIPIO_TEXT_MAX / 2];
};

static struct {
    pthread_mutex_t lock;
    int n;
    struct reason *reasons;
    struct {
        const mca_io_base_module_2_0_0_t *lower;
        mca_io_base_module_2_0_0_t table;
    } over[GUARDS];
} guards = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A guarded file's own table keeps the set_view of the one below, and that tells them apart. */
static const mca_io_base_module_2_0_0_t *below(const ompi_file_t *handle)
{
    int i = 0;

    while (i < GUARDS - 1 && guards.over[i].table.io_module_file_set_view !=
                                 handle->f_io_selected_module.v2_0_0.io_module_file_set_view)
        i++;
    return guards.over[i].lower;
}

/* With the lock held: where the file's reason is linked, or would be. */
static struct reason **find_reason(const ompi_file_t *handle)
{
    struct reason **at = &guards.reasons;

    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

/* With the lock held. A file whose component was not chosen after all leaves its reason behind, for
 * the next one at the same address to change. */
static void keep_reason(const ompi_file_t *handle, const char *why)
{
    struct reason **at = find_reason(handle);

    if (!*at)
        *at = calloc(1, sizeof **at);
    if (!*at)
        return;
    (*at)->handle = handle;
    snprintf((*at)->text, sizeof(*at)->text, "%s", why);
}

static void tell_reason(const ompi_file_t *handle, char *out, size_t size)
{
    pthread_mutex_lock(&guards.lock);
    const struct reason *reason = *find_reason(handle);
    snprintf(out, size, "%s", reason ? reason->text : "no memory is left to say why");
    pthread_mutex_unlock(&guards.lock);
}

static void forget_reason(const ompi_file_t *handle)
{
    pthread_mutex_lock(&guards.lock);
    struct reason **at = find_reason(handle), *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&guards.lock);
    free(found);
}

struct access {
    const void *buf;
    int count;
    struct ompi_datatype_t *type;
    int fault; /* the MPI error to return; the rest then says "nothing" */
};

/*
 * Looks at the buffer. A rank whose buffer is refused makes the call all the same, with nothing to
 * move: in a collective the others would wait for it. Only a nonblocking call that is this rank's
 * alone is not made.
 */
static struct access look(const ompi_file_t *handle, const void *buf, int count,
                          struct ompi_datatype_t *type)
{
    const struct hipio_call call = {.buffer = (void *)(uintptr_t)buf, .count = count, .type = type};
    struct access access = {buf, count, type, MPI_SUCCESS};
    struct hipio_memory memory;
    char text[HIPIO_TEXT_MAX], why[HIPIO_TEXT_MAX / 2];

    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return access;
    int rc = hipio_call_memory(&call, &memory);
    if (rc == 0 && (memory.kind != HIPIO_MEMORY_DEVICE || memory.cpu_access))
        return access;
    if (rc == 0) {
        tell_reason(handle, why, sizeof why);
        snprintf(text, sizeof text,
                 "%s: the buffer %p is memory of GPU %d, and hipio does not drive this file: %s",
                 handle->f_filename, buf, memory.device, why);
    } else {
        snprintf(text, sizeof text, "%s: %s", handle->f_filename, hipio_status_text());
    }
    return (struct access){buf, 0, MPI_BYTE, hipio_mpierr_code(MPI_ERR_BUFFER, text)};
}

static int first(int fault, int rc)
{
    return fault != MPI_SUCCESS ? fault : rc;
}

/* The application gets no request with an error, so that the one of the empty call is let go. */
static int refuse_or(int fault, int rc, struct ompi_request_t **request)
{
    if (fault != MPI_SUCCESS && rc == MPI_SUCCESS)
        PMPI_Request_free(request);
    return first(fault, rc);
}

static int read_at(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                   struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_read_at(handle, offset, buf, access.count, access.type,
                                                   status);
    return first(access.fault, rc);
}

static int read_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                       struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_read_at_all(handle, offset, buf, access.count,
                                                       access.type, status);
    return first(access.fault, rc);
}

static int read_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                    ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_read_all(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static int read_shared(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                       ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_read_shared(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static int read_ordered(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_read_ordered(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static int write_at(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                    struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_write_at(handle, offset, buf, access.count, access.type,
                                                    status);
    return first(access.fault, rc);
}

static int write_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_write_at_all(handle, offset, buf, access.count,
                                                        access.type, status);
    return first(access.fault, rc);
}

static int write_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                     ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_write_all(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static int write_shared(ompi_file_t *handle, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_write_shared(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static int write_ordered(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_write_ordered(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static int iread_at(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                    struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    if (access.fault != MPI_SUCCESS)
        return access.fault;
    return below(handle)->io_module_file_iread_at(handle, offset, buf, count, type, request);
}

static int iread_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                        struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_iread_at_all(handle, offset, buf, access.count,
                                                        access.type, request);
    return refuse_or(access.fault, rc, request);
}

static int iread(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                 struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    if (access.fault != MPI_SUCCESS)
        return access.fault;
    return below(handle)->io_module_file_iread(handle, buf, count, type, request);
}

static int iread_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                     struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_iread_all(handle, buf, access.count, access.type, request);
    return refuse_or(access.fault, rc, request);
}

static int iread_shared(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    if (access.fault != MPI_SUCCESS)
        return access.fault;
    return below(handle)->io_module_file_iread_shared(handle, buf, count, type, request);
}

static int iwrite_at(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                     struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    if (access.fault != MPI_SUCCESS)
        return access.fault;
    return below(handle)->io_module_file_iwrite_at(handle, offset, buf, count, type, request);
}

static int iwrite_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_iwrite_at_all(handle, offset, buf, access.count,
                                                         access.type, request);
    return refuse_or(access.fault, rc, request);
}

static int iwrite(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                  struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    if (access.fault != MPI_SUCCESS)
        return access.fault;
    return below(handle)->io_module_file_iwrite(handle, buf, count, type, request);
}

static int iwrite_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                      struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_iwrite_all(handle, buf, access.count, access.type, request);
    return refuse_or(access.fault, rc, request);
}

static int iwrite_shared(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct access access = look(handle, buf, count, type);

    if (access.fault != MPI_SUCCESS)
        return access.fault;
    return below(handle)->io_module_file_iwrite_shared(handle, buf, count, type, request);
}

/* A begin that is refused on this rank alone is ended at once: the application will not do it. */
static int read_at_all_begin(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                             struct ompi_datatype_t *type)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_read_at_all_begin(handle, offset, buf, access.count,
                                                             access.type);
    if (rc == MPI_SUCCESS && access.fault != MPI_SUCCESS)
        below(handle)->io_module_file_read_at_all_end(handle, buf, MPI_STATUS_IGNORE);
    return first(access.fault, rc);
}

static int read_all_begin(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_read_all_begin(handle, buf, access.count, access.type);
    if (rc == MPI_SUCCESS && access.fault != MPI_SUCCESS)
        below(handle)->io_module_file_read_all_end(handle, buf, MPI_STATUS_IGNORE);
    return first(access.fault, rc);
}

static int read_ordered_begin(ompi_file_t *handle, void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_read_ordered_begin(handle, buf, access.count, access.type);
    if (rc == MPI_SUCCESS && access.fault != MPI_SUCCESS)
        below(handle)->io_module_file_read_ordered_end(handle, buf, MPI_STATUS_IGNORE);
    return first(access.fault, rc);
}

static int write_at_all_begin(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_write_at_all_begin(handle, offset, buf, access.count,
                                                              access.type);
    if (rc == MPI_SUCCESS && access.fault != MPI_SUCCESS)
        below(handle)->io_module_file_write_at_all_end(handle, buf, MPI_STATUS_IGNORE);
    return first(access.fault, rc);
}

static int write_all_begin(ompi_file_t *handle, const void *buf, int count,
                           struct ompi_datatype_t *type)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_write_all_begin(handle, buf, access.count, access.type);
    if (rc == MPI_SUCCESS && access.fault != MPI_SUCCESS)
        below(handle)->io_module_file_write_all_end(handle, buf, MPI_STATUS_IGNORE);
    return first(access.fault, rc);
}

static int write_ordered_begin(ompi_file_t *handle, const void *buf, int count,
                               struct ompi_datatype_t *type)
{
    struct access access = look(handle, buf, count, type);

    int rc =
        below(handle)->io_module_file_write_ordered_begin(handle, buf, access.count, access.type);
    if (rc == MPI_SUCCESS && access.fault != MPI_SUCCESS)
        below(handle)->io_module_file_write_ordered_end(handle, buf, MPI_STATUS_IGNORE);
    return first(access.fault, rc);
}

/* Named apart from the C library's read and write. */
static int read_here(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                     ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_read(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static int write_here(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                      ompi_status_public_t *status)
{
    struct access access = look(handle, buf, count, type);

    int rc = below(handle)->io_module_file_write(handle, buf, access.count, access.type, status);
    return first(access.fault, rc);
}

static void guard_blocking(mca_io_base_module_2_0_0_t *table)
{
    table->io_module_file_read = read_here;
    table->io_module_file_write = write_here;
    table->io_module_file_read_at = read_at;
    table->io_module_file_read_at_all = read_at_all;
    table->io_module_file_read_all = read_all;
    table->io_module_file_read_shared = read_shared;
    table->io_module_file_read_ordered = read_ordered;
    table->io_module_file_write_at = write_at;
    table->io_module_file_write_at_all = write_at_all;
    table->io_module_file_write_all = write_all;
    table->io_module_file_write_shared = write_shared;
    table->io_module_file_write_ordered = write_ordered;
}

static void guard_nonblocking(mca_io_base_module_2_0_0_t *table)
{
    table->io_module_file_iread_at = iread_at;
    table->io_module_file_iread_at_all = iread_at_all;
    table->io_module_file_iread = iread;
    table->io_module_file_iread_all = iread_all;
    table->io_module_file_iread_shared = iread_shared;
    table->io_module_file_iwrite_at = iwrite_at;
    table->io_module_file_iwrite_at_all = iwrite_at_all;
    table->io_module_file_iwrite = iwrite;
    table->io_module_file_iwrite_all = iwrite_all;
    table->io_module_file_iwrite_shared = iwrite_shared;
}

static void guard_split(mca_io_base_module_2_0_0_t *table)
{
    table->io_module_file_read_at_all_begin = read_at_all_begin;
    table->io_module_file_read_all_begin = read_all_begin;
    table->io_module_file_read_ordered_begin = read_ordered_begin;
    table->io_module_file_write_at_all_begin = write_at_all_begin;
    table->io_module_file_write_all_begin = write_all_begin;
    table->io_module_file_write_ordered_begin = write_ordered_begin;
}

static int close_file(ompi_file_t *handle)
{
    forget_reason(handle);
    return below(handle)->io_module_file_close(handle);
}

/* With the lock held: the guard over `lower`, made at its first use; NULL: there are too many. */
static const mca_io_base_module_2_0_0_t *find_guard(const mca_io_base_module_2_0_0_t *lower)
{
    for (int i = 0; i < guards.n; i++) {
        if (guards.over[i].lower == lower)
            return &guards.over[i].table;
    }
    if (guards.n == GUARDS)
        return NULL;
    mca_io_base_module_2_0_0_t *table = &guards.over[guards.n].table;
    guards.over[guards.n++].lower = lower;
    *table = *lower;
    table->io_module_file_close = close_file;
    guard_blocking(table);
    guard_nonblocking(table);
    guard_split(table);
    return table;
}

const mca_io_base_module_2_0_0_t *hipio_guard_over(const ompi_file_t *handle,
                                                   const mca_io_base_module_2_0_0_t *lower,
                                                   const char *why)
{
    static bool told;

    hipio_mpierr_prepare();
    pthread_mutex_lock(&guards.lock);
    const mca_io_base_module_2_0_0_t *guard = find_guard(lower);
    if (guard)
        keep_reason(handle, why);
    pthread_mutex_unlock(&guards.lock);
    if (!guard)
        hipio_log_once(&told, HIPIO_LOG_WARN,
                       "%s: files of more than %d kinds are open; this one is not watched, and a "
                       "buffer in GPU memory will crash",
                       handle->f_filename, GUARDS);
    return guard;
}
