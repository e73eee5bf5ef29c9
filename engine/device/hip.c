/* SPDX-License-Identifier: MIT */
/*
 * Hip: AMD GPUs through libamdhip64, found in the process or loaded, ROCm 5 and later.
 *
 * The library's major version decides what its numbers mean; nothing here was compiled against its
 * headers. HIP has one last error per thread. Up to 6.4 every call overwrites it, from 7 on only
 * failures do; so it is cleared after each failure of ours and never after a success, which from 7
 * on would take the application's own error away.
 */
#include "device/hip.h"
#include "device/dl.h"
#include "device/provider.h"
#include "log.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const struct hip_types types_5 = {.unregistered = -2, .host = 0, .managed = 4};
static const struct hip_types types_6 = {.unregistered = 0, .host = 1, .managed = 3};

#define HIP_OLDEST_MAJOR 4 /* the numbers of older ones are not known */
static const char *const names[] = {"libamdhip64.so.10",
                                    "libamdhip64.so.8",
                                    "libamdhip64.so.7",
                                    "libamdhip64.so.6",
                                    "libamdhip64.so.5",
                                    "libamdhip64.so",
                                    NULL};

static const struct hipio_dl_symbol symbols[] = {
#define HIP_SYMBOL(required, result, name, arguments)                                              \
    {#name, offsetof(struct hip_functions, name), required},
#include "hip_syms.def"
#undef HIP_SYMBOL
};

static int start(struct hipio_dl *library);

static struct hipio_dl library = {.names = names, .start = start};

/* Written by start, constant once the library is usable. */
static struct {
    struct hip_functions f;
    const struct hip_types *types;
    int version; /* major * 10000000 + minor * 100000 + patch */
    int major;
    int devices;
    bool *integrated; /* by device: the CPU and the GPU share its memory */
} hip;

/* Whether this thread has called the runtime through us: its first call has to be one that sets the
 * thread up. */
static _Thread_local bool thread_ready;

/* Takes the trace of our failed call out of the application's last error. */
static void forget(int error)
{
    if (error == GPU_NOT_READY && hip.major >= 7)
        return; /* was not stored; what is there is the application's */
    (void)hip.f.hipGetLastError();
}

/* Turns the runtime's answer to `call` into ours. */
static int check(const char *call, int error)
{
    const char *name, *text;

    if (error == 0)
        return 0;
    forget(error);
    name = hip.f.hipGetErrorName(error);
    text = hip.f.hipGetErrorString(error);
    return hipio_status_set(hipio_gpu_errno(error), "hip: %s failed: %s (%d): %s", call,
                            name != NULL ? name : "unknown", error, text != NULL ? text : "");
}

static int read_integrated(void)
{
    hip.integrated = calloc((size_t)hip.devices, sizeof(*hip.integrated));
    if (hip.integrated == NULL)
        return hipio_status_set(-ENOMEM, "no memory for the facts of %d devices", hip.devices);
    for (int i = 0; i < hip.devices; i++) {
        int value = 0;
        int error = hip.f.hipDeviceGetAttribute(&value, HIP_ATTRIBUTE_INTEGRATED, i);

        if (error != 0)
            forget(error);
        hip.integrated[i] = error == 0 && value == 1;
    }
    return 0;
}

static int start(struct hipio_dl *opened)
{
    int rc = hipio_dl_fill(opened, symbols, sizeof(symbols) / sizeof(symbols[0]), &hip.f);

    if (rc != 0)
        return rc;
    rc = check("hipRuntimeGetVersion", hip.f.hipRuntimeGetVersion(&hip.version));
    if (rc != 0)
        return -ENODEV;
    hip.major = hip.version / 10000000;
    if (hip.major < HIP_OLDEST_MAJOR)
        return hipio_status_set(-ENODEV, "hip: %s says version %d, which is too old", opened->file,
                                hip.version);
    hip.types = hip.major < 6 ? &types_5 : &types_6;
    rc = check("hipGetDeviceCount", hip.f.hipGetDeviceCount(&hip.devices));
    /* Out of memory may pass; that there is no device or no driver does not. */
    if (rc != 0)
        return rc == -ENOMEM ? rc : -ENODEV;
    if (hip.devices <= 0)
        return hipio_status_set(-ENODEV, "hip: %s finds no device", opened->file);
    return read_integrated();
}

static int attach(bool force)
{
    return hipio_dl_attach(&library, force);
}

static bool present(void)
{
    return hipio_dl_present(&library);
}

/* True if the runtime may be called; sets the thread up for it. */
static bool ready(void)
{
    if (!hipio_dl_usable(&library))
        return false;
    if (!thread_ready) {
        int error = hip.f.hipInit(0);

        if (error != 0)
            forget(error);
        thread_ready = true;
    }
    return true;
}

/* Makes `device` current; *previous is what leave has to bring back, or -1. */
static int enter(int device, int *previous)
{
    int current = -1;
    int rc;

    *previous = -1;
    if (!ready())
        return hipio_status_set(-ENODEV, "hip: the runtime is not attached");
    if (device < 0 || device >= hip.devices)
        return hipio_status_set(-ENODEV, "hip: there is no device %d", device);
    rc = check("hipGetDevice", hip.f.hipGetDevice(&current));
    if (rc != 0 || current == device)
        return rc;
    rc = check("hipSetDevice", hip.f.hipSetDevice(device));
    if (rc == 0)
        *previous = current;
    return rc;
}

/* Undoes enter; returns `rc`, the result of what was done between. */
static int leave(int previous, int rc)
{
    int error;

    if (previous < 0)
        return rc;
    error = hip.f.hipSetDevice(previous);
    if (error != 0) {
        forget(error);
        hipio_log(HIPIO_LOG_ERROR, "hip: device %d could not be made current again: %s (%d)",
                  previous, hip.f.hipGetErrorName(error), error);
    }
    return rc;
}

const struct hip_functions *hipio_hip_functions(void)
{
    return hipio_dl_usable(&library) ? &hip.f : NULL;
}

int hipio_hip_check(const char *call, int error)
{
    return check(call, error);
}

int hipio_hip_find(const char *name, void **function)
{
    int found = -1;

    *function = NULL;
    if (!ready())
        return hipio_status_set(-ENODEV, "hip: the runtime is not attached");
    if (hip.f.hipGetProcAddress != NULL)
        check(name, hip.f.hipGetProcAddress(name, function, hip.version, 0, &found));
    if (*function != NULL)
        return 0;
    return hipio_status_set(-ENOTSUP, "hip: %s has no %s", library.file, name);
}

int hipio_hip_call(int device, int (*call)(void *context), void *context, int *code)
{
    int previous;
    int rc = enter(device, &previous);

    if (rc != 0)
        return rc;
    *code = call(context);
    if (*code != 0)
        forget(*code);
    return leave(previous, 0);
}

/* Calls `function`, named `call`, on a handle of the device. */
static int call_on(int device, const char *call, int (*function)(void *), void *handle)
{
    int error = 0;
    int rc = hipio_hip_call(device, function, handle, &error);

    return rc != 0 ? rc : check(call, error);
}

bool hipio_hip_is_integrated(int device)
{
    return hipio_dl_usable(&library) && device < hip.devices && hip.integrated[device];
}

/* Registered memory may have a second address for the device, which the CPU can't use. */
static bool is_cpu_address(const struct hip_pointer *pointer, const void *address)
{
    return pointer->host_pointer == address || hipio_device_probe(address, 1) == 0;
}

static int classify(const void *address, struct hipio_memory *memory)
{
    struct hip_pointer pointer = {.device = -1};
    int error, rc;

    if (!ready())
        return 1;
    pointer.type = hip.types->unregistered;
    error = hip.f.hipPointerGetAttributes(&pointer, address);
    if (error == GPU_INVALID_VALUE || error == HIP_INVALID_DEVICE_POINTER ||
        hipio_gpu_is_down(error)) {
        forget(error);
        return 1;
    }
    /* After a fault nothing can be asked any more. What the CPU can read is then served as host
     * memory, so that a program can still save what it has; for the rest the text says why not. */
    rc = check("hipPointerGetAttributes", error);
    if (rc != 0)
        return hipio_gpu_is_fault(error) ? 1 : rc;
    if (!pointer.managed && pointer.type == hip.types->unregistered)
        return 1;

    *memory = (struct hipio_memory){.kind = HIPIO_MEMORY_DEVICE, .ops = &hipio_device_hip};
    memory->device = pointer.device >= 0 && pointer.device < hip.devices ? pointer.device : 0;
    if (pointer.managed || pointer.type == hip.types->managed)
        memory->kind = HIPIO_MEMORY_MANAGED;
    else if (pointer.type == hip.types->host && is_cpu_address(&pointer, address))
        memory->kind = HIPIO_MEMORY_PINNED;
    memory->cpu_access = memory->kind != HIPIO_MEMORY_DEVICE || hip.integrated[memory->device];
    return 0;
}

static int range(const struct hipio_memory *memory, const void *address, uintptr_t *start_out,
                 uint64_t *length)
{
    void *base = NULL;
    size_t size = 0;
    int previous, error, rc;

    if (address == NULL)
        return hipio_status_set(-EINVAL, "hip: NULL is in no allocation");
    rc = enter(memory->device, &previous);
    if (rc != 0)
        return rc;
    error = hip.f.hipMemGetAddressRange(&base, &size, (void *)(uintptr_t)address);
    rc = check("hipMemGetAddressRange", error);
    leave(previous, rc);
    if (rc != 0)
        return error == GPU_NOT_FOUND ? -EINVAL : rc;
    *start_out = (uintptr_t)base;
    *length = size;
    return 0;
}

static int device_count(void)
{
    return hipio_dl_usable(&library) ? hip.devices : 0;
}

/* A text about the device from one of the functions that give one. */
static int device_text(int device, const char *call, int (*function)(char *, int, int), char *out,
                       size_t size)
{
    int previous;
    int rc = enter(device, &previous);

    if (rc != 0)
        return rc;
    if (function == NULL)
        return leave(previous, hipio_status_set(-ENOTSUP, "hip: %s has no %s", library.file, call));
    return leave(previous, check(call, function(out, (int)size, device)));
}

static int device_name(int device, char *out, size_t size)
{
    return device_text(device, "hipDeviceGetName", hip.f.hipDeviceGetName, out, size);
}

static int pci_bus_id(int device, char *out, size_t size)
{
    return device_text(device, "hipDeviceGetPCIBusId", hip.f.hipDeviceGetPCIBusId, out, size);
}

static int runtime_version(char *out, size_t size)
{
    if (!hipio_dl_usable(&library))
        return hipio_status_set(-ENODEV, "hip: the runtime is not attached");
    snprintf(out, size, "HIP %d.%d.%d", hip.major, hip.version / 100000 % 100,
             hip.version % 100000);
    return 0;
}

static int synchronize(int device, bool everything)
{
    int previous;
    int rc = enter(device, &previous);

    if (rc != 0)
        return rc;
    if (everything)
        rc = check("hipDeviceSynchronize", hip.f.hipDeviceSynchronize());
    else
        rc = check("hipStreamSynchronize", hip.f.hipStreamSynchronize(NULL));
    return leave(previous, rc);
}

/* Creates a stream or an event; `create` is the function for it, named `call`. */
static int create_handle(int device, const char *call, int (*create)(void **, unsigned),
                         unsigned flags, void **out)
{
    int previous;
    int rc = enter(device, &previous);

    if (rc != 0)
        return rc;
    return leave(previous, check(call, create(out, flags)));
}

static int stream_create(int device, struct hipio_stream **out)
{
    struct hipio_stream *stream = malloc(sizeof(*stream));
    int rc;

    if (stream == NULL)
        return hipio_status_set(-ENOMEM, "no memory for a stream");
    *stream = (struct hipio_stream){.device = device};
    rc = create_handle(device, "hipStreamCreateWithFlags", hip.f.hipStreamCreateWithFlags,
                       GPU_STREAM_NON_BLOCKING, &stream->handle);
    if (rc != 0)
        free(stream);
    else
        *out = stream;
    return rc;
}

static int stream_destroy(struct hipio_stream *stream)
{
    int rc = call_on(stream->device, "hipStreamDestroy", hip.f.hipStreamDestroy, stream->handle);

    free(stream);
    return rc;
}

static int stream_synchronize(struct hipio_stream *stream)
{
    return call_on(stream->device, "hipStreamSynchronize", hip.f.hipStreamSynchronize,
                   stream->handle);
}

static const int copy_kinds[] = {[HIPIO_COPY_TO_DEVICE] = HIP_KIND_HOST_TO_DEVICE,
                                 [HIPIO_COPY_TO_HOST] = HIP_KIND_DEVICE_TO_HOST,
                                 [HIPIO_COPY_DEVICE] = HIP_KIND_DEVICE_TO_DEVICE};

static int copy(struct hipio_stream *stream, void *to, const void *from, uint64_t bytes,
                enum hipio_copy way)
{
    int previous, rc;

    if (bytes == 0)
        return 0;
    rc = enter(stream->device, &previous);
    if (rc != 0)
        return rc;
    rc = hip.f.hipMemcpyAsync(to, from, bytes, copy_kinds[way], stream->handle);
    return leave(previous, check("hipMemcpyAsync", rc));
}

static int copy_2d(struct hipio_stream *stream, void *to, uint64_t to_pitch, const void *from,
                   uint64_t from_pitch, uint64_t width, uint64_t rows, enum hipio_copy way)
{
    int previous, error, rc;

    if (width == 0 || rows == 0)
        return 0;
    rc = hipio_gpu_check_pitch(to_pitch, from_pitch, width);
    if (rc != 0)
        return rc;
    rc = enter(stream->device, &previous);
    if (rc != 0)
        return rc;
    error = hip.f.hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, rows, copy_kinds[way],
                                   stream->handle);
    rc = check("hipMemcpy2DAsync", error);
    leave(previous, rc);
    /* What was wrong, if not the shape, shows when the rows are copied one by one. */
    return error == GPU_INVALID_VALUE || error == HIP_INVALID_PITCH ? -ENOTSUP : rc;
}

