/* SPDX-License-Identifier: MIT */
/*
 * Storage, buffered: random layouts against a plain copy of the file, ends of file inside every
 * piece, and a file system that gives 1000 bytes at a time, nothing, EINTR or an error.
 */
#include "fault_calls.h"
#include "storage/storage.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define FILE_BYTES 200000

static const struct hipio_storage *const storage = &hipio_storage_buffered;
static struct hipio_file *file;
static int fd;
static unsigned char model[FILE_BYTES]; /* what the file holds */

static uint64_t seed;

static uint64_t roll(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static int open_file(void **state)
{
    (void)state;
    char name[] = "/tmp/hipio-test-buffered-XXXXXX";

    seed = 88172645463325252u;
    fault_calls = (struct fault_calls){0};
    fd = mkstemp(name);
    unlink(name);
    for (size_t i = 0; i < FILE_BYTES; ++i)
        model[i] = (unsigned char)roll(256);
    if (fd < 0 || write(fd, model, FILE_BYTES) != FILE_BYTES)
        return -1;
    return hipio_file_create(fd, "the/file", HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE,
                             hipio_tunables_process(), &file);
}

static int close_file(void **state)
{
    (void)state;
    hipio_file_destroy(file);
    return close(fd);
}

static void expect_file_is_model(void)
{
    unsigned char *now = malloc(FILE_BYTES);
    const struct fault_calls faults = fault_calls;

    fault_calls = (struct fault_calls){0};
    assert_int_equal(pread(fd, now, FILE_BYTES, 0), FILE_BYTES);
    assert_memory_equal(now, model, FILE_BYTES);
    free(now);
    fault_calls = faults;
}

/* Monotonic runs: lengths and gaps of several orders of magnitude. */
static struct hipio_layout *random_runs(uint64_t span)
{
    int64_t offset[400];
    uint64_t length[400];
    uint64_t n = 0;
    uint64_t at = roll(50);
    const uint64_t longest = (uint64_t[]){8, 300, 9000, 70000}[roll(4)];
    const uint64_t widest = (uint64_t[]){8, 300, 5000, 30000}[roll(4)];
    struct hipio_layout *out;

    while (n < 400) {
        length[n] = 1 + roll(longest);
        offset[n] = (int64_t)at;
        if (at + length[n] > span)
            break;
        at += length[n] + roll(widest);
        ++n;
    }
    assert_int_equal(hipio_layout_runs(n, offset, length, &out), 0);
    return out;
}

/* Offset of the byte at a packed position. */
static int64_t offset_at(const struct hipio_layout *layout, uint64_t position)
{
    struct hipio_cursor cursor;
    int64_t offset = -1;

    hipio_cursor_init(&cursor, layout, position);
    hipio_cursor_next_run(&cursor, 1, &offset);
    return offset;
}

/* Reads [start, start + length) and expects what the model holds up to `end` of the file. */
static void check_read(const struct hipio_layout *layout, uint64_t start, uint64_t length,
                       int64_t base, int64_t end)
{
    unsigned char *got = malloc(length + 16);
    const uint64_t want = hipio_layout_bytes_below(layout, start, length, end - base);
    struct hipio_cursor cursor;
    uint64_t moved = 99;

    memset(got, 0xa5, length + 16);
    hipio_cursor_init(&cursor, layout, start);
    assert_int_equal(storage->packed(file, HIPIO_READ, got, &cursor, base, length, &moved), 0);
    assert_int_equal(moved, want);
    assert_int_equal(cursor.position, start + want);
    if (start + want < hipio_layout_size(layout)) {
        int64_t next;
        hipio_cursor_next_run(&cursor, 1, &next);
        assert_int_equal(next, offset_at(layout, start + want));
    }
    for (uint64_t i = 0; i < want; ++i)
        assert_int_equal(got[i], model[base + offset_at(layout, start + i)]);
    for (uint64_t i = want; i < length + 16; ++i)
        assert_int_equal(got[i], 0xa5);
    free(got);
}

static void random_reads_equal_the_model(void **state)
{
    (void)state;
    for (int i = 0; i < 150; ++i) {
        const int64_t base = (int64_t)roll(100);
        struct hipio_layout *layout = random_runs(20000 + roll(FILE_BYTES - 20200));
        const uint64_t size = hipio_layout_size(layout);
        const uint64_t start = size ? roll(size) : 0;
        const uint64_t length = size - start < 20000 ? size - start : 20000;

        fault_calls = (struct fault_calls){.most = i % 3 ? 0 : 1000};
        check_read(layout, start, length, base, FILE_BYTES);
        hipio_layout_release(layout);
    }
}

static void reads_end_where_the_file_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 150; ++i) {
        struct hipio_layout *layout = random_runs(20000 + roll(FILE_BYTES - 20200));
        const uint64_t size = hipio_layout_size(layout);
        const uint64_t length = size < 20000 ? size : 20000;
        const int64_t end = size ? offset_at(layout, roll(length)) + (int64_t)roll(3) : 10;

        assert_int_equal(ftruncate(fd, end), 0);
        fault_calls = (struct fault_calls){.most = i % 3 ? 0 : 1000};
        check_read(layout, 0, length, 0, end);
        hipio_layout_release(layout);
        fault_calls = (struct fault_calls){0};
        assert_int_equal(pwrite(fd, model, FILE_BYTES, 0), FILE_BYTES);
    }
}

