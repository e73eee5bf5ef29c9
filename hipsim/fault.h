/* SPDX-License-Identifier: MIT */
/* Makes chosen calls fail. README.md has the grammar of HIPSIM_FAIL. */
#pragma once

#include <stdint.h>

enum hipsim_fault_action {
    HIPSIM_FAULT_NONE,
    HIPSIM_FAULT_RETURN, /* the call returns `code` and does nothing */
    HIPSIM_FAULT_STICKY, /* as RETURN, and the device answers `code` from then on */
    HIPSIM_FAULT_LATE,   /* the call succeeds; the device breaks when it reaches the operation */
    HIPSIM_FAULT_ERRNO,  /* AIS: moves `bytes`, then fails with the errno `code` */
    HIPSIM_FAULT_SHORT,  /* AIS: moves at most `bytes` and reports success */
};

struct hipsim_fault {
    enum hipsim_fault_action action;
    int code;
    uint64_t bytes;
};

/* Counts one call of `function` and answers what shall happen to it. */
struct hipsim_fault hipsim_fault_next(const char *function);
