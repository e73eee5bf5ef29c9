/* SPDX-License-Identifier: MIT */
/*
 * Flatten_array: the two array constructors, subarray and darray, as nested vectors.
 */
#pragma once
#include "engine/extent.h"
#include "typecontents.h"

/* Both take over the reference to `child`, one element of `extent` bytes. */
int hipio_flatten_subarray(const struct hipio_typecontents *contents, struct hipio_layout *child,
                           int64_t extent, struct hipio_layout **layout);
int hipio_flatten_darray(const struct hipio_typecontents *contents, struct hipio_layout *child,
                         int64_t extent, struct hipio_layout **layout);