static void random_writes_touch_nothing_else(void **state)
{
    (void)state;
    for (int i = 0; i < 150; ++i) {
        const int64_t base = (int64_t)roll(100);
        struct hipio_layout *layout = random_runs(20000 + roll(FILE_BYTES - 20200));
        const uint64_t length = hipio_layout_size(layout);
        unsigned char *bytes = malloc(length + 1);
        struct hipio_cursor cursor;
        uint64_t moved;

        hipio_cursor_init(&cursor, layout, 0);
        for (uint64_t at = 0; at < length;) {
            int64_t offset = 0;
            const uint64_t n = hipio_cursor_next_run(&cursor, UINT64_MAX, &offset);
            for (uint64_t k = 0; k < n; ++k)
                bytes[at + k] = model[base + offset + (int64_t)k] = (unsigned char)roll(256);
            at += n;
        }
        fault_calls = (struct fault_calls){.most = i % 2 ? 0 : 1000};
        hipio_cursor_init(&cursor, layout, 0);
        assert_int_equal(storage->packed(file, HIPIO_WRITE, bytes, &cursor, base, length, &moved),
                         0);
        assert_int_equal(moved, length);
        assert_int_equal(cursor.position, length);
        expect_file_is_model();
        free(bytes);
        hipio_layout_release(layout);
    }
}

static struct hipio_layout *vector(uint64_t length, uint64_t count, int64_t stride)
{
    struct hipio_layout *out;

    assert_int_equal(hipio_layout_run(0, length, &out), 0);
    assert_int_equal(hipio_layout_vector(out, 0, count, stride, &out), 0);
    return out;
}

static int transfer(enum hipio_op op, struct hipio_layout *layout, uint64_t *moved)
{
    static unsigned char bytes[FILE_BYTES];
    struct hipio_cursor cursor;

    hipio_cursor_init(&cursor, layout, 0);
    return storage->packed(file, op, bytes, &cursor, 0, hipio_layout_size(layout), moved);
}

static void small_pieces_are_read_together(void **state)
{
    (void)state;
    struct hipio_layout *dense = vector(4, 10000, 16);
    struct hipio_layout *sparse = vector(4, 100, 2000);
    struct hipio_layout *far = vector(4, 40, 2060);
    struct hipio_layout *large = vector(8000, 20, 8100);
    uint64_t moved;

    assert_int_equal(transfer(HIPIO_READ, dense, &moved), 0);
    assert_in_range(fault_calls.calls, 1, 25);
    fault_calls.calls = 0;
    assert_int_equal(transfer(HIPIO_READ, sparse, &moved), 0);
    assert_in_range(fault_calls.calls, 1, 5);
    fault_calls.calls = 0;
    assert_int_equal(transfer(HIPIO_READ, far, &moved), 0);
    assert_int_equal(fault_calls.calls, 40);
    fault_calls.calls = 0;
    assert_int_equal(transfer(HIPIO_READ, large, &moved), 0);
    assert_int_equal(fault_calls.calls, 20);
    hipio_layout_release(dense);
    hipio_layout_release(sparse);
    hipio_layout_release(far);
    hipio_layout_release(large);
}

static void interruptions_are_repeated(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector(5000, 10, 6000);
    uint64_t moved;

    for (unsigned call = 1; call < 60; call += 3) {
        fault_calls = (struct fault_calls){
            .most = 1000, .interrupt_at = call, .interrupt_for = 100, .zero_at = call + 150};
        assert_int_equal(transfer(HIPIO_WRITE, layout, &moved), 0);
        assert_int_equal(moved, 50000);
        fault_calls =
            (struct fault_calls){.most = 1000, .interrupt_at = call, .interrupt_for = 100};
        assert_int_equal(transfer(HIPIO_READ, layout, &moved), 0);
        assert_int_equal(moved, 50000);
    }
    hipio_layout_release(layout);
}

