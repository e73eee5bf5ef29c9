/* SPDX-License-Identifier: MIT */
/*
 * Async: reads and writes in the order of streams, of every size around the slots of the bounce
 * buffer, fixed and late-bound, alone and many at once, on whichever runtime the environment names.
 */
#include "async_rig.h"
#include "device_app.h"
#include "pattern.h"
#include "stats.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096u
#define ALL_FIXED (HIPIO_FIXED_BUFFER_OFFSET | HIPIO_FIXED_FILE_OFFSET | HIPIO_FIXED_SIZE)
#define FILE_AT 5   /* nothing is aligned */
#define MEMORY_AT 3 /* ditto */
#define FLIGHTS 8
#define STREAMS 4

static uint64_t buffer_size; /* in force */
static uint64_t slot;
static size_t large;

/* ---- Sizes ---- */

/* Sets a call's parameters when the stream gets to it. */
struct binding {
    struct async_call *call;
    struct async_call values;
};

static void bind(void *argument)
{
    const struct binding *binding = argument;
    struct async_call *call = binding->call;

    __atomic_store_n(&call->size, binding->values.size, __ATOMIC_RELAXED);
    __atomic_store_n(&call->file_offset, binding->values.file_offset, __ATOMIC_RELAXED);
    __atomic_store_n(&call->buffer_offset, binding->values.buffer_offset, __ATOMIC_RELAXED);
}

/* One operation: `late` prepares for more than it turns out to be, at offsets that turn out to be
 * others. */
struct flight {
    struct async_call call;
    struct binding binding;
};

static void take_off(struct flight *flight, bool reads, bool late, struct hipio_handle *file,
                     void *memory, const struct async_call *values, void *stream)
{
    flight->call = *values;
    if (late) {
        flight->binding = (struct binding){&flight->call, *values};
        flight->call =
            (struct async_call){values->size + values->size / 2 + 7, 1 << 30, 1 << 30, 0};
        async_rig_call(stream, bind, &flight->binding);
    }
    async_rig_must(async_rig_queue(reads, file, memory, &flight->call, stream));
}

/* `n` operations of `size` bytes on each of `streams` streams, side by side in file and memory. */
static void fly(bool reads, bool late, size_t size, unsigned n, unsigned streams)
{
    const unsigned total = n * streams;
    const size_t step = size + 100;
    const size_t bytes = total * step + 64;
    struct flight *flights = calloc(total, sizeof *flights);
    void *stream[STREAMS];
    int fd = async_rig_file(1, bytes);
    unsigned char *memory = async_rig_memory(reads ? 0 : 2, bytes);
    struct hipio_handle *file = async_rig_open(fd);

    for (unsigned s = 0; s < streams; s++) {
        stream[s] = app_create_stream(1);
        async_rig_must(hipio_stream_register(stream[s], late ? 0 : ALL_FIXED));
    }
    for (unsigned i = 0; i < total; i++) {
        struct async_call values = {size, (off_t)(FILE_AT + i * step),
                                    (off_t)(MEMORY_AT + i * step), 0};
        take_off(&flights[i], reads, late, file, memory, &values, stream[i % streams]);
    }
    for (unsigned s = 0; s < streams; s++) {
        assert_int_equal(async_rig_synchronize(stream[s]), 0);
        assert_int_equal(hipio_stream_status(stream[s], NULL, 0), 0);
    }
    for (unsigned i = 0; i < total; i++) {
        const uint64_t at = i * step;

        async_rig_expect(&flights[i].call, (ssize_t)size);
        if (reads) {
            async_rig_check_memory(memory, at + MEMORY_AT, size, 1, at + FILE_AT);
            async_rig_check_poison(memory, at + MEMORY_AT + size, 100);
        } else {
            async_rig_check_file(fd, at + FILE_AT, size, 2, at + MEMORY_AT);
            async_rig_check_file(fd, at + FILE_AT + size, 40, 1, at + FILE_AT + size);
        }
    }
    for (unsigned s = 0; s < streams; s++) {
        async_rig_must(hipio_stream_deregister(stream[s]));
        app_destroy_stream(stream[s]);
    }
    hipio_deregister_file(file);
    close(fd);
    app_free(memory);
    free(flights);
}

static void each_size(bool late, unsigned n, unsigned streams)
{
    const size_t sizes[] = {0,        1,           slot - 1,        slot,
                            slot + 1, buffer_size, buffer_size + 1, n * streams == 1 ? large : 777};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fly(true, late, sizes[i], n, streams);
        fly(false, late, sizes[i], n, streams);
    }
}

