/* SPDX-License-Identifier: MIT */
/*
 * Uring, registered: staging chunks that the kernel keeps pinned. The bytes are right whatever
 * becomes of a chunk and its address, and nothing stays pinned longer than its chunk.
 */
#include "chunk_rig.h"
#include "one_by_one.h"
#include "pattern.h"
#include "run_check.h"
#include "stats.h"
#include <liburing.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- What is registered ---- */

/* Whole requests through staging chunks. */
static void run_staged(struct rig *rig, int64_t offset, uint64_t length)
{
    unsigned char *bytes = aligned_alloc(4096, 4 * MIB);
    struct hipio_layout *memory = rig_run(0, length), *file = rig_run(offset, length);
    const struct run run = {0, offset, length};

    memset(bytes, 0xA5, 4 * MIB);
    struct hipio_request request = rig_request(rig, HIPIO_READ, bytes, &rig_host, memory, file);
    assert_int_equal(hipio_request_run(&request), 0);
    run_check_read(&run, bytes, 4 * MIB, CHUNK_SEED);
    pattern_fill(bytes, CHUNK_SEED + 1, 0, length);
    request = rig_request(rig, HIPIO_WRITE, bytes, &rig_host, memory, file);
    assert_int_equal(hipio_request_run(&request), 0);
    run_check_write(&run, rig->fd, 4 * MIB, CHUNK_SEED + 1, CHUNK_SEED);
    pattern_fill(bytes, CHUNK_SEED, 0, 4 * MIB);
    assert_int_equal(pwrite(rig->fd, bytes, 4 * MIB, 0), 4 * MIB);
    hipio_layout_release(memory);
    hipio_layout_release(file);
    free(bytes);
}

static void moves_staged_requests(void **state)
{
    static const struct {
        const char *direct, *uring, *registered;
        bool all, some;
    } rows[] = {
        {"force", "auto", "auto", true, true},   {"force", "auto", "force", true, true},
        {"force", "auto", "off", false, false},  {"auto", "force", "auto", false, false},
        {"auto", "force", "force", true, true},  {"force", "force", "auto", false, true},
        {"force", "off", "force", false, false},
    };

    (void)state;
    chunk_need_registering();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig rig;
        rig_open(&rig, RIG_READ_WRITE, CHUNK_SEED, 4 * MIB);
        rig_set(&rig, "fallback", "force");
        rig_set(&rig, "direct", rows[i].direct);
        rig_set(&rig, "uring", rows[i].uring);
        rig_set(&rig, "uring_registered", rows[i].registered);
        hipio_stats_reset();
        run_staged(&rig, 0, 4 * MIB);
        run_staged(&rig, 100, 3 * MIB + 7);
        run_staged(&rig, 4096, 2 * MIB);
        print_message("row %zu: %llu of %llu bytes\n", i, (unsigned long long)chunk_registered(),
                      (unsigned long long)chunk_through_rings());
        assert_int_equal(chunk_registered() > 0, rows[i].some);
        assert_int_equal(chunk_registered() > 0 && chunk_registered() == chunk_through_rings(),
                         rows[i].all);
        assert_int_equal(chunk_refused(), 0);
        chunk_close(&rig);
    }
}

/* R4: the application may free its memory and get another at the same address. */
static void leaves_memory_of_others_alone(void **state)
{
    unsigned char *bytes = aligned_alloc(4096, CHUNK);
    struct hipio_layout *run = rig_run(0, CHUNK);
    struct rig rig;

    (void)state;
    chunk_need_registering();
    chunk_open(&rig);
    rig_set(&rig, "uring_registered", "force");
    struct hipio_request request = rig_request(&rig, HIPIO_READ, bytes, &rig_host, run, run);
    assert_int_equal(hipio_request_run(&request), 0);
    assert_int_equal(pattern_check(bytes, CHUNK_SEED, 0, CHUNK), CHUNK);
    assert_int_equal(chunk_through_rings(), CHUNK);
    assert_int_equal(chunk_registered(), 0);
    assert_int_equal(chunk_pinned(), 0);
    hipio_layout_release(run);
    free(bytes);
    chunk_close(&rig);
}

/* ---- Where memory ends ---- */

