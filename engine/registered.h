/* SPDX-License-Identifier: MIT */
/*
 * Registered: the memory of a window (file.h) made known to a GPU runtime, so that the GPU copies
 * straight to and from it. Done when it is first needed and kept as long as the window: pinning is
 * slow. It counts as pinned memory, of whose limit all windows together take no more than three
 * quarters.
 */
#pragma once
#include "device/device.h"
#include "file.h"
#include <stdbool.h>

/* False: it was tried in vain, or the window is for another runtime's memory. Pure. */
bool hipio_registered_is_possible(struct hipio_file *window, const struct hipio_memory *memory);

/* Makes the window known to the runtime that serves `memory`, if it is not yet. 0, or -ENOTSUP with
 * the reason: the same from then on. Thread-safe. */
int hipio_registered_ensure(struct hipio_file *window, const struct hipio_memory *memory);
