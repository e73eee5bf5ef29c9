/* SPDX-License-Identifier: MIT */
/*
 * Storage: moves bytes between host memory and a file. Listed in table.def; plan.c says which one a
 * request uses.
 *
 * Retries after EINTR and after short transfers, obeys the kernel's limit per call; a read that
 * returns 0 has met the end of the file.
 */
#pragma once
#include "file.h"
#include "request.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* Linux moves at most this many bytes in one read or write call (INT_MAX rounded down to a page).
 */
#define HIPIO_STORAGE_CALL_MAX 0x7ffff000u

struct hipio_storage {
    const char *name;
    /*
     * Moves up to `length` bytes between `buffer` (packed) and the file bytes that `cursor` names
     * (+ base), and moves the cursor past them. *moved is exact, also on error. Read: 0 with *moved
     * < length means the end of the file. Write: 0 means all. Negative errno otherwise.
     */
    int (*packed)(struct hipio_file *file, enum hipio_op op, void *buffer,
                  struct hipio_cursor *cursor, int64_t base, uint64_t length, uint64_t *moved);
    /* The same between one contiguous range of the file and the memory pieces of `iov` (n <=
     * IOV_MAX). */
    int (*vector)(struct hipio_file *file, enum hipio_op op, const struct iovec *iov, int n,
                  int64_t offset, uint64_t *moved);
};

extern const struct hipio_storage hipio_storage_buffered;
extern const struct hipio_storage hipio_storage_direct;
extern const struct hipio_storage hipio_storage_mapped;
extern const struct hipio_storage hipio_storage_window;

/* Which one serves this file; `mapped`: as plan.h says. A file that was opened with O_DIRECT, or
 * whose settings ask for it or for io_uring, is served by `direct` in any case. */
const struct hipio_storage *hipio_storage_for(const struct hipio_file *file, bool mapped);

/* Does `direct` carry what is aligned past the page cache for this file, if O_DIRECT can be had? */
bool hipio_storage_is_direct(const struct hipio_file *file);
