/* SPDX-License-Identifier: MIT */
/*
 * AIS: the backend over hipsim posing as ROCm 7, from a healthy kernel to every way it refuses.
 * Each test is a process with its own faults.
 */
#include "backend.h"
#include "breaker.h"
#include "device_app.h"
#include "fast_bench.h"
#include "one_by_one.h"
#include "run_check.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t calls(void)
{
    return counter("ais_reads") + counter("ais_writes");
}

static void moves_aligned_requests_alone(void **state)
{
    (void)state;
    set_up(8 * MIB);
    app_provoke_error();
    const int error = app_last_error();
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        hipio_stats_reset();
        struct hipio_request request = move(op, 0, 0, 8 * MIB);
        expect(&request, 0, 8 * MIB);
        expect_bytes("ais", 8 * MIB, 0, 0);
        assert_int_equal(asked_of("ais"), 1);
    }
    assert_int_equal(app_last_error(), error);
    assert_true(calls() >= 2);
    assert_int_equal(counter("ais_buffered"), 0);
}

/* Heads and tails go the other way, in one request with one count, and no byte beside is touched.
 */
static void splits_unaligned_requests(void **state)
{
    static const struct {
        uint64_t at;
        int64_t offset;
        uint64_t length, body;
    } rows[] = {
        {100, 100, MIB, MIB - 4096},
        {4095, 4095, 2 * MIB + 2, 2 * MIB},
        {0, 0, MIB + 1, MIB},
        {4096, 8192, 70000, 69632},
        {0, 512, MIB, 0},            /* memory and file don't match */
        {1, 1, 60 * KIB, 0},         /* too short */
        {100, 4196, MIB, MIB - 4096} /* the same place in different pages */
    };

    (void)state;
    set_up(4 * MIB);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
            print_message("row %zu, op %d\n", i, op);
            hipio_stats_reset();
            struct hipio_request request = move(op, rows[i].at, rows[i].offset, rows[i].length);
            expect(&request, 0, rows[i].length);
            expect_bytes("ais", rows[i].body, rows[i].length - rows[i].body, 0);
            assert_int_equal(hipio_stats_get(HIPIO_COUNT_requests), 1);
            assert_int_equal(asked_of("bounce"), rows[i].length > rows[i].body);
            assert_int_equal(hipio_stats_get(HIPIO_COUNT_unaligned_bytes),
                             rows[i].body ? rows[i].length - rows[i].body : 0);
            restore();
        }
}

static void moves_blocks_of_a_stride(void **state)
{
    (void)state;
    set_up(4 * MIB);
    struct hipio_layout *memory = rig_vector(128 * KIB, 8, 256 * KIB);
    struct hipio_layout *file = rig_vector(256 * KIB, 4, 512 * KIB);
    struct hipio_request request =
        rig_request(&bench.rig, HIPIO_READ, bench.device, &bench.memory, memory, file);

    assert_int_equal(hipio_request_run(&request), 0);
    app_copy(bench.host, bench.device, bench.size);
    rig_check_read(&request, bench.host, bench.size, FILE_SEED);
    expect_bytes("ais", MIB, 0, 0);
    hipio_layout_release(memory);
    /* Small blocks are for the staging path. */
    memory = rig_vector(4096, 256, 8192);
    request = rig_request(&bench.rig, HIPIO_READ, bench.device, &bench.memory, memory, file);
    assert_int_equal(hipio_request_run(&request), 0);
    expect_bytes("ais", MIB, MIB, 0);
    hipio_layout_release(memory);
    hipio_layout_release(file);
}

static void ends_reads_at_the_end_of_the_file(void **state)
{
    (void)state;
    set_up(4 * MIB);
    assert_int_equal(ftruncate(bench.rig.fd, 2 * MIB + 10), 0);
    struct hipio_request request = move(HIPIO_READ, 0, MIB, 3 * MIB);
    expect(&request, 0, MIB + 10);
    expect_bytes("ais", MIB, 10, 0);
    request = move(HIPIO_READ, 0, 2 * MIB, MIB);
    expect(&request, 0, 10);
    request = move(HIPIO_READ, 0, 3 * MIB, MIB);
    expect(&request, 0, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 0);
}

static void extends_the_file(void **state)
{
    (void)state;
    set_up(2 * MIB);
    assert_int_equal(ftruncate(bench.rig.fd, 5000), 0);
    bench.rig.size = 5000;
    struct hipio_request request = move(HIPIO_WRITE, 5000 - 4096, 5000, MIB);
    expect(&request, 0, MIB);
    expect_bytes("ais", MIB - 4096, 4096, 0);
}

