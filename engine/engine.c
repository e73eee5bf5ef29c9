/* SPDX-License-Identifier: MIT */
/*
 * Engine: the order of shutdown, and what a fork leaves behind.
 */
#include "engine.h"
#include "lanes.h"
#include "module.h"
#include "pulse.h"
#include "request.h"
#include "slots.h"
#include "status.h"
#include "storage/uring.h"
#include "tunables.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static struct {
    pthread_mutex_t lock; /* guards inside and closing */
    pthread_cond_t change;
    unsigned inside;
    bool closing;
    atomic_bool used;
    atomic_bool forked; /* written in the child only, before it has a second thread */
    atomic_uint neighbours;
} life = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER, .neighbours = 1};

static pthread_once_t fork_watch = PTHREAD_ONCE_INIT;

/* The child has a copy of our locks in whatever state they were, and none of our threads. */
static void mark_child(void)
{
    if (atomic_load(&life.used))
        atomic_store(&life.forked, true);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, mark_child);
}

bool hipio_engine_usable(void)
{
    return !atomic_load(&life.forked);
}

/*
 * Several processes take turns on a GPU, and longer copies make better use of a turn: 8 processes
 * read at 34 GB/s in chunks of 1 MiB and at 49 in chunks of 4, while one alone gains nothing.
 */
static void lengthen_chunks(void)
{
    const uint32_t index = hipio_tunables_index("chunk_size");

    if (hipio_tunables_source(index) == HIPIO_SOURCE_DEFAULT)
        hipio_tunables_set_process("chunk_size", "4M", HIPIO_SOURCE_DEFAULT);
}

void hipio_engine_set_neighbours(unsigned processes)
{
    atomic_store(&life.neighbours, processes ? processes : 1);
    if (processes > 1)
        lengthen_chunks();
}

unsigned hipio_engine_neighbours(void)
{
    return atomic_load(&life.neighbours);
}

int hipio_engine_enter(void)
{
    if (!hipio_engine_usable())
        return hipio_status_set(-ENOTSUP, "the process was forked after hipio was used: its child "
                                          "can't do I/O through hipio, exec a new program instead");
    pthread_once(&fork_watch, watch_forks);
    pthread_mutex_lock(&life.lock);
    atomic_store(&life.used, true);
    while (life.closing)
        pthread_cond_wait(&life.change, &life.lock);
    life.inside++;
    pthread_mutex_unlock(&life.lock);
    return 0;
}

void hipio_engine_leave(void)
{
    pthread_mutex_lock(&life.lock);
    if (--life.inside == 0 && life.closing)
        pthread_cond_broadcast(&life.change);
    pthread_mutex_unlock(&life.lock);
}

/* Nobody enters from here on, and who was inside has left. */
static void close_door(void)
{
    pthread_mutex_lock(&life.lock);
    while (life.closing)
        pthread_cond_wait(&life.change, &life.lock);
    life.closing = true;
    while (life.inside > 0)
        pthread_cond_wait(&life.change, &life.lock);
    pthread_mutex_unlock(&life.lock);
}

static void open_door(void)
{
    pthread_mutex_lock(&life.lock);
    life.closing = false;
    pthread_cond_broadcast(&life.change);
    pthread_mutex_unlock(&life.lock);
}

void hipio_engine_shutdown(void)
{
    if (!hipio_engine_usable())
        return;
    /* The background carriers go first, while the door is open: what they carry must get in. */
    hipio_request_dismiss();
    close_door();
    hipio_lanes_shutdown();
    hipio_slots_shutdown();
    hipio_module_shutdown();
    hipio_pulse_shutdown();
    hipio_uring_shutdown();
    open_door();
}
