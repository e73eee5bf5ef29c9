/* SPDX-License-Identifier: MIT */
/* Openfile: what the component keeps for each file that Open MPI has opened through it. */
#pragma once
#include "ompi_config.h"

#include "driver.h"
#include "ompi/file/file.h"
#include <stdbool.h>

struct hipio_openfile {
    /* First: ROMIO's functions find their handle here, it is all that their own data holds. NULL
     * when the open failed. */
    hipio_romio_fd fd;
    struct hipio_driven *driven; /* NULL: ROMIO alone serves the file */
    /* Settings to be agreed on at the next collective chance (hints.h). */
    struct hipio_tunables wanted;
    bool publishing;    /* subscriptions are being made: their first calls tell nothing new */
    bool stale;         /* MPI_File_get_info lacks keys that are in force */
    bool shared_agreed; /* all ranks have a shared file pointer (shared.h) */
};

struct hipio_openfile *hipio_openfile_create(void);

/* NULL after the close, and for a file whose open never came so far. */
static inline struct hipio_openfile *hipio_openfile_of(const ompi_file_t *handle)
{
    return (struct hipio_openfile *)handle->f_io_selected_data;
}
