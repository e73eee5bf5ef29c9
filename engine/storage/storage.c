/* SPDX-License-Identifier: MIT */
/* Storage: which one serves a file. */
#include "storage.h"

const struct hipio_storage *hipio_storage_for(const struct hipio_file *file, bool mapped)
{
    if (hipio_file_window(file))
        return &hipio_storage_window;
    const struct hipio_tunables *settings = hipio_file_tunables(file);
    if (hipio_file_is_direct(file) || settings->direct == HIPIO_FORCE ||
        settings->uring == HIPIO_FORCE)
        return &hipio_storage_direct;
    return mapped ? &hipio_storage_mapped : &hipio_storage_buffered;
}

bool hipio_storage_is_direct(const struct hipio_file *file)
{
    const uint64_t direct = hipio_file_tunables(file)->direct;

    return direct == HIPIO_FORCE || (direct == HIPIO_AUTO && hipio_file_is_direct(file));
}
