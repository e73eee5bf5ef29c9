/* SPDX-License-Identifier: MIT */
/*
 * Table: the command line, the walk over the cells, and the summary.
 *
 *   mpirun -n 2 mpi_table [--op LIST] [--memory LIST] [--type LIST] [--view LIST]
 *                         [--variant LIST] [--hints LIST] [--shard I/N] [--romio] [--file PATH]
 *                         [--group independent|collective|nonblocking] [--sample N]
 *
 * A LIST is words joined by commas; without it, all. Without --hints each cell has one of the three
 * sets, another one for each number of ranks. --sample: of all but the plain variants of the first
 * three types, every Nth cell (another Nth for each number of ranks). --romio: plain ROMIO is
 * expected, with its faults. Exits 0 when every cell passed, 1 when one failed, 2 for wrong
 * arguments.
 */
#include "table.h"
#include "process.h"
#include "watch.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPS = 32, HINTS_ROTATE = 1 << HINTS };

struct selection {
    unsigned long op, memory, shape, view, variant, hints;
    int shard, shards, sample;
    struct setting setting;
};

struct count {
    int run, passed, known, skipped;
};

struct tally {
    struct count count[MAX_OPS][GPU_KINDS];
    long index; /* of the cell in the full table: the same whatever is selected */
};

static const char *op_name(int index)
{
    return ops[index].name;
}

/* A third of the operations, by kind. */
static unsigned long parse_group(const char *name)
{
    static const char *const names[] = {"independent", "collective", "nonblocking"};
    unsigned long bits = 0;
    int group = 0;

    while (group < 3 && strcmp(names[group], name) != 0)
        group++;
    for (int i = 0; i < op_count; i++)
        if (group == (ops[i].mode == OP_NONBLOCKING ? 2 : ops[i].collective))
            bits |= 1ul << i;
    if (bits)
        return bits;
    fprintf(stderr, "mpi_table: --group takes independent, collective or nonblocking\n");
    exit(2);
}

static const char *memory_name(int index)
{
    return gpu_kind_name((enum gpu_kind)index);
}

static const char *shape_name(int index)
{
    return shape_names[index];
}

static const char *view_name(int index)
{
    return view_names[index];
}

static const char *variant_name(int index)
{
    return variant_names[index];
}

static const char *hint_name(int index)
{
    return hint_names[index];
}

/* Turns "read,write" into bits; ends the program on a word that is not in the list. */
static unsigned long parse(const char *list, int count, const char *(*name)(int))
{
    char *copy = strdup(list), *rest = copy, *word;
    unsigned long bits = 0;

    while ((word = strsep(&rest, ","))) {
        int i = 0;

        while (i < count && strcmp(name(i), word) != 0)
            i++;
        if (i == count) {
            fprintf(stderr, "mpi_table: \"%s\" is none of:", word);
            for (i = 0; i < count; i++)
                fprintf(stderr, " %s", name(i));
            fprintf(stderr, "\n");
            exit(2);
        }
        bits |= 1ul << i;
    }
    free(copy);
    return bits;
}

static void parse_option(int option, const char *value, struct selection *s)
{
    switch (option) {
    case 'o':
        s->op = parse(value, op_count, op_name);
        break;
    case 'g':
        s->op = parse_group(value);
        break;
    case 'm':
        s->memory = parse(value, GPU_KINDS, memory_name);
        break;
    case 't':
        s->shape = parse(value, SHAPES, shape_name);
        break;
    case 'v':
        s->view = parse(value, VIEWS, view_name);
        break;
    case 'a':
        s->variant = parse(value, VARIANTS, variant_name);
        break;
    case 'h':
        s->hints = parse(value, HINTS, hint_name);
        break;
    case 's':
        if (sscanf(value, "%d/%d", &s->shard, &s->shards) == 2 && s->shards > 0)
            break;
        fprintf(stderr, "mpi_table: --shard takes I/N, such as 0/4\n");
        exit(2);
    case 'n':
        s->sample = atoi(value) > 0 ? atoi(value) : 1;
        break;
    case 'f':
        s->setting.path = value;
        break;
    case 'r':
        s->setting.romio = true;
        s->memory = 1ul << GPU_HOST;
        break;
    default:
        exit(2);
    }
}

static void parse_arguments(int argc, char **argv, struct selection *s)
{
    static const struct option options[] = {
        {"op", 1, NULL, 'o'},    {"memory", 1, NULL, 'm'},  {"type", 1, NULL, 't'},
        {"view", 1, NULL, 'v'},  {"variant", 1, NULL, 'a'}, {"hints", 1, NULL, 'h'},
        {"shard", 1, NULL, 's'}, {"file", 1, NULL, 'f'},    {"romio", 0, NULL, 'r'},
        {"group", 1, NULL, 'g'}, {"sample", 1, NULL, 'n'},  {0},
    };
    int option;

    *s = (struct selection){~0ul,         ~0ul, ~0ul, ~0ul, ~0ul,
                            HINTS_ROTATE, 0,    1,    1,    {"table.dat", 0, 0}};
    s->setting.command = argv[0];
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0)
        parse_option(option, optarg, s);
}

static bool selected(unsigned long bits, int index)
{
    return bits >> index & 1;
}

