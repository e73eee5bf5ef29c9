/* SPDX-License-Identifier: MIT */
/*
 * Cuda: NVIDIA GPUs through libcuda, the driver API, found in the process or loaded.
 *
 * A driver that the program has not initialised knows no pointer and is left alone, unless the
 * settings ask for it. Which context a call is made in is decided in cuda_context.c.
 */
#include "device/cuda.h"
#include "device/dl.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum cuda_device_attribute {
    CUDA_ATTRIBUTE_MULTIPROCESSORS = 16,
    CUDA_ATTRIBUTE_CONCURRENT_MANAGED = 89
};

enum cuda_pointer_attribute {
    CUDA_POINTER_CONTEXT = 1,
    CUDA_POINTER_TYPE = 2,
    CUDA_POINTER_HOST = 4,
    CUDA_POINTER_MANAGED = 8,
    CUDA_POINTER_ORDINAL = 9
};

enum cuda_memory_type { CUDA_TYPE_UNKNOWN = 0, CUDA_TYPE_HOST = 1, CUDA_TYPE_DEVICE = 2 };

/* One side of a 2-D copy, and the copy. */
struct cuda_copy_side {
    size_t x, y;
    int type;
    const void *host;
    uint64_t device;
    void *array;
    size_t pitch;
};

struct cuda_copy_2d {
    struct cuda_copy_side from, to;
    size_t width, height;
};

static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};

