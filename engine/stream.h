/* SPDX-License-Identifier: MIT */
/*
 * Stream: the application's streams that hipio knows of.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct hipio_channel;

/*
 * The channel of a stream, which is made for a stream that has none: with `flags`, and a buffer as
 * the setting async_buffer_size says. The caller is inside until hipio_streams_leave. 0, or an
 * error with text.
 */
int hipio_streams_enter(void *handle, unsigned flags, struct hipio_channel **out);
void hipio_streams_leave(struct hipio_channel *channel);

/* Registers a stream that must have no channel yet: -EEXIST. */
int hipio_streams_register(void *handle, unsigned flags);
/* Forgets the stream. What is queued on it still runs; what belongs to it is freed now if nothing
 * is, and else by its own thread once the stream is past it. -ENOENT: not registered. */
int hipio_streams_deregister(void *handle);
/* Forgets all, and waits until everything is freed. */
void hipio_streams_shutdown(void);

/* The first error of the stream's operations since the last call, which is then forgotten; 0: none.
 * `text` may be NULL. -ENOENT: not registered. */
int hipio_streams_error(void *handle, char *text, size_t size);
