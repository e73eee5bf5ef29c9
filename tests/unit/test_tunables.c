/* SPDX-License-Identifier: MIT */
/*
 * Tunables: what each setting takes and refuses, its text there and back, and the environment,
 * which is read in child processes because a process reads it once.
 */
#include "log.h"
#include "status.h"
#include "tunables.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct hipio_tunables defaults(void)
{
    struct hipio_tunables t = {0};

    for (size_t i = 0; i < hipio_tunables_count(); ++i) {
        const struct hipio_tunable_info *info = hipio_tunables_info(i);
        assert_int_equal(hipio_tunables_set(&t, info->name, info->text), 0);
    }
    return t;
}

static void the_table_is_whole(void **state)
{
    (void)state;
    struct hipio_tunables t = defaults();
    char text[64];

    assert_int_equal(hipio_tunables_count(), sizeof t / sizeof(uint64_t));
    for (size_t i = 0; i < hipio_tunables_count(); ++i) {
        const struct hipio_tunable_info *info = hipio_tunables_info(i);

        assert_int_equal(hipio_tunables_index(info->name), i);
        assert_true(strlen(info->help) > 10);
        assert_in_range(strlen(info->accepts), 10, 120);
        hipio_tunables_format(&t, i, text, sizeof text);
        assert_string_equal(text, info->text);
    }
    assert_null(hipio_tunables_info(hipio_tunables_count()));
    assert_int_equal(hipio_tunables_index("nonsense"), HIPIO_TUNABLE_NONE);
    assert_int_equal(t.chunk_size, 1 << 20);
    assert_int_equal(t.pinned_limit, 64 << 20);
    assert_int_equal(t.stats, HIPIO_STATS_OFF);
    assert_int_equal(t.log, HIPIO_LOG_WARN);
}

static void sizes_are_parsed(void **state)
{
    (void)state;
    const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},        {"4096", 4096},
                {"4k", 4096},    {"4K", 4096},
                {"1m", 1 << 20}, {"3G", UINT64_C(3) << 30},
                {"007", 7},      {"18446744073709551615", UINT64_MAX}};
    const char *bad[] = {"",
                         " ",
                         "-1",
                         "+1",
                         "1e6",
                         " 4096 ",
                         "4096 ",
                         "0x10",
                         "k",
                         "4KB",
                         "4 K",
                         "1.5M",
                         "18446744073709551616",
                         "4T",
                         "17179869184G",
                         "99999999999999999999"};
    uint64_t value;

    for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) {
        assert_int_equal(hipio_tunables_parse_size(good[i].text, &value), 0);
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        value = 4711;
        assert_int_equal(hipio_tunables_parse_size(bad[i], &value), -EINVAL);
        assert_int_equal(value, 4711);
    }
}

static void numbers_have_limits(void **state)
{
    (void)state;
    struct hipio_tunables t = defaults();
    const struct {
        const char *name;
        const char *text;
        uint64_t want; /* UINT64_MAX: refused */
    } cases[] = {
        {"chunk_size", "4k", 4096},
        {"chunk_size", "4097", 8192},
        {"chunk_size", "1G", 1 << 30},
        {"chunk_size", "3", UINT64_MAX},
        {"chunk_size", "0", UINT64_MAX},
        {"chunk_size", "-1", UINT64_MAX},
        {"chunk_size", "1073741825", UINT64_MAX},
        {"pinned_limit", "0", UINT64_MAX},
        {"pinned_limit", "64K", 65536},
        {"lanes", "0", 0},
        {"lanes", "16", 16},
        {"lanes", "17", UINT64_MAX},
        {"lanes", "1000000", UINT64_MAX},
        {"lanes", "4k", UINT64_MAX},
        {"lanes", "", UINT64_MAX},
        {"async_threads", "0", UINT64_MAX},
        {"async_threads", "64", 64},
        {"async_threads", "65", UINT64_MAX},
        {"window_size", "0", UINT64_MAX},
        {"window_size", "1M", 1 << 20},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const struct hipio_tunables before = t;
        const int err = hipio_tunables_set(&t, cases[i].name, cases[i].text);
        const uint64_t now = ((uint64_t *)&t)[hipio_tunables_index(cases[i].name)];

        if (cases[i].want == UINT64_MAX) {
            assert_int_equal(err, -EINVAL);
            assert_memory_equal(&t, &before, sizeof t);
            assert_non_null(strstr(hipio_status_text(), cases[i].name));
            assert_non_null(strstr(hipio_status_text(), cases[i].text));
            assert_non_null(strstr(hipio_status_text(), " stays in force; it takes "));
            assert_non_null(strstr(hipio_status_text(), " from "));
        } else {
            assert_int_equal(err, 0);
            assert_int_equal(now, cases[i].want);
        }
    }
}

