/* SPDX-License-Identifier: MIT */
/* The HIP face: modules and launches. */
#include "hip_api.h"

#include "error.h"
#include "module.h"
#include "process.h"
#include "stream.h"

static int load(const char *name, void **module, const void *image)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    if (!rc && (!module || !image))
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_module_load(hipsim_current_device(), image, module));
}

int hipModuleLoadData(void **module, const void *image)
{
    return load(__func__, module, image);
}

int hipModuleLoadDataEx(void **module, const void *image, unsigned count, void *options,
                        void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return load(__func__, module, image);
}

int hipModuleLoadFatBinary(void **module, const void *image)
{
    return load(__func__, module, image);
}

int hipModuleUnload(void *module)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_module_unload(module));
}

int hipModuleGetFunction(void **function, void *module, const char *name)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && (!function || !name))
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_module_function(module, name, function));
}

int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          void *handle, void **params, void **extra)
{
    struct hipsim_grid grid = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, 0};
    struct hipsim_stream *stream;
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && extra)
        rc = HIPSIM_NOT_SUPPORTED;
    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    rc = hipsim_module_launch(function, &grid, params, stream);
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}
