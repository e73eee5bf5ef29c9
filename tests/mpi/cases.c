/* SPDX-License-Identifier: MIT */
/*
 * Cases: the runner, and the checks.
 */
#include "cases.h"
#include "process.h"
#include "watch.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int rank, ranks, repeat;
    uint64_t seed;
    bool romio, gpu, threads;
    bool tools; /* MPI's tool interface is started */
    const char *name;
    int failures;
} run;

int case_rank(void)
{
    return run.rank;
}

int case_ranks(void)
{
    return run.ranks;
}

int case_repeat(int normal)
{
    return run.repeat > 0 ? run.repeat : normal;
}

uint64_t case_seed(uint64_t normal)
{
    const char *text = getenv("HIPIO_TEST_SEED");

    if (run.seed)
        return run.seed;
    return text ? strtoull(text, NULL, 10) : normal;
}

int case_failures(void)
{
    return run.failures;
}

bool case_hipio(void)
{
    return !run.romio;
}

/* Starting MPI's tool interface takes long, for it loads every component that there is. */
static bool tools(void)
{
    int provided;

    if (!run.tools)
        run.tools = MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
    return run.tools;
}

int64_t case_counter(const char *name)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    unsigned long long value = 0;
    int index, count;
    char full[128];

    snprintf(full, sizeof full, "io_hipio_%s", name);
    if (!tools() || MPI_T_pvar_get_index(full, MPI_T_PVAR_CLASS_LEVEL, &index) != MPI_SUCCESS)
        return -1;
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_read(session, handle, &value);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    return (int64_t)value;
}

int case_kinds(void)
{
    return run.romio || !run.gpu ? 1 : GPU_KINDS;
}

bool case_romio_serves(enum gpu_kind kind)
{
    return run.romio && kind == GPU_HOST;
}

static void report(const char *format, va_list list, const char *more)
{
    char text[512];

    run.failures++;
    if (run.failures > 20)
        return;
    vsnprintf(text, sizeof text, format, list);
    if (strcmp(run.name, watch_what()) == 0)
        printf("FAIL %s: rank %d: %s%s\n", run.name, run.rank, text, more);
    else
        printf("FAIL %s: rank %d: %s%s [%s]\n", run.name, run.rank, text, more, watch_what());
    fflush(stdout);
}

bool check(bool ok, const char *format, ...)
{
    va_list list;

    if (ok)
        return true;
    va_start(list, format);
    report(format, list, "");
    va_end(list);
    return false;
}

/* "35 (MPI_ERR_IO: input/output error)". */
static void code_text(int code, char *out, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    MPI_Error_string(code, text, &length);
    snprintf(out, size, "%d (%s)", code, text);
}

enum { CODE_TEXT = MPI_MAX_ERROR_STRING + 64 };

bool check_ok(int code, const char *format, ...)
{
    va_list list;
    char text[CODE_TEXT], more[CODE_TEXT + 32];

    if (code == MPI_SUCCESS)
        return true;
    code_text(code, text, sizeof text);
    snprintf(more, sizeof more, " returned %s", text);
    va_start(list, format);
    report(format, list, more);
    va_end(list);
    return false;
}

bool check_class(int code, int class, const char *format, ...)
{
    va_list list;
    char got[CODE_TEXT], right[CODE_TEXT] = "an error", more[2 * CODE_TEXT + 32];
    int is = MPI_SUCCESS;

    MPI_Error_class(code, &is);
    if (class == MPI_SUCCESS ? is != MPI_SUCCESS : is == class)
        return true;
    code_text(code, got, sizeof got);
    if (class != MPI_SUCCESS)
        code_text(class, right, sizeof right);
    snprintf(more, sizeof more, " returned %s, right is %s", got, right);
    va_start(list, format);
    report(format, list, more);
    va_end(list);
    return false;
}

