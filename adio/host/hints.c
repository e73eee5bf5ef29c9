/* SPDX-License-Identifier: MIT */
/*
 * Hints: between MPI_Info and the settings of one file.
 *
 * Open MPI 4.1 answers MPI_File_get_info from the file's info object alone. There it keeps, beside
 * each key that somebody has subscribed to, the text that the application gave, under a prefixed
 * key, and shows that one. What is in force is therefore written under both names.
 */
#include "hints.h"

#include "agree.h"
#include "engine/log.h"
#include "engine/status.h"
#include "opal/util/info.h"
#include "opal/util/info_subscriber.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "hipio_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)

/* The longest key that fits with Open MPI's prefix before it. */
#define KEY_MAX (OPAL_MAX_INFO_KEY - sizeof OPAL_INFO_SAVE_PREFIX)

/* The settings that steer a collective. */
#define STEERING 2

static uint64_t *steering(struct hipio_tunables *tunables, int i)
{
    uint64_t *const field[STEERING] = {&tunables->collective, &tunables->window_size};
    return field[i];
}

static bool is_steering(const char *name)
{
    return strcmp(name, "collective") == 0 || strcmp(name, "window_size") == 0;
}

/* Keys that were complained of, so that a program which opens a thousand files hears it once. */
static struct {
    pthread_mutex_t lock;
    char text[16][160];
    unsigned used;
} complaints = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_new(const char *key, const char *value)
{
    char text[sizeof complaints.text[0]];
    bool fresh = true;

    snprintf(text, sizeof text, "%s=%s", key, value);
    pthread_mutex_lock(&complaints.lock);
    for (unsigned i = 0; i < complaints.used && fresh; i++)
        fresh = strcmp(complaints.text[i], text) != 0;
    if (fresh && complaints.used < sizeof complaints.text / sizeof complaints.text[0])
        memcpy(complaints.text[complaints.used++], text, sizeof text);
    pthread_mutex_unlock(&complaints.lock);
    return fresh;
}

static void complain(const char *key, const char *value, bool speaks)
{
    if (is_new(key, value))
        hipio_log(speaks ? HIPIO_LOG_WARN : HIPIO_LOG_INFO, "info hint %s: %s", key,
                  hipio_status_text());
}

/* Sets one field from the hint; 0, or a negative errno that has been complained of. */
static int set_one(struct hipio_tunables *tunables, const char *key, const char *value, bool speaks)
{
    int rc = hipio_tunables_set_file(tunables, key + PREFIX_LENGTH, value);
    if (rc)
        complain(key, value, speaks);
    return rc;
}

void hipio_hints_parse(opal_info_t *info, struct hipio_tunables *tunables, bool speaks)
{
    opal_info_entry_t *entry;

    if (!info)
        return;
    OPAL_LIST_FOREACH(entry, &info->super, opal_info_entry_t)
    {
        if (strncmp(entry->ie_key, PREFIX, PREFIX_LENGTH) == 0)
            set_one(tunables, entry->ie_key, entry->ie_value, speaks);
    }
}

int hipio_hints_agree(MPI_Comm comm, int error_class, struct hipio_tunables *tunables)
{
    long long value[1 + STEERING] = {error_class};
    int rank = 0;

    PMPI_Comm_rank(comm, &rank);
    for (int i = 0; i < STEERING; i++)
        value[1 + i] = rank == 0 ? (long long)*steering(tunables, i) : 0;
    int rc = hipio_agree_max(comm, value, 1 + STEERING);
    if (error_class != MPI_SUCCESS)
        return error_class;
    if (rc != MPI_SUCCESS)
        return rc;
    for (int i = 0; i < STEERING; i++)
        *steering(tunables, i) = (uint64_t)value[1 + i];
    return (int)value[0];
}

static void show(opal_info_t *info, const char *key, const char *value)
{
    char saved[OPAL_MAX_INFO_KEY + 1];

    if (strlen(key) > KEY_MAX)
        return;
    snprintf(saved, sizeof saved, OPAL_INFO_SAVE_PREFIX "%s", key);
    opal_info_set(info, key, value);
    opal_info_set(info, saved, value);
}

