/* SPDX-License-Identifier: MIT */
/*
 * Guard: on a file that hipio does not drive, a buffer in GPU memory is an MPI error with words.
 * The component below would crash on it. Everything else goes through untouched.
 */
#pragma once
#include "ompi_config.h"

#include "ompi/file/file.h"
#include "ompi/mca/io/io.h"

/*
 * The table to give Open MPI for this file instead of `lower`, whose data and handle stay as they
 * are. `why` is told with each refusal (copied). NULL, with a warning: more different tables than
 * there are components. `lower` lives as long as the process uses it.
 */
const mca_io_base_module_2_0_0_t *hipio_guard_over(const ompi_file_t *handle,
                                                   const mca_io_base_module_2_0_0_t *lower,
                                                   const char *why);
