/* SPDX-License-Identifier: MIT */
/*
 * Breaker: patience, success between failures, separate words for files, backends and devices.
 */
#include "breaker.h"
#include "rig.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rig rig;

static int set_up(void **state)
{
    (void)state;
    rig_open(&rig, RIG_READ_WRITE, 1, 100);
    hipio_stats_reset();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void is_closed_at_first(void **state)
{
    (void)state;
    assert_false(hipio_breaker_is_open(rig.file, 0, 0));
    assert_int_equal(hipio_breaker_reason(rig.file, 0, 0), 0);
    hipio_breaker_success(rig.file, 0, 0);
    assert_false(hipio_breaker_is_open(rig.file, 0, 0));
}

static void opens_at_once_for_good(void **state)
{
    (void)state;
    hipio_breaker_failure(rig.file, 1, 2, -ENODEV, true);
    assert_true(hipio_breaker_is_open(rig.file, 1, 2));
    assert_int_equal(hipio_breaker_reason(rig.file, 1, 2), -ENODEV);
    assert_false(hipio_breaker_is_open(rig.file, 1, 0));
    assert_false(hipio_breaker_is_open(rig.file, 0, 2));
    /* The first reason stays, and is counted once. */
    hipio_breaker_failure(rig.file, 1, 2, -EINVAL, true);
    hipio_breaker_success(rig.file, 1, 2);
    assert_int_equal(hipio_breaker_reason(rig.file, 1, 2), -ENODEV);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), 1);
}

static void has_patience(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < HIPIO_BREAKER_PATIENCE; i++)
            hipio_breaker_failure(rig.file, 0, 0, -EINVAL, false);
        assert_false(hipio_breaker_is_open(rig.file, 0, 0));
        hipio_breaker_success(rig.file, 0, 0);
    }
    for (int i = 0; i < HIPIO_BREAKER_PATIENCE; i++)
        hipio_breaker_failure(rig.file, 0, 0, -EINVAL, false);
    assert_int_equal(hipio_breaker_reason(rig.file, 0, 0), -EINVAL);
}

static void forgets_with_the_file(void **state)
{
    struct hipio_file *other;

    (void)state;
    hipio_breaker_failure(rig.file, 0, 0, -ENODEV, true);
    assert_int_equal(hipio_file_create(rig.fd, "other", RIG_READ_WRITE, &rig.tunables, &other), 0);
    assert_false(hipio_breaker_is_open(other, 0, 0));
    hipio_file_destroy(other);
    assert_true(hipio_breaker_is_open(rig.file, 0, 0));
}

/* What is out of range is never given up, and nothing breaks. */
static void ignores_strangers(void **state)
{
    (void)state;
    hipio_breaker_failure(rig.file, SIZE_MAX, 0, -ENODEV, true);
    hipio_breaker_failure(rig.file, 0, -1, -ENODEV, true);
    assert_false(hipio_breaker_is_open(rig.file, SIZE_MAX, 0));
    assert_false(hipio_breaker_is_open(rig.file, 0, -1));
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), 0);
}

static void *fail_often(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        hipio_breaker_failure(rig.file, 0, i % 4, -ENODEV, i % 3 == 0);
        hipio_breaker_success(rig.file, 0, (i + 1) % 4);
        (void)hipio_breaker_is_open(rig.file, 0, i % 4);
    }
    return NULL;
}

static void stands_many_threads(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_often, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), 4);
}

int main(void)
{
#define ROUND(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROUND(is_closed_at_first),    ROUND(opens_at_once_for_good), ROUND(has_patience),
        ROUND(forgets_with_the_file), ROUND(ignores_strangers),      ROUND(stands_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
