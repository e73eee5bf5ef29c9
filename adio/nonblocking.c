/* SPDX-License-Identifier: MIT */
/* Nonblocking: an access behind an MPI request. */
#include "nonblocking.h"
#include "engine/status.h"
#include "mpierr.h"
#include "view.h"
#include <errno.h>
#include <stdlib.h>

struct operation {
    struct hipio_host_operation host; /* first, so that a pointer to it is one to the operation */
    struct hipio_access access;
};

static bool test(struct hipio_host_operation *host)
{
    return hipio_request_test(&((struct operation *)host)->access.request);
}

static void finish(struct hipio_host_operation *host, uint64_t *bytes, int *code)
{
    struct operation *operation = (struct operation *)host;
    struct hipio_request *request = &operation->access.request;

    *code = hipio_access_code(&operation->access, hipio_request_wait(request), request->text);
    *bytes = request->done;
    hipio_access_release(&operation->access);
    free(operation);
}

/* Atomic mode holds a lock of the file while it works, so the work is done here. */
static int run_locked(struct operation *operation, MPI_Request *request)
{
    struct hipio_access *access = &operation->access;
    int code = hipio_access_run(access);

    if (code == MPI_SUCCESS)
        code = hipio_host_request_completed(access->driven->handle, access->request.done, request);
    hipio_access_release(access);
    free(operation);
    return code;
}

static int start(struct operation *operation, MPI_Request *request)
{
    struct hipio_access *access = &operation->access;
    int rc = hipio_driver_file(access->driven, &access->request.file), code;

    if (rc == 0)
        rc = hipio_request_start(&access->request);
    if (rc) {
        code = hipio_access_code(access, rc, access->request.text[0] ? access->request.text : NULL);
        hipio_access_release(access);
        free(operation);
        return code;
    }
    code = hipio_host_request_start(access->driven->handle, &operation->host, request);
    if (code != MPI_SUCCESS) {
        hipio_request_wait(&access->request);
        hipio_access_release(access);
        free(operation);
    }
    return code;
}

static int prepare(struct hipio_driven *driven, const struct hipio_call *call,
                   struct operation **out)
{
    struct operation *operation = calloc(1, sizeof *operation);
    struct hipio_access scratch = {.driven = driven, .call = *call, .lock_fd = -1};
    struct hipio_memory memory;
    int rc, code;

    if (!operation)
        return hipio_access_code(&scratch, -ENOMEM, "no memory for the request");
    operation->host = (struct hipio_host_operation){.test = test, .finish = finish};
    rc = hipio_call_memory(call, &memory);
    if (rc == 0)
        rc = hipio_access_prepare(driven, call, &memory, &operation->access);
    if (rc) {
        code = hipio_access_code(&scratch, rc, NULL);
        if (operation->access.driven)
            hipio_access_release(&operation->access);
        free(operation);
        return code;
    }
    *out = operation;
    return MPI_SUCCESS;
}

void hipio_nonblocking_start(hipio_romio_fd fd, const struct hipio_call *call, MPI_Request *request,
                             int *error)
{
    struct hipio_driven *driven = hipio_driver_find(fd);
    struct operation *operation = NULL;
    struct hipio_access advance;

    *request = MPI_REQUEST_NULL;
    *error = prepare(driven, call, &operation);
    if (*error != MPI_SUCCESS)
        return;
    /* Where the pointer goes is known now and must not wait for the data. */
    advance = operation->access;
    *error = fd->atomicity && !call->absolute ? run_locked(operation, request)
                                              : start(operation, request);
    if (*error == MPI_SUCCESS)
        hipio_access_advance(&advance, advance.bytes);
}
