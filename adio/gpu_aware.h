/* SPDX-License-Identifier: MIT */
/*
 * GPU-aware: whether messages may be sent from GPU memory and received there. The MPI library says
 * it of itself by functions that not every library has (MPIX_Query_*_support), so they are looked
 * up.
 */
#pragma once
#include "engine/device/device.h"
#include "engine/tunables.h"

/*
 * Tells whether that memory may be given to MPI, by the setting gpu_aware_mpi and by what the
 * library says. 0, or -ENOTSUP with text: it is forced, and the library says that it can't.
 */
int hipio_gpu_aware_use(const struct hipio_tunables *tunables, const struct hipio_memory *memory,
                        bool *use);
