/* SPDX-License-Identifier: MIT */
/* Begun: one access that outlives the call that made it. */
#include "begun.h"
#include "agree.h"
#include "exchange.h"
#include "mpierr.h"
#include <stdlib.h>

struct hipio_begun {
    struct hipio_access access;
    bool started; /* the engine has the request */
    int code;     /* of what came before */
};

struct hipio_begun *hipio_begun_create(void)
{
    struct hipio_begun *begun = calloc(1, sizeof *begun);

    if (begun)
        begun->access.lock_fd = -1;
    return begun;
}

void hipio_begun_fail(struct hipio_begun *begun, int code)
{
    begun->code = code;
}

void hipio_begun_start(struct hipio_begun *begun, struct hipio_access *access)
{
    struct hipio_request *request = &begun->access.request;
    int rc;

    begun->access = *access;
    access->memory_layout = access->file_layout = NULL;
    access->swap = NULL;
    if (begun->access.bytes == 0)
        return;
    rc = hipio_driver_file(begun->access.driven, &request->file);
    if (rc == 0)
        rc = hipio_request_start(request);
    begun->started = rc == 0;
    /* The request's text is the engine's from its start on. */
    if (rc)
        begun->code =
            hipio_access_code(&begun->access, rc, request->text[0] ? request->text : NULL);
}

/* Until the request is done. */
static int finish(struct hipio_begun *begun)
{
    struct hipio_request *request = &begun->access.request;

    if (begun->started)
        begun->code = hipio_access_code(&begun->access, hipio_request_wait(request), request->text);
    begun->started = false;
    return begun->code;
}

int hipio_begun_end(struct hipio_driven *driven)
{
    struct hipio_begun *begun = driven->begun;
    int code;

    if (!begun)
        return MPI_SUCCESS;
    code = hipio_agree_end(driven->fd->comm, finish(begun), driven->fd->filename,
                           hipio_exchange_attend, driven);
    /* ROMIO hands out what stands there, also after an error. */
    hipio_mpierr_set_bytes(&driven->fd->split_status,
                           code == MPI_SUCCESS ? begun->access.request.done : 0);
    driven->begun = NULL;
    hipio_begun_destroy(begun);
    return code;
}

void hipio_begun_destroy(struct hipio_begun *begun)
{
    if (!begun)
        return;
    finish(begun);
    hipio_access_release(&begun->access);
    free(begun);
}
