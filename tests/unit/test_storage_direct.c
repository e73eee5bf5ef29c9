/* SPDX-License-Identifier: MIT */
/*
 * Storage, direct: the same bytes as through the page cache, at every alignment, and no other byte.
 */
#include "fault_calls.h"
#include "lanes.h"
#include "mapping.h"
#include "pattern.h"
#include "rig.h"
#include "run_check.h"
#include "stats.h"
#include "status.h"
#include "storage/storage.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define SIZE (768 * KIB)
#define FILE_SEED 3
#define MEMORY_SEED 4

static bool has_direct(void)
{
    const int fd = open("/tmp", O_TMPFILE | O_RDWR | O_DIRECT, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static uint64_t past_the_cache(void)
{
    return hipio_stats_get(HIPIO_COUNT_direct_bytes);
}

/* `length` bytes between the file's `offset` and memory `shift` bytes behind a page's start. */
static void move(struct rig *rig, enum hipio_op op, uint64_t shift, int64_t offset, uint64_t length)
{
    char *memory = aligned_alloc(4096, (length + shift + 8191) / 4096 * 4096);
    struct hipio_layout *in_memory = rig_run((int64_t)shift, length);
    struct hipio_layout *in_file = rig_run(offset, length);
    struct hipio_request request = rig_request(rig, op, memory, &rig_host, in_memory, in_file);

    if (op == HIPIO_WRITE)
        pattern_fill(memory, MEMORY_SEED, 0, length + shift);
    else
        memset(memory, 0xA5, length + shift);
    if (hipio_request_run(&request) != 0)
        fail_msg("%s", request.text);
    const struct run run = {shift, offset, request.done};
    if (op == HIPIO_READ)
        run_check_read(&run, (unsigned char *)memory, length + shift, FILE_SEED);
    else
        run_check_write(&run, rig->fd, (uint64_t)rig->size, MEMORY_SEED, FILE_SEED);
    hipio_layout_release(in_memory);
    hipio_layout_release(in_file);
    free(memory);
}

static const struct {
    uint64_t shift;
    int64_t offset;
    uint64_t length;
} places[] = {
    {0, 0, MIB},      {0, 4096, 8192},      {1, 0, 4096},        {0, 512, 4096},
    {512, 512, 4096}, {100, 100, SIZE / 2}, {0, 2048, SIZE / 2}, {0, 96, 300000},
    {7, 8191, 2},     {0, SIZE / 2 - 1, 2}, {4095, 4095, 4098},  {0, 0, SIZE},
    {1, 1, SIZE - 2}, {0, SIZE - 10, 10},
};

static void moves_every_alignment(void **state)
{
    static const char *const urings[] = {"off", "auto", "force"};

    (void)state;
    for (size_t u = 0; u < 3; u++)
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
                struct rig rig;
                print_message("uring %s, place %zu, op %d\n", urings[u], i, op);
                rig_open(&rig, RIG_READ_WRITE, FILE_SEED, SIZE);
                rig_set(&rig, "direct", "force");
                rig_set(&rig, "uring", urings[u]);
                move(&rig, op, places[i].shift, places[i].offset, places[i].length);
                rig_close(&rig);
            }
}

static void goes_past_the_cache_where_it_can(void **state)
{
    struct rig rig;

    (void)state;
    if (!has_direct())
        skip();
    rig_open(&rig, RIG_READ_WRITE, FILE_SEED, 2 * MIB);
    hipio_stats_reset();
    move(&rig, HIPIO_READ, 0, 0, MIB);
    assert_int_equal(past_the_cache(), 0);
    rig_set(&rig, "direct", "force");
    move(&rig, HIPIO_READ, 0, 0, MIB);
    assert_int_equal(past_the_cache(), MIB);
    move(&rig, HIPIO_READ, 100, 100, MIB);
    assert_true(past_the_cache() > 2 * MIB - 8192 && past_the_cache() < 2 * MIB);
    /* io_uring alone is no reason to go past the cache. */
    hipio_stats_reset();
    rig_set(&rig, "direct", "auto");
    rig_set(&rig, "uring", "force");
    move(&rig, HIPIO_READ, 0, 0, MIB);
    rig_set(&rig, "direct", "off");
    move(&rig, HIPIO_WRITE, 0, 0, MIB);
    assert_int_equal(past_the_cache(), 0);
    rig_close(&rig);
}

/* Pieces of memory, large and small, for one range of the file. */
static void gathers_pieces(void **state)
{
    static const uint64_t sizes[] = {100, 65536, 4096, 4096, 300000, 1, 70000, 5};
    struct rig rig;

    (void)state;
    for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
        int64_t offset[8];
        uint64_t length[8], at = 0;
        rig_open(&rig, RIG_READ_WRITE, FILE_SEED, 2 * MIB);
        rig_set(&rig, "direct", "force");
        for (int i = 0; i < 8; i++) {
            offset[i] = (int64_t)(at + 512 * (uint64_t)i);
            length[i] = sizes[i];
            at = (uint64_t)offset[i] + sizes[i];
        }
        struct hipio_layout *memory, *file;
        assert_int_equal(hipio_layout_runs(8, offset, length, &memory), 0);
        file = rig_run(4096, hipio_layout_size(memory));
        unsigned char *bytes = aligned_alloc(4096, (at + 4095) / 4096 * 4096);
        if (op == HIPIO_WRITE)
            pattern_fill(bytes, MEMORY_SEED, 0, at);
        else
            memset(bytes, 0xA5, at);
        struct hipio_request request = rig_request(&rig, op, bytes, &rig_host, memory, file);
        assert_int_equal(hipio_request_run(&request), 0);
        if (op == HIPIO_READ)
            rig_check_read(&request, bytes, at, FILE_SEED);
        else
            rig_check_write(&rig, &request, MEMORY_SEED, FILE_SEED);
        hipio_layout_release(memory);
        hipio_layout_release(file);
        free(bytes);
        rig_close(&rig);
    }
}

