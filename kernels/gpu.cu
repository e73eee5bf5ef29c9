/* SPDX-License-Identifier: MIT */
/*
 * The kernel for GPUs. Compiled by clang alone, without any vendor's headers:
 *   clang -x hip  --cuda-device-only -nogpuinc -nogpulib ...   AMD
 *   clang -x cuda --cuda-device-only -nocudainc -nocudalib ... NVIDIA
 */
#define HIPIO_KERNEL_SOURCE
#include "kernels.h"

#define HIPIO_DEVICE static inline __attribute__((device, always_inline))
#define HIPIO_ROLLED _Pragma("clang loop unroll(disable)")
#define HIPIO_GLOBAL __attribute__((address_space(1)))
#define HIPIO_ENTRY extern "C" __attribute__((global, launch_bounds(HIPIO_KERNEL_THREADS)))

struct hipio_place {
    uint64_t first;
    uint64_t step;
};

HIPIO_DEVICE struct hipio_place hipio_place_here(void)
{
#ifdef __AMDGCN__
    uint64_t block = __builtin_amdgcn_workgroup_id_x();
    uint64_t thread = __builtin_amdgcn_workitem_id_x();
    uint64_t threads = __builtin_amdgcn_grid_size_x();
#else
    uint64_t block = __nvvm_read_ptx_sreg_ctaid_x();
    uint64_t thread = __nvvm_read_ptx_sreg_tid_x();
    uint64_t threads = (uint64_t)__nvvm_read_ptx_sreg_nctaid_x() * HIPIO_KERNEL_THREADS;
#endif
    struct hipio_place place = {block * HIPIO_KERNEL_THREADS + thread, threads};

    return place;
}

HIPIO_DEVICE HIPIO_GLOBAL void *hipio_reach(uint64_t address, uint64_t)
{
    return (HIPIO_GLOBAL void *)address;
}

#include "move.inc"

HIPIO_ENTRY void hipio_kernel_move(struct hipio_kernel_move move)
{
    hipio_move_run(move, hipio_place_here());
}
