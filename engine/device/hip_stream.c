/* SPDX-License-Identifier: MIT */
/*
 * Hip stream: work on the application's streams.
 *
 * A stream of HIP waits only for *signal memory*, which the runtime hands out by eight bytes.
 * hipLaunchHostFunc exists from 5.3 on; before that the older callback does the same.
 */
#include "device/hip.h"
#include <stdlib.h>

#define SIGNAL_MEMORY 2u /* hipMallocSignalMemory */
#define WAIT_AT_LEAST 0u
#define ALL_BITS UINT64_MAX
/* The handle by which every thread means a stream of its own. */
#define PER_THREAD ((void *)2)

/* One call on a stream, for hipio_hip_call. */
struct work {
    const struct hip_functions *f;
    const struct hipio_stream *stream;
    void *argument;
    void *word;
    uint64_t value;
    int answer;
    int error; /* what the runtime said */
};

static int refuse(const char *what)
{
    return hipio_status_set(-ENOTSUP, "hip: this runtime has no %s", what);
}

/* Queues or asks something on a device: `step` makes the call, named `call`. */
static int perform(int device, const char *call, int (*step)(void *), struct work *work)
{
    work->f = hipio_hip_functions();
    if (work->f == NULL)
        return hipio_status_set(-ENODEV, "hip: the runtime is not attached");
    int rc = hipio_hip_call(device, step, work, &work->error);
    return rc != 0 ? rc : hipio_hip_check(call, work->error);
}

static int ask_device(const struct hip_functions *f, void *handle, int *device)
{
    if (handle == NULL || (f->hipStreamGetDevice == NULL && f->hipGetStreamDeviceId == NULL))
        return f->hipGetDevice(device);
    if (f->hipStreamGetDevice != NULL)
        return f->hipStreamGetDevice(handle, device);
    *device = f->hipGetStreamDeviceId(handle);
    return *device < 0 ? GPU_INVALID_HANDLE : 0;
}

static bool is_bad_handle(int error)
{
    return error == GPU_INVALID_VALUE || error == GPU_INVALID_HANDLE ||
           error == GPU_CONTEXT_IS_DESTROYED;
}

static int device_of(void *handle, int *device)
{
    const struct hip_functions *f = hipio_hip_functions();

    if (f == NULL)
        return hipio_status_set(-ENODEV, "hip: the runtime is not attached");
    if (handle == PER_THREAD)
        return hipio_status_set(-ENOTSUP, "hip: the per-thread default stream is another stream in "
                                          "every thread: create one");
    int error = ask_device(f, handle, device);
    int rc = hipio_hip_check("hipStreamGetDevice", error);
    if (!is_bad_handle(error))
        return rc;
    return hipio_status_set(-EINVAL, "hip: %p is no stream, or was destroyed (%d)", handle, error);
}

static int wrap(void *handle, struct hipio_stream **out)
{
    struct hipio_stream *stream;
    int device;
    int rc = device_of(handle, &device);

    if (rc != 0)
        return rc;
    stream = malloc(sizeof(*stream));
    if (stream == NULL)
        return hipio_status_set(-ENOMEM, "no memory for a stream");
    *stream = (struct hipio_stream){.device = device, .handle = handle};
    *out = stream;
    return 0;
}

static int ask_capture(void *context)
{
    struct work *work = context;

    return work->f->hipStreamIsCapturing(work->stream->handle, &work->answer);
}

static int check(struct hipio_stream *stream)
{
    const struct hip_functions *f = hipio_hip_functions();
    struct work work = {.stream = stream};

    if (f == NULL || f->hipStreamIsCapturing == NULL)
        return f == NULL ? hipio_status_set(-ENODEV, "hip: the runtime is not attached") : 0;
    int rc = perform(stream->device, "hipStreamIsCapturing", ask_capture, &work);
    if (is_bad_handle(work.error))
        return hipio_status_set(-EINVAL, "hip: the stream was destroyed (%d)", work.error);
    if (rc != 0)
        return rc;
    if (work.answer == 0)
        return 0;
    return hipio_status_set(-EBUSY, "hip: the stream is being captured to a graph, which can't "
                                    "hold file I/O: end the capture first");
}

static enum hipio_capture_mode capture_mode(enum hipio_capture_mode mode)
{
    const struct hip_functions *f = hipio_hip_functions();
    int number = (int)mode;

    if (f == NULL || f->hipThreadExchangeStreamCaptureMode == NULL)
        return mode;
    int error = f->hipThreadExchangeStreamCaptureMode(&number);
    return hipio_hip_check("hipThreadExchangeStreamCaptureMode", error) == 0
               ? (enum hipio_capture_mode)number
               : mode;
}

/* A function with its argument, for the runtime to hold. Whether the call comes after a fault of
 * the device is not certain, so it is kept with the stream, once. */
struct hip_callback {
    hipio_user_function function;
    void *argument;
    struct hip_callback *next;
};

