/* SPDX-License-Identifier: MIT */
/*
 * Report: the MPI library, ROMIO, hipio and its counters, read through MPI_Info and MPI_T.
 */
#include "report.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COUNTERS_MAX 256
#define NAME_MAX_BYTES 128
#define PREFIX "io_hipio_"

struct counters {
    int n;
    char name[COUNTERS_MAX][NAME_MAX_BYTES];
    uint64_t value[COUNTERS_MAX];
};

void report_mpi(char *out, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;

    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    snprintf(out, size, "%s", text);
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text);
    size_t want = strlen(tail);

    return length >= want && strcmp(text + length - want, tail) == 0;
}

/* Reads a control variable of type text into `out`; a value that does not fit is left out. */
static bool read_text_variable(int index, char *out, size_t size)
{
    MPI_T_cvar_handle handle;
    char value[4096];
    int count = 0;
    bool fits = false;

    if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return false;
    if (count < (int)sizeof value && MPI_T_cvar_read(handle, value) == MPI_SUCCESS) {
        snprintf(out, size, "%s", value);
        fits = true;
    }
    MPI_T_cvar_handle_free(&handle);
    return fits;
}

void report_romio(char *out, size_t size)
{
    int provided = 0;
    int n = 0;

    snprintf(out, size, "unknown");
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS)
        return;
    if (MPI_T_cvar_get_num(&n) != MPI_SUCCESS)
        n = 0;
    for (int i = 0; i < n; i++) {
        char name[NAME_MAX_BYTES];
        int length = sizeof name;
        int zero[2] = {0, 0};
        int verbosity, bind, scope;
        MPI_Datatype type;

        if (MPI_T_cvar_get_info(i, name, &length, &verbosity, &type, NULL, NULL, &zero[0], &bind,
                                &scope) != MPI_SUCCESS)
            continue;
        if (starts_with(name, "io_romio") && ends_with(name, "_version") &&
            read_text_variable(i, out, size))
            break;
    }
    MPI_T_finalize();
}

bool report_driver(MPI_File file, char *version, size_t size)
{
    char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info info = MPI_INFO_NULL;
    int found = 0;

    if (MPI_File_get_info(file, &info) != MPI_SUCCESS)
        return false;
    MPI_Info_get(info, "hipio", MPI_MAX_INFO_VAL, value, &found);
    MPI_Info_free(&info);
    if (found)
        snprintf(version, size, "%s", value);
    return found != 0;
}

/* Reads performance variable `index` as a 64-bit number. */
static bool read_counter(MPI_T_pvar_session session, int index, MPI_Datatype type, uint64_t *value)
{
    MPI_T_pvar_handle handle;
    int count = 0;
    int bytes = 0;
    bool done = false;

    MPI_Type_size(type, &bytes);
    if (MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS)
        return false;
    *value = 0;
    if (count == 1 && (bytes == 4 || bytes == 8))
        done = MPI_T_pvar_read(session, handle, value) == MPI_SUCCESS;
    MPI_T_pvar_handle_free(session, &handle);
    return done;
}

static void collect(MPI_T_pvar_session session, struct counters *counters)
{
    int n = 0;

    if (MPI_T_pvar_get_num(&n) != MPI_SUCCESS)
        return;
    for (int i = 0; i < n && counters->n < COUNTERS_MAX; i++) {
        char *name = counters->name[counters->n];
        int length = NAME_MAX_BYTES;
        int zero = 0;
        int verbosity, class, bind, readonly, continuous, atomic;
        MPI_Datatype type;

        if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, NULL, NULL, &zero,
                                &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
            continue;
        if (starts_with(name, PREFIX) &&
            read_counter(session, i, type, &counters->value[counters->n]))
            counters->n++;
    }
}

void report_counters(MPI_Comm comm)
{
    static struct counters counters;
    static uint64_t sum[COUNTERS_MAX];
    MPI_T_pvar_session session;
    int provided = 0;
    int rank;
    int least;

    counters.n = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS) {
        if (MPI_T_pvar_session_create(&session) == MPI_SUCCESS) {
            collect(session, &counters);
            MPI_T_pvar_session_free(&session);
        }
        MPI_T_finalize();
    }
    /* Every rank runs the same driver, so the lists are the same; a rank without it ends the sum.
     */
    MPI_Allreduce(&counters.n, &least, 1, MPI_INT, MPI_MIN, comm);
    memset(sum, 0, sizeof sum);
    MPI_Reduce(counters.value, sum, least, MPI_UINT64_T, MPI_SUM, 0, comm);
    MPI_Comm_rank(comm, &rank);
    if (rank != 0)
        return;
    printf("counters, all ranks:\n");
    for (int i = 0; i < least; i++)
        if (sum[i] != 0)
            printf("  %-28s %16" PRIu64 "\n", counters.name[i] + strlen(PREFIX), sum[i]);
}
