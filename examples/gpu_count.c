/* SPDX-License-Identifier: MIT */
/*
 * gpu_count: prints the GPUs that the runtime finds, one a line; fails where there is none.
 */
#include "gpu.h"

int main(void)
{
    int count = 0;
    hipError_t error = hipGetDeviceCount(&count);

    if (error != hipSuccess || count < 1) {
        fprintf(stderr, "gpu_count: no GPU found (%s)\n", hipGetErrorString(error));
        return 1;
    }
    for (int device = 0; device < count; device++) {
        char name[256];

        error = hipDeviceGetName(name, sizeof name, device);
        if (error != hipSuccess) {
            fprintf(stderr, "gpu_count: device %d: %s\n", device, hipGetErrorString(error));
            return 1;
        }
        printf("%s\n", name);
    }
    return 0;
}