static void pins_a_chunk_once_and_as_long_as_it_is_there(void **state)
{
    static const char *const depths[] = {"1", "16", "256", "3"};
    struct rig rig;

    (void)state;
    chunk_need_registering();
    chunk_open(&rig);
    struct hipio_slot *one = chunk_borrow_of(&hipio_device_host, CHUNK, 2 * CHUNK);
    struct hipio_slot *two = chunk_borrow_of(&hipio_device_host, CHUNK, 2 * CHUNK);
    for (unsigned i = 0; i < 4; i++) {
        rig_set(&rig, "queue_depth", depths[i]);
        chunk_use(&rig, one, 20);
        assert_int_equal(chunk_pinned(), (i ? 2 : 1) * CHUNK);
        chunk_use(&rig, two, 30);
        assert_int_equal(chunk_pinned(), 2 * CHUNK);
    }
    hipio_slots_return(one);
    hipio_slots_return(two);
    /* Chunks of another size need the room of one, and of both. */
    struct hipio_slot *half = chunk_borrow_of(&hipio_device_host, CHUNK / 2, 2 * CHUNK);
    assert_int_equal(chunk_pinned(), CHUNK);
    struct hipio_slot *large = chunk_borrow_of(&hipio_device_host, 3 * CHUNK / 2, 2 * CHUNK);
    assert_int_equal(chunk_pinned(), 0);
    chunk_use(&rig, large, 40);
    assert_int_equal(chunk_pinned(), 3 * CHUNK / 2);
    hipio_slots_return(half);
    hipio_slots_return(large);
    assert_int_equal(chunk_registered(), chunk_through_rings());
    chunk_close(&rig);
}

/* Chunks that all lie at one address, one after the other, each with pages of its own. */
static char *one_address;

