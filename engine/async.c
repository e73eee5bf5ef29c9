/* SPDX-License-Identifier: MIT */
/*
 * Async: queues an operation on its stream, and carries it when the stream gets there.
 *
 * On the stream stand: a host function that wakes the channel's thread; for each slot's worth of
 * the largest size possible a gate, a copy and a mark (channel.h); and a last gate, which lets the
 * stream go on once the result is where the application wants it.
 */
#include "async.h"
#include "buffer.h"
#include "engine.h"
#include "log.h"
#include "stats.h"
#include "stream.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No object lives in the first page, whatever base and offset add up to it. */
#define LOWEST_ADDRESS 4096

/* A fast path may leave a head and a tail to the copies. */
#define COPIES_FOR_ENDS 2

static const char *name_of(const struct hipio_async_op *op)
{
    return hipio_file_name(hipio_handle_file(op->call.handle));
}

/* ---- Checks ---- */

static int check_call(const struct hipio_async_call *call)
{
    if (!call->handle)
        return hipio_status_set(-EINVAL, "no file");
    if (!call->size || !call->file_offset || !call->buffer_offset || !call->bytes_done)
        return hipio_status_set(-EINVAL, "the pointers to size, file offset, buffer offset and "
                                         "result must not be NULL");
    if (!call->base)
        return hipio_status_set(-EFAULT, "the buffer is NULL");
    return 0;
}

static int check_access(const struct hipio_async_op *op)
{
    const bool reads = op->call.op == HIPIO_READ;
    const int access = hipio_file_access(hipio_handle_file(op->call.handle));

    if (access & (reads ? HIPIO_ACCESS_READ : HIPIO_ACCESS_WRITE))
        return 0;
    return hipio_status_set(-EBADF, "%s: not open for %s", name_of(op),
                            reads ? "reading" : "writing");
}

static int check_memory(const struct hipio_async_op *op)
{
    const struct hipio_memory *memory = &op->memory;
    const struct hipio_channel *channel = op->channel;
    char why[HIPIO_TEXT_MAX / 2];

    if (memory->kind == HIPIO_MEMORY_INVALID) {
        hipio_device_explain(op->call.base, why, sizeof why);
        return hipio_status_set(-EFAULT, "%s: buffer %p can't be served: %s", name_of(op),
                                op->call.base, why);
    }
    if (memory->kind == HIPIO_MEMORY_DEVICE &&
        (memory->ops != channel->ops || memory->device != channel->device))
        return hipio_status_set(-EXDEV,
                                "%s: buffer %p is memory of %s device %d, the stream is of %s "
                                "device %d: use a stream of the buffer's device",
                                name_of(op), op->call.base, memory->ops->name, memory->device,
                                channel->ops->name, channel->device);
    return 0;
}

static int check_size(const struct hipio_async_op *op, uint64_t size)
{
    if (size > INT64_MAX)
        return hipio_status_set(-EINVAL, "%s: %llu bytes are more than a file can have",
                                name_of(op), (unsigned long long)size);
    return 0;
}

static int check_file_offset(const struct hipio_async_op *op, int64_t offset, uint64_t size)
{
    if (offset >= 0 && size <= (uint64_t)(INT64_MAX - offset))
        return 0;
    return hipio_status_set(-EINVAL, "%s: file offset %lld with %llu bytes is out of range",
                            name_of(op), (long long)offset, (unsigned long long)size);
}

static int check_buffer_offset(const struct hipio_async_op *op, int64_t offset, uint64_t size)
{
    const uintptr_t base = (uintptr_t)op->call.base;
    const uintptr_t start = base + (uintptr_t)offset;

    if ((offset < 0 ? start < base : start >= base) && start >= LOWEST_ADDRESS &&
        size <= UINTPTR_MAX - start)
        return 0;
    return hipio_status_set(-EFAULT, "%s: buffer %p with offset %lld and %llu bytes leaves memory",
                            name_of(op), op->call.base, (long long)offset,
                            (unsigned long long)size);
}

