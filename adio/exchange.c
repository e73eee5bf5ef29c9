/* SPDX-License-Identifier: MIT */
/* Exchange: the survey, and the loop that drives both roles of a rank. */
#include "exchange.h"
#include "aggregator.h"
#include "mail.h"
#include "mpierr.h"
#include "shipper.h"
#include <string.h>
#include <sys/stat.h>

_Static_assert(sizeof(struct hipio_range) == 2 * sizeof(long long), "sent as two integers");

#define ALIGN_MAX (INT64_C(64) << 20)

static int64_t block_of(const struct hipio_driven *driven)
{
    const struct hipio_romio_file *fd = driven->fd;
    struct stat status;

    if (fd->hints->striping_unit > 0)
        return fd->hints->striping_unit;
    if (fd->is_open && fd->fd_sys >= 0 && fstat(fd->fd_sys, &status) == 0)
        return status.st_blksize;
    return 0;
}

void hipio_exchange_propose(struct hipio_driven *driven, struct hipio_exchange_terms *terms)
{
    int64_t block = block_of(driven);

    if (block > ALIGN_MAX)
        block = ALIGN_MAX;
    terms->align =
        block < HIPIO_PAGE ? HIPIO_PAGE : (block + HIPIO_PAGE - 1) / HIPIO_PAGE * HIPIO_PAGE;
    terms->buffer = driven->fd->hints->cb_buffer_size;
    terms->least = driven->fd->hints->min_fdomain_size;
}

static struct hipio_range own_range(const struct hipio_access *access)
{
    const struct hipio_request *request = &access->request;
    struct hipio_range range = {0, 0};

    if (access->bytes == 0)
        return range;
    hipio_layout_bounds(request->file_layout, request->file_start, access->bytes, &range.low,
                        &range.high);
    range.low += request->file_base;
    range.high += request->file_base;
    return range;
}

static void make_domains(const struct hipio_exchange_room *room, struct hipio_domains *domains)
{
    const struct hipio_domains_rules rules = {.aggregators = room->aggregators,
                                              .align = room->terms.align,
                                              .least = room->terms.least,
                                              .round = room->round};

    hipio_domains_make(room->range, room->ranks, &rules, domains);
}

/* Sorts a copy: the ranges stay in the order of ranks. */
static bool interleave(struct hipio_exchange_room *room)
{
    size_t ranks = (size_t)room->ranks;

    memcpy(room->range + ranks, room->range, ranks * sizeof *room->range);
    return hipio_domains_interleave(room->range + ranks, room->ranks);
}

int hipio_exchange_survey(struct hipio_access *access, const struct hipio_exchange_terms *terms,
                          bool insist, enum hipio_exchange_verdict *verdict)
{
    struct hipio_exchange_room *room;
    struct hipio_range own = own_range(access);
    struct hipio_domains domains;
    int code = hipio_exchange_room_enter(access->driven, terms, &room);

    *verdict = HIPIO_EXCHANGE_IMPOSSIBLE;
    if (!room)
        return code;
    hipio_mail_note(
        room, PMPI_Allgather(&own, 2, MPI_LONG_LONG, room->range, 2, MPI_LONG_LONG, room->comm),
        "tell all ranks what each of them touches");
    hipio_mail_clear(room);
    if (hipio_mail_code(room) != MPI_SUCCESS)
        return hipio_mail_code(room);
    make_domains(room, &domains);
    if (hipio_domains_rounds(&domains) < room->tags && (insist || interleave(room)))
        *verdict = HIPIO_EXCHANGE_POSSIBLE;
    else
        *verdict = HIPIO_EXCHANGE_NEEDLESS;
    return MPI_SUCCESS;
}

/* Both roles of this rank. */
struct roles {
    struct hipio_exchange_room *room;
    struct hipio_shipper shipper;
    struct hipio_aggregator aggregator;
};

static void dispatch(struct roles *roles, int index, const MPI_Status *status)
{
    enum hipio_exchange_event event = (enum hipio_exchange_event)(index / HIPIO_EXCHANGE_SLOTS);
    int slot = index % HIPIO_EXCHANGE_SLOTS;

    if (event <= HIPIO_EXCHANGE_MOVED)
        hipio_shipper_event(&roles->shipper, event, slot);
    else
        hipio_aggregator_event(&roles->aggregator, event, slot, status);
}

/*
 * One turn: whatever can be begun is begun, and whatever has ended is followed up. False: nothing
 * was. Storage and packing are at work meanwhile, and what others send or take only moves while
 * MPI is called, so nothing is waited for as long as a message is on its way.
 */
static bool turn(struct roles *roles)
{
    MPI_Status status;
    int index;
    bool moved = hipio_aggregator_post(&roles->aggregator);

    moved |= hipio_shipper_post(&roles->shipper);
    moved |= hipio_shipper_settle(&roles->shipper, false);
    enum hipio_mail_found found = hipio_mail_next(roles->room, &index, &status);
    if (found == HIPIO_MAIL_EVENT)
        dispatch(roles, index, &status);
    else if (found == HIPIO_MAIL_NOTHING && !moved)
        moved = hipio_shipper_settle(&roles->shipper, true);
    return moved || found == HIPIO_MAIL_EVENT;
}

/* Nobody has anything more for this rank nor it for others, or messages have come to an end. */
static bool is_over(const struct roles *roles)
{
    if (hipio_mail_code(roles->room) != MPI_SUCCESS)
        return true;
    return hipio_shipper_is_done(&roles->shipper) && hipio_aggregator_is_done(&roles->aggregator);
}

static int run(struct roles *roles)
{
    struct hipio_rest rest = {0, 0};

    while (!is_over(roles))
        hipio_mail_rest(roles->room, &rest, !turn(roles));
    while (hipio_shipper_settle(&roles->shipper, true))
        ;
    return hipio_mail_code(roles->room);
}

int hipio_exchange_move(struct hipio_access *access)
{
    struct roles roles = {.room = access->driven->exchange};
    struct hipio_domains domains;

    make_domains(roles.room, &domains);
    hipio_shipper_init(&roles.shipper, roles.room, access, &domains);
    hipio_aggregator_init(&roles.aggregator, roles.room, access, &domains);
    int code = run(&roles);
    int stored = hipio_aggregator_finish(&roles.aggregator);
    hipio_mail_clear(roles.room);
    access->request.done = roles.shipper.found;
    if (code == MPI_SUCCESS)
        code = stored;
    return code == MPI_SUCCESS ? roles.shipper.code : code;
}

bool hipio_exchange_is_broken(const struct hipio_driven *driven)
{
    return driven->exchange && driven->exchange->broken;
}

void hipio_exchange_attend(void *driven)
{
    struct hipio_exchange_room *room = ((struct hipio_driven *)driven)->exchange;

    if (room)
        hipio_mail_attend(room);
}
