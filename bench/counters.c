/* SPDX-License-Identifier: MIT */
/*
 * Counters: MPI_T performance variables named io_hipio_*, and getrusage.
 */
#include "counters.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PREFIX "io_hipio_"

static void read_variable(MPI_T_pvar_session session, int index, struct counters *now)
{
    MPI_T_pvar_handle handle;
    MPI_Datatype type;
    MPI_T_enum words;
    char name[128];
    int length = sizeof name;
    int level, kind, bind, constant, continuous, atomic, count;
    unsigned long long value = 0;

    if (MPI_T_pvar_get_info(index, name, &length, &level, &kind, &type, &words, NULL, NULL, &bind,
                            &constant, &continuous, &atomic) != MPI_SUCCESS ||
        strncmp(name, PREFIX, strlen(PREFIX)) != 0 || now->count == COUNTERS_MAX)
        return;
    if (MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) != MPI_SUCCESS)
        return;
    if (count == 1 && MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS) {
        snprintf(now->name[now->count], sizeof now->name[0], "%.60s", name + strlen(PREFIX));
        now->value[now->count++] = value;
    }
    MPI_T_pvar_handle_free(session, &handle);
}

void counters_read(struct counters *now)
{
    MPI_T_pvar_session session;
    struct rusage usage;
    int provided;
    int n = 0;

    now->count = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS) {
        MPI_T_pvar_get_num(&n);
        if (MPI_T_pvar_session_create(&session) == MPI_SUCCESS) {
            for (int i = 0; i < n; i++)
                read_variable(session, i, now);
            MPI_T_pvar_session_free(&session);
        }
        MPI_T_finalize();
    }
    getrusage(RUSAGE_SELF, &usage);
    now->user = (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
    now->system = (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* Levels are not sums. */
static int is_level(const char *name)
{
    const size_t n = strlen(name);

    return strcmp(name, "threads") == 0 || (n > 4 && strcmp(name + n - 4, "_now") == 0) ||
           (n > 5 && strcmp(name + n - 5, "_peak") == 0);
}

void counters_report(const struct counters *before, const struct counters *after, MPI_Comm comm,
                     char *out, size_t size)
{
    double mine[2] = {after->user - before->user, after->system - before->system};
    double all[2];
    unsigned long long own[COUNTERS_MAX];
    unsigned long long sum[COUNTERS_MAX];
    int n = after->count == before->count ? after->count : 0;
    int fewest;
    size_t used;

    /* A rank on which the file was not driven has none. */
    MPI_Allreduce(&n, &fewest, 1, MPI_INT, MPI_MIN, comm);
    for (int i = 0; i < fewest; i++)
        own[i] = is_level(after->name[i]) ? 0 : after->value[i] - before->value[i];
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, comm);
    MPI_Reduce(own, sum, fewest, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, comm);
    int rank;
    MPI_Comm_rank(comm, &rank);
    if (rank != 0)
        return;
    used = (size_t)snprintf(out, size, "cpu %.2f s user, %.2f s system", all[0], all[1]);
    for (int i = 0; i < fewest && used < size; i++)
        if (sum[i] > 0)
            used += (size_t)snprintf(out + used, size - used, ", %s %llu", after->name[i], sum[i]);
}
