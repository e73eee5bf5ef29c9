/* SPDX-License-Identifier: MIT */
/*
 * Access: one MPI data access, from ROMIO's arguments to an engine request and back.
 */
#pragma once
#include "driver.h"
#include "engine/request.h"

/* The arguments of a table member. `absolute`: offset and pointer mean bytes of the file, past the
 * view (contiguous members). */
struct hipio_call {
    enum hipio_op op;
    void *buffer;
    int count;
    MPI_Datatype type;
    int pointer;
    int64_t offset;
    bool absolute;
};

struct hipio_access {
    struct hipio_driven *driven;
    struct hipio_call call;
    uint64_t bytes;    /* asked for */
    uint64_t position; /* in the view; 0 for absolute accesses */
    bool contiguous;   /* in memory and in the file */
    struct hipio_layout *memory_layout, *file_layout;
    struct hipio_swap *swap;
    struct hipio_request request;
    int lock_fd; /* descriptor of a byte-range lock that is held, or -1 */
    int64_t lock_low, lock_high;
};

/* Bytes asked for, or a negative errno (overflow). */
int hipio_call_bytes(const struct hipio_call *call, uint64_t *bytes);
/* What the buffer is, asked at the first byte that the access touches. Nothing is asked for an
 * empty access. 0 or negative errno with text. */
int hipio_call_memory(const struct hipio_call *call, struct hipio_memory *memory);

/* True: the datatype has a lower bound other than 0, or data below its address, by which ROMIO as
 * shipped displaces the data. */
bool hipio_call_is_displaced(const struct hipio_call *call);

/* ROMIO's own collective, in which no access fails; what one met is returned at its end. An MPI
 * code. */
int hipio_call_lower_collective(struct hipio_driven *driven, const struct hipio_call *call);

/*
 * Makes the request ready but for its file. Always leaves an access that hipio_access_release
 * takes. 0 or negative errno with text.
 */
int hipio_access_prepare(struct hipio_driven *driven, const struct hipio_call *call,
                         const struct hipio_memory *memory, struct hipio_access *access);
/* In atomic mode, locks the range of the file that the access spans, where the file system can. */
int hipio_access_lock(struct hipio_access *access);
void hipio_access_unlock(struct hipio_access *access);

/* An MPI code for `err`, whose text names file, operation and place. `words`: the cause; NULL: the
 * thread's status text. */
int hipio_access_code(const struct hipio_access *access, int err, const char *words);
void hipio_access_release(struct hipio_access *access);

/* Moves the individual pointer past an access of which `done` bytes were moved; nothing for
 * explicit offsets. */
void hipio_access_advance(const struct hipio_access *access, uint64_t done);

/* One past the last byte of the file that the access names; 0 for an empty one. */
int64_t hipio_access_end(const struct hipio_access *access);

/*
 * Before ROMIO's own strided or collective write past the end of the file: makes the file as long
 * as this access will, by a zero at the last byte that it names. ROMIO's read-modify-write would
 * else fill the holes with stale memory.
 */
void hipio_access_grow(struct hipio_access *access);

/*
 * Opens the file where that was deferred, runs the request (locked in atomic mode) and returns an
 * MPI code; request.done says how far it came.
 */
int hipio_access_run(struct hipio_access *access);
