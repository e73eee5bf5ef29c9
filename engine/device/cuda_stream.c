/* SPDX-License-Identifier: MIT */
/*
 * Cuda stream: work on the application's streams.
 *
 * A stream may belong to a context that the program made itself. Our kernels live in one context
 * of the device, and can be launched only on streams of that one.
 */
#include "device/cuda.h"
#include <stdlib.h>

#define ATTRIBUTE_WAIT_VALUE 122
#define WAIT_AT_LEAST 0u
#define WORD_BYTES 64 /* nothing else lies in the word's line of the cache */
/* The handle by which every thread means a stream of its own, and the two of the default stream. */
#define PER_THREAD ((void *)2)
#define LEGACY ((void *)1)

static int refuse(const char *what)
{
    return hipio_status_set(-ENOTSUP, "cuda: this driver has no %s", what);
}

static bool is_bad_handle(int error)
{
    return error == GPU_INVALID_VALUE || error == GPU_INVALID_HANDLE ||
           error == GPU_CONTEXT_IS_DESTROYED;
}

static int context_of(void *handle, void **context)
{
    int error;

    if (!hipio_cuda_usable())
        return hipio_status_set(-ENODEV, "cuda: the driver is not attached");
    if (handle == PER_THREAD)
        return hipio_status_set(-ENOTSUP, "cuda: the per-thread default stream is another stream "
                                          "in every thread: create one");
    *context = NULL;
    if (handle == NULL || handle == LEGACY || hipio_cuda.cuStreamGetCtx == NULL)
        error = hipio_cuda.cuCtxGetCurrent(context);
    else
        error = hipio_cuda.cuStreamGetCtx(handle, context);
    if (is_bad_handle(error))
        return hipio_status_set(-EINVAL, "cuda: %p is no stream, or was destroyed (%d)", handle,
                                error);
    if (error != 0)
        return hipio_cuda_check("cuStreamGetCtx", error);
    if (*context == NULL)
        return hipio_status_set(-EINVAL, "cuda: the default stream means nothing in a thread "
                                         "without a current context");
    return 0;
}

