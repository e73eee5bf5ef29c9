/* SPDX-License-Identifier: MIT */
/*
 * Api: the blocking calls of the C library, its settings and counters, as a program uses them.
 */
#include "async_rig.h"
#include "device_app.h"
#include "pattern.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES ((size_t)200000)

static struct hipio_handle *open_file(int fd)
{
    struct hipio_handle *file;

    if (hipio_register_file(fd, NULL, &file) < 0)
        fail_msg("%s", hipio_error_text());
    return file;
}

static void reads_and_writes(void **state)
{
    int fd = async_rig_file(1, BYTES);
    struct hipio_handle *file = open_file(fd);
    unsigned char *memory = async_rig_memory(0, BYTES + 100);

    (void)state;
    assert_int_equal(hipio_read(file, memory, BYTES - 7, 7, 3), BYTES - 7);
    async_rig_check_memory(memory, 3, BYTES - 7, 1, 7);
    async_rig_check_poison(memory, 0, 3);
    assert_int_equal(hipio_write(file, memory, 5000, 50, 1000), 5000);
    async_rig_check_file(fd, 50, 5000, 1, 1004);
    assert_int_equal(hipio_read(file, memory, BYTES, 100, 0), BYTES - 100);
    assert_int_equal(hipio_read(file, memory, 10, (off_t)BYTES, 0), 0);
    assert_int_equal(hipio_read(file, memory, 10, (off_t)1 << 40, 0), 0);
    assert_int_equal(hipio_write(file, NULL, 0, 0, 0), 0);
    hipio_deregister_file(file);
    close(fd);
    app_free(memory);
}

/* The caller's descriptor is the caller's. */
static void descriptors_are_its_own(void **state)
{
    int fd = async_rig_file(1, BYTES), check = dup(fd);
    struct hipio_handle *file = open_file(fd);
    unsigned char *memory = async_rig_memory(2, BYTES);

    (void)state;
    close(fd);
    assert_int_equal(hipio_write(file, memory, BYTES, 0, 0), BYTES);
    async_rig_check_file(check, 0, BYTES, 2, 0);
    hipio_deregister_file(file);
    hipio_deregister_file(NULL);
    close(check);
    app_free(memory);
}

static void pieces(void **state)
{
    enum { N = 400, STEP = 333 };
    struct iovec piece[N];
    size_t total = 0;
    int fd = async_rig_file(1, BYTES);
    struct hipio_handle *file = open_file(fd);
    unsigned char *memory = async_rig_memory(0, N * STEP);
    char host;

    (void)state;
    for (int i = 0; i < N; i++) {
        piece[i].iov_base = memory + (N - 1 - i) * STEP;
        piece[i].iov_len = (size_t)(i * 37 % STEP);
        total += piece[i].iov_len;
    }
    assert_int_equal(hipio_readv(file, piece, N, 11), total);
    size_t at = 11;
    for (int i = 0; i < N; i++) {
        async_rig_check_memory(memory, (size_t)(N - 1 - i) * STEP, piece[i].iov_len, 1, at);
        at += piece[i].iov_len;
    }
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(hipio_writev(file, piece, N, 3), total);
    async_rig_check_file(fd, 3, total, 1, 11);
    assert_int_equal(hipio_writev(file, piece, 0, 3), 0);
    assert_int_equal(hipio_writev(file, NULL, 0, 3), 0);
    assert_int_equal(hipio_writev(file, piece, -1, 3), -EINVAL);
    piece[1] = (struct iovec){&host, 1};
    piece[2] = (struct iovec){memory, 1};
    assert_int_equal(hipio_writev(file, piece, 3, 3), -EINVAL);
    assert_non_null(strstr(hipio_error_text(), "piece 2"));
    hipio_deregister_file(file);
    close(fd);
    app_free(memory);
}

static void errors_have_words(void **state)
{
    int fd = open("/dev/null", O_RDONLY);
    struct hipio_handle *file = open_file(fd), *none;
    char byte = 0;

    (void)state;
    assert_int_equal(hipio_register_file(-1, "nothing", &none), -EBADF);
    assert_int_equal(hipio_register_file(fd, "nothing", NULL), -EINVAL);
    assert_int_equal(hipio_write(file, &byte, 1, 0, 0), -EBADF);
    assert_non_null(strstr(hipio_error_text(), "descriptor"));
    assert_int_equal(hipio_read(file, &byte, 1, -1, 0), -EINVAL);
    assert_int_equal(hipio_read(file, NULL, 1, 0, 0), -EFAULT);
    assert_int_equal(hipio_read(NULL, &byte, 1, 0, 0), -EINVAL);
    hipio_deregister_file(file);
    close(fd);
}

