/* SPDX-License-Identifier: MIT */
/*
 * CuFile: the backend over hipsim's libcufile, present, absent, broken, and refusing in every way;
 * and what it leaves behind, which is nothing. Each test is a process with its own faults.
 */
#include "backend.h"
#include "breaker.h"
#include "device_app.h"
#include "fast_bench.h"
#include "one_by_one.h"
#include "stats.h"
#include "status.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* hipsim's, when it is the runtime. */
static uint64_t calls(void)
{
    return counter("cufile_reads") + counter("cufile_writes");
}

static bool is_loaded(void)
{
    void *library = dlopen("libcufile.so.0", RTLD_NOW | RTLD_NOLOAD);

    if (library)
        dlclose(library);
    return library != NULL;
}

static bool has_nvidia_fs(void)
{
    return access("/proc/driver/nvidia-fs/devcount", F_OK) == 0;
}

/* A folder of our own to work in, where a log would show. */
static void set_up_in_folder(uint64_t size)
{
    char folder[] = "/tmp/hipio-unit-XXXXXX";

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    set_up(size);
}

static void tear_down_in_folder(bool with_log)
{
    char folder[256];

    rig_close(&bench.rig);
    assert_non_null(getcwd(folder, sizeof folder));
    assert_int_equal(unlink("cufile.log"), with_log ? 0 : -1);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A new open of the file: what was given up is tried again. */
static void reopen(void)
{
    hipio_file_destroy(bench.rig.file);
    assert_int_equal(hipio_file_create(bench.rig.fd, "rig", RIG_READ_WRITE, &bench.rig.tunables,
                                       &bench.rig.file),
                     0);
}

static void moves_and_leaves_no_trace(void **state)
{
    char *const *const environment = environ;
    const void *context;

    (void)state;
    set_up_in_folder(8 * MIB);
    context = app_current();
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        hipio_stats_reset();
        struct hipio_request request = move(op, 0, 0, 8 * MIB);
        expect(&request, 0, 8 * MIB);
        expect_bytes("cufile", 8 * MIB, 0, 0);
        assert_int_equal(asked_of("cufile"), 1);
    }
    assert_ptr_equal(app_current(), context);
    assert_ptr_equal(environ, environment);
    assert_null(getenv("CUFILE_LOGFILE_PATH"));
    reopen();
    assert_true(fcntl(bench.rig.fd, F_GETFD) >= 0);
    tear_down_in_folder(false);
}

static void splits_unaligned_requests(void **state)
{
    (void)state;
    set_up_in_folder(4 * MIB);
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        hipio_stats_reset();
        struct hipio_request request = move(op, 100, 100, 2 * MIB);
        expect(&request, 0, 2 * MIB);
        expect_bytes("cufile", 2 * MIB - 4096, 4096, 0);
    }
    tear_down_in_folder(false);
}

static void works_without_a_current_context(void **state)
{
    const void *context;

    (void)state;
    set_up_in_folder(2 * MIB);
    struct hipio_layout *run = rig_run(0, 2 * MIB);
    struct hipio_request request =
        rig_request(&bench.rig, HIPIO_READ, bench.device, &bench.memory, run, run);
    context = app_current();
    app_drop_current();
    hipio_request_run(&request);
    expect(&request, 0, 2 * MIB);
    assert_null(app_current());
    assert_non_null(context);
    app_set_device(0);
    expect_bytes("cufile", 2 * MIB, 0, 0);
    hipio_layout_release(run);
    tear_down_in_folder(false);
}

/* Somebody has said where the log is to go. */
static void leaves_a_user_s_log_alone(void **state)
{
    struct stat facts;

    (void)state;
    set_up_in_folder(MIB);
    assert_int_equal(setenv("CUFILE_LOGFILE_PATH", "mine.log", 1), 0);
    struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
    expect(&request, 0, MIB);
    assert_string_equal(getenv("CUFILE_LOGFILE_PATH"), "mine.log");
    assert_int_equal(stat("mine.log", &facts), 0);
    assert_true(facts.st_size > 0);
    unlink("mine.log");
    tear_down_in_folder(false);
}