/* The other way round: many places of the file, as a strided view has them. */
static void follows_a_layout_of_the_file(void **state)
{
    static const uint64_t blocks[] = {4096, 100, 70000, 65536};
    struct rig rig;

    (void)state;
    for (size_t b = 0; b < 4; b++)
        for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
            rig_open(&rig, RIG_READ_WRITE, FILE_SEED, 2 * MIB);
            rig_set(&rig, "direct", "force");
            struct hipio_layout *file = rig_vector(blocks[b], 7, 131072);
            const uint64_t length = hipio_layout_size(file);
            struct hipio_layout *memory = rig_run(0, length);
            unsigned char *bytes = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
            struct hipio_cursor cursor;
            uint64_t moved;

            pattern_fill(bytes, MEMORY_SEED, 0, length);
            hipio_cursor_init(&cursor, file, 0);
            assert_int_equal(
                hipio_storage_direct.packed(rig.file, op, bytes, &cursor, 4096, length, &moved), 0);
            assert_int_equal(moved, length);
            assert_int_equal(cursor.position, length);
            struct hipio_request request = rig_request(&rig, op, bytes, &rig_host, memory, file);
            request.file_base = 4096;
            request.done = length;
            if (op == HIPIO_READ)
                rig_check_read(&request, bytes, length, FILE_SEED);
            else
                rig_check_write(&rig, &request, MEMORY_SEED, FILE_SEED);
            hipio_layout_release(memory);
            hipio_layout_release(file);
            free(bytes);
            rig_close(&rig);
        }
}

