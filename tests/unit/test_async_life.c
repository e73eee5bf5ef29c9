/* SPDX-License-Identifier: MIT */
/*
 * Async life: what happens to queued operations when something else ends or breaks: the process,
 * the GPU, the runtime's patience, a fast path. Each test is a process of its own with its own
 * faults.
 */
#include "async_rig.h"
#include "backend.h"
#include "device_app.h"
#include "one_by_one.h"
#include "pattern.h"
#include "stats.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES ((size_t)300000) /* several slots of a buffer of 64K */
#define HELD_FROM ((off_t)1 << 24)

/* Reads from HELD_FROM on do not return before they are let. */
static atomic_bool held;

ssize_t __real_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset);

ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset)
{
    while (offset >= HELD_FROM && atomic_load(&held))
        usleep(200);
    return __real_pread(fd, buffer, bytes, offset);
}

static struct {
    int fd;
    struct hipio_handle *file;
    unsigned char *memory;
    void *stream;
} rig;

static void must(int status)
{
    if (status < 0)
        fail_msg("%s", hipio_error_text());
}

/* A file of pattern 1 and memory of pattern 2. */
static void set_up(void)
{
    async_rig_start();
    rig.fd = async_rig_file(1, BYTES);
    rig.memory = async_rig_memory(2, BYTES);
    rig.stream = app_create_stream(1);
    must(hipio_register_file(rig.fd, "life", &rig.file));
    must(hipio_set_file(rig.file, "mapping", "off"));
}

static void clean_up(void)
{
    hipio_deregister_file(rig.file);
    close(rig.fd);
    hipio_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_streams), 0);
}

static int read_to(struct async_call *call)
{
    return hipio_read_async(rig.file, rig.memory, &call->size, &call->file_offset,
                            &call->buffer_offset, &call->done, rig.stream);
}

static int write_from(struct async_call *call)
{
    return hipio_write_async(rig.file, rig.memory, &call->size, &call->file_offset,
                             &call->buffer_offset, &call->done, rig.stream);
}

static struct async_call whole(void)
{
    return (struct async_call){BYTES, 0, 0, -77};
}

static void expect_read(const struct async_call *call)
{
    if (call->done != (ssize_t)BYTES)
        fail_msg("a read ended with %zd", call->done);
    async_rig_check_memory(rig.memory, 0, BYTES, 1, 0);
}

static void expect_good_read(void)
{
    struct async_call call = whole();

    async_rig_poison(rig.memory, BYTES);
    must(read_to(&call));
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
    expect_read(&call);
}

/* ---- Ends of the process ---- */

/* Everything is in the middle of something, and the program returns from main. */
__attribute__((unused)) static void exits_in_the_middle(void **state)
{
    static struct async_call calls[64];

    (void)state;
    set_up();
    for (int i = 0; i < 64; i++) {
        calls[i] = whole();
        must(i % 2 ? read_to(&calls[i]) : write_from(&calls[i]));
    }
    usleep(3000);
}

static void exits_before_the_turn(void **state)
{
    static struct async_call call;
    static struct async_gate gate;

    (void)state;
    set_up();
    call = whole();
    async_rig_close_gate(rig.stream, &gate);
    must(write_from(&call));
    must(hipio_stream_deregister(rig.stream));
}

/* A child may do nothing with hipio and must not hang; the parent does not notice. */
static void forks_in_the_middle(void **state)
{
    struct async_call call = whole();
    struct async_gate gate;
    int status = -1;

    (void)state;
    set_up();
    async_rig_close_gate(rig.stream, &gate);
    must(read_to(&call));
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        bool refused = read_to(&call) == -ENOTSUP &&
                       hipio_read(rig.file, rig.memory, 1, 0, 0) == -ENOTSUP &&
                       hipio_stream_register(rig.stream, 0) == -ENOTSUP &&
                       hipio_stream_deregister(rig.stream) == -ENOTSUP;
        hipio_shutdown();
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gate.open = true;
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
    expect_read(&call);
    clean_up();
}

/* ---- Faults ---- */

/* The device breaks while operations are queued, running, and to come. Everybody gets home. */
static void the_device_breaks(void **state)
{
    struct async_call calls[4];

    (void)state;
    set_up();
    for (int i = 0; i < 4; i++) {
        calls[i] = whole();
        int status = i % 2 ? read_to(&calls[i]) : write_from(&calls[i]);
        assert_true(status <= 0);
    }
    assert_int_equal(async_rig_synchronize(rig.stream), 700);
    assert_true(calls[3].done <= 0);
    hipio_deregister_file(rig.file);
    hipio_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_streams), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
}

/* One call of the runtime fails while an operation is being queued. That call of ours says so, what
 * was queued ends, and the next operation is well. */
