/* SPDX-License-Identifier: MIT */
/*
 * Device app: an application's side of a GPU runtime, for tests of the providers. HIP or CUDA, as
 * HIPIO_TEST_RUNTIME says, loaded when the test asks for it and not before.
 *
 * A call that fails ends the program with the runtime's code: a test can't go on without it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

bool app_is_cuda(void);
/* Loads the runtime, HIPIO_TEST_LIBRARY or its usual name. False: there is none. */
bool app_load(void);
/* The number of devices; 0 where the runtime finds none. Initialises it. */
int app_devices(void);
/* The runtime's function of that name, NULL where it has none. */
void *app_function(const char *name);

void app_set_device(int device);
int app_get_device(void);
/* What has to be the same after a call as before: the current device, or the current context. */
const void *app_current(void);
/* Leaves the calling thread without a current context (CUDA; nothing otherwise). */
void app_drop_current(void);

void *app_alloc(size_t bytes); /* on the current device */
void app_free(void *device);
void *app_alloc_pinned(size_t bytes);
void app_free_pinned(void *pinned);
void *app_alloc_managed(size_t bytes); /* NULL where the device has none */
void app_register(void *host, size_t bytes);
void app_unregister(void *host);
/* Copies and waits. */
void app_copy(void *to, const void *from, size_t bytes);

/* HIP: the thread's last error, without clearing it; CUDA has none: 0. */
int app_last_error(void);
/* HIP: makes a call that fails and leaves its code as the thread's last error, which it returns. */
int app_provoke_error(void);

/* Flags: 0 blocking, 1 non-blocking. */
void *app_create_stream(unsigned flags);
void app_destroy_stream(void *stream);

/* Work for a stream that takes a while and then sets the flag. It lives until that is done. */
struct app_nap {
    unsigned milliseconds;
    _Atomic bool *flag;
};
void app_queue_nap(void *stream, struct app_nap *nap);
