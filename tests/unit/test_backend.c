/* SPDX-License-Identifier: MIT */
/*
 * Backend: a pair of mock backends through every combination of what the first does and what its
 * fallback does, with result, words and counters.
 */
#include "backend.h"
#include "fake_device.h"
#include "rig.h"
#include "stats.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include <cmocka.h>

int __real_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out);

/* What the files of the test lie on: 0 for what is really there. */
static long file_system;

int __wrap_fstatfs(int fd, struct statfs *out)
{
    int rc = __real_fstatfs(fd, out);
    if (file_system)
        out->f_type = file_system;
    return rc;
}

#define EXT4 0xef53
#define NFS 0x6969

#define LENGTH 1000
#define PROGRESS 300

/* What a mock does next, and what it saw. */
struct mock {
    int score;
    uint64_t moves;
    int status;
    bool eligible;
    unsigned runs;
    uint64_t scored_start, scored_length;
    uint64_t start, length;
};

static struct mock first, second;

static int mock_score(struct mock *mock, const struct hipio_part *part)
{
    mock->scored_start = part->start;
    mock->scored_length = part->length;
    return mock->score;
}

static int mock_io(struct mock *mock, const char *name, struct hipio_part *part)
{
    mock->runs++;
    mock->start = part->start;
    mock->length = part->length;
    part->moved = mock->moves < part->length ? mock->moves : part->length;
    return mock->status < 0 ? hipio_status_set(mock->status, "%s was told to fail", name) : 0;
}

static int first_score(const struct hipio_part *part)
{
    return mock_score(&first, part);
}

static int first_io(struct hipio_part *part)
{
    return mock_io(&first, "first", part);
}

static bool first_eligible(const struct hipio_part *part, int error)
{
    assert_int_equal(part->moved, first.moves);
    assert_int_equal(error, first.status ? first.status : -EIO);
    return first.eligible;
}

static int second_score(const struct hipio_part *part)
{
    return mock_score(&second, part);
}

static int second_io(struct hipio_part *part)
{
    return mock_io(&second, "second", part);
}

static bool never_eligible(const struct hipio_part *part, int error)
{
    (void)part;
    (void)error;
    return false;
}

static const struct hipio_backend alone = {"alone",
                                           HIPIO_BACKEND_FAST_PATH,
                                           first_score,
                                           first_io,
                                           first_eligible,
                                           hipio_backend_whole,
                                           hipio_backend_unconcerned};
static const struct hipio_backend paired = {"paired",
                                            HIPIO_BACKEND_FAST_PATH,
                                            first_score,
                                            first_io,
                                            first_eligible,
                                            hipio_backend_whole,
                                            hipio_backend_unconcerned};
static const struct hipio_backend mender = {"mender",
                                            HIPIO_BACKEND_STAGING,
                                            second_score,
                                            second_io,
                                            never_eligible,
                                            hipio_backend_whole,
                                            hipio_backend_unconcerned};

enum first_does { OK, SHORT, ELIGIBLE, NOT_ELIGIBLE, AFTER_PROGRESS, FIRSTS };
enum second_does { NONE, ACCEPTS, REFUSES, FAILS, SECONDS };

static void set_mocks(enum first_does what, enum second_does then)
{
    first = (struct mock){.score = 5, .moves = LENGTH, .eligible = true};
    second = (struct mock){.score = 1, .moves = LENGTH};
    if (what == SHORT)
        first.moves = PROGRESS;
    if (what == ELIGIBLE || what == NOT_ELIGIBLE || what == AFTER_PROGRESS) {
        first.moves = what == AFTER_PROGRESS ? PROGRESS : 0;
        first.status = what == NOT_ELIGIBLE ? -EIO : -ENODEV;
        first.eligible = what != NOT_ELIGIBLE;
    }
    if (then == REFUSES)
        second.score = -1;
    if (then == FAILS) {
        second.moves = 100;
        second.status = -ENOSPC;
    }
}

struct bench {
    struct rig rig;
    struct hipio_layout *layout;
    char buffer[LENGTH];
};

static int set_up(void **state)
{
    static struct bench bench;
    file_system = EXT4;
    rig_open(&bench.rig, RIG_READ_WRITE, 1, LENGTH);
    bench.layout = rig_run(0, LENGTH);
    hipio_stats_reset();
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    hipio_layout_release(bench->layout);
    rig_close(&bench->rig);
    return 0;
}

