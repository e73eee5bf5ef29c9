/* SPDX-License-Identifier: MIT */
/*
 * Rows: the table, the datatypes, and data that can be checked.
 */
#include "rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB(n) ((uint64_t)(n) << 10)

const struct row bench_rows[] = {
    {"contiguous read", ROW_CONTIGUOUS, ROW_READ, 0, " 1 4 8 ", NULL},
    {"contiguous write, cached file", ROW_CONTIGUOUS, ROW_CACHED, 0, " 1 4 8 ", NULL},
    {"contiguous write, fresh file", ROW_CONTIGUOUS, ROW_FRESH, 0, " 1 8 ", NULL},
    {"interleaved 64 KiB read", ROW_INTERLEAVED, ROW_READ, KIB(64), " 4 8 ", NULL},
    {"interleaved 64 KiB write, cached file", ROW_INTERLEAVED, ROW_CACHED, KIB(64), " 4 8 ", NULL},
    {"interleaved 64 KiB write, fresh file", ROW_INTERLEAVED, ROW_FRESH, KIB(64), " 8 ", "tmpfs"},
    {"interleaved 4 KiB read", ROW_INTERLEAVED, ROW_READ, KIB(4), " 8 ", NULL},
    {"interleaved 4 KiB write, cached file", ROW_INTERLEAVED, ROW_CACHED, KIB(4), " 8 ", NULL},
    {"interleaved 4 KiB write, fresh file", ROW_INTERLEAVED, ROW_FRESH, KIB(4), " 8 ", "tmpfs"},
    {"3-D grid without halo, checkpoint", ROW_GRID, ROW_CACHED, 0, " 8 ", NULL},
    {"3-D grid without halo, restart", ROW_GRID, ROW_READ, 0, " 8 ", NULL},
    {"strided memory (64 of 256 B) read", ROW_STRIDED, ROW_READ, 64, " 8 ", "tmpfs"},
    {"strided memory (64 of 256 B) write", ROW_STRIDED, ROW_CACHED, 64, " 8 ", "tmpfs"},
};
const size_t bench_row_count = sizeof bench_rows / sizeof bench_rows[0];

#define STRIDE 4 /* strided memory: one block of so many is used */
#define ELEMENT sizeof(double)

/* The most ranks that rows are measured with. */
#define RANKS_MOST 8

static bool is_listed(const struct row *row, int ranks)
{
    char number[16];

    snprintf(number, sizeof number, " %d ", ranks);
    return strstr(row->ranks, number);
}

bool bench_row_applies(const struct row *row, int ranks, const char *file_system)
{
    const bool in_memory = strcmp(file_system, "tmpfs") == 0;
    bool listed_somewhere = false;

    for (size_t i = 0; i < bench_row_count; i++)
        listed_somewhere |= is_listed(&bench_rows[i], ranks);
    if (!listed_somewhere)
        return in_memory || !row->folder;
    return is_listed(row, ranks) && (in_memory || (!row->folder && ranks == RANKS_MOST));
}

/* ---- Datatypes ---- */

static void make_contiguous(struct access *access)
{
    access->runs = 1;
    access->run = access->extent = access->bytes;
    access->displacement = (uint64_t)access->rank * access->bytes;
    MPI_Type_contiguous((int)access->bytes, MPI_BYTE, &access->memory_type);
    MPI_Type_dup(MPI_BYTE, &access->file_type);
}

static void make_interleaved(struct access *access)
{
    MPI_Datatype block;

    access->run = access->row->block;
    access->runs = access->bytes / access->run;
    access->extent = access->bytes;
    access->displacement = (uint64_t)access->rank * access->run;
    MPI_Type_contiguous((int)access->bytes, MPI_BYTE, &access->memory_type);
    MPI_Type_contiguous((int)access->run, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)access->run * access->ranks, &access->file_type);
    MPI_Type_free(&block);
}

static void make_strided(struct access *access)
{
    access->run = access->row->block;
    access->runs = access->bytes / access->run;
    access->extent = access->bytes * STRIDE;
    access->displacement = (uint64_t)access->rank * access->bytes;
    MPI_Type_vector((int)access->runs, (int)access->run, (int)access->run * STRIDE, MPI_BYTE,
                    &access->memory_type);
    MPI_Type_dup(MPI_BYTE, &access->file_type);
}

