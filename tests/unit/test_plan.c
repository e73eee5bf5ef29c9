/* SPDX-License-Identifier: MIT */
/*
 * Plan: a table of facts and the plan each must give.
 */
#include "plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define K ((uint64_t)1 << 10)
#define M ((uint64_t)1 << 20)
#define G ((uint64_t)1 << 30)

/* The facts about a mapping, where none comes into question. */
#define NO_MAPPING HIPIO_AUTO, false, false, 0, 0, false, false

struct row {
    const char *what;
    struct hipio_plan_facts facts;
    struct hipio_plan wanted;
};

/* facts: op, length, staged, shared, cores, lanes, chunk_size, pinned_limit, mapping, mappable,
 * fresh, run, neighbours, in_memory, direct. Wanted: lanes, slots, chunk, piece, reason (not
 * compared), mapped, reserve */
static const struct row rows[] = {
    {"one byte",
     {HIPIO_READ, 1, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {1, 1, M, 256 * K, 0, false, false}},
    {"one copy",
     {HIPIO_READ, 256 * K, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {1, 1, M, 256 * K, 0, false, false}},
    {"short, cut to overlap",
     {HIPIO_READ, M, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {1, 2, M, 256 * K, 0, false, false}},
    {"cut in whole pages",
     {HIPIO_READ, 2 * M + 5, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {1, 2, M, 516 * K, 0, false, false}},
    {"just below the second lane",
     {HIPIO_READ, 4 * M - 1, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {1, 2, M, M, 0, false, false}},
    {"two lanes",
     {HIPIO_READ, 4 * M, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {2, 2, M, M, 0, false, false}},
    {"many lanes",
     {HIPIO_READ, G, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {8, 2, M, M, 0, false, false}},
    {"few cores",
     {HIPIO_READ, G, true, false, 3, 0, M, 64 * M, NO_MAPPING},
     {3, 2, M, M, 0, false, false}},
    {"bound to one core",
     {HIPIO_READ, G, true, false, 1, 0, M, 64 * M, NO_MAPPING},
     {1, 2, M, M, 0, false, false}},
    {"local write",
     {HIPIO_WRITE, G, true, false, 16, 0, M, 64 * M, NO_MAPPING},
     {1, 2, M, M, 0, false, false}},
    {"shared write",
     {HIPIO_WRITE, G, true, true, 16, 0, M, 64 * M, NO_MAPPING},
     {4, 2, M, M, 0, false, false}},
    {"lanes set, one core",
     {HIPIO_WRITE, G, true, false, 1, 5, M, 64 * M, NO_MAPPING},
     {5, 2, M, M, 0, false, false}},
    {"too many lanes set",
     {HIPIO_READ, G, true, false, 1, 1000, M, G, NO_MAPPING},
     {16, 2, M, M, 0, false, false}},
    {"more lanes than pieces",
     {HIPIO_READ, 2 * M, true, false, 8, 7, M, G, NO_MAPPING},
     {4, 2, M, 512 * K, 0, false, false}},
    {"limit for two lanes",
     {HIPIO_READ, G, true, false, 16, 0, M, 4 * M, NO_MAPPING},
     {2, 2, M, M, 0, false, false}},
    {"limit for two chunks",
     {HIPIO_READ, G, true, false, 16, 0, M, 2 * M, NO_MAPPING},
     {1, 2, M, M, 0, false, false}},
    {"chunk larger than the limit",
     {HIPIO_READ, G, true, false, 16, 0, M, 64 * K, NO_MAPPING},
     {1, 2, 32 * K, 32 * K, 0, false, false}},
    {"limit of a page",
     {HIPIO_READ, G, true, false, 16, 0, M, 4 * K, NO_MAPPING},
     {1, 2, 4 * K, 4 * K, 0, false, false}},
    {"no pinned memory",
     {HIPIO_READ, G, true, false, 16, 0, 8 * M, 0, NO_MAPPING},
     {1, 2, M, M, 0, false, false}},
    {"chunk of nothing",
     {HIPIO_READ, M, true, false, 1, 0, 0, G, NO_MAPPING},
     {1, 2, 4 * K, 4 * K, 0, false, false}},
    {"odd chunk",
     {HIPIO_READ, M, true, false, 1, 0, 4097, G, NO_MAPPING},
     {1, 2, 8 * K, 8 * K, 0, false, false}},
    {"vast chunk",
     {HIPIO_READ, 8 * G, true, false, 1, 0, UINT64_MAX, UINT64_MAX, NO_MAPPING},
     {1, 2, G, G, 0, false, false}},
    {"vast request",
     {HIPIO_READ, UINT64_MAX, true, false, 2, 0, M, 64 * M, NO_MAPPING},
     {2, 2, M, M, 0, false, false}},
    {"in place, short",
     {HIPIO_READ, M, false, false, 16, 0, M, 0, NO_MAPPING},
     {1, 0, 0, 4 * M, 0, false, false}},
    {"in place, long",
     {HIPIO_READ, G, false, false, 16, 0, M, 0, NO_MAPPING},
     {8, 0, 0, 4 * M, 0, false, false}},
    {"in place, write",
     {HIPIO_WRITE, G, false, false, 16, 0, M, 0, NO_MAPPING},
     {1, 0, 0, 4 * M, 0, false, false}},
    {"write past the page cache",
     {HIPIO_WRITE, G, true, false, 16, 0, M, 64 * M, HIPIO_AUTO, false, false, 0, 0, false, true},
     {8, 2, M, M, 0, false, false}},
    {"write past the page cache, one core",
     {HIPIO_WRITE, G, true, false, 1, 0, M, 64 * M, HIPIO_AUTO, false, false, 0, 0, false, true},
     {1, 2, M, M, 0, false, false}},
    /* Mappings: cached files always, fresh ones by several writers, and on a disk in one piece. */
    {"cached write",
     {HIPIO_WRITE, G, true, false, 16, 0, M, 64 * M, HIPIO_AUTO, true, false, G, 0, false, false},
     {8, 2, M, M, 0, true, false}},
    {"cached write, one core",
     {HIPIO_WRITE, G, true, false, 1, 0, M, 64 * M, HIPIO_AUTO, true, false, G, 0, false, false},
     {1, 2, M, M, 0, true, false}},
    {"fresh, alone",
     {HIPIO_WRITE, G, true, false, 1, 0, M, 64 * M, HIPIO_AUTO, true, true, G, 0, false, false},
     {1, 2, M, M, 0, false, false}},
    {"fresh, short",
     {HIPIO_WRITE, 2 * M, true, false, 8, 0, M, 64 * M, HIPIO_AUTO, true, true, 2 * M, 0, true,
      false},
     {1, 2, M, 512 * K, 0, false, false}},
    {"fresh, many lanes",
     {HIPIO_WRITE, G, true, false, 8, 0, M, 64 * M, HIPIO_AUTO, true, true, G, 0, false, false},
     {1, 2, M, M, 0, false, false}},
    {"fresh, many ranks",
     {HIPIO_WRITE, G, true, false, 1, 0, M, 64 * M, HIPIO_AUTO, true, true, G, 7, false, false},
     {1, 2, M, M, 0, true, true}},
    {"fresh, many ranks, little each",
     {HIPIO_WRITE, 8 * M, true, false, 1, 0, M, 64 * M, HIPIO_AUTO, true, true, 8 * M, 7, false,
      false},
     {1, 2, M, M, 0, false, false}},
    {"fresh, blocks on a disk",
     {HIPIO_WRITE, G, true, false, 8, 0, M, 64 * M, HIPIO_AUTO, true, true, 64 * K, 7, false,
      false},
     {1, 2, M, M, 0, false, false}},
    {"fresh, blocks in memory",
     {HIPIO_WRITE, G, true, false, 2, 0, M, 64 * M, HIPIO_AUTO, true, true, 64 * K, 7, true, false},
     {2, 2, M, M, 0, true, false}},
    {"fresh, many lanes in memory",
     {HIPIO_WRITE, G, true, false, 4, 0, M, 64 * M, HIPIO_AUTO, true, true, G, 0, true, false},
     {4, 2, M, M, 0, true, false}},
    {"fresh, alone in memory",
     {HIPIO_WRITE, G, true, false, 1, 0, M, 64 * M, HIPIO_AUTO, true, true, G, 0, true, false},
     {1, 2, M, M, 0, false, false}},
    {"fresh, in memory and in place, too short for two lanes",
     {HIPIO_WRITE, 8 * M, false, false, 8, 0, M, 64 * M, HIPIO_AUTO, true, true, 8 * M, 0, true,
      false},
     {1, 0, 0, 4 * M, 0, false, false}},
    {"fresh, in memory and in place, two lanes",
     {HIPIO_WRITE, 16 * M, false, false, 8, 0, M, 64 * M, HIPIO_AUTO, true, true, 16 * M, 0, true,
      false},
     {2, 0, 0, 4 * M, 0, true, false}},
    {"fresh, in memory and in place, many ranks",
     {HIPIO_WRITE, 8 * M, false, false, 8, 0, M, 64 * M, HIPIO_AUTO, true, true, 8 * M, 7, true,
      false},
     {1, 0, 0, 4 * M, 0, true, false}},
    {"fresh, small blocks",
     {HIPIO_WRITE, G, true, false, 1, 0, M, 64 * M, HIPIO_AUTO, true, true, 4 * K, 0, false, false},
     {1, 2, M, M, 0, true, false}},
    {"cached write, small blocks, long chunks",
     {HIPIO_WRITE, G, true, false, 2, 0, 4 * M, 64 * M, HIPIO_AUTO, true, false, 4 * K, 7, false,
      false},
     {2, 2, 4 * M, M, 0, true, false}},
    {"cached write, large blocks, long chunks",
     {HIPIO_WRITE, G, true, false, 2, 0, 4 * M, 64 * M, HIPIO_AUTO, true, false, 64 * K, 7, false,
      false},
     {2, 2, 4 * M, 4 * M, 0, true, false}},
    {"read, small blocks, long chunks",
     {HIPIO_READ, G, true, false, 2, 0, 4 * M, 64 * M, HIPIO_AUTO, true, false, 4 * K, 7, false,
      false},
     {2, 2, 4 * M, 4 * M, 0, true, false}},
    {"write, little",
     {HIPIO_WRITE, 64 * K - 1, true, false, 8, 0, M, 64 * M, HIPIO_AUTO, true, false, 4 * K, 7,
      false, false},
     {1, 1, M, 256 * K, 0, false, false}},
    {"read, small blocks",
     {HIPIO_READ, G, true, false, 2, 0, M, 64 * M, HIPIO_AUTO, true, false, 64 * K, 0, false,
      false},
     {2, 2, M, M, 0, true, false}},
    {"read, large blocks",
     {HIPIO_READ, G, true, false, 2, 0, M, 64 * M, HIPIO_AUTO, true, false, 128 * K, 0, false,
      false},
     {2, 2, M, M, 0, false, false}},
    {"read in place, small blocks",
     {HIPIO_READ, G, false, false, 2, 0, M, 64 * M, HIPIO_AUTO, true, false, 4 * K, 0, false,
      false},
     {2, 0, 0, 4 * M, 0, false, false}},
    {"write in place",
     {HIPIO_WRITE, G, false, false, 2, 0, M, 64 * M, HIPIO_AUTO, true, false, G, 0, false, false},
     {2, 0, 0, 4 * M, 0, true, false}},
    {"mapping off",
     {HIPIO_WRITE, G, true, false, 16, 0, M, 64 * M, HIPIO_OFF, true, false, 4 * K, 7, false,
      false},
     {1, 2, M, M, 0, false, false}},
    {"mapping forced",
     {HIPIO_READ, 1, false, false, 16, 0, M, 64 * M, HIPIO_FORCE, true, false, 1, 0, false, false},
     {1, 0, 0, 4 * M, 0, true, false}},
    {"forced, not mappable",
     {HIPIO_WRITE, G, true, false, 16, 0, M, 64 * M, HIPIO_FORCE, false, false, 4 * K, 7, false,
      false},
     {1, 2, M, M, 0, false, false}},
};

static void makes_the_plan_of_each_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hipio_plan *wanted = &rows[i].wanted;
        struct hipio_plan plan;
        hipio_plan_make(&rows[i].facts, &plan);
        if (plan.lanes != wanted->lanes || plan.slots != wanted->slots ||
            plan.chunk != wanted->chunk || plan.piece != wanted->piece ||
            plan.mapped != wanted->mapped || plan.reserve != wanted->reserve)
            fail_msg("%s: lanes %u (not %u), slots %u (%u), chunk %llu (%llu), piece %llu (%llu), "
                     ""
                     "mapped %d (%d), reserve %d (%d)",
                     rows[i].what, plan.lanes, wanted->lanes, plan.slots, wanted->slots,
                     (unsigned long long)plan.chunk, (unsigned long long)wanted->chunk,
                     (unsigned long long)plan.piece, (unsigned long long)wanted->piece, plan.mapped,
                     wanted->mapped, plan.reserve, wanted->reserve);
    }
}

/* Whatever the settings: a piece fits its chunk, pages are whole, and the lanes' chunks fit the
 * limit if two of them do. */
static void keeps_its_rules_everywhere(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 4095, 4096, 4097, 65536, M, 3 * M + 1, G, UINT64_MAX};
    const size_t n = sizeof sizes / sizeof sizes[0];

    for (size_t i = 0; i < n * n * n * 4; i++) {
        struct hipio_plan_facts facts = {
            .op = i % 2 ? HIPIO_READ : HIPIO_WRITE,
            .shared = i / 2 % 2,
            .staged = true,
            .cores = 7,
            .length = sizes[i / 4 % n] ? sizes[i / 4 % n] : 1,
            .chunk_size = sizes[i / 4 / n % n],
            .pinned_limit = sizes[i / 4 / n / n % n],
        };
        struct hipio_plan plan;
        hipio_plan_make(&facts, &plan);
        assert_true(plan.lanes >= 1 && plan.lanes <= HIPIO_PLAN_LANES_MAX);
        assert_true(plan.chunk >= 4096 && plan.chunk % 4096 == 0);
        assert_true(plan.piece > 0 && plan.piece <= plan.chunk && plan.piece % 4096 == 0);
        if (facts.pinned_limit >= 8192)
            assert_true(plan.lanes * 2 * plan.chunk <= facts.pinned_limit);
    }
}

static void tells_its_reason(void **state)
{
    (void)state;
    struct hipio_plan plan;
    struct hipio_plan_facts facts = rows[9].facts;
    char text[256];

    hipio_plan_make(&facts, &plan);
    hipio_plan_describe(&plan, text, sizeof text);
    assert_string_equal(text, "1 lane, each with 2 staging chunks of 1048576 bytes, pieces of at "
                              "most 1048576 bytes: writers of a local file wait for each other");
    facts.staged = false;
    hipio_plan_make(&facts, &plan);
    hipio_plan_describe(&plan, text, sizeof text);
    assert_string_equal(text, "1 lane, in place (nothing is staged), pieces of at most 4194304 "
                              "bytes: writers of a local file wait for each other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_the_plan_of_each_row),
        cmocka_unit_test(keeps_its_rules_everywhere),
        cmocka_unit_test(tells_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
