/* SPDX-License-Identifier: MIT */
/* Agree: one small reduction at a time. */
#include "agree.h"
#include "engine/status.h"
#include "mpierr.h"
#include <stdio.h>

int hipio_agree_max(MPI_Comm comm, long long *values, int n)
{
    int rc = PMPI_Allreduce(MPI_IN_PLACE, values, n, MPI_LONG_LONG, MPI_MAX, comm);
    return hipio_mpierr_class_of(rc);
}

int hipio_agree_end(MPI_Comm comm, int code, const char *file)
{
    char text[HIPIO_TEXT_MAX];
    long long worst = hipio_mpierr_class_of(code);
    int rc = hipio_agree_max(comm, &worst, 1);
    if (code != MPI_SUCCESS)
        return code;
    if (rc != MPI_SUCCESS)
        return rc;
    if (worst == MPI_SUCCESS)
        return MPI_SUCCESS;
    snprintf(text, sizeof text,
             "collective access to %s: another rank failed, so the data are not complete; its own "
             "error says why",
             file);
    return hipio_mpierr_code(MPI_ERR_IO, text);
}
