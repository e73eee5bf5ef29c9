/* SPDX-License-Identifier: MIT */
/*
 * Watch: makes a crash or a hang of a test program say where it happened.
 */
#include "watch.h"
#include <execinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANGES = 16, FRAMES = 48, STACK = 64 << 10 };

static struct {
    int rank;
    unsigned deadline;
    char doing[512];
    char step[128];
    struct {
        const char *name;
        uintptr_t start;
        size_t bytes;
    } range[RANGES];
    int ranges;
} watch;

/* Says where an address lies. A handler may call it: it only reads. */
static const char *owner(const void *address)
{
    uintptr_t at = (uintptr_t)address;

    for (int i = 0; i < watch.ranges; i++)
        if (at >= watch.range[i].start && at - watch.range[i].start < watch.range[i].bytes)
            return watch.range[i].name;
    return "memory that the test does not know";
}

static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

    (void)ignored;
}

/* snprintf and backtrace are not safe in a handler by the letter, but the process is lost anyway;
 * the alarm ends it should they hang. */
static void fatal(int number, siginfo_t *info, void *context)
{
    void *frame[FRAMES];
    char text[1024];

    (void)context;
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    if (number == SIGALRM)
        snprintf(text, sizeof text, "\nHANG rank %d: no end after %u s: %s: %s\n", watch.rank,
                 watch.deadline, watch.doing, watch.step);
    else
        snprintf(text, sizeof text, "\nCRASH rank %d: %s on address %p (%s): %s: %s\n", watch.rank,
                 strsignal(number), info->si_addr, owner(info->si_addr), watch.doing, watch.step);
    say(text);
    backtrace_symbols_fd(frame, backtrace(frame, FRAMES), STDERR_FILENO);
    if (number == SIGALRM) {
        sleep(1); /* the other ranks' deadlines pass now too: let them speak */
        _exit(97);
    }
    signal(number, SIG_DFL);
    raise(number);
}

void watch_start(int rank)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    const char *deadline = getenv("HIPIO_TEST_DEADLINE");
    struct sigaction action = {.sa_sigaction = fatal,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    static char stack[STACK]; /* the ordinary one may be what ran out */
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    void *frame[1];

    watch.rank = rank;
    watch.deadline = deadline && atoi(deadline) > 0 ? (unsigned)atoi(deadline) : 60;
    sigaltstack(&other, NULL);
    backtrace(frame, 1); /* loads what it needs while loading is safe */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

void watch_doing(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(watch.doing, sizeof watch.doing, format, list);
    va_end(list);
    watch.step[0] = '\0';
    alarm(watch.deadline);
}

void watch_step(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(watch.step, sizeof watch.step, format, list);
    va_end(list);
}

void watch_memory(const char *name, const void *start, size_t bytes)
{
    if (!name) {
        watch.ranges = 0;
        return;
    }
    if (watch.ranges == RANGES)
        return;
    watch.range[watch.ranges].name = name;
    watch.range[watch.ranges].start = (uintptr_t)start;
    watch.range[watch.ranges].bytes = bytes;
    watch.ranges++;
}

const char *watch_what(void)
{
    return watch.doing;
}
