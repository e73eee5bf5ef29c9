/* SPDX-License-Identifier: MIT */
/* Host functions, callbacks and memory values. */
#include "hostcall.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "flavor.h"
#include "memory.h"
#include "process.h"
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct call_op {
    struct hipsim_op op;
    void (*function)(void *data);
    void (*callback)(void *stream, int status, void *data);
    void *handle, *data;
};

/* Host functions of all streams run one at a time: the real runtimes may do so, and AMD's does. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void run_call(struct hipsim_op *base, struct hipsim_stream *stream)
{
    struct call_op *op = (struct call_op *)base;
    struct hipsim_thread *thread = hipsim_thread_get();

    hipsim_counters_add(HIPSIM_COUNT_host_functions, 1);
    pthread_mutex_lock(&one_at_a_time);
    thread->in_host_function = true;
    if (op->function)
        op->function(op->data);
    else
        op->callback(op->handle, hipsim_device_sticky(stream->device), op->data);
    thread->in_host_function = false;
    pthread_mutex_unlock(&one_at_a_time);
}

static void release_call(struct hipsim_op *op)
{
    free(op);
}

static struct call_op *new_call(void *data)
{
    struct call_op *op = calloc(1, sizeof(*op));

    if (!op)
        return NULL;
    op->op.run = run_call;
    op->op.release = release_call;
    op->data = data;
    return op;
}

int hipsim_hostcall_function(struct hipsim_stream *stream, void (*function)(void *), void *data)
{
    struct call_op *op;

    if (!function)
        return HIPSIM_INVALID_VALUE;
    op = new_call(data);
    if (!op)
        return HIPSIM_OUT_OF_MEMORY;
    op->function = function;
    return hipsim_stream_submit(stream, &op->op, NULL);
}

int hipsim_hostcall_callback(struct hipsim_stream *stream, void *handle,
                             void (*callback)(void *stream, int status, void *data), void *data)
{
    struct call_op *op;

    if (!callback)
        return HIPSIM_INVALID_VALUE;
    op = new_call(data);
    if (!op)
        return HIPSIM_OUT_OF_MEMORY;
    op->callback = callback;
    op->handle = handle;
    op->op.runs_broken = true;
    return hipsim_stream_submit(stream, &op->op, NULL);
}

static void run_free(struct hipsim_op *base, struct hipsim_stream *stream)
{
    (void)stream;
    /* A second free of the same pointer was accepted when it was queued; it ends here unseen. */
    hipsim_memory_free(((struct call_op *)base)->data, 1u << HIPSIM_KIND_DEVICE);
}

int hipsim_hostcall_free(struct hipsim_stream *stream, void *pointer)
{
    struct hipsim_block *block = hipsim_memory_find(pointer);
    struct call_op *op;
    int valid = block && block->kind == HIPSIM_KIND_DEVICE && block->pointer == (uintptr_t)pointer;

    hipsim_memory_release(block);
    if (!valid)
        return HIPSIM_INVALID_VALUE;
    op = new_call(pointer);
    if (!op)
        return HIPSIM_OUT_OF_MEMORY;
    op->op.run = run_free;
    op->op.runs_broken = true;
    return hipsim_stream_submit(stream, &op->op, NULL);
}

struct value_op {
    struct hipsim_op op;
    struct hipsim_value value;
    struct hipsim_range range;
};

static uint64_t load(const struct value_op *op)
{
    if (op->value.bytes == 4)
        return __atomic_load_n((uint32_t *)(void *)op->range.view, __ATOMIC_ACQUIRE);
    return __atomic_load_n((uint64_t *)(void *)op->range.view, __ATOMIC_ACQUIRE);
}

static bool satisfied(const struct value_op *op)
{
    const struct hipsim_value *value = &op->value;
    uint64_t all = value->bytes == 4 ? UINT32_MAX : UINT64_MAX;
    uint64_t now = load(op) & value->mask;

    switch ((enum hipsim_compare)value->flags) {
    case HIPSIM_WAIT_EQ:
        return now == value->value;
    case HIPSIM_WAIT_AND:
        return (now & value->value) != 0;
    case HIPSIM_WAIT_NOR:
        return (~(now | (value->value & value->mask)) & all) != 0;
    case HIPSIM_WAIT_GEQ:
        break;
    }
    if (hipsim_flavor.vendor == HIPSIM_HIP)
        return now >= value->value;
    /* CUDA compares cyclically. */
    return value->bytes == 4 ? (int32_t)(uint32_t)(now - value->value) >= 0
                             : (int64_t)(now - value->value) >= 0;
}

/* A host store makes no noise, so this polls; the sleeps grow to keep a long wait cheap. */
static void run_wait(struct hipsim_op *base, struct hipsim_stream *stream)
{
    struct value_op *op = (struct value_op *)base;
    struct timespec pause = {0, 2000};

    while (!satisfied(op) && !hipsim_device_sticky(stream->device)) {
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 200000)
            pause.tv_nsec += pause.tv_nsec / 4;
    }
}

static void run_write(struct hipsim_op *base, struct hipsim_stream *stream)
{
    struct value_op *op = (struct value_op *)base;

    (void)stream;
    if (op->value.bytes == 4)
        __atomic_store_n((uint32_t *)(void *)op->range.view, (uint32_t)op->value.value,
                         __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)(void *)op->range.view, op->value.value, __ATOMIC_RELEASE);
}

static void release_value(struct hipsim_op *base)
{
    hipsim_memory_put(&((struct value_op *)base)->range);
    free(base);
}

static int new_value(const struct hipsim_value *value, struct value_op **out)
{
    struct value_op *op;
    int rc;

    if ((uintptr_t)value->pointer % value->bytes)
        return HIPSIM_INVALID_VALUE;
    op = calloc(1, sizeof(*op));
    if (!op)
        return HIPSIM_OUT_OF_MEMORY;
    op->op.release = release_value;
    op->value = *value;
    rc = hipsim_memory_resolve(value->pointer, value->bytes, &op->range);
    if (!rc && !op->range.block)
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        release_value(&op->op);
    else
        *out = op;
    return rc;
}

int hipsim_hostcall_wait_value(struct hipsim_stream *stream, const struct hipsim_value *value)
{
    struct value_op *op;
    int rc;

    if (!hipsim_settings_get()->wait_value)
        return HIPSIM_NOT_SUPPORTED;
    if (value->flags > HIPSIM_WAIT_NOR)
        return HIPSIM_INVALID_VALUE;
    rc = new_value(value, &op);
    if (rc)
        return rc;
    /* HIP waits on signal memory only. */
    if (hipsim_flavor.vendor == HIPSIM_HIP && op->range.kind != HIPSIM_KIND_SIGNAL) {
        release_value(&op->op);
        return HIPSIM_INVALID_VALUE;
    }
    op->op.run = run_wait;
    hipsim_counters_add(HIPSIM_COUNT_wait_values, 1);
    return hipsim_stream_submit(stream, &op->op, NULL);
}

int hipsim_hostcall_write_value(struct hipsim_stream *stream, const struct hipsim_value *value)
{
    struct value_op *op;
    int rc;

    if (!hipsim_settings_get()->wait_value)
        return HIPSIM_NOT_SUPPORTED;
    rc = new_value(value, &op);
    if (rc)
        return rc;
    op->op.run = run_write;
    return hipsim_stream_submit(stream, &op->op, NULL);
}