static void works_on_the_memory_s_device(void **state)
{
    (void)state;
    if (!app_load() || app_devices() < 2)
        exit(77);
    app_set_device(1);
    set_up(2 * MIB);
    app_set_device(0);
    struct hipio_request request = move(HIPIO_WRITE, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    expect_bytes("ais", 2 * MIB, 0, 0);
    assert_int_equal(app_get_device(), 0);
}

static void runs_in_the_background(void **state)
{
    (void)state;
    set_up(2 * MIB);
    struct hipio_layout *run = rig_run(0, 2 * MIB);
    struct hipio_request request =
        rig_request(&bench.rig, HIPIO_READ, bench.device, &bench.memory, run, run);

    assert_int_equal(hipio_request_start(&request), 0);
    assert_int_equal(hipio_request_wait(&request), 0);
    app_copy(bench.host, bench.device, bench.size);
    const struct run whole = {0, 0, 2 * MIB};
    run_check_read(&whole, bench.host, bench.size, FILE_SEED);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-EREMOTEIO), 1);
    expect_bytes("ais", MIB, MIB, 1);
    hipio_layout_release(run);
}

static void stays_away_without_the_functions(void **state)
{
    (void)state;
    set_up(2 * MIB);
    struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    expect_bytes("ais", 0, 2 * MIB, 0);
    rig_set(&bench.rig, "fastpath", "force");
    assert_int_equal(hipio_file_check_fastpath(bench.rig.file), -ENOTSUP);
    assert_non_null(strstr(hipio_status_text(), "no file functions"));
    assert_int_equal(app_last_error(), 0);
}

/* "Not supported here" is believed at once, until the file is opened again. */
static void gives_a_file_up(int reason)
{
    set_up(2 * MIB);
    struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    expect_bytes("ais", 0, 2 * MIB, 1);
    assert_int_equal(hipio_stats_fallbacks_by_reason(reason), 1);
    assert_int_equal(hipio_stats_backend_get(index_of("ais"), HIPIO_BACKEND_FALLBACKS), 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), 1);
    assert_int_equal(hipio_breaker_reason(bench.rig.file, index_of("ais"), 0), reason);

    const uint64_t before = calls();
    request = move(HIPIO_WRITE, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    assert_int_equal(calls(), before);
    expect_bytes("ais", 0, 4 * MIB, 1);

    restore();
    hipio_file_destroy(bench.rig.file);
    assert_int_equal(hipio_file_create(bench.rig.fd, "again", RIG_READ_WRITE, &bench.rig.tunables,
                                       &bench.rig.file),
                     0);
    request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    assert_int_equal(calls(), before + 1);
    expect_bytes("ais", 2 * MIB, 4 * MIB, 1);
}

static void gives_up_on_enodev(void **state)
{
    (void)state;
    gives_a_file_up(-ENODEV);
}

static void gives_up_on_eremoteio(void **state)
{
    (void)state;
    gives_a_file_up(-EREMOTEIO);
}

static void gives_up_on_an_unknown_first_error(void **state)
{
    (void)state;
    gives_a_file_up(-EOPNOTSUPP);
}

static void forgives_an_unknown_later_error(void **state)
{
    (void)state;
    set_up(2 * MIB);
    for (int i = 0; i < 3; i++) {
        struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
        expect(&request, 0, 2 * MIB);
    }
    expect_bytes("ais", 4 * MIB, 2 * MIB, 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), 0);
}

static void loses_patience_with_refused_parts(void **state)
{
    (void)state;
    set_up(2 * MIB);
    for (int i = 0; i < HIPIO_BREAKER_PATIENCE + 3; i++) {
        struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
        expect(&request, 0, 2 * MIB);
    }
    assert_int_equal(calls(), HIPIO_BREAKER_PATIENCE);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-EINVAL), HIPIO_BREAKER_PATIENCE);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), 1);
}

static void goes_on_in_the_middle(void **state)
{
    (void)state;
    set_up(64 * MIB);
    struct hipio_request request = move(HIPIO_READ, 0, 0, 64 * MIB);
    expect(&request, 0, 64 * MIB);
    expect_bytes("ais", 32 * MIB + 512, 32 * MIB - 512, 1);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-EREMOTEIO), 1);
}

