/* SPDX-License-Identifier: MIT */
/*
 * Peer: what a vendor's call is asked for, with a mock in its place: sizes beyond 2 GiB, alignment,
 * order, and what becomes of its answers.
 */
#include "fake_device.h"
#include "peer.h"
#include "rig.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CALL_MAX 0x7ffff000ull
#define BASE ((uintptr_t)1 << 61) /* the fake device knows such addresses as its own */

static struct {
    bool present;
    int prepare;
    int status;     /* of call number `at` */
    uint64_t moves; /* in it */
    unsigned at;
    unsigned calls;
    uint64_t bytes;
    uint64_t longest;
    uint64_t staged;
    uint64_t position; /* where the next byte must be */
} mock;

static bool mock_present(const struct hipio_file *file)
{
    (void)file;
    return mock.present;
}

static int mock_prepare(struct hipio_file *file, int device)
{
    (void)file;
    (void)device;
    return mock.prepare < 0 ? hipio_status_set(mock.prepare, "not prepared") : 0;
}

static int mock_call(const struct hipio_request *request, void *address, int64_t offset,
                     uint64_t length, uint64_t *moved)
{
    (void)request;
    assert_int_equal((uintptr_t)address % 4096, 0);
    assert_int_equal(offset % 4096, 0);
    assert_int_equal(length % 4096, 0);
    assert_int_equal((uintptr_t)address - BASE, mock.position);
    assert_true(length <= CALL_MAX);
    *moved = mock.calls++ == mock.at ? mock.moves : length;
    mock.bytes += *moved;
    mock.position += *moved;
    mock.longest = length > mock.longest ? length : mock.longest;
    return mock.calls == mock.at + 1 && mock.status < 0
               ? hipio_status_set(mock.status, "the mock was told to fail")
               : 0;
}

static const struct hipio_backend direct_mock;

static const struct hipio_peer peer = {
    .backend = &direct_mock,
    .ops = &fake_device,
    .score = 100,
    .lanes = 1,
    .present = mock_present,
    .prepare = mock_prepare,
    .call = mock_call,
};

static int score(const struct hipio_part *part)
{
    return hipio_peer_score(&peer, part);
}

static int io(struct hipio_part *part)
{
    return hipio_peer_io(&peer, part);
}

static bool eligible(const struct hipio_part *part, int error)
{
    (void)part;
    return hipio_peer_is_eligible(error);
}

static const struct hipio_backend direct_mock = {
    "direct",         HIPIO_BACKEND_FAST_PATH,  score, io, eligible,
    hipio_peer_share, hipio_backend_unconcerned};

static int staging_score(const struct hipio_part *part)
{
    (void)part;
    return 1;
}

static int staging_io(struct hipio_part *part)
{
    assert_int_equal(part->start, mock.position - part->request->memory_start);
    part->moved = part->length;
    mock.staged += part->length;
    mock.position += part->length;
    return 0;
}

static bool never(const struct hipio_part *part, int error)
{
    (void)part;
    (void)error;
    return false;
}

static const struct hipio_backend staging_mock = {
    "staging",           HIPIO_BACKEND_STAGING,    staging_score, staging_io, never,
    hipio_backend_whole, hipio_backend_unconcerned};

static const struct hipio_memory gpu = {HIPIO_MEMORY_DEVICE, 0, false, &fake_device};

static int set_up(void **state)
{
    static struct rig rig;

    rig_open(&rig, RIG_READ_WRITE, 1, 4096);
    if (ftruncate(rig.fd, (off_t)8 << 30) != 0)
        return -1;
    mock = (typeof(mock)){.present = true, .at = UINT32_MAX};
    hipio_stats_reset();
    *state = &rig;
    return 0;
}

static int tear_down(void **state)
{
    rig_close(*state);
    return 0;
}

/* A request from `offset` on, in memory that lies as the file does. */
static struct hipio_request run(struct rig *rig, enum hipio_op op, uint64_t offset, uint64_t length)
{
    const struct hipio_backend *candidates[] = {&direct_mock, &staging_mock};
    struct hipio_layout *layout = rig_run(0, offset + length);
    struct hipio_request request = rig_request(rig, op, (void *)BASE, &gpu, layout, layout);

    request.memory_start = request.file_start = mock.position = offset;
    request.length = length;
    hipio_backend_run(&request, candidates, 2);
    hipio_layout_release(layout);
    return request;
}