static void words_are_understood(void **state)
{
    (void)state;
    struct hipio_tunables t = defaults();
    const char *force[] = {"force", "1", "TRUE", "yes", "On", "FORCE"};
    const char *off[] = {"off", "0", "False", "no", "OFF"};
    const char *bad[] = {"maybe", "", "2", "forced", " on", "disable"};

    for (size_t i = 0; i < sizeof force / sizeof force[0]; ++i) {
        t.fallback = HIPIO_AUTO;
        assert_int_equal(hipio_tunables_set(&t, "fallback", force[i]), 0);
        assert_int_equal(t.fallback, HIPIO_FORCE);
    }
    for (size_t i = 0; i < sizeof off / sizeof off[0]; ++i) {
        t.fallback = HIPIO_AUTO;
        assert_int_equal(hipio_tunables_set(&t, "fallback", off[i]), 0);
        assert_int_equal(t.fallback, HIPIO_OFF);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        assert_int_equal(hipio_tunables_set(&t, "fallback", bad[i]), -EINVAL);
        assert_int_equal(t.fallback, HIPIO_OFF);
    }
    assert_string_equal(
        hipio_status_text(),
        "setting fallback: \"disable\" is not accepted, off stays in force; it takes "
        "auto, off (or 0, no, false), force (or 1, yes, true, on)");
    assert_string_equal(hipio_tunables_info(hipio_tunables_index("sync"))->accepts,
                        "stream, device, none");
    assert_int_equal(hipio_tunables_set(&t, "stats", "1"), 0);
    assert_int_equal(t.stats, HIPIO_STATS_FINALIZE);
    assert_int_equal(hipio_tunables_set(&t, "fallbacks", "off"), -ENOENT);
    assert_non_null(strstr(hipio_status_text(), "fallbacks"));
}

static void text_goes_there_and_back(void **state)
{
    (void)state;
    const char *texts[] = {"0",        "1",       "2",      "3",     "64",          "4K",
                           "8K",       "1000000", "1M",     "auto",  "off",         "force",
                           "hip",      "cuda",    "device", "none",  "staged",      "close",
                           "finalize", "error",   "info",   "debug", "independent", "1G"};
    struct hipio_tunables t = defaults();
    unsigned taken = 0;

    for (size_t i = 0; i < hipio_tunables_count(); ++i) {
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; ++k) {
            const char *name = hipio_tunables_info(i)->name;
            struct hipio_tunables back = defaults();
            char text[64];

            if (hipio_tunables_set(&t, name, texts[k]) != 0)
                continue;
            ++taken;
            hipio_tunables_format(&t, i, text, sizeof text);
            assert_int_equal(hipio_tunables_set(&back, name, text), 0);
            assert_int_equal(((uint64_t *)&back)[i], ((uint64_t *)&t)[i]);
        }
    }
    assert_true(taken > 40);
}

/* ---- The environment ---- */

static char child_log[8192];

