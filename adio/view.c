/* SPDX-License-Identifier: MIT */
/* View: offset rules and pointer moves (MPI 3.1, sections 13.3 and 13.4). */
#include "view.h"
#include "engine/status.h"
#include "flatten.h"
#include <errno.h>

/* So many file types, one after another, that offsets stay below 2^62. */
static uint64_t repeats(const struct hipio_driven *driven, uint64_t size, int64_t extent)
{
    int64_t room = INT64_MAX / 2 - driven->fd->disp;
    int64_t step = extent > (int64_t)size ? extent : (int64_t)size;
    int64_t n = step > 0 ? room / step : 1;
    return n > 0 ? (uint64_t)n : 1;
}

static int flatten_view(struct hipio_driven *driven)
{
    MPI_Datatype filetype =
        driven->filetype != MPI_DATATYPE_NULL ? driven->filetype : driven->fd->filetype;
    MPI_Count lb, extent;
    struct hipio_layout *tile, *view;
    int rc;

    if (PMPI_Type_get_extent_x(filetype, &lb, &extent) != MPI_SUCCESS)
        return hipio_status_set(-EINVAL, "MPI does not know the extent of the file type");
    rc = hipio_flatten(filetype, 1, &tile);
    if (rc)
        return rc;
    rc = hipio_layout_vector(hipio_layout_retain(tile), 0,
                             repeats(driven, hipio_layout_size(tile), extent), extent, &view);
    if (rc) {
        hipio_layout_release(tile);
        return rc;
    }
    if (!hipio_layout_is_monotonic(view)) {
        hipio_layout_release(tile);
        hipio_layout_release(view);
        return hipio_status_set(
            -EINVAL,
            "view of %s: the file type's displacements decrease or overlap, which MPI 3.1 section "
            "13.3 forbids",
            driven->fd->filename);
    }
    driven->tile = tile;
    driven->tile_extent = extent;
    driven->view = view;
    return 0;
}

int hipio_view_prepare(struct hipio_driven *driven)
{
    return driven->view ? 0 : flatten_view(driven);
}

bool hipio_view_is_contiguous(const struct hipio_driven *driven)
{
    int64_t start;
    return hipio_layout_is_contiguous(driven->view, &start);
}

bool hipio_view_is_empty(const struct hipio_driven *driven)
{
    return hipio_layout_size(driven->tile) == 0;
}

/* Tiles whose `end`, an offset in the first one, lies not above `from_start`. */
static uint64_t tiles_below(const struct hipio_driven *driven, int64_t end, int64_t from_start)
{
    if (from_start < end)
        return 0;
    return driven->tile_extent > 0 ? (uint64_t)((from_start - end) / driven->tile_extent) + 1 : 1;
}

/* Only the tiles around the offset need a search: those before hold their whole size. */
uint64_t hipio_view_bytes_below(const struct hipio_driven *driven, int64_t offset)
{
    int64_t from_start = offset - driven->fd->disp, low, high;
    uint64_t size = hipio_layout_size(driven->tile), total = hipio_layout_size(driven->view);

    if (size == 0)
        return 0;
    hipio_layout_bounds(driven->tile, 0, size, &low, &high);
    const uint64_t whole = tiles_below(driven, high, from_start);
    const uint64_t begun = tiles_below(driven, low + 1, from_start);
    const uint64_t start = whole < total / size ? whole * size : total;
    const uint64_t length = begun > whole ? (begun - whole) * size : 0;
    return start + hipio_layout_bytes_below(driven->view, start,
                                            length < total - start ? length : total - start,
                                            from_start);
}

int hipio_view_position(const struct hipio_driven *driven, int pointer, int64_t offset,
                        uint64_t *position)
{
    *position = 0;
    if (hipio_view_is_empty(driven))
        return 0;
    if (pointer == HIPIO_ROMIO_INDIVIDUAL)
        *position = hipio_view_bytes_below(driven, driven->fd->fp_ind);
    else if (__builtin_mul_overflow((uint64_t)offset, (uint64_t)driven->fd->etype_size, position) ||
             *position > hipio_layout_size(driven->view))
        return hipio_status_set(-EOVERFLOW,
                                "offset %lld in etypes is past the range of file offsets",
                                (long long)offset);
    return 0;
}

int64_t hipio_view_offset(const struct hipio_driven *driven, uint64_t position)
{
    struct hipio_cursor cursor;
    int64_t offset = 0;

    if (hipio_view_is_empty(driven))
        return driven->fd->disp;
    hipio_cursor_init(&cursor, driven->view, position);
    hipio_cursor_next_run(&cursor, 1, &offset);
    return driven->fd->disp + offset;
}

void hipio_view_seek(struct hipio_driven *driven, int64_t offset)
{
    driven->fd->fp_ind = offset;
    hipio_view_touch(driven);
}

void hipio_view_touch(struct hipio_driven *driven)
{
    driven->fd->fp_sys_posn = -1;
}
