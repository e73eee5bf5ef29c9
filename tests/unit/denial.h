/* SPDX-License-Identifier: MIT */
/*
 * Denial: what a container or an administrator may take away from a process, for good, and what the
 * process says about it. For tests that run one by one.
 */
#pragma once
#include <stdint.h>
#include <stdio.h>

/* Makes a system call answer with the error from now on (seccomp). Leaves with 77 where a filter
 * can't be had. */
void deny_call(unsigned number, unsigned error);

/* At most so many bytes may be locked from now on, also by root. */
void deny_locked_memory(uint64_t bytes);

/* Sends stderr to a file, and counts the lines there that have these words. */
FILE *catch_messages(void);
unsigned count_messages(FILE *file, const char *words);