static void make_configuration(const char *text)
{
    FILE *file = fopen("conf.json", "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(setenv("CUFILE_ENV_PATH_JSON", "conf.json", 1), 0);
}

static void leaves_a_configured_folder_alone(void **state)
{
    (void)state;
    set_up_in_folder(MIB);
    make_configuration("{\n \"logging\": {\n  \"dir\": \"/var/log\", // where\n }\n}\n");
    struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
    expect(&request, 0, MIB);
    unlink("conf.json");
    tear_down_in_folder(true);
}

static void knows_a_comment_in_the_configuration(void **state)
{
    (void)state;
    set_up_in_folder(MIB);
    make_configuration("{\n \"logging\": {\n  // \"dir\": \"/home\",\n \"level\": \"ERROR\"}\n}\n");
    struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
    expect(&request, 0, MIB);
    unlink("conf.json");
    tear_down_in_folder(false);
}

static void is_not_loaded_unasked(void **state)
{
    (void)state;
    set_up_in_folder(2 * MIB);
    if (!has_nvidia_fs()) {
        struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
        expect(&request, 0, 2 * MIB);
        assert_false(is_loaded());
        rig_set(&bench.rig, "fastpath", "force");
        assert_int_equal(hipio_file_check_fastpath(bench.rig.file), -ENOTSUP);
        assert_non_null(strstr(hipio_status_text(), "nvidia-fs driver is not loaded"));
        rig_set(&bench.rig, "fastpath", "auto");
    }
    rig_set(&bench.rig, "cufile", "off");
    struct hipio_request request = move(HIPIO_WRITE, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    assert_false(is_loaded());
    assert_int_equal(moved_by("cufile"), 0);
    tear_down_in_folder(false);
}

static void can_be_forced(void **state)
{
    (void)state;
    set_up_in_folder(2 * MIB);
    rig_set(&bench.rig, "fastpath", "force");
    if (hipio_file_check_fastpath(bench.rig.file) != 0)
        fail_msg("%s", hipio_status_text());
    struct hipio_request request = move(HIPIO_WRITE, 0, 4096, 4096);
    expect(&request, 0, 4096);
    expect_bytes("cufile", 4096, 0, 0);
    tear_down_in_folder(false);
}

/* A file that is not taken is staged, and not offered again. */
static void stages_a_file_that_is_not_taken(void **state)
{
    (void)state;
    set_up_in_folder(2 * MIB);
    struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    request = move(HIPIO_READ, 0, 0, 2 * MIB);
    expect(&request, 0, 2 * MIB);
    expect_bytes("cufile", 0, 4 * MIB, 1);
    assert_int_equal(hipio_stats_fallbacks_by_reason(-EOPNOTSUPP), 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), 1);
    assert_int_equal(calls(), 0);
    rig_set(&bench.rig, "fastpath", "force");
    assert_int_equal(hipio_file_check_fastpath(bench.rig.file), -ENOTSUP);
    assert_non_null(strstr(hipio_status_text(), "cuFile does not take this file"));
    tear_down_in_folder(false);
}

/* R90: the driver does not open: nothing of it is tried again in this process. */
static void gives_the_library_up(void **state)
{
    (void)state;
    set_up_in_folder(2 * MIB);
    for (int i = 0; i < 3; i++) {
        struct hipio_request request = move(HIPIO_READ, 0, 0, 2 * MIB);
        expect(&request, 0, 2 * MIB);
        reopen();
    }
    expect_bytes("cufile", 0, 6 * MIB, 1);
    assert_int_equal(calls(), 0);
    tear_down_in_folder(false);
}

/* {what call n answers, the reason it counts as, whether the file is given up at once} */
static const struct {
    const char *rule;
    int reason;
    bool for_good;
} answers[] = {
    {"5001", EOPNOTSUPP, true},    {"5007", EOPNOTSUPP, true},     {"5008", EOPNOTSUPP, true},
    {"5009", EOPNOTSUPP, true},    {"5010", EOPNOTSUPP, true},     {"5012", EINVAL, false},
    {"5013", EINVAL, false},       {"5014", EINVAL, false},        {"5015", EINVAL, false},
    {"5018", EOPNOTSUPP, true},    {"5019", EOPNOTSUPP, true},     {"5020", EOPNOTSUPP, true},
    {"5022", EINVAL, false},       {"5025", EOPNOTSUPP, true},     {"5027", EOPNOTSUPP, true},
    {"5030", EOPNOTSUPP, true},    {"5033", EOPNOTSUPP, true},     {"5034", EOPNOTSUPP, true},
    {"5036", ENOMEM, false},       {"5038", EOPNOTSUPP, true},     {"5043", ENOMEM, false},
    {"999", EOPNOTSUPP, true},     {"errnoEINVAL", EINVAL, false}, {"errnoENODEV", ENODEV, true},
    {"errnoENOTTY", ENOTTY, true},
};

#define ANSWERS (sizeof answers / sizeof answers[0])

static void stages_whatever_is_refused(void **state)
{
    char rules[2048] = "";

    (void)state;
    for (size_t i = 0; i < ANSWERS; i++) {
        const size_t used = strlen(rules);
        snprintf(rules + used, sizeof rules - used, "cuFileRead:%zu=%s;", i + 1, answers[i].rule);
    }
    setenv("HIPSIM_FAIL", rules, 1);
    set_up_in_folder(MIB);
    for (size_t i = 0; i < ANSWERS; i++) {
        print_message("answer %s\n", answers[i].rule);
        hipio_stats_reset();
        struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
        expect(&request, 0, MIB);
        expect_bytes("cufile", 0, MIB, 1);
        assert_int_equal(hipio_stats_fallbacks_by_reason(-answers[i].reason), 1);
        assert_int_equal(hipio_stats_get(HIPIO_COUNT_given_up), answers[i].for_good);
        assert_int_equal(calls(), i + 1);
        reopen();
    }
    tear_down_in_folder(false);
}

static void reports_what_storage_says(void **state)
{
    (void)state;
    set_up_in_folder(MIB);
    struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
    expect(&request, -EIO, 0);
    assert_non_null(strstr(request.text, "rig: cuFile read"));
    assert_non_null(strstr(request.text, strerror(EIO)));
    request = move(HIPIO_WRITE, 0, 0, MIB);
    assert_int_equal(request.status, -ENOSPC);
    assert_int_equal(request.done, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), 0);
    tear_down_in_folder(false);
}