static const struct hipio_dl_symbol symbols[] = {
#define CUDA_SYMBOL(required, name, arguments)                                                     \
    {#name, offsetof(struct cuda_functions, name), required},
#include "cuda_syms.def"
#undef CUDA_SYMBOL
};

static int start(struct hipio_dl *opened);

static struct hipio_dl library = {.names = names, .start = start};

static struct {
    int version;              /* written by start, constant once the library is usable */
    _Atomic bool initialized; /* cuInit has succeeded, whoever called it */
} cuda;

struct cuda_functions hipio_cuda;

struct hipio_event {
    struct cuda_handle on;
};

bool hipio_cuda_usable(void)
{
    return hipio_dl_usable(&library);
}

int hipio_cuda_check(const char *call, int error)
{
    const char *name = NULL, *text = NULL;

    if (error == 0)
        return 0;
    hipio_cuda.cuGetErrorName(error, &name);
    hipio_cuda.cuGetErrorString(error, &text);
    return hipio_status_set(hipio_gpu_errno(error), "cuda: %s failed: %s (%d): %s", call,
                            name != NULL ? name : "unknown", error, text != NULL ? text : "");
}

static int start(struct hipio_dl *opened)
{
    int rc = hipio_dl_fill(opened, symbols, sizeof(symbols) / sizeof(symbols[0]), &hipio_cuda);

    if (rc != 0)
        return rc;
    /* The one call that works before cuInit, except in the stub that stands in for the driver. */
    rc = hipio_cuda_check("cuDriverGetVersion", hipio_cuda.cuDriverGetVersion(&cuda.version));
    return rc != 0 ? -ENODEV : 0;
}

/* Initialises the driver. Once it was done, by us or by the program, it costs nothing. */
static int initialize(void)
{
    int count = 0;
    int rc;

    if (atomic_load_explicit(&cuda.initialized, memory_order_relaxed))
        return 0;
    rc = hipio_cuda_check("cuInit", hipio_cuda.cuInit(0));
    if (rc == 0)
        rc = hipio_cuda_check("cuDeviceGetCount", hipio_cuda.cuDeviceGetCount(&count));
    if (rc != 0)
        return -ENODEV;
    if (count <= 0)
        return hipio_status_set(-ENODEV, "cuda: %s finds no device", library.file);
    atomic_store_explicit(&cuda.initialized, true, memory_order_relaxed);
    return 0;
}

static int attach(bool force)
{
    int rc = hipio_dl_attach(&library, force);

    return rc == 0 && force ? initialize() : rc;
}

static bool present(void)
{
    return hipio_dl_present(&library);
}

/* Calls `function`, named `call`, on a handle of the context. */
static int call_on(void *context, const char *call, int (*function)(void *), void *handle)
{
    bool pushed;
    int rc = hipio_cuda_enter(context, &pushed);

    return rc != 0 ? rc : hipio_cuda_leave(pushed, hipio_cuda_check(call, function(handle)));
}

static int get_attribute(int ordinal, int attribute, int *value)
{
    int device = -1;
    int rc;

    if (!hipio_cuda_usable())
        return hipio_status_set(-ENODEV, "cuda: the driver is not attached");
    rc = hipio_cuda_check("cuDeviceGet", hipio_cuda.cuDeviceGet(&device, ordinal));
    if (rc != 0)
        return rc;
    return hipio_cuda_check("cuDeviceGetAttribute",
                            hipio_cuda.cuDeviceGetAttribute(value, attribute, device));
}

/* Managed memory is the CPU's at any time only where the device allows it while it works; elsewhere
 * a touch during anyone's kernel is a fault. */
static bool is_managed_shared(int device)
{
    int value = 1;

    return get_attribute(device, CUDA_ATTRIBUTE_CONCURRENT_MANAGED, &value) != 0 || value != 0;
}

/* Host memory that was registered or mapped for the device may be known by an address that only the
 * device can use. */
static bool is_cpu_address(uint64_t host, const void *address)
{
    return host == (uintptr_t)address || hipio_device_probe(address, 1) == 0;
}

static int classify(const void *address, struct hipio_memory *memory)
{
    /* Some answers are written with four bytes only. */
    uint64_t context = 0, type = 0, host = 0, managed = 0, ordinal = 0;
    int attributes[] = {CUDA_POINTER_CONTEXT, CUDA_POINTER_TYPE, CUDA_POINTER_HOST,
                        CUDA_POINTER_MANAGED, CUDA_POINTER_ORDINAL};
    void *values[] = {&context, &type, &host, &managed, &ordinal};
    int error, rc;

    if (!hipio_cuda_usable())
        return 1;
    error = hipio_cuda.cuPointerGetAttributes(5, attributes, values, (uintptr_t)address);
    if (error == GPU_INVALID_VALUE || hipio_gpu_is_down(error))
        return 1;
    /* After a fault nothing can be asked any more. What the CPU can read is then served as host
     * memory, so that a program can still save what it has; for the rest the text says why not. */
    rc = hipio_cuda_check("cuPointerGetAttributes", error);
    if (rc != 0)
        return hipio_gpu_is_fault(error) ? 1 : rc;
    if ((uint32_t)type == CUDA_TYPE_UNKNOWN)
        return 1;
    if ((uint32_t)ordinal >= CUDA_DEVICES)
        return hipio_status_set(-ENOTSUP, "cuda: device %d is beyond the %d that are served",
                                (int)(uint32_t)ordinal, CUDA_DEVICES);

    *memory = (struct hipio_memory){.kind = HIPIO_MEMORY_DEVICE, .ops = &hipio_device_cuda};
    memory->device = (int)ordinal;
    if ((uint32_t)managed != 0)
        memory->kind = HIPIO_MEMORY_MANAGED;
    else if ((uint32_t)type == CUDA_TYPE_HOST && is_cpu_address(host, address))
        memory->kind = HIPIO_MEMORY_PINNED;
    memory->cpu_access =
        memory->kind == HIPIO_MEMORY_PINNED ||
        (memory->kind == HIPIO_MEMORY_MANAGED && is_managed_shared(memory->device));
    hipio_cuda_remember_context(memory->device, (void *)(uintptr_t)context);
    return 0;
}

static int range(const struct hipio_memory *memory, const void *address, uintptr_t *start_out,
                 uint64_t *length)
{
    uint64_t base = 0;
    size_t size = 0;
    bool pushed;
    int error, rc;

    if (memory->kind == HIPIO_MEMORY_MANAGED)
        return hipio_status_set(-ENOTSUP, "cuda: the driver keeps no range of managed memory");
    rc = hipio_cuda_enter_device(memory->device, &pushed);
    if (rc != 0)
        return rc;
    error = hipio_cuda.cuMemGetAddressRange_v2(&base, &size, (uintptr_t)address);
    rc = hipio_cuda_leave(pushed, hipio_cuda_check("cuMemGetAddressRange", error));
    if (rc != 0)
        return error == GPU_NOT_FOUND ? -EINVAL : rc;
    *start_out = (uintptr_t)base;
    *length = size;
    return 0;
}

static int device_count(void)
{
    int count = 0;

    /* A driver that nobody has initialised has no devices yet. */
    if (!hipio_cuda_usable() || hipio_cuda.cuDeviceGetCount(&count) != 0)
        return 0;
    return count;
}

/* A text about the device from one of the functions that give one. */
static int device_text(int ordinal, const char *call, int (*function)(char *, int, int), char *out,
                       size_t size)
{
    int device = -1;
    int rc;

    if (!hipio_cuda_usable())
        return hipio_status_set(-ENODEV, "cuda: the driver is not attached");
    if (function == NULL)
        return hipio_status_set(-ENOTSUP, "cuda: %s has no %s", library.file, call);
    rc = hipio_cuda_check("cuDeviceGet", hipio_cuda.cuDeviceGet(&device, ordinal));
    return rc != 0 ? rc : hipio_cuda_check(call, function(out, (int)size, device));
}

static int device_name(int device, char *out, size_t size)
{
    return device_text(device, "cuDeviceGetName", hipio_cuda.cuDeviceGetName, out, size);
}

static int pci_bus_id(int device, char *out, size_t size)
{
    return device_text(device, "cuDeviceGetPCIBusId", hipio_cuda.cuDeviceGetPCIBusId, out, size);
}

static int runtime_version(char *out, size_t size)
{
    if (!hipio_cuda_usable())
        return hipio_status_set(-ENODEV, "cuda: the driver is not attached");
    snprintf(out, size, "CUDA driver %d.%d", cuda.version / 1000, cuda.version % 1000 / 10);
    return 0;
}

static int synchronize(int device, bool everything)
{
    bool pushed;
    int rc = hipio_cuda_enter_device(device, &pushed);

    if (rc != 0)
        return rc;
    if (everything)
        rc = hipio_cuda_check("cuCtxSynchronize", hipio_cuda.cuCtxSynchronize());
    else
        rc = hipio_cuda_check("cuStreamSynchronize", hipio_cuda.cuStreamSynchronize(NULL));
    return hipio_cuda_leave(pushed, rc);
}

/* Creates a stream or an event of the device; `create` is the function for it, named `call`. */
static int create_handle(int device, const char *call, int (*create)(void **, unsigned),
                         unsigned flags, struct cuda_handle *out)
{
    bool pushed;
    int rc = hipio_cuda_find_context(device, &out->context);

    if (rc == 0)
        rc = hipio_cuda_enter(out->context, &pushed);
    return rc != 0 ? rc
                   : hipio_cuda_leave(pushed, hipio_cuda_check(call, create(&out->handle, flags)));
}

static int stream_create(int device, struct hipio_stream **out)
{
    struct hipio_stream *stream = calloc(1, sizeof(*stream));
    int rc;

    if (stream == NULL)
        return hipio_status_set(-ENOMEM, "no memory for a stream");
    rc = create_handle(device, "cuStreamCreate", hipio_cuda.cuStreamCreate, GPU_STREAM_NON_BLOCKING,
                       &stream->on);
    if (rc != 0)
        free(stream);
    else
        *out = stream;
    return rc;
}

static int stream_destroy(struct hipio_stream *stream)
{
    int rc = call_on(stream->on.context, "cuStreamDestroy", hipio_cuda.cuStreamDestroy_v2,
                     stream->on.handle);

    free(stream);
    return rc;
}

static int stream_synchronize(struct hipio_stream *stream)
{
    return call_on(stream->on.context, "cuStreamSynchronize", hipio_cuda.cuStreamSynchronize,
                   stream->on.handle);
}

static int copy(struct hipio_stream *stream, void *to, const void *from, uint64_t bytes,
                enum hipio_copy way)
{
    const char *call = "cuMemcpyAsync";
    bool pushed;
    int rc;

    if (bytes == 0)
        return 0;
    rc = hipio_cuda_enter(stream->on.context, &pushed);
    if (rc != 0)
        return rc;
    if (way == HIPIO_COPY_TO_DEVICE) {
        call = "cuMemcpyHtoDAsync";
        rc = hipio_cuda.cuMemcpyHtoDAsync_v2((uintptr_t)to, from, bytes, stream->on.handle);
    } else if (way == HIPIO_COPY_TO_HOST) {
        call = "cuMemcpyDtoHAsync";
        rc = hipio_cuda.cuMemcpyDtoHAsync_v2(to, (uintptr_t)from, bytes, stream->on.handle);
    } else {
        rc = hipio_cuda.cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, bytes, stream->on.handle);
    }
    return hipio_cuda_leave(pushed, hipio_cuda_check(call, rc));
}

