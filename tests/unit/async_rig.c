/* SPDX-License-Identifier: MIT */
/*
 * Async rig: what the tests of queued operations share.
 */
#include "async_rig.h"
#include "device_app.h"
#include "pattern.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCK ((size_t)64 << 10)

int async_rig_start(void)
{
    int devices = app_load() ? app_devices() : 0;

    if (devices == 0)
        exit(77);
    app_set_device(0);
    return devices;
}

int async_rig_file(uint64_t seed, uint64_t size)
{
    char path[] = "/tmp/hipio-async-XXXXXX";
    static unsigned char block[BLOCK];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    for (uint64_t at = 0; at < size; at += sizeof block) {
        size_t n = size - at < sizeof block ? size - at : sizeof block;
        pattern_fill(block, seed, at, n);
        assert_int_equal(pwrite(fd, block, n, (off_t)at), n);
    }
    return fd;
}

void async_rig_poison(unsigned char *device, uint64_t size)
{
    unsigned char *block = malloc(size);

    memset(block, 0xA5, size);
    app_copy(device, block, size);
    free(block);
}

unsigned char *async_rig_memory(uint64_t seed, uint64_t size)
{
    unsigned char *device = app_alloc(size);

    if (seed == 0) {
        async_rig_poison(device, size);
        return device;
    }
    unsigned char *block = malloc(size);
    pattern_fill(block, seed, 0, size);
    app_copy(device, block, size);
    free(block);
    return device;
}

void async_rig_check_memory(const unsigned char *device, uint64_t at, uint64_t n, uint64_t seed,
                            uint64_t position)
{
    unsigned char *block = calloc(1, n + 1);

    if (n > 0)
        app_copy(block, device + at, n);
    size_t good = pattern_check(block, seed, position, n);
    if (good < n)
        fail_msg("memory byte %llu is %02x", (unsigned long long)(at + good), block[good]);
    free(block);
}

void async_rig_check_poison(const unsigned char *device, uint64_t at, uint64_t n)
{
    unsigned char *block = calloc(1, n + 1);

    if (n > 0)
        app_copy(block, device + at, n);
    for (uint64_t i = 0; i < n; i++)
        if (block[i] != 0xA5)
            fail_msg("memory byte %llu was overwritten with %02x", (unsigned long long)(at + i),
                     block[i]);
    free(block);
}

void async_rig_check_file(int fd, uint64_t at, uint64_t n, uint64_t seed, uint64_t position)
{
    unsigned char *block = calloc(1, n + 1);

    assert_int_equal(pread(fd, block, n, (off_t)at), n);
    size_t good = pattern_check(block, seed, position, n);
    if (good < n)
        fail_msg("file byte %llu is %02x", (unsigned long long)(at + good), block[good]);
    free(block);
}

/* The functions of both runtimes have the same arguments. */
static void *function_of(const char *hip, const char *cuda)
{
    const char *name = app_is_cuda() ? cuda : hip;
    void *address = app_function(name);

    if (!address)
        fail_msg("the runtime has no %s", name);
    return address;
}

int async_rig_synchronize(void *stream)
{
    int (*function)(void *);
    void *address = function_of("hipStreamSynchronize", "cuStreamSynchronize");

    memcpy(&function, &address, sizeof function);
    return function(stream);
}

void async_rig_fill(void *stream, unsigned char *device, int value, size_t n)
{
    int (*hip)(void *, int, size_t, void *);
    int (*cuda)(uint64_t, unsigned char, size_t, void *);
    void *address = function_of("hipMemsetAsync", "cuMemsetD8Async");

    memcpy(&hip, &address, sizeof hip);
    memcpy(&cuda, &address, sizeof cuda);
    int error = app_is_cuda() ? cuda((uintptr_t)device, (unsigned char)value, n, stream)
                              : hip(device, value, n, stream);
    assert_int_equal(error, 0);
}

struct callback {
    void (*function)(void *);
    void *argument;
};

static void call_back(void *stream, int status, void *argument)
{
    struct callback *callback = argument;

    (void)stream;
    (void)status;
    callback->function(callback->argument);
    free(callback);
}

void async_rig_call(void *stream, void (*function)(void *), void *argument)
{
    int (*add)(void *, void (*)(void *, int, void *), void *, unsigned);
    void *address = function_of("hipStreamAddCallback", "cuStreamAddCallback");
    struct callback *callback = malloc(sizeof *callback);

    memcpy(&add, &address, sizeof add);
    *callback = (struct callback){function, argument};
    assert_int_equal(add(stream, call_back, callback, 0), 0);
}

static void stand(void *argument)
{
    struct async_gate *gate = argument;

    while (!gate->open)
        usleep(200);
}

void async_rig_close_gate(void *stream, struct async_gate *gate)
{
    gate->open = false;
    async_rig_call(stream, stand, gate);
}

void async_rig_must(int status)
{
    if (status < 0)
        fail_msg("%s", hipio_error_text());
}

struct hipio_handle *async_rig_open(int fd)
{
    struct hipio_handle *file;

    async_rig_must(hipio_register_file(fd, "async", &file));
    async_rig_must(hipio_set_file(file, "mapping", "off"));
    return file;
}

/* Either direction. */
int async_rig_queue(bool reads, struct hipio_handle *file, void *memory, struct async_call *call,
                    void *stream)
{
    return reads ? hipio_read_async(file, memory, &call->size, &call->file_offset,
                                    &call->buffer_offset, &call->done, stream)
                 : hipio_write_async(file, memory, &call->size, &call->file_offset,
                                     &call->buffer_offset, &call->done, stream);
}

void async_rig_expect(const struct async_call *call, ssize_t expected)
{
    const ssize_t done = __atomic_load_n(&call->done, __ATOMIC_ACQUIRE);

    if (done != expected)
        fail_msg("an operation of %zu bytes ended with %zd, not %zd", call->size, done, expected);
}

uint64_t async_rig_buffer(void)
{
    char value[32];

    async_rig_must(hipio_get(NULL, "async_buffer_size", value, sizeof value));
    return strtoull(value, NULL, 10) * (strchr(value, 'M') ? 1024 : 1) * 1024;
}

uint64_t async_rig_slot(void)
{
    const uint64_t bytes = async_rig_buffer();

    return bytes / (bytes >= (1u << 20) ? 8 : 4);
}
