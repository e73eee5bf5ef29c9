/* SPDX-License-Identifier: MIT */
/*
 * Backend: a way to serve requests, and the one entry point that chooses, runs, falls back and
 * accounts.
 *
 * A backend exports one symbol, its struct hipio_backend, and has one line in backend/table.def,
 * which declares it here.
 */
#pragma once
#include "request.h"
#include <stdbool.h>
#include <stdint.h>

/*
 * The part of a request that a backend is asked to move: bytes [start, start + length) of it.
 * `moved` counts from `start`: bytes that are surely where they belong, without a gap.
 */
struct hipio_part {
    struct hipio_request *request;
    uint64_t start;
    uint64_t length;
    uint64_t moved;
};

/* What the settings `fastpath` and `fallback` mean by a backend. */
enum hipio_backend_kind {
    HIPIO_BACKEND_FAST_PATH, /* no staging copy */
    HIPIO_BACKEND_STAGING,   /* copies through staging memory: the fallback */
    HIPIO_BACKEND_ON_DEMAND  /* never chosen from the table, only as a named candidate */
};

struct hipio_backend {
    const char *name;
    enum hipio_backend_kind kind;
    /* How eagerly the backend takes this part: higher wins, ties by table order, negative refuses.
     * Pure: no I/O, no side effect. */
    int (*score)(const struct hipio_part *part);
    /*
     * Only the I/O: moves the part, keeps part->moved right, returns 0 or a negative errno with
     * text (status.h). A read may return 0 with moved < length: the file ends there. A write never
     * returns 0 with less than length.
     */
    int (*io)(struct hipio_part *part);
    /* May this failure, after part->moved bytes, be mended by another backend? About the failed
     * backend alone. */
    bool (*eligible)(const struct hipio_part *part, int error);
    /*
     * How many bytes from the part's start on belong together: the backend's own (*own true), or
     * such as it must leave to its fallback, the heads and tails between aligned bodies. At least 1
     * and at most part->length. Pure. hipio_backend_whole: the part as a whole.
     */
    uint64_t (*share)(const struct hipio_part *part, bool *own);
    /*
     * Could GPU memory and this file be served, as far as that can be told without I/O? May open
     * what the backend needs. 0; -ENODEV: the process uses no GPU that the backend is for; another
     * error: no, and the text says why.
     */
    int (*usable)(struct hipio_file *file);
};

#define BACKEND(name, fallback) extern const struct hipio_backend hipio_backend_##name;
#include "backend/table.def"
#undef BACKEND

/* For `share`: all of the part is the backend's own. */
uint64_t hipio_backend_whole(const struct hipio_part *part, bool *own);
/* For `usable`: the backend is for no GPU. */
int hipio_backend_unconcerned(struct hipio_file *file);

/*
 * Registers the backend that takes over what `backend` failed at. -EINVAL with text for NULL,
 * itself, one that closes a cycle, or a second one. Thread-safe.
 */
int hipio_backend_set_fallback(const struct hipio_backend *backend,
                               const struct hipio_backend *fallback);
const struct hipio_backend *hipio_backend_fallback(const struct hipio_backend *backend);

/* The table, in order of registration. */
size_t hipio_backend_count(void);
const struct hipio_backend *hipio_backend_at(size_t index);
/* Place of the backend in the table, for counters; SIZE_MAX when it is not there (a test's own). */
size_t hipio_backend_index(const struct hipio_backend *backend);

/*
 * Chooses the best backend for the whole request, runs it, falls back as registered, accounts each
 * byte of a file to who moved it, and leaves done, status and text in the request. `candidates`
 * NULL: the table. Returns the request's status. The request has been validated (request.c).
 *
 * A part that the chosen backend can't take as a whole is split: what is not its own share goes to
 * its fallback, which is no failure and no fallback event. Where the settings forbid the fallback,
 * the backend is not chosen for such a part.
 *
 * A read is cut at the end of the file first, where this machine surely knows the file's size, so
 * that few backends meet it by surprise. When a backend fails and the failure is eligible, its
 * fallback registered, allowed by the settings, and its score for the remaining part not negative,
 * the remaining part goes there. Otherwise status and text are the failure's own. When the fallback
 * fails too, the status is the fallback's (it is what stopped the request: a full disk, say) and
 * the text tells both. -ENOTSUP: no candidate that the settings allow takes the request.
 *
 * request->staging, where it is set, takes the place of every backend of kind STAGING.
 *
 * Settings: fallback=off and fastpath=force never fall back and never stage; fallback=force and
 * fastpath=off stage everything.
 */
int hipio_backend_run(struct hipio_request *request, const struct hipio_backend *const *candidates,
                      size_t n);

/* How many bytes of the request can be moved: a read ends at the end of the file. */
uint64_t hipio_backend_reachable(const struct hipio_request *request);

/* The backend that would begin the request, as far as that can be told without I/O; NULL: the
 * settings allow none that takes it. */
const struct hipio_backend *hipio_backend_preview(struct hipio_request *request);
