/* SPDX-License-Identifier: MIT */
/*
 * Process: what is in this process.
 */
#pragma once
#include <stdbool.h>

/* Is a file whose path contains that text mapped? */
bool process_maps(const char *text);
