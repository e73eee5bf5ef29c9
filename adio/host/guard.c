/* SPDX-License-Identifier: MIT */
/* Guard: each data access with a look at its buffer first. */
#include "ompi_config.h"

#include "guard.h"

#include "access.h"
#include "calls.h"
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

/*
 * Looks at the buffer. A rank whose buffer is refused makes the call all the same, with nothing to
 * move: in a collective the others would wait for it. MPI_SUCCESS, or the error to return then.
 */
static int look(const ompi_file_t *handle, struct hipio_access_arguments *a)
{
    const struct hipio_call call = {
        .buffer = (void *)(uintptr_t)a->buf, .count = a->count, .type = a->type};
    struct hipio_memory memory;
    char text[HIPIO_TEXT_MAX], why[HIPIO_TEXT_MAX / 2];

    if (a->count <= 0 || a->type == MPI_DATATYPE_NULL)
        return MPI_SUCCESS;
    int rc = hipio_call_memory(&call, &memory);
    if (rc == 0 && (memory.kind != HIPIO_MEMORY_DEVICE || memory.cpu_access))
        return MPI_SUCCESS;
    if (rc == 0) {
        tell_reason(handle, why, sizeof why);
        snprintf(text, sizeof text,
                 "%s: the buffer %p is memory of GPU %d, and hipio does not drive this file: %s",
                 handle->f_filename, a->buf, memory.device, why);
    } else {
        snprintf(text, sizeof text, "%s: %s", handle->f_filename, hipio_status_text());
    }
    a->count = 0;
    a->type = MPI_BYTE;
    return hipio_mpierr_code(MPI_ERR_BUFFER, text);
}

static int first(int fault, int rc)
{
    return fault != MPI_SUCCESS ? fault : rc;
}

static int block(ompi_file_t *handle, enum hipio_blocking_call call,
                 struct hipio_access_arguments *arguments)
{
    const int fault = look(handle, arguments);

    return first(fault, hipio_calls_block(below(handle), call, handle, arguments));
}

/* Of a collective, the application gets no request with an error, so that the one of the empty call
 * is let go. */
static int start_with_others(ompi_file_t *handle, enum hipio_nonblocking_call call,
                             struct hipio_access_arguments *arguments)
{
    const int fault = look(handle, arguments);

    int rc = hipio_calls_start(below(handle), call, handle, arguments);
    if (fault != MPI_SUCCESS && rc == MPI_SUCCESS)
        PMPI_Request_free(arguments->request);
    return first(fault, rc);
}

/* A nonblocking call that is this rank's alone is not made. */
static int start_alone(ompi_file_t *handle, enum hipio_nonblocking_call call,
                       struct hipio_access_arguments *arguments)
{
    const int fault = look(handle, arguments);

    if (fault != MPI_SUCCESS)
        return fault;
    return hipio_calls_start(below(handle), call, handle, arguments);
}

/* A begin that is refused on this rank alone is ended at once: the application will not do it. */
static int begin(ompi_file_t *handle, enum hipio_split_call call,
                 struct hipio_access_arguments *arguments)
{
    const int fault = look(handle, arguments);

    int rc = hipio_calls_begin(below(handle), call, handle, arguments);
    if (rc == MPI_SUCCESS && fault != MPI_SUCCESS)
        hipio_calls_end(below(handle), call, handle, arguments);
    return first(fault, rc);
}

/* ---- The members ---- */

/* Named apart from the C library's read and write. */
static int read_here(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                     ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_READ, &a);
}

static int read_at(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                   struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .status = status};
    return block(handle, HIPIO_CALL_READ_AT, &a);
}

static int read_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                    ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_READ_ALL, &a);
}

static int read_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                       struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .status = status};
    return block(handle, HIPIO_CALL_READ_AT_ALL, &a);
}

static int read_shared(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                       ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_READ_SHARED, &a);
}

static int read_ordered(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_READ_ORDERED, &a);
}

static int write_here(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                      ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_WRITE, &a);
}

static int write_at(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                    struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .status = status};
    return block(handle, HIPIO_CALL_WRITE_AT, &a);
}

static int write_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                     ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_WRITE_ALL, &a);
}

static int write_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .status = status};
    return block(handle, HIPIO_CALL_WRITE_AT_ALL, &a);
}

static int write_shared(ompi_file_t *handle, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_WRITE_SHARED, &a);
}

static int write_ordered(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_WRITE_ORDERED, &a);
}

static int iread(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                 struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start_alone(handle, HIPIO_CALL_IREAD, &a);
}

static int iread_at(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                    struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .request = request};
    return start_alone(handle, HIPIO_CALL_IREAD_AT, &a);
}

static int iread_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                     struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start_with_others(handle, HIPIO_CALL_IREAD_ALL, &a);
}

static int iread_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                        struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .request = request};
    return start_with_others(handle, HIPIO_CALL_IREAD_AT_ALL, &a);
}

static int iread_shared(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start_alone(handle, HIPIO_CALL_IREAD_SHARED, &a);
}

static int iwrite(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                  struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start_alone(handle, HIPIO_CALL_IWRITE, &a);
}

static int iwrite_at(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                     struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .request = request};
    return start_alone(handle, HIPIO_CALL_IWRITE_AT, &a);
}

static int iwrite_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                      struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start_with_others(handle, HIPIO_CALL_IWRITE_ALL, &a);
}

static int iwrite_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .request = request};
    return start_with_others(handle, HIPIO_CALL_IWRITE_AT_ALL, &a);
}

static int iwrite_shared(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start_alone(handle, HIPIO_CALL_IWRITE_SHARED, &a);
}

static int read_all_begin(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin(handle, HIPIO_CALL_SPLIT_READ_ALL, &a);
}

static int read_at_all_begin(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                             struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset};
    return begin(handle, HIPIO_CALL_SPLIT_READ_AT_ALL, &a);
}

static int read_ordered_begin(ompi_file_t *handle, void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin(handle, HIPIO_CALL_SPLIT_READ_ORDERED, &a);
}

static int write_all_begin(ompi_file_t *handle, const void *buf, int count,
                           struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin(handle, HIPIO_CALL_SPLIT_WRITE_ALL, &a);
}

static int write_at_all_begin(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset};
    return begin(handle, HIPIO_CALL_SPLIT_WRITE_AT_ALL, &a);
}

static int write_ordered_begin(ompi_file_t *handle, const void *buf, int count,
                               struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin(handle, HIPIO_CALL_SPLIT_WRITE_ORDERED, &a);
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
