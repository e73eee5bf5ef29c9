/* SPDX-License-Identifier: MIT */
/* Modules and kernel launches. */
#pragma once

#include "hipsim_kernel.h"

struct hipsim_stream;

/* The image must stay until the module is unloaded and its launches are done. */
int hipsim_module_load(int device, const void *image, void **module);
int hipsim_module_unload(void *module);
void hipsim_module_end_all(int device);
int hipsim_module_function(void *module, const char *name, void **function);
int hipsim_module_launch(void *function, const struct hipsim_grid *grid, void **params,
                         struct hipsim_stream *stream);
