/* SPDX-License-Identifier: MIT */
/*
 * Module: the GPU's form of our kernel, loaded once for each device and kept until shutdown.
 */
#pragma once
#include "device/device.h"

struct hipio_known_module;

struct hipio_module {
    void *function; /* hipio_kernel_move, for hipio_device_ops.launch */
    int multiprocessors;
    struct hipio_known_module *known; /* the room's own */
};

/*
 * The module of a device, loaded when first asked for, which may take a tenth of a second. 0;
 * -ENOTSUP with text: no image of ours fits the device, said once in the log; -ENOMEM or the
 * runtime's error, with text: asking again may help. Thread-safe.
 */
int hipio_module_get(const struct hipio_device_ops *ops, int device, struct hipio_module *out);
/* Nothing of it is launched any more. Once for each hipio_module_get that succeeded. */
void hipio_module_put(struct hipio_module *module);

/* Unloads what nobody has. */
void hipio_module_shutdown(void);
