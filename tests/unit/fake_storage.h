/* SPDX-License-Identifier: MIT */
/*
 * Fake storage: stands in for the buffered storage in a unit test. It does real I/O on the file up
 * to the offset where it was told to fail.
 */
#pragma once
#include <stdint.h>

/* The byte at `offset` can't be moved: `error` (negative errno), until it is reset. */
void fake_storage_fail(int64_t offset, int error);
void fake_storage_reset(void);
/* Called at the start of each call; NULL: nothing. */
void fake_storage_observe(void (*observer)(void));
/* Calls so far. */
uint64_t fake_storage_calls(void);