/* With several calls at a time a later piece may be done when an earlier one fails. */
static void goes_on_in_the_middle_of_many(void **state)
{
    (void)state;
    set_up(40 * MIB);
    rig_set(&bench.rig, "lanes", "4");
    struct hipio_request request = move(HIPIO_READ, 0, 0, 40 * MIB);
    expect(&request, 0, 40 * MIB);
    assert_int_equal(moved_by("ais") + moved_by("bounce"), 40 * MIB);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 1);
}

/* What storage says is the caller's to know. */
static void reports(int error, enum hipio_op op)
{
    set_up(4 * MIB);
    struct hipio_request request = move(op, 0, 0, 4 * MIB);
    expect(&request, error, MIB);
    assert_non_null(strstr(request.text, "rig: AIS"));
    assert_non_null(strstr(request.text, strerror(-error)));
    expect_bytes("ais", MIB, 0, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_failed), 1);
    assert_int_equal(hipio_breaker_reason(bench.rig.file, index_of("ais"), 0), 0);
}

static void reports_eio(void **state)
{
    (void)state;
    reports(-EIO, HIPIO_READ);
}

static void reports_enospc(void **state)
{
    (void)state;
    reports(-ENOSPC, HIPIO_WRITE);
}

static void reports_a_fault_of_the_device(void **state)
{
    (void)state;
    set_up(MIB);
    struct hipio_layout *run = rig_run(0, MIB);
    struct hipio_request request =
        rig_request(&bench.rig, HIPIO_READ, bench.device, &bench.memory, run, run);
    hipio_request_run(&request);
    expect(&request, -EIO, 0);
    hipio_layout_release(run);
}

static void continues_short_calls(void **state)
{
    (void)state;
    set_up(MIB);
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        struct hipio_request request = move(op, 0, 0, MIB);
        expect(&request, 0, MIB);
    }
    expect_bytes("ais", 2 * MIB, 0, 0);
    assert_int_equal(calls(), 2 * 256);
}

static void leaves_odd_counts_to_the_fallback(void **state)
{
    (void)state;
    set_up(MIB);
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        struct hipio_request request = move(op, 0, 0, MIB);
        expect(&request, 0, MIB);
    }
    expect_bytes("ais", 2 * 512, 2 * (MIB - 512), 2);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-ENODATA), 2);
}

static void ends_when_nothing_moves(void **state)
{
    (void)state;
    set_up(MIB);
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        struct hipio_request request = move(op, 0, 0, MIB);
        expect(&request, 0, MIB);
    }
    expect_bytes("ais", 0, 2 * MIB, 2);
}

static void obeys_the_settings(void **state)
{
    (void)state;
    set_up(2 * MIB);
    rig_set(&bench.rig, "fastpath", "off");
    struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    expect_bytes("ais", 0, 2 * MIB, 0);
    rig_set(&bench.rig, "fastpath", "auto");
    rig_set(&bench.rig, "fallback", "force");
    request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect_bytes("ais", 0, 4 * MIB, 0);
    rig_set(&bench.rig, "fallback", "off");
    request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    expect_bytes("ais", 2 * MIB, 4 * MIB, 0);
    /* A head would have to be staged. */
    request = move(HIPIO_READ, 1, 1, MIB);
    expect(&request, -ENOTSUP, 0);
    assert_int_equal(calls(), 1);
}

/* The second call fails: without a fallback its error is the caller's. */
static void shows_the_failure_without_a_fallback(void **state)
{
    (void)state;
    set_up(2 * MIB);
    rig_set(&bench.rig, "fallback", "off");
    struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, -ENODEV, MIB);
    expect_bytes("ais", MIB, 0, 0);
    assert_non_null(strstr(request.text, strerror(ENODEV)));
}

