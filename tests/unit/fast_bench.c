/* SPDX-License-Identifier: MIT */
/*
 * Fast bench: one file, one buffer, every byte looked at.
 */
#include "fast_bench.h"
#include "backend.h"
#include "device_app.h"
#include "pattern.h"
#include "run_check.h"
#include "stats.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct bench bench;

void set_up(uint64_t size)
{
    if (!app_load() || app_devices() < 1)
        exit(77);
    rig_open(&bench.rig, RIG_READ_WRITE, FILE_SEED, size);
    const int direct = open("/tmp", O_TMPFILE | O_RDWR | O_DIRECT, 0600);
    if (direct < 0)
        exit(77);
    close(direct);
    if (app_is_cuda() && !app_current())
        app_set_device(0);
    bench.size = size;
    bench.device = app_alloc(size);
    bench.host = malloc(size);
    memset(bench.host, 0xA5, size);
    app_copy(bench.device, bench.host, size);
    assert_int_equal(hipio_device_classify(bench.device, &bench.memory), 0);
    assert_int_equal(bench.memory.kind, HIPIO_MEMORY_DEVICE);
    hipio_stats_reset();
}

uint64_t counter(const char *name)
{
    int64_t (*get)(const char *);
    *(void **)&get = app_function("hipsim_counter");
    return (uint64_t)get(name);
}

size_t index_of(const char *name)
{
    for (size_t i = 0; i < hipio_backend_count(); i++)
        if (strcmp(hipio_backend_at(i)->name, name) == 0)
            return i;
    return SIZE_MAX;
}

uint64_t moved_by(const char *backend)
{
    return hipio_stats_backend_get(index_of(backend), HIPIO_BACKEND_READ) +
           hipio_stats_backend_get(index_of(backend), HIPIO_BACKEND_WRITTEN);
}

uint64_t asked_of(const char *backend)
{
    return hipio_stats_backend_get(index_of(backend), HIPIO_BACKEND_REQUESTS);
}

struct hipio_request move(enum hipio_op op, uint64_t at, int64_t offset, uint64_t length)
{
    struct hipio_layout *memory = rig_run((int64_t)at, length);
    struct hipio_layout *file = rig_run(offset, length);

    if (op == HIPIO_WRITE)
        pattern_fill(bench.host, MEMORY_SEED, 0, bench.size);
    else
        memset(bench.host, 0xA5, bench.size);
    app_copy(bench.device, bench.host, bench.size);
    struct hipio_request request =
        rig_request(&bench.rig, op, bench.device, &bench.memory, memory, file);
    hipio_request_run(&request);
    app_copy(bench.host, bench.device, bench.size);
    const struct run run = {at, offset, request.done};
    if (op == HIPIO_READ)
        run_check_read(&run, bench.host, bench.size, FILE_SEED);
    else
        run_check_write(&run, bench.rig.fd, (uint64_t)bench.rig.size, MEMORY_SEED, FILE_SEED);
    hipio_layout_release(memory);
    hipio_layout_release(file);
    return request;
}

void restore(void)
{
    unsigned char *bytes = malloc(bench.size);

    pattern_fill(bytes, FILE_SEED, 0, bench.size);
    assert_int_equal(ftruncate(bench.rig.fd, (off_t)bench.size), 0);
    assert_int_equal(pwrite(bench.rig.fd, bytes, bench.size, 0), bench.size);
    free(bytes);
    bench.rig.size = (int64_t)bench.size;
}

void expect(const struct hipio_request *request, int status, uint64_t done)
{
    if (request->status != status)
        fail_msg("status %d, not %d: %s", request->status, status, request->text);
    assert_int_equal(request->done, done);
}

void expect_bytes(const char *backend, uint64_t fast, uint64_t bounce, uint64_t fallbacks)
{
    assert_int_equal(moved_by(backend), fast);
    assert_int_equal(moved_by("bounce"), bounce);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), fallbacks);
}