static struct cuda_copy_side copy_side(const void *address, uint64_t pitch, bool host)
{
    struct cuda_copy_side side = {.pitch = pitch};

    side.type = host ? CUDA_TYPE_HOST : CUDA_TYPE_DEVICE;
    if (host)
        side.host = address;
    else
        side.device = (uintptr_t)address;
    return side;
}

static int copy_2d(struct hipio_stream *stream, void *to, uint64_t to_pitch, const void *from,
                   uint64_t from_pitch, uint64_t width, uint64_t rows, enum hipio_copy way)
{
    struct cuda_copy_2d shape = {.width = width, .height = rows};
    bool pushed;
    int error, rc;

    if (width == 0 || rows == 0)
        return 0;
    rc = hipio_gpu_check_pitch(to_pitch, from_pitch, width);
    if (rc != 0)
        return rc;
    shape.from = copy_side(from, from_pitch, way == HIPIO_COPY_TO_DEVICE);
    shape.to = copy_side(to, to_pitch, way == HIPIO_COPY_TO_HOST);
    rc = hipio_cuda_enter(stream->on.context, &pushed);
    if (rc != 0)
        return rc;
    error = hipio_cuda.cuMemcpy2DAsync_v2(&shape, stream->on.handle);
    rc = hipio_cuda_leave(pushed, hipio_cuda_check("cuMemcpy2DAsync", error));
    /* What was wrong, if not the shape, shows when the rows are copied one by one. */
    return error == GPU_INVALID_VALUE ? -ENOTSUP : rc;
}

