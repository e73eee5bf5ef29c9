/* SPDX-License-Identifier: MIT */
/* What the hipsim tests share: the library loaded by name, checks that print both values, gates
 * that hold a stream up, and children whose death is the expected result. */
#pragma once

#include "../../hipsim/hip_api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hip {
    void *library;
    int major;
#define F(name) __typeof__(name) *name;
#include "functions.def"
#undef F
    long long (*counter)(const char *name);
};

extern struct hip hip;

struct test_case {
    const char *name;
    void (*run)(void);
};

/* main of every test program: `program MAJOR CASE` loads libamdhip64.so.MAJOR and runs the case. */
int harness_run(int argc, char **argv, const struct test_case *cases, size_t count);
void harness_load(int major);

void harness_equal(const char *file, int line, const char *what, long long is, long long want);
#define EQUAL(is, want) harness_equal(__FILE__, __LINE__, #is, (long long)(is), (long long)(want))
#define OK(call) EQUAL(call, 0)
#define TRUE(condition) EQUAL(!!(condition), 1)

/* Runs `body` in a child and answers the signal that ended it, or minus its exit status. The child
 * loads the library afresh: call this before the parent has touched a device. */
int harness_child(void (*body)(void));

/* A closed gate: work queued in the stream behind it waits until it is opened. */
struct gate {
    atomic_int reached, open;
};
void gate_close(struct gate *gate, void *stream);
void gate_open(struct gate *gate);
/* Waits until the stream stands at the gate. */
void gate_await(struct gate *gate);

/* Memory that others write without any order: the one place where tests may look too early. */
uint64_t peek(const volatile void *word);
void poke(volatile void *word, uint64_t value);

void sleep_ms(int ms);
double now_ms(void);
double cpu_ms(void);
void *device_alloc(size_t bytes);
void *pinned_alloc(size_t bytes);
