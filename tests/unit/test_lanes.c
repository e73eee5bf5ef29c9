/* SPDX-License-Identifier: MIT */
/*
 * Lanes: pieces add up to the gap-free prefix and the first error in packed order, whichever thread
 * met it, and the threads come and go.
 */
#include "engine.h"
#include "fake_device.h"
#include "lanes.h"
#include "stats.h"
#include "status.h"
#include "swap.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PIECE 10

/* What the carriers do and what they saw. */
struct work {
    uint64_t bad_piece[2]; /* start of pieces that go wrong; UINT64_MAX: none */
    int bad_status[2];
    uint64_t bad_moved[2];
    unsigned unfit;                /* lanes below this number can't work */
    uint64_t waits;                /* start of a piece that waits ... */
    uint64_t waits_until;          /* ... until this one was reported */
    atomic_ullong taken, reported; /* highest start of a piece so far, plus 1 */
    atomic_uint lanes;
    atomic_uint pieces;
    unsigned char seen[4096];
};

static void raise_to(atomic_ullong *mark, uint64_t value)
{
    unsigned long long seen = *mark;
    while (seen < value && !atomic_compare_exchange_weak(mark, &seen, value))
        ;
}

/* Two pieces in hand at once, and the wanted one of them comes first. */
static void keep_order(struct work *work, const struct hipio_piece *piece)
{
    if (piece->start == work->waits)
        for (int i = 0; i < 10000 && work->reported <= work->waits_until; i++)
            usleep(100);
    if (piece->start == work->waits_until)
        for (int i = 0; i < 10000 && work->taken <= work->waits; i++)
            usleep(100);
}

static void work_on(struct hipio_haul *haul, const struct hipio_piece *piece)
{
    struct work *work = haul->context;
    int status = 0;
    uint64_t moved = piece->length;

    work->pieces++;
    raise_to(&work->taken, piece->start + 1);
    keep_order(work, piece);
    for (int i = 0; i < 2; i++) {
        if (piece->start == work->bad_piece[i]) {
            status = work->bad_status[i];
            moved = work->bad_moved[i];
        }
    }
    if (status < 0)
        hipio_status_set(status, "piece at %llu", (unsigned long long)piece->start);
    for (uint64_t i = 0; i < moved; i++)
        work->seen[piece->start + i]++;
    hipio_lanes_report(haul, piece, moved, status);
    if (piece->start == work->waits_until)
        raise_to(&work->reported, piece->start + 1);
}

static void carry(struct hipio_haul *haul, unsigned lane)
{
    struct work *work = haul->context;
    struct hipio_piece piece;

    work->lanes++;
    if (lane < work->unfit) {
        hipio_lanes_unfit(haul, hipio_status_set(-ENOMEM, "lane %u has no stream", lane));
        return;
    }
    while (hipio_lanes_take(haul, &piece))
        work_on(haul, &piece);
}

static struct work no_trouble(void)
{
    return (struct work){
        .bad_piece = {UINT64_MAX, UINT64_MAX}, .waits = UINT64_MAX, .waits_until = UINT64_MAX};
}

static int run(struct work *work, unsigned lanes, uint64_t start, uint64_t length, uint64_t *moved)
{
    struct hipio_haul haul = {.start = start,
                              .length = length,
                              .piece = PIECE,
                              .lanes = lanes,
                              .carry = carry,
                              .context = work};
    return hipio_lanes_run(&haul, moved);
}

static void carries_every_byte_once(void **state)
{
    (void)state;
    for (unsigned lanes = 1; lanes <= 20; lanes++) {
        struct work work = no_trouble();
        uint64_t moved;
        assert_int_equal(run(&work, lanes, 5, 3001, &moved), 0);
        assert_int_equal(moved, 3001);
        assert_int_equal(work.pieces, 301);
        assert_true(work.lanes >= 1 && work.lanes <= HIPIO_PLAN_LANES_MAX);
        for (int i = 0; i < 4096; i++)
            assert_int_equal(work.seen[i], i >= 5 && i < 3006);
    }
}

static void takes_the_first_error_in_packed_order(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct work work = no_trouble();
        uint64_t moved;
        /* Now the later piece fails first, now the earlier one. */
        work.waits = round % 2 ? 0 : 20;
        work.waits_until = round % 2 ? 20 : 0;
        work.bad_piece[0] = 0;
        work.bad_status[0] = -EIO;
        work.bad_moved[0] = 3;
        work.bad_piece[1] = 20;
        work.bad_status[1] = -ENOSPC;
        assert_int_equal(run(&work, 4, 0, 4000, &moved), -EIO);
        assert_int_equal(moved, 3);
        assert_string_equal(hipio_status_text(), "piece at 0");
    }
}