/* Elements along x and y are a power of two near the cube root, z has the rest. */
static void make_grid(struct access *access)
{
    int dims[3] = {0, 0, 0};
    int sizes[3], inner[3], outer[3], starts[3], halo[3] = {1, 1, 1};
    uint64_t side = 1;
    uint64_t rest = (uint64_t)access->rank;

    while (side * side * side * 8 * ELEMENT <= access->bytes)
        side *= 2;
    MPI_Dims_create(access->ranks, 3, dims);
    access->local[0] = access->local[1] = side;
    access->local[2] = access->bytes / (side * side * ELEMENT);
    access->bytes = side * side * access->local[2] * ELEMENT;
    access->run = side * ELEMENT;
    access->runs = side * access->local[2];
    access->extent = ELEMENT;
    for (int i = 0; i < 3; i++) {
        access->grid[i] = (uint64_t)dims[i];
        access->place[i] = rest % access->grid[i];
        rest /= access->grid[i];
        access->extent *= access->local[i] + 2;
        /* MPI's order: the slowest first. */
        inner[2 - i] = (int)access->local[i];
        outer[2 - i] = (int)access->local[i] + 2;
        sizes[2 - i] = (int)(access->local[i] * access->grid[i]);
        starts[2 - i] = (int)(access->local[i] * access->place[i]);
    }
    MPI_Type_create_subarray(3, outer, inner, halo, MPI_ORDER_C, MPI_DOUBLE, &access->memory_type);
    MPI_Type_create_subarray(3, sizes, inner, starts, MPI_ORDER_C, MPI_DOUBLE, &access->file_type);
}

void bench_access_create(const struct row *row, uint64_t bytes, MPI_Comm comm,
                         struct access *access)
{
    static void (*const makers[])(struct access *) = {
        [ROW_CONTIGUOUS] = make_contiguous,
        [ROW_INTERLEAVED] = make_interleaved,
        [ROW_GRID] = make_grid,
        [ROW_STRIDED] = make_strided,
    };

    *access = (struct access){.row = row};
    MPI_Comm_rank(comm, &access->rank);
    MPI_Comm_size(comm, &access->ranks);
    access->bytes = bytes / (uint64_t)access->ranks / KIB(64) * KIB(64);
    makers[row->shape](access);
    MPI_Type_commit(&access->memory_type);
    MPI_Type_commit(&access->file_type);
}

void bench_access_destroy(struct access *access)
{
    MPI_Type_free(&access->memory_type);
    MPI_Type_free(&access->file_type);
}

/* ---- Places ---- */

uint64_t bench_memory_of(const struct access *access, uint64_t run)
{
    const uint64_t *n = access->local;

    switch (access->row->shape) {
    case ROW_STRIDED:
        return run * access->run * STRIDE;
    case ROW_GRID:
        return (((run / n[1] + 1) * (n[1] + 2) + run % n[1] + 1) * (n[0] + 2) + 1) * ELEMENT;
    default:
        return run * access->run;
    }
}

uint64_t bench_file_of(const struct access *access, uint64_t run)
{
    const uint64_t *n = access->local;
    const uint64_t *at = access->place;

    switch (access->row->shape) {
    case ROW_INTERLEAVED:
        return (run * (uint64_t)access->ranks + (uint64_t)access->rank) * access->run;
    case ROW_GRID: {
        const uint64_t y = at[1] * n[1] + run % n[1];
        const uint64_t z = at[2] * n[2] + run / n[1];
        return ((z * n[1] * access->grid[1] + y) * n[0] * access->grid[0] + at[0] * n[0]) * ELEMENT;
    }
    default:
        return access->displacement + run * access->run;
    }
}

/* ---- Data ---- */

static uint64_t word(uint64_t offset, uint64_t salt)
{
    return (offset + salt) * 0x9e3779b97f4a7c15u;
}

void bench_access_fill(const struct access *access, char *memory, uint64_t salt)
{
    memset(memory, 0xee, access->extent);
    for (uint64_t k = 0; k < access->runs; k++) {
        uint64_t *to = (uint64_t *)(void *)(memory + bench_memory_of(access, k));
        const uint64_t offset = bench_file_of(access, k);

        for (uint64_t i = 0; i < access->run; i += 8)
            to[i / 8] = word(offset + i, salt);
    }
}

bool bench_file_check(const char *bytes, uint64_t offset, uint64_t length, uint64_t salt)
{
    const uint64_t *from = (const uint64_t *)(const void *)bytes;

    for (uint64_t i = 0; i < length; i += 8) {
        if (from[i / 8] == word(offset + i, salt))
            continue;
        fprintf(stderr, "hipio-bench: wrong data at offset %llu of the file\n",
                (unsigned long long)offset + i);
        return false;
    }
    return true;
}

bool bench_access_check(const struct access *access, const char *memory, uint64_t salt)
{
    for (uint64_t k = 0; k < access->runs; k++)
        if (!bench_file_check(memory + bench_memory_of(access, k), bench_file_of(access, k),
                              access->run, salt))
            return false;
    return true;
}
