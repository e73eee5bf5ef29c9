/* SPDX-License-Identifier: MIT */
/* GPU-aware: the library's word and the user's. */
#include "gpu_aware.h"
#include "engine/log.h"
#include "engine/status.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* By the name of the GPU runtime; libraries differ in theirs. */
static const struct {
    const char *runtime, *function;
} queries[] = {
    {"cuda", "MPIX_Query_cuda_support"},
    {"hip", "MPIX_Query_rocm_support"},
    {"hip", "MPIX_Query_hip_support"},
};

enum word { UNKNOWN, YES, NO };

static enum word ask(const char *runtime)
{
    enum word answer = UNKNOWN;

    for (size_t i = 0; i < sizeof queries / sizeof queries[0] && answer != YES; i++) {
        int (*query)(void);
        if (strcmp(queries[i].runtime, runtime) != 0)
            continue;
        *(void **)&query = dlsym(RTLD_DEFAULT, queries[i].function);
        if (query)
            answer = query() ? YES : NO;
    }
    return answer;
}

/* The user knows better than a library that has no word for it; once is enough to say so. */
static void warn(const char *runtime)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&warned))
        hipio_log(HIPIO_LOG_WARN,
                  "gpu_aware_mpi=force: the MPI library does not say whether it takes memory of "
                  "%s; if it does not, the program will crash",
                  runtime);
}

int hipio_gpu_aware_use(const struct hipio_tunables *tunables, const struct hipio_memory *memory,
                        bool *use)
{
    *use = false;
    if (memory->kind != HIPIO_MEMORY_DEVICE || tunables->gpu_aware_mpi == HIPIO_OFF)
        return 0;
    enum word answer = ask(memory->ops->name);
    bool forced = tunables->gpu_aware_mpi == HIPIO_FORCE;
    if (answer == NO && forced)
        return hipio_status_set(-ENOTSUP,
                                "gpu_aware_mpi=force, but the MPI library says that it does not "
                                "take GPU memory (%s); use a library that does, or auto",
                                memory->ops->name);
    if (answer == UNKNOWN && forced)
        warn(memory->ops->name);
    *use = answer == YES || (answer == UNKNOWN && forced);
    return 0;
}
