/* SPDX-License-Identifier: MIT */
/*
 * Pulse: the marked pages, one for each device.
 */
#include "pulse.h"
#include "log.h"
#include "status.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 4096u

/* No two pages of a process have the same one, and nothing that the application writes has any. */
struct mark {
    char words[16];
    const void *page;
    uint64_t number;
};

struct pulse {
    const struct hipio_device_ops *ops;
    int device;
    uint64_t now;
    bool tried; /* to allocate a page; it is tried once for each pulse */
    void *page; /* or NULL */
    struct mark mark;
    struct pulse *next;
};

static struct {
    pthread_mutex_t lock; /* guards the rest; held over the questions about pages */
    struct pulse *pulses;
    uint64_t marks;
} context = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held, as all below. NULL: no memory, and so nothing is known. */
static struct pulse *find(const struct hipio_device_ops *ops, int device)
{
    struct pulse *pulse = context.pulses;

    while (pulse && (pulse->ops != ops || pulse->device != device))
        pulse = pulse->next;
    if (pulse)
        return pulse;
    pulse = calloc(1, sizeof *pulse);
    if (!pulse)
        return NULL;
    pulse->ops = ops;
    pulse->device = device;
    pulse->now = 1;
    pulse->next = context.pulses;
    context.pulses = pulse;
    return pulse;
}

/* Where pinned memory is refused, resets are not noticed. */
static void begin(struct pulse *pulse)
{
    pulse->tried = true;
    if (pulse->ops->host_alloc(pulse->device, PAGE_BYTES, &pulse->page) < 0) {
        pulse->page = NULL;
        return;
    }
    pulse->mark = (struct mark){"hipio's pulse", pulse->page, ++context.marks};
    memcpy(pulse->page, &pulse->mark, sizeof pulse->mark);
}

/* The address may be nobody's now, or other memory. A runtime that fails, or has words for its
 * answer, has not said that the page is gone. */
static bool is_lost(const struct pulse *pulse)
{
    struct hipio_memory memory;

    hipio_status_clear();
    int rc = pulse->ops->classify(pulse->page, &memory);
    if (rc < 0 || (rc > 0 && hipio_status_text()[0] != '\0'))
        return false;
    return rc > 0 || memory.kind != HIPIO_MEMORY_PINNED ||
           memcmp(pulse->page, &pulse->mark, sizeof pulse->mark) != 0;
}

static uint64_t take(struct pulse *pulse)
{
    if (pulse->page && is_lost(pulse)) {
        pulse->page = NULL;
        pulse->tried = false;
        pulse->now++;
        hipio_log(HIPIO_LOG_INFO,
                  "%s device %d was reset: what hipio had on it is gone and is made anew",
                  pulse->ops->name, pulse->device);
    }
    if (!pulse->tried)
        begin(pulse);
    return pulse->now;
}

uint64_t hipio_pulse(const struct hipio_device_ops *ops, int device)
{
    if (ops == &hipio_device_host)
        return 0;
    pthread_mutex_lock(&context.lock);
    struct pulse *pulse = find(ops, device);
    const uint64_t now = pulse ? take(pulse) : 1;
    pthread_mutex_unlock(&context.lock);
    return now;
}

bool hipio_pulse_is_same(const struct hipio_device_ops *ops, int device, uint64_t made)
{
    return made == 0 || made == hipio_pulse(ops, device);
}

void hipio_pulse_shutdown(void)
{
    pthread_mutex_lock(&context.lock);
    for (struct pulse *pulse = context.pulses; pulse; pulse = pulse->next) {
        if (pulse->page && !is_lost(pulse))
            pulse->ops->host_free(pulse->device, pulse->page);
        pulse->page = NULL;
        pulse->tried = false;
    }
    pthread_mutex_unlock(&context.lock);
}
