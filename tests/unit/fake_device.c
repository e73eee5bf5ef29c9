/* SPDX-License-Identifier: MIT */
/*
 * Fake device: memory behind a displaced address, streams that run when they are waited for.
 */
#include "fake_device.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not canonical: a load or store faults, a system call answers EFAULT. */
#define DISPLACEMENT ((uintptr_t)1 << 60)
#define ALLOCATIONS 64

struct work {
    char *to;
    const char *from;
    uint64_t to_pitch;
    uint64_t from_pitch;
    uint64_t width;
    uint64_t rows;
};

struct hipio_stream {
    struct work *work;
    uint64_t queued;
    uint64_t done;
    uint64_t room;
};

struct hipio_event {
    struct hipio_stream *stream;
    uint64_t after;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_counters counters;
static uint64_t pending;
static bool no_grids;
static bool no_ranges;
static struct {
    int wait;
    int times;
    int error;
} failure[FAKE_CALLS];
static struct {
    uintptr_t start;
    uint64_t bytes;
    uintptr_t whole; /* start of what was allocated in one */
} allocation[ALLOCATIONS];

void fake_fail(enum fake_call call, int n, int times, int error)
{
    pthread_mutex_lock(&lock);
    failure[call].wait = n;
    failure[call].times = times;
    failure[call].error = error;
    pthread_mutex_unlock(&lock);
}

void fake_refuse(bool grids, bool ranges)
{
    no_grids = grids;
    no_ranges = ranges;
}

void fake_reset(void)
{
    pthread_mutex_lock(&lock);
    memset(failure, 0, sizeof failure);
    counters.copies = counters.grids = counters.synchronized = counters.everything = 0;
    counters.registered = 0;
    pthread_mutex_unlock(&lock);
    fake_refuse(false, false);
}

struct fake_counters fake_counters(void)
{
    pthread_mutex_lock(&lock);
    struct fake_counters now = counters;
    pthread_mutex_unlock(&lock);
    return now;
}

static void count(int64_t *level, int64_t amount)
{
    pthread_mutex_lock(&lock);
    *level += amount;
    pthread_mutex_unlock(&lock);
}

static void tally(uint64_t *counter)
{
    pthread_mutex_lock(&lock);
    (*counter)++;
    pthread_mutex_unlock(&lock);
}

static int fails(enum fake_call call)
{
    int error = 0;

    pthread_mutex_lock(&lock);
    if (failure[call].times > 0 && failure[call].wait-- <= 0) {
        failure[call].times--;
        error = failure[call].error;
    }
    pthread_mutex_unlock(&lock);
    return error ? hipio_status_set(error, "fake device: call %d was told to fail", (int)call) : 0;
}

/* With the lock held. */
static void remember(uintptr_t start, uint64_t bytes, uintptr_t whole)
{
    for (int i = 0; i < ALLOCATIONS; i++) {
        if (allocation[i].bytes == 0) {
            allocation[i].start = start;
            allocation[i].bytes = bytes;
            allocation[i].whole = whole;
            return;
        }
    }
    abort();
}

void *fake_alloc(int device, uint64_t bytes, struct hipio_memory *memory)
{
    unsigned char *real = malloc(bytes);
    if (!real)
        abort();
    memset(real, 0xA5, bytes);
    uintptr_t start = (uintptr_t)real + DISPLACEMENT;
    pthread_mutex_lock(&lock);
    remember(start, bytes, start);
    pthread_mutex_unlock(&lock);
    *memory = (struct hipio_memory){HIPIO_MEMORY_DEVICE, device, false, &fake_device};
    return (void *)start;
}

void fake_cut(void *address, uint64_t bytes)
{
    uintptr_t start = (uintptr_t)address;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < ALLOCATIONS; i++) {
        if (allocation[i].bytes > bytes && allocation[i].start == start) {
            remember(start + bytes, allocation[i].bytes - bytes, start);
            allocation[i].bytes = bytes;
        }
    }
    pthread_mutex_unlock(&lock);
}

void fake_free(void *address)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < ALLOCATIONS; i++)
        if (allocation[i].whole == (uintptr_t)address)
            allocation[i].bytes = 0;
    pthread_mutex_unlock(&lock);
    free(fake_bytes(address));
}

unsigned char *fake_bytes(const void *address)
{
    return (unsigned char *)((uintptr_t)address - DISPLACEMENT);
}

