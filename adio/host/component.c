/* SPDX-License-Identifier: MIT */
/*
 * Component: what Open MPI finds in mca_io_hipio.so. It stands on Open MPI's ROMIO component, which
 * opens and owns the files; without a ROMIO that it knows it refuses every file, and Open MPI goes
 * on as if it had never been loaded.
 */
#include "ompi_config.h"

#include "absence.h"
#include "engine/engine.h"
#include "engine/log.h"
#include "guard.h"
#include "module.h"
#include "mpierr.h"
#include "ompi/mca/io/base/base.h"
#include "opal/util/proc.h"
#include "openfile.h"
#include "proof.h"
#include "request.h"
#include "settings.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROMIO_NAME "romio321"

extern mca_io_base_component_2_0_0_t mca_io_hipio_component __attribute__((visibility("default")));

static struct {
    pthread_mutex_t lock;
    const mca_io_base_component_2_0_0_t *romio;
    const mca_io_base_module_2_0_0_t *module; /* ours, over ROMIO's */
} component = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const mca_io_base_component_2_0_0_t *find_romio(void)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_io_base_framework.framework_components,
                      mca_base_component_list_item_t)
    {
        if (strcmp(item->cli_component->mca_component_name, ROMIO_NAME) == 0)
            return (const mca_io_base_component_2_0_0_t *)item->cli_component;
    }
    return NULL;
}

/* May files be driven in this process? If not, *why says so for users. */
static bool is_usable(const char **why)
{
    if (!hipio_settings_layout_allowed()) {
        *why = "the MCA parameter io_hipio_romio_layout is none";
        return false;
    }
    pthread_mutex_lock(&component.lock);
    const mca_io_base_component_2_0_0_t *romio = component.romio = find_romio();
    pthread_mutex_unlock(&component.lock);
    if (!romio) {
        *why = "Open MPI's component " ROMIO_NAME " is not loaded; list it in --mca io beside "
               "hipio, or don't exclude it";
        return false;
    }
    return hipio_proof_library(&romio->io_version, why);
}

/* One line per process, by the file's first rank; the others may have other reasons. */
static void warn_aside(const ompi_file_t *handle, const char *why)
{
    static bool said, told;
    int rank = 0;

    PMPI_Comm_rank(handle->f_comm, &rank);
    hipio_log_once(
        rank == 0 ? &said : &told, rank == 0 ? HIPIO_LOG_WARN : HIPIO_LOG_INFO,
        "stepping aside, files are opened as without hipio and buffers in GPU memory are "
        "not served: %s",
        why);
}

/* Ranks that chose different components for one file would wait for each other for ever. */
static bool all_agree(MPI_Comm comm, bool usable)
{
    int mine = usable, all = 0;
    return PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all;
}

static struct hipio_openfile *query_romio(ompi_file_t *handle)
{
    struct mca_io_base_file_t *data = NULL;
    int priority = 0;

    const mca_io_base_module_2_0_0_t *lower =
        component.romio->io_file_query(handle, &data, &priority);
    if (!lower)
        return NULL;
    /* Its data are one handle, which ours hold in the same place. */
    component.romio->io_file_unquery(handle, data);
    pthread_mutex_lock(&component.lock);
    if (!component.module)
        component.module = hipio_module_stack(lower);
    pthread_mutex_unlock(&component.lock);
    return hipio_openfile_create();
}

/* The file goes to whoever would have it without hipio, and hipio's only part is to refuse GPU
 * memory. */
static const mca_io_base_module_2_0_0_t *step_aside(ompi_file_t *handle, const char *why,
                                                    struct mca_io_base_file_t **data)
{
    if (!why)
        why = "another rank of the file can't be driven";
    warn_aside(handle, why);
    const mca_io_base_module_2_0_0_t *lower = hipio_absence_query(
        handle, &mca_io_hipio_component.io_version, hipio_settings_priority(), data);
    return lower ? hipio_guard_over(handle, lower, why) : NULL;
}

static const mca_io_base_module_2_0_0_t *file_query(struct ompi_file_t *handle,
                                                    struct mca_io_base_file_t **data, int *priority)
{
    struct hipio_openfile *file = NULL;
    const char *why = NULL;