static void ends_at_the_end_of_the_file_before_a_later_error(void **state)
{
    (void)state;
    struct work work = no_trouble();
    uint64_t moved;

    work.waits = 0;
    work.waits_until = 10;
    work.bad_piece[0] = 0;
    work.bad_moved[0] = 7; /* status 0: the file ended */
    work.bad_piece[1] = 10;
    work.bad_status[1] = -EIO;
    assert_int_equal(run(&work, 4, 0, 1000, &moved), 0);
    assert_int_equal(moved, 7);
}

static void stops_early(void **state)
{
    (void)state;
    struct work work = no_trouble();
    uint64_t moved;

    work.bad_piece[0] = 100;
    work.bad_status[0] = -EIO;
    assert_int_equal(run(&work, 1, 0, 4000, &moved), -EIO);
    assert_int_equal(moved, 100);
    assert_int_equal(work.pieces, 11);
}

static void needs_one_fit_lane(void **state)
{
    (void)state;
    struct work work = no_trouble();
    uint64_t moved;

    work.unfit = 16;
    assert_int_equal(run(&work, 4, 0, 1000, &moved), -ENOMEM);
    assert_int_equal(moved, 0);
    assert_non_null(strstr(hipio_status_text(), "has no stream"));
}

static const struct hipio_swap_group groups[] = {{4, 4}, {3, 1}, {16, 16}};
static const struct hipio_swap swap = {23, 3, groups};

static void check_cuts(struct hipio_haul *haul, unsigned lane)
{
    struct hipio_piece piece;
    uint64_t wanted = haul->start;

    (void)lane;
    while (hipio_lanes_take(haul, &piece)) {
        assert_int_equal(piece.start, wanted);
        assert_true(piece.length > 0 && piece.length <= haul->piece);
        wanted = piece.start + piece.length;
        uint64_t position = haul->swap_start + wanted;
        if (wanted < haul->start + haul->length)
            assert_int_equal(hipio_swap_align(&swap, position), position);
        hipio_lanes_report(haul, &piece, piece.length, 0);
    }
    assert_int_equal(wanted, haul->start + haul->length);
}

static void cuts_pieces_between_elements(void **state)
{
    (void)state;
    for (uint64_t piece = 16; piece < 60; piece++) {
        struct hipio_haul haul = {.start = 4,
                                  .length = 1000,
                                  .piece = piece,
                                  .lanes = 1,
                                  .swap = &swap,
                                  .swap_start = 46,
                                  .carry = check_cuts};
        uint64_t moved;
        assert_int_equal(hipio_lanes_run(&haul, &moved), 0);
        assert_int_equal(moved, 1000);
    }
}

static void drops_what_lies_behind_a_broken_piece(void **state)
{
    (void)state;
    struct hipio_haul haul = {.length = 100, .broken = 40};
    pthread_mutex_init(&haul.lock, NULL);
    assert_true(hipio_lanes_wanted(&haul, &(struct hipio_piece){30, 10}));
    assert_false(hipio_lanes_wanted(&haul, &(struct hipio_piece){50, 10}));
    pthread_mutex_destroy(&haul.lock);
}

static void lends_streams_again(void **state)
{
    (void)state;
    struct hipio_lane *a, *b;

    assert_int_equal(hipio_lanes_borrow(&fake_device, 0, &a), 0);
    assert_int_equal(hipio_lanes_borrow(&fake_device, 1, &b), 0);
    assert_ptr_not_equal(a, b);
    hipio_lanes_return(a);
    hipio_lanes_return(b);
    struct hipio_lane *again;
    assert_int_equal(hipio_lanes_borrow(&fake_device, 0, &again), 0);
    assert_ptr_equal(again, a);
    assert_non_null(hipio_lanes_scratch(again));
    hipio_lanes_return(again);
    assert_int_equal(fake_counters().streams, 2);
    assert_int_equal(fake_counters().events, 4);

    fake_fail(FAKE_STREAM_CREATE, 0, 1, -EIO);
    assert_int_equal(hipio_lanes_borrow(&fake_device, 2, &a), -EIO);
    hipio_engine_shutdown();
    assert_int_equal(fake_counters().streams, 0);
    assert_int_equal(fake_counters().events, 0);
}

static void joins_its_threads(void **state)
{
    (void)state;
    struct work work = no_trouble();
    uint64_t moved;

    work.waits = 0;
    work.waits_until = 10;
    assert_int_equal(run(&work, 4, 0, 4000, &moved), 0);
    assert_true(hipio_stats_get(HIPIO_COUNT_threads) >= 1);
    hipio_engine_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    assert_int_equal(run(&work, 4, 0, 4000, &moved), 0);
    hipio_engine_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carries_every_byte_once),
        cmocka_unit_test(takes_the_first_error_in_packed_order),
        cmocka_unit_test(ends_at_the_end_of_the_file_before_a_later_error),
        cmocka_unit_test(stops_early),
        cmocka_unit_test(needs_one_fit_lane),
        cmocka_unit_test(cuts_pieces_between_elements),
        cmocka_unit_test(drops_what_lies_behind_a_broken_piece),
        cmocka_unit_test(lends_streams_again),
        cmocka_unit_test(joins_its_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
