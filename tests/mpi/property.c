/* SPDX-License-Identifier: MIT */
/*
 * The property test: opens files with random hints, goes through seeds, says how to repeat one.
 *
 *   mpirun -n N property [--seed FIRST] [--repeat HOW_MANY]
 */
#include "property.h"
#include "watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
    struct buffer buffer[GPU_KINDS];
    MPI_File file;
    char hints[512];
    int atomic;
    bool in_order;
    int failures; /* seeds */
};

/* ---- Hints, from the number of the batch ---- */

static void add(char *hints, struct random_state *random, const char *key,
                const char *const *values)
{
    int n = 0;

    while (values[n])
        n++;
    const char *value = values[random_below(random, (uint32_t)n)];
    if (value[0])
        sprintf(hints + strlen(hints), "%s%s=%s", hints[0] ? "," : "", key, value);
}

/* What a program sets that must have the order of the type map (docs/troubleshooting.md). */
static const char *const in_order[][2] = {
    {"hipio_collective", "independent"}, {"hipio_lanes", "1"}, {"hipio_kernels", "off"}};

static bool is_in_order(const char *key)
{
    for (size_t i = 0; i < sizeof in_order / sizeof *in_order; i++) {
        if (strcmp(key, in_order[i][0]) == 0)
            return true;
    }
    return false;
}

/* "": the key is left out. */
static void choose_hints(struct session *session, struct random_state *random)
{
    char *hints = session->hints;
    static const struct {
        const char *key;
        const char *values[8];
    } choices[] = {
        {"hipio_collective", {"", "exchange", "exchange", "exchange", "independent"}},
        {"hipio_chunk_size", {"4096", "8192", "64K", ""}},
        {"hipio_pinned_limit", {"64K", "256K", ""}},
        {"hipio_window_size", {"16K", "64K", "1M"}},
        {"hipio_mapping", {"", "off", "force"}},
        {"hipio_kernels", {"", "", "off", "force"}},
        {"hipio_shared_ranks", {"", "", "1", "2"}},
        {"hipio_lanes", {"", "1", "3"}},
        {"hipio_fallback", {"", "", "force"}},
        {"hipio_uring", {"", "", "", "force"}},
        {"cb_buffer_size", {"", "1024", "4096", "60000", "200000"}},
        {"cb_config_list", {"*:*", "*:*", "*:1", "*:2", ""}},
        {"striping_unit", {"", "", "4096", "65536"}},
        {"romio_cb_write", {"", "", "enable", "disable"}},
        {"romio_cb_read", {"", "", "enable", "disable"}},
    };

    hints[0] = '\0';
    session->in_order = random_below(random, 10) == 0;
    for (size_t i = 0; session->in_order && i < sizeof in_order / sizeof *in_order; i++)
        add(hints, random, in_order[i][0], (const char *const[]){in_order[i][1], NULL});
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        /* Who calls the test may say that the ranks are on several hosts. */
        if (strcmp(choices[i].key, "hipio_shared_ranks") == 0 && getenv("HIPIO_SHARED_RANKS"))
            continue;
        if (!session->in_order || !is_in_order(choices[i].key))
            add(hints, random, choices[i].key, choices[i].values);
    }
}

static void open_batch(struct session *session, uint64_t seed)
{
    struct random_state random;

    random_seed(&random, seed / BATCH);
    choose_hints(session, &random);
    session->atomic = random_below(&random, 10) == 0;
    watch_doing("seeds from %llu, %s", (unsigned long long)(seed - seed % BATCH), session->hints);
    session->file = file_open("real.dat", MPI_MODE_RDWR | MPI_MODE_CREATE, session->hints);
    if (session->atomic)
        check_ok(MPI_File_set_atomicity(session->file, 1), "set_atomicity");
}

/* ---- One seed ---- */

static int run_call(const struct trial *trial, MPI_File file, MPI_Status *status)
{
    struct access access = {.file = file,
                            .at_memory = trial->buffer->at + MEMORY / 2,
                            .count = trial->count,
                            .type = trial->memory.type,
                            .at = trial->at,
                            .write = trial->write};

    if (trial->count == 0 && trial->seed % 3 == 0)
        access.at_memory = NULL;
    if (trial->call->pointer == BY_POINTER)
        check_ok(MPI_File_seek(file, trial->at, MPI_SEEK_SET), "seek");
    else if (trial->call->pointer == BY_SHARED || trial->call->pointer == BY_ORDER)
        check_ok(MPI_File_seek_shared(file, trial->base, MPI_SEEK_SET), "seek_shared");
    return trial->call->run(&access, status);
}

