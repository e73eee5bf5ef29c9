/* SPDX-License-Identifier: MIT */
/*
 * Status: how the engine says what went wrong.
 *
 * Engine functions return 0 or a negative errno. The words that belong to it (which file, which
 * operation, why, what to do) are written once, where the fault was found, into the calling
 * thread's text; a request keeps a copy of its own, because it may have failed on another thread.
 */
#pragma once

#define HIPIO_TEXT_MAX 512

/* Keeps the text for `err` (a negative errno) in the calling thread and returns `err`, so that it
 * can stand in a return. */
int hipio_status_set(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The calling thread's last text; "" when there was none. Valid until the thread's next
 * hipio_status_set or _clear. */
const char *hipio_status_text(void);

void hipio_status_clear(void);