static struct hipio_request run(struct bench *bench, enum hipio_op op,
                                const struct hipio_backend *a, const struct hipio_backend *b)
{
    const struct hipio_backend *candidates[] = {a, b};
    struct hipio_request request =
        rig_request(&bench->rig, op, bench->buffer, &rig_host, bench->layout, bench->layout);
    memset(request.text, 'x', sizeof request.text);
    request.done = 12345;
    int status = hipio_backend_run(&request, candidates, b ? 2 : 1);
    assert_int_equal(status, request.status);
    if (status < 0)
        assert_string_equal(hipio_status_text(), request.text);
    return request;
}

/* What must come of one combination. */
struct outcome {
    int status;
    uint64_t done;
    bool fell_back;
    const char *text;
};

static struct outcome expected(enum hipio_op op, enum first_does what, enum second_does then)
{
    if (what == OK)
        return (struct outcome){0, LENGTH, false, ""};
    /* A read that ends early has met the end of the file; a write that does has failed. */
    if (what == SHORT && op == HIPIO_READ)
        return (struct outcome){0, PROGRESS, false, ""};
    uint64_t progress = what == AFTER_PROGRESS || what == SHORT ? PROGRESS : 0;
    int error = what == NOT_ELIGIBLE || what == SHORT ? -EIO : -ENODEV;
    const char *words = what == SHORT ? "300 of 1000 bytes without an error" : "told to fail";
    if (what == NOT_ELIGIBLE || then == NONE || then == REFUSES)
        return (struct outcome){error, progress, false, words};
    if (then == ACCEPTS)
        return (struct outcome){0, LENGTH, true, ""};
    return (struct outcome){-ENOSPC, progress + 100, true,
                            what == SHORT
                                ? "second was told to fail; before that paired failed: rig: "
                                  "backend paired wrote 300 of 1000 bytes without an error"
                                : "second was told to fail; before that paired failed: first was "
                                  "told to fail"};
}

static void check_outcome(enum hipio_op op, enum first_does what, enum second_does then,
                          const struct hipio_request *request)
{
    struct outcome wanted = expected(op, what, then);

    print_message("op %d, first %d, second %d\n", (int)op, (int)what, (int)then);
    assert_int_equal(request->status, wanted.status);
    assert_int_equal(request->done, wanted.done);
    if (wanted.status == 0)
        assert_string_equal(request->text, "");
    else
        assert_non_null(strstr(request->text, wanted.text));
    assert_int_equal(second.runs, wanted.fell_back ? 1 : 0);
    if (wanted.fell_back) {
        uint64_t progress = what == AFTER_PROGRESS || what == SHORT ? PROGRESS : 0;
        assert_int_equal(second.start, progress);
        assert_int_equal(second.length, LENGTH - progress);
        assert_int_equal(second.scored_start, progress);
        assert_int_equal(second.scored_length, LENGTH - progress);
    }
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_requests), 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_read), op == HIPIO_READ ? wanted.done : 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_bytes_written),
                     op == HIPIO_WRITE ? wanted.done : 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_failed), wanted.status < 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), wanted.fell_back);
    int reason = what == SHORT ? -EIO : -ENODEV;
    assert_int_equal(hipio_stats_fallbacks_by_reason(reason), wanted.fell_back);
}

static void passes_every_row_of_the_table(void **state)
{
    struct bench *bench = *state;

    assert_int_equal(hipio_backend_set_fallback(&paired, &mender), 0);
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++)
        for (int what = 0; what < FIRSTS; what++)
            for (int then = 0; then < SECONDS; then++) {
                hipio_stats_reset();
                set_mocks(what, then);
                struct hipio_request request =
                    run(bench, op, then == NONE ? &alone : &paired, NULL);
                assert_int_equal(first.runs, 1);
                check_outcome(op, what, then, &request);
            }
}

static void takes_the_highest_score_and_the_earlier_of_equals(void **state)
{
    struct bench *bench = *state;

    set_mocks(OK, ACCEPTS);
    run(bench, HIPIO_WRITE, &mender, &alone);
    assert_int_equal(first.runs, 1);
    first.score = second.score = 7;
    run(bench, HIPIO_WRITE, &mender, &alone);
    assert_int_equal(second.runs, 1);
    first.score = 0;
    second.score = -1;
    run(bench, HIPIO_WRITE, &mender, &alone);
    assert_int_equal(first.runs, 2);
}

