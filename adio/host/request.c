/* SPDX-License-Identifier: MIT */
/*
 * Request: MPI requests of our own class, completed from MPI's progress.
 *
 * A worker thread never completes a request: below MPI_THREAD_MULTIPLE the library's request words
 * are plain stores, and a completion from another thread could be lost. The callback asks each
 * operation whether it is done and completes the request in a thread of MPI's.
 *
 * One lock guards the list and every request's place in it. It is held while an operation's `test`
 * and `finish` run, so these must not call this room. The callback only tries it: another thread
 * that has it does the same work.
 */
#include "ompi_config.h"

#include "host.h"
#include "ompi/file/file.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"
#include "request.h"
#include <pthread.h>
#include <sched.h>
#include <time.h>

struct host_request {
    ompi_request_t super;
    struct hipio_host_operation *operation; /* NULL: done */
    bool abandoned;                         /* the application freed it before it was done */
    struct host_request *previous, *next;
};
typedef struct host_request host_request_t;

static struct {
    pthread_mutex_t lock;
    bool registered;
    bool one_core;           /* a rank bound to one shares it with the threads that it waits for */
    unsigned long in_flight; /* read without the lock, as a hint */
    host_request_t *first;   /* all that live, in flight or complete */
} requests = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void link_request(host_request_t *request)
{
    request->previous = NULL;
    request->next = requests.first;
    if (requests.first)
        requests.first->previous = request;
    requests.first = request;
}

static void unlink_request(host_request_t *request)
{
    if (request->previous)
        request->previous->next = request->next;
    else
        requests.first = request->next;
    if (request->next)
        request->next->previous = request->previous;
}

/* MPI_Request_free, and what MPI_Wait and MPI_Test do with a complete request. */
static int free_request(ompi_request_t **handle)
{
    host_request_t *request = (host_request_t *)*handle;

    *handle = MPI_REQUEST_NULL;
    pthread_mutex_lock(&requests.lock);
    request->abandoned = request->operation != NULL;
    bool in_flight = request->abandoned;
    if (!in_flight)
        unlink_request(request);
    pthread_mutex_unlock(&requests.lock);
    if (!in_flight)
        OBJ_RELEASE(request);
    return OMPI_SUCCESS;
}

/* A transfer that has begun can't be taken back; MPI lets the cancel have no effect. */
static int cancel_request(ompi_request_t *request, int flag)
{
    (void)request;
    (void)flag;
    return OMPI_SUCCESS;
}

static void construct_request(host_request_t *request)
{
    OMPI_REQUEST_INIT(&request->super, false);
    request->super.req_type = OMPI_REQUEST_IO;
    request->super.req_status = ompi_status_empty;
    request->super.req_free = free_request;
    request->super.req_cancel = cancel_request;
    request->operation = NULL;
    request->abandoned = false;
}

static void destruct_request(host_request_t *request)
{
    OMPI_REQUEST_FINI(&request->super);
}

static OBJ_CLASS_INSTANCE(host_request_t, ompi_request_t, construct_request, destruct_request);

static void set_result(host_request_t *request, uint64_t bytes, int code)
{
    request->super.req_status._ucount = (size_t)bytes;
    request->super.req_status.MPI_ERROR = code;
}

/* With the lock held. The status is complete before anybody may see the request as complete. */
static void complete(host_request_t *request)
{
    uint64_t bytes = 0;
    int code = MPI_SUCCESS;

    request->operation->finish(request->operation, &bytes, &code);
    request->operation = NULL;
    __atomic_sub_fetch(&requests.in_flight, 1, __ATOMIC_RELAXED);
    set_result(request, bytes, code);
    if (request->abandoned) {
        unlink_request(request);
        ompi_request_complete(&request->super, false);
        OBJ_RELEASE(request);
    } else {
        ompi_request_complete(&request->super, true);
    }
}

/* With the lock held: completes what is done; returns how many. */
static int complete_done(void)
{
    int completed = 0;

    for (host_request_t *request = requests.first, *next; request; request = next) {
        next = request->next;
        if (request->operation && request->operation->test(request->operation)) {
            complete(request);
            completed++;
        }
    }
    return completed;
}

/*
 * MPI's progress calls this from every thread that waits for anything, perhaps with ROMIO's mutex
 * held: it neither blocks nor calls MPI.
 */
static int progress(void)
{
    if (__atomic_load_n(&requests.in_flight, __ATOMIC_RELAXED) == 0)
        return 0;
    if (pthread_mutex_trylock(&requests.lock) != 0)
        return 0;
    int completed = complete_done();
    pthread_mutex_unlock(&requests.lock);
    if (completed == 0 && requests.one_core)
        sched_yield();
    return completed;
}

static host_request_t *make(void *file)
{
    host_request_t *request = OBJ_NEW(host_request_t);

    if (request) {
        request->super.req_state = OMPI_REQUEST_ACTIVE;
        request->super.req_mpi_object.file = file;
    }
    return request;
}

static bool has_one_core(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

/* Registered once and kept: each change moves the array that other threads walk. */
static int register_progress(void)
{
    pthread_mutex_lock(&requests.lock);
    if (!requests.registered) {
        requests.one_core = has_one_core();
        requests.registered = opal_progress_register(progress) == OPAL_SUCCESS;
    }
    bool registered = requests.registered;
    pthread_mutex_unlock(&requests.lock);
    return registered ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int hipio_host_request_start(void *file, struct hipio_host_operation *operation,
                             MPI_Request *request)
{
    int rc = register_progress();
    host_request_t *made = rc == MPI_SUCCESS ? make(file) : NULL;

    if (!made)
        return MPI_ERR_NO_MEM;
    made->operation = operation;
    pthread_mutex_lock(&requests.lock);
    link_request(made);
    __atomic_add_fetch(&requests.in_flight, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&requests.lock);
    *request = &made->super;
    return MPI_SUCCESS;
}

int hipio_host_request_completed(void *file, uint64_t bytes, MPI_Request *request)
{
    host_request_t *made = make(file);

    if (!made)
        return MPI_ERR_NO_MEM;
    set_result(made, bytes, MPI_SUCCESS);
    ompi_request_complete(&made->super, false);
    pthread_mutex_lock(&requests.lock);
    link_request(made);
    pthread_mutex_unlock(&requests.lock);
    *request = &made->super;
    return MPI_SUCCESS;
}

/* With the lock held. */
static bool is_busy(const void *file)
{
    for (const host_request_t *request = requests.first; request; request = request->next) {
        if (request->operation && request->super.req_mpi_object.file == file)
            return true;
    }
    return false;
}

void hipio_host_requests_drain(void *file)
{
    const struct timespec pause = {.tv_nsec = 50000};
    bool busy;

    do {
        pthread_mutex_lock(&requests.lock);
        complete_done();
        busy = is_busy(file);
        pthread_mutex_unlock(&requests.lock);
        if (busy)
            nanosleep(&pause, NULL);
    } while (busy);
}

void hipio_request_forget_file(void *file)
{
    pthread_mutex_lock(&requests.lock);
    for (host_request_t *request = requests.first; request; request = request->next) {
        if (request->super.req_mpi_object.file == file)
            request->super.req_mpi_object.file = &ompi_mpi_file_null.file;
    }
    pthread_mutex_unlock(&requests.lock);
}

void hipio_request_close(void)
{
    pthread_mutex_lock(&requests.lock);
    bool registered = requests.registered;
    requests.registered = false;
    pthread_mutex_unlock(&requests.lock);
    if (registered)
        opal_progress_unregister(progress);
}
