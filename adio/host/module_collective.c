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
#include "engine/status.h"
#include "hints.h"
#include "mpierr.h"
#include "openfile.h"
#include "shared.h"
#include <stdio.h>

struct access {
    MPI_Offset offset; /* 0 where the call has none */
    int count;
    struct ompi_datatype_t *type;
    int fault;           /* class of this rank's own fault; then the rest says "nothing" */
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

/* Before the call. MPI_SUCCESS: make it, with what `access` says now, and then leave. */
static int enter(const ompi_file_t *handle, bool write, struct access *access)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    int rc = check_mode(handle, write);
    if (rc != MPI_SUCCESS || !driven)
        return rc;
    int fault = hipio_driver_check(driven, write, access->offset, access->count, access->type);
    driven->argument_error = fault;
    if (fault != MPI_SUCCESS)
        *access = (struct access){.type = driven->fd->etype, .fault = fault};
    access->split_was_free = driven->fd->split_coll_count == 0;
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
static int leave(ompi_file_t *handle, const struct access *access, int rc)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);

    if (!file->driven)
        return rc;
    if (access->fault != MPI_SUCCESS)
        rc = fault_code(handle, access->fault);
    file->driven->argument_error = MPI_SUCCESS;
    if (file->stale)
        hipio_hints_publish(handle);
    return rc;
}

/* Before the begin of a split collective, which may leave its work to the background. */
static int enter_begin(const ompi_file_t *handle, bool write, struct access *access)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    int rc = enter(handle, write, access);
    if (rc == MPI_SUCCESS && driven)
        driven->beginning = access->split_was_free;
    return rc;
}

/* A begin that failed has begun nothing: ROMIO would want an end before the next one. */
static int leave_begin(ompi_file_t *handle, const struct access *access, int rc)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    rc = leave(handle, access, rc);
    if (driven)
        driven->beginning = false;
    if (rc != MPI_SUCCESS && access->split_was_free && driven)
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
static int check_alone(ompi_file_t *handle, bool write, const struct access *access)
{
    const struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    int rc = check_mode(handle, write);
    if (rc != MPI_SUCCESS || !driven)
        return rc;
    rc = hipio_driver_check(driven, write, access->offset, access->count, access->type);
    return rc == MPI_SUCCESS ? rc : fault_code(handle, rc);
}

static int read_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                       struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = {.offset = offset, .count = count, .type = type};

    int rc = enter(handle, false, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave(handle, &access,
                 hipio_module_lower()->io_module_file_read_at_all(
                     handle, access.offset, buf, access.count, access.type, status));
}

static int write_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = {.offset = offset, .count = count, .type = type};

    int rc = enter(handle, true, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave(handle, &access,
                 hipio_module_lower()->io_module_file_write_at_all(
                     handle, access.offset, buf, access.count, access.type, status));
}

