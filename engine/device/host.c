/* SPDX-License-Identifier: MIT */
/*
 * Host: ordinary memory as a device. Streams and events are synchronous, copies are made by the
 * CPU, and "pinned" memory is page-aligned.
 */
#include "device/device.h"
#include "device/user_stream.h"
#include "status.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_ALIGNMENT 4096

struct hipio_stream {
    int device;
};

struct hipio_event {
    int device;
};

static int refuse_kernels(void)
{
    return hipio_status_set(-ENOTSUP, "host memory has no device that runs kernels");
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

static int classify(const void *address, struct hipio_memory *memory)
{
    (void)address;
    (void)memory;
    return 1;
}

static int range(const struct hipio_memory *memory, const void *address, uintptr_t *start,
                 uint64_t *length)
{
    (void)memory;
    (void)start;
    (void)length;
    return hipio_status_set(-ENOTSUP, "nobody keeps the bounds of host memory at %p", address);
}

static int device_count(void)
{
    return 0;
}

static int device_name(int device, char *out, size_t size)
{
    (void)device;
    snprintf(out, size, "host memory");
    return 0;
}

static int pci_bus_id(int device, char *out, size_t size)
{
    (void)device;
    (void)out;
    (void)size;
    return hipio_status_set(-ENOTSUP, "host memory is on no PCI device");
}

static int runtime_version(char *out, size_t size)
{
    snprintf(out, size, "host");
    return 0;
}

static int synchronize(int device, bool everything)
{
    (void)device;
    (void)everything;
    return 0;
}

static int host_alloc(int device, size_t bytes, void **out)
{
    void *memory = NULL;
    int rc;

    (void)device;
    if (bytes == 0)
        return hipio_status_set(-EINVAL, "a staging buffer of 0 bytes was asked for");
    rc = posix_memalign(&memory, HOST_ALIGNMENT, bytes);
    if (rc != 0)
        return hipio_status_set(-rc, "no memory for a staging buffer of %zu bytes", bytes);
    *out = memory;
    return 0;
}

static int host_free(int device, void *memory)
{
    (void)device;
    free(memory);
    return 0;
}

/* The CPU copies pinned memory no faster than any other. */
static int host_register(int device, void *memory, size_t bytes)
{
    (void)device;
    (void)memory;
    (void)bytes;
    return hipio_status_set(-ENOTSUP, "the CPU needs no pinned memory");
}

static int host_unregister(int device, void *memory)
{
    (void)device;
    (void)memory;
    return 0;
}

static int stream_create(int device, struct hipio_stream **out)
{
    struct hipio_stream *stream = malloc(sizeof(*stream));

    if (stream == NULL)
        return hipio_status_set(-ENOMEM, "no memory for a stream");
    stream->device = device;
    *out = stream;
    return 0;
}

static int stream_destroy(struct hipio_stream *stream)
{
    free(stream);
    return 0;
}

static int stream_synchronize(struct hipio_stream *stream)
{
    (void)stream;
    return 0;
}

static int copy(struct hipio_stream *stream, void *to, const void *from, uint64_t bytes,
                enum hipio_copy way)
{
    (void)stream;
    (void)way;
    if (bytes > 0)
        memmove(to, from, bytes);
    return 0;
}

static int copy_2d(struct hipio_stream *stream, void *to, uint64_t to_pitch, const void *from,
                   uint64_t from_pitch, uint64_t width, uint64_t rows, enum hipio_copy way)
{
    (void)stream;
    (void)way;
    if (to_pitch < width || from_pitch < width)
        return hipio_status_set(-EINVAL, "rows are closer together than they are wide");
    for (uint64_t row = 0; row < rows && width > 0; row++)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return 0;
}

static int event_create(int device, struct hipio_event **out)
{
    struct hipio_event *event = malloc(sizeof(*event));

    if (event == NULL)
        return hipio_status_set(-ENOMEM, "no memory for an event");
    event->device = device;
    *out = event;
    return 0;
}

static int event_destroy(struct hipio_event *event)
{
    free(event);
    return 0;
}

static int event_record(struct hipio_event *event, struct hipio_stream *stream)
{
    (void)event;
    (void)stream;
    return 0;
}

/* All work of a stream is complete when the call that queued it returns. */
static int event_complete(struct hipio_event *event)
{
    (void)event;
    return 0;
}

static int module_load(int device, const void *image, void **module)
{
    (void)device;
    (void)image;
    (void)module;
    return refuse_kernels();
}

static int module_function(int device, void *module, const char *name, void **function)
{
    (void)device;
    (void)module;
    (void)name;
    (void)function;
    return refuse_kernels();
}

static int module_unload(int device, void *module)
{
    (void)device;
    (void)module;
    return refuse_kernels();
}

static int launch(struct hipio_stream *stream, void *function, unsigned blocks, unsigned threads,
                  void **params)
{
    (void)stream;
    (void)function;
    (void)blocks;
    (void)threads;
    (void)params;
    return refuse_kernels();
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
    return refuse_kernels();
}

const struct hipio_device_ops hipio_device_host = {
    .name = "host",
    .attach = attach,
    .present = present,
    .classify = classify,
    .range = range,
    .device_count = device_count,
    .device_name = device_name,
    .pci_bus_id = pci_bus_id,
    .runtime_version = runtime_version,
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
    .event_synchronize = event_complete,
    .event_query = event_complete,
    .module_load = module_load,
    .module_function = module_function,
    .module_unload = module_unload,
    .launch = launch,
    .device_pointer = device_pointer,
    .multiprocessors = multiprocessors,
    .image_family = "",
    .user_streams = &hipio_user_stream_none,
};
