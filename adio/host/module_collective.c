/* SPDX-License-Identifier: MIT */
/*
 * Module: collective data accesses.
 *
 * ROMIO checks arguments on each rank alone and returns before the others know, who then wait for
 * ever. Here the rank with the fault enters the collective with nothing to move; the driver's
 * member lets all ranks know. The access mode is the same on all ranks, so that all may leave at
 * once; ROMIO forgets to ask for it in some calls.
 */
#include "ompi_config.h"

#include "module.h"

#include "begun.h"
#include "calls.h"
#include "engine/status.h"
#include "hints.h"
#include "mpierr.h"
#include "openfile.h"
#include "shared.h"
#include <stdio.h>

/* What is known between the way in and the way out of a call. */
struct visit {
    int fault;           /* class of this rank's own fault; then the arguments say "nothing" */
    bool split_was_free; /* no split collective was active before this call */
};

static int check_mode(const ompi_file_t *handle, bool write)
{
    char text[HIPIO_TEXT_MAX];
    bool refused = handle->f_amode & (write ? MPI_MODE_RDONLY : MPI_MODE_WRONLY);

    if (!refused)
        return MPI_SUCCESS;
    snprintf(text, sizeof text, "%s: the file was opened for %s only", handle->f_filename,
             write ? "reading" : "writing");
    return hipio_mpierr_code(write ? MPI_ERR_READ_ONLY : MPI_ERR_ACCESS, text);
}

/* The class of this rank's own fault, or MPI_SUCCESS. */
static int check(const struct hipio_driven *driven, bool write,
                 const struct hipio_access_arguments *a)
{
    return hipio_driver_check(driven, write, a->offset, a->count, a->type);
}

/* Before the call. MPI_SUCCESS: make it, with what the arguments say now, and then leave. */
static int enter(const ompi_file_t *handle, bool write, struct hipio_access_arguments *a,
                 struct visit *visit)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    *visit = (struct visit){MPI_SUCCESS, false};
    int rc = check_mode(handle, write);
    if (rc != MPI_SUCCESS || !driven)
        return rc;
    driven->argument_error = visit->fault = check(driven, write, a);
    if (visit->fault != MPI_SUCCESS) {
        a->offset = 0;
        a->count = 0;
        a->type = driven->fd->etype;
    }
    visit->split_was_free = driven->fd->split_coll_count == 0;
    return MPI_SUCCESS;
}

/* The code of this rank's own fault, with the words for it. */
static int fault_code(const ompi_file_t *handle, int error_class)
{
    char text[HIPIO_TEXT_MAX];
    const char *what = "the arguments are refused";

    if (error_class == MPI_ERR_COUNT)
        what = "the count is negative";
    if (error_class == MPI_ERR_TYPE)
        what = "the datatype is not valid";
    if (error_class == MPI_ERR_ARG)
        what = "the offset is negative";
    if (error_class == MPI_ERR_IO)
        what = "the bytes of the access are no whole number of the view's etypes";
    snprintf(text, sizeof text, "%s: %s", handle->f_filename, what);
    return hipio_mpierr_code(error_class, text);
}

/* After the call. */
static int leave(ompi_file_t *handle, const struct visit *visit, int rc)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);

    if (!file->driven)
        return rc;
    if (visit->fault != MPI_SUCCESS)
        rc = fault_code(handle, visit->fault);
    file->driven->argument_error = MPI_SUCCESS;
    if (file->stale)
        hipio_hints_publish(handle);
    return rc;
}

/* Before the begin of a split collective, which may leave its work to the background. */
static int enter_begin(const ompi_file_t *handle, bool write, struct hipio_access_arguments *a,
                       struct visit *visit)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    int rc = enter(handle, write, a, visit);
    if (rc == MPI_SUCCESS && driven)
        driven->beginning = visit->split_was_free;
    return rc;
}

/* A begin that failed has begun nothing: ROMIO would want an end before the next one. */
static int leave_begin(ompi_file_t *handle, const struct visit *visit, int rc)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    rc = leave(handle, visit, rc);
    if (driven)
        driven->beginning = false;
    if (rc != MPI_SUCCESS && visit->split_was_free && driven)
        driven->fd->split_coll_count = 0;
    return rc;
}

/* Before the end of a split collective: what its begin left to the background must be done. */
static int complete(const ompi_file_t *handle)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    return driven ? hipio_begun_end(driven) : MPI_SUCCESS;
}

/* A nonblocking collective returns to a rank whatever the others do. */
static int check_alone(ompi_file_t *handle, bool write, const struct hipio_access_arguments *a)
{
    const struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    int rc = check_mode(handle, write);
    if (rc != MPI_SUCCESS || !driven)
        return rc;
    rc = check(driven, write, a);
    return rc == MPI_SUCCESS ? rc : fault_code(handle, rc);
}

/* ---- One function for each kind of call ---- */

static int block(ompi_file_t *handle, enum hipio_blocking_call call,
                 struct hipio_access_arguments *arguments)
{
    struct visit visit;

