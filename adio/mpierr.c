/* SPDX-License-Identifier: MIT */
/* Mpierr: engine status to MPI class and code; bytes to MPI status. */
#include "mpierr.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define RING 16

/* The classes that hipio reports, each with its ring of codes. */
static struct ring {
    int class;
    int code[RING];
    unsigned made, next;
} rings[] = {
    {.class = MPI_ERR_IO},          {.class = MPI_ERR_NO_SPACE},
    {.class = MPI_ERR_QUOTA},       {.class = MPI_ERR_ACCESS},
    {.class = MPI_ERR_READ_ONLY},   {.class = MPI_ERR_NO_SUCH_FILE},
    {.class = MPI_ERR_FILE_EXISTS}, {.class = MPI_ERR_BAD_FILE},
    {.class = MPI_ERR_ARG},         {.class = MPI_ERR_BUFFER},
    {.class = MPI_ERR_NO_MEM},      {.class = MPI_ERR_UNSUPPORTED_OPERATION},
    {.class = MPI_ERR_OTHER},
};
static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;

#define RINGS (sizeof rings / sizeof rings[0])

int hipio_mpierr_class(int err)
{
    static const struct {
        int err, class;
    } map[] = {
        {ENOSPC, MPI_ERR_NO_SPACE},
        {EDQUOT, MPI_ERR_QUOTA},
        {EACCES, MPI_ERR_ACCESS},
        {EPERM, MPI_ERR_ACCESS},
        {EBADF, MPI_ERR_ACCESS},
        {EROFS, MPI_ERR_READ_ONLY},
        {ENOENT, MPI_ERR_NO_SUCH_FILE},
        {EEXIST, MPI_ERR_FILE_EXISTS},
        {EISDIR, MPI_ERR_BAD_FILE},
        {ENAMETOOLONG, MPI_ERR_BAD_FILE},
        {EINVAL, MPI_ERR_ARG},
        {EOVERFLOW, MPI_ERR_ARG},
        {EFAULT, MPI_ERR_BUFFER},
        {ENOMEM, MPI_ERR_NO_MEM},
        {ENOTSUP, MPI_ERR_UNSUPPORTED_OPERATION},
    };
    if (err == 0)
        return MPI_SUCCESS;
    for (size_t i = 0; i < sizeof map / sizeof map[0]; i++) {
        if (map[i].err == -err)
            return map[i].class;
    }
    return MPI_ERR_IO;
}

void hipio_mpierr_prepare(void)
{
    pthread_mutex_lock(&rings_lock);
    for (size_t i = 0; i < RINGS; i++) {
        struct ring *ring = &rings[i];
        while (ring->made < RING &&
               PMPI_Add_error_code(ring->class, &ring->code[ring->made]) == MPI_SUCCESS)
            ring->made++;
    }
    pthread_mutex_unlock(&rings_lock);
}

static struct ring *ring_of(int error_class)
{
    for (size_t i = 0; i < RINGS; i++) {
        if (rings[i].class == error_class)
            return &rings[i];
    }
    return NULL;
}

int hipio_mpierr_code(int error_class, const char *text)
{
    char cut[MPI_MAX_ERROR_STRING];
    struct ring *ring = ring_of(error_class);
    int code = error_class;

    if (!ring || !text || !*text)
        return error_class;
    snprintf(cut, sizeof cut, "%s", text);
    pthread_mutex_lock(&rings_lock);
    if (ring->made && PMPI_Add_error_string(ring->code[ring->next], cut) == MPI_SUCCESS) {
        code = ring->code[ring->next];
        ring->next = (ring->next + 1) % ring->made;
    }
    pthread_mutex_unlock(&rings_lock);
    return code;
}

int hipio_mpierr_class_of(int code)
{
    int class = MPI_ERR_OTHER;
    if (code == MPI_SUCCESS)
        return MPI_SUCCESS;
    return PMPI_Error_class(code, &class) == MPI_SUCCESS ? class : MPI_ERR_OTHER;
}

void hipio_mpierr_set_bytes(MPI_Status *status, uint64_t bytes)
{
    if (status != MPI_STATUS_IGNORE)
        PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
}