static void nothing_again_and_again_is_an_error(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector(5000, 10, 6000);
    uint64_t moved;

    fault_calls = (struct fault_calls){.most = 1000, .zero_at = 4};
    assert_int_equal(transfer(HIPIO_WRITE, layout, &moved), 0);
    assert_int_equal(moved, 50000);
    fault_calls = (struct fault_calls){.most = 1000, .zero_from = 8};
    assert_int_equal(transfer(HIPIO_WRITE, layout, &moved), -EIO);
    assert_int_equal(moved, 7000);
    assert_string_equal(hipio_status_text(),
                        "the/file: write of 3000 bytes at offset 8000 failed: the file system took "
                        "no byte in 16 calls and gave no error");
    hipio_layout_release(layout);
}

/* R39: a stale handle of a network file system is an error too, and never zeros. */
static void errors_keep_what_was_moved(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector(5000, 10, 6000);
    uint64_t moved;

    for (unsigned call = 1; call <= 50; ++call) {
        for (int op = HIPIO_READ; op <= HIPIO_WRITE; ++op) {
            const int error = call % 2 ? ESTALE : ENOSPC;
            fault_calls = (struct fault_calls){.most = 1000, .error_at = call, .error = error};
            assert_int_equal(transfer((enum hipio_op)op, layout, &moved), -error);
            assert_int_equal(moved, 1000 * (call - 1));
            assert_int_equal(fault_calls.calls, call);
        }
    }
    assert_string_equal(hipio_status_text(),
                        "the/file: write of 1000 bytes at offset 58000 failed: No space left on "
                        "device");
    hipio_layout_release(layout);
}

static void an_error_between_the_pieces_is_none(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector(4, 1000, 16);

    fault_calls = (struct fault_calls){.error_at = 1, .error = EIO};
    check_read(layout, 0, 4000, 0, FILE_BYTES);
    assert_true(fault_calls.calls > 1);
    hipio_layout_release(layout);
}

static void impossible_places_are_refused(void **state)
{
    (void)state;
    struct hipio_layout *layout = vector(4, 2, 16);
    struct hipio_cursor cursor;
    char bytes[16];
    uint64_t moved;

    for (int op = HIPIO_READ; op <= HIPIO_WRITE; ++op) {
        const int64_t bases[] = {-1, INT64_MAX, INT64_MAX - 3, INT64_MIN};
        for (int i = 0; i < 4; ++i) {
            hipio_cursor_init(&cursor, layout, 0);
            assert_int_equal(
                storage->packed(file, (enum hipio_op)op, bytes, &cursor, bases[i], 8, &moved),
                -EINVAL);
            assert_int_equal(moved, 0);
            assert_int_equal(cursor.position, 0);
        }
        hipio_cursor_init(&cursor, layout, 0);
        assert_int_equal(storage->packed(file, (enum hipio_op)op, bytes, &cursor, 0, 9, &moved),
                         -EINVAL);
        assert_int_equal(moved, 8);
        hipio_cursor_init(&cursor, layout, 0);
        assert_int_equal(storage->packed(file, (enum hipio_op)op, NULL, &cursor, 0, 0, &moved), 0);
        assert_int_equal(moved, 0);
    }
    assert_int_equal(fault_calls.calls, 3);
    hipio_layout_release(layout);
}

/* ---- More than one call can move ---- */

static void beyond_the_limit_of_a_call(void **state)
{
    (void)state;
    const uint64_t length = (UINT64_C(2) << 30) + 4097;
    struct hipio_layout *layout;
    struct hipio_cursor cursor;
    uint64_t moved;
    /* Fresh private memory costs nothing until it is written, and a hole costs nothing to read
     * past its first page: the call itself is cut to a page each. */
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(hipio_layout_run(0, length, &layout), 0);
    hipio_cursor_init(&cursor, layout, 0);
    fault_calls = (struct fault_calls){.most = 4096, .error_at = 2, .error = EIO};
    assert_int_equal(storage->packed(file, HIPIO_READ, memory, &cursor, 3, length, &moved), -EIO);
    assert_int_equal(moved, 4096);
    assert_int_equal(fault_calls.largest, HIPIO_STORAGE_CALL_MAX);
    assert_memory_equal(memory, model + 3, 4096);

    /* And far into a sparse file. */
    const int64_t far = INT64_C(6) << 30;
    assert_int_equal(ftruncate(fd, far + 1000), 0);
    fault_calls = (struct fault_calls){0};
    assert_int_equal(pwrite(fd, model, 1000, far), 1000);
    hipio_cursor_init(&cursor, layout, 0);
    assert_int_equal(storage->packed(file, HIPIO_READ, memory, &cursor, far - 10, 5000, &moved), 0);
    assert_int_equal(moved, 1010);
    assert_memory_equal(memory + 10, model, 1000);
    munmap(memory, length);
    hipio_layout_release(layout);
}

