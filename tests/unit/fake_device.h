/* SPDX-License-Identifier: MIT */
/*
 * Fake device: a device provider for unit tests, as lazy as the rules allow.
 *
 * Its memory lies at addresses that nobody can touch but its own copies. What is queued on a stream
 * happens when somebody waits for it and not before, so that a forgotten wait shows as wrong bytes
 * every time.
 */
#pragma once
#include "device/device.h"
#include <stdbool.h>
#include <stdint.h>

/* Which call is made to fail. */
enum fake_call {
    FAKE_HOST_ALLOC,
    FAKE_HOST_REGISTER,
    FAKE_STREAM_CREATE,
    FAKE_COPY,
    FAKE_EVENT_SYNCHRONIZE,
    FAKE_SYNCHRONIZE,
    FAKE_CALLS
};

struct fake_counters {
    uint64_t copies;
    uint64_t grids; /* 2D copies */
    uint64_t synchronized;
    uint64_t everything; /* of these, of all the device's work */
    int64_t streams;     /* alive */
    int64_t events;
    int64_t pinned;        /* bytes alive */
    int64_t registered;    /* bytes, ever */
    int64_t registrations; /* alive */
};

extern const struct hipio_device_ops fake_device;

/* Device memory of one of two devices, filled with 0xA5, and what it is. */
void *fake_alloc(int device, uint64_t bytes, struct hipio_memory *memory);
void fake_free(void *address);
/* Makes two allocations of one, the second `bytes` from its start; freed with the first. */
void fake_cut(void *address, uint64_t bytes);
/* Where the bytes of a fake address really are. */
unsigned char *fake_bytes(const void *address);

/* The n-th next call (from 0) fails with `error`, and so do `times` - 1 after it. */
void fake_fail(enum fake_call call, int n, int times, int error);
/* 2D copies and range questions can be refused with -ENOTSUP. */
void fake_refuse(bool grids, bool ranges);
struct fake_counters fake_counters(void);
/* Copies that are queued on all streams and have not been made. */
uint64_t fake_pending(void);
/* Forgets failures, refusals and the counts of calls. */
void fake_reset(void);
