/* SPDX-License-Identifier: MIT */
/* Absence: Open MPI's choice, made again without hipio. */
#include "absence.h"

#include "ompi/mca/fbtl/base/base.h"
#include "ompi/mca/fcoll/base/base.h"
#include "ompi/mca/fs/base/base.h"
#include "ompi/mca/io/base/base.h"
#include "ompi/mca/sharedfp/base/base.h"
#include <string.h>

/* Exported by libmpi, declared in none of its headers: held while ompio's frameworks are opened. */
extern opal_mutex_t ompi_mpi_ompio_bootstrap_mutex;

struct choice {
    const mca_io_base_component_2_0_0_t *component;
    const mca_io_base_module_2_0_0_t *module;
    struct mca_io_base_file_t *data;
    int priority;
};

static void drop(ompi_file_t *handle, const struct choice *choice)
{
    if (choice->module)
        choice->component->io_file_unquery(handle, choice->data);
}

/* Asks one component, as Open MPI does; `module` stays NULL when it declines. */
static struct choice ask(ompi_file_t *handle, const mca_base_component_t *component)
{
    struct choice choice = {.component = (const mca_io_base_component_2_0_0_t *)component};

    if (component->mca_major_version == MCA_BASE_VERSION_MAJOR &&
        component->mca_minor_version == MCA_BASE_VERSION_MINOR &&
        component->mca_release_version == MCA_BASE_VERSION_RELEASE)
        choice.module = choice.component->io_file_query(handle, &choice.data, &choice.priority);
    if (choice.priority > 100)
        choice.priority = 100;
    if (choice.priority < 0)
        choice.priority = 0;
    return choice;
}

static bool is_open(mca_base_framework_t *framework)
{
    return mca_base_framework_open(framework, 0) == OPAL_SUCCESS;
}

/* What Open MPI does for the component of this name once it has chosen it. */
static bool prepare_ompio(void)
{
    opal_mutex_lock(&ompi_mpi_ompio_bootstrap_mutex);
    bool ok = is_open(&ompi_fs_base_framework) && is_open(&ompi_fcoll_base_framework) &&
              is_open(&ompi_fbtl_base_framework) && is_open(&ompi_sharedfp_base_framework);
    opal_mutex_unlock(&ompi_mpi_ompio_bootstrap_mutex);
    return ok && mca_fs_base_find_available(OPAL_ENABLE_PROGRESS_THREADS, 1) == OMPI_SUCCESS &&
           mca_fcoll_base_find_available(OPAL_ENABLE_PROGRESS_THREADS, 1) == OMPI_SUCCESS &&
           mca_fbtl_base_find_available(OPAL_ENABLE_PROGRESS_THREADS, 1) == OMPI_SUCCESS &&
           mca_sharedfp_base_find_available(OPAL_ENABLE_PROGRESS_THREADS, 1) == OMPI_SUCCESS;
}

static bool is_ready(const struct choice *choice)
{
    return strcmp(choice->component->io_version.mca_component_name, "ompio") != 0 ||
           prepare_ompio();
}

const mca_io_base_module_2_0_0_t *hipio_absence_query(ompi_file_t *handle,
                                                      const mca_base_component_t *self,
                                                      int priority,
                                                      struct mca_io_base_file_t **data)
{
    struct choice best = {.priority = -1};
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_io_base_framework.framework_components,
                      mca_base_component_list_item_t)
    {
        if (item->cli_component == self)
            continue;
        struct choice next = ask(handle, item->cli_component);
        bool better = next.module && next.priority > best.priority;
        drop(handle, better ? &best : &next);
        if (better)
            best = next;
    }
    if (!best.module || best.priority >= priority || !is_ready(&best)) {
        drop(handle, &best);
        return NULL;
    }
    *data = best.data;
    return best.module;
}
