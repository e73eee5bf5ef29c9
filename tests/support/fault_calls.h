/* SPDX-License-Identifier: MIT */
/*
 * Faults of storage calls: pread, pwrite, preadv and pwritev behave as a difficult file system's.
 * Link the test with fault_calls.c and FAULT_CALLS_LINK_OPTIONS (tests/unit/CMakeLists.txt).
 */
#pragma once
#include <stddef.h>

struct fault_calls {
    size_t most;            /* bytes that one call moves; 0: as many as it is asked for */
    unsigned zero_at;       /* the n-th call (from 1) returns 0; 0: none */
    unsigned zero_from;     /* this call and all later ones return 0; 0: none */
    unsigned interrupt_at;  /* the n-th call fails with EINTR; 0: none */
    unsigned interrupt_for; /* and so many after it */
    unsigned error_at;      /* the n-th call fails with `error`; 0: none */
    int error;
    unsigned calls; /* counted */
    size_t largest; /* bytes asked for by one call */
};

extern struct fault_calls fault_calls;