    int rc = enter(handle, call >= HIPIO_CALL_WRITE, arguments, &visit);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave(handle, &visit, hipio_calls_block(hipio_module_lower(), call, handle, arguments));
}

static int block_ordered(ompi_file_t *handle, enum hipio_blocking_call call,
                         struct hipio_access_arguments *arguments)
{
    int rc = hipio_shared_agree(handle);
    return rc != MPI_SUCCESS ? rc : block(handle, call, arguments);
}

static int begin(ompi_file_t *handle, enum hipio_split_call call,
                 struct hipio_access_arguments *arguments)
{
    struct visit visit;

    int rc = enter_begin(handle, call >= HIPIO_CALL_SPLIT_WRITE_ALL, arguments, &visit);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave_begin(handle, &visit,
                       hipio_calls_begin(hipio_module_lower(), call, handle, arguments));
}

static int begin_ordered(ompi_file_t *handle, enum hipio_split_call call,
                         struct hipio_access_arguments *arguments)
{
    int rc = hipio_shared_agree(handle);
    return rc != MPI_SUCCESS ? rc : begin(handle, call, arguments);
}

/* ROMIO's end follows also where the work has failed, for the next begin's sake. */
static int end(ompi_file_t *handle, enum hipio_split_call call,
               const struct hipio_access_arguments *arguments)
{
    int code = complete(handle);
    int rc = hipio_calls_end(hipio_module_lower(), call, handle, arguments);

    return code != MPI_SUCCESS ? code : rc;
}

/*
 * ROMIO's own nonblocking collectives are empty slots. On a file that is not driven each rank moves
 * its part by itself (`alone`), which is all that MPI asks for.
 */
static int start(ompi_file_t *handle, enum hipio_nonblocking_call call,
                 enum hipio_nonblocking_call alone, const struct hipio_access_arguments *arguments)
{
    const bool driven = hipio_openfile_of(handle)->driven != NULL;

    int rc = check_alone(handle, call >= HIPIO_CALL_IWRITE, arguments);
    if (rc != MPI_SUCCESS)
        return rc;
    return hipio_calls_start(hipio_module_lower(), driven ? call : alone, handle, arguments);
}

/*
 * In atomic mode ROMIO reads at once, and then hands out a request that tells what was asked for
 * instead of what was there. So the request is made here, of what its blocking call tells.
 */
static int start_read(ompi_file_t *handle, enum hipio_nonblocking_call call,
                      enum hipio_blocking_call at_once, struct hipio_access_arguments *arguments)
{
    const struct hipio_driven *driven = hipio_openfile_of(handle)->driven;
    ompi_status_public_t status = {0};

    if (!driven || !driven->fd->atomicity)
        return hipio_calls_start(hipio_module_lower(), call, handle, arguments);
    arguments->status = &status;
    int rc = hipio_calls_block(hipio_module_lower(), at_once, handle, arguments);
    return rc != MPI_SUCCESS
               ? rc
               : hipio_host_request_completed(handle, status._ucount, arguments->request);
}

static int check_shared(ompi_file_t *handle, bool write)
{
    int rc = check_mode(handle, write);
    return rc != MPI_SUCCESS ? rc : hipio_shared_check(handle);
}

/* ---- The members ---- */

static int read_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                       struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .status = status};
    return block(handle, HIPIO_CALL_READ_AT_ALL, &a);
}

static int write_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .status = status};
    return block(handle, HIPIO_CALL_WRITE_AT_ALL, &a);
}

static int read_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                    ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_READ_ALL, &a);
}

static int write_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                     ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block(handle, HIPIO_CALL_WRITE_ALL, &a);
}

static int read_ordered(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block_ordered(handle, HIPIO_CALL_READ_ORDERED, &a);
}

static int write_ordered(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    return block_ordered(handle, HIPIO_CALL_WRITE_ORDERED, &a);
}

static int read_at_all_begin(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                             struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset};
    return begin(handle, HIPIO_CALL_SPLIT_READ_AT_ALL, &a);
}

static int write_at_all_begin(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset};
    return begin(handle, HIPIO_CALL_SPLIT_WRITE_AT_ALL, &a);
}

static int read_all_begin(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin(handle, HIPIO_CALL_SPLIT_READ_ALL, &a);
}

static int write_all_begin(ompi_file_t *handle, const void *buf, int count,
                           struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin(handle, HIPIO_CALL_SPLIT_WRITE_ALL, &a);
}

static int read_ordered_begin(ompi_file_t *handle, void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin_ordered(handle, HIPIO_CALL_SPLIT_READ_ORDERED, &a);
}

static int write_ordered_begin(ompi_file_t *handle, const void *buf, int count,
                               struct ompi_datatype_t *type)
{
    struct hipio_access_arguments a = {.buf = buf, .count = count, .type = type};
    return begin_ordered(handle, HIPIO_CALL_SPLIT_WRITE_ORDERED, &a);
}

static int read_at_all_end(ompi_file_t *handle, void *buf, ompi_status_public_t *status)
{
    const struct hipio_access_arguments a = {.buf = buf, .status = status};
    return end(handle, HIPIO_CALL_SPLIT_READ_AT_ALL, &a);
}

