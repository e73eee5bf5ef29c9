/* SPDX-License-Identifier: MIT */
/*
 * Uring: transfers through io_uring, and without it: refused from the start, refused once a ring is
 * made, and cut short in every way. The refusals are those of containers (seccomp).
 */
#include "denial.h"
#include "one_by_one.h"
#include "pattern.h"
#include "rig.h"
#include "run_check.h"
#include "stats.h"
#include "status.h"
#include "storage/uring.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define SEED 5
#define LENGTH (2 * MIB)

static int move(int fd, enum hipio_op op, void *memory, int64_t offset, uint64_t length,
                unsigned depth, uint64_t *moved)
{
    const struct hipio_uring_trip trip = {fd, op, memory, offset, length, depth, false};

    return hipio_uring_move(&trip, moved);
}

static bool is_there(void)
{
    struct rig rig;
    char byte;
    uint64_t moved;

    rig_open(&rig, RIG_READ_WRITE, SEED, 100);
    const int status = move(rig.fd, HIPIO_READ, &byte, 0, 1, 1, &moved);
    rig_close(&rig);
    return status == 0;
}

static void moves_any_length_at_any_depth(void **state)
{
    static const uint64_t lengths[] = {
        1, 4096, HIPIO_URING_BLOCK - 1, HIPIO_URING_BLOCK, HIPIO_URING_BLOCK + 1, 3 * MIB + 77};
    static const unsigned depths[] = {0, 1, 2, 3, 16, 256, 100000};
    unsigned char *bytes = malloc(4 * MIB);
    struct rig rig;
    uint64_t moved;

    (void)state;
    if (!is_there())
        exit(77);
    rig_open(&rig, RIG_READ_WRITE, SEED, 4 * MIB);
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
            const uint64_t n = lengths[l];
            memset(bytes, 0xA5, 4 * MIB);
            assert_int_equal(move(rig.fd, HIPIO_READ, bytes, 33, n, depths[d], &moved), 0);
            assert_int_equal(moved, n);
            assert_int_equal(pattern_check(bytes, SEED, 33, n), n);
            assert_int_equal(bytes[n], 0xA5);
            pattern_fill(bytes, SEED + 1, 0, n);
            assert_int_equal(move(rig.fd, HIPIO_WRITE, bytes, 33, n, depths[d], &moved), 0);
            assert_int_equal(moved, n);
            memset(bytes, 0, n);
            assert_int_equal(pread(rig.fd, bytes, n, 33), n);
            assert_int_equal(pattern_check(bytes, SEED + 1, 0, n), n);
            pattern_fill(bytes, SEED, 33, n);
            assert_int_equal(pwrite(rig.fd, bytes, n, 33), n);
        }
    rig_close(&rig);
    free(bytes);
    hipio_uring_shutdown();
}

/* What ends early is for an ordinary call to explain; what moved before it counts. */
static void stops_at_the_end_of_the_file(void **state)
{
    unsigned char *bytes = malloc(4 * MIB);
    struct rig rig;
    uint64_t moved;

    (void)state;
    if (!is_there())
        exit(77);
    rig_open(&rig, RIG_READ_WRITE, SEED, 2 * HIPIO_URING_BLOCK + 10);
    assert_int_equal(move(rig.fd, HIPIO_READ, bytes, 0, 4 * MIB, 16, &moved), 0);
    assert_int_equal(moved, 2 * HIPIO_URING_BLOCK + 10);
    assert_int_equal(pattern_check(bytes, SEED, 0, moved), moved);
    assert_int_equal(move(rig.fd, HIPIO_READ, bytes, MIB, MIB, 16, &moved), 0);
    assert_int_equal(moved, 0);
    rig_close(&rig);
    free(bytes);
}

static void reports_errors_with_what_moved(void **state)
{
    struct rlimit limit = {MIB, RLIM_INFINITY};
    unsigned char *bytes = calloc(1, 4 * MIB);
    struct rig rig;
    uint64_t moved;

    (void)state;
    if (!is_there())
        exit(77);
    rig_open(&rig, RIG_READ_WRITE, SEED, 0);
    assert_int_equal(move(-1, HIPIO_WRITE, bytes, 0, MIB, 4, &moved), -EBADF);
    assert_int_equal(moved, 0);
    assert_int_equal(move(rig.fd, HIPIO_WRITE, (void *)4096, 0, MIB, 4, &moved), -EFAULT);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(move(rig.fd, HIPIO_WRITE, bytes, 0, 3 * MIB, 4, &moved), -EFBIG);
    assert_int_equal(moved, MIB);
    rig_close(&rig);
    free(bytes);
}