/* Host addresses go through as they are. */
static char *real_address(const void *address)
{
    uintptr_t value = (uintptr_t)address;
    return (char *)(value >= DISPLACEMENT ? value - DISPLACEMENT : value);
}

uint64_t fake_pending(void)
{
    return __atomic_load_n(&pending, __ATOMIC_RELAXED);
}

static void catch_up(struct hipio_stream *stream, uint64_t until)
{
    if (until > stream->done)
        __atomic_sub_fetch(&pending, until - stream->done, __ATOMIC_RELAXED);
    for (; stream->done < until; stream->done++) {
        const struct work *work = &stream->work[stream->done];
        for (uint64_t row = 0; row < work->rows; row++)
            memcpy(work->to + row * work->to_pitch, work->from + row * work->from_pitch,
                   work->width);
    }
    if (stream->done == stream->queued)
        stream->done = stream->queued = 0;
}

static int queue(struct hipio_stream *stream, const struct work *work)
{
    int error = fails(FAKE_COPY);
    if (error)
        return error;
    if (stream->queued == stream->room) {
        stream->room = stream->room ? 2 * stream->room : 64;
        stream->work = realloc(stream->work, stream->room * sizeof *work);
        if (!stream->work)
            abort();
    }
    stream->work[stream->queued++] = *work;
    __atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
    return 0;
}

static int copy(struct hipio_stream *stream, void *to, const void *from, uint64_t bytes,
                enum hipio_copy way)
{
    (void)way;
    tally(&counters.copies);
    return queue(stream,
                 &(struct work){real_address(to), real_address(from), bytes, bytes, bytes, 1});
}

static int copy_2d(struct hipio_stream *stream, void *to, uint64_t to_pitch, const void *from,
                   uint64_t from_pitch, uint64_t width, uint64_t rows, enum hipio_copy way)
{
    (void)way;
    if (no_grids)
        return hipio_status_set(-ENOTSUP, "fake device: no 2D copies");
    if (to_pitch < width || from_pitch < width)
        return hipio_status_set(-EINVAL, "fake device: rows overlap");
    tally(&counters.grids);
    return queue(stream, &(struct work){real_address(to), real_address(from), to_pitch, from_pitch,
                                        width, rows});
}

static int stream_create(int device, struct hipio_stream **out)
{
    (void)device;
    int error = fails(FAKE_STREAM_CREATE);
    if (error)
        return error;
    *out = calloc(1, sizeof **out);
    count(&counters.streams, 1);
    return 0;
}

static int stream_destroy(struct hipio_stream *stream)
{
    free(stream->work);
    free(stream);
    count(&counters.streams, -1);
    return 0;
}

static int stream_synchronize(struct hipio_stream *stream)
{
    catch_up(stream, stream->queued);
    return 0;
}

static int event_create(int device, struct hipio_event **out)
{
    (void)device;
    *out = calloc(1, sizeof **out);
    count(&counters.events, 1);
    return 0;
}

static int event_destroy(struct hipio_event *event)
{
    free(event);
    count(&counters.events, -1);
    return 0;
}

static int event_record(struct hipio_event *event, struct hipio_stream *stream)
{
    event->stream = stream;
    event->after = stream->queued;
    return 0;
}

static int event_synchronize(struct hipio_event *event)
{
    int error = fails(FAKE_EVENT_SYNCHRONIZE);
    if (error)
        return error;
    /* What was done at once by a wait for the whole stream has left the queue. */
    if (event->stream && event->stream->queued >= event->after)
        catch_up(event->stream, event->after);
    return 0;
}

static struct pinned {
    void *memory;
    size_t bytes;
    struct pinned *next;
} * pins; /* guarded by `lock` */

static int host_alloc(int device, size_t bytes, void **out)
{
    (void)device;
    int error = fails(FAKE_HOST_ALLOC);
    if (error)
        return error;
    struct pinned *made = malloc(sizeof *made);
    if (!made || posix_memalign(&made->memory, 4096, bytes) != 0)
        abort();
    made->bytes = bytes;
    pthread_mutex_lock(&lock);
    made->next = pins;
    pins = made;
    pthread_mutex_unlock(&lock);
    *out = made->memory;
    count(&counters.pinned, (int64_t)bytes);
    return 0;
}

