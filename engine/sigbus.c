/* SPDX-License-Identifier: MIT */
/*
 * Sigbus: the handler, who it works for, and whom it has displaced.
 *
 * The handler finds the thread's copy in a table of seats, not in thread-local storage, which a
 * library loaded at run time may have to allocate at its first touch.
 */
#include "sigbus.h"
#include "log.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define SEATS 128

/* `owner` is 0 or the thread's pthread_t. The thread fills in `self` before it takes the seat's
 * owner mark, and only that thread's handler follows it. */
static struct {
    atomic_bool taken;
    _Atomic uintptr_t owner;
    struct hipio_sigbus *self;
} seats[SEATS];

static struct {
    pthread_mutex_t lock; /* guards users, lost, current */
    unsigned users;       /* threads between enter and leave */
    bool lost;            /* the application has replaced our handler while it was in force */
    /* What we have displaced. The handler may read one copy while the other is filled. */
    unsigned current;
    struct sigaction copies[2];
    const struct sigaction *_Atomic displaced;
} door = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uintptr_t this_thread(void)
{
    return (uintptr_t)pthread_self();
}

/* ---- In the handler ---- */

/* As if the signal had been delivered to the displaced handler in the first place. */
static void call_displaced(const struct sigaction *old, int number, siginfo_t *info, void *context)
{
    sigset_t mask = old->sa_mask;
    sigset_t before;

    if (!(old->sa_flags & SA_NODEFER))
        sigaddset(&mask, number);
    if (old->sa_flags & (int)SA_RESETHAND)
        signal(number, SIG_DFL);
    pthread_sigmask(SIG_BLOCK, &mask, &before);
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(number, info, context);
    else
        old->sa_handler(number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Nobody handles it: the access is repeated with the default action in force and ends the process
 * where it happened. A signal that was sent is sent again. */
static void end_process(int number, const siginfo_t *info)
{
    signal(number, SIG_DFL);
    if (info->si_code <= 0)
        raise(number);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    const struct sigaction *old = atomic_load(&door.displaced);
    const bool plain = old && !(old->sa_flags & SA_SIGINFO);

    if (plain && old->sa_handler == SIG_IGN && info->si_code <= 0)
        return;
    if (!old || (plain && (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)))
        end_process(number, info);
    else
        call_displaced(old, number, info, context);
}

static void handle(int number, siginfo_t *info, void *context)
{
    const uintptr_t thread = this_thread();
    const uintptr_t at = (uintptr_t)info->si_addr;

    for (unsigned i = 0; i < SEATS && info->si_code > 0; i++) {
        if (atomic_load_explicit(&seats[i].owner, memory_order_relaxed) != thread)
            continue;
        struct hipio_sigbus *self = seats[i].self;
        if (at >= self->low && at < self->high) {
            self->high = 0;
            siglongjmp(self->landing, 1);
        }
    }
    pass_on(number, info, context);
}

/* ---- Handlers in and out ---- */

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == handle;
}

/* With the lock held, our handler not in force. */
static void displace(const struct sigaction *present)
{
    door.current = !door.current;
    door.copies[door.current] = *present;
    atomic_store(&door.displaced, &door.copies[door.current]);
}

/* With the lock held. The application may take ours away at any time, so that is looked at each
 * time. */
static int install(void)
{
    struct sigaction present;
    struct sigaction ours = {.sa_sigaction = handle,
                             .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    if (door.lost || sigaction(SIGBUS, NULL, &present) != 0)
        return -EBUSY;
    if (is_ours(&present))
        return 0;
    if (door.users > 0) {
        door.lost = true;
        hipio_log(HIPIO_LOG_INFO, "the program handles SIGBUS itself since a moment when files "
                                  "were copied through mappings; they are not any more");
        return -EBUSY;
    }
    displace(&present);
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL) == 0 ? 0 : -EBUSY;
}

/* With the lock held. */
static void uninstall(void)
{
    struct sigaction present;

    if (sigaction(SIGBUS, NULL, &present) != 0)
        return;
    if (is_ours(&present))
        sigaction(SIGBUS, atomic_load(&door.displaced), NULL);
    else
        door.lost = true;
}

static int take_seat(struct hipio_sigbus *self)
{
    for (unsigned i = 0; i < SEATS; i++) {
        bool free = false;
        if (!atomic_compare_exchange_strong(&seats[i].taken, &free, true))
            continue;
        seats[i].self = self;
        self->seat = i;
        atomic_store(&seats[i].owner, this_thread());
        return 0;
    }
    return -EBUSY;
}

static void leave_seat(struct hipio_sigbus *self)
{
    atomic_store(&seats[self->seat].owner, 0);
    atomic_store(&seats[self->seat].taken, false);
}

int hipio_sigbus_enter(struct hipio_sigbus *self)
{
    sigset_t only;

    self->low = self->high = 0;
    if (take_seat(self) != 0)
        return -EBUSY;
    pthread_mutex_lock(&door.lock);
    const int status = install();
    if (status == 0)
        door.users++;
    pthread_mutex_unlock(&door.lock);
    if (status != 0) {
        leave_seat(self);
        return status;
    }
    /* A blocked SIGBUS of an access would end the process whatever the handler. */
    sigemptyset(&only);
    sigaddset(&only, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &only, &self->mask);
    return 0;
}

void hipio_sigbus_leave(struct hipio_sigbus *self)
{
    pthread_sigmask(SIG_SETMASK, &self->mask, NULL);
    pthread_mutex_lock(&door.lock);
    if (--door.users == 0)
        uninstall();
    pthread_mutex_unlock(&door.lock);
    leave_seat(self);
}

int hipio_sigbus_copy(struct hipio_sigbus *self, void *to, const void *from, size_t n,
                      const void *mapped)
{
    /* The mask is not saved, which would be a system call. Our handler has none, but a tool that
     * stands in front of it (a sanitizer) may. */
    if (sigsetjmp(self->landing, 0) != 0) {
        sigset_t inside = self->mask;

        sigdelset(&inside, SIGBUS);
        pthread_sigmask(SIG_SETMASK, &inside, NULL);
        return -EFAULT;
    }
    self->low = (uintptr_t)mapped & ~(uintptr_t)4095;
    self->high = (uintptr_t)mapped + n;
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(to, from, n);
    atomic_signal_fence(memory_order_seq_cst);
    self->high = 0;
    return 0;
}
