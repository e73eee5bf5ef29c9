/* SPDX-License-Identifier: MIT */
/*
 * Log: levels, prefix, one write per line, long and ugly texts.
 */
#include "log.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int saved_stderr;
static int capture;
static char text[1 << 16];

static int start_capture(void **state)
{
    (void)state;
    char name[] = "/tmp/hipio-test-log-XXXXXX";

    capture = mkstemp(name);
    if (capture < 0)
        return -1;
    unlink(name);
    saved_stderr = dup(STDERR_FILENO);
    /* Both share one file position, so that each line lands after the one before. */
    dup2(capture, STDERR_FILENO);
    hipio_log_set_level(HIPIO_LOG_WARN);
    hipio_log_set_prefix("");
    return 0;
}

static int stop_capture(void **state)
{
    (void)state;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(capture);
    return 0;
}

static const char *captured(void)
{
    const ssize_t n = pread(capture, text, sizeof text - 1, 0);

    assert_true(n >= 0);
    text[n] = '\0';
    return text;
}

static void level_decides(void **state)
{
    (void)state;
    hipio_log(HIPIO_LOG_INFO, "not this");
    hipio_log(HIPIO_LOG_WARN, "this %d", 1);
    hipio_log(HIPIO_LOG_ERROR, "and this");
    hipio_log_set_level(HIPIO_LOG_NONE);
    hipio_log(HIPIO_LOG_ERROR, "not this either");
    assert_false(hipio_log_enabled(HIPIO_LOG_NONE));
    hipio_log_set_level(HIPIO_LOG_DEBUG);
    assert_true(hipio_log_enabled(HIPIO_LOG_DEBUG));
    assert_false(hipio_log_enabled(HIPIO_LOG_NONE));
    assert_string_equal(captured(), "hipio: this 1\nhipio: and this\n");
}

static void prefix_stands_in_front(void **state)
{
    (void)state;
    hipio_log_set_prefix("rank 3");
    hipio_log(HIPIO_LOG_WARN, "hello");
    hipio_log_set_prefix("a prefix of far more than thirty-one letters");
    hipio_log(HIPIO_LOG_WARN, "hello");
    assert_string_equal(captured(),
                        "hipio[rank 3]: hello\nhipio[a prefix of far more than thirt]: hello\n");
}

static void a_message_is_one_line(void **state)
{
    (void)state;
    hipio_log(HIPIO_LOG_WARN, "a\nb\tc%s", "\x7f\xc3\xa4");
    assert_string_equal(captured(), "hipio: a b c \xc3\xa4\n");
}

static void a_long_message_is_marked(void **state)
{
    (void)state;
    char big[3000];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    hipio_log(HIPIO_LOG_WARN, "%s", big);
    const char *line = captured();
    assert_int_equal(strlen(line), 1024);
    assert_string_equal(line + 1024 - 9, "xx [cut]\n");
}

static void errno_survives(void **state)
{
    (void)state;
    errno = ENOSPC;
    hipio_log(HIPIO_LOG_WARN, "%m");
    assert_int_equal(errno, ENOSPC);
    assert_string_equal(captured(), "hipio: No space left on device\n");
}

static void once_is_once(void **state)
{
    (void)state;
    static bool told;

    hipio_log_once(&told, HIPIO_LOG_INFO, "below the level, not used up");
    for (int i = 0; i < 3; ++i)
        hipio_log_once(&told, HIPIO_LOG_WARN, "told");
    assert_string_equal(captured(), "hipio: told\n");
}

static void *chatter(void *arg)
{
    for (int i = 0; i < 100; ++i)
        hipio_log(HIPIO_LOG_WARN, "%s", (const char *)arg);
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    pthread_t thread[2];
    int seen[2] = {0, 0};

    assert_int_equal(pthread_create(&thread[0], NULL, chatter, "aaaaaaaaaaaaaaaaaaaa"), 0);
    assert_int_equal(pthread_create(&thread[1], NULL, chatter, "bbbbbbbbbbbbbbbbbbbb"), 0);
    pthread_join(thread[0], NULL);
    pthread_join(thread[1], NULL);
    captured();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        seen[0] += strcmp(line, "hipio: aaaaaaaaaaaaaaaaaaaa") == 0;
        seen[1] += strcmp(line, "hipio: bbbbbbbbbbbbbbbbbbbb") == 0;
    }
    assert_int_equal(seen[0], 100);
    assert_int_equal(seen[1], 100);
}

#define captured_test(f) cmocka_unit_test_setup_teardown(f, start_capture, stop_capture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        captured_test(level_decides),
        captured_test(prefix_stands_in_front),
        captured_test(a_message_is_one_line),
        captured_test(a_long_message_is_marked),
        captured_test(errno_survives),
        captured_test(once_is_once),
        captured_test(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
