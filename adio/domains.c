/* SPDX-License-Identifier: MIT */
/* Domains: cuts, and the way from an offset to domain and round. */
#include "domains.h"
#include <stdlib.h>
#include <string.h>

static bool is_empty(const struct hipio_range *range)
{
    return range->high <= range->low;
}

/* Sizes stay below 2^63 because offsets do and alignments are small. */
static int64_t round_up(int64_t value, int64_t unit)
{
    int64_t rest = value % unit;

    return rest == 0 ? value : value + (unit - rest);
}

static struct hipio_range hull_of(const struct hipio_range *range, int ranges)
{
    struct hipio_range hull = {INT64_MAX, 0};

    for (int i = 0; i < ranges; i++) {
        if (is_empty(&range[i]))
            continue;
        if (range[i].low < hull.low)
            hull.low = range[i].low;
        if (range[i].high > hull.high)
            hull.high = range[i].high;
    }
    return hull;
}

void hipio_domains_make(const struct hipio_range *range, int ranges,
                        const struct hipio_domains_rules *rules, struct hipio_domains *domains)
{
    struct hipio_range hull = hull_of(range, ranges);
    int64_t bytes, size;

    memset(domains, 0, sizeof *domains);
    domains->round = rules->round;
    if (is_empty(&hull))
        return;
    domains->start = hull.low - hull.low % rules->align;
    domains->end = hull.high;
    bytes = domains->end - domains->start;
    size = bytes / rules->aggregators + (bytes % rules->aggregators != 0);
    if (size < rules->least)
        size = rules->least;
    domains->size = round_up(size, rules->align);
    domains->count = (int)((bytes - 1) / domains->size + 1);
}

static struct hipio_range intersect(struct hipio_range a, struct hipio_range b)
{
    struct hipio_range both = {a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};

    return is_empty(&both) ? (struct hipio_range){0, 0} : both;
}

static struct hipio_range domain(const struct hipio_domains *domains, int i)
{
    int64_t low = domains->start + i * domains->size;
    int64_t high = domains->end - low > domains->size ? low + domains->size : domains->end;

    return (struct hipio_range){low, high};
}

struct hipio_range hipio_domains_share(const struct hipio_domains *domains, int i,
                                       const struct hipio_range *range)
{
    return intersect(domain(domains, i), *range);
}

int64_t hipio_domains_round_of(const struct hipio_domains *domains, int i, int64_t offset)
{
    return (offset - domain(domains, i).low) / domains->round;
}

struct hipio_range hipio_domains_round(const struct hipio_domains *domains, int i, int64_t round)
{
    struct hipio_range whole = domain(domains, i);
    int64_t low = whole.low + round * domains->round;

    if (whole.high - low > domains->round)
        whole.high = low + domains->round;
    whole.low = low;
    return whole;
}

int64_t hipio_domains_rounds(const struct hipio_domains *domains)
{
    return domains->count ? (domains->size - 1) / domains->round + 1 : 0;
}

static int compare(const void *a, const void *b)
{
    const struct hipio_range *left = a, *right = b;

    return (left->low > right->low) - (left->low < right->low);
}

bool hipio_domains_interleave(struct hipio_range *range, int ranges)
{
    int64_t end = INT64_MIN;

    qsort(range, (size_t)ranges, sizeof *range, compare);
    for (int i = 0; i < ranges; i++) {
        if (is_empty(&range[i]))
            continue;
        if (range[i].low < end)
            return true;
        end = range[i].high;
    }
    return false;
}