/* The stream as it is now: the application may have destroyed it and made another in its place. */
static int check_stream(const struct hipio_channel *channel)
{
    const struct hipio_user_stream_ops *streams = channel->ops->user_streams;
    int device = -1;

    if (channel->broken)
        return hipio_status_set(-EIO, "stream %p: its device has failed", channel->handle);
    int status = streams->device_of(channel->handle, &device);
    if (status == 0 && device != channel->device)
        return hipio_status_set(-EINVAL,
                                "stream %p was registered as one of device %d and is now "
                                "one of device %d: deregister it when it is destroyed",
                                channel->handle, channel->device, device);
    return status < 0 ? status : streams->check(channel->stream);
}

/* ---- Making ---- */

static bool is_fixed(const struct hipio_async_op *op, enum hipio_async_flag flag)
{
    return op->channel->flags & flag;
}

/* The request at these offsets. */
static void point(struct hipio_async_op *op, uint64_t size, int64_t file_offset,
                  int64_t buffer_offset)
{
    struct hipio_request *request = &op->request;

    request->base = (void *)((uintptr_t)op->call.base + (uintptr_t)buffer_offset);
    request->file_base = file_offset;
    request->length = size;
}

static bool expects_fast_path(struct hipio_async_op *op)
{
    const struct hipio_part part = {.request = &op->request, .length = op->size};

    for (size_t i = 0; i < hipio_backend_count(); i++) {
        const struct hipio_backend *backend = hipio_backend_at(i);

        if (backend->kind == HIPIO_BACKEND_FAST_PATH && backend->score(&part) >= 0)
            return true;
    }
    return false;
}

/* How many copies will stand on the stream, and how large. Memory that the CPU copies needs none;
 * without our kernel the engine stages as it does for a blocking call. */
static void plan(struct hipio_async_op *op)
{
    const struct hipio_channel *channel = op->channel;
    const bool by_cpu =
        op->memory.kind == HIPIO_MEMORY_HOST || op->memory.kind == HIPIO_MEMORY_PINNED;

    op->table = true;
    if (by_cpu || !channel->buffer)
        return;
    op->table = expects_fast_path(op);
    op->cut = hipio_channel_cut(channel->buffer_size, op->table);
    op->copies = (op->size - 1) / op->cut.bytes + 1 + (op->table ? COPIES_FOR_ENDS : 0);
    op->request.staging = &hipio_backend_stream;
}

/* What is bound later can't be known now, and the stream's thread may not ask the runtime. */
static int check_end(const struct hipio_async_op *op)
{
    if (!is_fixed(op, HIPIO_ASYNC_SIZE_FIXED) || !is_fixed(op, HIPIO_ASYNC_BUFFER_OFFSET_FIXED))
        return 0;
    return hipio_buffer_check(&op->request);
}

static int fill(struct hipio_async_op *op)
{
    struct hipio_layout *layout;

    /* Work of the application that is still on the stream may set them at any time. */
    op->size = __atomic_load_n(op->call.size, __ATOMIC_RELAXED);
    op->file_offset = __atomic_load_n(op->call.file_offset, __ATOMIC_RELAXED);
    op->buffer_offset = __atomic_load_n(op->call.buffer_offset, __ATOMIC_RELAXED);
    int status = check_access(op);
    if (status == 0)
        status = check_size(op, op->size);
    if (status == 0 && is_fixed(op, HIPIO_ASYNC_FILE_OFFSET_FIXED))
        status = check_file_offset(op, op->file_offset,
                                   is_fixed(op, HIPIO_ASYNC_SIZE_FIXED) ? op->size : 0);
    if (status == 0 && is_fixed(op, HIPIO_ASYNC_BUFFER_OFFSET_FIXED))
        status = check_buffer_offset(op, op->buffer_offset,
                                     is_fixed(op, HIPIO_ASYNC_SIZE_FIXED) ? op->size : 0);
    if (status == 0)
        status = hipio_device_classify(op->call.base, &op->memory);
    if (status == 0)
        status = check_memory(op);
    if (status == 0)
        status = hipio_layout_run(0, op->size, &layout);
    if (status < 0)
        return status;
    op->request = (struct hipio_request){
        .op = op->call.op,
        .file = hipio_handle_file(op->call.handle),
        .memory = op->memory,
        .memory_layout = layout,
        .file_layout = layout,
    };
    /* One that is bound late may be anything yet. */
    point(op, op->size, op->file_offset < 0 ? 0 : op->file_offset, op->buffer_offset);
    if (op->size == 0)
        return 0;
    plan(op);
    return check_end(op);
}

