/* SPDX-License-Identifier: MIT */
/*
 * Device GPU: what the tests of a GPU provider share. Deciding whose memory an address is, is in
 * test_device_gpu.c; work on streams is in device_gpu_work.c.
 */
#pragma once
#include "device/device.h"
#include "device_app.h"
#include "status.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

extern const struct hipio_device_ops *provider;
extern int devices;

/* What every call of ours has to leave as it was. */
struct trace {
    const void *current;
};

struct trace take_trace(void);

/* The error first: up to ROCm 6 the next call, which asks what is current, would wipe it. */
#define assert_traceless(before)                                                                   \
    do {                                                                                           \
        assert_int_equal(app_last_error(), 0);                                                     \
        assert_ptr_equal(app_current(), (before).current);                                         \
    } while (0)

struct hipio_memory classify(const void *address);

#define assert_kind(address, expected)                                                             \
    assert_int_equal(classify(address).kind, HIPIO_MEMORY_##expected)

void copies_arrive(void **state);
void rows_arrive(void **state);
void events_order(void **state);
void synchronize_waits(void **state);
void own_streams_do_not_wait(void **state);
void kernels_see_pinned_memory(void **state);
void errors_leave_no_trace(void **state);
void pending_errors_survive(void **state);
void threads_work_side_by_side(void **state);
void own_contexts_are_followed(void **state);
void nothing_current_stays_so(void **state);