/* Where the file pointer must stand after an access of which everything was there. */
static void check_pointer(const struct trial *trial, MPI_File file, const MPI_Status *status)
{
    MPI_Offset right = trial->at + trial->bytes / trial->etype_size, position = -1;
    MPI_Count got = 0;

    MPI_Get_elements_x(status, MPI_BYTE, &got);
    if (trial->call->pointer != BY_POINTER || got != trial->bytes)
        return;
    MPI_File_get_position(file, &position);
    check(position == right, "%s: the pointer is at %lld, right is %lld", trial_name(trial),
          (long long)position, (long long)right);
}

/* The view that MPI tells must be the one that was set, whatever ROMIO was told. */
static void check_view(const struct trial *trial, MPI_File file, MPI_Datatype view)
{
    MPI_Datatype etype, filetype;
    MPI_Aint right[4], got[4];
    MPI_Offset disp = -1;
    int size[2], named, unused;
    char name[MPI_MAX_DATAREP_STRING];

    MPI_File_get_view(file, &disp, &etype, &filetype, name);
    MPI_Type_get_extent(view, &right[0], &right[1]);
    MPI_Type_get_extent(filetype, &got[0], &got[1]);
    true_span(view, &right[2], &right[3]);
    true_span(filetype, &got[2], &got[3]);
    MPI_Type_size(view, &size[0]);
    MPI_Type_size(filetype, &size[1]);
    check(disp == trial->disp && size[0] == size[1] && memcmp(right, got, sizeof got) == 0,
          "%s: MPI_File_get_view tells another view", trial_name(trial));
    for (int i = 0; i < 2; i++) {
        MPI_Datatype *type = i ? &filetype : &etype;

        MPI_Type_get_envelope(*type, &unused, &unused, &unused, &named);
        if (named != MPI_COMBINER_NAMED)
            MPI_Type_free(type);
    }
}

static void run_trial(struct session *session, struct trial *trial)
{
    MPI_Status status = {0};
    MPI_Datatype view;
    int code;

    trial_choose(trial, &view);
    trial->buffer = &session->buffer[trial->kind];
    watch_step("%s", trial_name(trial));
    if (case_rank() == 0)
        files_prepare(trial);
    barrier();
    code =
        MPI_File_set_view(session->file, trial->disp, trial->etype, view, "native", MPI_INFO_NULL);
    check_ok(code, "%s: set_view", trial_name(trial));
    if (trial->seed % 8 == 0)
        check_view(trial, session->file, view);
    trial_prepare(trial);
    code = run_call(trial, session->file, &status);
    if (code == MPI_SUCCESS)
        check_pointer(trial, session->file, &status);
    barrier();
    trial_check(trial, code, &status);
    MPI_Type_free(&view);
    trial_free(trial);
}

/* All ranks must know, for files and memory are not what they should be. */
static void end_batch(struct session *session, uint64_t first, uint64_t count)
{
    static int before;
    int mine = case_failures(), all;

    MPI_File_close(&session->file);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all > before && case_rank() == 0)
        printf("again: run.sh ... --ranks %d -- property --seed %llu --repeat %llu\n", case_ranks(),
               (unsigned long long)first, (unsigned long long)count);
    before = all;
}

static void random_accesses(void)
{
    uint64_t seed = case_seed(1), end = seed + (uint64_t)case_repeat(400), first;
    struct session session = {.file = MPI_FILE_NULL};
    struct trial trial;

    for (int kind = 0; kind < case_kinds(); kind++)
        session.buffer[kind] = buffer_new((enum gpu_kind)kind, MEMORY);
    files_open();
    while (seed < end) {
        first = seed;
        open_batch(&session, seed);
        do {
            trial =
                (struct trial){.seed = seed, .hints = session.hints, .in_order = session.in_order};
            run_trial(&session, &trial);
        } while (++seed < end && seed % BATCH != 0);
        end_batch(&session, first, seed - first);
    }
    files_close();
    for (int kind = 0; kind < case_kinds(); kind++)
        buffer_free(&session.buffer[kind]);
    file_remove("real.dat");
    file_remove("right.dat");
}

static const struct test_case cases[] = {
    {"property", "random types, views, ranks, calls; --seed and --repeat choose", 1, RANKS,
     NEEDS_HIPIO, random_accesses},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
