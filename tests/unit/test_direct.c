/* SPDX-License-Identifier: MIT */
/*
 * Direct: the second descriptor, and that no record lock is ever lost by closing it.
 */
#include "direct.h"
#include "status.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BOTH (HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE)

static int open_temporary(int flags)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | flags, 0600);

    if (fd < 0 && errno == EINVAL)
        skip();
    assert_true(fd >= 0);
    return fd;
}

static struct hipio_file *file_of(int fd, int access)
{
    struct hipio_file *file;

    assert_int_equal(hipio_file_create(fd, "test", access, hipio_tunables_process(), &file), 0);
    return file;
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void opens_the_same_file_with_o_direct(void **state)
{
    const struct hipio_direct *direct, *again;
    struct stat first, second;
    const int before = count_descriptors();
    int fd = open_temporary(0);

    (void)state;
    struct hipio_file *file = file_of(fd, BOTH);
    assert_null(hipio_direct_known(file));
    assert_int_equal(count_descriptors(), before + 1);
    if (hipio_direct_open(file, &direct) != 0) {
        assert_non_null(strstr(hipio_status_text(), "O_DIRECT"));
        skip();
    }
    assert_int_equal(direct->plain, fd);
    assert_int_not_equal(direct->fd, fd);
    assert_true(fcntl(direct->fd, F_GETFL) & O_DIRECT);
    assert_true(fcntl(direct->fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fcntl(direct->fd, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_int_equal(fstat(fd, &first), 0);
    assert_int_equal(fstat(direct->fd, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_true(direct->offset_align > 0 && direct->memory_align > 0);
    assert_false(hipio_file_is_direct(file));
    assert_int_equal(hipio_direct_open(file, &again), 0);
    assert_ptr_equal(again, direct);
    assert_ptr_equal(hipio_direct_known(file), direct);
    hipio_file_destroy(file);
    close(fd);
    assert_int_equal(count_descriptors(), before);
}

static void turns_round_for_a_file_that_is_direct(void **state)
{
    const struct hipio_direct *direct;
    int fd = open_temporary(O_DIRECT);

    (void)state;
    struct hipio_file *file = file_of(fd, BOTH);
    assert_true(hipio_file_is_direct(file));
    assert_int_equal(hipio_direct_open(file, &direct), 0);
    assert_int_equal(direct->fd, fd);
    assert_false(fcntl(direct->plain, F_GETFL) & O_DIRECT);
    hipio_file_destroy(file);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);
}

static void keeps_the_access_of_the_first(void **state)
{
    const struct hipio_direct *direct;
    char path[] = "/tmp/hipio-unit-XXXXXX";
    int made = mkstemp(path), fd = open(path, O_RDONLY);

    (void)state;
    unlink(path);
    struct hipio_file *file = file_of(fd, HIPIO_ACCESS_READ);
    if (hipio_direct_open(file, &direct) == 0)
        assert_int_equal(fcntl(direct->fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    hipio_file_destroy(file);
    close(fd);
    close(made);
}

static void refuses_what_is_no_file(void **state)
{
    const struct hipio_direct *direct;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    struct hipio_file *file = file_of(ends[0], HIPIO_ACCESS_READ);
    assert_int_equal(hipio_direct_open(file, &direct), -EOPNOTSUPP);
    assert_non_null(strstr(hipio_status_text(), "neither a regular file nor a block device"));
    assert_null(hipio_direct_known(file));
    assert_false(hipio_file_is_direct(file));
    hipio_file_destroy(file);
    close(ends[0]);
    close(ends[1]);
}

/* R76 */
static void does_without_when_there_is_none_left(void **state)
{
    const struct hipio_direct *direct;
    struct rlimit limit, none;
    int fd = open_temporary(0);

    (void)state;
    struct hipio_file *file = file_of(fd, BOTH);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(hipio_direct_open(file, &direct), -EOPNOTSUPP);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_non_null(strstr(hipio_status_text(), strerror(EMFILE)));
    /* The answer of a file is for good. */
    assert_int_equal(hipio_direct_open(file, &direct), -EOPNOTSUPP);
    hipio_file_destroy(file);
    close(fd);
}

/* Asks from another process whether this one holds a lock on the file. */
static bool is_locked(int fd)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status) == 1;
}

static void set_lock(int fd, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};

    assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
}

static void drops_no_lock(void **state)
{
    const struct hipio_direct *direct;
    const int before = count_descriptors();
    int fd = open_temporary(0);

    (void)state;
    struct hipio_file *file = file_of(fd, BOTH);
    if (hipio_direct_open(file, &direct) != 0)
        skip();
    set_lock(fd, F_RDLCK);
    hipio_file_destroy(file);
    assert_true(is_locked(fd));
    assert_int_equal(hipio_direct_parked(), 1);
    set_lock(fd, F_UNLCK);
    assert_int_equal(hipio_direct_parked(), 0);
    assert_int_equal(count_descriptors(), before + 1);
    close(fd);
}

/* What can't be closed is bounded: then files go without, and come back when the locks are gone. */
static void bounds_what_it_can_t_close(void **state)
{
    const struct hipio_direct *direct;
    const int before = count_descriptors();
    int fd = open_temporary(0), refused = 0;

    (void)state;
    set_lock(fd, F_WRLCK);
    for (int i = 0; i < 100; i++) {
        struct hipio_file *file = file_of(fd, BOTH);
        refused += hipio_direct_open(file, &direct) != 0;
        hipio_file_destroy(file);
    }
    if (refused == 100)
        skip();
    assert_int_equal(hipio_direct_parked(), 64);
    assert_int_equal(refused, 36);
    assert_true(is_locked(fd));
    set_lock(fd, F_UNLCK);
    struct hipio_file *file = file_of(fd, BOTH);
    assert_int_equal(hipio_direct_open(file, &direct), 0);
    assert_int_equal(hipio_direct_parked(), 0);
    hipio_file_destroy(file);
    close(fd);
    assert_int_equal(count_descriptors(), before);
}

/* A library closes our descriptor, and its number is somebody else's by now. */
static void closes_no_stranger(void **state)
{
    const struct hipio_direct *direct;
    int fd = open_temporary(0);

    (void)state;
    struct hipio_file *file = file_of(fd, BOTH);
    if (hipio_direct_open(file, &direct) != 0)
        skip();
    const int number = direct->fd;
    close(number);
    int other = open("/dev/null", O_RDONLY);
    assert_int_equal(dup2(other, number), number);
    hipio_file_destroy(file);
    assert_true(fcntl(number, F_GETFD) >= 0);
    if (other != number)
        close(other);
    close(number);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_the_same_file_with_o_direct),
        cmocka_unit_test(turns_round_for_a_file_that_is_direct),
        cmocka_unit_test(keeps_the_access_of_the_first),
        cmocka_unit_test(refuses_what_is_no_file),
        cmocka_unit_test(does_without_when_there_is_none_left),
        cmocka_unit_test(drops_no_lock),
        cmocka_unit_test(bounds_what_it_can_t_close),
        cmocka_unit_test(closes_no_stranger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
