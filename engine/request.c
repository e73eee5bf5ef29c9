/* SPDX-License-Identifier: MIT */
/*
 * Request: checks, waits for the application's GPU work, and carries a request here or in the
 * background.
 */
#include "request.h"
#include "backend.h"
#include "buffer.h"
#include "engine.h"
#include "order.h"
#include "stats.h"
#include "swap.h"
#include "workers.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No object lives in the first page, whatever base and offset add up to it. */
#define LOWEST_ADDRESS 4096

/* What request->engine points to while the request is in the background, and afterwards. */
static char in_flight;
static char landed;

static struct hipio_workers crew = HIPIO_WORKERS_INIT("hipio-async");

static struct {
    pthread_mutex_t lock; /* held while a request becomes `landed` */
    pthread_cond_t change;
} landing = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static unsigned long long ull(uint64_t value)
{
    return value;
}

static int check_arguments(const struct hipio_request *request)
{
    if (request->op != HIPIO_READ && request->op != HIPIO_WRITE)
        return hipio_status_set(-EINVAL, "request: operation %d is neither read nor write",
                                (int)request->op);
    if (!request->file)
        return hipio_status_set(-EINVAL, "request: no file");
    if (!request->memory_layout || !request->file_layout)
        return hipio_status_set(-EINVAL, "%s: request without a %s layout",
                                hipio_file_name(request->file),
                                request->file_layout ? "memory" : "file");
    if (!request->memory.ops)
        return hipio_status_set(-EINVAL, "%s: request whose memory was not classified",
                                hipio_file_name(request->file));
    return 0;
}

static int check_access(const struct hipio_request *request)
{
    bool reads = request->op == HIPIO_READ;

    if (hipio_file_access(request->file) & (reads ? HIPIO_ACCESS_READ : HIPIO_ACCESS_WRITE))
        return 0;
    return hipio_status_set(-EBADF, "%s: not open for %s", hipio_file_name(request->file),
                            reads ? "reading" : "writing");
}

static int check_length(const struct hipio_request *request, const char *what,
                        const struct hipio_layout *layout, uint64_t start)
{
    uint64_t size = hipio_layout_size(layout);

    if (start <= size && request->length <= size - start)
        return 0;
    return hipio_status_set(
        -EINVAL, "%s: %llu bytes from %llu on leave the %s layout of %llu bytes",
        hipio_file_name(request->file), ull(request->length), ull(start), what, ull(size));
}

static int check_file_offsets(const struct hipio_request *request)
{
    int64_t low, high, sum;
    const char *name = hipio_file_name(request->file);

    if (!hipio_layout_is_monotonic(request->file_layout))
        return hipio_status_set(-EINVAL, "%s: file offsets fall or overlap along the request",
                                name);
    hipio_layout_bounds(request->file_layout, request->file_start, request->length, &low, &high);
    if (__builtin_add_overflow(request->file_base, low, &sum) || sum < 0)
        return hipio_status_set(-EINVAL, "%s: negative file offset (%lld + %lld)", name,
                                (long long)request->file_base, (long long)low);
    if (__builtin_add_overflow(request->file_base, high, &sum))
        return hipio_status_set(-EINVAL, "%s: file offset beyond 63 bits (%lld + %lld)", name,
                                (long long)request->file_base, (long long)high);
    return 0;
}

/* base + offset, or false where that leaves the address space. */
static bool address_of(const void *base, int64_t offset, uintptr_t *out)
{
    uintptr_t start = (uintptr_t)base;

    if (offset < 0)
        return !__builtin_sub_overflow(start, (uintptr_t)0 - (uintptr_t)offset, out);
    return !__builtin_add_overflow(start, (uintptr_t)offset, out);
}

static int check_memory(const struct hipio_request *request)
{
    const char *name = hipio_file_name(request->file);
    char why[HIPIO_TEXT_MAX / 2];
    uintptr_t first, end;
    int64_t low, high;

    hipio_layout_bounds(request->memory_layout, request->memory_start, request->length, &low,
                        &high);
    if (!address_of(request->base, low, &first) || !address_of(request->base, high, &end))
        return hipio_status_set(-EINVAL, "%s: buffer %p with offsets %lld to %lld leaves memory",
                                name, request->base, (long long)low, (long long)high);
    if (first < LOWEST_ADDRESS)
        return hipio_status_set(-EFAULT, "%s: buffer is NULL (%p with offset %lld), %llu bytes",
                                name, request->base, (long long)low, ull(request->length));
    if (request->memory.kind == HIPIO_MEMORY_INVALID) {
        hipio_device_explain((const void *)first, why, sizeof why);
        return hipio_status_set(-EFAULT, "%s: buffer %p can't be served: %s", name, (void *)first,
                                why);
    }
    return 0;
}

static int check_swap(const struct hipio_request *request)
{
    const struct hipio_swap *swap = request->swap;
    const char *name = hipio_file_name(request->file);

    if (!swap)
        return 0;
    if (!hipio_swap_valid(swap))
        return hipio_status_set(-EINVAL, "%s: byte order pattern does not fill its period of %llu",
                                name, ull(swap->period));
    uint64_t end = request->memory_start + request->length;
    if (hipio_swap_align(swap, request->memory_start) != request->memory_start ||
        hipio_swap_align(swap, end) != end)
        return hipio_status_set(-EINVAL,
                                "%s: a byte order change can't begin or end inside an element "
                                "(packed bytes %llu to %llu)",
                                name, ull(request->memory_start), ull(end));
    return 0;
}

