/* SPDX-License-Identifier: MIT */
/* Module: open, close and view; the data accesses are in module_collective.c. */
#include "ompi_config.h"

#include "module.h"

#include "engine/log.h"
#include "engine/status.h"
#include "flatten.h"
#include "guard.h"
#include "hints.h"
#include "mpierr.h"
#include "openfile.h"
#include "plain.h"
#include "proof.h"
#include "request.h"
#include "settings.h"
#include "view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const mca_io_base_module_2_0_0_t *lower;
    mca_io_base_module_2_0_0_t table;
} stack;

const mca_io_base_module_2_0_0_t *hipio_module_lower(void)
{
    return stack.lower;
}

struct hipio_openfile *hipio_openfile_create(void)
{
    return calloc(1, sizeof(struct hipio_openfile));
}

/* One line per process says that its files are ROMIO's alone, and why. */
static void step_aside(ompi_file_t *handle, const char *why)
{
    static bool said, told;
    int rank = 0;

    PMPI_Comm_rank(handle->f_comm, &rank);
    if (why[0] == '\0')
        why = "another rank of the file can't be driven";
    const mca_io_base_module_2_0_0_t *guard = hipio_guard_over(handle, &stack.table, why);
    if (guard)
        handle->f_io_selected_module.v2_0_0 = *guard;
    hipio_log_once(rank == 0 ? &said : &told, rank == 0 ? HIPIO_LOG_WARN : HIPIO_LOG_INFO,
                   "stepping aside for %s, buffers in GPU memory are not served: %s",
                   handle->f_filename, why);
}

/* Attaches on all ranks or on none. Collective. MPI_SUCCESS or an error class of some rank. */
static int attach(ompi_file_t *handle, const struct hipio_tunables *tunables,
                  char why[HIPIO_PROOF_TEXT])
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    struct hipio_tunables agreed = *tunables;

    int rc = hipio_driver_attach(file->fd, handle, tunables, &file->driven);
    if (rc != MPI_SUCCESS) {
        file->driven = NULL;
        snprintf(why, HIPIO_PROOF_TEXT, "%s", hipio_status_text());
    }
    rc = hipio_hints_agree(handle->f_comm, hipio_mpierr_class_of(rc), &agreed);
    if (rc != MPI_SUCCESS && file->driven) {
        hipio_driver_detach(file->driven);
        file->driven = NULL;
    }
    return rc;
}

/* Takes a file that ROMIO has opened on all ranks. The ranks decide together. */
static void take(ompi_file_t *handle, opal_info_t *info)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    const struct hipio_proof_open open = {handle->f_comm, handle->f_filename, handle->f_amode};
    struct hipio_tunables tunables = *hipio_tunables_process();
    char why[HIPIO_PROOF_TEXT];
    int rank = 0;

    PMPI_Comm_rank(handle->f_comm, &rank);
    hipio_hints_parse(info, &tunables, rank == 0);
    bool proven = hipio_proof_file(file->fd, &open, why);
    int rc = hipio_hints_agree(handle->f_comm, proven ? MPI_SUCCESS : MPI_ERR_OTHER, &tunables);
    if (rc == MPI_SUCCESS)
        rc = attach(handle, &tunables, why);
    if (rc != MPI_SUCCESS) {
        step_aside(handle, why);
        return;
    }
    file->wanted = tunables;
    hipio_hints_subscribe(handle);
    hipio_hints_publish(handle);
}

/* 0, or why this rank's setting fastpath=force can't be followed on the file. */
static int follow_force(struct hipio_driven *driven)
{
    struct hipio_file *file;

    if (driven->tunables.fastpath != HIPIO_FORCE)
        return 0;
    int rc = hipio_driver_file(driven, &file);
    if (rc == 0)
        rc = hipio_file_check_fastpath(file);
    if (rc < 0)
        hipio_log(HIPIO_LOG_ERROR, "the file is not opened: %s", hipio_status_text());
    return rc;
}

/*
 * Where the fast path is forced, a file that can't take it is refused on all ranks, if one says so.
 * All ranks ask, because the setting may differ between them. Open MPI closes a file whose open
 * failed.
 */
