/* SPDX-License-Identifier: MIT */
/*
 * What an MPI program can learn about the ground it stands on, by MPI's own means: the library's
 * version, ROMIO's (a control variable), whether a file is driven by hipio (an info key), and
 * hipio's counters (performance variables).
 */
#pragma once
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* The first words of the MPI library's version: "Open MPI v4.1.4". */
void report_mpi(char *out, size_t size);

/* ROMIO's own version text, or "unknown". */
void report_romio(char *out, size_t size);

/* True if hipio drives the file; `version` gets hipio's version. */
bool report_driver(MPI_File file, char *version, size_t size);

/* Prints hipio's counters that are not zero, summed over the ranks. Collective; rank 0 prints. */
void report_counters(MPI_Comm comm);
