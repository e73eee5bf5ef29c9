/* SPDX-License-Identifier: MIT */
/*
 * Seams (R7): GPU memory that is mapped from several pieces, of which the runtime's range query
 * reports one, and stream-ordered memory. hipio must neither refuse them nor run past their end.
 * The functions for it have the same arguments in HIP and CUDA.
 */
#include "async_rig.h"
#include "device_app.h"
#include "pattern.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)
#define PIECES 4
#define PIECE (16 * MIB)
#define SIZE (PIECES * PIECE)
/* The access of the case: it begins before a seam and crosses three. */
#define START (15 * MIB)
#define BYTES (48 * MIB)

/* As both vendors lay it out, HIP from 5.3 on. */
struct properties {
    int type;
    int handle_types;
    int location[2];
    void *windows;
    unsigned char flags[8];
};

static struct {
    int (*granularity)(size_t *, const struct properties *, int);
    int (*reserve)(void **, size_t, size_t, void *, unsigned long long);
    int (*unreserve)(void *, size_t);
    int (*create)(void **, size_t, const struct properties *, unsigned long long);
    int (*release)(void *);
    int (*map)(void *, size_t, size_t, void *, unsigned long long);
    int (*access)(void *, size_t, const int[3], size_t);
    int (*unmap)(void *, size_t);
    int (*alloc_async)(void **, size_t, void *);
    int (*free_async)(void *, void *);
} gpu;

/* `name` is CUDA's, or HIP's without the vendor's prefix. */
static void load(const char *cuda, const char *hip, void *slot)
{
    void *function = app_function(app_is_cuda() ? cuda : hip);

    if (!function) {
        print_message("the runtime has no %s\n", app_is_cuda() ? cuda : hip);
        exit(77);
    }
    memcpy(slot, &function, sizeof function);
}

static int start(void **state)
{
    (void)state;
    async_rig_start();
    load("cuMemGetAllocationGranularity", "hipMemGetAllocationGranularity", &gpu.granularity);
    load("cuMemAddressReserve", "hipMemAddressReserve", &gpu.reserve);
    load("cuMemAddressFree", "hipMemAddressFree", &gpu.unreserve);
    load("cuMemCreate", "hipMemCreate", &gpu.create);
    load("cuMemRelease", "hipMemRelease", &gpu.release);
    load("cuMemMap", "hipMemMap", &gpu.map);
    load("cuMemSetAccess", "hipMemSetAccess", &gpu.access);
    load("cuMemUnmap", "hipMemUnmap", &gpu.unmap);
    load("cuMemAllocAsync", "hipMallocAsync", &gpu.alloc_async);
    load("cuMemFreeAsync", "hipFreeAsync", &gpu.free_async);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hipio_shutdown();
    return 0;
}

static const struct properties of_device = {.type = 1, .location = {1, 0}};
static const int read_write[3] = {1, 0, 3};

/* Address space with memory behind its first `pieces` pieces. */
static unsigned char *map_pieces(int pieces)
{
    void *base, *memory;
    size_t granularity;

    assert_int_equal(gpu.granularity(&granularity, &of_device, 0), 0);
    if (PIECE % granularity != 0)
        skip();
    assert_int_equal(gpu.reserve(&base, SIZE, 0, NULL, 0), 0);
    for (int i = 0; i < pieces; i++) {
        assert_int_equal(gpu.create(&memory, PIECE, &of_device, 0), 0);
        assert_int_equal(gpu.map((char *)base + (size_t)i * PIECE, PIECE, 0, memory, 0), 0);
        assert_int_equal(gpu.release(memory), 0);
    }
    assert_int_equal(gpu.access(base, (size_t)pieces * PIECE, read_write, 1), 0);
    return base;
}

static void unmap_pieces(unsigned char *base, int pieces)
{
    for (int i = 0; i < pieces; i++)
        assert_int_equal(gpu.unmap(base + (size_t)i * PIECE, PIECE), 0);
    assert_int_equal(gpu.unreserve(base, SIZE), 0);
}

/* The application copies piece by piece, so that it needs nothing of the kind that is tested. */
static void fill(unsigned char *base, uint64_t seed)
{
    unsigned char *host = malloc(PIECE);

    for (size_t i = 0; i < PIECES; i++) {
        if (seed)
            pattern_fill(host, seed, i * PIECE, PIECE);
        else
            memset(host, 0xA5, PIECE);
        app_copy(base + i * PIECE, host, PIECE);
    }
    free(host);
}

/* Bytes [START, START + BYTES) are the file's from 0 on, and the others poison. */
static void check(const unsigned char *base, uint64_t seed)
{
    unsigned char *host = malloc(SIZE);

    for (size_t i = 0; i < PIECES; i++)
        app_copy(host + i * PIECE, base + i * PIECE, PIECE);
    assert_int_equal(pattern_check(host + START, seed, 0, BYTES), BYTES);
    for (size_t i = 0; i < SIZE; i++)
        if ((i < START || i >= START + BYTES) && host[i] != 0xA5)
            fail_msg("byte %zu has been changed", i);
    free(host);
}

static struct hipio_handle *open_with(int fd, const char *setting, const char *value)
{
    struct hipio_handle *file = async_rig_open(fd);

    if (setting)
        async_rig_must(hipio_set_file(file, setting, value));
    return file;
}

