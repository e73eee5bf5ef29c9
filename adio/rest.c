/* SPDX-License-Identifier: MIT */
/* Rest: first nothing, then an offer, then a pause. */
#include "rest.h"
#include <sched.h>
#include <time.h>

/*
 * Idle turns, a few microseconds, in which no one else is let in: what is on its way is likely to
 * be here sooner than a change of threads. Then the core is offered, for about as long as a message
 * takes. A core that is only offered comes back at once where nobody waits for it on that very
 * core, and then a worker that the kernel has put beside another rank's main thread waits in vain:
 * pauses gave half as much again where cores were short, and cost nothing where they were not.
 */
#define TURNS_BEFORE_YIELD 32
#define YIELD_NS INT64_C(200000)
#define PAUSE_NS 50000

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

bool hipio_rest(struct hipio_rest *rest, bool idle)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    rest->turns = idle ? rest->turns + 1 : 0;
    if (rest->turns < TURNS_BEFORE_YIELD)
        return false;
    if (rest->turns == TURNS_BEFORE_YIELD)
        rest->since = now();
    if (now() - rest->since < YIELD_NS) {
        sched_yield();
        return false;
    }
    nanosleep(&pause, NULL);
    return true;
}