static void sizes_fixed(void **state)
{
    (void)state;
    each_size(false, 1, 1);
}

static void sizes_late(void **state)
{
    (void)state;
    each_size(true, 1, 1);
}

static void many_in_flight(void **state)
{
    (void)state;
    each_size(false, FLIGHTS, 1);
    each_size(true, FLIGHTS, 1);
}

static void many_streams(void **state)
{
    (void)state;
    each_size(false, 2, STREAMS);
    each_size(true, 2, STREAMS);
}

/* A thousand operations through a small buffer, which is all the memory that they take. */
static void a_thousand(void **state)
{
    enum { N = 1000, BYTES = 3000 };
    static struct async_call calls[N];
    uint64_t pinned, now;
    int fd = async_rig_file(3, N * BYTES);
    unsigned char *memory = async_rig_memory(0, N * BYTES);
    struct hipio_handle *file = async_rig_open(fd);
    void *stream = app_create_stream(1);

    (void)state;
    async_rig_must(hipio_statistic("pinned_now", &pinned));
    async_rig_must(hipio_stream_register(stream, 0));
    for (int i = 0; i < N; i++) {
        calls[i] = (struct async_call){BYTES, i * BYTES, i * BYTES, 0};
        async_rig_must(async_rig_queue(true, file, memory, &calls[i], stream));
        async_rig_must(hipio_statistic("pinned_now", &now));
        assert_true(now <= pinned + buffer_size + PAGE);
    }
    assert_int_equal(async_rig_synchronize(stream), 0);
    for (int i = 0; i < N; i++)
        async_rig_expect(&calls[i], BYTES);
    async_rig_check_memory(memory, 0, N * BYTES, 3, 0);
    async_rig_must(hipio_stream_deregister(stream));
    async_rig_must(hipio_statistic("pinned_now", &now));
    assert_int_equal(now, pinned);
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
}

/* ---- Threads ---- */

struct party {
    pthread_t thread;
    struct hipio_handle *file;
    void *shared; /* a stream that all use */
    unsigned number;
};

#define PARTIES 4u
#define ROUNDS 15u

/* Its first GPU call is hipio's. Operations on the shared stream, on one of its own, and blocking
 * calls in between. */
static void *take_part(void *argument)
{
    const struct party *party = argument;
    const size_t bytes = slot + 77;
    const uint64_t base = (uint64_t)party->number * bytes;
    static unsigned char *memory[PARTIES];
    struct async_call calls[2 * ROUNDS];

    app_set_device(0);
    memory[party->number] = app_alloc(3 * bytes);
    void *own = app_create_stream(1);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < 2; k++) {
            calls[2 * i + k] = (struct async_call){bytes, (off_t)base, (off_t)(k * bytes), 0};
            async_rig_must(async_rig_queue(true, party->file, memory[party->number],
                                           &calls[2 * i + k], k ? own : party->shared));
        }
        if (hipio_read(party->file, memory[party->number], bytes, (off_t)base,
                       (off_t)(2 * bytes)) != (ssize_t)bytes)
            abort();
    }
    if (async_rig_synchronize(own) || async_rig_synchronize(party->shared))
        abort();
    for (unsigned i = 0; i < 2 * ROUNDS; i++)
        async_rig_expect(&calls[i], (ssize_t)bytes);
    for (unsigned k = 0; k < 3; k++)
        async_rig_check_memory(memory[party->number], k * bytes, bytes, 5, base);
    async_rig_must(hipio_stream_deregister(own));
    app_destroy_stream(own);
    app_free(memory[party->number]);
    return NULL;
}

static void many_threads(void **state)
{
    struct party parties[PARTIES];
    int fd = async_rig_file(5, PARTIES * (slot + 77));
    struct hipio_handle *file = async_rig_open(fd);
    void *shared = app_create_stream(1);

    (void)state;
    for (unsigned i = 0; i < PARTIES; i++) {
        parties[i] = (struct party){.file = file, .shared = shared, .number = i};
        assert_int_equal(pthread_create(&parties[i].thread, NULL, take_part, &parties[i]), 0);
    }
    for (unsigned i = 0; i < PARTIES; i++)
        pthread_join(parties[i].thread, NULL);
    async_rig_must(hipio_stream_deregister(shared));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(shared);
}

/* ---- Order ---- */

/* Work of the application, a write of it, work over it, a read back, again and again, with nobody
 * looking. Each round's bytes are its own. */
