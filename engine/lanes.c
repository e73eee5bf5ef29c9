/* SPDX-License-Identifier: MIT */
/*
 * Lanes: pieces handed out and added up, the crew of lane threads, and the cache of streams.
 */
#include "lanes.h"
#include "engine.h"
#include "mapping.h"
#include "pulse.h"
#include "storage/storage.h"
#include "swap.h"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hipio_workers crew = HIPIO_WORKERS_INIT("hipio-lane");

static struct {
    pthread_mutex_t lock; /* guards both lists */
    struct hipio_lane *idle;
    struct hipio_lane *abandoned; /* their devices were reset: nothing may be called for them */
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct hipio_lane *take_idle(const struct hipio_device_ops *ops, int device)
{
    struct hipio_lane *lane;

    pthread_mutex_lock(&cache.lock);
    struct hipio_lane **link = &cache.idle;
    while ((lane = *link) && (lane->ops != ops || lane->device != device))
        link = &lane->next;
    if (lane)
        *link = lane->next;
    pthread_mutex_unlock(&cache.lock);
    return lane;
}

static void destroy_lane(struct hipio_lane *lane)
{
    hipio_gather_destroy(lane->gather);
    for (int i = 0; i < 2; i++)
        if (lane->event[i])
            lane->ops->event_destroy(lane->event[i]);
    if (lane->stream)
        lane->ops->stream_destroy(lane->stream);
    free(lane->scratch);
    free(lane);
}

static void abandon_lane(struct hipio_lane *lane)
{
    hipio_gather_abandon(lane->gather);
    free(lane->scratch);
    lane->scratch = NULL;
    pthread_mutex_lock(&cache.lock);
    lane->next = cache.abandoned;
    cache.abandoned = lane;
    pthread_mutex_unlock(&cache.lock);
}

static void discard_lane(struct hipio_lane *lane)
{
    if (hipio_pulse_is_same(lane->ops, lane->device, lane->pulse))
        destroy_lane(lane);
    else
        abandon_lane(lane);
}

static int create_lane(const struct hipio_device_ops *ops, int device, uint64_t pulse,
                       struct hipio_lane **out)
{
    struct hipio_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return hipio_status_set(-ENOMEM, "no memory for a copy lane");
    lane->ops = ops;
    lane->device = device;
    lane->pulse = pulse;
    int status = ops->stream_create(device, &lane->stream);
    for (int i = 0; status == 0 && i < 2; i++)
        status = ops->event_create(device, &lane->event[i]);
    if (status < 0) {
        destroy_lane(lane);
        return status;
    }
    *out = lane;
    return 0;
}

int hipio_lanes_borrow(const struct hipio_device_ops *ops, int device, struct hipio_lane **out)
{
    const uint64_t pulse = hipio_pulse(ops, device);
    struct hipio_lane *lane;

    while ((lane = take_idle(ops, device)) && lane->pulse != pulse)
        abandon_lane(lane);
    if (!lane)
        return create_lane(ops, device, pulse, out);
    *out = lane;
    return 0;
}

/* All idle lanes of the device, and this one. */
static void discard_all(struct hipio_lane *lane)
{
    const struct hipio_device_ops *ops = lane->ops;
    const int device = lane->device;

    do
        discard_lane(lane);
    while ((lane = take_idle(ops, device)));
}

void hipio_lanes_return(struct hipio_lane *lane)
{
    if (lane->broken) {
        discard_all(lane);
        return;
    }
    pthread_mutex_lock(&cache.lock);
    lane->next = cache.idle;
    cache.idle = lane;
    pthread_mutex_unlock(&cache.lock);
}

void *hipio_lanes_scratch(struct hipio_lane *lane)
{
    if (!lane->scratch)
        lane->scratch = malloc(HIPIO_LANE_SCRATCH);
    return lane->scratch;
}

struct hipio_gather *hipio_lanes_gather(struct hipio_lane *lane)
{
    if (!lane->gather && !lane->gather_refused) {
        int status = hipio_gather_create(lane->ops, lane->device, lane->stream, &lane->gather);
        lane->gather_refused = status == -ENOTSUP;
    }
    return lane->gather;
}

/* One past the piece that starts at `start`: never inside an element, unless the haul ends there.
 */
static uint64_t piece_end(const struct hipio_haul *haul, uint64_t start)
{
    uint64_t end = haul->start + haul->length;

    if (end - start <= haul->piece)
        return end;
    uint64_t cut = hipio_swap_align(haul->swap, haul->swap_start + start + haul->piece);
    return cut - haul->swap_start;
}

bool hipio_lanes_take(struct hipio_haul *haul, struct hipio_piece *piece)
{
    pthread_mutex_lock(&haul->lock);
    bool more = haul->broken == UINT64_MAX && haul->next < haul->start + haul->length;
    if (more) {
        piece->start = haul->next;
        haul->next = piece_end(haul, haul->next);
        piece->length = haul->next - piece->start;
    }
    pthread_mutex_unlock(&haul->lock);
    return more;
}

bool hipio_lanes_wanted(struct hipio_haul *haul, const struct hipio_piece *piece)
{
    pthread_mutex_lock(&haul->lock);
    bool wanted = piece->start < haul->broken;
    pthread_mutex_unlock(&haul->lock);
    return wanted;
}

static void keep_text(char *text)
{
    strncpy(text, hipio_status_text(), HIPIO_TEXT_MAX - 1);
    text[HIPIO_TEXT_MAX - 1] = '\0';
}

void hipio_lanes_report(struct hipio_haul *haul, const struct hipio_piece *piece, uint64_t moved,
                        int status)
{
    if (status == 0 && moved >= piece->length)
        return;
    pthread_mutex_lock(&haul->lock);
    if (piece->start < haul->broken) {
        haul->broken = piece->start;
        haul->end = piece->start + moved;
        haul->status = status;
        if (status < 0)
            keep_text(haul->text);
    }
    pthread_mutex_unlock(&haul->lock);
}

void hipio_lanes_unfit(struct hipio_haul *haul, int status)
{
    pthread_mutex_lock(&haul->lock);
    if (haul->setup == 0) {
        haul->setup = status;
        keep_text(haul->setup_text);
    }
    pthread_mutex_unlock(&haul->lock);
}

struct helper {
    struct hipio_job job; /* first, so that the job is the helper */
    struct hipio_haul *haul;
    unsigned lane;
    bool submitted;
};

/* The last touch of the haul is under its lock, after which the caller may let it go. */
static void leave_haul(struct hipio_haul *haul)
{
    pthread_mutex_lock(&haul->lock);
    haul->running--;
    pthread_cond_signal(&haul->change);
    pthread_mutex_unlock(&haul->lock);
}

static void help(struct hipio_job *job)
{
    struct helper *self = (struct helper *)job;
    struct hipio_haul *haul = self->haul;

    haul->carry(haul, self->lane);
    leave_haul(haul);
}

static void send_helpers(struct hipio_haul *haul, struct helper *helpers, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        helpers[i] = (struct helper){.job.run = help, .haul = haul, .lane = i + 1};
        pthread_mutex_lock(&haul->lock);
        haul->running++;
        pthread_mutex_unlock(&haul->lock);
        /* A thread that can't be had is a lane less, nothing more. */
        helpers[i].submitted =
            hipio_workers_submit(&crew, &helpers[i].job, HIPIO_PLAN_LANES_MAX) == 0;
        if (!helpers[i].submitted)
            leave_haul(haul);
    }
}

