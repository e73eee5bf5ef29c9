/* SPDX-License-Identifier: MIT */
/*
 * Request: one movement of bytes between a file and memory of any kind. The engine's face.
 *
 * The caller owns the struct, fills the first part, and reads the second when the request is done.
 * Byte k of the request is the byte at packed position memory_start + k of the memory layout and at
 * file_start + k of the file layout.
 */
#pragma once
#include "device/device.h"
#include "extent.h"
#include "file.h"
#include "status.h"
#include <stdint.h>

enum hipio_op { HIPIO_READ, HIPIO_WRITE };

/*
 * Byte order change on the way (external32): the packed stream is a sequence of elements; `period`
 * bytes of pattern repeat, given as `n` groups of group[i].bytes bytes of elements of group[i].size
 * bytes each. Position 0 of the memory layout is the start of a period.
 */
struct hipio_swap {
    uint64_t period;
    uint64_t n;
    const struct hipio_swap_group {
        uint64_t bytes;
        uint32_t size;
    } * group;
};

struct hipio_backend;

struct hipio_request {
    /* Filled by the caller; everything pointed to must live until the request is done. */
    enum hipio_op op;
    struct hipio_file *file;
    void *base; /* memory offsets are relative to it; may lie outside any allocation */
    struct hipio_memory memory; /* what the bytes at `base` + layout are (hipio_device_classify) */
    const struct hipio_layout *memory_layout;
    uint64_t memory_start;
    const struct hipio_layout *file_layout; /* monotonic */
    int64_t file_base;                      /* file offsets are relative to it, bytes */
    uint64_t file_start;
    uint64_t length;                     /* bytes */
    const struct hipio_swap *swap;       /* NULL: bytes as they are */
    const struct hipio_backend *staging; /* NULL: the table's. Stands for every staging backend */
    unsigned sharers; /* processes of this machine that use the file at this time, this one among
                         them; 0: as many as the job has here (hipio_engine_set_neighbours) */

    /* Filled by the engine. */
    uint64_t
        done; /* bytes 0 .. done-1 have moved; a read that ends early has met the end of the file */
    int status;                /* 0 or the first error, negative errno */
    char text[HIPIO_TEXT_MAX]; /* words for the error */
    void *engine;              /* the engine's own; NULL before start */
};

/*
 * Runs the request and returns its status. Before the first GPU copy it waits for the application's
 * earlier GPU work as the file's settings `stream` and `sync` say. On return all bytes
 * counted in `done` are where they belong, and visible to any later GPU work. Errors: -EINVAL bad
 * arguments; -EBADF wrong access mode; -EFAULT memory that can't be served; -ENOMEM no staging
 * memory at all; otherwise what storage or the GPU runtime answered. Memory used is bounded by the
 * settings, whatever the length.
 */
int hipio_request_run(struct hipio_request *request);

/*
 * Starts the request in the background and returns 0, or an error, and then the request is done
 * with that status. The wait for the application's GPU work happens here, in the caller's thread;
 * with the setting `stream`, that stream's work is marked here and waited for in the background.
 * Storage and GPU work happen on the engine's threads.
 */
int hipio_request_start(struct hipio_request *request);
/* True once the request is done; never blocks. What the request wrote is visible to the caller
 * then. */
bool hipio_request_test(struct hipio_request *request);
/* Blocks until the request is done; returns its status. */
int hipio_request_wait(struct hipio_request *request);

/*
 * Waits for the application's earlier GPU work, as run does before its first copy, for a caller
 * that moves bytes of the request's memory by other means. 0, or a negative errno with text.
 */
int hipio_request_await(const struct hipio_request *request);

/* Joins the threads of background requests once all that were started are done (engine.c). */
void hipio_request_dismiss(void);
