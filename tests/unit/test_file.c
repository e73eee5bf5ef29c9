/* SPDX-License-Identifier: MIT */
/*
 * File: facts of a descriptor, settings that change under way, and who waits for whom at the end.
 */
#include "file.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What fstatfs says (linked with --wrap); 0: the truth. */
static long pretended_magic;
int __real_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out);

int __wrap_fstatfs(int fd, struct statfs *out)
{
    const int result = __real_fstatfs(fd, out);

    if (pretended_magic)
        out->f_type = (__typeof__(out->f_type))pretended_magic;
    return result;
}

static int fd;

static int open_file(void **state)
{
    (void)state;
    char name[] = "/tmp/hipio-test-file-XXXXXX";

    fd = mkstemp(name);
    unlink(name);
    pretended_magic = 0;
    return fd < 0;
}

static int close_file(void **state)
{
    (void)state;
    return close(fd);
}

static struct hipio_file *create(int access)
{
    struct hipio_file *file = NULL;

    assert_int_equal(hipio_file_create(fd, "a/name", access, hipio_tunables_process(), &file), 0);
    return file;
}

static void facts_are_told(void **state)
{
    (void)state;
    struct hipio_file *file = create(HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE);

    assert_int_equal(hipio_file_descriptor(file), fd);
    assert_string_equal(hipio_file_name(file), "a/name");
    assert_int_equal(hipio_file_access(file), HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE);
    assert_int_equal(hipio_file_size(file), 0);
    assert_int_equal(ftruncate(fd, (off_t)5 << 30), 0);
    assert_int_equal(hipio_file_size(file), INT64_C(5) << 30);
    hipio_file_destroy(file);
    assert_int_not_equal(fcntl(fd, F_GETFL), -1);
    hipio_file_destroy(NULL);
}

static void file_systems_are_known(void **state)
{
    (void)state;
    const struct {
        long magic;
        const char *name;
        bool shared;
    } cases[] = {
        {0xef53, "ext4", false},
        {0x01021994, "tmpfs", false},
        {0x58465342, "xfs", false},
        {0x794c7630, "overlay", false},
        {0x9123683e, "btrfs", false},
        {0x6969, "nfs", true},
        {0x0bd00bd0, "lustre", true},
        {0x47504653, "gpfs", true},
        {0x19830326, "beegfs", true},
        {0x65735546, "fuse", true},
        {0xff534d42, "cifs", true},
        {0x12345678, "unknown", true},
        /* As a signed 32-bit number would arrive. */
        {(int32_t)0x9123683e, "btrfs", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        pretended_magic = cases[i].magic;
        struct hipio_file *file = create(HIPIO_ACCESS_READ);
        assert_string_equal(hipio_file_system(file), cases[i].name);
        assert_int_equal(hipio_file_is_shared(file), cases[i].shared);
        hipio_file_destroy(file);
    }
}

static void bad_descriptors_are_refused(void **state)
{
    (void)state;
    struct hipio_file *file = NULL;
    const int reading = open("/dev/null", O_RDONLY);
    const int writing = open("/dev/null", O_WRONLY);
    const int path = open("/dev/null", O_PATH);
    const struct hipio_tunables *t = hipio_tunables_process();

    assert_int_equal(hipio_file_create(-1, "x", HIPIO_ACCESS_READ, t, &file), -EBADF);
    assert_non_null(strstr(hipio_status_text(), "x: -1 is not an open file descriptor"));
    assert_int_equal(hipio_file_create(reading, "x", HIPIO_ACCESS_WRITE, t, &file), -EBADF);
    assert_non_null(strstr(hipio_status_text(), "not opened for writing"));
    assert_int_equal(hipio_file_create(writing, "x", HIPIO_ACCESS_READ, t, &file), -EBADF);
    assert_non_null(strstr(hipio_status_text(), "not opened for reading"));
    assert_int_equal(hipio_file_create(path, "x", HIPIO_ACCESS_READ, t, &file), -EBADF);
    assert_null(file);
    assert_int_equal(hipio_file_create(writing, "x", HIPIO_ACCESS_WRITE, t, &file), 0);
    hipio_file_destroy(file);
    close(reading);
    close(writing);
    close(path);
}

static void settings_change_and_old_ones_stay(void **state)
{
    (void)state;
    struct hipio_file *file = create(HIPIO_ACCESS_READ);
    const struct hipio_tunables *first = hipio_file_tunables(file);
    struct hipio_tunables other = *first;

    other.chunk_size = 12345;
    hipio_file_set_tunables(file, &other);
    assert_int_equal(hipio_file_tunables(file)->chunk_size, 12345);
    assert_int_equal(first->chunk_size, hipio_tunables_process()->chunk_size);
    for (int i = 0; i < 1000; ++i)
        hipio_file_set_tunables(file, i % 2 ? &other : hipio_tunables_process());
    hipio_file_set_tunables(file, hipio_tunables_process());
    /* What was in force before is found again, not stored again. */
    assert_ptr_equal(hipio_file_tunables(file), first);
    hipio_file_destroy(file);
}

static _Atomic bool dropped;

static void *drop_later(void *arg)
{
    usleep(50000);
    atomic_store(&dropped, true);
    hipio_file_drop(arg);
    return NULL;
}

static void destroy_waits_for_holders(void **state)
{
    (void)state;
    struct hipio_file *file = create(HIPIO_ACCESS_READ);
    pthread_t thread;

    atomic_store(&dropped, false);
    hipio_file_hold(file);
    hipio_file_hold(file);
    hipio_file_drop(file);
    assert_int_equal(pthread_create(&thread, NULL, drop_later, file), 0);
    hipio_file_destroy(file);
    assert_true(atomic_load(&dropped));
    pthread_join(thread, NULL);
}

static void a_forked_child_does_not_wait(void **state)
{
    (void)state;
    struct hipio_file *file = create(HIPIO_ACCESS_READ);
    int status;

    hipio_file_hold(file);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        hipio_file_destroy(file);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hipio_file_drop(file);
    hipio_file_destroy(file);
}

#define file_test(f) cmocka_unit_test_setup_teardown(f, open_file, close_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        file_test(facts_are_told),
        file_test(file_systems_are_known),
        file_test(bad_descriptors_are_refused),
        file_test(settings_change_and_old_ones_stay),
        file_test(destroy_waits_for_holders),
        file_test(a_forked_child_does_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
