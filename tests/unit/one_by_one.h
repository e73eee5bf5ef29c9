/* SPDX-License-Identifier: MIT */
/*
 * One by one: tests that each want a process of their own, with an environment of their own,
 * because what they load reads it once.
 */
#pragma once
#include <stddef.h>

struct one_test {
    const char *name;
    const char *environment; /* "A=1 B=2", or NULL */
    void (*run)(void **state);
};

/* Runs the tests named in argv, or all; returns how many failed. A test that leaves with 77 is told
 * as skipped; if all do, 77 is returned. */
int one_by_one(int argc, char **argv, const struct one_test *tests, size_t n);
