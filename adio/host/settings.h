/* SPDX-License-Identifier: MIT */
/*
 * Settings: the process's settings as MCA parameters (io_hipio_<setting>) and its counters as MPI_T
 * performance variables (io_hipio_<counter>).
 */
#pragma once
#include "ompi_config.h"

#include "opal/mca/mca.h"

/*
 * Registers all parameters and variables for the component. It touches neither MPI nor a GPU:
 * ompi_info and MPI_T call it before MPI_Init. OPAL_SUCCESS or an OPAL error.
 */
int hipio_settings_register(const mca_base_component_t *component);

/*
 * Puts the parameters that somebody has set over the process's settings. A bad value is named once
 * together with what is accepted, and the value from below stays.
 */
void hipio_settings_apply(void);

/* Priority of the component when a file is opened or deleted. */
int hipio_settings_priority(void);

/* What io_hipio_romio_layout says: false is "none", to stand on no ROMIO at all. */
bool hipio_settings_layout_allowed(void);

/* Writes the counters of the process to stderr, after a line that names the occasion. */
void hipio_settings_report(const char *occasion);
