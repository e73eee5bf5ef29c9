/* SPDX-License-Identifier: MIT */
/*
 * Ceiling: what plain threads reach on this machine without MPI and GPU work, for orientation.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Prints a line of results for each way. False: the file could not be made. */
bool ceiling_measure(const char *folder, const char *system, uint64_t bytes, int threads);
