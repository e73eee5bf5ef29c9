/* SPDX-License-Identifier: MIT */
/*
 * Slots: the limit holds, nobody waits for ever, and a refusal of pinned memory costs speed only.
 */
#include "fake_device.h"
#include "log.h"
#include "slots.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define CHUNK 65536u

static struct hipio_slots_want want(int device, uint64_t bytes, uint64_t limit)
{
    return (struct hipio_slots_want){
        .ops = &fake_device, .device = device, .bytes = bytes, .limit = limit};
}

static int set_up(void **state)
{
    (void)state;
    fake_reset();
    hipio_stats_reset();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hipio_slots_shutdown();
    assert_int_equal(fake_counters().pinned, 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    return 0;
}

static struct hipio_slot *borrow(const struct hipio_slots_want *what, bool wait)
{
    struct hipio_slot *slot = NULL;
    assert_int_equal(hipio_slots_borrow(what, wait, &slot), 0);
    assert_int_equal(slot->bytes, what->bytes);
    assert_int_equal((uintptr_t)slot->memory % 4096, 0);
    return slot;
}

static void keeps_and_reuses_slots(void **state)
{
    (void)state;
    struct hipio_slots_want what = want(0, CHUNK, 4 * CHUNK);
    struct hipio_slot *slot = borrow(&what, true);
    void *memory = slot->memory;

    assert_true(slot->pinned);
    hipio_slots_return(slot);
    slot = borrow(&what, true);
    assert_ptr_equal(slot->memory, memory);
    hipio_slots_return(slot);
    assert_int_equal(fake_counters().pinned, CHUNK);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), CHUNK);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), CHUNK);
    hipio_slots_return(NULL);
}

static void stops_at_the_limit(void **state)
{
    (void)state;
    struct hipio_slots_want what = want(0, CHUNK, 3 * CHUNK + 1);
    struct hipio_slot *slot[3], *none = NULL;

    for (int i = 0; i < 3; i++)
        slot[i] = borrow(&what, false);
    assert_int_equal(hipio_slots_borrow(&what, false, &none), -EAGAIN);
    assert_null(none);
    for (int i = 0; i < 3; i++)
        hipio_slots_return(slot[i]);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), 3 * CHUNK);
}

/* Idle slots of another device or size give way; lent ones do not. */
static void makes_room_among_other_kinds(void **state)
{
    (void)state;
    struct hipio_slots_want here = want(0, CHUNK, 2 * CHUNK);
    struct hipio_slots_want there = want(1, CHUNK, 2 * CHUNK);
    struct hipio_slots_want large = want(0, 2 * CHUNK, 2 * CHUNK);
    struct hipio_slot *a = borrow(&here, true), *b = borrow(&here, true), *none;

    hipio_slots_return(a);
    a = borrow(&there, false);
    assert_int_equal(a->device, 1);
    assert_int_equal(hipio_slots_borrow(&large, false, &none), -EAGAIN);
    hipio_slots_return(a);
    hipio_slots_return(b);
    a = borrow(&large, false);
    hipio_slots_return(a);
    assert_int_equal(fake_counters().pinned, 2 * CHUNK);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_peak), 2 * CHUNK);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_unpinned_slots), 0);
}

/* R88: pinned memory is refused from the start. */
static void goes_on_without_pinned_memory(void **state)
{
    (void)state;
    struct hipio_slots_want what = want(0, CHUNK, 4 * CHUNK);
    struct hipio_slot *none;

    fake_fail(FAKE_HOST_ALLOC, 0, 1000, -ENOMEM);
    assert_int_equal(hipio_slots_borrow(&what, false, &none), -EAGAIN);
    for (int i = 0; i < 3; i++) {
        struct hipio_slot *slot = borrow(&what, true);
        assert_false(slot->pinned);
        ((char *)slot->memory)[CHUNK - 1] = 1;
        hipio_slots_return(slot);
    }
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_unpinned_slots), 3);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
}

static void takes_ordinary_memory_where_the_limit_has_no_room(void **state)
{
    (void)state;
    struct hipio_slots_want what = want(0, CHUNK, CHUNK - 1);
    struct hipio_slot *slot = borrow(&what, true);

    assert_false(slot->pinned);
    hipio_slots_return(slot);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_unpinned_slots), 1);
}

/* R75: pinning is refused after the first slots: who waits gets one of those. */
struct waiter {
    struct hipio_slots_want what;
    atomic_bool got;
};

