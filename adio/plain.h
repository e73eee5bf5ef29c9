/* SPDX-License-Identifier: MIT */
/*
 * Plain: file types as ROMIO's own walk of datatypes gets them right. ROMIO walks a view's type
 * when it is set; where constructors stand upon others that have gaps, or are empty, it may count
 * fewer blocks than it then writes down, and overruns its memory, or takes the type for another
 * one.
 */
#pragma once
#include <mpi.h>

/*
 * For file types and etypes, which ROMIO walks alike.
 * MPI_DATATYPE_NULL in *plain where ROMIO understands `type` as it is. Otherwise a committed
 * type of runs of bytes that repeats in the same way; whoever asked frees it. 0, or -ENOMEM,
 * -EOVERFLOW, -ENOTSUP, -EINVAL with text.
 */
int hipio_plain_make(MPI_Datatype type, MPI_Datatype *plain);
