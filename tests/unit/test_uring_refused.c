/* SPDX-License-Identifier: MIT */
/*
 * Uring, refused: the kernel does not register staging chunks, or no more, or not these. The same
 * bytes move without, and nobody is told more than once.
 */
#include "chunk_rig.h"
#include "denial.h"
#include "log.h"
#include "one_by_one.h"
#include "stats.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* After the process's settings have been read, which set the level. */
static FILE *catch_notices(void)
{
    hipio_log_set_level(HIPIO_LOG_INFO);
    return catch_messages();
}

/* Four chunks twice, all through rings; how many of these transfers went registered. */
static uint64_t use_four(struct rig *rig)
{
    struct hipio_slot *slot[4];

    hipio_stats_reset();
    for (int i = 0; i < 4; i++)
        slot[i] = chunk_borrow();
    for (uint64_t i = 0; i < 8; i++)
        chunk_use(rig, slot[i % 4], 10 * i);
    for (int i = 0; i < 4; i++)
        hipio_slots_return(slot[i]);
    assert_int_equal(chunk_through_rings(), 16 * CHUNK);
    return chunk_registered() / CHUNK;
}

static void does_without(const char *reason)
{
    FILE *messages = catch_notices();
    struct rig rig;

    chunk_open(&rig);
    assert_int_equal(use_four(&rig), 0);
    assert_int_equal(chunk_refused(), 1);
    assert_int_equal(count_messages(messages, "can't be registered with io_uring"), 1);
    assert_int_equal(count_messages(messages, reason), 1);
    assert_int_equal(count_messages(messages, ""), 1);
    chunk_close(&rig);
}

/* R87: a filter lets rings through and registering not. */
static void does_without_where_it_is_forbidden(void **state)
{
    (void)state;
    chunk_need_registering();
    deny_call(SYS_io_uring_register, EPERM);
    does_without(strerror(EPERM));
}

/* What a kernel before 5.19 says. */
static void does_without_where_it_is_unknown(void **state)
{
    struct rig rig;

    (void)state;
    deny_call(SYS_io_uring_register, EINVAL);
    chunk_open(&rig);
    struct hipio_slot *slot = chunk_borrow();
    chunk_move(&rig, HIPIO_READ, slot);
    hipio_slots_return(slot);
    const bool there = chunk_through_rings() > 0;
    assert_int_equal(chunk_registered(), 0);
    assert_int_equal(chunk_refused(), there);
    assert_int_equal(use_four(&rig), 0);
    assert_int_equal(chunk_refused(), 0);
    chunk_close(&rig);
    if (!there)
        exit(77);
}

/* R88: as much as the limit allows, and without a word above the level of news. */
static void lives_within_the_limit_of_locked_memory(void **state)
{
    struct rig rig;

    (void)state;
    chunk_need_registering();
    FILE *messages = catch_notices();
    chunk_open(&rig);
    deny_locked_memory(2 * CHUNK + CHUNK / 2);
    const uint64_t some = use_four(&rig);
    print_message("%llu of 16 transfers\n", (unsigned long long)some);
    assert_true(some <= 8);
    assert_true(chunk_refused() >= 2 && chunk_refused() <= 4);
    assert_true(chunk_pinned() <= 2 * CHUNK);
    assert_int_equal(count_messages(messages, "see ulimit -l"), 1);
    assert_int_equal(count_messages(messages, ""), 1);
    chunk_close(&rig);
    chunk_open(&rig);
    deny_locked_memory(64 * KIB);
    assert_int_equal(use_four(&rig), 0);
    chunk_close(&rig);
}

/* Memory of a kind that can't be pinned for long: a mapping of a file. */
static int alloc_of_a_file(int device, size_t bytes, void **out)
{
    char path[] = "/tmp/hipio-unit-XXXXXX";
    const int fd = mkstemp(path);

    (void)device;
    unlink(path);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    *out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(*out != MAP_FAILED);
    close(fd);
    return 0;
}

static int free_of_a_file(int device, void *memory)
{
    (void)device;
    return munmap(memory, CHUNK);
}

static void leaves_memory_that_is_refused(void **state)
{
    struct hipio_device_ops ops = hipio_device_host;
    struct rig rig;

    (void)state;
    chunk_need_registering();
    chunk_open(&rig);
    ops.host_alloc = alloc_of_a_file;
    ops.host_free = free_of_a_file;
    struct hipio_slot *odd = chunk_borrow_of(&ops, CHUNK, 4 * CHUNK), *good = chunk_borrow();
    for (uint64_t i = 0; i < 3; i++) {
        chunk_use(&rig, odd, i);
        chunk_use(&rig, good, i);
    }
    /* Asked once, and no reason to do without where it works. */
    assert_int_equal(chunk_refused(), 1);
    assert_int_equal(chunk_registered(), 6 * CHUNK);
    assert_int_equal(chunk_through_rings(), 12 * CHUNK);
    hipio_slots_return(odd);
    hipio_slots_return(good);
    chunk_close(&rig);
}

/* The ban on everything comes when chunks are registered. */
static void survives_a_late_ban(void **state)
{
    struct rig rig;

    (void)state;
    chunk_need_registering();
    FILE *messages = catch_notices();
    chunk_open(&rig);
    struct hipio_slot *slot = chunk_borrow();
    chunk_use(&rig, slot, 1);
    assert_int_equal(chunk_registered(), 2 * CHUNK);
    deny_call(SYS_io_uring_enter, EPERM);
    chunk_use(&rig, slot, 2);
    chunk_use(&rig, slot, 3);
    assert_int_equal(chunk_registered(), 2 * CHUNK);
    assert_int_equal(count_messages(messages, "io_uring is refused here"), 1);
    assert_int_equal(count_messages(messages, ""), 1);
    hipio_slots_return(slot);
    chunk_close(&rig);
}

/* And here registering can't be undone any more: the ring is closed, and the kernel lets go of the
 * memory by itself, soon. */
static void closes_rings_that_hold_on_to_memory(void **state)
{
    const struct timespec pause = {0, 1000000};
    struct rig rig;

    (void)state;
    chunk_need_registering();
    chunk_open(&rig);
    struct hipio_slot *slot = chunk_borrow();
    chunk_use(&rig, slot, 1);
    assert_int_equal(chunk_pinned(), CHUNK);
    const unsigned descriptors = chunk_descriptors();
    deny_call(SYS_io_uring_register, EPERM);
    chunk_use(&rig, slot, 2);
    hipio_slots_return(slot);
    hipio_slots_shutdown();
    assert_int_equal(chunk_descriptors(), descriptors - 1);
    while (chunk_pinned() > 0)
        nanosleep(&pause, NULL);
    slot = chunk_borrow();
    chunk_use(&rig, slot, 3);
    hipio_slots_return(slot);
    assert_int_equal(chunk_registered(), 4 * CHUNK);
    assert_int_equal(chunk_through_rings(), 6 * CHUNK);
    chunk_close(&rig);
}

int main(int argc, char **argv)
{
    const struct one_test tests[] = {
        {"does_without_where_it_is_forbidden", NULL, does_without_where_it_is_forbidden},
        {"does_without_where_it_is_unknown", NULL, does_without_where_it_is_unknown},
        {"lives_within_the_limit_of_locked_memory", NULL, lives_within_the_limit_of_locked_memory},
        {"leaves_memory_that_is_refused", NULL, leaves_memory_that_is_refused},
        {"survives_a_late_ban", NULL, survives_a_late_ban},
        {"closes_rings_that_hold_on_to_memory", NULL, closes_rings_that_hold_on_to_memory},
    };
    return one_by_one(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
