/* SPDX-License-Identifier: MIT */
/*
 * Uring, in a build without liburing: there is none, and that is said once.
 */
#include "log.h"
#include "storage/uring.h"
#include <errno.h>

int hipio_uring_move(int fd, enum hipio_op op, void *memory, int64_t offset, uint64_t length,
                     unsigned depth, uint64_t *moved)
{
    static bool told;

    (void)fd;
    (void)op;
    (void)memory;
    (void)offset;
    (void)length;
    (void)depth;
    *moved = 0;
    hipio_log_once(&told, HIPIO_LOG_INFO, "built without liburing: io_uring is not used");
    return -ENOTSUP;
}

void hipio_uring_shutdown(void)
{
}
