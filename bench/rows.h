/* SPDX-License-Identifier: MIT */
/*
 * Rows: the access patterns that are measured, each as what every rank owns of one shared file and
 * of its memory.
 */
#pragma once
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum row_shape { ROW_CONTIGUOUS, ROW_INTERLEAVED, ROW_GRID, ROW_STRIDED };

/* What a write finds. A read always finds the file in the page cache. */
enum row_file { ROW_READ, ROW_CACHED, ROW_FRESH };

struct row {
    const char *name;
    enum row_shape shape;
    enum row_file file;
    uint64_t block;     /* interleaved, strided: bytes */
    const char *ranks;  /* numbers of ranks that it is measured with: " 1 4 8 " */
    const char *folder; /* "tmpfs": measured there only; NULL: on others too, with most ranks */
};

extern const struct row bench_rows[];
extern const size_t bench_row_count;

/* Is the row measured with so many ranks (0: any number) on such a file system? With a number that
 * no row lists, all are. */
bool bench_row_applies(const struct row *row, int ranks, const char *file_system);

/* One rank's side of a row. Run k of `runs` runs of `run` bytes lies at memory_of(k) and at
 * file_of(k). */
struct access {
    const struct row *row;
    int rank;
    int ranks;
    uint64_t bytes;  /* of this rank's data */
    uint64_t extent; /* of its memory, with what lies between */
    uint64_t run;
    uint64_t runs;
    uint64_t local[3]; /* grid: elements of a rank along x, y, z, without halo */
    uint64_t grid[3];  /* ranks along x, y, z */
    uint64_t place[3];
    MPI_Datatype memory_type; /* count 1 */
    MPI_Datatype file_type;   /* view; etype MPI_BYTE */
    uint64_t displacement;
};

/* `bytes`: of all ranks together; the access may take a little less. */
void bench_access_create(const struct row *row, uint64_t bytes, MPI_Comm comm,
                         struct access *access);
void bench_access_destroy(struct access *access);
uint64_t bench_memory_of(const struct access *access, uint64_t run);
uint64_t bench_file_of(const struct access *access, uint64_t run);

/* The memory whose words tell their place in the file; what lies between the runs is 0xee. */
void bench_access_fill(const struct access *access, char *memory, uint64_t salt);
/* False: a word is wrong; says which. */
bool bench_access_check(const struct access *access, const char *memory, uint64_t salt);
/* The same for a range of the file that was read. */
bool bench_file_check(const char *bytes, uint64_t offset, uint64_t length, uint64_t salt);
