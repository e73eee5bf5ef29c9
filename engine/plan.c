/* SPDX-License-Identifier: MIT */
/*
 * Plan: how a request is cut and how many lanes carry it.
 *
 * The numbers come from measurements: a chunk near the L2 cache is twice as fast as one of 16 MiB;
 * the page cache gives about 4 GB/s to a reading thread and scales with threads, while writers of
 * one local file wait for its inode lock and only disturb each other. Past the page cache they
 * share that lock.
 */
#include "plan.h"
#include <stdio.h>

#define PAGE 4096u
#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)

/* Below this a mapping costs more than a call: what protects it, and its page faults. */
#define MAPPED_MIN KIB(64)
/* A call for less than this costs more than the bytes: 4 KiB blocks were read at 15 GB/s by calls
 * and at 30 through a mapping, 1 MiB ones at 31 and 34. */
#define READ_CALL_MIN KIB(128)
#define WRITE_CALL_MIN KIB(64)
/* From here on it pays to reserve the space of a fresh file. */
#define RESERVE_MIN MIB(16)
/* Below this a second lane costs more than it gives. */
#define ONE_LANE_BELOW MIB(4)
/* A copy of fewer bytes is dominated by its launch. */
#define PIECE_MIN KIB(256)
/* What a chunk holds for small runs of the file is copied out of order, and the better the smaller
 * a cache it fits: pieces of 1 MiB were written at 35 GB/s and of 4 MiB at 27. */
#define PIECE_OF_SMALL_RUNS MIB(1)
/* In place nothing is staged: a piece only has to be long enough to hide its bookkeeping. */
#define PIECE_IN_PLACE MIB(4)
#define CHUNK_MAX MIB(1024)
#define READ_LANES 8u
#define FREE_WRITE_LANES 8u /* writers that don't wait for each other */
#define SHARED_WRITE_LANES 4u

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t pages_up(uint64_t bytes)
{
    return bytes / PAGE * PAGE + (bytes % PAGE ? PAGE : 0);
}

static uint64_t pages_down(uint64_t bytes)
{
    return bytes / PAGE * PAGE;
}

/* Two chunks fit the limit, so that one request can overlap; a limit below that leaves one page. A
 * limit of nothing means ordinary memory, which is kept small too. */
static uint64_t choose_chunk(const struct hipio_plan_facts *facts)
{
    uint64_t chunk = pages_up(min64(max64(facts->chunk_size, PAGE), CHUNK_MAX));

    if (facts->pinned_limit < PAGE)
        return min64(chunk, MIB(1));
    return min64(chunk, max64(pages_down(facts->pinned_limit / 2), PAGE));
}

/* A short request is cut in four, so that its storage and GPU copies overlap too. */
static uint64_t choose_piece(const struct hipio_plan_facts *facts, bool mapped, uint64_t chunk)
{
    uint64_t most = facts->staged ? chunk : PIECE_IN_PLACE;

    if (mapped && facts->op == HIPIO_WRITE && facts->run < WRITE_CALL_MIN)
        most = min64(most, PIECE_OF_SMALL_RUNS);

    if (!facts->staged || facts->length >= 4 * most)
        return most;
    return min64(most, max64(pages_up(facts->length / 4), PIECE_MIN));
}

/* Long enough that its pieces make two lanes. */
static bool fills_lanes(const struct hipio_plan_facts *facts)
{
    uint64_t chunk = facts->staged ? choose_chunk(facts) : 0;

    return facts->cores > 1 && facts->length >= ONE_LANE_BELOW &&
           (facts->length - 1) / choose_piece(facts, true, chunk) + 1 >= 4;
}

/*
 * A fresh file's pages have to be made. In memory, a mapping makes them at 5 GB/s where several
 * threads write, and calls at 3; where one writes, at 2 and 3. On a disk it is only faster for
 * several processes (the threads of one got 2, calls 4), and where much was reserved in one piece:
 * 6 against 3.5.
 */