static int read_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                    ompi_status_public_t *status)
{
    struct access access = {.count = count, .type = type};

    int rc = enter(handle, false, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave(handle, &access,
                 hipio_module_lower()->io_module_file_read_all(handle, buf, access.count,
                                                               access.type, status));
}

static int write_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                     ompi_status_public_t *status)
{
    struct access access = {.count = count, .type = type};

    int rc = enter(handle, true, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave(handle, &access,
                 hipio_module_lower()->io_module_file_write_all(handle, buf, access.count,
                                                                access.type, status));
}

static int read_ordered(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        ompi_status_public_t *status)
{
    struct access access = {.count = count, .type = type};

    int rc = hipio_shared_agree(handle);
    if (rc == MPI_SUCCESS)
        rc = enter(handle, false, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave(handle, &access,
                 hipio_module_lower()->io_module_file_read_ordered(handle, buf, access.count,
                                                                   access.type, status));
}

static int write_ordered(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    struct access access = {.count = count, .type = type};

    int rc = hipio_shared_agree(handle);
    if (rc == MPI_SUCCESS)
        rc = enter(handle, true, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave(handle, &access,
                 hipio_module_lower()->io_module_file_write_ordered(handle, buf, access.count,
                                                                    access.type, status));
}

static int read_at_all_begin(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                             struct ompi_datatype_t *type)
{
    struct access access = {.offset = offset, .count = count, .type = type};

    int rc = enter_begin(handle, false, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave_begin(handle, &access,
                       hipio_module_lower()->io_module_file_read_at_all_begin(
                           handle, access.offset, buf, access.count, access.type));
}

static int write_at_all_begin(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct access access = {.offset = offset, .count = count, .type = type};

    int rc = enter_begin(handle, true, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave_begin(handle, &access,
                       hipio_module_lower()->io_module_file_write_at_all_begin(
                           handle, access.offset, buf, access.count, access.type));
}

static int read_all_begin(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type)
{
    struct access access = {.count = count, .type = type};

    int rc = enter_begin(handle, false, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave_begin(handle, &access,
                       hipio_module_lower()->io_module_file_read_all_begin(
                           handle, buf, access.count, access.type));
}

static int write_all_begin(ompi_file_t *handle, const void *buf, int count,
                           struct ompi_datatype_t *type)
{
    struct access access = {.count = count, .type = type};

    int rc = enter_begin(handle, true, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave_begin(handle, &access,
                       hipio_module_lower()->io_module_file_write_all_begin(
                           handle, buf, access.count, access.type));
}

static int read_ordered_begin(ompi_file_t *handle, void *buf, int count,
                              struct ompi_datatype_t *type)
{
    struct access access = {.count = count, .type = type};

    int rc = hipio_shared_agree(handle);
    if (rc == MPI_SUCCESS)
        rc = enter_begin(handle, false, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave_begin(handle, &access,
                       hipio_module_lower()->io_module_file_read_ordered_begin(
                           handle, buf, access.count, access.type));
}

static int write_ordered_begin(ompi_file_t *handle, const void *buf, int count,
                               struct ompi_datatype_t *type)
{
    struct access access = {.count = count, .type = type};

    int rc = hipio_shared_agree(handle);
    if (rc == MPI_SUCCESS)
        rc = enter_begin(handle, true, &access);
    if (rc != MPI_SUCCESS)
        return rc;
    return leave_begin(handle, &access,
                       hipio_module_lower()->io_module_file_write_ordered_begin(
                           handle, buf, access.count, access.type));
}

/* ROMIO's end follows also where the work has failed, for the next begin's sake. */
static int read_at_all_end(ompi_file_t *handle, void *buf, ompi_status_public_t *status)
{
    int code = complete(handle);
    int rc = hipio_module_lower()->io_module_file_read_at_all_end(handle, buf, status);

    return code != MPI_SUCCESS ? code : rc;
}

static int write_at_all_end(ompi_file_t *handle, const void *buf, ompi_status_public_t *status)
{
    int code = complete(handle);
    int rc = hipio_module_lower()->io_module_file_write_at_all_end(handle, buf, status);

    return code != MPI_SUCCESS ? code : rc;
}

static int read_all_end(ompi_file_t *handle, void *buf, ompi_status_public_t *status)
{
    int code = complete(handle);
    int rc = hipio_module_lower()->io_module_file_read_all_end(handle, buf, status);

    return code != MPI_SUCCESS ? code : rc;
}

static int write_all_end(ompi_file_t *handle, const void *buf, ompi_status_public_t *status)
{
    int code = complete(handle);
    int rc = hipio_module_lower()->io_module_file_write_all_end(handle, buf, status);

    return code != MPI_SUCCESS ? code : rc;
}

static int read_ordered_end(ompi_file_t *handle, void *buf, ompi_status_public_t *status)
{
    int code = complete(handle);
    int rc = hipio_module_lower()->io_module_file_read_ordered_end(handle, buf, status);

    return code != MPI_SUCCESS ? code : rc;
}

static int write_ordered_end(ompi_file_t *handle, const void *buf, ompi_status_public_t *status)
{
    int code = complete(handle);
    int rc = hipio_module_lower()->io_module_file_write_ordered_end(handle, buf, status);

    return code != MPI_SUCCESS ? code : rc;
}

/*
 * ROMIO's own nonblocking collectives are empty slots. On a file that is not driven each rank moves
 * its part by itself, which is all that MPI asks for.
 */
static int iread_at_all(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                        struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    const mca_io_base_module_2_0_0_t *lower = hipio_module_lower();
    bool driven = hipio_openfile_of(handle)->driven != NULL;

    int rc = check_alone(handle, false,
                         &(struct access){.offset = offset, .count = count, .type = type});
    if (rc != MPI_SUCCESS)
        return rc;
    return (driven ? lower->io_module_file_iread_at_all
                   : lower->io_module_file_iread_at)(handle, offset, buf, count, type, request);
}

static int iwrite_at_all(ompi_file_t *handle, MPI_Offset offset, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    const mca_io_base_module_2_0_0_t *lower = hipio_module_lower();
    bool driven = hipio_openfile_of(handle)->driven != NULL;

    int rc =
        check_alone(handle, true, &(struct access){.offset = offset, .count = count, .type = type});
    if (rc != MPI_SUCCESS)
        return rc;
    return (driven ? lower->io_module_file_iwrite_at_all
                   : lower->io_module_file_iwrite_at)(handle, offset, buf, count, type, request);
}

static int iread_all(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                     struct ompi_request_t **request)
{
    const mca_io_base_module_2_0_0_t *lower = hipio_module_lower();
    bool driven = hipio_openfile_of(handle)->driven != NULL;

    int rc = check_alone(handle, false, &(struct access){.count = count, .type = type});
    if (rc != MPI_SUCCESS)
        return rc;
    return (driven ? lower->io_module_file_iread_all
                   : lower->io_module_file_iread)(handle, buf, count, type, request);
}

static int iwrite_all(ompi_file_t *handle, const void *buf, int count, struct ompi_datatype_t *type,
                      struct ompi_request_t **request)
{
    const mca_io_base_module_2_0_0_t *lower = hipio_module_lower();
    bool driven = hipio_openfile_of(handle)->driven != NULL;

    int rc = check_alone(handle, true, &(struct access){.count = count, .type = type});
    if (rc != MPI_SUCCESS)
        return rc;
    return (driven ? lower->io_module_file_iwrite_all
                   : lower->io_module_file_iwrite)(handle, buf, count, type, request);
}

/*
 * In atomic mode ROMIO reads at once, and then hands out a request that tells what was asked for
 * instead of what was there. So the request is made here, of what its blocking call tells.
 */
static bool reads_at_once(const ompi_file_t *handle)
{
    const struct hipio_driven *driven = hipio_openfile_of(handle)->driven;

    return driven && driven->fd->atomicity;
}

static int hand_out(ompi_file_t *handle, int rc, const ompi_status_public_t *status,
                    struct ompi_request_t **request)
{
    return rc != MPI_SUCCESS ? rc : hipio_host_request_completed(handle, status->_ucount, request);
}

static int iread_at(ompi_file_t *handle, MPI_Offset offset, void *buf, int count,
                    struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    const mca_io_base_module_2_0_0_t *lower = hipio_module_lower();
    ompi_status_public_t status = {0};

    if (!reads_at_once(handle))
        return lower->io_module_file_iread_at(handle, offset, buf, count, type, request);
    int rc = lower->io_module_file_read_at(handle, offset, buf, count, type, &status);
    return hand_out(handle, rc, &status, request);
}

static int iread(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                 struct ompi_request_t **request)
{
    const mca_io_base_module_2_0_0_t *lower = hipio_module_lower();
    ompi_status_public_t status = {0};

    if (!reads_at_once(handle))
        return lower->io_module_file_iread(handle, buf, count, type, request);
    int rc = lower->io_module_file_read(handle, buf, count, type, &status);
    return hand_out(handle, rc, &status, request);
}

static int write_shared(ompi_file_t *handle, const void *buf, int count,
                        struct ompi_datatype_t *type, ompi_status_public_t *status)
{
    int rc = check_mode(handle, true);
    if (rc == MPI_SUCCESS)
        rc = hipio_shared_check(handle);
    return rc != MPI_SUCCESS ? rc
                             : hipio_module_lower()->io_module_file_write_shared(handle, buf, count,
                                                                                 type, status);
}

static int iread_shared(ompi_file_t *handle, void *buf, int count, struct ompi_datatype_t *type,
                        struct ompi_request_t **request)
{
    int rc = check_mode(handle, false);
    const mca_io_base_module_2_0_0_t *lower = hipio_module_lower();
    ompi_status_public_t status = {0};

    if (rc == MPI_SUCCESS)
        rc = hipio_shared_check(handle);
    if (rc != MPI_SUCCESS)
        return rc;
    if (!reads_at_once(handle))
        return lower->io_module_file_iread_shared(handle, buf, count, type, request);
    rc = lower->io_module_file_read_shared(handle, buf, count, type, &status);
    return hand_out(handle, rc, &status, request);
}

static int iwrite_shared(ompi_file_t *handle, const void *buf, int count,
                         struct ompi_datatype_t *type, struct ompi_request_t **request)
{
    int rc = check_mode(handle, true);
    if (rc == MPI_SUCCESS)
        rc = hipio_shared_check(handle);
    return rc != MPI_SUCCESS ? rc
                             : hipio_module_lower()->io_module_file_iwrite_shared(
                                   handle, buf, count, type, request);
}

static int seek_shared(ompi_file_t *handle, MPI_Offset offset, int whence)
{
    int rc = hipio_shared_agree(handle);
    return rc != MPI_SUCCESS
               ? rc
               : hipio_module_lower()->io_module_file_seek_shared(handle, offset, whence);
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
    module->io_module_file_seek_shared = seek_shared;
    module->io_module_file_write_shared = write_shared;
    module->io_module_file_iread_shared = iread_shared;
    module->io_module_file_iwrite_shared = iwrite_shared;
}