static void gather_helpers(struct hipio_haul *haul, struct helper *helpers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (helpers[i].submitted && hipio_workers_cancel(&crew, &helpers[i].job))
            leave_haul(haul);
    pthread_mutex_lock(&haul->lock);
    while (haul->running > 0)
        pthread_cond_wait(&haul->change, &haul->lock);
    pthread_mutex_unlock(&haul->lock);
}

static int sum_up(const struct hipio_haul *haul, uint64_t *moved)
{
    uint64_t end = haul->broken == UINT64_MAX ? haul->next : haul->end;

    *moved = end - haul->start;
    if (haul->broken != UINT64_MAX)
        return haul->status < 0 ? hipio_status_set(haul->status, "%s", haul->text) : 0;
    if (haul->next < haul->start + haul->length && haul->setup < 0)
        return hipio_status_set(haul->setup, "%s", haul->setup_text);
    return 0;
}

int hipio_lanes_run(struct hipio_haul *haul, uint64_t *moved)
{
    struct helper helpers[HIPIO_PLAN_LANES_MAX];
    unsigned n = haul->lanes < HIPIO_PLAN_LANES_MAX ? haul->lanes : HIPIO_PLAN_LANES_MAX;

    pthread_mutex_init(&haul->lock, NULL);
    pthread_cond_init(&haul->change, NULL);
    haul->next = haul->start;
    haul->broken = UINT64_MAX;
    haul->end = haul->start;
    haul->status = 0;
    haul->setup = 0;
    haul->running = 0;

    if (n > 1)
        send_helpers(haul, helpers, n - 1);
    haul->carry(haul, 0);
    if (n > 1)
        gather_helpers(haul, helpers, n - 1);

    int status = sum_up(haul, moved);
    pthread_cond_destroy(&haul->change);
    pthread_mutex_destroy(&haul->lock);
    return status;
}