static void refuses_what_nobody_takes(void **state)
{
    struct bench *bench = *state;

    set_mocks(OK, ACCEPTS);
    first.score = -1;
    struct hipio_request request = run(bench, HIPIO_WRITE, &alone, NULL);
    assert_int_equal(request.status, -ENOTSUP);
    assert_int_equal(request.done, 0);
    assert_non_null(strstr(request.text, "rig: no way to move 1000 bytes"));
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_failed), 1);
}

static void leaves_an_error_after_the_last_byte_alone(void **state)
{
    struct bench *bench = *state;

    set_mocks(ELIGIBLE, ACCEPTS);
    first.moves = LENGTH;
    struct hipio_request request = run(bench, HIPIO_WRITE, &paired, NULL);
    assert_int_equal(request.status, -ENODEV);
    assert_int_equal(request.done, LENGTH);
    assert_int_equal(second.runs, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 0);
}

/* Settings, and which of the two kinds may run: {fastpath, fallback, fast, staging, status of an
 * eligible failure of the fast path}. */
static void follows_the_settings(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *fastpath, *fallback;
        unsigned fast, staging;
        int status;
    } rows[] = {
        {"auto", "auto", 1, 1, 0},          {"auto", "off", 1, 0, -ENODEV},
        {"auto", "force", 0, 1, 0},         {"off", "auto", 0, 1, 0},
        {"force", "auto", 1, 0, -ENODEV},   {"off", "off", 0, 0, -ENOTSUP},
        {"force", "force", 0, 0, -ENOTSUP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_mocks(ELIGIBLE, ACCEPTS);
        rig_set(&bench->rig, "fastpath", rows[i].fastpath);
        rig_set(&bench->rig, "fallback", rows[i].fallback);
        struct hipio_request request = run(bench, HIPIO_WRITE, &paired, &mender);
        print_message("fastpath %s, fallback %s\n", rows[i].fastpath, rows[i].fallback);
        assert_int_equal(first.runs, rows[i].fast);
        assert_int_equal(second.runs, rows[i].staging);
        assert_int_equal(request.status, rows[i].status);
        if (request.status == -ENODEV)
            assert_string_equal(request.text, "first was told to fail");
        if (request.status == -ENOTSUP)
            assert_non_null(strstr(request.text, rows[i].fastpath));
    }
}

/* A read never asks a backend for what lies behind the end of the file. */
static void cuts_reads_at_the_end_of_the_file(void **state)
{
    struct bench *bench = *state;
    static const struct {
        uint64_t start, done;
    } rows[] = {{0, LENGTH}, {990, 10}, {LENGTH, 0}, {5000, 0}};
    const struct hipio_backend *candidates[] = {&alone};
    struct hipio_layout *wide = rig_run(0, 10000);

    for (size_t i = 0; i < 4; i++) {
        set_mocks(OK, NONE);
        struct hipio_request request =
            rig_request(&bench->rig, HIPIO_READ, bench->buffer, &rig_host, bench->layout, wide);
        request.file_start = rows[i].start;
        assert_int_equal(hipio_backend_run(&request, candidates, 1), 0);
        assert_int_equal(request.done, rows[i].done);
        assert_int_equal(first.runs, rows[i].done > 0);
        assert_int_equal(first.length, rows[i].done);
    }
    hipio_layout_release(wide);
}

/* Where other machines may have made the file longer, the backend finds the end itself. */
static void believes_no_size_of_a_shared_file(void **state)
{
    struct bench *bench = *state;
    const struct hipio_backend *candidates[] = {&alone};
    struct hipio_layout *wide = rig_run(0, 10000);
    struct rig shared;

    file_system = NFS;
    rig_open(&shared, RIG_READ_WRITE, 1, LENGTH);
    set_mocks(SHORT, NONE);
    struct hipio_request request =
        rig_request(&shared, HIPIO_READ, bench->buffer, &rig_host, bench->layout, wide);
    request.file_start = 900;
    assert_int_equal(hipio_backend_run(&request, candidates, 1), 0);
    assert_int_equal(first.length, LENGTH);
    assert_int_equal(request.done, PROGRESS);
    rig_close(&shared);
    hipio_layout_release(wide);
}