static void moves_any_length_in_calls_that_are_short_enough(void **state)
{
    static const struct {
        uint64_t offset, length;
        unsigned calls;
    } rows[] = {
        {0, 2147483640, 1},
        {0, 2147479552, 1},
        {0, 2147479553, 1},
        {0, CALL_MAX + 4096, 2},
        {0, ((uint64_t)4 << 30) + 1, 3},
        {4096, (uint64_t)6 << 30, 4},
        {100, (uint64_t)3 << 30, 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int op = HIPIO_READ; op <= HIPIO_WRITE; op++) {
            mock.calls = 0;
            mock.bytes = mock.staged = mock.longest = 0;
            struct hipio_request request = run(*state, op, rows[i].offset, rows[i].length);
            print_message("row %zu\n", i);
            assert_int_equal(request.status, 0);
            assert_int_equal(request.done, rows[i].length);
            assert_int_equal(mock.calls, rows[i].calls);
            assert_int_equal(mock.bytes + mock.staged, rows[i].length);
            assert_true(mock.staged < 8192);
        }
}

/* {error, moved in the second call of two, whether the other path takes over} */
static void sorts_answers(void **state)
{
    static const struct {
        int status;
        uint64_t moves;
        bool mended;
    } rows[] = {
        {-ENODEV, 0, true},     {-EREMOTEIO, 4096, true}, {-EREMOTEIO, 1001, true},
        {-ENOTTY, 0, true},     {-EOPNOTSUPP, 0, true},   {-ENOSYS, 0, true},
        {-EINVAL, 0, true},     {-ENOMEM, 8192, true},    {-EIO, 4096, false},
        {-ENOSPC, 4096, false}, {-EDQUOT, 0, false},      {-EFBIG, 77, false},
        {-EBADF, 0, false},     {0, 4096, true},          {0, 5000, true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint64_t length = CALL_MAX + 1024 * 1024;
        mock.calls = 0;
        mock.bytes = mock.staged = 0;
        mock.at = 1;
        mock.status = rows[i].status;
        mock.moves = rows[i].moves;
        /* The staging mock becomes the fallback on the first round only. */
        if (i == 0)
            assert_int_equal(hipio_backend_set_fallback(&direct_mock, &staging_mock), 0);
        hipio_stats_reset();
        struct hipio_request request = run(*state, HIPIO_WRITE, 0, length);
        print_message("row %zu: %s\n", i, request.text);
        assert_int_equal(request.status, rows[i].mended ? 0 : rows[i].status);
        assert_int_equal(request.done, rows[i].mended ? length : CALL_MAX + rows[i].moves);
        assert_int_equal(mock.bytes + mock.staged, request.done);
        const bool fell_back = rows[i].mended && !(rows[i].status == 0 && rows[i].moves == 4096);
        assert_int_equal(hipio_stats_get(HIPIO_COUNT_fallbacks), fell_back);
    }
}

static void catches_a_count_that_is_too_large(void **state)
{
    mock.at = 0;
    mock.moves = 3 * 1024 * 1024;
    struct hipio_request request = run(*state, HIPIO_WRITE, 0, 1024 * 1024);
    assert_int_equal(request.status, -EIO);
    assert_int_equal(request.done, 0);
    assert_non_null(strstr(request.text, "says that it moved 3145728 of 1048576 bytes"));
}

static void believes_in_the_end_of_the_file_where_it_is(void **state)
{
    struct rig *rig = *state;

    mock.at = 0;
    mock.moves = 0;
    struct hipio_request request = run(rig, HIPIO_READ, 0, 1024 * 1024);
    /* The file goes on: the rest was moved by the other path. */
    assert_int_equal(request.status, 0);
    assert_int_equal(request.done, 1024 * 1024);
    assert_int_equal(mock.staged, 1024 * 1024);
}

static void falls_back_when_it_can_t_be_prepared(void **state)
{
    mock.prepare = -EOPNOTSUPP;
    struct hipio_request request = run(*state, HIPIO_WRITE, 0, 1024 * 1024);
    assert_int_equal(request.status, 0);
    assert_int_equal(mock.calls, 0);
    assert_int_equal(mock.staged, 1024 * 1024);
}

/* Score: which parts it takes, by memory, presence, size and settings. */
static void takes_what_it_can(void **state)
{
    struct rig *rig = *state;
    struct hipio_layout *layout = rig_run(0, 1 << 20);
    struct hipio_swap_group group = {8, 8};
    struct hipio_swap swap = {8, 1, &group};
    struct hipio_request request = rig_request(rig, HIPIO_READ, (void *)BASE, &gpu, layout, layout);
    struct hipio_part part = {&request, 0, 1 << 20, 0};

    assert_int_equal(score(&part), 100);
    mock.present = false;
    assert_int_equal(score(&part), -1);
    mock.present = true;
    request.swap = &swap;
    assert_int_equal(score(&part), -1);
    request.swap = NULL;
    request.memory.cpu_access = true;
    assert_int_equal(score(&part), -1);
    request.memory = (struct hipio_memory){HIPIO_MEMORY_MANAGED, 0, false, &fake_device};
    assert_int_equal(score(&part), -1);
    request.memory = rig_host;
    assert_int_equal(score(&part), -1);
    request.memory = gpu;
    part.length = 32768;
    assert_int_equal(score(&part), -1);
    rig_set(rig, "fastpath", "force");
    assert_int_equal(score(&part), 100);
    request.base = (void *)(BASE + 8);
    assert_int_equal(score(&part), -1);
    hipio_layout_release(layout);
}

/* A stride whose blocks are aligned is all its own, and so is every share of it. */
static void shares_are_gap_free(void **state)
{
    struct rig *rig = *state;
    struct hipio_layout *memory = rig_vector(300000, 20, 400000), *file = rig_run(77, 6000000);
    struct hipio_request request = rig_request(rig, HIPIO_READ, (void *)BASE, &gpu, memory, file);
    struct hipio_part part = {&request, 0, 6000000, 0};
    unsigned turns = 0;
    bool last = true, own;

    while (part.length > 0) {
        uint64_t share = hipio_peer_share(&part, &own);
        assert_true(share > 0 && share <= part.length);
        assert_true(turns == 0 || own != last);
        last = own;
        part.start += share;
        part.length -= share;
        turns++;
    }
    assert_true(turns >= 1);
    hipio_layout_release(memory);
    hipio_layout_release(file);
}

int main(void)
{
#define ROUND(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ROUND(sorts_answers),
        ROUND(moves_any_length_in_calls_that_are_short_enough),
        ROUND(catches_a_count_that_is_too_large),
        ROUND(believes_in_the_end_of_the_file_where_it_is),
        ROUND(falls_back_when_it_can_t_be_prepared),
        ROUND(takes_what_it_can),
        ROUND(shares_are_gap_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