/* ---- Vectors ---- */

#define PIECES 40

/* Pieces of random sizes, some empty, in one buffer with room between them. */
static uint64_t random_pieces(struct iovec *iov, unsigned char *buffer)
{
    uint64_t total = 0;
    size_t at = 0;

    for (int i = 0; i < PIECES; ++i) {
        iov[i].iov_base = buffer + at;
        iov[i].iov_len = roll(4) ? 1 + roll(2500) : 0;
        at += iov[i].iov_len + roll(20);
        total += iov[i].iov_len;
    }
    return total;
}

static void vectors_equal_the_model(void **state)
{
    (void)state;
    static unsigned char buffer[PIECES * 2600];
    struct iovec iov[PIECES];

    for (int i = 0; i < 200; ++i) {
        const uint64_t total = random_pieces(iov, buffer);
        const int64_t offset = (int64_t)roll(FILE_BYTES);
        const uint64_t left = (uint64_t)(FILE_BYTES - offset);
        const bool writes = i % 2 && total <= left;
        uint64_t want = total < left ? total : left;
        uint64_t moved = 99;
        uint64_t at = (uint64_t)offset;

        fault_calls = (struct fault_calls){
            .most = i % 3 ? 1000 : 0, .interrupt_at = (unsigned)roll(10), .interrupt_for = 1};
        if (writes)
            fault_calls.zero_at = 4;
        for (size_t k = 0; k < sizeof buffer; ++k)
            buffer[k] = (unsigned char)roll(256);
        assert_int_equal(
            storage->vector(file, writes ? HIPIO_WRITE : HIPIO_READ, iov, PIECES, offset, &moved),
            0);
        assert_int_equal(moved, want);
        for (int k = 0; k < PIECES && want > 0; ++k) {
            const uint64_t n = iov[k].iov_len < want ? iov[k].iov_len : want;
            if (writes)
                memcpy(model + at, iov[k].iov_base, n);
            assert_memory_equal(iov[k].iov_base, model + at, n);
            at += n;
            want -= n;
        }
        expect_file_is_model();
    }
}

static void vector_errors_keep_what_was_moved(void **state)
{
    (void)state;
    static unsigned char buffer[PIECES * 2600];
    struct iovec iov[PIECES];
    uint64_t moved;

    for (int i = 0; i < PIECES; ++i)
        iov[i] = (struct iovec){buffer + 1500 * i, 1500};
    for (unsigned call = 1; call < 30; ++call) {
        for (int op = HIPIO_READ; op <= HIPIO_WRITE; ++op) {
            fault_calls = (struct fault_calls){.most = 1000, .error_at = call, .error = EDQUOT};
            assert_int_equal(storage->vector(file, (enum hipio_op)op, iov, PIECES, 7, &moved),
                             -EDQUOT);
            /* Calls take 1000 bytes and what is left of a piece, in turn. */
            assert_int_equal(moved, (call - 1) / 2 * 1500 + (call - 1) % 2 * 1000);
        }
    }
    fault_calls = (struct fault_calls){.zero_from = 1};
    assert_int_equal(storage->vector(file, HIPIO_WRITE, iov, PIECES, 7, &moved), -EIO);
    assert_int_equal(moved, 0);
    fault_calls = (struct fault_calls){0};
    assert_int_equal(storage->vector(file, HIPIO_READ, iov, 0, 7, &moved), 0);
    assert_int_equal(moved, 0);
}

#define buffered_test(f) cmocka_unit_test_setup_teardown(f, open_file, close_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        buffered_test(random_reads_equal_the_model),
        buffered_test(reads_end_where_the_file_ends),
        buffered_test(random_writes_touch_nothing_else),
        buffered_test(small_pieces_are_read_together),
        buffered_test(interruptions_are_repeated),
        buffered_test(nothing_again_and_again_is_an_error),
        buffered_test(errors_keep_what_was_moved),
        buffered_test(an_error_between_the_pieces_is_none),
        buffered_test(impossible_places_are_refused),
        buffered_test(beyond_the_limit_of_a_call),
        buffered_test(vectors_equal_the_model),
        buffered_test(vector_errors_keep_what_was_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
