/* SPDX-License-Identifier: MIT */
/*
 * Order: waiting for the application's GPU work, by its stream or by the setting.
 */
#include "order.h"
#include "device/user_stream.h"

static int mark_stream(const struct hipio_device_ops *ops, struct hipio_stream *stream, int device,
                       struct hipio_order *order)
{
    struct hipio_event *event;
    int status = ops->user_streams->check(stream);

    if (status == 0)
        status = ops->event_create(device, &event);
    if (status < 0)
        return status;
    status = ops->event_record(event, stream);
    if (status < 0)
        ops->event_destroy(event);
    else
        *order = (struct hipio_order){ops, event};
    return status;
}

static int follow_stream(const struct hipio_device_ops *ops, void *handle,
                         struct hipio_order *order)
{
    struct hipio_stream *stream;
    int device;

    int status = ops->user_streams->device_of(handle, &device);
    if (status == 0)
        status = ops->user_streams->wrap(handle, &stream);
    if (status < 0)
        return status;
    status = mark_stream(ops, stream, device, order);
    ops->user_streams->unwrap(stream);
    return status;
}

int hipio_order_mark(const struct hipio_request *request, struct hipio_order *order)
{
    const struct hipio_memory *memory = &request->memory;
    const struct hipio_tunables *settings = hipio_file_tunables(request->file);

    *order = (struct hipio_order){memory->ops, NULL};
    if (memory->kind == HIPIO_MEMORY_HOST)
        return 0;
    if (settings->stream)
        return follow_stream(memory->ops, (void *)(uintptr_t)settings->stream, order);
    if (memory->kind == HIPIO_MEMORY_PINNED || settings->sync == HIPIO_SYNC_NONE)
        return 0;
    return memory->ops->synchronize(memory->device, settings->sync == HIPIO_SYNC_DEVICE);
}

int hipio_order_wait(struct hipio_order *order)
{
    if (!order->event)
        return 0;
    int status = order->ops->event_synchronize(order->event);
    order->ops->event_destroy(order->event);
    order->event = NULL;
    return status;
}