static void *map_at_one_address(size_t bytes, int protection)
{
    void *memory = mmap(one_address, bytes, protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | (one_address ? MAP_FIXED : 0), -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

static int alloc_at_one_address(int device, size_t bytes, void **out)
{
    (void)device;
    *out = map_at_one_address(bytes, PROT_READ | PROT_WRITE);
    return 0;
}

/* The pages go, the address stays reserved. */
static int free_at_one_address(int device, void *memory)
{
    (void)device;
    assert_ptr_equal(memory, one_address);
    map_at_one_address(CHUNK, PROT_NONE);
    return 0;
}

/* What the test below is about: the kernel itself goes on using the pages that were registered. */
static void see_old_pages(struct rig *rig)
{
    struct iovec iov = {NULL, CHUNK};
    struct io_uring_cqe *cqe;
    struct io_uring uring;
    unsigned char byte = 0;

    assert_int_equal(alloc_at_one_address(-1, CHUNK, &iov.iov_base), 0);
    memset(iov.iov_base, 'o', CHUNK);
    assert_int_equal(io_uring_queue_init(1, &uring, 0), 0);
    assert_int_equal(io_uring_register_buffers(&uring, &iov, 1), 0);
    free_at_one_address(-1, iov.iov_base);
    assert_int_equal(alloc_at_one_address(-1, CHUNK, &iov.iov_base), 0);
    memset(iov.iov_base, 'n', CHUNK);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&uring);
    io_uring_prep_write_fixed(sqe, rig->fd, iov.iov_base, 4096, 0, 0);
    assert_int_equal(io_uring_submit(&uring), 1);
    assert_int_equal(io_uring_wait_cqe(&uring, &cqe), 0);
    assert_int_equal(cqe->res, 4096);
    io_uring_cqe_seen(&uring, cqe);
    assert_int_equal(pread(rig->fd, &byte, 1, 0), 1);
    assert_int_equal(byte, 'o');
    io_uring_unregister_buffers(&uring);
    io_uring_queue_exit(&uring);
    free_at_one_address(-1, iov.iov_base);
}

static void knows_chunks_by_more_than_their_address(void **state)
{
    struct hipio_device_ops ops = hipio_device_host;
    struct rig rig;

    (void)state;
    chunk_need_registering();
    chunk_open(&rig);
    ops.host_alloc = alloc_at_one_address;
    ops.host_free = free_at_one_address;
    one_address = map_at_one_address(CHUNK, PROT_NONE);
    see_old_pages(&rig);
    for (uint64_t i = 0; i < 6; i++) {
        struct hipio_slot *slot = chunk_borrow_of(&ops, CHUNK, CHUNK);
        assert_ptr_equal(slot->memory, one_address);
        chunk_use(&rig, slot, 10 * i);
        assert_int_equal(chunk_pinned(), CHUNK);
        hipio_slots_return(slot);
        /* It gives way to another kind, or ends with all. */
        if (i % 2)
            hipio_slots_return(chunk_borrow_of(&hipio_device_host, CHUNK, CHUNK));
        hipio_slots_shutdown();
        assert_int_equal(chunk_pinned(), 0);
    }
    assert_int_equal(chunk_registered(), 12 * CHUNK);
    chunk_close(&rig);
}

/* ---- Many ---- */

/* A process of few descriptors gets few rings; the chunks take turns. */
static void serves_more_chunks_than_rings(void **state)
{
    const struct rlimit few = {64, 64};
    struct hipio_slot *slot[12];
    struct rig rig;

    (void)state;
    chunk_need_registering();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    chunk_open(&rig);
    for (int i = 0; i < 12; i++)
        slot[i] = chunk_borrow();
    chunk_use(&rig, slot[0], 1);
    const unsigned descriptors = chunk_descriptors();
    for (uint64_t round = 0; round < 3; round++)
        for (uint64_t i = 0; i < 12; i++) {
            chunk_use(&rig, slot[i], 100 * round + i);
            assert_true(chunk_pinned() <= 4 * CHUNK);
        }
    assert_int_equal(chunk_descriptors(), descriptors + 3);
    assert_int_equal(chunk_pinned(), 4 * CHUNK);
    assert_int_equal(chunk_registered(), 37 * 2 * CHUNK);
    for (int i = 0; i < 12; i++)
        hipio_slots_return(slot[i]);
    chunk_close(&rig);
}

/* Lanes as they are, with chunks of two sizes that push each other out. */
static void *use_chunks(void *id)
{
    const uint64_t bytes = (uintptr_t)id % 2 ? CHUNK : CHUNK + 4096;
    struct rig rig;

    chunk_open(&rig);
    for (uint64_t i = 0; i < 6; i++) {
        struct hipio_slot *one = chunk_borrow_of(&hipio_device_host, bytes, 6 * CHUNK), *two;
        const struct hipio_slots_want want = {
            .ops = &hipio_device_host, .device = -1, .bytes = bytes, .limit = 6 * CHUNK};
        chunk_use(&rig, one, i);
        if (hipio_slots_borrow(&want, false, &two) == 0) {
            chunk_use(&rig, two, i + 77);
            chunk_use(&rig, one, i + 7);
            hipio_slots_return(two);
        }
        hipio_slots_return(one);
    }
    rig_close(&rig);
    return NULL;
}

static void serves_a_crowd(void **state)
{
    pthread_t threads[4];
    struct rig rig;

    (void)state;
    chunk_need_registering();
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_chunks, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(chunk_registered(), chunk_through_rings());
    assert_true(chunk_pinned() <= 6 * CHUNK);
    chunk_open(&rig);
    chunk_close(&rig);
}

/* R91: the pages that are registered stay the parent's. */
static void stays_with_the_parent(void **state)
{
    struct rig rig;
    int status, gate[2];
    char byte;

    (void)state;
    chunk_need_registering();
    chunk_open(&rig);
    struct hipio_slot *slot = chunk_borrow();
    chunk_use(&rig, slot, 1);
    assert_int_equal(pipe(gate), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) != 0);
    }
    chunk_use(&rig, slot, 2);
    assert_int_equal(chunk_registered(), 4 * CHUNK);
    hipio_slots_return(slot);
    hipio_slots_shutdown();
    /* The child still has the ring's descriptor. */
    assert_int_equal(chunk_pinned(), 0);
    close(gate[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    chunk_close(&rig);
}

int main(int argc, char **argv)
{
    const struct one_test tests[] = {
        {"moves_staged_requests", NULL, moves_staged_requests},
        {"leaves_memory_of_others_alone", NULL, leaves_memory_of_others_alone},
        {"pins_a_chunk_once_and_as_long_as_it_is_there", NULL,
         pins_a_chunk_once_and_as_long_as_it_is_there},
        {"knows_chunks_by_more_than_their_address", NULL, knows_chunks_by_more_than_their_address},
        {"serves_more_chunks_than_rings", NULL, serves_more_chunks_than_rings},
        {"serves_a_crowd", NULL, serves_a_crowd},
        {"stays_with_the_parent", NULL, stays_with_the_parent},
    };
    return one_by_one(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