static unsigned count_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

static struct hipio_plan_facts gather_facts(const struct hipio_part *part, bool staged)
{
    const struct hipio_request *request = part->request;
    const struct hipio_tunables *tunables = hipio_file_tunables(request->file);
    unsigned cores = count_cores() / hipio_engine_neighbours();
    unsigned sharers = request->sharers ? request->sharers : hipio_engine_neighbours();
    return (struct hipio_plan_facts){
        .op = request->op,
        .length = part->length,
        .staged = staged,
        .shared = hipio_file_is_shared(request->file),
        .cores = cores ? cores : 1,
        .lanes = tunables->lanes,
        .chunk_size = tunables->chunk_size,
        .pinned_limit = tunables->pinned_limit,
        .mapping = tunables->mapping,
        .neighbours = sharers - 1,
    };
}

void hipio_lanes_plan(const struct hipio_part *part, bool staged, struct hipio_plan *plan)
{
    const struct hipio_plan_facts facts = gather_facts(part, staged);

    hipio_plan_make(&facts, plan);
}

/* The first two runs stand for the rest; the first one may be the remainder of a run. */
static uint64_t typical_run(const struct hipio_request *request, uint64_t start, uint64_t length)
{
    struct hipio_cursor cursor;
    int64_t offset;

    hipio_cursor_init(&cursor, request->file_layout, request->file_start + start);
    const uint64_t first = hipio_cursor_next_run(&cursor, length, &offset);
    if (first >= length)
        return length;
    const uint64_t second = hipio_cursor_next_run(&cursor, length - first, &offset);
    return first > second ? first : second;
}

/* What matters for a mapping; *low is where the part begins in the file. */
static void look_at_file(const struct hipio_part *part, struct hipio_plan_facts *facts,
                         int64_t *low)
{
    const struct hipio_request *request = part->request;
    int64_t high;

    hipio_layout_bounds(request->file_layout, request->file_start + part->start, part->length, low,
                        &high);
    *low += request->file_base;
    facts->run = typical_run(request, part->start, part->length);
    facts->fresh =
        request->op == HIPIO_WRITE && high > hipio_file_size(request->file) - request->file_base;
    facts->in_memory = hipio_mapping_is_in_memory(request->file);
}

void hipio_lanes_plan_storage(const struct hipio_part *part, bool staged, struct hipio_plan *plan)
{
    struct hipio_file *file = part->request->file;
    struct hipio_plan_facts facts = gather_facts(part, staged);
    int64_t low = 0;

    facts.direct = hipio_storage_is_direct(file);
    facts.mappable = facts.mapping != HIPIO_OFF &&
                     hipio_storage_for(file, true) == &hipio_storage_mapped &&
                     hipio_mapping_allows(file, facts.op);
    if (facts.mappable)
        look_at_file(part, &facts, &low);
    hipio_plan_make(&facts, plan);
    if (plan->reserve && !hipio_mapping_reserve(file, low, part->length)) {
        facts.mappable = false;
        hipio_plan_make(&facts, plan);
    }
}

void hipio_lanes_shutdown(void)
{
    hipio_workers_dismiss(&crew);
    pthread_mutex_lock(&cache.lock);
    struct hipio_lane *lane = cache.idle;
    cache.idle = NULL;
    pthread_mutex_unlock(&cache.lock);
    while (lane) {
        struct hipio_lane *next = lane->next;
        discard_lane(lane);
        lane = next;
    }
}
