/* SPDX-License-Identifier: MIT */
/*
 * Storage, mapped: random layouts against a plain copy of the file, growth, holes, ends of file,
 * the bound on windows, and what other ways into the file see of it. Once on a disk's file system
 * and once in memory, as far as they are here.
 */
#include "mapping.h"
#include "scratch.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES 3500000 /* several windows */
#define BOTH (HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE)

static const char *folder;
static struct scratch s;

static int open_full(void **state)
{
    (void)state;
    hipio_stats_reset();
    scratch_open(&s, folder, BYTES, BYTES);
    return 0;
}

static int open_part(void **state)
{
    (void)state;
    hipio_stats_reset();
    scratch_open(&s, folder, BYTES, 100000);
    return 0;
}

static int close_it(void **state)
{
    (void)state;
    scratch_close(&s);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_now), 0);
    return 0;
}

static void random_layouts_equal_the_model(void **state)
{
    (void)state;
    uint64_t written = 0;
    uint64_t read = 0;

    for (int i = 0; i < 60; i++) {
        struct hipio_layout *layout = scratch_runs(&s, BYTES);
        const uint64_t size = hipio_layout_size(layout);
        scratch_write(&s, layout, size);
        written += size;
        hipio_layout_release(layout);

        layout = scratch_runs(&s, BYTES);
        const uint64_t part = hipio_layout_size(layout) / 2;
        scratch_read(&s, layout, part);
        read += part;
        hipio_layout_release(layout);
        if (i % 20 == 19)
            scratch_compare(&s);
    }
    scratch_compare(&s);
    /* Not by the fallback. */
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_written), written);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_read), read);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapping_faults), 0);
}

static void files_grow(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct hipio_layout *layout = scratch_runs(&s, 150000 + (size_t)i * 160000);
        scratch_write(&s, layout, hipio_layout_size(layout));
        scratch_compare(&s);
        hipio_layout_release(layout);
    }
    assert_true(s.ends > BYTES / 4);
    assert_true(hipio_stats_get(HIPIO_COUNT_mapped_written) > 0);
}

static void holes_are_filled(void **state)
{
    (void)state;
    struct hipio_layout *layout = scratch_vector(20000, 30, 100000);

    assert_int_equal(ftruncate(s.fd, BYTES), 0);
    s.ends = BYTES;
    scratch_write(&s, layout, hipio_layout_size(layout));
    scratch_compare(&s);
    scratch_read(&s, layout, hipio_layout_size(layout));
    hipio_layout_release(layout);
    layout = scratch_vector(5000, 30, 100000);
    scratch_read(&s, layout, hipio_layout_size(layout));
    hipio_layout_release(layout);
}

static void reads_end_where_the_file_ends(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct hipio_layout *layout = scratch_runs(&s, BYTES);
        s.ends = scratch_roll(&s, BYTES);
        assert_int_equal(ftruncate(s.fd, (off_t)s.ends), 0);
        scratch_read(&s, layout, hipio_layout_size(layout));
        hipio_layout_release(layout);
        assert_int_equal(pwrite(s.fd, s.model, BYTES, 0), BYTES);
    }
    s.ends = 0;
    assert_int_equal(ftruncate(s.fd, 0), 0);
    struct hipio_layout *layout = scratch_vector(100, 10, 5000);
    scratch_read(&s, layout, 1000);
    hipio_layout_release(layout);
}

