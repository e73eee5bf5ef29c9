/* SPDX-License-Identifier: MIT */
/*
 * Rig: the same oracle for every test, one byte at a time.
 */
#include "rig.h"
#include "pattern.h"
#include "status.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

const struct hipio_memory rig_host = {HIPIO_MEMORY_HOST, -1, true, &hipio_device_host};

void rig_open(struct rig *rig, int access, uint64_t seed, uint64_t size)
{
    char path[] = "/tmp/hipio-unit-XXXXXX";

    rig->fd = mkstemp(path);
    assert_true(rig->fd >= 0);
    unlink(path);
    rig->size = (int64_t)size;
    unsigned char block[4096];
    for (uint64_t at = 0; at < size; at += sizeof block) {
        uint64_t n = size - at < sizeof block ? size - at : sizeof block;
        pattern_fill(block, seed, at, n);
        assert_int_equal(pwrite(rig->fd, block, n, (off_t)at), n);
    }
    rig->tunables = *hipio_tunables_process();
    assert_int_equal(hipio_file_create(rig->fd, "rig", access, &rig->tunables, &rig->file), 0);
}

void rig_close(struct rig *rig)
{
    hipio_file_destroy(rig->file);
    close(rig->fd);
}

void rig_set(struct rig *rig, const char *name, const char *value)
{
    if (hipio_tunables_set(&rig->tunables, name, value) < 0)
        fail_msg("%s", hipio_status_text());
    hipio_file_set_tunables(rig->file, &rig->tunables);
}

struct hipio_layout *rig_run(int64_t offset, uint64_t length)
{
    struct hipio_layout *layout;
    assert_int_equal(hipio_layout_run(offset, length, &layout), 0);
    return layout;
}

struct hipio_layout *rig_vector(uint64_t block, uint64_t count, int64_t stride)
{
    struct hipio_layout *layout;
    assert_int_equal(hipio_layout_vector(rig_run(0, block), 0, count, stride, &layout), 0);
    return layout;
}

void rig_limit(struct rig *rig, uint64_t bytes)
{
    rig->tunables.pinned_limit = bytes;
    hipio_file_set_tunables(rig->file, &rig->tunables);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

struct hipio_layout *rig_random(uint64_t seed, uint64_t n, uint64_t longest)
{
    struct hipio_layout *layout;
    int64_t *offset = malloc(n * sizeof *offset);
    uint64_t *length = malloc(n * sizeof *length);
    int64_t at = 0;

    for (uint64_t i = 0; i < n; i++) {
        at += (int64_t)(next_random(&seed) % longest);
        offset[i] = at;
        length[i] = 1 + next_random(&seed) % longest;
        at += (int64_t)length[i];
    }
    assert_int_equal(hipio_layout_runs(n, offset, length, &layout), 0);
    free(offset);
    free(length);
    return layout;
}

struct hipio_request rig_request(struct rig *rig, enum hipio_op op, void *base,
                                 const struct hipio_memory *memory,
                                 const struct hipio_layout *memory_layout,
                                 const struct hipio_layout *file_layout)
{
    uint64_t length = hipio_layout_size(memory_layout);

    if (hipio_layout_size(file_layout) < length)
        length = hipio_layout_size(file_layout);
    return (struct hipio_request){
        .op = op,
        .file = rig->file,
        .base = base,
        .memory = *memory,
        .memory_layout = memory_layout,
        .file_layout = file_layout,
        .length = length,
    };
}

/* Calls for each byte of the request that was done: its offset in memory and in the file. */
static void each_byte(const struct hipio_request *request,
                      void (*visit)(void *context, int64_t memory, int64_t file), void *context)
{
    struct hipio_cursor memory, file;
    int64_t in_memory, in_file;

    hipio_cursor_init(&memory, request->memory_layout, request->memory_start);
    hipio_cursor_init(&file, request->file_layout, request->file_start);
    for (uint64_t i = 0; i < request->done; i++) {
        assert_int_equal(hipio_cursor_next_run(&memory, 1, &in_memory), 1);
        assert_int_equal(hipio_cursor_next_run(&file, 1, &in_file), 1);
        visit(context, in_memory, request->file_base + in_file);
    }
}

struct picture {
    unsigned char *bytes;
    uint64_t size;
    uint64_t seed;
};

static void paint_memory(void *context, int64_t memory, int64_t file)
{
    struct picture *picture = context;
    assert_true(memory >= 0 && (uint64_t)memory < picture->size);
    picture->bytes[memory] = pattern_byte(picture->seed, (uint64_t)file);
}

static void paint_file(void *context, int64_t memory, int64_t file)
{
    struct picture *picture = context;
    assert_true(file >= 0 && (uint64_t)file < picture->size);
    picture->bytes[file] = pattern_byte(picture->seed, (uint64_t)memory);
}

static void compare(const unsigned char *found, const unsigned char *wanted, uint64_t size,
                    const char *where)
{
    for (uint64_t i = 0; i < size; i++)
        if (found[i] != wanted[i])
            fail_msg("%s byte %llu is %02x, not %02x", where, (unsigned long long)i, found[i],
                     wanted[i]);
}

void rig_check_read(const struct hipio_request *request, const unsigned char *bytes, uint64_t size,
                    uint64_t seed)
{
    struct picture wanted = {malloc(size), size, seed};

    memset(wanted.bytes, 0xA5, size);
    each_byte(request, paint_memory, &wanted);
    compare(bytes, wanted.bytes, size, "memory");
    free(wanted.bytes);
}

void rig_check_write(struct rig *rig, const struct hipio_request *request, uint64_t seed,
                     uint64_t before)
{
    struct stat now;
    assert_int_equal(fstat(rig->fd, &now), 0);
    uint64_t size = (uint64_t)now.st_size;
    struct picture wanted = {calloc(1, size + 1), size, seed};
    unsigned char *found = malloc(size + 1);

    pattern_fill(wanted.bytes, before, 0, (size_t)rig->size);
    each_byte(request, paint_file, &wanted);
    assert_int_equal(pread(rig->fd, found, size, 0), size);
    compare(found, wanted.bytes, size, "file");
    free(found);
    free(wanted.bytes);
}
