/* SPDX-License-Identifier: MIT */
/* Agree: one small reduction at a time. */
#include "agree.h"
#include "engine/status.h"
#include "mpierr.h"
#include "rest.h"
#include <stdio.h>

int hipio_agree_max(MPI_Comm comm, long long *values, int n)
{
    int rc = PMPI_Allreduce(MPI_IN_PLACE, values, n, MPI_LONG_LONG, MPI_MAX, comm);
    return hipio_mpierr_class_of(rc);
}

/* MPI's own wait would keep the core from this rank's workers, and from slower ranks. */
static int wait_for_all(MPI_Request *request, void (*meanwhile)(void *), void *context)
{
    struct hipio_rest rest = {0, 0};
    int done = 0, rc;

    for (;;) {
        rc = PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (rc != MPI_SUCCESS || done)
            return rc;
        if (meanwhile)
            meanwhile(context);
        hipio_rest(&rest, true);
    }
}

int hipio_agree_end(MPI_Comm comm, int code, const char *file, void (*meanwhile)(void *),
                    void *context)
{
    MPI_Request request;
    char text[HIPIO_TEXT_MAX];
    long long worst = hipio_mpierr_class_of(code);
    int rc = PMPI_Iallreduce(MPI_IN_PLACE, &worst, 1, MPI_LONG_LONG, MPI_MAX, comm, &request);

    if (rc == MPI_SUCCESS)
        rc = wait_for_all(&request, meanwhile, context);
    rc = hipio_mpierr_class_of(rc);
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