static void far_places_are_reached(void **state)
{
    (void)state;
    const int64_t far = (INT64_C(6) << 30) + 12345;
    struct hipio_layout *layout = scratch_vector(3000, 100, 10000);
    unsigned char *bytes = malloc(300000);
    unsigned char *back = malloc(300000);
    struct hipio_cursor cursor;
    uint64_t moved;

    for (int i = 0; i < 300000; i++)
        bytes[i] = (unsigned char)scratch_roll(&s, 256);
    hipio_cursor_init(&cursor, layout, 0);
    assert_int_equal(s.storage->packed(s.file, HIPIO_WRITE, bytes, &cursor, far, 300000, &moved),
                     0);
    assert_int_equal(moved, 300000);
    assert_int_equal(hipio_file_size(s.file), far + 99 * 10000 + 3000);
    assert_true(hipio_stats_get(HIPIO_COUNT_mapped_written) > 0);
    hipio_cursor_init(&cursor, layout, 0);
    assert_int_equal(s.storage->packed(s.file, HIPIO_READ, back, &cursor, far, 300000, &moved), 0);
    assert_int_equal(moved, 300000);
    assert_memory_equal(bytes, back, 300000);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(pread(s.fd, back, 3000, far + i * 10000), 3000);
        assert_memory_equal(bytes + i * 3000, back, 3000);
    }
    free(bytes);
    free(back);
    hipio_layout_release(layout);
}

static void windows_are_bounded(void **state)
{
    (void)state;
    const uint64_t window = UINT64_C(1) << 20;
    struct hipio_layout *layout = scratch_vector(4096, 100, (int64_t)window);
    unsigned char *bytes = calloc(100, 4096);
    uint64_t moved;

    memset(bytes, 0x5a, 409600);
    for (int i = 0; i < 3; i++)
        assert_int_equal(scratch_move(&s, HIPIO_WRITE, layout, bytes, 409600, &moved), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_now), HIPIO_MAPPING_WINDOWS_MAX * window);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_peak), HIPIO_MAPPING_WINDOWS_MAX * window);

    /* Windows in use stay, and there are never more. */
    struct hipio_mapping_window *held[HIPIO_MAPPING_WINDOWS_MAX];
    for (int i = 0; i < HIPIO_MAPPING_WINDOWS_MAX; i++) {
        held[i] = hipio_mapping_borrow(s.file, i * (int64_t)window);
        assert_non_null(held[i]);
        assert_int_equal(held[i]->memory[0], 0x5a);
    }
    assert_null(hipio_mapping_borrow(s.file, 50 * (int64_t)window));
    assert_ptr_equal(hipio_mapping_borrow(s.file, (int64_t)window - 1), held[0]);
    hipio_mapping_return(s.file, held[0]);
    assert_int_equal(scratch_move(&s, HIPIO_READ, layout, bytes, 409600, &moved), 0);
    assert_int_equal(moved, 409600);
    for (int i = 0; i < 409600; i++)
        assert_int_equal(bytes[i], 0x5a);
    for (int i = 0; i < HIPIO_MAPPING_WINDOWS_MAX; i++)
        hipio_mapping_return(s.file, held[i]);
    free(bytes);
    hipio_layout_release(layout);
}

static void other_ways_of_opening(void **state)
{
    (void)state;
    struct hipio_layout *layout = scratch_vector(700, 1000, 3000);
    uint64_t moved;
    char byte = 0;

    scratch_reopen(&s, O_RDONLY, HIPIO_ACCESS_READ);
    assert_true(hipio_mapping_allows(s.file, HIPIO_READ));
    assert_false(hipio_mapping_allows(s.file, HIPIO_WRITE));
    scratch_read(&s, layout, 700000);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_read), 700000);
    assert_int_equal(scratch_move(&s, HIPIO_WRITE, layout, &byte, 1, &moved), -EBADF);

    scratch_reopen(&s, O_WRONLY, HIPIO_ACCESS_WRITE);
    assert_false(hipio_mapping_allows(s.file, HIPIO_WRITE));
    scratch_write(&s, layout, 700000);
    scratch_reopen(&s, O_RDWR | O_DSYNC, BOTH);
    assert_false(hipio_mapping_allows(s.file, HIPIO_WRITE));
    scratch_reopen(&s, O_RDWR | O_APPEND, BOTH);
    assert_false(hipio_mapping_allows(s.file, HIPIO_WRITE));
    scratch_reopen(&s, O_RDWR, BOTH);
    scratch_compare(&s);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_written), 0);
    hipio_layout_release(layout);
}