    *priority = hipio_settings_priority();
    bool usable = is_usable(&why);
    if (usable) {
        why = NULL;
        file = query_romio(handle);
        if (!file)
            why = "no memory";
    }
    if (!all_agree(handle->f_comm, file != NULL)) {
        free(file);
        return step_aside(handle, why, data);
    }
    *data = (struct mca_io_base_file_t *)file;
    return component.module;
}

static int file_unquery(struct ompi_file_t *handle, struct mca_io_base_file_t *data)
{
    (void)handle;
    free(data);
    return OMPI_SUCCESS;
}

/* Where hipio steps aside, the file is deleted by whoever would do it without hipio. */
static int delete_query(const char *filename, struct opal_info_t *info,
                        struct mca_io_base_delete_t **data, bool *usable, int *priority)
{
    const char *why;
    int rc = OMPI_SUCCESS;

    *data = NULL;
    *usable = false;
    *priority = 0;
    if (is_usable(&why))
        rc = component.romio->io_delete_query(filename, info, data, usable, priority);
    *priority = hipio_settings_priority();
    return rc;
}

static int delete_unquery(const char *filename, struct opal_info_t *info,
                          struct mca_io_base_delete_t *data)
{
    if (component.romio && component.romio->io_delete_unquery)
        return component.romio->io_delete_unquery(filename, info, data);
    return OMPI_SUCCESS;
}

/* ROMIO knows the prefixes ("ufs:name") by which its files may have been opened. */
static int delete_select(const char *filename, struct opal_info_t *info,
                         struct mca_io_base_delete_t *data)
{
    return component.romio->io_delete_select(filename, info, data);
}

/* Open MPI asks every component that it has loaded, ROMIO among them: there is nothing to add. */
static int register_datarep(const char *name, MPI_Datarep_conversion_function *read_function,
                            MPI_Datarep_conversion_function *write_function,
                            MPI_Datarep_extent_function *extent_function, void *state)
{
    (void)name;
    (void)read_function;
    (void)write_function;
    (void)extent_function;
    (void)state;
    return OMPI_SUCCESS;
}

/* Open MPI compares the version of the io interface, which stayed the same when its tables changed
 * with 5.0. */
static bool is_right_library(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", expected[32];
    int length = 0;

    PMPI_Get_library_version(version, &length);
    snprintf(expected, sizeof expected, "Open MPI v%d.%d.", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    if (strncmp(version, expected, strlen(expected)) == 0)
        return true;
    version[strcspn(version, ",")] = '\0';
    hipio_log(HIPIO_LOG_WARN,
              "this MPI library is '%s' and hipio was built for Open MPI %d.%d: it steps aside; "
              "build it with this library's mpicc",
              version, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    return false;
}

static int register_component(void)
{
    return hipio_settings_register(&mca_io_hipio_component.io_version);
}

/* Tells the processes' lines on stderr apart. */
static void name_process(void)
{
    int initialized = 0, rank = 0;
    char prefix[32];

    PMPI_Initialized(&initialized);
    if (!initialized)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(prefix, sizeof prefix, "rank %d", rank);
    hipio_log_set_prefix(prefix);
}

static int init_query(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    if (!is_right_library())
        return OMPI_ERR_NOT_SUPPORTED;
    name_process();
    hipio_settings_apply();
    hipio_engine_set_neighbours((unsigned)opal_process_info.num_local_peers + 1);
    return OMPI_SUCCESS;
}

static int close_component(void)
{
    if (hipio_tunables_process()->stats == HIPIO_STATS_FINALIZE)
        hipio_settings_report("finalize");
    hipio_request_close();
    hipio_engine_shutdown();
    hipio_proof_close();
    return OMPI_SUCCESS;
}

mca_io_base_component_2_0_0_t mca_io_hipio_component = {
    .io_version = {MCA_IO_BASE_VERSION_2_0_0, .mca_component_name = "hipio",
                   MCA_BASE_MAKE_VERSION(component, HIPIO_VERSION_MAJOR, HIPIO_VERSION_MINOR,
                                         HIPIO_VERSION_PATCH),
                   .mca_register_component_params = register_component,
                   .mca_close_component = close_component},
    .io_data = {.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .io_init_query = init_query,
    .io_file_query = file_query,
    .io_file_unquery = file_unquery,
    .io_delete_query = delete_query,
    .io_delete_unquery = delete_unquery,
    .io_delete_select = delete_select,
    .io_register_datarep = register_datarep,
};
