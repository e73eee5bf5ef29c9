/* SPDX-License-Identifier: MIT */
/*
 * Module: the table of MPI-IO calls that Open MPI gets for a file: ROMIO's own, with the calls
 * wrapped that a driver below ROMIO can't mend.
 */
#pragma once
#include "ompi_config.h"

#include "ompi/mca/io/io.h"

/* ROMIO's table, below ours. */
const mca_io_base_module_2_0_0_t *hipio_module_lower(void);

/* Our table over `lower`, which is the same in every call. */
const mca_io_base_module_2_0_0_t *hipio_module_stack(const mca_io_base_module_2_0_0_t *lower);

/* Puts the wrapped data accesses into `module` (module_collective.c). */
void hipio_module_wrap_accesses(mca_io_base_module_2_0_0_t *module);
/* The same for seeks and positions (module_position.c). */
void hipio_module_wrap_positions(mca_io_base_module_2_0_0_t *module);