/* In one piece, and in pieces of 40 KB that lie 60 KB apart, so that some cross a seam. */
static void write_out(struct hipio_handle *file, int fd, unsigned char *base)
{
    enum { N = 800, LENGTH = 40000, STRIDE = 60000 };
    static struct iovec piece[N];

    async_rig_must(ftruncate(fd, 0));
    assert_int_equal(hipio_write(file, base, BYTES, 0, START), BYTES);
    async_rig_check_file(fd, 0, BYTES, 2, START);
    async_rig_must(ftruncate(fd, 0));
    for (int i = 0; i < N; i++)
        piece[i] = (struct iovec){base + START + (size_t)i * STRIDE, LENGTH};
    assert_int_equal(hipio_writev(file, piece, N, 0), (ssize_t)N * LENGTH);
    for (int i = 0; i < N; i++)
        async_rig_check_file(fd, (uint64_t)i * LENGTH, LENGTH, 2, START + (uint64_t)i * STRIDE);
}

static void seams_are_invisible(void **state)
{
    static const char *const settings[][2] = {{NULL, NULL},
                                              {"chunk_size", "3M"},
                                              {"kernels", "off"},
                                              {"kernels", "force"},
                                              {"fallback", "force"}};
    unsigned char *base = map_pieces(PIECES);
    int fd = async_rig_file(1, BYTES);

    (void)state;
    fill(base, 2);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct hipio_handle *file = open_with(fd, settings[i][0], settings[i][1]);

        write_out(file, fd, base);
        hipio_deregister_file(file);
    }
    close(fd);
    fd = async_rig_file(1, BYTES);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i += 2) {
        struct hipio_handle *file = open_with(fd, settings[i][0], settings[i][1]);

        fill(base, 0);
        assert_int_equal(hipio_read(file, base, BYTES, 0, START), BYTES);
        check(base, 1);
        hipio_deregister_file(file);
    }
    close(fd);
    unmap_pieces(base, PIECES);
}

static void seams_are_invisible_on_a_stream(void **state)
{
    struct async_call out = {.size = BYTES, .buffer_offset = START};
    struct async_call in = out;
    void *stream = app_create_stream(1);
    unsigned char *base = map_pieces(PIECES);
    int fd = async_rig_file(1, BYTES);
    struct hipio_handle *file = async_rig_open(fd);

    (void)state;
    fill(base, 0);
    async_rig_must(hipio_stream_register(stream, HIPIO_FIXED_SIZE | HIPIO_FIXED_BUFFER_OFFSET));
    async_rig_must(async_rig_queue(true, file, base, &in, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    async_rig_expect(&in, BYTES);
    check(base, 1);
    fill(base, 2);
    async_rig_must(async_rig_queue(false, file, base, &out, stream));
    assert_int_equal(async_rig_synchronize(stream), 0);
    async_rig_expect(&out, BYTES);
    async_rig_check_file(fd, 0, BYTES, 2, START);
    async_rig_must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    unmap_pieces(base, PIECES);
    app_destroy_stream(stream);
}

/* Nothing behind the last piece: an error before a byte of the file or of memory has changed. */
static void a_missing_last_piece_is_an_error(void **state)
{
    const size_t there = (PIECES - 1) * PIECE;
    unsigned char *base = map_pieces(PIECES - 1);
    int fd = async_rig_file(1, BYTES);
    struct hipio_handle *file = async_rig_open(fd);

    (void)state;
    async_rig_poison(base, PIECE);
    assert_int_equal(hipio_write(file, base, BYTES, 0, START), -EFAULT);
    assert_non_null(strstr(hipio_error_text(), "leaves its allocation"));
    async_rig_check_file(fd, 0, BYTES, 1, 0);
    assert_int_equal(hipio_read(file, base, BYTES, 0, START), -EFAULT);
    async_rig_check_poison(base, START, PIECE - START);
    /* Up to its last byte it is good. */
    assert_int_equal(hipio_write(file, base, there - START, 0, START), there - START);
    hipio_deregister_file(file);
    close(fd);
    unmap_pieces(base, PIECES - 1);
}

static void stream_ordered_memory_is_served(void **state)
{
    const size_t bytes = 3 * MIB + 7;
    void *stream = app_create_stream(1), *memory;
    int fd = async_rig_file(1, bytes);
    struct hipio_handle *file = async_rig_open(fd);

    (void)state;
    assert_int_equal(gpu.alloc_async(&memory, bytes, stream), 0);
    assert_int_equal(async_rig_synchronize(stream), 0);
    assert_int_equal(hipio_read(file, memory, bytes, 0, 0), bytes);
    async_rig_check_memory(memory, 0, bytes, 1, 0);
    async_rig_must(ftruncate(fd, 0));
    assert_int_equal(hipio_write(file, memory, bytes - 5, 100, 5), bytes - 5);
    async_rig_check_file(fd, 100, bytes - 5, 1, 5);
    hipio_deregister_file(file);
    close(fd);
    assert_int_equal(gpu.free_async(memory, stream), 0);
    app_destroy_stream(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seams_are_invisible),
        cmocka_unit_test(seams_are_invisible_on_a_stream),
        cmocka_unit_test(a_missing_last_piece_is_an_error),
        cmocka_unit_test(stream_ordered_memory_is_served),
    };

    return cmocka_run_group_tests_name("seams", tests, start, stop);
}
