/* SPDX-License-Identifier: MIT */
/*
 * Domains: which aggregator owns which bytes of the file in a collective, and in which round it
 * has them in memory. Pure arithmetic on what all ranks know, so that all come to the same answer.
 *
 * The range of the file that a collective touches is cut into domains of equal size, the i-th for
 * the i-th aggregator. A domain passes through its aggregator's memory in rounds of `round` bytes.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Bytes [low, high) of the file; empty when they are equal. */
struct hipio_range {
    int64_t low, high;
};

struct hipio_domains_rules {
    int aggregators; /* that there are, > 0 */
    int64_t align;   /* where a domain may begin: a multiple of this, > 0 */
    int64_t least;   /* bytes of a domain, at least */
    int64_t round;   /* bytes of a round, > 0 */
};

struct hipio_domains {
    int64_t start; /* of the first domain */
    int64_t end;   /* one past the last byte that anyone touches */
    int64_t size;  /* of a domain; the last one may be shorter */
    int64_t round;
    int count; /* of domains that have bytes; 0: nobody touches anything */
};

/*
 * No two domains share a block of rules->align bytes of the file, so that no two aggregators ever
 * write into one block.
 */
void hipio_domains_make(const struct hipio_range *range, int ranges,
                        const struct hipio_domains_rules *rules, struct hipio_domains *domains);

/* The part of `range` in domain i; empty (0, 0) where there is none. */
struct hipio_range hipio_domains_share(const struct hipio_domains *domains, int i,
                                       const struct hipio_range *range);

/* The round in which domain i has that byte in memory, and the bytes of a round. */
int64_t hipio_domains_round_of(const struct hipio_domains *domains, int i, int64_t offset);
struct hipio_range hipio_domains_round(const struct hipio_domains *domains, int i, int64_t round);
/* How many rounds the longest domain has. */
int64_t hipio_domains_rounds(const struct hipio_domains *domains);

/* True: two of the ranges have bytes in common. Sorts the array. */
bool hipio_domains_interleave(struct hipio_range *range, int ranges);