bool check_bytes(const MPI_Status *status, int64_t bytes, const char *format, ...)
{
    va_list list;
    char more[96];
    MPI_Count got = -1;

    MPI_Get_elements_x(status, MPI_BYTE, &got);
    if (got == bytes)
        return true;
    snprintf(more, sizeof more, ": status says %lld bytes, right is %lld", (long long)got,
             (long long)bytes);
    va_start(list, format);
    report(format, list, more);
    va_end(list);
    return false;
}

void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static bool fits(const struct test_case *one, bool named)
{
    if (run.ranks < one->min_ranks || run.ranks > one->max_ranks)
        return false;
    if (run.romio && one->needs & (NEEDS_HIPIO | NEEDS_GPU))
        return false;
    if (!run.gpu && one->needs & NEEDS_GPU)
        return false;
    return named || !(one->needs & NEEDS_REQUEST);
}

static bool named(const struct test_case *one, int argc, char **argv, bool *any)
{
    bool found = false;

    *any = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--repeat") == 0 || strcmp(argv[i], "--seed") == 0) {
            i++;
            continue;
        }
        if (argv[i][0] == '-')
            continue;
        *any = true;
        found |= strcmp(argv[i], one->name) == 0;
    }
    return found;
}

/* Runs one case; returns how many ranks failed. */
static int run_one(const struct test_case *one)
{
    int mine, all;

    run.name = one->name;
    run.failures = 0;
    watch_doing("%s", one->name);
    if (run.rank == 0) {
        printf("run  %s: %s\n", one->name, one->claim);
        fflush(stdout);
    }
    barrier();
    one->run();
    watch_step("end");
    watch_memory(NULL, NULL, 0);
    mine = run.failures > 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (run.rank == 0 && all == 0)
        printf("ok   %s\n", one->name);
    return all;
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--romio") == 0)
            run.romio = true;
        else if (strcmp(argv[i], "--threads") == 0)
            run.threads = true;
        else if (strcmp(argv[i], "--repeat") == 0 && i + 1 < argc)
            run.repeat = atoi(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            run.seed = strtoull(argv[++i], NULL, 10);
    }
}

/* What passes or fails with the wrong library proves nothing. The first open loads it. */
static void check_library(void)
{
    MPI_File file;

    watch_doing("first open");
    if (MPI_File_open(MPI_COMM_WORLD, "first.dat",
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file) == MPI_SUCCESS)
        MPI_File_close(&file);
    if (process_maps("/mca_io_hipio.so") != run.romio)
        return;
    fprintf(stderr, "test: mca_io_hipio.so is %sloaded, but this run is meant for %s\n",
            run.romio ? "" : "not ", run.romio ? "plain ROMIO" : "hipio");
    MPI_Abort(MPI_COMM_WORLD, 99);
}

static void start_mpi(int argc, char **argv)
{
    int wanted = run.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, provided;

    MPI_Init_thread(&argc, &argv, wanted, &provided);
    if (provided >= wanted)
        return;
    fprintf(stderr, "test: this MPI library has no MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 99);
}

int cases_main(int argc, char **argv, const struct test_case *list, size_t count)
{
    int failed = 0, ran = 0;
    bool any = false;

    setvbuf(stdout, NULL, _IOLBF, 0);
    parse(argc, argv);
    start_mpi(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    watch_start(run.rank);
    run.gpu = !run.romio && gpu_wanted();
    check_library();
    if (run.rank == 0 && !run.romio)
        printf("device: %s (%s)\n", gpu_name(), gpu_runtime());
    for (size_t i = 0; i < count; i++) {
        bool mine = named(&list[i], argc, argv, &any);

        if ((any && !mine) || !fits(&list[i], mine))
            continue;
        ran++;
        failed += run_one(&list[i]) > 0;
    }
    if (run.rank == 0)
        printf("cases: %d run on %d ranks, %d failed\n", ran, run.ranks, failed);
    watch_doing("MPI_Finalize");
    if (run.tools)
        MPI_T_finalize(); /* it crashes after the other */
    MPI_Finalize();
    if (ran == 0)
        return 77;
    return failed != 0;
}