static int event_create(int device, struct hipio_event **out)
{
    struct hipio_event *event = malloc(sizeof(*event));
    int rc;

    if (event == NULL)
        return hipio_status_set(-ENOMEM, "no memory for an event");
    *event = (struct hipio_event){.device = device};
    rc = create_handle(device, "hipEventCreateWithFlags", hip.f.hipEventCreateWithFlags,
                       GPU_EVENT_NO_TIMING, &event->handle);
    if (rc != 0)
        free(event);
    else
        *out = event;
    return rc;
}

static int event_destroy(struct hipio_event *event)
{
    int rc = call_on(event->device, "hipEventDestroy", hip.f.hipEventDestroy, event->handle);

    free(event);
    return rc;
}

static int event_record(struct hipio_event *event, struct hipio_stream *stream)
{
    int previous;
    int rc = enter(stream->device, &previous);

    if (rc != 0)
        return rc;
    rc = hip.f.hipEventRecord(event->handle, stream->handle);
    return leave(previous, check("hipEventRecord", rc));
}

static int event_synchronize(struct hipio_event *event)
{
    return call_on(event->device, "hipEventSynchronize", hip.f.hipEventSynchronize, event->handle);
}

static int event_query(struct hipio_event *event)
{
    int previous, error;
    int rc = enter(event->device, &previous);

    if (rc != 0)
        return rc;
    error = hip.f.hipEventQuery(event->handle);
    if (error == GPU_NOT_READY) {
        forget(error);
        rc = -EAGAIN;
    } else {
        rc = check("hipEventQuery", error);
    }
    return leave(previous, rc);
}

