/* SPDX-License-Identifier: MIT */
/* Shared: asks ROMIO for the shared pointer before a call that could not say no. */
#include "shared.h"
#include "agree.h"
#include "host.h"
#include "mpierr.h"
#include <stdio.h>

int hipio_shared_check(ompi_file_t *handle)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    char text[MPI_MAX_ERROR_STRING];
    long long pointer = 0;
    int error = MPI_SUCCESS;

    if (!file->driven || file->fd->shared_fp_fd)
        return MPI_SUCCESS;
    /* An advance by nothing only reads, and opens the hidden file. */
    hipio_host_romio()->get_shared_pointer(file->fd, 0, &pointer, &error);
    if (error == MPI_SUCCESS)
        return MPI_SUCCESS;
    snprintf(text, sizeof text,
             "%s: no shared file pointer: ROMIO can't make its hidden file %s; the folder must be "
             "there and writable",
             handle->f_filename,
             file->fd->shared_fp_fname ? file->fd->shared_fp_fname : "beside it");
    return hipio_mpierr_code(hipio_mpierr_class_of(error), text);
}

int hipio_shared_agree(ompi_file_t *handle)
{
    struct hipio_openfile *file = hipio_openfile_of(handle);
    int code;

    if (!file->driven || file->shared_agreed)
        return MPI_SUCCESS;
    code =
        hipio_agree_end(file->fd->comm, hipio_shared_check(handle), handle->f_filename, NULL, NULL);
    file->shared_agreed = code == MPI_SUCCESS;
    return code;
}