static int event_create(int device, struct hipio_event **out)
{
    struct hipio_event *event = calloc(1, sizeof(*event));
    int rc;

    if (event == NULL)
        return hipio_status_set(-ENOMEM, "no memory for an event");
    rc = create_handle(device, "cuEventCreate", hipio_cuda.cuEventCreate, GPU_EVENT_NO_TIMING,
                       &event->on);
    if (rc != 0)
        free(event);
    else
        *out = event;
    return rc;
}

static int event_destroy(struct hipio_event *event)
{
    int rc = call_on(event->on.context, "cuEventDestroy", hipio_cuda.cuEventDestroy_v2,
                     event->on.handle);

    free(event);
    return rc;
}

static int event_record(struct hipio_event *event, struct hipio_stream *stream)
{
    bool pushed;
    int rc = hipio_cuda_enter(stream->on.context, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuEventRecord(event->on.handle, stream->on.handle);
    return hipio_cuda_leave(pushed, hipio_cuda_check("cuEventRecord", rc));
}

static int event_synchronize(struct hipio_event *event)
{
    return call_on(event->on.context, "cuEventSynchronize", hipio_cuda.cuEventSynchronize,
                   event->on.handle);
}

static int event_query(struct hipio_event *event)
{
    bool pushed;
    int rc = hipio_cuda_enter(event->on.context, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuEventQuery(event->on.handle);
    return hipio_cuda_leave(pushed,
                            rc == GPU_NOT_READY ? -EAGAIN : hipio_cuda_check("cuEventQuery", rc));
}

static int module_load(int device, const void *image, void **module)
{
    bool pushed;
    int rc = hipio_cuda_enter_device(device, &pushed);

    if (rc != 0)
        return rc;
    return hipio_cuda_leave(
        pushed, hipio_cuda_check("cuModuleLoadData", hipio_cuda.cuModuleLoadData(module, image)));
}

static int module_function(int device, void *module, const char *name, void **function)
{
    bool pushed;
    int rc = hipio_cuda_enter_device(device, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuModuleGetFunction(function, module, name);
    return hipio_cuda_leave(pushed, hipio_cuda_check("cuModuleGetFunction", rc));
}

static int module_unload(int device, void *module)
{
    bool pushed;
    int rc = hipio_cuda_enter_device(device, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuModuleUnload(module);
    return hipio_cuda_leave(pushed, hipio_cuda_check("cuModuleUnload", rc));
}

static int launch(struct hipio_stream *stream, void *function, unsigned blocks, unsigned threads,
                  void **params)
{
    bool pushed;
    int rc = hipio_cuda_enter(stream->on.context, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream->on.handle,
                                   params, NULL);
    return hipio_cuda_leave(pushed, hipio_cuda_check("cuLaunchKernel", rc));
}

static int multiprocessors(int device)
{
    int value = 0;
    int rc = get_attribute(device, CUDA_ATTRIBUTE_MULTIPROCESSORS, &value);

    return rc != 0 ? rc : value;
}

const struct hipio_device_ops hipio_device_cuda = {
    .name = "cuda",
    .attach = attach,
    .present = present,
    .classify = classify,
    .range = range,
    .device_count = device_count,
    .device_name = device_name,
    .pci_bus_id = pci_bus_id,
    .runtime_version = runtime_version,
    .synchronize = synchronize,
    .host_alloc = hipio_cuda_host_alloc,
    .host_free = hipio_cuda_host_free,
    .host_register = hipio_cuda_host_register,
    .host_unregister = hipio_cuda_host_unregister,
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
    .device_pointer = hipio_cuda_device_pointer,
    .multiprocessors = multiprocessors,
    .image_family = "cuda",
    .user_streams = &hipio_cuda_user_streams,
};