static void chain(void **state)
{
    enum { LINKS = 60 };
    const size_t bytes = 2 * slot + 11;
    static struct async_call out[LINKS], in[LINKS];
    int fd = async_rig_file(0, 0);
    unsigned char *memory = async_rig_memory(0, bytes), *copy = async_rig_memory(0, LINKS * bytes);
    unsigned char *host = malloc(bytes);
    struct hipio_handle *file = async_rig_open(fd);
    void *stream = app_create_stream(1);

    (void)state;
    for (int i = 0; i < LINKS; i++) {
        out[i] = (struct async_call){bytes, 0, 0, 0};
        in[i] = (struct async_call){bytes, 0, (off_t)(i * bytes), 0};
        async_rig_fill(stream, memory, i, bytes);
        async_rig_must(async_rig_queue(false, file, memory, &out[i], stream));
        async_rig_fill(stream, memory, 0xEE, bytes);
        async_rig_must(async_rig_queue(true, file, copy, &in[i], stream));
    }
    assert_int_equal(async_rig_synchronize(stream), 0);
    for (int i = 0; i < LINKS; i++) {
        async_rig_expect(&out[i], (ssize_t)bytes);
        async_rig_expect(&in[i], (ssize_t)bytes);
        app_copy(host, copy + i * bytes, bytes);
        for (size_t k = 0; k < bytes; k++)
            if (host[k] != i)
                fail_msg("round %d read %d at byte %zu", i, host[k], k);
    }
    async_rig_must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
    app_free(copy);
    free(host);
}

/* The call returns while the stream stands, and nothing happens before its turn. */
static void nothing_happens_early(void **state)
{
    struct async_gate gate;
    struct async_call call = {2 * slot, 0, 0, -77};
    int fd = async_rig_file(4, 2 * slot);
    unsigned char *memory = async_rig_memory(5, 2 * slot);
    struct hipio_handle *file = async_rig_open(fd);
    void *stream = app_create_stream(1);

    (void)state;
    async_rig_close_gate(stream, &gate);
    async_rig_must(async_rig_queue(false, file, memory, &call, stream));
    assert_int_equal(call.done, 0);
    usleep(20000);
    async_rig_check_file(fd, 0, 2 * slot, 4, 0);
    gate.open = true;
    assert_int_equal(async_rig_synchronize(stream), 0);
    async_rig_expect(&call, (ssize_t)(2 * slot));
    async_rig_check_file(fd, 0, 2 * slot, 5, 0);
    async_rig_must(hipio_stream_deregister(stream));
    hipio_deregister_file(file);
    close(fd);
    app_destroy_stream(stream);
    app_free(memory);
}

/* Memory that the CPU can address, and the default stream. */
static void other_memory(void **state)
{
    const size_t bytes = buffer_size + 5;
    struct async_call call = {bytes, 0, 0, 0};
    int fd = async_rig_file(6, bytes);
    struct hipio_handle *file = async_rig_open(fd);
    unsigned char *pinned = app_alloc_pinned(bytes), *host = malloc(bytes);
    unsigned char *managed = app_alloc_managed(bytes);
    unsigned char *all[] = {pinned, host, managed};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (!all[i])
            continue;
        async_rig_must(async_rig_queue(true, file, all[i], &call, NULL));
        assert_int_equal(async_rig_synchronize(NULL), 0);
        async_rig_expect(&call, (ssize_t)bytes);
        assert_int_equal(pattern_check(all[i], 6, 0, bytes), bytes);
    }
    async_rig_must(hipio_stream_deregister(NULL));
    hipio_deregister_file(file);
    close(fd);
    app_free_pinned(pinned);
    if (managed)
        app_free(managed);
    free(host);
}

static int start(void **state)
{
    (void)state;
    async_rig_start();
    large = getenv("HIPIO_TEST_LONG") ? (64u << 20) + 3 : (8u << 20) + 3;
    buffer_size = async_rig_buffer();
    slot = async_rig_slot();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hipio_shutdown();
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_pinned_now), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_threads), 0);
    assert_int_equal(hipio_stats_get(HIPIO_COUNT_streams), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_fixed),    cmocka_unit_test(sizes_late),
        cmocka_unit_test(many_in_flight), cmocka_unit_test(many_streams),
        cmocka_unit_test(a_thousand),     cmocka_unit_test(many_threads),
        cmocka_unit_test(chain),          cmocka_unit_test(nothing_happens_early),
        cmocka_unit_test(other_memory),
    };

    return cmocka_run_group_tests_name("async", tests, start, stop);
}