static void gives_words_to_a_silent_error_and_bounds_to_a_wild_count(void **state)
{
    struct bench *bench = *state;

    set_mocks(OK, NONE);
    first.status = 7; /* no error of ours */
    first.moves = 5;
    struct hipio_request request = run(bench, HIPIO_READ, &alone, NULL);
    assert_int_equal(request.status, 0);

    const struct hipio_backend *null = NULL;
    for (size_t i = 0; i < hipio_backend_count(); i++)
        if (strcmp(hipio_backend_at(i)->name, "null") == 0)
            null = hipio_backend_at(i);
    assert_non_null(null);
    hipio_stats_reset();
    request = run(bench, HIPIO_WRITE, null, NULL);
    assert_int_equal(request.done, LENGTH);
    size_t index = hipio_backend_index(null);
    assert_int_equal(hipio_stats_backend_get(index, HIPIO_BACKEND_WRITTEN), LENGTH);
    assert_int_equal(hipio_stats_backend_get(index, HIPIO_BACKEND_READ), 0);
    assert_int_equal(hipio_stats_backend_get(index, HIPIO_BACKEND_REQUESTS), 1);
}

static const struct hipio_backend a = {.name = "a"}, b = {.name = "b"}, c = {.name = "c"},
                                  d = {.name = "d"};

static void refuses_bad_registrations(void **state)
{
    (void)state;
    assert_int_equal(hipio_backend_set_fallback(NULL, &b), -EINVAL);
    assert_non_null(strstr(hipio_status_text(), "backend is NULL"));
    assert_int_equal(hipio_backend_set_fallback(&a, NULL), -EINVAL);
    assert_non_null(strstr(hipio_status_text(), "fallback is NULL"));
    assert_int_equal(hipio_backend_set_fallback(&a, &a), -EINVAL);
    assert_non_null(strstr(hipio_status_text(), "a can't be its own fallback"));
    assert_null(hipio_backend_fallback(&a));

    assert_int_equal(hipio_backend_set_fallback(&a, &b), 0);
    assert_int_equal(hipio_backend_set_fallback(&b, &c), 0);
    assert_ptr_equal(hipio_backend_fallback(&a), &b);
    assert_int_equal(hipio_backend_set_fallback(&c, &a), -EINVAL);
    assert_non_null(strstr(hipio_status_text(), "c can't fall back to a, which falls back to it"));
    assert_int_equal(hipio_backend_set_fallback(&b, &a), -EINVAL);
    assert_int_equal(hipio_backend_set_fallback(&a, &d), -EINVAL);
    assert_non_null(strstr(hipio_status_text(), "a already falls back to b"));
    assert_ptr_equal(hipio_backend_fallback(&a), &b);
    assert_null(hipio_backend_fallback(&c));
}

static void keeps_the_table_complete(void **state)
{
    (void)state;
    assert_true(hipio_backend_count() >= 3);
    for (size_t i = 0; i < hipio_backend_count(); i++) {
        const struct hipio_backend *backend = hipio_backend_at(i);
        assert_non_null(backend->name);
        assert_non_null(backend->score);
        assert_non_null(backend->io);
        assert_non_null(backend->eligible);
        assert_int_equal(hipio_backend_index(backend), i);
        const struct hipio_backend *fallback = hipio_backend_fallback(backend);
        for (int steps = 0; fallback; steps++) {
            assert_true(steps < 16 && fallback != backend);
            fallback = hipio_backend_fallback(fallback);
        }
    }
    assert_null(hipio_backend_at(hipio_backend_count()));
    assert_int_equal(hipio_backend_index(&alone), SIZE_MAX);
}

#define THREADS 8
static struct hipio_backend many[THREADS + 1];

/* Every thread registers its own and tries to close a ring; all read meanwhile. */
static void *register_some(void *argument)
{
    size_t i = (size_t)argument;
    long good = 0;

    for (size_t k = 0; k < THREADS; k++) {
        good +=
            hipio_backend_set_fallback(&many[(i + k) % THREADS], &many[(i + k + 1) % THREADS]) == 0;
        hipio_backend_fallback(&many[k]);
        hipio_stats_add(HIPIO_COUNT_requests, 1);
    }
    return (void *)good;
}

static void registers_from_many_threads(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    long good = 0;

    for (size_t i = 0; i < THREADS; i++)
        many[i].name = "one of many";
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, register_some, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        good += (long)result;
    }
    /* The ring has as many links as backends; exactly the one that would close it is missing. */
    assert_int_equal(good, THREADS - 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_requests), THREADS * THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(passes_every_row_of_the_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_the_highest_score_and_the_earlier_of_equals, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_nobody_takes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leaves_an_error_after_the_last_byte_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(follows_the_settings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cuts_reads_at_the_end_of_the_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(believes_no_size_of_a_shared_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(gives_words_to_a_silent_error_and_bounds_to_a_wild_count,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_bad_registrations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keeps_the_table_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(registers_from_many_threads, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
