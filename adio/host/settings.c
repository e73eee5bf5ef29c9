/* SPDX-License-Identifier: MIT */
/* Settings: what MPI's own tools show and set. */
#include "settings.h"

#include "engine/backend.h"
#include "engine/log.h"
#include "engine/stats.h"
#include "engine/status.h"
#include "engine/tunables.h"
#include "mpi.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include <stdio.h>
#include <string.h>

/* More than tunables.def has lines; registration refuses to run past it. */
#define PARAMETERS_MAX 64

static struct {
    int priority;
    char *layout;
    /* Open MPI keeps the address of each: they live as long as the component. */
    struct {
        char *value;
        int index;
    } parameter[PARAMETERS_MAX];
} settings = {.priority = 90};

static int register_parameter(const mca_base_component_t *component, size_t i)
{
    const struct hipio_tunable_info *info = hipio_tunables_info(i);
    char help[512];

    if (i >= PARAMETERS_MAX)
        return OPAL_ERR_OUT_OF_RESOURCE;
    snprintf(help, sizeof help, "%s (accepts: %s)", info->help, info->accepts);
    /* Open MPI copies the default that it finds here and never frees this one. */
    settings.parameter[i].value = (char *)info->text;
    settings.parameter[i].index = mca_base_component_var_register(
        component, info->name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3,
        MCA_BASE_VAR_SCOPE_READONLY, &settings.parameter[i].value);
    return settings.parameter[i].index < 0 ? settings.parameter[i].index : OPAL_SUCCESS;
}

static int register_parameters(const mca_base_component_t *component)
{
    int rc = mca_base_component_var_register(
        component, "priority",
        "Priority of hipio among the io components (0 to 100; ompio has 30, romio321 has 10)",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
        &settings.priority);
    if (rc < 0)
        return rc;
    settings.layout = (char *)"auto";
    rc = mca_base_component_var_register(
        component, "romio_layout",
        "ROMIO that hipio may stand on: auto (the one it can prove to know), none (hipio steps "
        "aside, files are opened as without it)",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_3, MCA_BASE_VAR_SCOPE_READONLY,
        &settings.layout);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < hipio_tunables_count(); i++) {
        rc = register_parameter(component, i);
        if (rc < 0)
            return rc;
    }
    return OPAL_SUCCESS;
}

/*
 * A variable of a summing class counts from the moment its handle was made, and a tool that asks at
 * the end would read 0. Levels and sizes show the value itself.
 */
static int register_counter(const mca_base_component_t *component, const char *name,
                            const char *help, const uint64_t *address)
{
    _Static_assert(sizeof(uint64_t) == sizeof(unsigned long long), "MPI_T has no type of 64 bits");
    int rc = mca_base_component_pvar_register(
        component, name, help, OPAL_INFO_LVL_4, MCA_BASE_PVAR_CLASS_LEVEL,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
        (mca_base_pvar_flag_t)(MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS), NULL,
        NULL, NULL, (void *)address);
    return rc < 0 ? rc : OPAL_SUCCESS;
}

static int register_backend(const mca_base_component_t *component, size_t backend)
{
    static const struct {
        const char *name, *help;
    } words[HIPIO_BACKEND_COUNTERS] = {
        [HIPIO_BACKEND_REQUESTS] = {"requests", "requests served"},
        [HIPIO_BACKEND_READ] = {"bytes_read", "bytes moved from files to memory"},
        [HIPIO_BACKEND_WRITTEN] = {"bytes_written", "bytes moved from memory to files"},
        [HIPIO_BACKEND_FALLBACKS] = {"fallbacks", "requests of which another took over a part"},
    };
    const char *backend_name = hipio_backend_at(backend)->name;
    char name[96], help[160];

    for (int counter = 0; counter < HIPIO_BACKEND_COUNTERS; counter++) {
        snprintf(name, sizeof name, "%s_%s", backend_name, words[counter].name);
        snprintf(help, sizeof help, "backend %s: %s", backend_name, words[counter].help);
        int rc = register_counter(
            component, name, help,
            hipio_stats_backend_address(backend, (enum hipio_backend_counter)counter));
        if (rc < 0)
            return rc;
    }
    return OPAL_SUCCESS;
}

static int register_counters(const mca_base_component_t *component)
{
    for (int i = 0; i < HIPIO_COUNTERS; i++) {
        enum hipio_counter counter = (enum hipio_counter)i;
        int rc = register_counter(component, hipio_stats_name(counter), hipio_stats_help(counter),
                                  hipio_stats_address(counter));
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < hipio_backend_count() && i < HIPIO_STATS_BACKENDS; i++) {
        int rc = register_backend(component, i);
        if (rc < 0)
            return rc;
    }
    return OPAL_SUCCESS;
}

int hipio_settings_register(const mca_base_component_t *component)
{
    int rc = register_parameters(component);
    return rc < 0 ? rc : register_counters(component);
}

/* The parameter's value if a user gave one, else NULL. */
static const char *given(size_t i)
{
    const mca_base_var_t *var;

    if (mca_base_var_get(settings.parameter[i].index, &var) != OPAL_SUCCESS ||
        var->mbv_source == MCA_BASE_VAR_SOURCE_DEFAULT)
        return NULL;
    return settings.parameter[i].value;
}

/* One rank speaks where all were told the same. */
static bool speaks(void)
{
    int initialized = 0, rank = 0;

    PMPI_Initialized(&initialized);
    if (initialized)
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

void hipio_settings_apply(void)
{
    for (size_t i = 0; i < hipio_tunables_count() && i < PARAMETERS_MAX; i++) {
        const char *value = given(i);
        if (!value)
            continue;
        const char *name = hipio_tunables_info(i)->name;
        if (hipio_tunables_set_process(name, value, HIPIO_SOURCE_MCA) != 0 && speaks())
            hipio_log(HIPIO_LOG_WARN, "MCA parameter io_hipio_%s: %s", name, hipio_status_text());
    }
    if (strcmp(settings.layout, "auto") != 0 && strcmp(settings.layout, "none") != 0 && speaks())
        hipio_log(HIPIO_LOG_WARN,
                  "MCA parameter io_hipio_romio_layout: '%s' is not known, accepted are auto and "
                  "none; auto is used",
                  settings.layout);
}

int hipio_settings_priority(void)
{
    return settings.priority;
}

bool hipio_settings_layout_allowed(void)
{
    return strcmp(settings.layout, "none") != 0;
}

/* Asked for by a setting of its own, so that only the silence of log=none is above it. */
void hipio_settings_report(const char *occasion)
{
    char report[8192];
    char *rest = report, *line;

    hipio_stats_report(report, sizeof report);
    hipio_log(HIPIO_LOG_ERROR, "counters at %s", occasion);
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (line[0] != '\0')
            hipio_log(HIPIO_LOG_ERROR, "%s", line);
    }
}