static int validate(const struct hipio_request *request)
{
    int status = check_arguments(request);
    if (status == 0)
        status = check_access(request);
    if (status == 0)
        status = check_length(request, "memory", request->memory_layout, request->memory_start);
    if (status == 0)
        status = check_length(request, "file", request->file_layout, request->file_start);
    if (status == 0)
        status = check_file_offsets(request);
    if (status == 0)
        status = check_memory(request);
    if (status == 0)
        status = check_swap(request);
    if (status == 0)
        status = hipio_buffer_check(request);
    return status;
}

static void clear_result(struct hipio_request *request)
{
    request->done = 0;
    request->status = 0;
    request->text[0] = '\0';
}

/* Ends a request that never got to a backend. */
static int fail(struct hipio_request *request, int status)
{
    request->status = status;
    snprintf(request->text, sizeof request->text, "%s", hipio_status_text());
    hipio_stats_add(HIPIO_COUNT_requests, 1);
    hipio_stats_add(HIPIO_COUNT_failed, 1);
    return status;
}

/* Inside the engine: checks the request and gives it its place behind the application's work. */
static int admit(const struct hipio_request *request, struct hipio_order *order)
{
    int status = validate(request);

    return status < 0 ? status : hipio_order_mark(request, order);
}

int hipio_request_run(struct hipio_request *request)
{
    struct hipio_order order;

    clear_result(request);
    if (request->length == 0)
        return 0;
    int status = hipio_engine_enter();
    if (status < 0)
        return fail(request, status);
    status = admit(request, &order);
    if (status == 0)
        status = hipio_order_wait(&order);
    if (status < 0) {
        fail(request, status);
    } else {
        hipio_file_hold(request->file);
        status = hipio_backend_run(request, NULL, 0);
        hipio_file_drop(request->file);
    }
    hipio_engine_leave();
    return status;
}

int hipio_request_await(const struct hipio_request *request)
{
    struct hipio_order order;

    int status = hipio_engine_enter();
    if (status < 0)
        return status;
    status = hipio_order_mark(request, &order);
    if (status == 0)
        status = hipio_order_wait(&order);
    hipio_engine_leave();
    return status;
}

struct flight {
    struct hipio_job job; /* first, so that the job is the flight */
    struct hipio_request *request;
    struct hipio_order order;
};

/* The store comes last: from then on the caller may reuse or free the request. */
static void land(struct hipio_request *request)
{
    pthread_mutex_lock(&landing.lock);
    __atomic_store_n(&request->engine, (void *)&landed, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&landing.change);
    pthread_mutex_unlock(&landing.lock);
}

static void fly(struct hipio_job *job)
{
    struct flight *flight = (struct flight *)job;
    struct hipio_request *request = flight->request;
    struct hipio_order order = flight->order;

    free(flight);
    int status = hipio_engine_enter();
    if (status < 0) {
        fail(request, status);
    } else {
        status = hipio_order_wait(&order);
        if (status < 0)
            fail(request, status);
        else
            hipio_backend_run(request, NULL, 0);
        hipio_engine_leave();
    }
    hipio_file_drop(request->file);
    land(request);
}

/* Hands a checked request to the crew. Where no thread can be had at all, the caller is the thread:
 * the request is done when this returns. */
static int launch(struct hipio_request *request, struct hipio_order *order)
{
    struct flight *flight = malloc(sizeof *flight);
    if (!flight) {
        hipio_order_wait(order);
        return hipio_status_set(-ENOMEM, "%s: no memory to start a request in the background",
                                hipio_file_name(request->file));
    }
    *flight = (struct flight){.job.run = fly, .request = request, .order = *order};
    __atomic_store_n(&request->engine, (void *)&in_flight, __ATOMIC_RELAXED);
    hipio_file_hold(request->file);
    hipio_stats_add(HIPIO_COUNT_background, 1);
    unsigned threads = (unsigned)hipio_file_tunables(request->file)->async_threads;
    if (hipio_workers_submit(&crew, &flight->job, threads) < 0)
        fly(&flight->job);
    return 0;
}

int hipio_request_start(struct hipio_request *request)
{
    struct hipio_order order;

    clear_result(request);
    request->engine = &landed;
    if (request->length == 0)
        return 0;
    int status = hipio_engine_enter();
    if (status < 0)
        return fail(request, status);
    status = admit(request, &order);
    hipio_engine_leave();
    if (status == 0)
        status = launch(request, &order);
    return status < 0 ? fail(request, status) : 0;
}

static bool is_flying(const struct hipio_request *request)
{
    return __atomic_load_n(&request->engine, __ATOMIC_ACQUIRE) == (void *)&in_flight;
}

/* In a forked child nobody carries the parent's requests on. */
static void strand(struct hipio_request *request)
{
    request->status = hipio_status_set(-ENOTSUP, "the request was started before the process was "
                                                 "forked: only the parent can wait for it");
    snprintf(request->text, sizeof request->text, "%s", hipio_status_text());
    request->engine = &landed;
}

bool hipio_request_test(struct hipio_request *request)
{
    if (!is_flying(request))
        return true;
    if (hipio_engine_usable())
        return false;
    strand(request);
    return true;
}

int hipio_request_wait(struct hipio_request *request)
{
    if (is_flying(request) && !hipio_engine_usable())
        strand(request);
    if (is_flying(request)) {
        pthread_mutex_lock(&landing.lock);
        while (is_flying(request))
            pthread_cond_wait(&landing.change, &landing.lock);
        pthread_mutex_unlock(&landing.lock);
    }
    return request->status;
}

void hipio_request_dismiss(void)
{
    hipio_workers_dismiss(&crew);
}
