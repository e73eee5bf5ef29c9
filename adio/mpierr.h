/* SPDX-License-Identifier: MIT */
/*
 * Mpierr: the translator between the engine's status and MPI's words.
 */
#pragma once
#include <mpi.h>
#include <stdint.h>

/* The MPI error class for a negative errno of the engine. */
int hipio_mpierr_class(int err);

/*
 * Makes the codes that hipio_mpierr_code gives out, once per process; later calls do nothing.
 * Without it, codes are plain classes.
 */
void hipio_mpierr_prepare(void);

/*
 * An MPI error code of that class whose MPI_Error_string is `text` (cut to MPI's limit). There are
 * sixteen codes a class, so that memory stays bounded: a text lasts until sixteen later errors of
 * its class. May be called from MPI's progress.
 */
int hipio_mpierr_code(int error_class, const char *text);

/* Class of a code that may be one of ours or a plain class. MPI_SUCCESS stays MPI_SUCCESS. */
int hipio_mpierr_class_of(int code);

/* Sets the count of a status, which may be MPI_STATUS_IGNORE. */
void hipio_mpierr_set_bytes(MPI_Status *status, uint64_t bytes);