static void can_be_forced(void **state)
{
    (void)state;
    set_up(2 * MIB);
    rig_set(&bench.rig, "fastpath", "force");
    const int check = hipio_file_check_fastpath(bench.rig.file);
    if (check != 0)
        print_message("%s\n", hipio_status_text());
    struct hipio_request request = move(HIPIO_READ, 4096, 8192, 4096);
    expect(&request, 0, 4096);
    expect_bytes("ais", 4096, 0, 0);
    request = move(HIPIO_WRITE, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    restore();
    request = move(HIPIO_WRITE, 0, 0, 100);
    expect(&request, -ENOTSUP, 0);
    rig_set(&bench.rig, "fallback", "force");
    assert_int_equal(hipio_file_check_fastpath(bench.rig.file), -EINVAL);
    if (check != 0)
        exit(77);
}

static void is_refused_where_it_can_t_be(void **state)
{
    struct hipio_tunables tunables;
    struct hipio_file *file;

    (void)state;
    set_up(MIB);
    tunables = bench.rig.tunables;
    assert_int_equal(hipio_tunables_set(&tunables, "fastpath", "force"), 0);
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    if (fd < 0)
        exit(77);
    assert_int_equal(hipio_file_create(fd, "shm", RIG_READ_WRITE, &tunables, &file), 0);
    assert_int_equal(hipio_file_check_fastpath(file), -ENOTSUP);
    assert_non_null(strstr(hipio_status_text(), "shm: AIS does not work on"));
    hipio_file_destroy(file);
    close(fd);
}

/* R76: no descriptor left. */
static void does_without_a_second_descriptor(void **state)
{
    struct rlimit limit;

    (void)state;
    set_up(2 * MIB);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct hipio_layout *run = rig_run(0, 2 * MIB);
    struct hipio_request request =
        rig_request(&bench.rig, HIPIO_READ, bench.device, &bench.memory, run, run);
    assert_int_equal(hipio_request_run(&request), 0);
    limit.rlim_cur = before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    app_copy(bench.host, bench.device, bench.size);
    const struct run whole = {0, 0, 2 * MIB};
    run_check_read(&whole, bench.host, bench.size, FILE_SEED);
    expect_bytes("ais", 0, 2 * MIB, 1);
    assert_int_equal(calls(), 0);
    hipio_layout_release(run);
}

#define FAIL "HIPSIM_FAIL="
#define READ "hipAmdFileRead:"
#define WRITE "hipAmdFileWrite:"

int main(int argc, char **argv)
{
    const struct one_test tests[] = {
        {"moves_aligned_requests_alone", NULL, moves_aligned_requests_alone},
        {"splits_unaligned_requests", NULL, splits_unaligned_requests},
        {"moves_blocks_of_a_stride", NULL, moves_blocks_of_a_stride},
        {"ends_reads_at_the_end_of_the_file", NULL, ends_reads_at_the_end_of_the_file},
        {"extends_the_file", NULL, extends_the_file},
        {"works_on_the_memory_s_device", "HIPSIM_DEVICES=2", works_on_the_memory_s_device},
        {"runs_in_the_background", FAIL READ "1=errnoEREMOTEIO/1048576", runs_in_the_background},
        {"stays_away_without_the_functions", "HIPSIM_AIS=off", stays_away_without_the_functions},
        {"gives_up_on_enodev", FAIL READ "1=errnoENODEV", gives_up_on_enodev},
        {"gives_up_on_eremoteio", FAIL READ "1=errnoEREMOTEIO", gives_up_on_eremoteio},
        {"gives_up_on_an_unknown_first_error", FAIL READ "1=999",
         gives_up_on_an_unknown_first_error},
        {"forgives_an_unknown_later_error", FAIL READ "2=999", forgives_an_unknown_later_error},
        {"loses_patience_with_refused_parts", FAIL READ "*=errnoEINVAL",
         loses_patience_with_refused_parts},
        {"goes_on_in_the_middle", FAIL READ "1=errnoEREMOTEIO/33554944 HIPIO_LANES=1",
         goes_on_in_the_middle},
        {"goes_on_in_the_middle_of_many", FAIL READ "2=errnoEREMOTEIO/5000192",
         goes_on_in_the_middle_of_many},
        {"reports_eio", FAIL READ "1=errnoEIO/1048576", reports_eio},
        {"reports_enospc", FAIL WRITE "1=errnoENOSPC/1048576", reports_enospc},
        {"reports_a_fault_of_the_device", FAIL READ "1=719", reports_a_fault_of_the_device},
        {"continues_short_calls", FAIL READ "*=short/4096;" WRITE "*=short/4096",
         continues_short_calls},
        {"leaves_odd_counts_to_the_fallback", FAIL READ "*=short/512;" WRITE "*=short/512",
         leaves_odd_counts_to_the_fallback},
        {"ends_when_nothing_moves", FAIL READ "*=short/0;" WRITE "*=short/0",
         ends_when_nothing_moves},
        {"obeys_the_settings", NULL, obeys_the_settings},
        {"shows_the_failure_without_a_fallback", FAIL READ "1=errnoENODEV/1048576",
         shows_the_failure_without_a_fallback},
        {"can_be_forced", NULL, can_be_forced},
        {"is_refused_where_it_can_t_be", NULL, is_refused_where_it_can_t_be},
        {"does_without_a_second_descriptor", NULL, does_without_a_second_descriptor},
    };
    return one_by_one(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
