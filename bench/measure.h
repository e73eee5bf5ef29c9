/* SPDX-License-Identifier: MIT */
/*
 * Measure: one row, by hand or through GPU pointers.
 */
#pragma once
#include "rows.h"

struct measure_options {
    const char *way;    /* "romio", "ompio": by hand; "hipio": GPU pointers */
    const char *folder; /* where the file is made */
    const char *system; /* of files there */
    uint64_t bytes;
    int times; /* how often; the first time is told apart */
    bool verify;
    bool host; /* buffers in ordinary memory: no GPU takes part */
};

/* Measures the row on all ranks of the world and prints a line of results on rank 0. False: the
 * data were wrong. */
bool measure_row(const struct row *row, const struct measure_options *options);
