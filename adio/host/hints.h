/* SPDX-License-Identifier: MIT */
/*
 * Hints: a file's settings as MPI_Info keys, hipio_<setting>.
 *
 * Two of them steer what the ranks of a collective do together and must be the same on all. They
 * are agreed on, rank 0's values winning, when the file is opened and when its view is set; given
 * to MPI_File_set_info, they wait for the next view.
 */
#pragma once
#include "ompi_config.h"

#include "engine/tunables.h"
#include "openfile.h"

/*
 * Puts the keys hipio_* of `info` into `tunables`. A bad value, an unknown key and a
 * setting of the whole process are named once, by rank 0 of the file as a warning; the value that
 * was there stays. Local.
 */
void hipio_hints_parse(opal_info_t *info, struct hipio_tunables *tunables, bool speaks);

/*
 * Collective over `comm`: gives all ranks rank 0's values of the steering settings, and the worst
 * of the ranks' classes. The caller's class, if it is an error, comes back unchanged.
 */
int hipio_hints_agree(MPI_Comm comm, int error_class, struct hipio_tunables *tunables);

/* Lets MPI_File_set_info reach the file's settings. */
void hipio_hints_subscribe(ompi_file_t *handle);

/* Lets MPI_File_get_info show what is in force: hipio's settings, ROMIO's hints, and "hipio", the
 * version. */
void hipio_hints_publish(ompi_file_t *handle);
