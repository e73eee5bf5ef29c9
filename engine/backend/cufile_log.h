/* SPDX-License-Identifier: MIT */
/*
 * CuFile log: keeps libcufile's log out of the user's folder, unless somebody has said where it is
 * to go.
 *
 * The library is told by an environment variable alone: of its parameters, 1.14 ignores the one for
 * the path. setenv is not for a library in a process with threads, because others may be reading
 * what it moves. Here nothing is moved: a copy of the environment with one more line takes the
 * place of the old array with one store, and the old one comes back the same way. Readers see one
 * or the other, both of which stay. If the program changes its environment meanwhile, the change
 * stays, and our line with it.
 */
#pragma once

struct hipio_cufile_log {
    char **before; /* NULL: nothing was diverted */
    char **with;
};

/* Before the library is loaded and opened, and after. One caller at a time. */
void hipio_cufile_log_divert(struct hipio_cufile_log *log);
void hipio_cufile_log_restore(struct hipio_cufile_log *log);