static void expect_named(const unsigned char *memory, const char *bytes)
{
    char name[64];

    snprintf(name, sizeof name, "buffer %p, %s bytes of device memory (", (void *)memory, bytes);
    assert_non_null(strstr(hipio_error_text(), name));
    assert_non_null(strstr(hipio_error_text(), "there is no GPU memory"));
    snprintf(name, sizeof name, "begins in an allocation of %zu bytes at %p", BYTES,
             (void *)memory);
    assert_non_null(strstr(hipio_error_text(), name));
}

/* The error names the buffer, and comes before a byte of the file or of memory has changed. */
static void buffers_that_are_too_small_are_named(void **state)
{
    const size_t huge = (size_t)1 << 40; /* more than a GPU has behind the allocation */
    int fd = async_rig_file(1, BYTES);
    struct hipio_handle *file = open_file(fd);
    unsigned char *memory = async_rig_memory(0, BYTES);
    struct async_call call = {.size = 100, .buffer_offset = (off_t)huge};

    (void)state;
    assert_int_equal(hipio_write(file, memory, huge, 0, 0), -EFAULT);
    expect_named(memory, "1099511627776");
    async_rig_check_file(fd, 0, BYTES, 1, 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), BYTES);
    /* What the file has not got needs no memory. */
    assert_int_equal(hipio_read(file, memory, huge, 10, 0), BYTES - 10);
    async_rig_check_memory(memory, 0, BYTES - 10, 1, 10);
    if (ftruncate(fd, (off_t)huge) == 0) {
        async_rig_poison(memory, BYTES);
        assert_int_equal(hipio_read(file, memory, huge, 0, 0), -EFAULT);
        expect_named(memory, "1099511627776");
        async_rig_check_poison(memory, 0, BYTES);
    }
    async_rig_must(hipio_stream_register(NULL, HIPIO_FIXED_SIZE | HIPIO_FIXED_BUFFER_OFFSET));
    for (int reads = 0; reads < 2; reads++) {
        assert_int_equal(async_rig_queue(reads, file, memory, &call, NULL), -EFAULT);
        assert_non_null(strstr(hipio_error_text(), "100 bytes of device memory"));
    }
    assert_int_equal(async_rig_synchronize(NULL), 0);
    async_rig_must(hipio_stream_deregister(NULL));
    hipio_deregister_file(file);
    close(fd);
    app_free(memory);
}

static void settings_and_counters(void **state)
{
    int fd = async_rig_file(1, 100);
    struct hipio_handle *file = open_file(fd);
    char value[32], report[8192], buffer[100];
    uint64_t before, after;

    (void)state;
    assert_int_equal(hipio_set_file(file, "chunk_size", "64K"), 0);
    assert_int_equal(hipio_get(file, "chunk_size", value, sizeof value), 0);
    assert_string_equal(value, "64K");
    assert_int_equal(hipio_get(NULL, "chunk_size", value, sizeof value), 0);
    assert_string_equal(value, "1M");
    assert_int_equal(hipio_set_file(file, "chunk_size", "a lot"), -EINVAL);
    assert_non_null(strstr(hipio_error_text(), "a lot"));
    assert_int_equal(hipio_set_file(file, "no_such", "1"), -EINVAL);
    assert_int_equal(hipio_set_file(file, "log", "debug"), -EINVAL);
    assert_non_null(strstr(hipio_error_text(), "HIPIO_LOG"));
    assert_int_equal(hipio_set("log", "error"), 0);
    assert_int_equal(hipio_get(file, "log", value, sizeof value), 0);
    assert_string_equal(value, "error");
    assert_int_equal(hipio_set("log", "warn"), 0);
    assert_int_equal(hipio_set(NULL, "1"), -EINVAL);
    assert_int_equal(hipio_get(NULL, "no_such", value, sizeof value), -EINVAL);
    assert_int_equal(hipio_statistic("no_such", &before), -EINVAL);
    assert_int_equal(hipio_statistic("bytes_read", &before), 0);
    assert_int_equal(hipio_read(file, buffer, 100, 0, 0), 100);
    assert_int_equal(hipio_statistic("bytes_read", &after), 0);
    assert_int_equal(after, before + 100);
    hipio_report(report, sizeof report);
    assert_non_null(strstr(report, "bytes_read"));
    assert_true(hipio_version()[0] != '\0');
    hipio_deregister_file(file);
    close(fd);
}

static int start(void **state)
{
    (void)state;
    async_rig_start();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hipio_shutdown();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_and_writes),
        cmocka_unit_test(descriptors_are_its_own),
        cmocka_unit_test(pieces),
        cmocka_unit_test(errors_have_words),
        cmocka_unit_test(buffers_that_are_too_small_are_named),
        cmocka_unit_test(settings_and_counters),
    };

    return cmocka_run_group_tests_name("api", tests, start, stop);
}
