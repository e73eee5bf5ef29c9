/* SPDX-License-Identifier: MIT */
/*
 * Registered: one registration for a window, of its runtime; every device of that can use it.
 */
#include "registered.h"
#include "log.h"
#include "pulse.h"
#include "slots.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum state { UNTRIED, KNOWN, REFUSED };

struct registration {
    struct hipio_attachment attachment; /* first */
    pthread_mutex_t lock;               /* guards the change of the rest */
    int state;                          /* atomic; an enum state */
    const struct hipio_device_ops *ops; /* set before the state leaves UNTRIED */
    int device;
    uint64_t pulse; /* the device's, of when it was registered */
    void *memory;
    uint64_t bytes;
};

static char room;

static bool is_gone(const struct registration *self)
{
    return !hipio_pulse_is_same(self->ops, self->device, self->pulse);
}

/* A reset of the device has ended the registration. */
static void forget(struct registration *self)
{
    if (!is_gone(self))
        self->ops->host_unregister(self->device, self->memory);
    hipio_slots_unreserve(self->bytes);
}

/* The child of a fork has the memory, but not the runtime. */
static void destroy(struct hipio_attachment *attachment, bool forked)
{
    struct registration *self = (struct registration *)attachment;

    if (self->state == KNOWN && !forked)
        forget(self);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static struct hipio_attachment *make(void)
{
    struct registration *self = calloc(1, sizeof *self);

    if (!self)
        return NULL;
    pthread_mutex_init(&self->lock, NULL);
    self->attachment.destroy = destroy;
    return &self->attachment;
}

static struct registration *find(struct hipio_file *window, bool create)
{
    return (struct registration *)hipio_file_attachment(window, &room, create ? make : NULL);
}

static int state_of(const struct registration *self)
{
    return __atomic_load_n(&self->state, __ATOMIC_ACQUIRE);
}

bool hipio_registered_is_possible(struct hipio_file *window, const struct hipio_memory *memory)
{
    const struct registration *self = find(window, false);

    if (!self || state_of(self) == UNTRIED)
        return true;
    return state_of(self) == KNOWN && self->ops == memory->ops;
}

/* Only whole pages can be pinned, and a page only once. */
static bool is_page_aligned(const void *memory)
{
    return (uintptr_t)memory % (uintptr_t)sysconf(_SC_PAGESIZE) == 0;
}

static int make_known(struct registration *self, struct hipio_file *window)
{
    if (!is_page_aligned(self->memory))
        return hipio_status_set(-ENOTSUP, "its memory does not begin with a page");
    const uint64_t limit = hipio_file_tunables(window)->pinned_limit;
    if (!hipio_slots_reserve(self->bytes, limit - limit / 4))
        return hipio_status_set(-ENOTSUP, "%llu bytes are more than pinned_limit leaves for it",
                                (unsigned long long)self->bytes);
    self->pulse = hipio_pulse(self->ops, self->device);
    int rc = self->ops->host_register(self->device, self->memory, self->bytes);
    if (rc < 0)
        hipio_slots_unreserve(self->bytes);
    return rc;
}

static void try(struct registration *self, struct hipio_file *window,
                const struct hipio_memory *memory)
{
    self->ops = memory->ops;
    self->device = memory->device;
    self->memory = hipio_file_window(window);
    self->bytes = (uint64_t)hipio_file_size(window);
    int rc = make_known(self, window);
    if (rc < 0)
        hipio_log(HIPIO_LOG_INFO, "%s: staged, for the GPU can't reach it: %s",
                  hipio_file_name(window), hipio_status_text());
    __atomic_store_n(&self->state, rc < 0 ? REFUSED : KNOWN, __ATOMIC_RELEASE);
}

int hipio_registered_ensure(struct hipio_file *window, const struct hipio_memory *memory)
{
    struct registration *self = find(window, true);

    if (!self)
        return hipio_status_set(-ENOTSUP, "%s: no memory to register it", hipio_file_name(window));
    pthread_mutex_lock(&self->lock);
    if (self->state == KNOWN && is_gone(self)) {
        forget(self);
        __atomic_store_n(&self->state, UNTRIED, __ATOMIC_RELEASE);
    }
    if (self->state == UNTRIED)
        try(self, window, memory);
    const bool known = self->state == KNOWN && self->ops == memory->ops;
    pthread_mutex_unlock(&self->lock);
    if (known)
        return 0;
    return hipio_status_set(-ENOTSUP, "%s: its memory is not known to the GPU",
                            hipio_file_name(window));
}