static void ends_at_the_end_of_the_file(void **state)
{
    static const struct {
        int64_t offset;
        uint64_t length, moved;
    } rows[] = {
        {0, 16384, 12298}, {12288, 4096, 10}, {16384, 4096, 0},
        {0, 12288, 12288}, {4096, MIB, 8202},
    };
    struct rig rig;

    (void)state;
    for (int uring = 0; uring < 2; uring++) {
        rig_open(&rig, RIG_READ_WRITE, FILE_SEED, 12298);
        rig_set(&rig, "direct", "force");
        rig_set(&rig, "uring", uring ? "force" : "off");
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char *bytes = aligned_alloc(4096, MIB);
            struct iovec iov = {bytes, rows[i].length};
            uint64_t moved = 77;

            memset(bytes, 0xA5, MIB);
            assert_int_equal(
                hipio_storage_direct.vector(rig.file, HIPIO_READ, &iov, 1, rows[i].offset, &moved),
                0);
            assert_int_equal(moved, rows[i].moved);
            assert_int_equal(pattern_check(bytes, FILE_SEED, (uint64_t)rows[i].offset, moved),
                             moved);
            for (uint64_t k = moved; k < rows[i].length; k++)
                assert_int_equal((unsigned char)bytes[k], 0xA5);
            free(bytes);
        }
        rig_close(&rig);
    }
}

/* R34: a file that its owner opened with O_DIRECT takes everything all the same. */
static void serves_files_that_are_direct(void **state)
{
    struct rig rig;
    char path[64];

    (void)state;
    if (!has_direct())
        skip();
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
            rig_open(&rig, RIG_READ_WRITE, FILE_SEED, SIZE);
            struct rig direct = rig;
            snprintf(path, sizeof path, "/proc/self/fd/%d", rig.fd);
            const int fd = open(path, O_RDWR | O_DIRECT);
            assert_true(fd >= 0);
            assert_int_equal(
                hipio_file_create(fd, "direct", RIG_READ_WRITE, &rig.tunables, &direct.file), 0);
            move(&direct, op, places[i].shift, places[i].offset, places[i].length);
            hipio_file_destroy(direct.file);
            close(fd);
            rig_close(&rig);
        }
}

static void reports_errors(void **state)
{
    struct hipio_tunables tunables = *hipio_tunables_process();
    char *bytes = aligned_alloc(4096, MIB);
    struct iovec iov = {bytes, MIB};
    struct hipio_file *file;
    uint64_t moved = 77;
    char path[] = "/tmp/hipio-unit-XXXXXX";
    const int made = mkstemp(path), fd = open(path, O_RDONLY);

    (void)state;
    unlink(path);
    assert_int_equal(hipio_tunables_set(&tunables, "direct", "force"), 0);
    assert_int_equal(hipio_file_create(fd, "read-only", HIPIO_ACCESS_READ, &tunables, &file), 0);
    assert_int_equal(hipio_storage_direct.vector(file, HIPIO_WRITE, &iov, 1, 0, &moved), -EBADF);
    assert_int_equal(moved, 0);
    assert_non_null(strstr(hipio_status_text(), "read-only: write of 1048576 bytes at offset 0"));
    hipio_file_destroy(file);
    free(bytes);
    close(fd);
    close(made);
}

/* What `memory` has after a read that failed or not: `moved` bytes of the file, and poison. */
static void check_moved(const unsigned char *memory, uint64_t length, uint64_t moved)
{
    assert_int_equal(pattern_check(memory, FILE_SEED, 0, moved), moved);
    for (uint64_t i = moved; i < length; i++)
        assert_int_equal(memory[i], 0xA5);
}

/* R34, R46: an error of storage is the caller's, with what had moved; a refusal of O_DIRECT,
 * however aligned the transfer is, never gets to him. */