static int check_forced(ompi_file_t *handle)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    struct hipio_tunables agreed;

    if (!file->driven)
        return OMPI_SUCCESS;
    agreed = file->driven->tunables;
    return hipio_hints_agree(handle->f_comm, hipio_mpierr_class(follow_force(file->driven)),
                             &agreed);
}

static int open_file(struct ompi_communicator_t *comm, const char *filename, int amode,
                     struct opal_info_t *info, ompi_file_t *handle)
{
    int rc = stack.lower->io_module_file_open(comm, filename, amode, info, handle);
    if (rc != OMPI_SUCCESS) {
        /* ROMIO may leave the handle of a file that it has closed again; Open MPI calls our close
         * after a failed open. */
        hipio_openfile_of(handle)->fd = NULL;
        return rc;
    }
    take(handle, info);
    return check_forced(handle);
}

/* Takes `type` over. During MPI_Finalize no type can be freed any more, nor needs to be. */
static void keep_type(MPI_Datatype *kept, MPI_Datatype type)
{
    int finalized = 0;

    PMPI_Finalized(&finalized);
    if (*kept != MPI_DATATYPE_NULL && !finalized)
        PMPI_Type_free(kept);
    *kept = type;
}

static void release(const ompi_file_t *handle)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    bool reports = file->driven->tunables.stats == HIPIO_STATS_CLOSE;

    keep_type(&file->driven->etype, MPI_DATATYPE_NULL);
    keep_type(&file->driven->filetype, MPI_DATATYPE_NULL);
    hipio_driver_detach(file->driven);
    file->driven = NULL;
    if (reports)
        hipio_settings_report(handle->f_filename);
}

/* Called for a file whose open failed as well, and during MPI_Finalize for one that was left open.
 */
static int close_file(ompi_file_t *handle)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    int rc = OMPI_SUCCESS;

    if (!file)
        return OMPI_SUCCESS;
    if (file->driven)
        release(handle);
    hipio_request_forget_file(handle);
    if (file->fd)
        rc = stack.lower->io_module_file_close(handle);
    handle->f_io_selected_data = NULL;
    free(file);
    return rc;
}

static bool is_external32(const char *datarep)
{
    return strcmp(datarep, "external32") == 0 || strcmp(datarep, "EXTERNAL32") == 0;
}

static bool is_representation(const char *datarep)
{
    static const char *const known[] = {"native", "NATIVE", "internal", "INTERNAL"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(datarep, known[i]) == 0)
            return true;
    }
    return is_external32(datarep);
}

struct view {
    MPI_Offset disp;
    struct ompi_datatype_t *etype, *filetype;
    const char *datarep;
};

/* With external32, all elements must have the same size in memory and in the file. */
static int check_representation(const ompi_file_t *handle, const struct view *view, char *text,
                                size_t size)
{
    struct hipio_swap *etype = NULL, *filetype = NULL;
    int rc = 0;

    if (!is_representation(view->datarep)) {
        snprintf(text, size,
                 "MPI_File_set_view of %s: the data representation '%s' is not known, use native, "
                 "internal or external32",
                 handle->f_filename, view->datarep);
        return MPI_ERR_UNSUPPORTED_DATAREP;
    }
    if (is_external32(view->datarep)) {
        rc = hipio_flatten_swap(view->etype, &etype);
        if (rc == 0)
            rc = hipio_flatten_swap(view->filetype, &filetype);
        hipio_flatten_free_swap(etype);
        hipio_flatten_free_swap(filetype);
    }
    if (rc == 0)
        return MPI_SUCCESS;
    snprintf(text, size, "MPI_File_set_view of %s: %s", handle->f_filename, hipio_status_text());
    return hipio_mpierr_class(rc);
}

/*
 * What ROMIO would refuse on this rank alone, while the others wait for it in a barrier.
 * MPI_SUCCESS, or an error class and its words.
 */
