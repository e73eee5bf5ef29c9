/* SPDX-License-Identifier: MIT */
/*
 * Handle: a file that the application registered with the C library. It has a descriptor of its
 * own, so that the application may close its own at any time, and lives until the last operation
 * that holds it is over, whenever it was deregistered.
 */
#pragma once
#include "file.h"

struct hipio_handle;

/* Duplicates the descriptor. 0; -EBADF; -EMFILE or -ENFILE; -ENOMEM. */
int hipio_handle_open(int fd, const char *name, struct hipio_handle **out);
void hipio_handle_hold(struct hipio_handle *handle);
/* The last one closes the descriptor. */
void hipio_handle_drop(struct hipio_handle *handle);
struct hipio_file *hipio_handle_file(const struct hipio_handle *handle);
