/* SPDX-License-Identifier: MIT */
/*
 * Flatten: the only walker of MPI datatypes.
 */
#pragma once
#include "engine/extent.h"
#include "engine/request.h"
#include <mpi.h>

/*
 * The bytes of `count` items of `type`, in type-map order, offsets relative to the buffer's address
 * (MPI 3.1, section 4.1). 0 and a new layout, or -ENOMEM, -EOVERFLOW, -ENOTSUP (a type constructor
 * that is not known) with a text.
 */
int hipio_flatten(MPI_Datatype type, int64_t count, struct hipio_layout **layout);

/*
 * The element sizes of one item of `type` in type-map order, for the change to external32 (MPI 3.1,
 * section 13.5.2). -ENOTSUP with a text for types whose external32 form has another size or format
 * than the native one (MPI_LONG, MPI_LONG_DOUBLE, ...). Release with hipio_flatten_free_swap.
 */
int hipio_flatten_swap(MPI_Datatype type, struct hipio_swap **swap);
void hipio_flatten_free_swap(struct hipio_swap *swap);
