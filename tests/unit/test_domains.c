/* SPDX-License-Identifier: MIT */
/* Domains: the cuts cover the access once, keep the alignment, and lead from offset to round. */
#include "domains.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t low_of(const struct hipio_domains *d, int i)
{
    return d->start + i * d->size;
}

/* Each byte of the access belongs to one domain and one round of it. */
static void check_cover(const struct hipio_domains *d, const struct hipio_domains_rules *rules)
{
    struct hipio_range all = {d->start, d->end};
    int64_t at = d->start;

    assert_in_range(d->count, 1, rules->aggregators);
    for (int i = 0; i < d->count; i++) {
        struct hipio_range share = hipio_domains_share(d, i, &all);
        assert_int_equal(share.low, at);
        assert_int_equal(share.low % rules->align, 0);
        assert_true(share.high > share.low);
        for (int64_t round = 0; at < share.high; round++) {
            struct hipio_range part = hipio_domains_round(d, i, round);
            assert_int_equal(part.low, at);
            assert_true(part.high > at && part.high - at <= rules->round);
            assert_int_equal(hipio_domains_round_of(d, i, part.low), round);
            assert_int_equal(hipio_domains_round_of(d, i, part.high - 1), round);
            assert_true(round < hipio_domains_rounds(d));
            at = part.high;
        }
    }
    assert_int_equal(at, d->end);
}

static void covers_everything_once(void **state)
{
    static const int64_t aligns[] = {4096, 65536, 12288};

    (void)state;
    srandom(3);
    for (int turn = 0; turn < 3000; turn++) {
        struct hipio_range range[5] = {{0, 0}};
        struct hipio_domains_rules rules = {.aggregators = 1 + (int)(random() % 9),
                                            .align = aligns[random() % 3],
                                            .least = random() % 3 ? 0 : random() % 200000,
                                            .round = 512 + random() % 100000};
        struct hipio_domains domains;
        for (int i = 0; i < 5; i++) {
            if (random() % 4 == 0)
                continue;
            range[i].low = random() % 500000;
            range[i].high = range[i].low + 1 + random() % 300000;
        }
        range[2] = (struct hipio_range){1000, 1001};
        hipio_domains_make(range, 5, &rules, &domains);
        check_cover(&domains, &rules);
        for (int i = 0; i < 5; i++)
            assert_true(range[i].low == range[i].high ||
                        (range[i].low >= domains.start && range[i].high <= domains.end));
        if (domains.count > 1)
            assert_true(domains.size >= rules.least);
    }
}

static void nobody_touches_anything(void **state)
{
    struct hipio_range range[2] = {{0, 0}, {0, 0}};
    struct hipio_domains_rules rules = {4, 4096, 0, 8192};
    struct hipio_domains domains;

    (void)state;
    hipio_domains_make(range, 2, &rules, &domains);
    assert_int_equal(domains.count, 0);
    assert_int_equal(hipio_domains_rounds(&domains), 0);
}

/* Offsets near the end of the range do not wrap. */
static void far_offsets(void **state)
{
    struct hipio_range range[2] = {{INT64_C(1) << 61, (INT64_C(1) << 62) + 12345}, {0, 10}};
    struct hipio_domains_rules rules = {7, 1 << 20, 0, 1 << 30};
    struct hipio_domains domains;
    struct hipio_range last;

    (void)state;
    hipio_domains_make(range, 2, &rules, &domains);
    assert_int_equal(domains.count, 7);
    last = hipio_domains_share(&domains, 6, &range[0]);
    assert_int_equal(last.high, range[0].high);
    assert_int_equal(last.low, low_of(&domains, 6));
    last = hipio_domains_share(&domains, 6, &range[1]);
    assert_int_equal(last.low, last.high);
}

static void interleaving(void **state)
{
    static const struct {
        struct hipio_range range[4];
        bool interleave;
    } rows[] = {
        {{{0, 10}, {10, 20}, {20, 30}, {30, 31}}, false},
        {{{30, 40}, {0, 0}, {10, 30}, {0, 10}}, false}, /* any order of ranks */
        {{{0, 11}, {10, 20}, {0, 0}, {0, 0}}, true},
        {{{0, 100}, {10, 20}, {0, 0}, {0, 0}}, true},
        {{{10, 20}, {0, 0}, {10, 20}, {0, 0}}, true},
        {{{5, 5}, {0, 10}, {5, 5}, {0, 0}}, false}, /* nothing is in nobody's way */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hipio_range range[4];
        for (int k = 0; k < 4; k++)
            range[k] = rows[i].range[k];
        assert_int_equal(hipio_domains_interleave(range, 4), rows[i].interleave);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_everything_once),
        cmocka_unit_test(nobody_touches_anything),
        cmocka_unit_test(far_offsets),
        cmocka_unit_test(interleaving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