static void tells_errors_from_refusals(void **state)
{
    static const struct {
        int error;
        bool refusal;
    } rows[] = {{EIO, false}, {ESTALE, false}, {ENOSPC, false}, {EINVAL, true}, {EOPNOTSUPP, true}};
    const uint64_t length = 256 * KIB;
    unsigned char *memory = aligned_alloc(4096, length);
    struct rig rig;

    (void)state;
    if (!has_direct())
        skip();
    rig_open(&rig, RIG_READ_WRITE, FILE_SEED, length);
    rig_set(&rig, "direct", "force");
    rig_set(&rig, "uring", "off");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (unsigned call = 1; call <= 4; call++) {
            struct iovec iov = {memory, length};
            uint64_t moved;
            memset(memory, 0xA5, length);
            fault_calls =
                (struct fault_calls){.most = 65536, .error_at = call, .error = rows[i].error};
            const int status =
                hipio_storage_direct.vector(rig.file, HIPIO_READ, &iov, 1, 0, &moved);
            fault_calls = (struct fault_calls){0};
            assert_int_equal(status, rows[i].refusal ? 0 : -rows[i].error);
            assert_int_equal(moved, rows[i].refusal ? length : (call - 1) * 65536);
            check_moved(memory, length, moved);
        }
    free(memory);
    rig_close(&rig);
}

static void is_chosen_when_it_is_asked_for(void **state)
{
    static const struct {
        const char *direct, *uring;
        bool mapped;
        const char *name;
    } rows[] = {
        {"auto", "auto", false, "buffered"}, {"auto", "auto", true, "mapped"},
        {"force", "auto", false, "direct"},  {"force", "off", true, "direct"},
        {"off", "force", false, "direct"},   {"off", "off", false, "buffered"},
    };
    struct rig rig;

    (void)state;
    rig_open(&rig, RIG_READ_WRITE, FILE_SEED, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rig_set(&rig, "direct", rows[i].direct);
        rig_set(&rig, "uring", rows[i].uring);
        assert_string_equal(hipio_storage_for(rig.file, rows[i].mapped)->name, rows[i].name);
    }
    rig_close(&rig);
}

/* The plan is for the storage that carries it out: no mapping where none is used, and as many lanes
 * as that storage can do with. */
static void is_planned_for(void **state)
{
    static const struct {
        const char *direct, *uring, *mapping;
        bool mapped, many;
    } rows[] = {
        {"auto", "auto", "force", true, true},   {"force", "auto", "force", false, true},
        {"force", "off", "auto", false, true},   {"auto", "force", "force", false, false},
        {"auto", "force", "auto", false, false}, {"off", "auto", "off", false, false},
    };
    struct hipio_layout *run = rig_run(0, 64 * MIB);
    struct rig rig;
    cpu_set_t cores;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof cores, &cores), 0);
    if (CPU_COUNT(&cores) < 2)
        skip();
    rig_open(&rig, RIG_READ_WRITE, FILE_SEED, 4096);
    assert_int_equal(ftruncate(rig.fd, 64 * (off_t)MIB), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hipio_plan plan;
        rig_set(&rig, "direct", rows[i].direct);
        rig_set(&rig, "uring", rows[i].uring);
        rig_set(&rig, "mapping", rows[i].mapping);
        struct hipio_request request = rig_request(&rig, HIPIO_WRITE, NULL, &rig_host, run, run);
        const struct hipio_part part = {.request = &request, .length = request.length};
        hipio_lanes_plan_storage(&part, true, &plan);
        print_message("row %zu: %u lanes\n", i, plan.lanes);
        assert_int_equal(plan.mapped,
                         rows[i].mapped && hipio_mapping_allows(rig.file, HIPIO_WRITE));
        assert_int_equal(plan.lanes > 1, rows[i].many && plan.mapped == rows[i].mapped);
    }
    hipio_layout_release(run);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_every_alignment),
        cmocka_unit_test(goes_past_the_cache_where_it_can),
        cmocka_unit_test(gathers_pieces),
        cmocka_unit_test(follows_a_layout_of_the_file),
        cmocka_unit_test(ends_at_the_end_of_the_file),
        cmocka_unit_test(serves_files_that_are_direct),
        cmocka_unit_test(reports_errors),
        cmocka_unit_test(tells_errors_from_refusals),
        cmocka_unit_test(is_chosen_when_it_is_asked_for),
        cmocka_unit_test(is_planned_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
