/* SPDX-License-Identifier: MIT */
/*
 * Stream: requests of the blocking and the background kind that come after the work of one stream
 * of the application (setting stream), and the cut of a stream's buffer.
 */
#include "async_rig.h"
#include "channel.h"
#include "device_app.h"
#include "request.h"
#include "stats.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES ((size_t)100000)

static struct {
    int fd;
    struct hipio_file *file;
    unsigned char *memory;
    void *stream;
    struct hipio_layout *layout;
} rig;

static void follow(const void *stream)
{
    struct hipio_tunables tunables = *hipio_file_tunables(rig.file);
    char text[32];

    snprintf(text, sizeof text, "%p", stream);
    assert_int_equal(hipio_tunables_set(&tunables, "stream", text), 0);
    hipio_file_set_tunables(rig.file, &tunables);
}

static int set_up(void **state)
{
    (void)state;
    async_rig_start();
    rig.fd = async_rig_file(1, BYTES);
    rig.memory = async_rig_memory(0, BYTES);
    rig.stream = app_create_stream(1);
    assert_int_equal(hipio_file_create(rig.fd, "order", HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE,
                                       hipio_tunables_process(), &rig.file),
                     0);
    assert_int_equal(hipio_layout_run(0, BYTES, &rig.layout), 0);
    follow(rig.stream);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hipio_file_destroy(rig.file);
    hipio_layout_release(rig.layout);
    close(rig.fd);
    app_destroy_stream(rig.stream);
    app_free(rig.memory);
    hipio_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    return 0;
}

static struct hipio_request request_of(enum hipio_op op)
{
    struct hipio_request request = {
        .op = op,
        .file = rig.file,
        .base = rig.memory,
        .memory_layout = rig.layout,
        .file_layout = rig.layout,
        .length = BYTES,
    };

    assert_int_equal(hipio_device_classify(rig.memory, &request.memory), 0);
    return request;
}

static void expect_file(unsigned char value)
{
    static unsigned char bytes[BYTES];

    assert_int_equal(pread(rig.fd, bytes, BYTES, 0), BYTES);
    for (size_t i = 0; i < BYTES; i++)
        if (bytes[i] != value)
            fail_msg("file byte %zu is %02x, not %02x", i, bytes[i], value);
}

/* The producer is on a non-blocking stream, which the setting sync=stream does not cover. */
static void a_blocking_write_comes_after(void **state)
{
    _Atomic bool awake = false;
    struct app_nap nap = {30, &awake};
    struct hipio_request request = request_of(HIPIO_WRITE);

    (void)state;
    app_queue_nap(rig.stream, &nap);
    async_rig_fill(rig.stream, rig.memory, 0x37, BYTES);
    assert_int_equal(hipio_request_run(&request), 0);
    assert_true(awake);
    assert_int_equal(request.done, BYTES);
    expect_file(0x37);
}

/* The start does not wait for the stream; the movement does, and not for what comes later. */
static void a_background_write_comes_after(void **state)
{
    struct async_gate gate, later;
    struct hipio_request request = request_of(HIPIO_WRITE);

    (void)state;
    async_rig_close_gate(rig.stream, &gate);
    async_rig_fill(rig.stream, rig.memory, 0x51, BYTES);
    assert_int_equal(hipio_request_start(&request), 0);
    usleep(20000);
    assert_false(hipio_request_test(&request));
    async_rig_check_file(rig.fd, 0, BYTES, 1, 0);
    async_rig_close_gate(rig.stream, &later);
    gate.open = true;
    assert_int_equal(hipio_request_wait(&request), 0);
    expect_file(0x51);
    later.open = true;
    assert_int_equal(async_rig_synchronize(rig.stream), 0);
}

/* A reader of the old bytes is not overtaken. */
static void a_background_read_comes_after(void **state)
{
    struct async_gate gate;
    struct hipio_request request = request_of(HIPIO_READ);

    (void)state;
    async_rig_close_gate(rig.stream, &gate);
    async_rig_fill(rig.stream, rig.memory, 0x77, BYTES);
    assert_int_equal(hipio_request_start(&request), 0);
    gate.open = true;
    assert_int_equal(hipio_request_wait(&request), 0);
    async_rig_check_memory(rig.memory, 0, BYTES, 1, 0);
}

static void no_such_stream(void **state)
{
    struct hipio_request request = request_of(HIPIO_READ);

    (void)state;
    follow((void *)2);
    assert_int_equal(hipio_request_run(&request), -ENOTSUP);
    assert_int_equal(hipio_request_start(&request), -ENOTSUP);
    assert_true(hipio_request_test(&request));
    async_rig_check_poison(rig.memory, 0, BYTES);
}

static void a_stream_is_a_pointer(void **state)
{
    struct hipio_tunables tunables = *hipio_tunables_process();
    const char *const bad[] = {"",  "1", "0x", "0X12", "0x12g", "12", "-1", "0x12345678901234567",
                               "00"};
    char text[32];

    (void)state;
    assert_int_equal(tunables.stream, 0);
    assert_int_equal(hipio_tunables_set(&tunables, "stream", "0xfedcba9876543210"), 0);
    assert_int_equal(tunables.stream, 0xfedcba9876543210);
    hipio_tunables_format(&tunables, hipio_tunables_index("stream"), text, sizeof text);
    assert_string_equal(text, "0xfedcba9876543210");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(hipio_tunables_set(&tunables, "stream", bad[i]), -EINVAL);
    assert_int_equal(tunables.stream, 0xfedcba9876543210);
    assert_int_equal(hipio_tunables_set(&tunables, "stream", "0"), 0);
    assert_int_equal(tunables.stream, 0);
    assert_int_equal(hipio_set("stream", "0x10"), -EINVAL);
    assert_int_equal(hipio_tunables_process()->stream, 0);
}

static void buffers_are_cut(void **state)
{
    const uint64_t kib = 1024, sizes[] = {16, 20, 64, 100, 256, 1024, 4096, 65536, 1 << 20};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int few = 0; few < 2; few++) {
            const struct hipio_channel_cut cut = hipio_channel_cut(sizes[i] * kib, few);

            assert_true(cut.slots >= 2 && cut.slots <= HIPIO_CHANNEL_SLOTS_MAX);
            assert_true(cut.bytes >= 4096 && cut.bytes % 4096 == 0);
            assert_true(cut.slots * cut.bytes <= sizes[i] * kib);
        }
    }
    assert_int_equal(hipio_channel_cut(1024 * kib, false).slots, 8);
    assert_int_equal(hipio_channel_cut(1024 * kib, false).bytes, 128 * kib);
    assert_int_equal(hipio_channel_cut(64 * kib, false).bytes, 16 * kib);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_blocking_write_comes_after, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_background_write_comes_after, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_background_read_comes_after, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_such_stream, set_up, tear_down),
        cmocka_unit_test(a_stream_is_a_pointer),
        cmocka_unit_test(buffers_are_cut),
    };

    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
