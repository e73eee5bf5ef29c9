/* SPDX-License-Identifier: MIT */
/*
 * Breaker: which fast paths have been given up for a file, per backend and device. A new open of
 * the file starts without any.
 */
#pragma once
#include "file.h"
#include <stddef.h>

/* So many failures in a row that another path had to mend, and a path is given up. */
#define HIPIO_BREAKER_PATIENCE 4

/* True: the backend (by its index in the table) must not be tried for this file and device. */
bool hipio_breaker_is_open(struct hipio_file *file, size_t backend, int device);

/* A request went through: failures are counted from 0 again. */
void hipio_breaker_success(struct hipio_file *file, size_t backend, int device);

/*
 * A request failed with `error` and another path takes over. `for_good`: the path can't serve this
 * file, one failure is enough. Giving up is counted and logged (info) with the thread's status
 * text.
 */
void hipio_breaker_failure(struct hipio_file *file, size_t backend, int device, int error,
                           bool for_good);

/* The error for which the path was given up; 0: it was not. */
int hipio_breaker_reason(struct hipio_file *file, size_t backend, int device);
