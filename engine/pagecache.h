/* SPDX-License-Identifier: MIT */
/*
 * Page cache: what the kernel holds of a file. The answers are hints: they may be out of date at
 * once, and only speed may depend on them.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Are these bytes (> 0) in memory? `mapped` is where they are mapped. False where that can't be
 * told. */
bool hipio_pagecache_holds(int fd, int64_t offset, uint64_t length, void *mapped);

/* Does no byte of this range have to be read from the disk before a part of it can be written,
 * because nothing was ever stored there? False where that can't be told. */
bool hipio_pagecache_is_hole(int fd, int64_t offset, uint64_t length);
