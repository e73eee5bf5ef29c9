/* SPDX-License-Identifier: MIT */
/*
 * Peer: what the paths that move bytes straight between a GPU's memory and a file have in common:
 * which parts they take, how a part is split, calls in a row, and what a failure means. A backend
 * of that kind is a struct hipio_peer and functions of one line that hand it on.
 */
#pragma once
#include "backend.h"
#include "direct.h"

struct hipio_peer {
    const struct hipio_backend *backend;
    const struct hipio_device_ops *ops; /* whose memory it moves */
    int score;                          /* where it takes a part at all */
    unsigned lanes;                     /* most calls at a time */
    /* Is the vendor's interface there, as far as is known? A test of memory, no more. */
    bool (*present)(const struct hipio_file *file);
    /* Makes the file ready, once per request, before the first call. 0; an error with text. */
    int (*prepare)(struct hipio_file *file, int device);
    /*
     * One call of the vendor's: up to `length` bytes between `address` and the file at `offset`,
     * all aligned. *moved is exact also on error. 0 with less: the end of the file or a short
     * transfer. Errors as hipio_peer_is_for_good and hipio_peer_is_eligible sort them.
     */
    int (*call)(const struct hipio_request *request, void *address, int64_t offset, uint64_t length,
                uint64_t *moved);
};

/* -ENODEV, -EREMOTEIO, -ENOTTY, -EOPNOTSUPP, -ENOSYS: the path can't serve this file. */
bool hipio_peer_is_for_good(int error);
/* These, and -EINVAL, -ENODATA (a transfer that ended early without a reason), -ENOMEM: another
 * path may mend it. What storage itself answers (-EIO, -ENOSPC, -EDQUOT, ...) is the caller's. */
bool hipio_peer_is_eligible(int error);

/* The backend's hooks. */
int hipio_peer_score(const struct hipio_peer *peer, const struct hipio_part *part);
uint64_t hipio_peer_share(const struct hipio_part *part, bool *own);
int hipio_peer_io(const struct hipio_peer *peer, struct hipio_part *part);
