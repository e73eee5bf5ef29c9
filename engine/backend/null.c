/* SPDX-License-Identifier: MIT */
/*
 * Null: the template of a backend, and the meter of the engine's own overhead. It moves nothing and
 * says that it moved everything, so it is only ever used when a caller names it.
 */
#include "../backend.h"

static int score(const struct hipio_part *part)
{
    (void)part;
    return 0;
}

static int io(struct hipio_part *part)
{
    part->moved = part->length;
    return 0;
}

static bool eligible(const struct hipio_part *part, int error)
{
    (void)part;
    (void)error;
    return false;
}

const struct hipio_backend hipio_backend_null = {
    .name = "null",
    .kind = HIPIO_BACKEND_ON_DEMAND,
    .score = score,
    .io = io,
    .eligible = eligible,
    .share = hipio_backend_whole,
    .usable = hipio_backend_unconcerned,
};
