/* SPDX-License-Identifier: MIT */
/* The CUDA face: the names with the old ABI. The real ones would take 32-bit device pointers and
 * damage memory; these say so. */
#include "error.h"

#define OLD(name)                                                                                  \
    __attribute__((visibility("default"))) int name(void);                                         \
    int name(void)                                                                                 \
    {                                                                                              \
        hipsim_error_die("%s has the ABI of 32-bit device pointers; look up " #name "_v2",         \
                         __func__);                                                                \
    }
#include "cuda_old.def"
#undef OLD
