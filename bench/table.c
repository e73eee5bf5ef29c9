/* SPDX-License-Identifier: MIT */
/*
 * Table: medians over the repetitions, and how many times faster than the better way by hand.
 */
#include "table.h"
#include "rows.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 64
#define CELLS_MAX 1024
#define CEILINGS_MAX 256
#define LINE_MAX_BYTES 8192

enum { ROMIO, OMPIO, HIPIO, WAYS };
static const char *const ways[WAYS] = {"romio", "ompio", "hipio"};

/* One row on one file system with one number of ranks. */
struct cell {
    char row[64];
    char system[32];
    int ranks;
    struct {
        double later[VALUES_MAX]; /* medians of the runs */
        double first[VALUES_MAX];
        int n;
        bool right;
        bool wrong;
        char details[2048]; /* of the last run */
    } way[WAYS];
};

struct ceiling {
    char what[64];
    char system[32];
    int threads;
    double first;
    double later;
};

static struct cell cells[CELLS_MAX];
static int cell_count;
static struct ceiling ceilings[CEILINGS_MAX];
static int ceiling_count;

/* Splits at tabs; fields that are missing are empty. */
static void split(char *line, char **field, int n)
{
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < n; i++) {
        field[i] = line;
        line += i + 1 < n ? strcspn(line, "\t") : strlen(line);
        if (*line == '\t')
            *line++ = '\0';
    }
}

static struct cell *find_cell(const char *row, const char *system, int ranks)
{
    for (int i = 0; i < cell_count; i++)
        if (strcmp(cells[i].row, row) == 0 && strcmp(cells[i].system, system) == 0 &&
            cells[i].ranks == ranks)
            return &cells[i];
    if (cell_count == CELLS_MAX)
        return NULL;
    struct cell *cell = &cells[cell_count++];
    snprintf(cell->row, sizeof cell->row, "%s", row);
    snprintf(cell->system, sizeof cell->system, "%s", system);
    cell->ranks = ranks;
    return cell;
}

static void take_bench(char **field)
{
    struct cell *cell = find_cell(field[1], field[2], (int)strtol(field[3], NULL, 10));
    int way = 0;

    while (way < WAYS && strcmp(field[4], ways[way]) != 0)
        way++;
    if (!cell || way == WAYS || cell->way[way].n == VALUES_MAX)
        return;
    cell->way[way].first[cell->way[way].n] = strtod(field[5], NULL);
    cell->way[way].later[cell->way[way].n++] = strtod(field[6], NULL);
    cell->way[way].right |= strcmp(field[7], "right") == 0;
    cell->way[way].wrong |= strcmp(field[7], "WRONG") == 0;
    snprintf(cell->way[way].details, sizeof cell->way[way].details, "%.2000s", field[8]);
}

static void take_ceiling(char **field)
{
    if (ceiling_count == CEILINGS_MAX)
        return;
    struct ceiling *ceiling = &ceilings[ceiling_count++];
    snprintf(ceiling->what, sizeof ceiling->what, "%s", field[1]);
    snprintf(ceiling->system, sizeof ceiling->system, "%s", field[2]);
    ceiling->threads = (int)strtol(field[3], NULL, 10);
    ceiling->first = strtod(field[4], NULL);
    ceiling->later = strtod(field[5], NULL);
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a;
    const double right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return n ? values[n / 2] : 0;
}

/* In the order of the rows, then of systems as they were met, then of ranks. */
static void print_row(FILE *out, struct cell *cell, int *bad)
{
    double rate[WAYS];
    bool right = true;
    bool wrong = false;

    fprintf(out, "| %s | %s | %d |", cell->row, cell->system, cell->ranks);
    for (int way = 0; way < WAYS; way++) {
        rate[way] = median(cell->way[way].later, cell->way[way].n);
        right &= cell->way[way].right;
        wrong |= cell->way[way].wrong;
        if (rate[way] > 0)
            fprintf(out, " %.2f |", rate[way]);
        else
            fprintf(out, " - |");
    }
    const double hand = rate[ROMIO] > rate[OMPIO] ? rate[ROMIO] : rate[OMPIO];
    fprintf(out, " %.2f |", median(cell->way[HIPIO].first, cell->way[HIPIO].n));
    if (hand > 0 && rate[HIPIO] > 0)
        fprintf(out, " **%.1f** |", rate[HIPIO] / hand);
    else
        fprintf(out, " - |");
    fprintf(out, " %s |\n", wrong ? "WRONG" : right ? "right" : "not all checked");
    *bad += wrong || !(rate[HIPIO] > 0);
}

static void print_rows(FILE *out, int *bad)
{
    fprintf(out,
            "| access | file system | ranks | by hand, ROMIO | by hand, OMPIO | hipio | hipio, "
            "first time | times faster | data |\n");
    fprintf(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t row = 0; row < bench_row_count; row++)
        for (int ranks = 1; ranks <= 1024; ranks++)
            for (int i = 0; i < cell_count; i++)
                if (strcmp(cells[i].row, bench_rows[row].name) == 0 && cells[i].ranks == ranks)
                    print_row(out, &cells[i], bad);
}

static void print_ceilings(FILE *out)
{
    fprintf(out, "\n| plain threads, no MPI | file system | threads | GB/s, first time | GB/s |\n");
    fprintf(out, "| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < ceiling_count; i++)
        fprintf(out, "| %s | %s | %d | %.2f | %.2f |\n", ceilings[i].what, ceilings[i].system,
                ceilings[i].threads, ceilings[i].first, ceilings[i].later);
}

static void print_details(FILE *out)
{
    fprintf(out,
            "\nWhere the time and the bytes of the last run went (all ranks, all times that it "
            "was measured):\n\n");
    for (int i = 0; i < cell_count; i++)
        for (int way = 0; way < WAYS; way++)
            if (cells[i].way[way].n)
                fprintf(out, "- %s, %s, %d ranks, %s: %s\n", cells[i].row, cells[i].system,
                        cells[i].ranks, ways[way], cells[i].way[way].details);
}

int table_print(FILE *in, FILE *out)
{
    static char line[LINE_MAX_BYTES];
    char *field[9];
    int bad = 0;

    while (fgets(line, sizeof line, in)) {
        split(line, field, 9);
        if (strcmp(field[0], "bench") == 0)
            take_bench(field);
        else if (strcmp(field[0], "ceiling") == 0)
            take_ceiling(field);
    }
    print_rows(out, &bad);
    if (ceiling_count)
        print_ceilings(out);
    print_details(out);
    return bad + (cell_count == 0);
}
