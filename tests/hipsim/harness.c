/* SPDX-License-Identifier: MIT */
/* The harness of the hipsim tests. */
#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct hip hip;

void harness_equal(const char *file, int line, const char *what, long long is, long long want)
{
    if (is == want)
        return;
    fprintf(stderr, "%s:%d: %s is %lld, should be %lld\n", file, line, what, is, want);
    _exit(1);
}

void harness_load(int major)
{
    char name[64];

    snprintf(name, sizeof(name), "libamdhip64.so.%d", major);
    hip.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!hip.library) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
    hip.major = major;
#define F(name) *(void **)&hip.name = dlsym(hip.library, #name);
#include "functions.def"
#undef F
    *(void **)&hip.counter = dlsym(hip.library, "hipsim_counter");
    if (!hip.counter) {
        fprintf(stderr, "%s is not hipsim\n", name);
        _exit(1);
    }
}

int harness_run(int argc, char **argv, const struct test_case *cases, size_t count)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s MAJOR CASE\n", argv[0]);
        return 2;
    }
    harness_load(atoi(argv[1]));
    for (size_t i = 0; i < count; i++)
        if (!strcmp(cases[i].name, argv[2])) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "no case %s\n", argv[2]);
    return 2;
}

int harness_child(void (*body)(void))
{
    int status;
    pid_t pid = fork();

    TRUE(pid >= 0);
    if (!pid) {
        struct rlimit none = {0, 0};

        setrlimit(RLIMIT_CORE, &none);
        body();
        _exit(0);
    }
    EQUAL(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void wait_for_gate(void *stream, int status, void *data)
{
    struct gate *gate = data;

    (void)stream;
    (void)status;
    atomic_store(&gate->reached, 1);
    while (!atomic_load(&gate->open))
        sleep_ms(1);
}

void gate_close(struct gate *gate, void *stream)
{
    atomic_store(&gate->reached, 0);
    atomic_store(&gate->open, 0);
    OK(hip.hipStreamAddCallback(stream, wait_for_gate, gate, 0));
}

void gate_open(struct gate *gate)
{
    atomic_store(&gate->open, 1);
}

void gate_await(struct gate *gate)
{
    while (!atomic_load(&gate->reached))
        sleep_ms(1);
}

__attribute__((no_sanitize("thread"))) uint64_t peek(const volatile void *word)
{
    return *(const volatile uint64_t *)word;
}

void poke(volatile void *word, uint64_t value)
{
    __atomic_store_n((uint64_t *)(uintptr_t)word, value, __ATOMIC_RELEASE);
}

void sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&time, NULL);
}

static double clock_ms(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

double now_ms(void)
{
    return clock_ms(CLOCK_MONOTONIC);
}

double cpu_ms(void)
{
    return clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

void *device_alloc(size_t bytes)
{
    void *pointer = NULL;

    OK(hip.hipMalloc(&pointer, bytes));
    return pointer;
}

void *pinned_alloc(size_t bytes)
{
    void *pointer = NULL;

    OK(hip.hipHostMalloc(&pointer, bytes, 0));
    return pointer;
}