static int check_view(const ompi_file_t *handle, const struct view *view, char *text, size_t size)
{
    bool sequential = handle->f_amode & MPI_MODE_SEQUENTIAL;
    bool current = view->disp == MPI_DISPLACEMENT_CURRENT;
    MPI_Count etype = 0, filetype = 0;

    if (sequential != current) {
        snprintf(text, size,
                 "MPI_File_set_view of %s: the displacement must%s be MPI_DISPLACEMENT_CURRENT",
                 handle->f_filename, sequential ? "" : " not");
        return MPI_ERR_ARG;
    }
    if (!current && view->disp < 0) {
        snprintf(text, size, "MPI_File_set_view of %s: the displacement %lld is negative",
                 handle->f_filename, (long long)view->disp);
        return MPI_ERR_ARG;
    }
    PMPI_Type_size_x(view->etype, &etype);
    PMPI_Type_size_x(view->filetype, &filetype);
    if (etype != 0 && filetype % etype != 0) {
        snprintf(
            text, size,
            "MPI_File_set_view of %s: the file type has %lld bytes, no multiple of the etype's "
            "%lld",
            handle->f_filename, (long long)filetype, (long long)etype);
        return MPI_ERR_ARG;
    }
    return check_representation(handle, view, text, size);
}

/* What ROMIO is given for a type of the application's, and what is kept of that: both
 * MPI_DATATYPE_NULL where ROMIO understands it. */
struct told {
    MPI_Datatype plain, kept;
};

struct view_types {
    struct told etype, filetype;
};

static int prepare_type(MPI_Datatype type, struct told *told)
{
    int rc = hipio_plain_make(type, &told->plain);

    if (rc == 0 && told->plain != MPI_DATATYPE_NULL &&
        PMPI_Type_contiguous(1, type, &told->kept) == MPI_SUCCESS)
        PMPI_Type_commit(&told->kept);
    return rc;
}

static int prepare_types(const ompi_file_t *handle, const struct view *view,
                         struct view_types *types, char *text)
{
    int rc = prepare_type(view->etype, &types->etype);

    if (rc == 0)
        rc = prepare_type(view->filetype, &types->filetype);
    if (rc == 0)
        return MPI_SUCCESS;
    snprintf(text, HIPIO_TEXT_MAX, "MPI_File_set_view of %s: %s", handle->f_filename,
             hipio_status_text());
    return hipio_mpierr_class(rc);
}

static void free_type(MPI_Datatype *type)
{
    if (*type != MPI_DATATYPE_NULL)
        PMPI_Type_free(type);
}

static void free_types(struct view_types *types)
{
    free_type(&types->etype.plain);
    free_type(&types->etype.kept);
    free_type(&types->filetype.plain);
    free_type(&types->filetype.kept);
}

static MPI_Datatype plain_or(const struct told *told, MPI_Datatype given)
{
    return told->plain != MPI_DATATYPE_NULL ? told->plain : given;
}

/*
 * ROMIO converts to external32 on the host, above its driver table, and not in all calls: it is
 * told "native", and the driver converts.
 */
static int set_lower_view(ompi_file_t *handle, const struct view *view, opal_info_t *info,
                          struct view_types *types)
{
    struct hipio_driven *driven = hipio_openfile_of(handle)->driven;
    bool external32 = is_external32(view->datarep);
    int rc = stack.lower->io_module_file_set_view(
        handle, view->disp, plain_or(&types->etype, view->etype),
        plain_or(&types->filetype, view->filetype), external32 ? "native" : view->datarep, info);

    if (rc != MPI_SUCCESS)
        return rc;
    driven->external32 = external32;
    keep_type(&driven->etype, types->etype.kept);
    keep_type(&driven->filetype, types->filetype.kept);
    types->etype.kept = types->filetype.kept = MPI_DATATYPE_NULL;
    hipio_driver_view_changed(driven);
    /* What the view has against it, the first access tells. */
    if (hipio_view_prepare(driven) == 0)
        hipio_view_seek(driven, hipio_view_offset(driven, 0));
    return MPI_SUCCESS;
}