/* Runs `check` in a child with a clean environment and these variables; keeps what it logs. */
static void in_child(const char *const *variables, void (*check)(void))
{
    int pipe_ends[2];
    int status;
    size_t used = 0;
    ssize_t n;

    assert_int_equal(pipe(pipe_ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        close(pipe_ends[0]);
        clearenv();
        for (size_t i = 0; variables[i]; ++i)
            putenv((char *)variables[i]);
        check();
        _exit(0);
    }
    close(pipe_ends[1]);
    while ((n = read(pipe_ends[0], child_log + used, sizeof child_log - 1 - used)) > 0)
        used += (size_t)n;
    child_log[used] = '\0';
    close(pipe_ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
        print_error("child ended with %d: %s\n", status, child_log);
    assert_int_equal(status, 0);
}

/* A value that only the process can have is refused to a file, unless it is in force anyway. */
static void a_file_has_no_settings_of_the_process(void **state)
{
    (void)state;
    struct hipio_tunables t = *hipio_tunables_process(), before = t;
    static const char *const refused[][2] = {
        {"device", "off"}, {"log", "debug"}, {"async_buffer_size", "64K"}, {"stats", "finalize"}};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; ++i) {
        assert_int_equal(hipio_tunables_set_file(&t, refused[i][0], refused[i][1]), -EINVAL);
        assert_non_null(strstr(hipio_status_text(), " stays in force"));
        assert_non_null(strstr(hipio_status_text(), "environment variable HIPIO_"));
        assert_non_null(strstr(hipio_status_text(), refused[i][1]));
    }
    assert_int_equal(hipio_tunables_set_file(&t, "device", "auto"), 0);
    assert_int_equal(hipio_tunables_set_file(&t, "log", "warn"), 0);
    assert_memory_equal(&t, &before, sizeof t);
    assert_int_equal(hipio_tunables_set_file(&t, "stats", "close"), 0);
    assert_int_equal(t.stats, HIPIO_STATS_CLOSE);
    assert_int_equal(hipio_tunables_set_file(&t, "chunk_size", "64K"), 0);
    assert_int_equal(t.chunk_size, 64 << 10);
    assert_int_equal(hipio_tunables_set_file(&t, "no_such", "1"), -ENOENT);
}

static size_t lines_of(const char *text)
{
    size_t lines = 0;

    for (; *text; ++text)
        lines += *text == '\n';
    return lines;
}

static void expect(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "expected %s\n", what);
        _exit(1);
    }
}

static void *read_settings(void *arg)
{
    (void)arg;
    return (void *)(uintptr_t)hipio_tunables_process()->chunk_size;
}

static void check_good(void)
{
    const struct hipio_tunables *t = hipio_tunables_process();

    expect(t->chunk_size == 8 << 20, "chunk_size 8M");
    expect(t->fallback == HIPIO_FORCE, "fallback forced");
    expect(t->lanes == 0, "lanes by default");
    expect(hipio_tunables_source(hipio_tunables_index("chunk_size")) == HIPIO_SOURCE_ENV, "env");
    expect(hipio_tunables_source(hipio_tunables_index("lanes")) == HIPIO_SOURCE_DEFAULT, "default");
    expect(hipio_tunables_set_process("lanes", "3", HIPIO_SOURCE_MCA) == 0, "lanes to be taken");
    expect(hipio_tunables_set_process("lanes", "x", HIPIO_SOURCE_MCA) == -EINVAL, "x refused");
    expect(hipio_tunables_set_process("line", "3", HIPIO_SOURCE_MCA) == -EINVAL, "line refused");
    expect(t->lanes == 3, "lanes 3");
    expect(hipio_tunables_source(hipio_tunables_index("lanes")) == HIPIO_SOURCE_MCA, "mca");
    expect(hipio_log_enabled(HIPIO_LOG_DEBUG), "log level debug");
    expect(hipio_tunables_set_process("log", "error", HIPIO_SOURCE_MCA) == 0, "log to be taken");
    expect(!hipio_log_enabled(HIPIO_LOG_WARN), "log level error");
}

static void environment_is_read(void **state)
{
    (void)state;
    const char *const variables[] = {"HIPIO_CHUNK_SIZE=8M", "HIPIO_FALLBACK=1", "HIPIO_LOG=debug",
                                     "OTHER=1", NULL};
    in_child(variables, check_good);
    assert_string_equal(child_log, "");
}

static void check_bad(void)
{
    pthread_t thread[4];

    for (int i = 0; i < 4; ++i)
        pthread_create(&thread[i], NULL, read_settings, NULL);
    for (int i = 0; i < 4; ++i) {
        void *size = NULL;
        pthread_join(thread[i], &size);
        expect((uintptr_t)size == 1 << 20, "the default chunk_size");
    }
    expect(hipio_tunables_process()->fallback == HIPIO_AUTO, "the default fallback");
}

