/* SPDX-License-Identifier: MIT */
/* What every API call does on its way in and out: the state of the process (forked, exiting,
 * initialised) and of the calling thread (current device, last error, inside a host function). */
#pragma once

#include "fault.h"
#include "settings.h"

#include <stdbool.h>

struct hipsim_stream;

enum { HIPSIM_CONTEXT_DEPTH = 32 };

struct hipsim_thread {
    int device;     /* HIP: the current one */
    int last_error; /* HIP: what hipGetLastError answers */
    int last_call;  /* HIP: what hipExtGetLastError answers */
    bool in_host_function;
    struct hipsim_fault fault; /* of the call under way, when the operation itself shall fail */
    int contexts[HIPSIM_CONTEXT_DEPTH]; /* CUDA: stack of current devices, -1 for no context */
    int context_count;
    struct hipsim_stream *per_thread[HIPSIM_MAX_DEVICES];
};

enum hipsim_need {
    HIPSIM_NEED_NOTHING, /* works without a device */
    HIPSIM_NEED_INIT,    /* a device exists; CUDA: cuInit was called */
    HIPSIM_NEED_DEVICE,  /* and the current device works; CUDA: a context is current */
};

struct hipsim_thread *hipsim_thread_get(void);

/* First thing of every API function: `name` is its own. Non-zero is what the call must return. A
 * call from inside a host function ends the process. */
int hipsim_enter(const char *name, enum hipsim_need need);
/* Last thing of every API function: keeps the thread's last error as this version does. */
int hipsim_leave(int rc);

/* CUDA: cuInit was called. HIP initialises implicitly. */
void hipsim_process_init(void);
/* True in a child that was forked after the first use of a device: nothing works there. */
bool hipsim_process_forked(void);

/* The device that calls without a stream mean, or -1 (CUDA: no context). */
int hipsim_current_device(void);
