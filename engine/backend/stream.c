/* SPDX-License-Identifier: MIT */
/*
 * Stream: staging for an operation that the application queued on a stream of its own, through that
 * stream's buffer. Takes the requests that name it and no others.
 */
#include "../async.h"
#include "../backend.h"

#define SCORE 10

static int score(const struct hipio_part *part)
{
    return part->request->staging == &hipio_backend_stream && !part->request->swap ? SCORE : -1;
}

static bool eligible(const struct hipio_part *part, int error)
{
    (void)part;
    (void)error;
    return false;
}

const struct hipio_backend hipio_backend_stream = {
    .name = "stream",
    .kind = HIPIO_BACKEND_STAGING,
    .score = score,
    .io = hipio_async_feed,
    .eligible = eligible,
    .share = hipio_backend_whole,
    .usable = hipio_backend_unconcerned,
};