static void call_back(void *stream, int status, void *argument)
{
    struct hip_callback *callback = argument;

    (void)stream;
    callback->function(callback->argument, status != 0);
}

static void call_plainly(void *argument)
{
    struct hip_callback *callback = argument;

    callback->function(callback->argument, false);
}

static struct hip_callback *make_callback(struct hipio_stream *stream, hipio_user_function function,
                                          void *argument)
{
    struct hip_callback *callback = stream->callbacks;

    while (callback && (callback->function != function || callback->argument != argument))
        callback = callback->next;
    if (callback)
        return callback;
    callback = malloc(sizeof(*callback));
    if (callback) {
        *callback = (struct hip_callback){function, argument, stream->callbacks};
        stream->callbacks = callback;
    }
    return callback;
}

static void unwrap(struct hipio_stream *stream)
{
    while (stream->callbacks) {
        struct hip_callback *next = stream->callbacks->next;

        free(stream->callbacks);
        stream->callbacks = next;
    }
    free(stream);
}

static int launch_function(void *context)
{
    struct work *work = context;

    return work->f->hipLaunchHostFunc(work->stream->handle, call_plainly, work->argument);
}

static int add_callback(void *context)
{
    struct work *work = context;

    return work->f->hipStreamAddCallback(work->stream->handle, call_back, work->argument, 0);
}

static int call(struct hipio_stream *stream, hipio_user_function function, void *argument)
{
    const struct hip_functions *f = hipio_hip_functions();
    struct work work = {.stream = stream};

    if (f != NULL && f->hipLaunchHostFunc == NULL && f->hipStreamAddCallback == NULL)
        return refuse("host functions");
    work.argument = make_callback(stream, function, argument);
    if (work.argument == NULL)
        return hipio_status_set(-ENOMEM, "no memory for a host function");
    if (f != NULL && f->hipLaunchHostFunc != NULL)
        return perform(stream->device, "hipLaunchHostFunc", launch_function, &work);
    return perform(stream->device, "hipStreamAddCallback", add_callback, &work);
}

static int allocate_signal(void *context)
{
    struct work *work = context;

    return work->f->hipExtMallocWithFlags(&work->word, sizeof(uint64_t), SIGNAL_MEMORY);
}

static int free_signal(void *context)
{
    struct work *work = context;

    return work->f->hipFree(work->word);
}

static bool can_wait(const struct hip_functions *f, int device)
{
    int value = 0;

    if (f->hipStreamWaitValue64 == NULL || f->hipStreamWriteValue64 == NULL ||
        f->hipExtMallocWithFlags == NULL || f->hipFree == NULL)
        return false;
    int error = f->hipDeviceGetAttribute(&value, HIP_ATTRIBUTE_WAIT_VALUE, device);
    return hipio_hip_check("hipDeviceGetAttribute", error) == 0 && value == 1;
}

static int word_create(int device, struct hipio_word *out)
{
    const struct hip_functions *f = hipio_hip_functions();
    struct work work = {.word = NULL};

    if (f == NULL || !can_wait(f, device))
        return hipio_status_set(-ENOTSUP, "hip: streams of device %d can't wait for memory values",
                                device);
    int rc = perform(device, "hipExtMallocWithFlags", allocate_signal, &work);
    if (rc != 0)
        return rc;
    out->host = work.word;
    out->device = work.word;
    __atomic_store_n(out->host, 0, __ATOMIC_RELEASE);
    return 0;
}

static void word_destroy(int device, struct hipio_word *word)
{
    struct work work = {.word = word->device};

    if (word->device != NULL)
        perform(device, "hipFree", free_signal, &work);
    *word = (struct hipio_word){NULL, NULL};
}

static int wait_value(void *context)
{
    struct work *work = context;

    return work->f->hipStreamWaitValue64(work->stream->handle, work->word, work->value,
                                         WAIT_AT_LEAST, ALL_BITS);
}

static int write_value(void *context)
{
    struct work *work = context;

    return work->f->hipStreamWriteValue64(work->stream->handle, work->word, work->value, 0);
}

static int wait(struct hipio_stream *stream, const struct hipio_word *word, uint64_t value)
{
    struct work work = {.stream = stream, .word = word->device, .value = value};

    return perform(stream->device, "hipStreamWaitValue64", wait_value, &work);
}

static int write(struct hipio_stream *stream, const struct hipio_word *word, uint64_t value)
{
    struct work work = {.stream = stream, .word = word->device, .value = value};

    return perform(stream->device, "hipStreamWriteValue64", write_value, &work);
}

const struct hipio_user_stream_ops hipio_hip_user_streams = {
    .device_of = device_of,
    .wrap = wrap,
    .unwrap = unwrap,
    .check = check,
    .capture_mode = capture_mode,
    .call = call,
    .word_create = word_create,
    .word_destroy = word_destroy,
    .wait = wait,
    .write = write,
};
