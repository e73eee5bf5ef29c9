/* SPDX-License-Identifier: MIT */
/*
 * hipio-bench: MPI-IO of GPU memory, by hand and with hipio. scripts/bench runs it in all ways and
 * puts the results in a table; alone it prints lines of tab-separated results.
 *
 *   mpirun -n 8 hipio-bench --way romio|ompio|hipio --folder FOLDER:SYSTEM ...
 *   hipio-bench --ceiling THREADS --folder FOLDER:SYSTEM ...
 *   hipio-bench --table < results
 */
#include "ceiling.h"
#include "gpu.h"
#include "measure.h"
#include "table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDERS_MAX 8

struct options {
    struct measure_options measure;
    char folder[FOLDERS_MAX][256];
    char system[FOLDERS_MAX][32];
    int folders;
    const char *only; /* rows with this in their name */
    int ceiling;      /* threads, or 0 */
    bool table;
    bool any_ranks; /* every row, whatever the number of ranks */
};

static void usage(void)
{
    fprintf(stderr,
            "usage: hipio-bench [--way romio|ompio|hipio] [--folder FOLDER:SYSTEM]... [--bytes N]\n"
            "                   [--times N] [--verify] [--only TEXT] [--any-ranks] [--host]\n"
            "                   [--ceiling THREADS] [--table]\n");
    exit(2);
}

/* Takes a word with a value. False: another word. */
static bool take_value(const char *word, const char *value, struct options *options)
{
    if (strcmp(word, "--way") == 0) {
        options->measure.way = value;
    } else if (strcmp(word, "--bytes") == 0) {
        options->measure.bytes = strtoull(value, NULL, 10);
    } else if (strcmp(word, "--times") == 0) {
        options->measure.times = (int)strtol(value, NULL, 10);
    } else if (strcmp(word, "--only") == 0) {
        options->only = value;
    } else if (strcmp(word, "--ceiling") == 0) {
        options->ceiling = (int)strtol(value, NULL, 10);
    } else if (strcmp(word, "--folder") == 0 && options->folders < FOLDERS_MAX) {
        const size_t n = strcspn(value, ":");
        snprintf(options->folder[options->folders], 256, "%.*s", (int)n, value);
        snprintf(options->system[options->folders++], 32, "%s", value[n] ? value + n + 1 : "?");
    } else {
        return false;
    }
    return true;
}

static void parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verify") == 0)
            options->measure.verify = true;
        else if (strcmp(argv[i], "--host") == 0)
            options->measure.host = true;
        else if (strcmp(argv[i], "--any-ranks") == 0)
            options->any_ranks = true;
        else if (strcmp(argv[i], "--table") == 0)
            options->table = true;
        else if (i + 1 < argc && take_value(argv[i], argv[i + 1], options))
            i++;
        else
            usage();
    }
    if (options->measure.times < 1 || options->measure.times > 50 || options->measure.bytes == 0 ||
        options->measure.bytes > UINT64_C(64) << 30)
        usage();
}

/* By hand everything moves by the GPU's own copies; with hipio the file must be hipio's. */
static bool is_driven(const char *folder)
{
    char path[512];
    char value[MPI_MAX_INFO_VAL];
    MPI_File file;
    MPI_Info info;
    int found = 0;

    snprintf(path, sizeof path, "%s/hipio-bench-probe", folder);
    if (MPI_File_open(MPI_COMM_WORLD, path,
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS)
        return false;
    if (MPI_File_get_info(file, &info) == MPI_SUCCESS) {
        MPI_Info_get(info, "hipio", (int)sizeof value - 1, value, &found);
        MPI_Info_free(&info);
    }
    MPI_File_close(&file);
    return found;
}

static bool run_folder(struct options *options, int folder, int ranks)
{
    bool right = true;

    options->measure.folder = options->folder[folder];
    options->measure.system = options->system[folder];
    for (size_t i = 0; i < bench_row_count; i++) {
        if (!bench_row_applies(&bench_rows[i], options->any_ranks ? 0 : ranks,
                               options->measure.system) ||
            (options->only && !strstr(bench_rows[i].name, options->only)))
            continue;
        right &= measure_row(&bench_rows[i], &options->measure);
    }
    return right;
}

static int run_ranks(struct options *options)
{
    int rank, ranks;
    bool right = true;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!options->measure.host && !gpu_available()) {
        fprintf(stderr, "hipio-bench: no GPU (%s)\n", gpu_runtime());
        return 77;
    }
    if (!options->measure.host)
        gpu_set_device(rank % gpu_device_count());
    for (int i = 0; i < options->folders; i++) {
        if (strcmp(options->measure.way, "hipio") == 0 && !is_driven(options->folder[i])) {
            fprintf(stderr,
                    "hipio-bench: hipio does not drive files in %s here; HIPIO_LOG=info "
                    "says why\n",
                    options->folder[i]);
            return 1;
        }
        right &= run_folder(options, i, ranks);
    }
    if (rank == 0)
        printf("gpu\t%s\t%s\n", options->measure.host ? "host memory" : gpu_name(),
               options->measure.host ? "no GPU takes part" : gpu_runtime());
    return right ? 0 : 1;
}

static int run_ceiling(const struct options *options)
{
    for (int i = 0; i < options->folders; i++)
        if (!ceiling_measure(options->folder[i], options->system[i], options->measure.bytes,
                             options->ceiling))
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {
        .measure = {.way = "hipio", .bytes = UINT64_C(1) << 30, .times = 3},
    };

    parse(argc, argv, &options);
    if (options.table)
        return table_print(stdin, stdout) ? 1 : 0;
    if (options.folders == 0)
        usage();
    if (options.ceiling > 0)
        return run_ceiling(&options);
    MPI_Init(&argc, &argv);
    const int code = run_ranks(&options);
    MPI_Finalize();
    return code;
}
