/* SPDX-License-Identifier: MIT */
/*
 * Module: seeks and positions.
 *
 * ROMIO finds its way through a view by its own list of blocks, which is wrong for some types; it
 * divides by the size of a file type that has none, or looks for the end of the file for ever. On
 * files that are driven, positions are the driver's, as the accesses are.
 */
#include "ompi_config.h"

#include "module.h"

#include "engine/status.h"
#include "mpierr.h"
#include "openfile.h"
#include "shared.h"
#include "view.h"
#include <errno.h>

/* The driver, if positions are its matter: in sequential mode there are none, and ROMIO says so. */
static struct hipio_driven *find(const ompi_file_t *handle)
{
    return handle->f_amode & MPI_MODE_SEQUENTIAL ? NULL : hipio_openfile_of(handle)->driven;
}

static int code_of(int rc)
{
    return rc == 0 ? MPI_SUCCESS : hipio_mpierr_code(hipio_mpierr_class(rc), hipio_status_text());
}

static MPI_Offset etypes_in(const struct hipio_driven *driven, uint64_t bytes)
{
    const uint64_t size = (uint64_t)driven->fd->etype_size;
    return size > 0 ? (MPI_Offset)(bytes / size) : 0;
}

/* Where etype `offset` of the view lies in the file. */
static int place_of(struct hipio_driven *driven, MPI_Offset offset, MPI_Offset *place)
{
    uint64_t bytes;

    if (offset < 0)
        return hipio_status_set(-EINVAL, "%s: the offset %lld is negative", driven->fd->filename,
                                (long long)offset);
    int rc = hipio_view_prepare(driven);
    if (rc == 0)
        rc = hipio_view_position(driven, HIPIO_ROMIO_EXPLICIT_OFFSET, offset, &bytes);
    if (rc == 0)
        *place = hipio_view_offset(driven, bytes);
    return rc;
}

static int current(struct hipio_driven *driven, MPI_Offset *offset)
{
    uint64_t bytes;

    int rc = hipio_view_prepare(driven);
    if (rc == 0)
        rc = hipio_view_position(driven, HIPIO_ROMIO_INDIVIDUAL, 0, &bytes);
    if (rc == 0)
        *offset = etypes_in(driven, bytes);
    return rc;
}

/* The first etype of which no byte lies in the file. */
static int end_of_file(ompi_file_t *handle, struct hipio_driven *driven, MPI_Offset *offset)
{
    const uint64_t rest = driven->fd->etype_size > 0 ? (uint64_t)driven->fd->etype_size - 1 : 0;
    MPI_Offset size;

    if (hipio_module_lower()->io_module_file_get_size(handle, &size) != MPI_SUCCESS)
        return hipio_status_set(-EIO, "%s: its size can't be told", driven->fd->filename);
    int rc = hipio_view_prepare(driven);
    if (rc == 0)
        *offset = etypes_in(driven, hipio_view_bytes_below(driven, size) + rest);
    return rc;
}

/* Where a seek leads, in etypes; a view of nothing has one place. */
static int target(ompi_file_t *handle, MPI_Offset offset, int whence, MPI_Offset *out)
{
    struct hipio_driven *driven = find(handle);
    MPI_Offset from = 0;
    int rc = 0;

    if (whence == MPI_SEEK_CUR)
        rc = current(driven, &from);
    else if (whence == MPI_SEEK_END)
        rc = end_of_file(handle, driven, &from);
    else if (whence != MPI_SEEK_SET)
        rc = hipio_status_set(-EINVAL, "%s: whence %d is not known", driven->fd->filename, whence);
    if (rc == 0 && __builtin_add_overflow(from, offset, out))
        rc = hipio_status_set(-EOVERFLOW, "%s: the position is past the range of file offsets",
                              driven->fd->filename);
    if (rc == 0 && *out < 0)
        rc = hipio_status_set(-EINVAL, "%s: the position %lld would be negative",
                              driven->fd->filename, (long long)*out);
    return rc;
}

static int get_byte_offset(ompi_file_t *handle, MPI_Offset offset, MPI_Offset *place)
{
    struct hipio_driven *driven = find(handle);

    if (!driven)
        return hipio_module_lower()->io_module_file_get_byte_offset(handle, offset, place);
    return code_of(place_of(driven, offset, place));
}

static int get_position(ompi_file_t *handle, MPI_Offset *offset)
{
    struct hipio_driven *driven = find(handle);

    if (!driven)
        return hipio_module_lower()->io_module_file_get_position(handle, offset);
    return code_of(current(driven, offset));
}

static int seek(ompi_file_t *handle, MPI_Offset offset, int whence)
{
    struct hipio_driven *driven = find(handle);
    MPI_Offset to, place;

    if (!driven)
        return hipio_module_lower()->io_module_file_seek(handle, offset, whence);
    int rc = target(handle, offset, whence, &to);
    if (rc == 0)
        rc = place_of(driven, to, &place);
    if (rc == 0)
        hipio_view_seek(driven, place);
    return code_of(rc);
}

/*
 * Collective, with the same arguments and the same view on all ranks, so that what fails here fails
 * on all. Only the end of the file is looked for by the driver.
 */
static int seek_shared(ompi_file_t *handle, MPI_Offset offset, int whence)
{
    struct hipio_driven *driven = find(handle);
    MPI_Offset end;

    int rc = hipio_shared_agree(handle);
    if (rc != MPI_SUCCESS)
        return rc;
    if (driven && whence == MPI_SEEK_END) {
        rc = target(handle, offset, whence, &end);
        if (rc != 0)
            return code_of(rc);
        offset = end;
        whence = MPI_SEEK_SET;
    }
    return hipio_module_lower()->io_module_file_seek_shared(handle, offset, whence);
}

void hipio_module_wrap_positions(mca_io_base_module_2_0_0_t *module)
{
    module->io_module_file_get_byte_offset = get_byte_offset;
    module->io_module_file_get_position = get_position;
    module->io_module_file_seek = seek;
    module->io_module_file_seek_shared = seek_shared;
}
