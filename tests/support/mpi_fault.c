/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a test program: MPI calls fail as mpi_fault_arm says. The error comes back as a
 * code, as from an MPI whose communicator has MPI_ERRORS_RETURN. With HIPIO_TEST_ANY_ORDER set,
 * PMPI_Testany names any of the requests that have ended, not the first.
 */
#include "mpi_fault.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS_MOST = 4096 };

static struct {
    MPI_Request *at[REQUESTS_MOST];
    unsigned n;
} posted;

static struct {
    const char *call;
    unsigned nth, times;
    unsigned calls, hits;
} fault;

void mpi_fault_arm(const char *call, unsigned nth, unsigned times)
{
    fault.call = call;
    fault.nth = nth;
    fault.times = times;
    fault.calls = fault.hits = 0;
    posted.n = 0;
}

unsigned mpi_fault_hits(void)
{
    return fault.hits;
}

unsigned mpi_fault_pending(void)
{
    unsigned pending = 0;

    for (unsigned i = 0; i < posted.n; i++)
        pending += *posted.at[i] != MPI_REQUEST_NULL;
    return pending;
}

/* The same request is posted again and again. */
static void remember(MPI_Request *request)
{
    for (unsigned i = 0; i < posted.n; i++) {
        if (posted.at[i] == request)
            return;
    }
    if (posted.n < REQUESTS_MOST)
        posted.at[posted.n++] = request;
}

/* Does this call fail? */
static int falls(const char *call)
{
    if (!fault.nth || strcmp(call, fault.call) != 0 || ++fault.calls < fault.nth ||
        fault.calls - fault.nth >= fault.times)
        return 0;
    fault.hits++;
    return 1;
}

static void *real(const char *call)
{
    return dlsym(RTLD_NEXT, call);
}

int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    static int (*next)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

    if (!next)
        *(void **)&next = real("PMPI_Isend");
    if (falls("PMPI_Isend"))
        return MPI_ERR_OTHER;
    remember(request);
    return next(buffer, count, type, rank, tag, comm, request);
}

int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    static int (*next)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

    if (!next)
        *(void **)&next = real("PMPI_Irecv");
    if (falls("PMPI_Irecv"))
        return MPI_ERR_OTHER;
    remember(request);
    return next(buffer, count, type, rank, tag, comm, request);
}

int PMPI_Allgather(const void *from, int count, MPI_Datatype type, void *to, int to_count,
                   MPI_Datatype to_type, MPI_Comm comm)
{
    static int (*next)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
    int rc;

    if (!next)
        *(void **)&next = real("PMPI_Allgather");
    rc = next(from, count, type, to, to_count, to_type, comm);
    return falls("PMPI_Allgather") ? MPI_ERR_OTHER : rc;
}

/* As PMPI_Testany, but of several that have ended any may come first. */
static int test_any_of(int count, MPI_Request request[], int *index, int *found, MPI_Status *status)
{
    static unsigned start;
    int rc = MPI_SUCCESS;

    start = start * 1103515245u + 12345u;
    *found = 1;
    *index = MPI_UNDEFINED;
    for (int i = 0; i < count; i++) {
        int at = (int)((start / 65536 + (unsigned)i) % (unsigned)count);
        if (request[at] == MPI_REQUEST_NULL)
            continue;
        rc = PMPI_Test(&request[at], found, status);
        if (*found || rc != MPI_SUCCESS) {
            *index = at;
            return rc;
        }
    }
    return rc;
}

int PMPI_Testany(int count, MPI_Request request[], int *index, int *found, MPI_Status *status)
{
    static int (*next)(int, MPI_Request[], int *, int *, MPI_Status *);
    int rc;

    if (!next)
        *(void **)&next =
            getenv("HIPIO_TEST_ANY_ORDER") ? (void *)&test_any_of : real("PMPI_Testany");
    rc = next(count, request, index, found, status);
    return *found && *index != MPI_UNDEFINED && falls("PMPI_Testany") ? MPI_ERR_TRUNCATE : rc;
}
