/* SPDX-License-Identifier: MIT */
/*
 * Proof: nothing of ROMIO's is touched before the binary in this process has been held against the
 * layouts that romio321.h declares. Once for the library, when it is found; once for each open
 * file.
 */
#pragma once
#include "ompi_config.h"

#include "host.h"
#include "opal/mca/mca.h"
#include <stdbool.h>
#include <stddef.h>

/* What differs is told in at most this many bytes. */
#define HIPIO_PROOF_TEXT 256

/*
 * Proves the library of ROMIO's component and looks up what the driver needs of it. True, or false
 * and *why, which lives as long as the process. The first answer stays. Thread-safe.
 */
bool hipio_proof_library(const mca_base_component_t *romio, const char **why);

/* What a file was opened with; `comm` is the caller's communicator. */
struct hipio_proof_open {
    MPI_Comm comm;
    const char *filename;
    int amode;
};

/*
 * Holds an open file against what it was opened with. True, or false and the reason in `text`.
 * Local: the ranks have still to agree.
 */
bool hipio_proof_file(hipio_romio_fd fd, const struct hipio_proof_open *open,
                      char text[HIPIO_PROOF_TEXT]);

/* Lets go of ROMIO's library. */
void hipio_proof_close(void);
