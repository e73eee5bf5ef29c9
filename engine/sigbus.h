/* SPDX-License-Identifier: MIT */
/*
 * Sigbus: copies to and from a file's mapping that answer an error where the page can't be had,
 * because another process has truncated the file or its disk is full, instead of ending the process
 * by SIGBUS.
 *
 * The handler is in force only while a thread is between enter and leave. A SIGBUS that is not of
 * such a copy is passed on to whatever handler it has displaced, in that one's own terms. If the
 * application replaces the handler at such a moment, it keeps the signal: from then on enter
 * refuses, because what replaced ours may call it.
 */
#pragma once
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* One thread's stay, on its stack. The members are the room's own. */
struct hipio_sigbus {
    sigjmp_buf landing;
    sigset_t mask; /* the thread's, as it was */
    volatile uintptr_t low;
    volatile uintptr_t high; /* a fault in [low, high) is the copy's; 0: no copy is on its way */
    unsigned seat;
};

/* 0; -EBUSY without text: there is no protection to be had, the mapping must not be touched. */
int hipio_sigbus_enter(struct hipio_sigbus *self);
void hipio_sigbus_leave(struct hipio_sigbus *self);

/*
 * memcpy, where the n bytes at `mapped` (which is `to` or `from`) are of a file's mapping. 0, or
 * -EFAULT without text: a page is not to be had, and any part of the bytes has been copied.
 */
int hipio_sigbus_copy(struct hipio_sigbus *self, void *to, const void *from, size_t n,
                      const void *mapped);
