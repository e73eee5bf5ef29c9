/* SPDX-License-Identifier: MIT */
/* Stream operations that meet the host: host functions, callbacks, stream-ordered frees, and
 * waiting for and writing memory values. */
#pragma once

#include <stdint.h>

struct hipsim_stream;

/* `function` runs on another thread once the stream gets there; skipped on a broken device. */
int hipsim_hostcall_function(struct hipsim_stream *stream, void (*function)(void *), void *data);
/* The callback form gets the stream and the device's error and runs on a broken device too. */
int hipsim_hostcall_callback(struct hipsim_stream *stream, void *handle,
                             void (*callback)(void *stream, int status, void *data), void *data);
/* Frees device memory once the stream gets there. */
int hipsim_hostcall_free(struct hipsim_stream *stream, void *pointer);

enum hipsim_compare { HIPSIM_WAIT_GEQ, HIPSIM_WAIT_EQ, HIPSIM_WAIT_AND, HIPSIM_WAIT_NOR };

struct hipsim_value {
    void *pointer;
    uint64_t value, mask;
    unsigned bytes; /* 4 or 8 */
    unsigned flags; /* enum hipsim_compare */
};

int hipsim_hostcall_wait_value(struct hipsim_stream *stream, const struct hipsim_value *value);
int hipsim_hostcall_write_value(struct hipsim_stream *stream, const struct hipsim_value *value);