static void free_op(struct hipio_async_op *op)
{
    hipio_layout_release((struct hipio_layout *)(uintptr_t)op->request.memory_layout);
    free(op);
}

static int make(const struct hipio_async_call *call, struct hipio_channel *channel,
                struct hipio_async_op **out)
{
    struct hipio_async_op *op = calloc(1, sizeof *op);

    if (!op)
        return hipio_status_set(-ENOMEM, "no memory to queue an operation");
    op->channel = channel;
    op->call = *call;
    int status = fill(op);
    if (status < 0)
        free_op(op);
    else
        *out = op;
    return status;
}

/* ---- Queueing ---- */

/* On the stream: it has reached the next operation. */
static void begin(void *argument, bool failed)
{
    struct hipio_channel *channel = argument;

    pthread_mutex_lock(&channel->lock);
    if (failed)
        atomic_store(&channel->broken, true);
    channel->begun++;
    pthread_cond_broadcast(&channel->change);
    pthread_mutex_unlock(&channel->lock);
}

static void append(struct hipio_channel *channel, struct hipio_async_op *op)
{
    pthread_mutex_lock(&channel->lock);
    if (channel->tail)
        channel->tail->next = op;
    else
        channel->head = op;
    channel->tail = op;
    pthread_cond_broadcast(&channel->change);
    pthread_mutex_unlock(&channel->lock);
}

/* Takes back the operation that was appended last. False: the thread has it, because the device has
 * failed. */
static bool withdraw(struct hipio_channel *channel, struct hipio_async_op *op)
{
    struct hipio_async_op *before = NULL;

    pthread_mutex_lock(&channel->lock);
    struct hipio_async_op **link = &channel->head;
    for (; *link && *link != op; link = &(*link)->next)
        before = *link;
    const bool found = *link;
    if (found) {
        *link = NULL;
        channel->tail = before;
    }
    pthread_mutex_unlock(&channel->lock);
    return found;
}

static int queue_copy(struct hipio_async_op *op, uint64_t index)
{
    struct hipio_channel *channel = op->channel;
    const unsigned slot = (unsigned)(index % op->cut.slots);
    const struct hipio_gather_late copy = {
        .memory = op->call.base,
        .packed = channel->buffer + slot * op->cut.bytes,
        .bytes = op->cut.bytes,
        .way = op->call.op == HIPIO_READ ? HIPIO_COPY_TO_DEVICE : HIPIO_COPY_TO_HOST,
        .size = &channel->words[slot].bytes,
        .offset = &channel->words[slot].offset,
    };

    int status = hipio_channel_queue_gate(channel);
    if (status == 0)
        status = hipio_gather_copy(channel->gather, &copy);
    if (status == 0)
        status = hipio_channel_queue_mark(channel);
    return status;
}

static int queue_copies(struct hipio_async_op *op)
{
    for (uint64_t i = 0; i < op->copies; i++) {
        int status = queue_copy(op, i);
        if (status < 0)
            return status;
        atomic_store_explicit(&op->ready, i + 1, memory_order_release);
    }
    return 0;
}

/* The thread may free the operation from here on. */
static void seal(struct hipio_async_op *op, int status)
{
    op->failed = status;
    if (status < 0)
        snprintf(op->text, sizeof op->text, "%s", hipio_status_text());
    op->last = op->channel->queued;
    atomic_store_explicit(&op->sealed, true, memory_order_release);
}

