/* SPDX-License-Identifier: MIT */
/*
 * Stats: sums, peaks, reasons, many threads at once, and a report that always ends at a line.
 */
#include "stats.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int reset(void **state)
{
    (void)state;
    hipio_stats_reset();
    return 0;
}

static void counters_add_up(void **state)
{
    (void)state;
    const uint64_t large = UINT64_C(5) << 30;

    hipio_stats_add(HIPIO_COUNT_bytes_read, (int64_t)large);
    hipio_stats_add(HIPIO_COUNT_bytes_read, 10);
    hipio_stats_add(HIPIO_COUNT_threads, 3);
    hipio_stats_add(HIPIO_COUNT_threads, -2);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_read), large + 10);
    assert_int_equal(*hipio_stats_address(HIPIO_COUNT_bytes_read), large + 10);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_written), 0);
    assert_string_equal(hipio_stats_name(HIPIO_COUNT_bytes_read), "bytes_read");
    assert_non_null(strstr(hipio_stats_help(HIPIO_COUNT_bytes_read), "files"));
}

static void what_is_unknown_is_ignored(void **state)
{
    (void)state;
    hipio_stats_add(HIPIO_COUNTERS, 1);
    hipio_stats_level(HIPIO_COUNTERS, HIPIO_COUNT_pinned_peak, 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNTERS), 0);
    assert_null(hipio_stats_address(HIPIO_COUNTERS));
    assert_string_equal(hipio_stats_name(HIPIO_COUNTERS), "");
    hipio_stats_backend_add(SIZE_MAX, HIPIO_BACKEND_READ, 1);
    hipio_stats_backend_add(0, HIPIO_BACKEND_COUNTERS, 1);
    assert_int_equal(hipio_stats_backend_get(SIZE_MAX, HIPIO_BACKEND_READ), 0);
    assert_null(hipio_stats_backend_address(HIPIO_STATS_BACKENDS, HIPIO_BACKEND_READ));
}

static void peaks_are_kept(void **state)
{
    (void)state;
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, 100);
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, -70);
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, 50);
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, -90);
    assert_int_equal((int64_t)hipio_stats_get(HIPIO_COUNT_pinned_now), -10);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), 100);
}

static void reasons_are_counted_apart(void **state)
{
    (void)state;
    hipio_stats_fallback_reason(-EIO);
    hipio_stats_fallback_reason(-EIO);
    hipio_stats_fallback_reason(-EINVAL);
    hipio_stats_fallback_reason(-100000);
    hipio_stats_fallback_reason(INT32_MIN);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-EIO), 2);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-EINVAL), 1);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-ENOSPC), 0);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-99999), 2);
}

#define THREADS 16
#define ROUNDS 5000

static void *count(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; ++i) {
        hipio_stats_add(HIPIO_COUNT_requests, 1);
        hipio_stats_backend_add(2, HIPIO_BACKEND_WRITTEN, 7);
        hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, 1);
    }
    return NULL;
}

static void threads_lose_nothing(void **state)
{
    (void)state;
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&thread[i], NULL, count, NULL), 0);
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_requests), THREADS * ROUNDS);
    assert_int_equal(hipio_stats_backend_get(2, HIPIO_BACKEND_WRITTEN), 7 * THREADS * ROUNDS);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), THREADS * ROUNDS);
}

static void report_says_all_of_it(void **state)
{
    (void)state;
    char report[8192];

    hipio_stats_add(HIPIO_COUNT_requests, 42);
    hipio_stats_backend_name(1, "bounce");
    hipio_stats_backend_add(1, HIPIO_BACKEND_READ, 77);
    hipio_stats_backend_add(3, HIPIO_BACKEND_REQUESTS, 5);
    hipio_stats_backend_add(3, HIPIO_BACKEND_FALLBACKS, 9);
    hipio_stats_fallback_reason(-EIO);
    hipio_stats_report(report, sizeof report);
    assert_non_null(strstr(report, "requests 42 (requests served by the engine)\n"));
    assert_non_null(strstr(report, "backend bounce: 77 bytes read\n"));
    assert_non_null(strstr(report, "backend 3: 5 requests, 9 fallbacks\n"));
    assert_non_null(strstr(report, "(Input/output error): 1\n"));
    for (size_t i = 0; i < HIPIO_COUNTERS; ++i)
        hipio_stats_add((enum hipio_counter)i, 1);
    hipio_stats_report(report, sizeof report);
    for (size_t i = 0; i < HIPIO_COUNTERS; ++i)
        assert_non_null(strstr(report, hipio_stats_name((enum hipio_counter)i)));
}

static void report_leaves_out_what_is_zero(void **state)
{
    (void)state;
    char report[8192];

    hipio_stats_report(report, sizeof report);
    assert_string_equal(report, "all counters are 0\n");
    hipio_stats_backend_name(1, "bounce");
    hipio_stats_add(HIPIO_COUNT_failed, 3);
    hipio_stats_report(report, sizeof report);
    assert_string_equal(report, "failed 3 (requests that ended with an error)\n");
}

static void report_ends_at_a_line(void **state)
{
    (void)state;
    char report[512];

    for (size_t i = 0; i < HIPIO_COUNTERS; ++i)
        hipio_stats_add((enum hipio_counter)i, 1);
    for (size_t size = 1; size < sizeof report; ++size) {
        memset(report, '#', sizeof report);
        hipio_stats_report(report, size);
        const size_t length = strlen(report);
        assert_true(length < size);
        assert_true(length == 0 || report[length - 1] == '\n');
        assert_int_equal(report[size], '#');
    }
    hipio_stats_report(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counters_add_up, reset),
        cmocka_unit_test_setup(what_is_unknown_is_ignored, reset),
        cmocka_unit_test_setup(peaks_are_kept, reset),
        cmocka_unit_test_setup(reasons_are_counted_apart, reset),
        cmocka_unit_test_setup(threads_lose_nothing, reset),
        cmocka_unit_test_setup(report_says_all_of_it, reset),
        cmocka_unit_test_setup(report_leaves_out_what_is_zero, reset),
        cmocka_unit_test_setup(report_ends_at_a_line, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
