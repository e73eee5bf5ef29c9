/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a test program: an MPI library that takes GPU memory in PMPI_Isend and PMPI_Irecv,
 * by staging it, and says so. With HIPIO_TEST_GPU_AWARE=0 it says that it does not; compiled with
 * SILENT it has no word for it. It copies on a stream of its own, so that it does not wait for the
 * application's work on the GPU: that is the caller's business.
 */
#include "mpi_gpu_aware.h"
#include "gpu.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STAGED_MOST = 64 };

/* A message whose bytes are in host memory for the time that it is on its way. */
static struct staged {
    MPI_Request *request; /* where it is posted; NULL: this entry is free */
    void *host, *device;
    bool receive;
} staged[STAGED_MOST];

static unsigned long long bytes_taken;

unsigned long long mpi_gpu_aware_bytes(void)
{
    return bytes_taken;
}

#ifndef SILENT
int MPIX_Query_rocm_support(void);
int MPIX_Query_cuda_support(void);

static int says_yes(void)
{
    const char *word = getenv("HIPIO_TEST_GPU_AWARE");

    return !word || atoi(word) != 0;
}

int MPIX_Query_rocm_support(void)
{
    return says_yes();
}

int MPIX_Query_cuda_support(void)
{
    return says_yes();
}
#endif

static void *real(const char *call)
{
    return dlsym(RTLD_NEXT, call);
}

/* The kernel can't read for this process what the CPU can't. */
static bool is_device(const void *memory)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)(size_t)memory, 1};

    return memory && process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1;
}

static void *stage(MPI_Request *request, void *device, size_t bytes, bool receive)
{
    struct staged *entry = staged;

    while (entry < staged + STAGED_MOST && entry->request)
        entry++;
    void *host = malloc(bytes);
    if (entry == staged + STAGED_MOST || !host) {
        fprintf(stderr, "test: no room to stage a message\n");
        exit(99);
    }
    *entry = (struct staged){request, host, device, receive};
    return host;
}

static void settle(const MPI_Request *request, const MPI_Status *status)
{
    for (struct staged *entry = staged; entry < staged + STAGED_MOST; entry++) {
        int bytes = 0;
        if (entry->request != request)
            continue;
        if (entry->receive)
            MPI_Get_count(status, MPI_BYTE, &bytes);
        if (bytes > 0)
            gpu_copy_other_stream(entry->device, entry->host, (size_t)bytes);
        bytes_taken += (unsigned long long)bytes;
        free(entry->host);
        entry->request = NULL;
    }
}

int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    static int (*next)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

    if (!next)
        *(void **)&next = real("PMPI_Isend");
    if (count > 0 && type == MPI_BYTE && is_device(buffer)) {
        void *host = stage(request, (void *)(size_t)buffer, (size_t)count, false);
        gpu_copy_other_stream(host, buffer, (size_t)count);
        bytes_taken += (unsigned long long)count;
        buffer = host;
    }
    return next(buffer, count, type, rank, tag, comm, request);
}

int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int rank, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    static int (*next)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

    if (!next)
        *(void **)&next = real("PMPI_Irecv");
    if (count > 0 && type == MPI_BYTE && is_device(buffer))
        buffer = stage(request, buffer, (size_t)count, true);
    return next(buffer, count, type, rank, tag, comm, request);
}

int PMPI_Testany(int count, MPI_Request request[], int *index, int *found, MPI_Status *status)
{
    static int (*next)(int, MPI_Request[], int *, int *, MPI_Status *);
    int rc;

    if (!next)
        *(void **)&next = real("PMPI_Testany");
    rc = next(count, request, index, found, status);
    if (*found && *index != MPI_UNDEFINED)
        settle(&request[*index], status);
    return rc;
}
