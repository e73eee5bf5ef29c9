/* SPDX-License-Identifier: MIT */
/*
 * Counters: where the time of a row went, as hipio's MPI_T variables and the kernel tell it.
 */
#pragma once
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define COUNTERS_MAX 128

struct counters {
    int count;
    char name[COUNTERS_MAX][64];
    uint64_t value[COUNTERS_MAX];
    double user; /* seconds of CPU */
    double system;
};

/* This process's values now. None where MPI_T has none of hipio's. */
void counters_read(struct counters *now);
/* Sums the differences of all ranks up on rank 0, and writes those that are not 0 as text. */
void counters_report(const struct counters *before, const struct counters *after, MPI_Comm comm,
                     char *out, size_t size);