static int device_of_context(void *context, int *device)
{
    bool pushed;
    int rc = hipio_cuda_enter(context, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda_leave(pushed,
                          hipio_cuda_check("cuCtxGetDevice", hipio_cuda.cuCtxGetDevice(device)));
    if (rc == 0 && (*device < 0 || *device >= CUDA_DEVICES))
        return hipio_status_set(-ENOTSUP, "cuda: device %d is beyond the %d that are served",
                                *device, CUDA_DEVICES);
    return rc;
}

static int device_of(void *handle, int *device)
{
    void *context;
    int rc = context_of(handle, &context);

    return rc != 0 ? rc : device_of_context(context, device);
}

static int wrap(void *handle, struct hipio_stream **out)
{
    struct hipio_stream *stream;
    void *context;
    int device;
    int rc = context_of(handle, &context);

    if (rc == 0)
        rc = device_of_context(context, &device);
    if (rc != 0)
        return rc;
    stream = malloc(sizeof(*stream));
    if (stream == NULL)
        return hipio_status_set(-ENOMEM, "no memory for a stream");
    *stream = (struct hipio_stream){.on = {context, handle}, .device = device};
    *out = stream;
    return 0;
}

/* A function with its argument, for the driver to hold; kept with the stream, once. */
struct cuda_call {
    hipio_user_function function;
    void *argument;
    struct cuda_call *next;
};

static void unwrap(struct hipio_stream *stream)
{
    while (stream->calls) {
        struct cuda_call *next = stream->calls->next;

        free(stream->calls);
        stream->calls = next;
    }
    free(stream);
}

static int check_capture(const struct hipio_stream *stream)
{
    int capturing = 0;

    if (hipio_cuda.cuStreamIsCapturing == NULL)
        return 0;
    int error = hipio_cuda.cuStreamIsCapturing(stream->on.handle, &capturing);
    if (is_bad_handle(error))
        return hipio_status_set(-EINVAL, "cuda: the stream was destroyed (%d)", error);
    if (error != 0 || capturing == 0)
        return hipio_cuda_check("cuStreamIsCapturing", error);
    return hipio_status_set(-EBUSY, "cuda: the stream is being captured to a graph, which can't "
                                    "hold file I/O: end the capture first");
}

static int check(struct hipio_stream *stream)
{
    void *context = NULL;
    bool pushed;
    int rc = hipio_cuda_enter(stream->on.context, &pushed);

    if (rc != 0)
        return rc;
    rc = hipio_cuda_leave(pushed, check_capture(stream));
    if (rc == 0)
        rc = hipio_cuda_find_context(stream->device, &context);
    if (rc == 0 && context != stream->on.context)
        return hipio_status_set(-EINVAL,
                                "cuda: the stream is of another context of device %d than "
                                "the memory: make it in the memory's context",
                                stream->device);
    return rc;
}

static enum hipio_capture_mode capture_mode(enum hipio_capture_mode mode)
{
    int number = (int)mode;

    if (!hipio_cuda_usable() || hipio_cuda.cuThreadExchangeStreamCaptureMode == NULL ||
        hipio_cuda.cuThreadExchangeStreamCaptureMode(&number) != 0)
        return mode;
    return (enum hipio_capture_mode)number;
}

static void call_plainly(void *argument)
{
    struct cuda_call *call = argument;

    call->function(call->argument, false);
}

static struct cuda_call *make_call(struct hipio_stream *stream, hipio_user_function function,
                                   void *argument)
{
    struct cuda_call *call = stream->calls;

    while (call && (call->function != function || call->argument != argument))
        call = call->next;
    if (call)
        return call;
    call = malloc(sizeof(*call));
    if (call) {
        *call = (struct cuda_call){function, argument, stream->calls};
        stream->calls = call;
    }
    return call;
}

static int call(struct hipio_stream *stream, hipio_user_function function, void *argument)
{
    struct cuda_call *held = make_call(stream, function, argument);
    bool pushed;

    if (held == NULL)
        return hipio_status_set(-ENOMEM, "no memory for a host function");
    if (hipio_cuda.cuLaunchHostFunc == NULL)
        return refuse("cuLaunchHostFunc");
    int rc = hipio_cuda_enter(stream->on.context, &pushed);
    if (rc != 0)
        return rc;
    rc = hipio_cuda.cuLaunchHostFunc(stream->on.handle, call_plainly, held);
    return hipio_cuda_leave(pushed, hipio_cuda_check("cuLaunchHostFunc", rc));
}

static bool can_wait(int ordinal)
{
    int device = -1, value = 0;

    return hipio_cuda.cuStreamWaitValue64_v2 != NULL &&
           hipio_cuda.cuStreamWriteValue64_v2 != NULL &&
           hipio_cuda.cuDeviceGet(&device, ordinal) == 0 &&
           hipio_cuda.cuDeviceGetAttribute(&value, ATTRIBUTE_WAIT_VALUE, device) == 0 && value == 1;
}

static int word_create(int device, struct hipio_word *out)
{
    const struct hipio_device_ops *ops = &hipio_device_cuda;
    void *memory = NULL;

    if (!hipio_cuda_usable() || !can_wait(device))
        return hipio_status_set(-ENOTSUP, "cuda: streams of device %d can't wait for memory values",
                                device);
    int rc = ops->host_alloc(device, WORD_BYTES, &memory);
    if (rc == 0)
        rc = ops->device_pointer(device, memory, &out->device);
    if (rc != 0) {
        ops->host_free(device, memory);
        return rc;
    }
    out->host = memory;
    __atomic_store_n(out->host, 0, __ATOMIC_RELEASE);
    return 0;
}

static void word_destroy(int device, struct hipio_word *word)
{
    hipio_device_cuda.host_free(device, word->host);
    *word = (struct hipio_word){NULL, NULL};
}

static int queue_value(struct hipio_stream *stream, const char *name,
                       int (*function)(void *, uint64_t, uint64_t, unsigned),
                       const struct hipio_word *word, uint64_t value)
{
    bool pushed;
    int rc = hipio_cuda_enter(stream->on.context, &pushed);

    if (rc != 0)
        return rc;
    rc = function(stream->on.handle, (uintptr_t)word->device, value, WAIT_AT_LEAST);
    return hipio_cuda_leave(pushed, hipio_cuda_check(name, rc));
}

static int wait(struct hipio_stream *stream, const struct hipio_word *word, uint64_t value)
{
    return queue_value(stream, "cuStreamWaitValue64", hipio_cuda.cuStreamWaitValue64_v2, word,
                       value);
}

static int write(struct hipio_stream *stream, const struct hipio_word *word, uint64_t value)
{
    return queue_value(stream, "cuStreamWriteValue64", hipio_cuda.cuStreamWriteValue64_v2, word,
                       value);
}

const struct hipio_user_stream_ops hipio_cuda_user_streams = {
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