static int module_load(int device, const void *image, void **module)
{
    int previous;
    int rc = enter(device, &previous);

    if (rc != 0)
        return rc;
    return leave(previous, check("hipModuleLoadData", hip.f.hipModuleLoadData(module, image)));
}

static int module_function(int device, void *module, const char *name, void **function)
{
    int previous;
    int rc = enter(device, &previous);

    if (rc != 0)
        return rc;
    return leave(previous,
                 check("hipModuleGetFunction", hip.f.hipModuleGetFunction(function, module, name)));
}

static int module_unload(int device, void *module)
{
    return call_on(device, "hipModuleUnload", hip.f.hipModuleUnload, module);
}

static int launch(struct hipio_stream *stream, void *function, unsigned blocks, unsigned threads,
                  void **params)
{
    int previous;
    int rc = enter(stream->device, &previous);

    if (rc != 0)
        return rc;
    rc = hip.f.hipModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream->handle,
                                     params, NULL);
    return leave(previous, check("hipModuleLaunchKernel", rc));
}

static int multiprocessors(int device)
{
    int value = 0;
    int previous;
    int rc = enter(device, &previous);

    if (rc != 0)
        return rc;
    rc = hip.f.hipDeviceGetAttribute(&value, HIP_ATTRIBUTE_MULTIPROCESSORS, device);
    rc = leave(previous, check("hipDeviceGetAttribute", rc));
    return rc != 0 ? rc : value;
}

const struct hipio_device_ops hipio_device_hip = {
    .name = "hip",
    .attach = attach,
    .present = present,
    .classify = classify,
    .range = range,
    .device_count = device_count,
    .device_name = device_name,
    .pci_bus_id = pci_bus_id,
    .runtime_version = runtime_version,
    .synchronize = synchronize,
    .host_alloc = hipio_hip_host_alloc,
    .host_free = hipio_hip_host_free,
    .host_register = hipio_hip_host_register,
    .host_unregister = hipio_hip_host_unregister,
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
    .device_pointer = hipio_hip_device_pointer,
    .multiprocessors = multiprocessors,
    .image_family = "hip",
    .user_streams = &hipio_hip_user_streams,
};
