/* SPDX-License-Identifier: MIT */
/* Request: what the component does with the MPI requests that host.h gives out. */
#pragma once

/* Requests of the file that the application still holds no longer name it: it is about to go. */
void hipio_request_forget_file(void *file);

/* Takes the progress callback away, before the component is unloaded. */
void hipio_request_close(void);
