/* SPDX-License-Identifier: MIT */
/*
 * Uring, in a build without liburing: there is none, and that is said once.
 */
#include "log.h"
#include "storage/uring.h"
#include <errno.h>

int hipio_uring_move(const struct hipio_uring_trip *trip, uint64_t *moved)
{
    static bool told;

    (void)trip;
    *moved = 0;
    hipio_log_once(&told, HIPIO_LOG_INFO, "built without liburing: io_uring is not used");
    return -ENOTSUP;
}

void hipio_uring_shutdown(void)
{
}