/* R87: a request reads and writes right, with one notice, whatever io_uring says. */
static void works_without(const char *reason)
{
    unsigned char *bytes = aligned_alloc(4096, LENGTH);
    FILE *messages = catch_messages();
    struct hipio_layout *run = rig_run(0, LENGTH);
    struct rig rig;

    rig_open(&rig, RIG_READ_WRITE, SEED, LENGTH);
    rig_set(&rig, "uring", "force");
    for (int round = 0; round < 3; round++) {
        memset(bytes, 0xA5, LENGTH);
        struct hipio_request request = rig_request(&rig, HIPIO_READ, bytes, &rig_host, run, run);
        assert_int_equal(hipio_request_run(&request), 0);
        assert_int_equal(pattern_check(bytes, SEED, 0, LENGTH), LENGTH);
        request = rig_request(&rig, HIPIO_WRITE, bytes, &rig_host, run, run);
        assert_int_equal(hipio_request_run(&request), 0);
        const struct run whole = {0, 0, LENGTH};
        run_check_write(&whole, rig.fd, LENGTH, SEED, SEED);
    }
    assert_int_equal(count_messages(messages, "io_uring is refused here"), 1);
    assert_int_equal(count_messages(messages, reason), 1);
    hipio_layout_release(run);
    rig_close(&rig);
    free(bytes);
}

static void does_without_when_it_is_forbidden(void **state)
{
    (void)state;
    deny_call(SYS_io_uring_setup, EPERM);
    works_without(strerror(EPERM));
}

static void does_without_when_there_is_none(void **state)
{
    (void)state;
    deny_call(SYS_io_uring_setup, ENOSYS);
    works_without(strerror(ENOSYS));
}

static void says_what_memory_is_missing(void **state)
{
    (void)state;
    deny_call(SYS_io_uring_setup, ENOMEM);
    works_without("ulimit -l");
}

static void does_without_once_it_is_forbidden(void **state)
{
    (void)state;
    if (!is_there())
        exit(77);
    deny_call(SYS_io_uring_enter, EPERM);
    works_without(strerror(EPERM));
}

/* The ban comes between two transfers: what was prepared for the second was never begun. */
static void survives_a_late_ban(void **state)
{
    unsigned char *bytes = malloc(LENGTH);
    struct rig rig;
    uint64_t moved;

    (void)state;
    if (!is_there())
        exit(77);
    rig_open(&rig, RIG_READ_WRITE, SEED, LENGTH);
    assert_int_equal(move(rig.fd, HIPIO_READ, bytes, 0, LENGTH, 8, &moved), 0);
    assert_int_equal(moved, LENGTH);
    deny_call(SYS_io_uring_enter, EPERM);
    assert_int_equal(move(rig.fd, HIPIO_READ, bytes, 0, LENGTH, 8, &moved), 0);
    assert_true(moved < LENGTH);
    assert_int_equal(move(rig.fd, HIPIO_READ, bytes, 0, LENGTH, 8, &moved), -ENOTSUP);
    rig_close(&rig);
    free(bytes);
}

static void *move_much(void *rig)
{
    unsigned char *bytes = malloc(2 * MIB);
    uint64_t moved;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(move(((struct rig *)rig)->fd, HIPIO_READ, bytes, 7, 2 * MIB,
                              1 + (unsigned)i % 5, &moved),
                         0);
        assert_int_equal(pattern_check(bytes, SEED, 7, moved), 2 * MIB);
    }
    free(bytes);
    return NULL;
}

static void lends_rings_to_threads(void **state)
{
    pthread_t threads[4];
    struct rig rig;

    (void)state;
    if (!is_there())
        exit(77);
    rig_open(&rig, RIG_READ_WRITE, SEED, 2 * MIB + 7);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, move_much, &rig), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    hipio_uring_shutdown();
    rig_close(&rig);
}

int main(int argc, char **argv)
{
    const struct one_test tests[] = {
        {"moves_any_length_at_any_depth", NULL, moves_any_length_at_any_depth},
        {"stops_at_the_end_of_the_file", NULL, stops_at_the_end_of_the_file},
        {"reports_errors_with_what_moved", NULL, reports_errors_with_what_moved},
        {"does_without_when_it_is_forbidden", NULL, does_without_when_it_is_forbidden},
        {"does_without_when_there_is_none", NULL, does_without_when_there_is_none},
        {"says_what_memory_is_missing", NULL, says_what_memory_is_missing},
        {"does_without_once_it_is_forbidden", NULL, does_without_once_it_is_forbidden},
        {"survives_a_late_ban", NULL, survives_a_late_ban},
        {"lends_rings_to_threads", NULL, lends_rings_to_threads},
    };
    return one_by_one(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