static void continues_short_calls(void **state)
{
    (void)state;
    set_up_in_folder(MIB);
    struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
    expect(&request, 0, MIB);
    expect_bytes("cufile", MIB, 0, 0);
    assert_int_equal(calls(), 16);
    tear_down_in_folder(false);
}

/* Releases that are known to spin are not opened where they would. */
static void does_not_wait_for_ever(void **state)
{
    (void)state;
    set_up_in_folder(MIB);
    if (has_nvidia_fs() || access("/proc/modules", R_OK) == 0)
        exit(77);
    struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
    expect(&request, 0, MIB);
    expect_bytes("cufile", 0, MIB, 1);
    tear_down_in_folder(false);
}

/* R90: functions are missing. Run by CTest with an LD_LIBRARY_PATH of its own. */
static void stays_away_from_a_broken_library(void **state)
{
    (void)state;
    set_up_in_folder(MIB);
    struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
    expect(&request, 0, MIB);
    assert_true(is_loaded());
    expect_bytes("cufile", 0, MIB, 1);
    tear_down_in_folder(false);
}

static void does_without_the_library(void **state)
{
    (void)state;
    set_up_in_folder(MIB);
    for (int i = 0; i < 2; i++) {
        struct hipio_request request = move(HIPIO_READ, 0, 0, MIB);
        expect(&request, 0, MIB);
    }
    if (is_loaded())
        exit(77);
    expect_bytes("cufile", 0, 2 * MIB, 1);
    tear_down_in_folder(false);
}

/* With whatever libcufile and storage this machine has, the data are right, at any alignment, and
 * no log is left. Who moved them is told. */
static void works_with_what_is_here(void **state)
{
    const void *context;

    (void)state;
    set_up_in_folder(4 * MIB);
    context = app_current();
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++)
        for (int shift = 0; shift < 2; shift++) {
            struct hipio_request request =
                move(op, 100 * (uint64_t)shift, 100 * shift, 2 * MIB + 77 * (uint64_t)shift);
            expect(&request, 0, 2 * MIB + 77 * (uint64_t)shift);
            restore();
        }
    print_message("cuFile moved %llu bytes, staging %llu\n", (unsigned long long)moved_by("cufile"),
                  (unsigned long long)moved_by("bounce"));
    assert_ptr_equal(app_current(), context);
    assert_int_equal(moved_by("cufile") + moved_by("bounce"), 8 * MIB + 2 * 77);
    tear_down_in_folder(false);
}

#define FORCE "HIPIO_CUFILE=force "

int main(int argc, char **argv)
{
    const struct one_test tests[] = {
        {"moves_and_leaves_no_trace", FORCE, moves_and_leaves_no_trace},
        {"splits_unaligned_requests", FORCE, splits_unaligned_requests},
        {"works_without_a_current_context", FORCE, works_without_a_current_context},
        {"leaves_a_user_s_log_alone", FORCE, leaves_a_user_s_log_alone},
        {"leaves_a_configured_folder_alone", FORCE, leaves_a_configured_folder_alone},
        {"knows_a_comment_in_the_configuration", FORCE, knows_a_comment_in_the_configuration},
        {"is_not_loaded_unasked", NULL, is_not_loaded_unasked},
        {"can_be_forced", FORCE, can_be_forced},
        {"stages_a_file_that_is_not_taken", FORCE "HIPSIM_CUFILE=refuse",
         stages_a_file_that_is_not_taken},
        {"gives_the_library_up", FORCE "HIPSIM_FAIL=cuFileDriverOpen:*=5005", gives_the_library_up},
        {"stages_whatever_is_refused", FORCE, stages_whatever_is_refused},
        {"reports_what_storage_says",
         FORCE "HIPSIM_FAIL=cuFileRead:1=errnoEIO;cuFileWrite:1=errnoENOSPC",
         reports_what_storage_says},
        {"continues_short_calls", FORCE "HIPSIM_FAIL=cuFileRead:*=short/65536",
         continues_short_calls},
        {"does_not_wait_for_ever", FORCE "HIPSIM_CUFILE_VERSION=1200", does_not_wait_for_ever},
        {"works_with_what_is_here", FORCE, works_with_what_is_here},
        {"stays_away_from_a_broken_library", FORCE, stays_away_from_a_broken_library},
        {"does_without_the_library", FORCE, does_without_the_library},
    };
    /* The last two are for the runs that name them. */
    const size_t named = argc > 1 ? 0 : 2;
    return one_by_one(argc, argv, tests, sizeof tests / sizeof tests[0] - named);
}
