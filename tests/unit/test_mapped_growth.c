/* SPDX-License-Identifier: MIT */
/*
 * Storage, mapped, beside a process that makes the file longer. The kernel tells the new size
 * before it has cleared the rest of the page where the file ended until then (seen on Linux 6.18,
 * ext4). What was stored there through a mapping in between is lost, unless the writer has made
 * a write call first, which waits for the other's to end.
 */
#include "scratch.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

enum { BEFORE = 9000, PAGE_END = 12288, AFTER = 30000, AT = 9100, BYTES = 500 };

static const char *folder;
static struct scratch s;

/* ---- An extending write of another process, stopped in the middle ---- */

/* The next question for the size is answered with AFTER; what is left to do comes with the next
 * write call of anybody. */
static bool extends, unfinished;

int __real_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);
ssize_t __real_pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t at);

static void finish(void)
{
    static const char zeros[PAGE_END - BEFORE];

    if (unfinished)
        assert_int_equal(__real_pwrite(s.fd, zeros, sizeof zeros, BEFORE), sizeof zeros);
    unfinished = false;
}

int __wrap_fstat(int fd, struct stat *status)
{
    if (extends) {
        extends = false;
        unfinished = true;
        assert_int_equal(ftruncate(s.fd, AFTER), 0);
    }
    return __real_fstat(fd, status);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    finish();
    return __real_pwrite(fd, bytes, n, at);
}

ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
    finish();
    return __real_pwritev(fd, iov, n, at);
}

/* ---- Tests ---- */

static int open_it(void **state)
{
    (void)state;
    extends = unfinished = false;
    scratch_open(&s, folder, AFTER, BEFORE);
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    scratch_close(&s);
    return 0;
}

static struct hipio_layout *run_at(int64_t offset)
{
    struct hipio_layout *layout;

    assert_int_equal(hipio_layout_run(offset, BYTES, &layout), 0);
    return layout;
}

/* Writes below the new size while the other is in the middle. */
static void write_beside(int64_t offset)
{
    struct hipio_layout *layout = run_at(offset);

    extends = true;
    s.ends = AFTER;
    scratch_write(&s, layout, BYTES);
    assert_false(extends);
    finish();
    scratch_compare(&s);
    hipio_layout_release(layout);
}

static void the_first_write_waits(void **state)
{
    (void)state;
    write_beside(AT);
}

/* Also when the file has been written before, at another size. */
static void each_new_size_is_waited_for(void **state)
{
    (void)state;
    struct hipio_layout *layout = run_at(0);

    scratch_write(&s, layout, BYTES);
    scratch_write(&s, layout, BYTES);
    hipio_layout_release(layout);
    write_beside(AT);
}

static void a_vector_waits(void **state)
{
    (void)state;
    unsigned char bytes[BYTES];
    struct iovec iov[2] = {{bytes, 100}, {bytes + 100, BYTES - 100}};
    uint64_t moved;

    memset(bytes, 0x44, sizeof bytes);
    memcpy(s.model + AT, bytes, sizeof bytes);
    extends = true;
    s.ends = AFTER;
    assert_int_equal(s.storage->vector(s.file, HIPIO_WRITE, iov, 2, AT, &moved), 0);
    assert_int_equal(moved, BYTES);
    finish();
    scratch_compare(&s);
}

/* A file that was cut and has grown to the size it had is another size too. */
static void a_size_that_comes_back_is_new(void **state)
{
    (void)state;
    struct hipio_layout *layout = run_at(AFTER - BYTES);

    scratch_write(&s, layout, BYTES);
    hipio_layout_release(layout);
    assert_int_equal(ftruncate(s.fd, BEFORE), 0);
    hipio_file_resized(s.file);
    memset(s.model + BEFORE, 0, AFTER - BEFORE);
    write_beside(AT);
}

#define on_file(f) cmocka_unit_test_setup_teardown(f, open_it, close_it)

static const struct CMUnitTest tests[] = {
    on_file(the_first_write_waits),
    on_file(each_new_size_is_waited_for),
    on_file(a_vector_waits),
    on_file(a_size_that_comes_back_is_new),
};

int main(void)
{
    static const char *const folders[] = {"/tmp", "/dev/shm"};
    int failed = 0, ran = 0;

    for (int i = 0; i < 2; i++) {
        if (access(folders[i], W_OK) != 0)
            continue;
        folder = folders[i];
        print_message("in %s\n", folder);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
        ran++;
    }
    return failed ? failed : ran ? 0 : 77;
}