static void *wait_for_slot(void *argument)
{
    struct waiter *waiter = argument;
    struct hipio_slot *slot = borrow(&waiter->what, true);
    waiter->got = true;
    bool pinned = slot->pinned;
    hipio_slots_return(slot);
    return pinned ? waiter : NULL;
}

static void waits_for_what_exists(void **state)
{
    (void)state;
    struct waiter waiter = {.what = want(0, CHUNK, 16 * CHUNK)};
    struct hipio_slot *slot = borrow(&waiter.what, true);
    pthread_t thread;
    void *pinned;

    fake_fail(FAKE_HOST_ALLOC, 0, 1000, -ENOMEM);
    pthread_create(&thread, NULL, wait_for_slot, &waiter);
    usleep(20000);
    assert_false(waiter.got);
    hipio_slots_return(slot);
    pthread_join(thread, &pinned);
    assert_ptr_equal(pinned, &waiter);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_unpinned_slots), 0);
}

/* R73: many users of a pool that is too small, each with the pattern of a lane: wait for one, take
 * a second if it is there. Two devices and two sizes make them evict each other. */
static void *use_slots(void *argument)
{
    size_t id = (size_t)argument;
    struct hipio_slots_want what = want((int)(id % 2), id % 4 < 2 ? CHUNK : 2 * CHUNK, 4 * CHUNK);

    for (int i = 0; i < 200; i++) {
        struct hipio_slot *one = borrow(&what, true), *two = NULL;
        bool second = one->pinned && hipio_slots_borrow(&what, false, &two) == 0;
        ((char *)one->memory)[i] = (char)i;
        if (second)
            ((char *)two->memory)[i] = (char)i;
        if (i % 16 == 0)
            usleep(100);
        hipio_slots_return(one);
        if (second)
            hipio_slots_return(two);
    }
    return NULL;
}

static void serves_a_crowd_within_the_limit(void **state)
{
    (void)state;
    pthread_t thread[12];

    for (size_t i = 0; i < 12; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use_slots, (void *)i), 0);
    for (size_t i = 0; i < 12; i++)
        pthread_join(thread[i], NULL);
    assert_true(hipio_stats_get(HIPIO_COUNT_pinned_peak) <= 4 * CHUNK);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_unpinned_slots), 0);
}

/* Pinned chunks are standing memory from beginning to end, and never twice the same. */
static uint64_t last_gone;

static void remember(uint64_t serial)
{
    last_gone = serial;
}

static void tells_of_standing_memory(void **state)
{
    (void)state;
    struct hipio_slots_want what = want(0, CHUNK, CHUNK);
    struct hipio_slot *slot = borrow(&what, true);
    struct hipio_standing found;
    const char *memory = slot->memory;

    hipio_standing_watch(remember);
    assert_true(hipio_standing_find(memory, CHUNK, &found));
    const uint64_t serial = found.serial;
    assert_ptr_equal(found.memory, memory);
    assert_int_equal(found.bytes, CHUNK);
    assert_true(hipio_standing_find(memory + CHUNK - 1, 1, &found));
    assert_false(hipio_standing_find(memory + CHUNK - 1, 2, &found));
    assert_false(hipio_standing_find(memory + 1, CHUNK, &found));
    assert_false(hipio_standing_find(memory + 1, UINT64_MAX, &found));
    assert_false(hipio_standing_find(memory - 1, 1, &found));
    assert_false(hipio_standing_find(&what, sizeof what, &found));
    hipio_slots_return(slot);
    assert_true(hipio_standing_find(memory, CHUNK, &found));
    what.device = 1;
    slot = borrow(&what, true);
    assert_int_equal(last_gone, serial);
    assert_true(hipio_standing_find(slot->memory, CHUNK, &found));
    assert_true(found.serial > serial);
    what.device = 0;
    struct hipio_slot *ordinary;
    assert_int_equal(hipio_slots_borrow(&what, false, &ordinary), -EAGAIN);
    hipio_slots_return(slot);
    what.limit = 0;
    ordinary = borrow(&what, true);
    assert_false(hipio_standing_find(ordinary->memory, CHUNK, &found));
    hipio_slots_return(ordinary);
    hipio_slots_shutdown();
    assert_int_equal(last_gone, found.serial);
    hipio_standing_watch(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_and_reuses_slots, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stops_at_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(makes_room_among_other_kinds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(goes_on_without_pinned_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(takes_ordinary_memory_where_the_limit_has_no_room, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tells_of_standing_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waits_for_what_exists, set_up, tear_down),
        cmocka_unit_test_setup_teardown(serves_a_crowd_within_the_limit, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
