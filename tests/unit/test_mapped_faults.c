/* SPDX-License-Identifier: MIT */
/*
 * Storage, mapped, when pages can't be had: files truncated in the middle of a copy, full disks,
 * size limits; and the SIGBUS that is not ours.
 */
#include "mapping.h"
#include "scratch.h"
#include "sigbus.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES 3000000
#define KEPT 700001 /* what a truncation leaves */

static const char *folder;
static struct scratch s;

/* ---- Somebody truncates the file as soon as its size was told ---- */

static int64_t truncate_to = -1;

int __real_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);

int __wrap_fstat(int fd, struct stat *status)
{
    const int answer = __real_fstat(fd, status);

    if (truncate_to >= 0) {
        assert_int_equal(ftruncate(fd, truncate_to), 0);
        truncate_to = -1;
    }
    return answer;
}

static int open_it(void **state)
{
    (void)state;
    hipio_stats_reset();
    truncate_to = -1;
    scratch_open(&s, folder, BYTES, BYTES);
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

static void a_read_meets_the_new_end(void **state)
{
    (void)state;
    struct hipio_layout *layout = scratch_vector(10000, 200, 12000);
    const int64_t ends[] = {KEPT, 0, 5, 4096, 12000 * 30 + 10000, BYTES - 1};

    for (int i = 0; i < 6; i++) {
        s.overtaken = false;
        scratch_read(&s, layout, 2000000); /* pages are mapped */
        s.overtaken = true;
        s.ends = (size_t)ends[i];
        truncate_to = ends[i];
        scratch_read(&s, layout, 2000000);
        assert_int_equal(truncate_to, -1);
        s.ends = BYTES;
        assert_int_equal(pwrite(s.fd, s.model, BYTES, 0), BYTES);
    }
    assert_true(hipio_stats_get(HIPIO_COUNT_mapping_faults) >= 4);
    hipio_layout_release(layout);
}

static void a_write_makes_the_file_again(void **state)
{
    (void)state;
    const int64_t ends[] = {KEPT, 0, 5, 4096};

    for (int i = 0; i < 4; i++) {
        struct hipio_layout *layout = scratch_vector(10000, 200, 12000);
        scratch_read(&s, layout, 2000000);
        memset(s.model + ends[i], 0, (size_t)(BYTES - ends[i]));
        s.ends = (size_t)ends[i];
        truncate_to = ends[i];
        scratch_write(&s, layout, 2000000);
        scratch_compare(&s);
        s.ends = BYTES;
        assert_int_equal(ftruncate(s.fd, BYTES), 0);
        hipio_layout_release(layout);
    }
    assert_true(hipio_stats_get(HIPIO_COUNT_mapping_faults) >= 4);
}

static void a_vector_makes_the_file_again(void **state)
{
    (void)state;
    unsigned char *bytes = malloc(2000000);
    const struct iovec iov[] = {{bytes, 600000}, {bytes + 600000, 1400000}};
    uint64_t moved;

    memset(bytes, 0x44, 2000000);
    truncate_to = KEPT;
    assert_int_equal(s.storage->vector(s.file, HIPIO_WRITE, iov, 2, 100, &moved), 0);
    assert_int_equal(moved, 2000000);
    memset(s.model + 100, 0x44, 2000000);
    s.ends = 2000100;
    scratch_compare(&s);
    free(bytes);
}

/* In a thread that blocks the signal, as the engine's threads do. */
static void a_blocked_signal_does_not_matter(void **state)
{
    (void)state;
    sigset_t all, before, after;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    a_read_meets_the_new_end(NULL);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    for (int i = 1; i < 32; i++)
        assert_int_equal(sigismember(&after, i), i != SIGKILL && i != SIGSTOP);
}

/* Without any timing of ours: one cuts and mends, others read and write. */
static atomic_bool over;

static void *cut(void *arg)
{
    const int fd = *(int *)arg;

    for (int i = 0; !atomic_load(&over); i++)
        if (ftruncate(fd, i % 2 ? BYTES : 1000 + i * 7919 % (BYTES - 1000)))
            abort();
    return NULL;
}

/* Number `arg` of the workers, each on bytes of its own. */
static void *work(void *arg)
{
    const int64_t base = (int64_t)arg * (BYTES / 3);
    struct hipio_layout *layout = scratch_vector(30000, 27, 36000);
    unsigned char *bytes = malloc(810000);
    long failures = 0;

    memset(bytes, 0x55, 810000);
    for (int i = 0; i < 150; i++) {
        struct hipio_cursor cursor;
        uint64_t moved = 0;
        const enum hipio_op op = arg || i % 2 ? HIPIO_WRITE : HIPIO_READ;
        hipio_cursor_init(&cursor, layout, 0);
        int status = s.storage->packed(s.file, op, bytes, &cursor, base, 810000, &moved);
        failures += status != 0 || (op == HIPIO_WRITE && moved != 810000);
    }
    free(bytes);
    hipio_layout_release(layout);
    return (void *)failures;
}

static void files_may_shrink_at_any_time(void **state)
{
    (void)state;
    pthread_t cutter, worker[3];
    void *failures;

    atomic_store(&over, false);
    assert_int_equal(pthread_create(&cutter, NULL, cut, &s.fd), 0);
    for (long i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&worker[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(worker[i], &failures), 0);
        assert_null(failures);
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(cutter, NULL), 0);
}

/* ---- Limits ---- */

static void the_size_limit_is_an_error(void **state)
{
    (void)state;
    const rlim_t most = BYTES + 100000;
    struct rlimit before;
    struct hipio_layout *layout = scratch_vector(10000, 300, 12000);
    unsigned char *bytes = calloc(300, 10000);
    uint64_t moved = 0;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){most, before.rlim_max}), 0);
    int status = scratch_move(&s, HIPIO_WRITE, layout, bytes, 3000000, &moved);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, -EFBIG);
    assert_int_equal(moved, hipio_layout_bytes_below(layout, 0, 3000000, (int64_t)most));
    assert_int_equal(hipio_file_size(s.file), most);
    signal(SIGXFSZ, SIG_DFL);
    free(bytes);
    hipio_layout_release(layout);
}

