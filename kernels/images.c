/* SPDX-License-Identifier: MIT */
/*
 * Images: the kernel's compiled forms inside the library. CMake says which there are and where.
 */
#include "kernels.h"
#include <string.h>

/* The PTX text in the read-only data, page-aligned, with a NUL behind it. */
__asm__(".pushsection .rodata.hipio_kernels_ptx, \"a\"\n"
        ".hidden hipio_kernels_ptx_begin, hipio_kernels_ptx_end\n"
        ".globl hipio_kernels_ptx_begin, hipio_kernels_ptx_end\n"
        ".balign 4096\n"
        "hipio_kernels_ptx_begin:\n"
        ".incbin \"" HIPIO_KERNELS_PTX "\"\n"
        "hipio_kernels_ptx_end:\n"
        ".byte 0\n"
        ".balign 4096\n"
        ".popsection\n");

extern const char hipio_kernels_ptx_begin[] __attribute__((visibility("hidden")));
extern const char hipio_kernels_ptx_end[] __attribute__((visibility("hidden")));
#ifdef HIPIO_KERNELS_AMD
extern const char hipio_kernels_amd_begin[] __attribute__((visibility("hidden")));
extern const char hipio_kernels_amd_end[] __attribute__((visibility("hidden")));
#endif
#ifdef HIPIO_KERNELS_SIMULATED
#include "simulated.h"
#endif

struct family {
    const char *name;
    const char *image;
    const void *begin;
    const void *end;
};

static const struct family families[] = {
    {"cuda", "PTX for compute capability 5.0 and later", hipio_kernels_ptx_begin,
     hipio_kernels_ptx_end},
#ifdef HIPIO_KERNELS_AMD
    {"hip", "code objects for " HIPIO_KERNELS_AMD, hipio_kernels_amd_begin, hipio_kernels_amd_end},
#endif
#ifdef HIPIO_KERNELS_SIMULATED
    {"hipsim", "C for the simulated GPU", &hipio_kernels_simulated, &hipio_kernels_simulated + 1},
#endif
};

int hipio_kernel_image(const char *family, struct hipio_kernel_image *image)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const struct family *is = &families[i];

        if (strcmp(is->name, family) != 0)
            continue;
        image->name = is->image;
        image->data = is->begin;
        image->size = (size_t)((const char *)is->end - (const char *)is->begin);
        return 0;
    }
    return -1;
}