static int set_view_driven(ompi_file_t *handle, const struct view *view, opal_info_t *info)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    struct hipio_tunables tunables = file->driven->tunables, wanted = file->wanted;
    struct view_types types = {{MPI_DATATYPE_NULL, MPI_DATATYPE_NULL},
                               {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL}};
    char text[HIPIO_TEXT_MAX] = "MPI_File_set_view: another rank's arguments were refused";
    int rank = 0;

    PMPI_Comm_rank(file->fd->comm, &rank);
    hipio_hints_parse(info, &wanted, rank == 0);
    hipio_hints_parse(info, &tunables, false);
    tunables.collective = wanted.collective;
    tunables.window_size = wanted.window_size;
    int rc = check_view(handle, view, text, sizeof text);
    if (rc == MPI_SUCCESS)
        rc = prepare_types(handle, view, &types, text);
    rc = hipio_hints_agree(file->fd->comm, rc, &tunables);
    if (rc != MPI_SUCCESS)
        rc = hipio_mpierr_code(rc, text);
    else
        rc = set_lower_view(handle, view, info, &types);
    free_types(&types);
    if (rc != MPI_SUCCESS)
        return rc;
    file->wanted = tunables;
    hipio_driver_set_tunables(file->driven, &tunables);
    if (file->stale || (info && !opal_list_is_empty(&info->super)))
        hipio_hints_publish(handle);
    return MPI_SUCCESS;
}

static int set_view(ompi_file_t *handle, MPI_Offset disp, struct ompi_datatype_t *etype,
                    struct ompi_datatype_t *filetype, const char *datarep, struct opal_info_t *info)
{
    const struct view view = {disp, etype, filetype, datarep};

    if (hipio_openfile_of(handle)->driven)
        return set_view_driven(handle, &view, info);
    return stack.lower->io_module_file_set_view(handle, disp, etype, filetype, datarep, info);
}

/* In place of the plain type, a copy of the application's, if that is kept. */
static int give_back(MPI_Datatype kept, struct ompi_datatype_t **type)
{
    if (kept == MPI_DATATYPE_NULL)
        return MPI_SUCCESS;
    PMPI_Type_free(type);
    int rc = PMPI_Type_contiguous(1, kept, type);
    return rc == MPI_SUCCESS ? PMPI_Type_commit(type) : rc;
}

static int get_view(ompi_file_t *handle, MPI_Offset *disp, struct ompi_datatype_t **etype,
                    struct ompi_datatype_t **filetype, char *datarep)
{
    const struct hipio_driven *driven = hipio_openfile_of(handle)->driven;
    int rc = stack.lower->io_module_file_get_view(handle, disp, etype, filetype, datarep);

    if (rc != MPI_SUCCESS || !driven)
        return rc;
    if (driven->external32)
        memcpy(datarep, "external32", sizeof "external32");
    rc = give_back(driven->etype, etype);
    return rc == MPI_SUCCESS ? give_back(driven->filetype, filetype) : rc;
}

/*
 * With external32 the driver takes exactly those types whose elements have one size in memory and
 * in a file, so that the extents are equal; of another type it would be wrong to tell one.
 */
static int get_type_extent(ompi_file_t *handle, struct ompi_datatype_t *type, MPI_Aint *extent)
{
    const struct hipio_driven *driven = hipio_openfile_of(handle)->driven;
    struct hipio_swap *swap = NULL;

    if (driven && driven->external32) {
        int rc = hipio_flatten_swap(type, &swap);
        if (rc)
            return hipio_mpierr_code(hipio_mpierr_class(rc), hipio_status_text());
        hipio_flatten_free_swap(swap);
    }
    return stack.lower->io_module_file_get_type_extent(handle, type, extent);
}

const mca_io_base_module_2_0_0_t *hipio_module_stack(const mca_io_base_module_2_0_0_t *lower)
{
    stack.table = *lower;
    stack.lower = lower;
    stack.table.io_module_file_open = open_file;
    stack.table.io_module_file_close = close_file;
    stack.table.io_module_file_set_view = set_view;
    stack.table.io_module_file_get_view = get_view;
    stack.table.io_module_file_get_type_extent = get_type_extent;
    hipio_module_wrap_accesses(&stack.table);
    hipio_module_wrap_positions(&stack.table);
    return &stack.table;
}
