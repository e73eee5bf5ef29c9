/* SPDX-License-Identifier: MIT */
/*
 * Handle: a registered file and who holds it.
 */
#include "handle.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hipio_handle {
    struct hipio_file *file;
    int fd;
    atomic_uint holders;
};

/* What the descriptor was opened for, or a negative errno. */
static int access_of(int fd)
{
    const int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return hipio_status_set(-EBADF, "%d is not an open file descriptor", fd);
    switch (flags & O_ACCMODE) {
    case O_RDONLY:
        return HIPIO_ACCESS_READ;
    case O_WRONLY:
        return HIPIO_ACCESS_WRITE;
    default:
        return HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE;
    }
}

static int open_file(struct hipio_handle *handle, int fd, const char *name)
{
    char number[32];
    const int access = access_of(fd);

    if (access < 0)
        return access;
    snprintf(number, sizeof number, "descriptor %d", fd);
    handle->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (handle->fd < 0)
        return hipio_status_set(-errno, "%s can't be duplicated: %s; see ulimit -n",
                                name ? name : number, strerror(errno));
    int status = hipio_file_create(handle->fd, name ? name : number, access,
                                   hipio_tunables_process(), &handle->file);
    if (status < 0)
        close(handle->fd);
    return status;
}

int hipio_handle_open(int fd, const char *name, struct hipio_handle **out)
{
    struct hipio_handle *handle = calloc(1, sizeof *handle);

    if (!handle)
        return hipio_status_set(-ENOMEM, "no memory to register a file");
    atomic_init(&handle->holders, 1);
    int status = open_file(handle, fd, name);
    if (status < 0)
        free(handle);
    else
        *out = handle;
    return status;
}

void hipio_handle_hold(struct hipio_handle *handle)
{
    atomic_fetch_add(&handle->holders, 1);
}

void hipio_handle_drop(struct hipio_handle *handle)
{
    if (atomic_fetch_sub(&handle->holders, 1) != 1)
        return;
    hipio_file_destroy(handle->file);
    close(handle->fd);
    free(handle);
}

struct hipio_file *hipio_handle_file(const struct hipio_handle *handle)
{
    return handle->file;
}
