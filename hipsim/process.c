/* SPDX-License-Identifier: MIT */
/* Process and thread state, and the way in and out of every API call. */
#include "process.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "flavor.h"
#include "stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* One context for the room: flags that are set once and only read afterwards. */
static struct {
    pthread_once_t once;
    pthread_key_t key;
    atomic_bool initialized; /* CUDA: cuInit was called */
    atomic_bool used;        /* a device was touched: a fork from now on leaves a broken child */
    atomic_bool forked;
    atomic_bool finished;
} process = {.once = PTHREAD_ONCE_INIT};

static void end_thread(void *value)
{
    struct hipsim_thread *thread = value;

    for (int i = 0; i < HIPSIM_MAX_DEVICES; i++)
        if (thread->per_thread[i] && !atomic_load(&process.forked))
            hipsim_stream_forget(thread->per_thread[i]);
    free(thread);
}

/* The locks may be held by threads that do not exist in the child, so it touches none of them. */
static void enter_child(void)
{
    if (atomic_load(&process.used))
        atomic_store(&process.forked, true);
}

static void start(void)
{
    if (pthread_key_create(&process.key, end_thread) || pthread_atfork(NULL, NULL, enter_child))
        hipsim_error_die("cannot set up thread state");
}

/* Threads keep running: they may be inside the application's code. Only the report is written. */
__attribute__((destructor)) static void finish(void)
{
    if (atomic_load(&process.forked))
        return;
    if (atomic_load(&process.used))
        hipsim_counters_report();
    atomic_store(&process.finished, true);
}

struct hipsim_thread *hipsim_thread_get(void)
{
    struct hipsim_thread *thread;

    pthread_once(&process.once, start);
    thread = pthread_getspecific(process.key);
    if (thread)
        return thread;
    thread = calloc(1, sizeof(*thread));
    if (!thread || pthread_setspecific(process.key, thread))
        hipsim_error_die("cannot allocate thread state");
    return thread;
}

static int check_device(void)
{
    int device = hipsim_current_device();

    if (device < 0)
        return HIPSIM_INVALID_CONTEXT;
    if (atomic_load(&hipsim_device_get(device)->reset))
        return HIPSIM_CONTEXT_DESTROYED;
    return hipsim_device_sticky(device);
}

static int check_process(enum hipsim_need need)
{
    if (need == HIPSIM_NEED_NOTHING)
        return 0;
    if (atomic_load(&process.forked))
        return HIPSIM_NOT_INITIALIZED;
    if (atomic_load(&process.finished))
        return HIPSIM_DEINITIALIZED;
    if (hipsim_flavor.vendor == HIPSIM_CUDA && !atomic_load(&process.initialized))
        return HIPSIM_NOT_INITIALIZED;
    if (hipsim_settings_get()->devices == 0)
        return hipsim_flavor.vendor == HIPSIM_HIP && hipsim_flavor.major <= 5
                   ? HIPSIM_INVALID_DEVICE
                   : HIPSIM_NO_DEVICE;
    atomic_store(&process.used, true);
    return need == HIPSIM_NEED_DEVICE ? check_device() : 0;
}

int hipsim_enter(const char *name, enum hipsim_need need)
{
    struct hipsim_thread *thread = hipsim_thread_get();
    int rc;

    if (thread->in_host_function)
        hipsim_error_die("%s was called inside a host function; the real runtime may deadlock or "
                         "fail there",
                         name);
    rc = check_process(need);
    if (rc)
        return rc;
    thread->fault = hipsim_fault_next(name);
    if (thread->fault.action == HIPSIM_FAULT_STICKY)
        hipsim_device_break(hipsim_current_device(), thread->fault.code);
    if (thread->fault.action == HIPSIM_FAULT_STICKY || thread->fault.action == HIPSIM_FAULT_RETURN)
        return thread->fault.code;
    return 0;
}

int hipsim_leave(int rc)
{
    struct hipsim_thread *thread = hipsim_thread_get();

    thread->last_call = rc;
    /* Up to 6.4 every call overwrites the last error, from 7.0 only real failures do. */
    if (hipsim_flavor.major < 7 || (rc && rc != HIPSIM_NOT_READY))
        thread->last_error = rc;
    return rc;
}

void hipsim_process_init(void)
{
    atomic_store(&process.initialized, true);
}

bool hipsim_process_forked(void)
{
    return atomic_load(&process.forked);
}

int hipsim_current_device(void)
{
    struct hipsim_thread *thread = hipsim_thread_get();

    if (hipsim_flavor.vendor == HIPSIM_HIP)
        return thread->device;
    return thread->context_count ? thread->contexts[thread->context_count - 1] : -1;
}
