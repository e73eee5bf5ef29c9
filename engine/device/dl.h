/* SPDX-License-Identifier: MIT */
/*
 * Dl: the libraries of GPU runtimes. Finds them in the process, loads them if asked, fills tables
 * of their functions, and guards their first use against threads and fork.
 */
#pragma once
#include "status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One runtime. Static; the provider sets the first two fields, the rest starts as zero. */
struct hipio_dl {
    const char *const *names; /* file names, best first, NULL at the end */
    /*
     * Makes the open library usable: fills the table of functions and asks the runtime whether it
     * can work here. Called by hipio_dl_attach, by one thread at a time, until it returns 0.
     * -ENODEV: no, and asking again is in vain; any other negative errno: not now. With text.
     */
    int (*start)(struct hipio_dl *library);

    void *handle;        /* kept for the life of the process */
    char file[256];      /* where the library came from, for messages; valid in start and after */
    _Atomic bool seen;   /* one of the names was found in the process */
    _Atomic bool usable; /* start has returned 0; what it wrote is visible to who reads this */
    _Atomic uint64_t missed;     /* number of loads at which no name was in the process */
    _Atomic uint64_t refused;    /* number of loads at which the last attach failed for good */
    char reason[HIPIO_TEXT_MAX]; /* why; guarded by the attach lock */
};

/* One function: its name, where in the table its address goes, and whether the table is worth
 * nothing without it. */
struct hipio_dl_symbol {
    const char *name;
    size_t slot; /* offset in bytes */
    bool required;
};

/* True once the library is in the process, whoever loaded it. Keeps no reference. */
bool hipio_dl_present(struct hipio_dl *library);

/*
 * Makes the runtime usable if the process has its library already, or, with `load`, after loading
 * it. 0, at once when it was done before; -ENODEV with text. After a failure for good nothing is
 * tried again until the process has loaded another library. In a forked child of a process that
 * had called a runtime: -ENODEV, and the runtime is not touched.
 */
int hipio_dl_attach(struct hipio_dl *library, bool load);

/* True while the runtime may be called: attached, and not in a forked child. */
bool hipio_dl_usable(const struct hipio_dl *library);

/* For `start`: fills `table` from `n` symbols; optional ones that the library lacks become NULL. 0,
 * or -ENODEV with a text that names the required one that is missing. */
int hipio_dl_fill(const struct hipio_dl *library, const struct hipio_dl_symbol *symbols, size_t n,
                  void *table);