/* With the channel's submit lock held. *taken: the thread has the operation now. */
static int queue(struct hipio_async_op *op, bool *taken)
{
    struct hipio_channel *channel = op->channel;

    op->first = channel->queued + 1;
    append(channel, op);
    int status = channel->ops->user_streams->call(channel->stream, begin, channel);
    if (status < 0) {
        *taken = !withdraw(channel, op);
        if (*taken)
            seal(op, status);
        return status;
    }
    *taken = true;
    status = queue_copies(op);
    if (status == 0)
        status = hipio_channel_queue_gate(channel);
    int recorded = channel->ops->event_record(channel->last, channel->stream);
    if (status == 0)
        status = recorded;
    hipio_stats_add(HIPIO_COUNT_queued, 1);
    seal(op, status);
    return status;
}

/* Inside the engine and the channel. */
static int submit(const struct hipio_async_call *call, struct hipio_channel *channel, bool *taken)
{
    struct hipio_async_op *op = NULL;

    pthread_mutex_lock(&channel->submit);
    int status = check_stream(channel);
    if (status == 0)
        status = make(call, channel, &op);
    if (status == 0 && op->size == 0) {
        free_op(op);
    } else if (status == 0) {
        hipio_handle_hold(call->handle);
        status = queue(op, taken);
        if (!*taken) {
            hipio_handle_drop(call->handle);
            free_op(op);
        }
    }
    pthread_mutex_unlock(&channel->submit);
    return status;
}

int hipio_async_submit(const struct hipio_async_call *call)
{
    struct hipio_channel *channel;
    bool taken = false;

    int status = check_call(call);
    if (status == 0)
        status = hipio_engine_enter();
    if (status < 0)
        return status;
    __atomic_store_n(call->bytes_done, 0, __ATOMIC_RELAXED);
    status = hipio_streams_enter(call->stream, 0, &channel);
    if (status == 0) {
        status = submit(call, channel, &taken);
        hipio_streams_leave(channel);
    }
    /* What was queued stays inside the engine until it is over. */
    if (!taken)
        hipio_engine_leave();
    return status;
}

/* ---- Carrying ---- */

/* The parameters as the stream finds them. */
static int bind(struct hipio_async_op *op)
{
    const struct hipio_async_call *call = &op->call;
    uint64_t size = op->size;
    int64_t file_offset = op->file_offset, buffer_offset = op->buffer_offset;

    if (!is_fixed(op, HIPIO_ASYNC_SIZE_FIXED))
        size = __atomic_load_n(call->size, __ATOMIC_RELAXED);
    if (!is_fixed(op, HIPIO_ASYNC_FILE_OFFSET_FIXED))
        file_offset = __atomic_load_n(call->file_offset, __ATOMIC_RELAXED);
    if (!is_fixed(op, HIPIO_ASYNC_BUFFER_OFFSET_FIXED))
        buffer_offset = __atomic_load_n(call->buffer_offset, __ATOMIC_RELAXED);
    if (size > op->size)
        return hipio_status_set(-EINVAL,
                                "%s: the size grew from %llu to %llu bytes between the "
                                "call and its turn on the stream; it may only shrink",
                                name_of(op), (unsigned long long)op->size,
                                (unsigned long long)size);
    int status = check_file_offset(op, file_offset, size);
    if (status == 0)
        status = check_buffer_offset(op, buffer_offset, size);
    if (status == 0)
        point(op, size, file_offset, buffer_offset);
    return status;
}

/* Ends an operation that never got to a backend. */
static void refuse(struct hipio_async_op *op, int status)
{
    op->request.status = status;
    op->request.done = 0;
    snprintf(op->request.text, sizeof op->request.text, "%s", hipio_status_text());
    hipio_stats_add(HIPIO_COUNT_requests, 1);
    hipio_stats_add(HIPIO_COUNT_failed, 1);
}

