/* SPDX-License-Identifier: MIT */
/*
 * Cases: faults that users of other systems met, each as a small program. A file of cases has a
 * table of them and gives it to cases_main.
 *
 *   mpirun -n N PROGRAM [--romio] [--threads] [--seed N] [--repeat N] [CASE...]
 *
 * Without names, all cases run that fit the number of ranks. --romio: no hipio is loaded, memory is
 * host memory, and cases that plain ROMIO fails are left out. --threads: MPI_THREAD_MULTIPLE.
 * --repeat: how often the cases that hunt for a race or take random input do so; --seed, or
 * HIPIO_TEST_SEED: the first random seed. Ends with 0, 1 (a
 * check failed), 77 (nothing to run).
 */
#pragma once
#include "gpu.h"
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum case_needs {
    NEEDS_NOTHING,
    NEEDS_HIPIO = 1, /* plain ROMIO crashes, hangs or is wrong */
    NEEDS_GPU = 2,
    NEEDS_REQUEST = 4 /* runs only when it is named */
};

struct test_case {
    const char *name;
    const char *claim;
    int min_ranks, max_ranks;
    int needs;
    void (*run)(void);
};

int cases_main(int argc, char **argv, const struct test_case *list, size_t count);

int case_rank(void);
int case_ranks(void);
int case_repeat(int normal);
uint64_t case_seed(uint64_t normal);
/* Checks of this case that failed on this rank so far. */
int case_failures(void);
/* Is hipio meant to be there? */
bool case_hipio(void);
/* A counter of hipio's in this process, as any tool reads it ("requests"); -1: there is none. */
int64_t case_counter(const char *name);
/* The kinds of memory that can be tried here: host alone, or all. */
int case_kinds(void);
/* Memory that the CPU may touch as any other goes to ROMIO untouched in blocking calls, and meets
 * ROMIO's faults there. */
bool case_romio_serves(enum gpu_kind kind);

/* Records and prints a failure unless `ok`. Returns `ok`. */
bool check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call that must succeed; one that must fail, with that class (or any, if it is MPI_SUCCESS). */
bool check_ok(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool check_class(int code, int class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The status must say that many bytes. */
bool check_bytes(const MPI_Status *status, int64_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Buffers of any kind. Their bytes are poison (0xA5) at first. */
struct buffer {
    enum gpu_kind kind;
    unsigned char *at;
    size_t size;
};
enum { POISON = 0xA5 };

struct buffer buffer_new(enum gpu_kind kind, size_t size);
void buffer_free(struct buffer *buffer);
void buffer_poison(struct buffer *buffer);
void buffer_fill(struct buffer *buffer, size_t at, uint64_t seed, uint64_t position, size_t bytes);
/* Bytes [at, at + bytes) must be the pattern, or poison. */
bool buffer_check(const struct buffer *buffer, size_t at, uint64_t seed, uint64_t position,
                  size_t bytes);
bool buffer_check_poison(const struct buffer *buffer, size_t at, size_t bytes);
/* Copies from and to host memory. */
void buffer_get(const struct buffer *buffer, size_t at, void *out, size_t bytes);
void buffer_put(struct buffer *buffer, size_t at, const void *in, size_t bytes);

/* Files by plain system calls. Rank 0 acts, all ranks wait for it. */
void file_make(const char *path, uint64_t seed, size_t bytes);
void file_remove(const char *path);
/* Local: each rank that calls it looks. */
bool file_check(const char *path, int64_t at, uint64_t seed, uint64_t position, size_t bytes);
bool file_check_size(const char *path, int64_t size);

/* Opens on all ranks; ends the program when that fails. With `hints`: "key=value,key=value". */
MPI_File file_open(const char *path, int mode, const char *hints);
MPI_Info info_of(const char *hints);
void barrier(void);