/* Runs a cell with each set of hints that was asked for. */
static void run_cell(const struct selection *s, struct cell *cell, struct tally *tally)
{
    struct count *count = &tally->count[cell->op - ops][cell->memory];

    for (int hints = 0; hints < HINTS; hints++) {
        bool turn = s->hints == HINTS_ROTATE
                        ? hints == (int)((tally->index + cell->ranks / 2) % HINTS)
                        : selected(s->hints, hints);

        if (!turn)
            continue;
        cell->hints = (enum hints)hints;
        switch (cell_run(cell, &s->setting)) {
        case OUTCOME_SKIP:
            count->skipped++;
            continue;
        case OUTCOME_KNOWN:
            count->known++;
            break;
        case OUTCOME_PASS:
            count->passed++;
            break;
        case OUTCOME_FAIL:
            break;
        }
        count->run++;
    }
}

/* What a sample never leaves out, and every Nth of the rest. */
static bool sampled(const struct selection *s, const struct cell *cell, const struct tally *tally)
{
    if (cell->variant == VARIANT_PLAIN && cell->shape <= SHAPE_NESTED)
        return true;
    return (tally->index + cell->ranks) % s->sample == 0;
}

/* The variants of one cell, innermost; --shard counts here. */
static void run_variants(const struct selection *s, struct cell *cell, struct tally *tally)
{
    for (int variant = 0; variant < VARIANTS; variant++, tally->index++) {
        cell->variant = (enum variant)variant;
        if (selected(s->variant, variant) && tally->index % s->shards == s->shard &&
            sampled(s, cell, tally))
            run_cell(s, cell, tally);
    }
}

static void run_table(const struct selection *s, struct cell *cell, struct tally *tally)
{
    for (int op = 0; op < op_count; op++)
        for (int memory = 0; memory < GPU_KINDS; memory++)
            for (int shape = 0; shape < SHAPES; shape++)
                for (int view = 0; view < VIEWS; view++) {
                    if (!selected(s->op, op) || !selected(s->memory, memory) ||
                        !selected(s->shape, shape) || !selected(s->view, view)) {
                        tally->index += VARIANTS;
                        continue;
                    }
                    cell->op = &ops[op];
                    cell->memory = (enum gpu_kind)memory;
                    cell->shape = (enum shape)shape;
                    cell->view = (enum view_kind)view;
                    run_variants(s, cell, tally);
                }
}

/* One row of the summary; adds it to the sum. */
static void print_row(const char *name, const struct count *counts)
{
    printf("| %-19s |", name);
    for (int memory = 0; memory < GPU_KINDS; memory++) {
        const struct count *count = &counts[memory];
        char text[64] = "-";

        if (count->run + count->skipped)
            snprintf(text, sizeof text, "%d/%d", count->passed, count->run);
        if (count->known)
            snprintf(text + strlen(text), sizeof text - strlen(text), " +%d", count->known);
        if (count->skipped)
            snprintf(text + strlen(text), sizeof text - strlen(text), " (%d)", count->skipped);
        printf(" %-12s |", text);
    }
    printf("\n");
}

static void add(struct count *sum, const struct count *count)
{
    sum->run += count->run;
    sum->passed += count->passed;
    sum->known += count->known;
    sum->skipped += count->skipped;
}

/* Prints the summary and tells how many cells failed. */
static int print_summary(const struct tally *tally, const struct selection *s, int ranks)
{
    struct count all[GPU_KINDS] = {0}, total = {0};
    int failed;

    printf("\n%d rank%s, %s\n", ranks, ranks > 1 ? "s" : "",
           s->setting.romio ? "plain ROMIO" : "hipio");
    printf("| cells passed / run  | host         | device       | managed      | pinned       |\n");
    printf("|---------------------|--------------|--------------|--------------|--------------|\n");
    for (int op = 0; op < op_count; op++) {
        if (selected(s->op, op))
            print_row(ops[op].name, tally->count[op]);
        for (int memory = 0; memory < GPU_KINDS; memory++)
            add(&all[memory], &tally->count[op][memory]);
    }
    print_row("all", all);
    for (int memory = 0; memory < GPU_KINDS; memory++)
        add(&total, &all[memory]);
    failed = total.run - total.passed - total.known;
    if (total.known + total.skipped)
        printf("+n: the oracle is right and ROMIO is not; (n): not run, since ROMIO crashes\n");
    known_print();
    printf("table: %d cells run, %d passed, %d failed, %d known faults, %d not run\n", total.run,
           total.passed, failed, total.known, total.skipped);
    return failed;
}

/* A table that was passed by the wrong library proves nothing. */
static int check_library(const struct selection *s)
{
    bool driver = process_maps("/mca_io_hipio.so");

    if (driver != s->setting.romio)
        return 0;
    printf("FAIL: mca_io_hipio.so is %sloaded, but this run is meant for %s\n",
           driver ? "" : "not ", s->setting.romio ? "plain ROMIO" : "hipio");
    return 1;
}

int main(int argc, char **argv)
{
    static struct tally tally;
    struct selection selection;
    struct cell cell = {0};
    int failed = 0;

    parse_arguments(argc, argv, &selection);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &cell.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &cell.ranks);
    watch_start(cell.rank);
    if (cell.ranks > MAX_RANKS) {
        fprintf(stderr, "mpi_table: at most %d ranks\n", MAX_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (!selection.setting.romio && cell.rank == 0)
        printf("device: %s (%s)\n", gpu_name(), gpu_runtime());
    if (!selection.setting.romio && !gpu_wanted())
        selection.memory &= 1ul << GPU_HOST;
    run_table(&selection, &cell, &tally);
    if (cell.rank == 0) {
        failed = print_summary(&tally, &selection, cell.ranks) + check_library(&selection);
        unlink(selection.setting.path);
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    watch_doing("MPI_Finalize");
    MPI_Finalize();
    return failed != 0;
}