static int write_at_all_end(ompi_file_t *handle, const void *buf, ompi_status_public_t *status)
{
    const struct hipio_access_arguments a = {.buf = buf, .status = status};
    return end(handle, HIPIO_CALL_SPLIT_WRITE_AT_ALL, &a);
}

static int read_all_end(ompi_file_t *handle, void *buf, ompi_status_public_t *status)
{
    const struct hipio_access_arguments a = {.buf = buf, .status = status};
    return end(handle, HIPIO_CALL_SPLIT_READ_ALL, &a);
}

static int write_all_end(ompi_file_t *handle, const void *buf, ompi_status_public_t *status)
{
    const struct hipio_access_arguments a = {.buf = buf, .status = status};
    return end(handle, HIPIO_CALL_SPLIT_WRITE_ALL, &a);
}

static int read_ordered_end(ompi_file_t *handle, void *buf, ompi_status_public_t *status)
{
    const struct hipio_access_arguments a = {.buf = buf, .status = status};
    return end(handle, HIPIO_CALL_SPLIT_READ_ORDERED, &a);
}

static int write_ordered_end(ompi_file_t *handle, const void *buf, ompi_status_public_t *status)
{
    const struct hipio_access_arguments a = {.buf = buf, .status = status};
    return end(handle, HIPIO_CALL_SPLIT_WRITE_ORDERED, &a);
}

static int iread_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                        struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .request = request};
    return start(handle, HIPIO_CALL_IREAD_AT_ALL, HIPIO_CALL_IREAD_AT, &a);
}

static int iwrite_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .request = request};
    return start(handle, HIPIO_CALL_IWRITE_AT_ALL, HIPIO_CALL_IWRITE_AT, &a);
}

static int iread_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                     struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start(handle, HIPIO_CALL_IREAD_ALL, HIPIO_CALL_IREAD, &a);
}

static int iwrite_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                      struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start(handle, HIPIO_CALL_IWRITE_ALL, HIPIO_CALL_IWRITE, &a);
}

static int iread_at(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                    struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .offset = offset, .request = request};
    return start_read(handle, HIPIO_CALL_IREAD_AT, HIPIO_CALL_READ_AT, &a);
}

static int iread(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                 struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    return start_read(handle, HIPIO_CALL_IREAD, HIPIO_CALL_READ, &a);
}

static int iread_shared(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    int rc = check_shared(handle, false);
    return rc != MPI_SUCCESS
               ? rc
               : start_read(handle, HIPIO_CALL_IREAD_SHARED, HIPIO_CALL_READ_SHARED, &a);
}

static int iwrite_shared(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    struct hipio_access_arguments a = {buf, count, type, .request = request};
    int rc = check_shared(handle, true);
    return rc != MPI_SUCCESS
               ? rc
               : hipio_calls_start(hipio_module_lower(), HIPIO_CALL_IWRITE_SHARED, handle, &a);
}

static int write_shared(ompi_file_t *handle, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct hipio_access_arguments a = {buf, count, type, .status = status};
    int rc = check_shared(handle, true);
    return rc != MPI_SUCCESS
               ? rc
               : hipio_calls_block(hipio_module_lower(), HIPIO_CALL_WRITE_SHARED, handle, &a);
}

void hipio_module_wrap_accesses(mca_io_base_module_2_0_0_t *module)
{
    module->io_module_file_read_at_all = read_at_all;
    module->io_module_file_write_at_all = write_at_all;
    module->io_module_file_read_all = read_all;
    module->io_module_file_write_all = write_all;
    module->io_module_file_read_ordered = read_ordered;
    module->io_module_file_write_ordered = write_ordered;
    module->io_module_file_read_at_all_begin = read_at_all_begin;
    module->io_module_file_read_at_all_end = read_at_all_end;
    module->io_module_file_write_at_all_begin = write_at_all_begin;
    module->io_module_file_write_at_all_end = write_at_all_end;
    module->io_module_file_read_all_begin = read_all_begin;
    module->io_module_file_read_all_end = read_all_end;
    module->io_module_file_write_all_begin = write_all_begin;
    module->io_module_file_write_all_end = write_all_end;
    module->io_module_file_read_ordered_begin = read_ordered_begin;
    module->io_module_file_read_ordered_end = read_ordered_end;
    module->io_module_file_write_ordered_begin = write_ordered_begin;
    module->io_module_file_write_ordered_end = write_ordered_end;
    module->io_module_file_iread_at = iread_at;
    module->io_module_file_iread = iread;
    module->io_module_file_iread_at_all = iread_at_all;
    module->io_module_file_iwrite_at_all = iwrite_at_all;
    module->io_module_file_iread_all = iread_all;
    module->io_module_file_iwrite_all = iwrite_all;
    module->io_module_file_write_shared = write_shared;
    module->io_module_file_iread_shared = iread_shared;
    module->io_module_file_iwrite_shared = iwrite_shared;
}