/* On a file system of 2 MiB that is mounted for this: ENOSPC with an exact count, growing as well
 * as filling holes. */
static void fill_disk(const char *where, bool hole)
{
    struct hipio_layout *layout = scratch_vector(10000, 800, 12000);
    unsigned char *bytes = malloc(8000000);
    unsigned char *back = malloc(8000000);
    struct hipio_cursor cursor;
    uint64_t moved = 0;
    uint64_t got = 0;

    scratch_open(&s, where, 1, 0);
    for (int i = 0; i < 8000000; i++)
        bytes[i] = (unsigned char)(i / 10000 * 7 + i);
    if (hole)
        assert_int_equal(ftruncate(s.fd, 10000000), 0);
    assert_int_equal(scratch_move(&s, HIPIO_WRITE, layout, bytes, 8000000, &moved), -ENOSPC);
    assert_non_null(strstr(hipio_status_text(), "No space left on device"));
    assert_true(moved > 100000 && moved < 2500000);
    hipio_cursor_init(&cursor, layout, 0);
    assert_int_equal(
        hipio_storage_buffered.packed(s.file, HIPIO_READ, back, &cursor, 0, moved, &got), 0);
    assert_int_equal(got, moved);
    assert_memory_equal(bytes, back, moved);
    assert_true(hipio_stats_get(HIPIO_COUNT_mapped_written) > 0);
    scratch_close(&s);
    free(bytes);
    free(back);
    hipio_layout_release(layout);
}

static void with_small_disk(const char *prepare)
{
    char name[] = "/tmp/hipio-test-mount-XXXXXX";
    char command[512];

    assert_non_null(mkdtemp(name));
    snprintf(command, sizeof command, prepare, name, name);
    if (system(command) != 0) {
        rmdir(name);
        skip();
    }
    hipio_stats_reset();
    fill_disk(name, false);
    fill_disk(name, true);
    umount2(name, MNT_DETACH);
    rmdir(name);
}

static void a_full_memory_disk_is_an_error(void **state)
{
    (void)state;
    with_small_disk("mount -t tmpfs -o size=2m none %s 2>/dev/null");
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    with_small_disk("(f=$(mktemp) && truncate -s 3m $f && mkfs.ext4 -q -m 0 -O ^has_journal $f && "
                    "mount -o loop $f %s; r=$?; rm -f $f; exit $r) >/dev/null 2>&1");
}

/* ---- The application's own SIGBUS ---- */

static sigjmp_buf landing;
static void *volatile fault_address;
static volatile int signals;

static void catch_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    fault_address = info->si_addr;
    signals++;
    if (info->si_code > 0)
        siglongjmp(landing, 1);
}

/* A page of a file that has none. */
static char *bad_page(void)
{
    char name[] = "/tmp/hipio-test-bad-XXXXXX";
    const int fd = mkstemp(name);
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

    unlink(name);
    close(fd);
    return page;
}

