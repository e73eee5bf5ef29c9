/* SPDX-License-Identifier: MIT */
/* The counters and their report. */
#include "counters.h"

#include "error.h"
#include "flavor.h"
#include "settings.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
#define COUNTER(name, meaning) #name,
#include "counters.def"
#undef COUNTER
};

static _Atomic int64_t values[HIPSIM_COUNT_MAX];

void hipsim_counters_add(enum hipsim_counter_id id, int64_t amount)
{
    atomic_fetch_add_explicit(&values[id], amount, memory_order_relaxed);
}

void hipsim_counters_add_peak(enum hipsim_counter_id id, enum hipsim_counter_id peak,
                              int64_t amount)
{
    int64_t now = atomic_fetch_add(&values[id], amount) + amount;
    int64_t seen = atomic_load(&values[peak]);

    while (now > seen && !atomic_compare_exchange_weak(&values[peak], &seen, now))
        ;
}

long long hipsim_counter(const char *name)
{
    for (int i = 0; i < HIPSIM_COUNT_MAX; i++)
        if (!strcmp(name, names[i]))
            return atomic_load(&values[i]);
    return -1;
}

void hipsim_counters_report(void)
{
    const struct hipsim_settings *settings = hipsim_settings_get();
    char text[4096];
    size_t used;
    int fd = STDERR_FILENO;

    if (!settings->stats || !*settings->stats)
        return;
    used = (size_t)snprintf(text, sizeof(text), "hipsim %s pid %ld rank %d\n",
                            hipsim_flavor.library, (long)getpid(), settings->rank);
    for (int i = 0; i < HIPSIM_COUNT_MAX && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %lld\n", names[i],
                                 (long long)atomic_load(&values[i]));
    if (used > sizeof(text))
        used = sizeof(text);
    if (strcmp(settings->stats, "1"))
        fd = open(settings->stats, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    /* One write, so that the reports of several processes do not mix. */
    if (fd < 0 || write(fd, text, used) != (ssize_t)used)
        fprintf(stderr, "hipsim: cannot write the report to %s\n", settings->stats);
    if (fd > STDERR_FILENO)
        close(fd);
}
