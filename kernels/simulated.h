/* SPDX-License-Identifier: MIT */
/*
 * Simulated: the kernel as an image for hipsim.
 */
#pragma once
#include "hipsim_kernel.h"

extern const struct hipsim_image hipio_kernels_simulated;