static bool choose_mapped_fresh(const struct hipio_plan_facts *facts)
{
    if (facts->in_memory)
        return facts->neighbours > 0 || fills_lanes(facts);
    return facts->neighbours > 0 && facts->run == facts->length && facts->length >= RESERVE_MIN;
}

/*
 * Through a mapping of the file, or by calls? Writers do not wait for each other in a mapping:
 * cached files were written at 35 GB/s instead of 6, and at 2 KiB pieces instead of 2. Reading
 * scales either way, but calls for small pieces cost more. Without staging, memory is the
 * application's, and then only writes gain.
 */
static bool choose_mapped(const struct hipio_plan_facts *facts)
{
    if (!facts->mappable || facts->mapping == HIPIO_OFF)
        return false;
    if (facts->mapping == HIPIO_FORCE)
        return true;
    if (facts->length < MAPPED_MIN)
        return false;
    if (facts->op == HIPIO_READ)
        return facts->staged && facts->run < READ_CALL_MIN;
    if (facts->run < WRITE_CALL_MIN || !facts->fresh)
        return true;
    return choose_mapped_fresh(facts);
}

static unsigned automatic_lanes(const struct hipio_plan_facts *facts, bool mapped,
                                const char **reason)
{
    if (facts->length < ONE_LANE_BELOW) {
        *reason = "short request";
        return 1;
    }
    if (facts->cores <= 1) {
        *reason = "one core";
        return 1;
    }
    const bool free_writers = mapped || facts->direct;
    if (facts->op == HIPIO_WRITE && !facts->shared && !free_writers) {
        *reason = "writers of a local file wait for each other";
        return 1;
    }
    *reason = "share of the cores";
    const unsigned writers = free_writers ? FREE_WRITE_LANES : SHARED_WRITE_LANES;
    return (unsigned)min64(facts->cores, facts->op == HIPIO_WRITE ? writers : READ_LANES);
}

static unsigned choose_lanes(const struct hipio_plan_facts *facts, const struct hipio_plan *plan,
                             const char **reason)
{
    uint64_t pieces = (facts->length - 1) / plan->piece + 1;
    uint64_t lanes;

    if (facts->lanes > 0) {
        *reason = "the setting lanes";
        lanes = min64(min64(facts->lanes, HIPIO_PLAN_LANES_MAX), pieces);
    } else {
        lanes = min64(automatic_lanes(facts, plan->mapped, reason), max64(pieces / 2, 1));
    }
    if (facts->staged) {
        uint64_t fit = max64(facts->pinned_limit / (2 * plan->chunk), 1);
        if (fit < lanes) {
            *reason = "the setting pinned_limit";
            lanes = fit;
        }
    }
    return (unsigned)lanes;
}

void hipio_plan_make(const struct hipio_plan_facts *facts, struct hipio_plan *plan)
{
    plan->mapped = choose_mapped(facts);
    plan->chunk = facts->staged ? choose_chunk(facts) : 0;
    plan->piece = choose_piece(facts, plan->mapped, plan->chunk);
    plan->slots = !facts->staged ? 0 : facts->length > plan->piece ? 2 : 1;
    plan->reserve = plan->mapped && facts->fresh && !facts->in_memory &&
                    facts->run == facts->length && facts->length >= RESERVE_MIN;
    plan->lanes = choose_lanes(facts, plan, &plan->reason);
}

void hipio_plan_describe(const struct hipio_plan *plan, char *out, size_t size)
{
    char staging[64] = "in place (nothing is staged)";

    if (plan->slots > 0)
        snprintf(staging, sizeof staging, "each with %u staging chunk%s of %llu bytes", plan->slots,
                 plan->slots == 1 ? "" : "s", (unsigned long long)plan->chunk);
    snprintf(out, size, "%u lane%s, %s, pieces of at most %llu bytes%s: %s", plan->lanes,
             plan->lanes == 1 ? "" : "s", staging, (unsigned long long)plan->piece,
             plan->mapped ? ", through a mapping of the file" : "", plan->reason);
}