static void queueing_fails(void **state)
{
    struct async_call call = whole();

    (void)state;
    set_up();
    must(hipio_stream_register(rig.stream, 0));
    assert_true(read_to(&call) < 0);
    assert_true(hipio_error_text()[0] != '\0');
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
    expect_good_read();
    assert_true(call.done <= 0);
    clean_up();
}

static void registering_fails(void **state)
{
    (void)state;
    set_up();
    assert_true(hipio_stream_register(rig.stream, 0) < 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_streams), 0);
    must(hipio_stream_register(rig.stream, 0));
    expect_good_read();
    clean_up();
}

/* ---- Fast paths ---- */

static uint64_t moved_by(const char *name)
{
    for (size_t i = 0; i < hipio_backend_count(); i++)
        if (strcmp(hipio_backend_at(i)->name, name) == 0)
            return hipio_stats_backend_get(i, HIPIO_BACKEND_READ) +
                   hipio_stats_backend_get(i, HIPIO_BACKEND_WRITTEN);
    return 0;
}

/* AIS is there from version 7 on. */
static void set_up_fast_path(void)
{
    const char *library = getenv("HIPIO_TEST_LIBRARY");

    if (!library || !strstr(library, ".so.7"))
        exit(77);
    set_up();
}

static void a_fast_path_serves(void **state)
{
    struct async_call call = whole();

    (void)state;
    set_up_fast_path();
    must(write_from(&call));
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
    assert_int_equal(call.done, BYTES);
    async_rig_check_file(rig.fd, 0, BYTES, 2, 0);
    assert_true(moved_by("ais") > 0);
    assert_int_equal(moved_by("ais") + moved_by("stream"), BYTES);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 0);
    clean_up();
}

/* It refuses, at once or after a part: the rest goes through the buffer, in its place on the
 * stream. An operation at odd offsets has ends that were never the fast path's. */
static void a_fast_path_fails(void **state)
{
    struct async_call call = whole(), odd = {BYTES - 10, 3, 4101, -1};

    (void)state;
    set_up_fast_path();
    must(write_from(&call));
    async_rig_fill(rig.stream, rig.memory, 0xEE, BYTES);
    must(read_to(&call));
    odd.size = BYTES - 5000;
    must(read_to(&odd));
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
    assert_int_equal(call.done, BYTES);
    assert_int_equal(odd.done, BYTES - 5000);
    async_rig_check_file(rig.fd, 0, BYTES, 2, 0);
    async_rig_check_memory(rig.memory, 0, 4101, 2, 0);
    async_rig_check_memory(rig.memory, 4101, BYTES - 5000, 2, 3);
    assert_true(hipio_stats_get(HIPIO_COUNT_fallbacks) > 0);
    assert_true(moved_by("stream") > 0);
    assert_int_equal(moved_by("bounce"), 0);
    clean_up();
}

static void staging_is_forbidden(void **state)
{
    struct async_call call = whole();

    (void)state;
    set_up();
    must(hipio_set_file(rig.file, "fallback", "off"));
    must(read_to(&call));
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
    assert_int_equal(call.done, -ENOTSUP);
    must(hipio_set_file(rig.file, "fallback", "auto"));
    expect_good_read();
    clean_up();
}

/* ---- Others ---- */

/* Storage that does not answer holds up its own stream alone. */
static void nobody_else_waits(void **state)
{
    struct async_call slow = {1, HELD_FROM, 0, 0}, call = whole();
    void *other;

    (void)state;
    set_up();
    other = app_create_stream(1);
    atomic_store(&held, true);
    assert_int_equal(ftruncate(rig.fd, HELD_FROM + 1), 0);
    must(hipio_read_async(rig.file, rig.memory, &slow.size, &slow.file_offset, &slow.buffer_offset,
                          &slow.done, other));
    usleep(20000);
    must(read_to(&call));
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
    assert_int_equal(call.done, BYTES);
    assert_int_equal(slow.done, 0);
    atomic_store(&held, false);
    assert_int_equal(async_rig_synchronize(other), 0);
    assert_int_equal(slow.done, 1);
    expect_good_read();
    clean_up();
}

static void a_bad_size_is_named(void **state)
{
    char value[32];

    (void)state;
    must(hipio_get(NULL, "async_buffer_size", value, sizeof value));
    assert_string_equal(value, "16M");
    assert_int_equal(hipio_set("async_buffer_size", "12Q"), -EINVAL);
    assert_non_null(strstr(hipio_error_text(), "async_buffer_size"));
    assert_non_null(strstr(hipio_error_text(), "12Q"));
    must(hipio_set("async_buffer_size", "3M"));
    must(hipio_get(NULL, "async_buffer_size", value, sizeof value));
    assert_string_equal(value, "3M");
}

