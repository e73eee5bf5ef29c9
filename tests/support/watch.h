/* SPDX-License-Identifier: MIT */
/*
 * Watch: makes a crash or a hang of a test program say where it happened.
 *
 * A fatal signal prints the rank, what the program was doing, the address and the stack, and then
 * ends the process. So does a deadline that passes. Call watch_start after MPI_Init, which installs
 * handlers of its own.
 */
#pragma once
#include <stddef.h>

void watch_start(int rank);

/* What the program does now, as a text that a failure shows. Gives it a fresh deadline:
 * HIPIO_TEST_DEADLINE seconds (default 60). */
void watch_doing(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A finer word within that, such as "call 1, waiting"; no fresh deadline. */
void watch_step(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Names a memory range, so that a crash on it says whose it is; NULL forgets all. */
void watch_memory(const char *name, const void *start, size_t bytes);
/* The last two texts, for messages. */
const char *watch_what(void);
