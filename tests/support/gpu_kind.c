/* SPDX-License-Identifier: MIT */
/*
 * What is the same for every GPU runtime.
 */
#include "gpu.h"
#include <stdio.h>
#include <stdlib.h>

bool gpu_wanted(void)
{
    if (gpu_available())
        return true;
    if (!getenv("HIPIO_TEST_NEEDS_GPU"))
        return false;
    fprintf(stderr, "test: no GPU (%s), and HIPIO_TEST_NEEDS_GPU is set\n", gpu_runtime());
    exit(99);
}

const char *gpu_kind_name(enum gpu_kind kind)
{
    static const char *const names[GPU_KINDS] = {"host", "device", "managed", "pinned"};

    return names[kind];
}