static void the_runtime_is_forbidden(void **state)
{
    struct async_call call = whole();

    (void)state;
    set_up();
    assert_int_equal(hipio_stream_register(rig.stream, 0), -ENODEV);
    assert_non_null(strstr(hipio_error_text(), "HIPIO_DEVICE"));
    assert_int_equal(read_to(&call), -ENODEV);
    clean_up();
}

#define HOST_FUNCTIONS "HIPSIM_WAIT_VALUE=0 "
#define STRICT "HIPSIM_AIS=on "

static const struct one_test tests[] = {
#ifndef __SANITIZE_THREAD__ /* While the process ends, the simulated runtime keeps no order. */
    {"exits_in_the_middle", NULL, exits_in_the_middle},
    {"exits_in_the_middle.host_functions", HOST_FUNCTIONS, exits_in_the_middle},
#endif
    {"exits_before_the_turn", NULL, exits_before_the_turn},
    {"exits_before_the_turn.host_functions", HOST_FUNCTIONS, exits_before_the_turn},
    {"forks_in_the_middle", NULL, forks_in_the_middle},
    {"the_device_breaks.copy", "HIPSIM_FAIL=hipModuleLaunchKernel:3=late700", the_device_breaks},
    {"the_device_breaks.copy.host_functions",
     HOST_FUNCTIONS "HIPSIM_FAIL=hipModuleLaunchKernel:3=late700", the_device_breaks},
    {"the_device_breaks.wait", "HIPSIM_FAIL=hipStreamWaitValue64:5=late700", the_device_breaks},
    {"the_device_breaks.begin",
     "HIPSIM_FAIL=hipLaunchHostFunc:1=late700;hipStreamAddCallback:1=late700", the_device_breaks},
    {"the_device_breaks.second",
     "HIPSIM_FAIL=hipLaunchHostFunc:2=late700;hipStreamAddCallback:2=late700", the_device_breaks},
    {"the_device_breaks.gate.host_functions",
     HOST_FUNCTIONS "HIPSIM_FAIL=hipLaunchHostFunc:4=late700;hipStreamAddCallback:4=late700",
     the_device_breaks},
    {"queueing_fails.begin", "HIPSIM_FAIL=hipLaunchHostFunc:1=999;hipStreamAddCallback:1=999",
     queueing_fails},
    {"queueing_fails.wait", "HIPSIM_FAIL=hipStreamWaitValue64:1=999", queueing_fails},
    {"queueing_fails.third_wait", "HIPSIM_FAIL=hipStreamWaitValue64:3=999", queueing_fails},
    {"queueing_fails.copy", "HIPSIM_FAIL=hipModuleLaunchKernel:2=999", queueing_fails},
    {"queueing_fails.mark", "HIPSIM_FAIL=hipStreamWriteValue64:2=999", queueing_fails},
    {"queueing_fails.event", "HIPSIM_FAIL=hipEventRecord:1=999", queueing_fails},
    {"queueing_fails.gate.host_functions",
     HOST_FUNCTIONS "HIPSIM_FAIL=hipLaunchHostFunc:3=999;hipStreamAddCallback:3=999",
     queueing_fails},
    {"queueing_fails.copy.host_functions", HOST_FUNCTIONS "HIPSIM_FAIL=hipModuleLaunchKernel:2=999",
     queueing_fails},
    {"registering_fails.pinned", "HIPSIM_FAIL=hipHostMalloc:2=2", registering_fails},
    {"registering_fails.word", "HIPSIM_FAIL=hipExtMallocWithFlags:2=2", registering_fails},
    {"registering_fails.event", "HIPSIM_FAIL=hipEventCreateWithFlags:1=2", registering_fails},
    {"a_fast_path_serves", STRICT, a_fast_path_serves},
    {"a_fast_path_fails.at_once",
     STRICT "HIPSIM_FAIL=hipAmdFileWrite:*=errnoENODEV;hipAmdFileRead:*=errnoEREMOTEIO",
     a_fast_path_fails},
    {"a_fast_path_fails.later",
     STRICT "HIPSIM_FAIL=hipAmdFileWrite:*=errnoENODEV/8192;hipAmdFileRead:*=errnoENODEV/4096",
     a_fast_path_fails},
    {"staging_is_forbidden", NULL, staging_is_forbidden},
    {"nobody_else_waits", NULL, nobody_else_waits},
    {"the_runtime_is_forbidden", "HIPIO_DEVICE=off", the_runtime_is_forbidden},
    {"a_bad_size_is_named", "HIPIO_ASYNC_BUFFER_SIZE=12Q HIPIO_LOG=none", a_bad_size_is_named},
};

int main(int argc, char **argv)
{
    return one_by_one(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