static void show_settings(opal_info_t *info, const struct hipio_tunables *tunables)
{
    char key[OPAL_MAX_INFO_KEY + 1], value[64];

    for (size_t i = 0; i < hipio_tunables_count(); i++) {
        const struct hipio_tunable_info *setting = hipio_tunables_info(i);
        bool shared = setting->scope == HIPIO_SCOPE_PROCESS;
        snprintf(key, sizeof key, PREFIX "%s", setting->name);
        hipio_tunables_format(shared ? hipio_tunables_process() : tunables, i, value, sizeof value);
        show(info, key, value);
    }
}

/* Calls `visit` for each hint that ROMIO has in force. */
static void each_romio_hint(ompi_file_t *handle, void (*visit)(ompi_file_t *, char *, char *))
{
    MPI_Info info = hipio_openfile_of(handle)->fd->info;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int n = 0, found = 0;

    if (info == MPI_INFO_NULL || PMPI_Info_get_nkeys(info, &n) != MPI_SUCCESS)
        return;
    for (int i = 0; i < n; i++) {
        if (PMPI_Info_get_nthkey(info, i, key) != MPI_SUCCESS)
            return;
        PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
        if (found)
            visit(handle, key, value);
    }
}

static void show_romio_hint(ompi_file_t *handle, char *key, char *value)
{
    show(handle->super.s_info, key, value);
}

void hipio_hints_publish(ompi_file_t *handle)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);

    each_romio_hint(handle, show_romio_hint);
    show_settings(handle->super.s_info, &file->driven->tunables);
    show(handle->super.s_info, "hipio", HIPIO_VERSION);
    file->stale = false;
}

static bool is_rank_zero(const ompi_file_t *handle)
{
    int rank = 0;
    PMPI_Comm_rank(handle->f_comm, &rank);
    return rank == 0;
}

/*
 * MPI_File_set_info for a key of ours. The answer is the value to keep, NULL to keep none: a
 * refused value or one that must wait is not shown as if it were in force; the next call on the
 * file shows what is.
 */
static char *set_setting(opal_infosubscriber_t *object, char *key, char *value)
{
    ompi_file_t *handle = (ompi_file_t *)object;
    struct hipio_openfile *file = hipio_openfile_of(handle);
    const char *name = key + PREFIX_LENGTH;

    if (!file || !file->driven || file->publishing)
        return value;
    struct hipio_tunables tunables = file->driven->tunables;
    bool waits = is_steering(name);
    if (set_one(waits ? &file->wanted : &tunables, key, value, is_rank_zero(handle)) != 0 ||
        waits) {
        file->stale = true;
        return NULL;
    }
    hipio_driver_set_tunables(file->driven, &tunables);
    return value;
}

/* MPI_File_set_info for a hint of ROMIO's, which takes none after the open but with a view. */
static char *set_romio_hint(opal_infosubscriber_t *object, char *key, char *value)
{
    struct hipio_openfile *file = hipio_openfile_of((ompi_file_t *)object);

    (void)key;
    if (!file || file->publishing)
        return value;
    file->stale = true;
    return NULL;
}

static void subscribe_romio_hint(ompi_file_t *handle, char *key, char *value)
{
    if (strlen(key) <= KEY_MAX)
        opal_infosubscribe_subscribe(&handle->super, key, value, set_romio_hint);
}

void hipio_hints_subscribe(ompi_file_t *handle)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    char key[OPAL_MAX_INFO_KEY + 1];

    file->publishing = true;
    each_romio_hint(handle, subscribe_romio_hint);
    for (size_t i = 0; i < hipio_tunables_count(); i++) {
        const struct hipio_tunable_info *info = hipio_tunables_info(i);
        snprintf(key, sizeof key, PREFIX "%s", info->name);
        if (strlen(key) <= KEY_MAX)
            opal_infosubscribe_subscribe(&handle->super, key, (char *)info->text, set_setting);
    }
    file->publishing = false;
}