static struct pinned **find_pinned(const void *memory)
{
    struct pinned **link = &pins;

    while (*link && (uintptr_t)memory - (uintptr_t)(*link)->memory >= (*link)->bytes)
        link = &(*link)->next;
    return link;
}

static int host_free(int device, void *memory)
{
    (void)device;
    pthread_mutex_lock(&lock);
    struct pinned **link = find_pinned(memory);
    struct pinned *gone = *link;
    if (!gone || gone->memory != memory)
        abort();
    *link = gone->next;
    pthread_mutex_unlock(&lock);
    count(&counters.pinned, -(int64_t)gone->bytes);
    free(gone->memory);
    free(gone);
    return 0;
}

static int host_register(int device, void *memory, size_t bytes)
{
    (void)device;
    (void)memory;
    int error = fails(FAKE_HOST_REGISTER);
    if (error)
        return error;
    count(&counters.registered, (int64_t)bytes);
    count(&counters.registrations, 1);
    return 0;
}

static int host_unregister(int device, void *memory)
{
    (void)device;
    (void)memory;
    count(&counters.registrations, -1);
    return 0;
}

static int synchronize(int device, bool everything)
{
    (void)device;
    tally(&counters.synchronized);
    if (everything)
        tally(&counters.everything);
    return fails(FAKE_SYNCHRONIZE);
}

static int range(const struct hipio_memory *memory, const void *address, uintptr_t *start,
                 uint64_t *length)
{
    int rc = -EINVAL;

    (void)memory;
    if (no_ranges)
        return hipio_status_set(-ENOTSUP, "fake device: no ranges");
    pthread_mutex_lock(&lock);
    for (int i = 0; rc < 0 && i < ALLOCATIONS; i++) {
        if ((uintptr_t)address - allocation[i].start < allocation[i].bytes) {
            *start = allocation[i].start;
            *length = allocation[i].bytes;
            rc = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int event_query(struct hipio_event *event)
{
    return event->stream && event->stream->done < event->after ? -EAGAIN : 0;
}

static int classify(const void *address, struct hipio_memory *memory)
{
    pthread_mutex_lock(&lock);
    const bool known = *find_pinned(address) != NULL;
    pthread_mutex_unlock(&lock);
    *memory = (struct hipio_memory){known ? HIPIO_MEMORY_PINNED : HIPIO_MEMORY_DEVICE, 0, known,
                                    &fake_device};
    return known || (uintptr_t)address >= DISPLACEMENT ? 0 : 1;
}

static int attach(bool force)
{
    (void)force;
    return 0;
}

static bool present(void)
{
    return true;
}

static int device_count(void)
{
    return 2;
}

static int words(char *out, size_t size)
{
    snprintf(out, size, "fake");
    return 0;
}

static int words_of_device(int device, char *out, size_t size)
{
    (void)device;
    return words(out, size);
}

static int module_load(int device, const void *image, void **module)
{
    (void)device;
    (void)image;
    (void)module;
    return -ENOTSUP;
}

static int module_function(int device, void *module, const char *name, void **function)
{
    (void)device;
    (void)module;
    (void)name;
    (void)function;
    return -ENOTSUP;
}

static int module_unload(int device, void *module)
{
    (void)device;
    (void)module;
    return 0;
}

static int launch(struct hipio_stream *stream, void *function, unsigned blocks, unsigned threads,
                  void **params)
{
    (void)stream;
    (void)function;
    (void)blocks;
    (void)threads;
    (void)params;
    return -ENOTSUP;
}

static int device_pointer(int device, void *pinned, void **out)
{
    (void)device;
    *out = pinned;
    return 0;
}

static int multiprocessors(int device)
{
    (void)device;
    return 1;
}

const struct hipio_device_ops fake_device = {
    .name = "fake",
    .attach = attach,
    .present = present,
    .classify = classify,
    .range = range,
    .device_count = device_count,
    .device_name = words_of_device,
    .pci_bus_id = words_of_device,
    .runtime_version = words,
    .synchronize = synchronize,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .copy = copy,
    .copy_2d = copy_2d,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_synchronize = event_synchronize,
    .event_query = event_query,
    .module_load = module_load,
    .module_function = module_function,
    .module_unload = module_unload,
    .launch = launch,
    .device_pointer = device_pointer,
    .multiprocessors = multiprocessors,
    .image_family = "",
};
