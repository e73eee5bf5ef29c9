/* SPDX-License-Identifier: MIT */
/*
 * Shared: can the shared file pointer be used? ROMIO keeps it in a hidden file beside the data,
 * which may be impossible to make, and then its nonblocking calls go on with a pointer of nothing,
 * and its ordered ones leave the other ranks waiting.
 */
#pragma once
#include "openfile.h"

/* For calls of one rank: MPI_SUCCESS, or an MPI code whose text says why there is no shared
 * pointer. */
int hipio_shared_check(ompi_file_t *handle);
/* For collective calls: the same answer in kind on all ranks. Asks until it was yes once. */
int hipio_shared_agree(ompi_file_t *handle);