/* The submitter has met an error and has told it: the less is done, the better. */
static bool has_failed(const struct hipio_async_op *op)
{
    return atomic_load_explicit(&op->sealed, memory_order_acquire) && op->failed < 0;
}

/* A submitter needs less; one that takes longer stands before a full queue of the runtime. */
#define SEALED_WITHIN_MS 100

/* Is all on the stream that the submitter will put there? Waits for it, but not for ever: it may
 * itself wait for this stream to get on. */
static bool is_sealed_soon(struct hipio_async_op *op)
{
    const struct timespec moment = {.tv_nsec = 50000};

    for (int i = 0; i < SEALED_WITHIN_MS * 20; i++) {
        if (atomic_load_explicit(&op->sealed, memory_order_acquire))
            return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

/*
 * A fast path works on the application's memory past the stream's gates. If queueing fails, the
 * application goes on with that memory, so that must be known first; until it is, only what the
 * gates hold back may be used.
 */
static void run(struct hipio_async_op *op)
{
    const struct hipio_backend *const alone[] = {&hipio_backend_stream};
    const bool table = op->table && is_sealed_soon(op);

    int status = has_failed(op) ? hipio_status_set(op->failed, "%s", op->text) : bind(op);
    if (status < 0)
        refuse(op, status);
    else if (op->request.length > 0)
        hipio_backend_run(&op->request, table ? NULL : alone, table ? 0 : 1);
}

/* Lets the stream through the copies that have nothing to do, as they come, until the submitter has
 * queued all it will. */
static void open_gates(struct hipio_async_op *op)
{
    struct hipio_channel *channel = op->channel;
    struct hipio_channel_pause pause = {0};
    bool sealed;

    /* The last copy may still be under way where no other can follow it. */
    if (op->used == 0 || hipio_channel_has_passed(channel, op->first + op->used - 1))
        for (unsigned i = 0; op->copies > 0 && i < op->cut.slots; i++)
            channel->words[i].bytes = 0;
    do {
        sealed = atomic_load_explicit(&op->sealed, memory_order_acquire);
        const uint64_t ready = atomic_load_explicit(&op->ready, memory_order_acquire);
        if (ready > 0)
            hipio_channel_arm(channel, op->first + ready - 1);
        if (!sealed)
            hipio_channel_pause(channel, &pause);
    } while (!sealed);
}

static void keep_error(struct hipio_channel *channel, const struct hipio_request *request)
{
    hipio_log(HIPIO_LOG_INFO, "stream %p: %s", channel->handle, request->text);
    pthread_mutex_lock(&channel->lock);
    if (channel->error == 0) {
        channel->error = request->status;
        snprintf(channel->text, sizeof channel->text, "%s", request->text);
    }
    pthread_mutex_unlock(&channel->lock);
}

/*
 * The last gate opens last: behind it the application may do what it likes with the parameters, and
 * finds its file free. A device that has failed lets nobody wait for it, so that the result's place
 * may be gone: nothing is written to it.
 */
static void finish(struct hipio_async_op *op, bool broken)
{
    struct hipio_channel *channel = op->channel;
    const struct hipio_request *request = &op->request;

    open_gates(op);
    if (op->failed < 0 && request->status == 0) {
        op->request.status = op->failed;
        snprintf(op->request.text, sizeof op->request.text, "%s", op->text);
    }
    if (request->status < 0)
        keep_error(channel, request);
    if (!broken && !atomic_load(&channel->broken))
        __atomic_store_n(op->call.bytes_done,
                         request->status < 0 ? (ssize_t)request->status : (ssize_t)request->done,
                         __ATOMIC_RELEASE);
    const uint64_t last = op->last;
    hipio_handle_drop(op->call.handle);
    free_op(op);
    hipio_engine_leave();
    hipio_channel_arm(channel, last);
}

void hipio_async_carry(struct hipio_async_op *op, bool broken)
{
    if (broken)
        refuse(op, hipio_status_set(-EIO, "%s: the device of stream %p has failed", name_of(op),
                                    op->channel->handle));
    else
        run(op);
    finish(op, broken);
}
