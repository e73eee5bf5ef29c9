/* SPDX-License-Identifier: MIT */
/*
 * Async rig: a file, GPU memory and a stream of the application (device_app.h), for tests of
 * operations that are queued on streams.
 */
#pragma once
#include "hipio.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An operation's parameters and result, as an application keeps them. */
struct async_call {
    size_t size;
    off_t file_offset;
    off_t buffer_offset;
    ssize_t done;
};

/* Loads the runtime and makes device 0 current; leaves with 77 where there is none. Returns the
 * number of devices. */
int async_rig_start(void);

/* A descriptor of a new, unlinked file of `size` bytes of pattern `seed`. */
int async_rig_file(uint64_t seed, uint64_t size);

/* Device memory of `size` bytes of pattern `seed`, or of 0xA5 where seed is 0. */
unsigned char *async_rig_memory(uint64_t seed, uint64_t size);
/* Sets all of it to 0xA5. */
void async_rig_poison(unsigned char *device, uint64_t size);

/* Fails the test unless bytes [at, at + n) are pattern `seed` from `position` on; or 0xA5. */
void async_rig_check_memory(const unsigned char *device, uint64_t at, uint64_t n, uint64_t seed,
                            uint64_t position);
void async_rig_check_poison(const unsigned char *device, uint64_t at, uint64_t n);
void async_rig_check_file(int fd, uint64_t at, uint64_t n, uint64_t seed, uint64_t position);

/* 0, or the runtime's error. */
int async_rig_synchronize(void *stream);
/* What a kernel of the application would do: sets `n` bytes, in the order of the stream. */
void async_rig_fill(void *stream, unsigned char *device, int value, size_t n);
/* Queues a host function of the application. */
void async_rig_call(void *stream, void (*function)(void *), void *argument);

/* A host function that does not return before the gate is opened. */
struct async_gate {
    _Atomic bool open;
};
void async_rig_close_gate(void *stream, struct async_gate *gate);

/* Fails the test with the words of an error. */
void async_rig_must(int status);
/* Registers the file, with calls rather than a mapping as its storage. */
struct hipio_handle *async_rig_open(int fd);
/* Either direction. */
int async_rig_queue(bool reads, struct hipio_handle *file, void *memory, struct async_call *call,
                    void *stream);
/* The operation is over and moved so many bytes, or ended with that error. */
void async_rig_expect(const struct async_call *call, ssize_t expected);

/* Bytes of a stream's buffer and of its slots, as they are in force. */
uint64_t async_rig_buffer(void);
uint64_t async_rig_slot(void);
