/* SPDX-License-Identifier: MIT */
/*
 * Absence: the component that would serve a file if hipio were not loaded. Where hipio steps aside,
 * that one serves it, under a guard.
 */
#pragma once
#include "ompi_config.h"

#include "ompi/file/file.h"
#include "ompi/mca/io/io.h"

/*
 * The table of that component, ready to open the file, and its data in *data. NULL: there is none,
 * or its priority is not below `priority`, so that Open MPI would not choose `self` anyway.
 */
const mca_io_base_module_2_0_0_t *hipio_absence_query(ompi_file_t *handle,
                                                      const mca_base_component_t *self,
                                                      int priority,
                                                      struct mca_io_base_file_t **data);
