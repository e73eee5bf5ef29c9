/* SPDX-License-Identifier: MIT */
/*
 * Split: a table of runs and what comes of them, and random ones against the promise.
 */
#include "split.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define K 1024ull

static void follows_the_table(void **state)
{
    static const struct {
        uint64_t align, memory, least;
        uintptr_t address;
        int64_t offset;
        uint64_t length;
        struct hipio_split wanted;
    } rows[] = {
        /* Aligned on both sides: all body. */
        {4 * K, 4 * K, 1, 0x10000, 0, 64 * K, {0, 64 * K, 0}},
        {4 * K, 4 * K, 1, 0x10000, 8192, 4 * K, {0, 4 * K, 0}},
        /* A tail. */
        {4 * K, 4 * K, 1, 0x10000, 0, 64 * K + 100, {0, 64 * K, 100}},
        /* A head, and memory that is off by as much. */
        {4 * K, 4 * K, 1, 0x10064, 100, 64 * K, {3996, 60 * K, 100}},
        /* A head, and memory that is off by something else: no body anywhere. */
        {4 * K, 4 * K, 1, 0x10000, 100, 64 * K, {64 * K, 0, 0}},
        {4 * K, 512, 1, 0x10200, 2048, 64 * K, {2048, 60 * K, 2048}},
        /* Inside one page, up to a page's edge, across an edge. */
        {4 * K, 4 * K, 1, 0x10010, 16, 100, {100, 0, 0}},
        {4 * K, 4 * K, 1, 0x10010, 16, 4080, {4080, 0, 0}},
        {4 * K, 4 * K, 1, 0x10010, 16, 5000, {5000, 0, 0}},
        {4 * K, 4 * K, 1, 0x10010, 16, 4080 + 4096, {4080, 4096, 0}},
        /* Too short to be worth it. */
        {4 * K, 4 * K, 64 * K, 0x10000, 0, 60 * K, {60 * K, 0, 0}},
        {4 * K, 4 * K, 64 * K, 0x10000, 0, 64 * K, {0, 64 * K, 0}},
        /* Devices with small and with large blocks. */
        {512, 4, 1, 0x10004, 512, 1024, {0, 1024, 0}},
        {64 * K, 64 * K, 1, 0x10000, 4096, 128 * K, {128 * K, 0, 0}},
        {64 * K, 64 * K, 1, 0x11000, 4096, 128 * K, {60 * K, 64 * K, 4096}},
        /* Beyond 4 GiB and near the end of what a file can hold. */
        {4 * K, 4 * K, 1, 0x10000, 5ll << 32, 3ull << 32, {0, 3ull << 32, 0}},
        {4 * K, 4 * K, 1, 0x10fff, INT64_MAX - 4096, 4096, {4096, 0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hipio_split_rule rule = {rows[i].align, rows[i].memory, rows[i].least};
        struct hipio_split got =
            hipio_split_make(&rule, rows[i].address, rows[i].offset, rows[i].length);
        print_message("row %zu\n", i);
        assert_int_equal(got.head, rows[i].wanted.head);
        assert_int_equal(got.body, rows[i].wanted.body);
        assert_int_equal(got.tail, rows[i].wanted.tail);
    }
}

static void keeps_its_promise(void **state)
{
    uint64_t seed = 7;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        uint64_t r[4];
        for (int k = 0; k < 4; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            r[k] = seed >> 33;
        }
        struct hipio_split_rule rule = {512ull << r[0] % 4, 1ull << r[1] % 13, 1 + r[3] % 9000};
        int64_t offset = (int64_t)(r[2] % 20000 / (1 + i % 3 * 511) * (1 + i % 3 * 511));
        uintptr_t address = 0x100000 + (uintptr_t)(i % 2 ? offset : (int64_t)(r[1] % 9000));
        uint64_t length = r[3] % 40000;
        struct hipio_split got = hipio_split_make(&rule, address, offset, length);

        assert_int_equal(got.head + got.body + got.tail, length);
        assert_int_equal(got.body % rule.offset, 0);
        if (got.body == 0) {
            assert_int_equal(got.tail, 0);
            continue;
        }
        assert_true(got.body >= rule.least);
        assert_int_equal(((uint64_t)offset + got.head) % rule.offset, 0);
        assert_int_equal((address + got.head) % rule.memory, 0);
        assert_true(got.head < rule.offset && got.tail < rule.offset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_table),
        cmocka_unit_test(keeps_its_promise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
