/* SPDX-License-Identifier: MIT */
/*
 * Reset: an application resets its device between two uses of hipio, with and without a word to
 * hipio. What hipio had there is gone; the next use makes it anew, and neither it nor the shutdown
 * asks the runtime about handles that are no more (the simulated HIP 7 ends the process then, as
 * the real one would).
 */
#include "async_rig.h"
#include "device_app.h"
#include "pattern.h"
#include "stats.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES ((size_t)3000000)

static void reset_device(void)
{
    int (*reset)(int) = NULL;
    void *function = app_function(app_is_cuda() ? "cuDevicePrimaryCtxReset_v2" : "hipDeviceReset");

    if (!function)
        exit(77);
    memcpy(&reset, &function, sizeof function);
    /* HIP's takes no argument and does not look at it. */
    assert_int_equal(reset(0), 0);
    app_set_device(0);
}

/* Blocking, by copies and by kernels; queued on the default stream and on one of its own. */
static void use_all(void)
{
    enum { N = 2000 };
    static struct iovec piece[N];
    int fd = async_rig_file(1, BYTES);
    struct hipio_handle *file = async_rig_open(fd);
    unsigned char *memory = async_rig_memory(0, BYTES);
    void *streams[] = {NULL, app_create_stream(1)};

    assert_int_equal(hipio_read(file, memory, BYTES, 0, 0), BYTES);
    async_rig_check_memory(memory, 0, BYTES, 1, 0);
    for (int i = 0; i < N; i++)
        piece[i] = (struct iovec){memory + (size_t)i * 1000, 100};
    assert_int_equal(hipio_writev(file, piece, N, 7), N * 100);
    async_rig_check_file(fd, 7 + 5 * 100, 100, 1, 5 * 1000);
    for (int i = 0; i < 2; i++) {
        struct async_call call = {.size = 300000, .file_offset = 1000000, .buffer_offset = 5};

        async_rig_poison(memory, BYTES);
        async_rig_must(async_rig_queue(true, file, memory, &call, streams[i]));
        assert_int_equal(async_rig_synchronize(streams[i]), 0);
        async_rig_expect(&call, 300000);
        async_rig_check_memory(memory, 5, 300000, 1, 1000000);
    }
    async_rig_must(hipio_stream_deregister(streams[1]));
    app_destroy_stream(streams[1]);
    hipio_deregister_file(file);
    close(fd);
    app_free(memory);
}

static void expect_nothing_left(void)
{
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_streams), 0);
}

static void after_a_shutdown(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        use_all();
        hipio_shutdown();
        expect_nothing_left();
        reset_device();
    }
}

static uint64_t kernels(void)
{
    uint64_t value;

    assert_int_equal(hipio_statistic("kernels", &value), 0);
    return value;
}

static void without_a_word(void **state)
{
    const uint64_t before = kernels();

    (void)state;
    use_all();
    const uint64_t once = kernels() - before;
    assert_true(once > 0);
    for (uint64_t i = 2; i < 5; i++) {
        reset_device();
        use_all();
        assert_int_equal(kernels() - before, i * once);
    }
    hipio_shutdown();
    expect_nothing_left();
}

/* As a program may end: the device is reset, and then MPI finalizes. */
static void shutdown_after_it(void **state)
{
    (void)state;
    use_all();
    reset_device();
    hipio_shutdown();
    expect_nothing_left();
    use_all();
    hipio_shutdown();
}

static int start(void **state)
{
    (void)state;
    async_rig_start();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_shutdown),
        cmocka_unit_test(without_a_word),
        cmocka_unit_test(shutdown_after_it),
    };

    return cmocka_run_group_tests_name("reset", tests, start, NULL);
}