static void other_faults_are_the_applications(void **state)
{
    (void)state;
    struct sigaction own = {.sa_sigaction = catch_fault, .sa_flags = SA_SIGINFO};
    struct sigaction during, after, before;
    struct hipio_sigbus guard;
    char *volatile page = bad_page();

    sigaddset(&own.sa_mask, SIGUSR1);
    assert_int_equal(sigaction(SIGBUS, &own, &before), 0);
    for (volatile int i = 0; i < 3; i++) {
        signals = 0;
        assert_int_equal(hipio_sigbus_enter(&guard), 0);
        assert_int_equal(sigaction(SIGBUS, NULL, &during), 0);
        assert_ptr_not_equal(during.sa_sigaction, catch_fault);
        if (sigsetjmp(landing, 1) == 0)
            (void)*(volatile char *)page;
        assert_int_equal(signals, 1);
        assert_ptr_equal(fault_address, page);
        kill(getpid(), SIGBUS);
        assert_int_equal(signals, 2);
        char byte;
        assert_int_equal(hipio_sigbus_copy(&guard, &byte, page, 1, page), -EFAULT);
        assert_int_equal(signals, 2);
        hipio_sigbus_leave(&guard);
        assert_int_equal(sigaction(SIGBUS, NULL, &after), 0);
        assert_ptr_equal(after.sa_sigaction, catch_fault);
        assert_int_equal(after.sa_flags & ~0x04000000, own.sa_flags);
        assert_true(sigismember(&after.sa_mask, SIGUSR1));
    }
    sigaction(SIGBUS, &before, NULL);
    munmap(page, 4096);
}

/* What a child process comes to. */
static int outcome(void (*act)(void))
{
    int code = 0;
    const pid_t child = fork();

    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    return code;
}

static void fault_inside(void)
{
    struct hipio_sigbus guard;

    signal(SIGBUS, SIG_DFL);
    if (hipio_sigbus_enter(&guard) == 0)
        (void)*(volatile char *)bad_page();
}

static void signal_inside(void)
{
    struct hipio_sigbus guard;

    signal(SIGBUS, SIG_DFL);
    if (hipio_sigbus_enter(&guard) == 0)
        kill(getpid(), SIGBUS);
}

static void ignored_inside(void)
{
    struct hipio_sigbus guard;

    signal(SIGBUS, SIG_IGN);
    if (hipio_sigbus_enter(&guard) == 0)
        kill(getpid(), SIGBUS);
    _exit(5);
}

static void without_a_handler_the_process_ends(void **state)
{
    (void)state;
    assert_int_equal(outcome(fault_inside), SIGBUS);
    assert_int_equal(outcome(signal_inside), SIGBUS);
    assert_int_equal(outcome(ignored_inside), 5 << 8);
}

/* The application takes the signal over in the middle: it keeps it, and data still arrive. */
static void take_over(void)
{
    struct sigaction own = {.sa_sigaction = catch_fault, .sa_flags = SA_SIGINFO};
    struct sigaction now;
    struct hipio_sigbus guard;
    struct hipio_layout *layout = scratch_vector(10000, 100, 12000);

    if (hipio_sigbus_enter(&guard) != 0)
        _exit(1);
    sigaction(SIGBUS, &own, NULL);
    hipio_sigbus_leave(&guard);
    if (hipio_sigbus_enter(&guard) != -EBUSY)
        _exit(2);
    sigaction(SIGBUS, NULL, &now);
    if (now.sa_sigaction != catch_fault)
        _exit(3);
    hipio_stats_reset();
    scratch_write(&s, layout, 1000000);
    scratch_compare(&s);
    if (hipio_stats_get(HIPIO_COUNT_mapped_written) != 0)
        _exit(4);
}

static void a_handler_that_comes_later_stays(void **state)
{
    (void)state;
    assert_int_equal(outcome(take_over), 0);
}

#define on_file(f) cmocka_unit_test_setup_teardown(f, open_it, close_it)

static const struct CMUnitTest tests[] = {
    on_file(a_read_meets_the_new_end),
    on_file(a_write_makes_the_file_again),
    on_file(a_vector_makes_the_file_again),
    on_file(a_blocked_signal_does_not_matter),
    on_file(files_may_shrink_at_any_time),
    on_file(the_size_limit_is_an_error),
    cmocka_unit_test(a_full_memory_disk_is_an_error),
    cmocka_unit_test(a_full_disk_is_an_error),
    cmocka_unit_test(other_faults_are_the_applications),
    cmocka_unit_test(without_a_handler_the_process_ends),
    on_file(a_handler_that_comes_later_stays),
};

static bool is_mappable(const char *where)
{
    scratch_open(&s, where, 1, 1);
    const bool is = hipio_mapping_allows(s.file, HIPIO_WRITE);
    scratch_close(&s);
    return is;
}

int main(void)
{
    static const char *const folders[] = {"/tmp", "/dev/shm"};
    int failed = 0;
    int ran = 0;

    for (int i = 0; i < 2; i++) {
        if (access(folders[i], W_OK) != 0 || !is_mappable(folders[i])) {
            print_message("%s: no file system that can be mapped\n", folders[i]);
            continue;
        }
        folder = folders[i];
        print_message("in %s\n", folder);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
        ran++;
    }
    return failed ? failed : ran ? 0 : 77;
}