static void bad_values_are_named_once(void **state)
{
    (void)state;
    const char *const variables[] = {"HIPIO_CHUNK_SIZE=1e6", "HIPIO_FALLBACK=maybe",
                                     "HIPIO_SYNC=", NULL};
    in_child(variables, check_bad);
    assert_int_equal(lines_of(child_log), 3);
    assert_non_null(strstr(child_log,
                           "hipio: environment variable HIPIO_CHUNK_SIZE: \"1e6\" is not accepted, "
                           "1M stays in force; it takes a size in bytes from 4K to 1G, suffix K, M "
                           "or G\n"));
    assert_non_null(strstr(child_log, "HIPIO_FALLBACK: \"maybe\" is not accepted, auto stays"));
    assert_non_null(strstr(child_log, "HIPIO_SYNC: \"\" is not accepted"));
}

static void check_stream(void)
{
    const uint64_t *stream = &hipio_tunables_process()->stream;

    expect(*stream == 0, "no stream");
    expect(hipio_tunables_set_process("stream", "0x7", HIPIO_SOURCE_MCA) == -EINVAL, "0x7 refused");
    fprintf(stderr, "%s\n", hipio_status_text());
    expect(hipio_tunables_set_process("stream", "0", HIPIO_SOURCE_MCA) == 0, "0 to be taken");
    expect(*stream == 0, "no stream yet");
}

/* A stream is one file's: the refusal says where it belongs and what it takes there. */
static void a_process_has_no_stream(void **state)
{
    (void)state;
    const char *const junk[] = {"HIPIO_STREAM=main", NULL};
    const char *const pointer[] = {"HIPIO_STREAM=0x1f", NULL};
    const char *const none[] = {"HIPIO_STREAM=0", NULL};
    const char advice[] = ", 0 stays in force: it is a setting of one file, given as the info hint "
                          "hipio_stream, which takes 0, or a pointer as 0x and hexadecimal "
                          "digits\n";

    in_child(junk, check_stream);
    assert_non_null(strstr(child_log, "HIPIO_STREAM: \"main\" is not accepted, 0 stays in force"));
    assert_non_null(strstr(child_log, advice));
    in_child(pointer, check_stream);
    assert_non_null(strstr(child_log, "HIPIO_STREAM: \"0x1f\" is not accepted, 0 stays in force"));
    assert_int_equal(lines_of(child_log), 2);
    in_child(none, check_stream);
    assert_int_equal(lines_of(child_log), 1);
    assert_non_null(strstr(child_log, "setting stream: \"0x7\" is not accepted"));
    assert_non_null(strstr(child_log, advice));
}

static void check_nothing(void)
{
    hipio_tunables_process();
    hipio_tunables_process();
}

static void unknown_variables_are_named(void **state)
{
    (void)state;
    const char *const variables[] = {"HIPIO_CHUNKSIZE=4M",  "HIPIO_FLUX_CAPACITY=5",
                                     "HIPIO_WINDOW=1M",     "HIPIO_ROOT=/opt",
                                     "HIPIO_TEST_GPU=none", "HIPIO_=",
                                     "HIPIO_log=debug",     NULL};
    in_child(variables, check_nothing);
    assert_int_equal(lines_of(child_log), 5);
    assert_non_null(strstr(child_log, "HIPIO_CHUNKSIZE is not a setting and is ignored; did you "
                                      "mean HIPIO_CHUNK_SIZE?\n"));
    assert_non_null(strstr(child_log, "HIPIO_WINDOW is not a setting and is ignored; did you mean "
                                      "HIPIO_WINDOW_SIZE?\n"));
    assert_non_null(strstr(child_log, "HIPIO_FLUX_CAPACITY is not a setting and is ignored; "
                                      "hipio-info lists them\n"));
}

static void silence_is_kept(void **state)
{
    (void)state;
    const char *const variables[] = {"HIPIO_CHUNK_SIZE=x", "HIPIO_LOG=none", NULL};
    in_child(variables, check_nothing);
    assert_string_equal(child_log, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_whole),
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(words_are_understood),
        cmocka_unit_test(text_goes_there_and_back),
        cmocka_unit_test(environment_is_read),
        cmocka_unit_test(bad_values_are_named_once),
        cmocka_unit_test(a_process_has_no_stream),
        cmocka_unit_test(unknown_variables_are_named),
        cmocka_unit_test(silence_is_kept),
        cmocka_unit_test(a_file_has_no_settings_of_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
