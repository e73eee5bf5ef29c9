/* SPDX-License-Identifier: MIT */
/*
 * Status: the text belongs to the thread that set it, and may be built from itself.
 */
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void text_is_empty_at_first(void **state)
{
    (void)state;
    assert_string_equal(hipio_status_text(), "");
}

static void set_returns_the_error_and_keeps_errno(void **state)
{
    (void)state;
    errno = ENOSPC;
    assert_int_equal(hipio_status_set(-EIO, "write of %d bytes failed", 7), -EIO);
    assert_int_equal(errno, ENOSPC);
    assert_string_equal(hipio_status_text(), "write of 7 bytes failed");
    hipio_status_clear();
    assert_string_equal(hipio_status_text(), "");
}

static void text_may_be_extended(void **state)
{
    (void)state;
    hipio_status_set(-EIO, "inner");
    hipio_status_set(-EIO, "outer: %s", hipio_status_text());
    assert_string_equal(hipio_status_text(), "outer: inner");
}

static void long_text_is_cut(void **state)
{
    (void)state;
    char big[3 * HIPIO_TEXT_MAX];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    hipio_status_set(-EIO, "%s", big);
    assert_int_equal(strlen(hipio_status_text()), HIPIO_TEXT_MAX - 1);
}

static void *other_thread(void *arg)
{
    (void)arg;
    int clean = hipio_status_text()[0] == '\0';

    hipio_status_set(-EIO, "other");
    return (void *)(intptr_t)clean;
}

static void threads_do_not_share_text(void **state)
{
    (void)state;
    pthread_t thread;
    void *clean = NULL;

    hipio_status_set(-EIO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &clean), 0);
    assert_non_null(clean);
    assert_string_equal(hipio_status_text(), "mine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_empty_at_first),
        cmocka_unit_test(set_returns_the_error_and_keeps_errno),
        cmocka_unit_test(text_may_be_extended),
        cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(threads_do_not_share_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