/* Two processes own every other byte. */
static void neighbours_keep_their_bytes(void **state)
{
    (void)state;
    struct hipio_layout *layout = scratch_vector(1, 8192, 2);
    unsigned char bytes[8192];
    struct hipio_cursor cursor;
    uint64_t moved;
    int code;

    const pid_t child = fork();
    const int me = child == 0;
    for (int round = 0; round < 500; round++) {
        memset(bytes, me ? round : ~round, sizeof bytes);
        hipio_cursor_init(&cursor, layout, 0);
        int status =
            s.storage->packed(s.file, HIPIO_WRITE, bytes, &cursor, me, sizeof bytes, &moved);
        if (me && (status != 0 || moved != sizeof bytes))
            _exit(1);
        assert_int_equal(status, 0);
    }
    if (me)
        _exit(0);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    for (int i = 0; i < 16384; i++)
        s.model[i] = (unsigned char)(i % 2 ? 499 : ~499);
    scratch_compare(&s);
    hipio_layout_release(layout);
}

static void the_disk_has_it_after_fsync(void **state)
{
    (void)state;
    struct hipio_layout *layout = scratch_vector(10000, 200, 16000);
    char path[64];
    void *disk = NULL;
    const size_t whole = BYTES / 4096 * 4096;

    scratch_write(&s, layout, 2000000);
    assert_int_equal(fsync(s.fd), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", s.fd);
    const int direct = open(path, O_RDONLY | O_DIRECT);
    assert_int_equal(posix_memalign(&disk, 4096, whole), 0);
    if (direct >= 0) {
        assert_int_equal(pread(direct, disk, whole, 0), whole);
        assert_memory_equal(disk, s.model, whole);
        close(direct);
    }
    free(disk);
    hipio_layout_release(layout);
}

static void writing_gives_the_file_its_times(void **state)
{
    (void)state;
    const struct timespec old[2] = {{1000, 0}, {1000, 0}};
    struct hipio_layout *layout = scratch_vector(10000, 20, 16000);
    struct stat now;

    for (int i = 0; i < 5; i++) {
        assert_int_equal(futimens(s.fd, old), 0);
        usleep(20000); /* several ticks */
        scratch_write(&s, layout, 200000);
        assert_int_equal(fstat(s.fd, &now), 0);
        assert_true(now.st_mtim.tv_sec > 1000);
    }
    hipio_layout_release(layout);
}

static void vectors_equal_the_model(void **state)
{
    (void)state;
    unsigned char *buffer = malloc(BYTES);
    struct iovec iov[40];

    for (int i = 0; i < 60; i++) {
        const bool writes = i % 2;
        const int64_t offset = (int64_t)scratch_roll(&s, BYTES);
        const uint64_t longest = i % 3 ? 2000 : 60000;
        uint64_t left = BYTES - (uint64_t)offset;
        uint64_t total = 0;
        uint64_t moved = 99;
        for (int k = 0; k < 40; k++) {
            uint64_t n = scratch_roll(&s, 4) ? scratch_roll(&s, longest) : 0;
            n = n < left - total ? n : left - total;
            iov[k] = (struct iovec){buffer + total, n};
            total += n;
        }
        for (uint64_t k = 0; k < total; k++)
            buffer[k] = (unsigned char)scratch_roll(&s, 256);
        assert_int_equal(
            s.storage->vector(s.file, writes ? HIPIO_WRITE : HIPIO_READ, iov, 40, offset, &moved),
            0);
        assert_int_equal(moved, total);
        if (writes)
            memcpy(s.model + offset, buffer, total);
        assert_memory_equal(buffer, s.model + offset, total);
    }
    scratch_compare(&s);
    assert_true(hipio_stats_get(HIPIO_COUNT_mapped_written) > 0);
    free(buffer);
}

/* The answer is a write call's, to the byte. */
static void vectors_of_bad_memory_are_errors(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *good =
        mmap(NULL, 20 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t moved = 99;

    memset(good, 0x33, 20 * page);
    assert_int_equal(mprotect(good + 10 * page, page, PROT_NONE), 0);
    const struct iovec iov[] = {{good, 4 * page}, {good + 6 * page, 10 * page}, {good, page}};
    assert_int_equal(s.storage->vector(s.file, HIPIO_WRITE, iov, 3, 5, &moved), -EFAULT);
    assert_int_equal(moved, 8 * page);
    memset(s.model + 5, 0x33, 8 * page);
    scratch_compare(&s);
    munmap(good, 20 * page);
}

static void impossible_places_are_refused(void **state)
{
    (void)state;
    struct hipio_layout *layout = scratch_vector(4, 2, 16);
    struct hipio_cursor cursor;
    char bytes[16] = {0};
    uint64_t moved;

    for (int op = HIPIO_READ; op <= HIPIO_WRITE; ++op) {
        const int64_t bases[] = {-1, INT64_MAX, INT64_MAX - 3, INT64_MIN};
        for (int i = 0; i < 4; ++i) {
            hipio_cursor_init(&cursor, layout, 0);
            assert_int_equal(
                s.storage->packed(s.file, (enum hipio_op)op, bytes, &cursor, bases[i], 8, &moved),
                -EINVAL);
            assert_int_equal(moved, 0);
            assert_int_equal(cursor.position, 0);
        }
        hipio_cursor_init(&cursor, layout, 0);
        assert_int_equal(s.storage->packed(s.file, (enum hipio_op)op, bytes, &cursor, 0, 9, &moved),
                         -EINVAL);
        assert_int_equal(moved, 8);
        assert_int_equal(scratch_move(&s, (enum hipio_op)op, layout, NULL, 0, &moved), 0);
    }
    hipio_layout_release(layout);
}

/* Neither a descriptor nor address space to be had: calls do it. */
static void scarce_resources(void **state)
{
    (void)state;
    struct hipio_layout *layout = scratch_vector(10000, 200, 16000);
    struct rlimit files, space;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, files.rlim_max}), 0);
    scratch_write(&s, layout, 2000000);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_written), 2000000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    scratch_compare(&s);

    scratch_reopen(&s, O_RDWR, BOTH);
    hipio_stats_reset();
    void *heap = malloc(8 << 20); /* what the test itself needs later */
    free(heap);
    assert_int_equal(getrlimit(RLIMIT_AS, &space), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){0, space.rlim_max}), 0);
    unsigned char byte = s.model[0];
    uint64_t moved = 0;
    int status = scratch_move(&s, HIPIO_WRITE, layout, &byte, 1, &moved);
    assert_int_equal(setrlimit(RLIMIT_AS, &space), 0);
    assert_int_equal(status, 0);
    assert_int_equal(moved, 1);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_mapped_written), 0);
    scratch_compare(&s);
    hipio_layout_release(layout);
}

#define full(f) cmocka_unit_test_setup_teardown(f, open_full, close_it)
#define part(f) cmocka_unit_test_setup_teardown(f, open_part, close_it)

static const struct CMUnitTest tests[] = {
    full(random_layouts_equal_the_model),
    part(files_grow),
    part(holes_are_filled),
    full(reads_end_where_the_file_ends),
    part(far_places_are_reached),
    part(windows_are_bounded),
    full(other_ways_of_opening),
    full(neighbours_keep_their_bytes),
    full(the_disk_has_it_after_fsync),
    full(writing_gives_the_file_its_times),
    full(vectors_equal_the_model),
    full(vectors_of_bad_memory_are_errors),
    full(impossible_places_are_refused),
    full(scarce_resources),
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
