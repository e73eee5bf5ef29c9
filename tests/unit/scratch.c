/* SPDX-License-Identifier: MIT */
/*
 * Scratch: see scratch.h.
 */
#include "scratch.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

uint64_t scratch_roll(struct scratch *scratch, uint64_t below)
{
    scratch->random ^= scratch->random << 13;
    scratch->random ^= scratch->random >> 7;
    scratch->random ^= scratch->random << 17;
    return scratch->random % below;
}

static void make_file(struct scratch *scratch, int access)
{
    struct hipio_tunables tunables = *hipio_tunables_process();

    tunables.mapping_window = UINT64_C(1) << 20;
    assert_int_equal(hipio_file_create(scratch->fd, "the/file", access, &tunables, &scratch->file),
                     0);
}

void scratch_open(struct scratch *scratch, const char *where, size_t size, size_t ends)
{
    char name[256];

    *scratch = (struct scratch){
        .storage = &hipio_storage_mapped, .size = size, .ends = ends, .random = 88172645463325252u};
    snprintf(name, sizeof name, "%s/hipio-test-XXXXXX", where);
    scratch->fd = mkstemp(name);
    assert_true(scratch->fd >= 0);
    unlink(name);
    scratch->model = calloc(1, size + 1);
    assert_non_null(scratch->model);
    for (size_t i = 0; i < ends; i++)
        scratch->model[i] = (unsigned char)scratch_roll(scratch, 256);
    assert_int_equal(write(scratch->fd, scratch->model, ends), ends);
    make_file(scratch, HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE);
}

void scratch_close(struct scratch *scratch)
{
    hipio_file_destroy(scratch->file);
    close(scratch->fd);
    free(scratch->model);
}

void scratch_reopen(struct scratch *scratch, int flags, int access)
{
    char path[64];

    hipio_file_destroy(scratch->file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", scratch->fd);
    const int fd = open(path, flags);
    assert_true(fd >= 0);
    close(scratch->fd);
    scratch->fd = fd;
    make_file(scratch, access);
}

struct hipio_layout *scratch_runs(struct scratch *scratch, uint64_t most)
{
    int64_t offset[400];
    uint64_t length[400];
    uint64_t n = 0;
    uint64_t at = scratch_roll(scratch, 5000);
    const uint64_t longest = (uint64_t[]){8, 300, 9000, 300000}[scratch_roll(scratch, 4)];
    const uint64_t widest = (uint64_t[]){8, 300, 5000, 100000}[scratch_roll(scratch, 4)];
    struct hipio_layout *out;

    while (n < 400) {
        length[n] = 1 + scratch_roll(scratch, longest);
        offset[n] = (int64_t)at;
        if (at + length[n] > most)
            break;
        at += length[n] + scratch_roll(scratch, widest);
        ++n;
    }
    assert_int_equal(hipio_layout_runs(n, offset, length, &out), 0);
    return out;
}

struct hipio_layout *scratch_vector(uint64_t block, uint64_t count, int64_t stride)
{
    struct hipio_layout *run;
    struct hipio_layout *out;

    assert_int_equal(hipio_layout_run(0, block, &run), 0);
    assert_int_equal(hipio_layout_vector(run, 0, count, stride, &out), 0);
    return out;
}

int scratch_move(struct scratch *scratch, enum hipio_op op, const struct hipio_layout *layout,
                 void *buffer, uint64_t length, uint64_t *moved)
{
    struct hipio_cursor cursor;

    hipio_cursor_init(&cursor, layout, 0);
    int status = scratch->storage->packed(scratch->file, op, buffer, &cursor, 0, length, moved);
    assert_int_equal(cursor.position, *moved);
    return status;
}

void scratch_read(struct scratch *scratch, const struct hipio_layout *layout, uint64_t length)
{
    const uint64_t want = hipio_layout_bytes_below(layout, 0, length, (int64_t)scratch->ends);
    unsigned char *got = malloc(length + 16);
    struct hipio_cursor cursor;
    uint64_t moved = 99;

    memset(got, 0xa5, length + 16);
    assert_int_equal(scratch_move(scratch, HIPIO_READ, layout, got, length, &moved), 0);
    assert_int_equal(moved, want);
    hipio_cursor_init(&cursor, layout, 0);
    for (uint64_t at = 0; at < want;) {
        int64_t offset = 0;
        const uint64_t n = hipio_cursor_next_run(&cursor, want - at, &offset);
        assert_memory_equal(got + at, scratch->model + offset, n);
        at += n;
    }
    for (uint64_t i = scratch->overtaken ? length : want; i < length + 16; ++i)
        assert_int_equal(got[i], 0xa5);
    free(got);
}

void scratch_write(struct scratch *scratch, const struct hipio_layout *layout, uint64_t length)
{
    unsigned char *bytes = malloc(length + 1);
    struct hipio_cursor cursor;
    uint64_t moved = 99;
    int64_t end = 0;

    hipio_cursor_init(&cursor, layout, 0);
    for (uint64_t at = 0; at < length;) {
        int64_t offset = 0;
        const uint64_t n = hipio_cursor_next_run(&cursor, length - at, &offset);
        for (uint64_t k = 0; k < n; ++k)
            bytes[at + k] = (unsigned char)scratch_roll(scratch, 256);
        memcpy(scratch->model + offset, bytes + at, n);
        at += n;
        end = offset + (int64_t)n;
    }
    assert_int_equal(scratch_move(scratch, HIPIO_WRITE, layout, bytes, length, &moved), 0);
    assert_int_equal(moved, length);
    if ((size_t)end > scratch->ends)
        scratch->ends = (size_t)end;
    free(bytes);
}

void scratch_compare(const struct scratch *scratch)
{
    unsigned char *now = malloc(scratch->ends + 1);

    assert_int_equal(pread(scratch->fd, now, scratch->ends + 1, 0), scratch->ends);
    assert_memory_equal(now, scratch->model, scratch->ends);
    free(now);
}
