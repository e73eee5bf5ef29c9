/* SPDX-License-Identifier: MIT */
/* Exchange room: sizes, allocation, places and tags. */
#include "exchange_room.h"
#include "agree.h"
#include "engine/status.h"
#include "mpierr.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TAG_WORD 0
#define TAG_ALARM 1
#define TAG_ANSWER 2
/* Far more than a sender has pieces of a round on their way: a long list may arrive after many
 * short ones that were sent later, and its bytes must not be taken for theirs. */
#define BYTES_TAGS 16384
#define TAG_BYTES (TAG_ANSWER + HIPIO_EXCHANGE_SLOTS)
#define TAG_PIECE (TAG_BYTES + BYTES_TAGS)

#define PAGE ((uint64_t)HIPIO_PAGE)
/* Longer messages gain nothing. */
#define DATA_MAX (UINT64_C(4) << 20)
#define DATA_MIN (UINT64_C(1) << 10)
/* A list of strips may take a quarter of what the data take. */
#define LIST_SHARE 4
#define ROUND_MIN 512

static uint64_t list_bytes(const struct hipio_exchange_room *room)
{
    return sizeof(struct hipio_piece) + room->strips * sizeof(struct hipio_piece_strip);
}

/* Both roles' slots together stay within the setting window_size. */
static void size_messages(struct hipio_exchange_room *room)
{
    uint64_t data = room->window / ((uint64_t)4 * HIPIO_EXCHANGE_SLOTS);

    if (data > DATA_MAX)
        data = DATA_MAX;
    if (data < DATA_MIN)
        data = DATA_MIN;
    room->data = data - data % 64;
    room->strips = room->data / LIST_SHARE / sizeof(struct hipio_piece_strip);
    room->stride = list_bytes(room) + sizeof(struct hipio_piece_answer) + room->data;
    room->stride = (room->stride + PAGE - 1) / PAGE * PAGE;
}

/* Two rounds share the aggregator's buffer: one is exchanged while the other is on its way to or
 * from storage. */
static void size_round(struct hipio_exchange_room *room)
{
    int64_t round = room->terms.buffer / 2, unit = room->terms.align;

    if (round < unit)
        unit = PAGE;
    if (round >= unit)
        round -= round % unit;
    room->round = round < ROUND_MIN ? ROUND_MIN : round;
}

static void find_tags(struct hipio_exchange_room *room)
{
    int *highest = NULL, found = 0;

    PMPI_Comm_get_attr(room->comm, MPI_TAG_UB, &highest, &found);
    room->tags = (found ? *highest : INT16_MAX) - TAG_PIECE + 1;
}

static bool is_listed(const struct hipio_exchange_room *room, int rank)
{
    for (int i = 0; i < room->aggregators; i++) {
        if (room->aggregator[i] == rank)
            return true;
    }
    return false;
}

/* ROMIO's aggregators, in its order. */
static void list_aggregators(struct hipio_exchange_room *room, const struct hipio_driven *driven)
{
    for (int i = 0; i < driven->cb_nodes; i++) {
        int rank = driven->fd->hints->ranklist[i];
        if (rank >= 0 && rank < room->ranks && !is_listed(room, rank))
            room->aggregator[room->aggregators++] = rank;
    }
    if (room->aggregators == 0)
        room->aggregator[room->aggregators++] = 0;
}

static int make_arena(struct hipio_exchange_room *room, const struct hipio_driven *driven)
{
    uint64_t bytes = (uint64_t)2 * HIPIO_EXCHANGE_SLOTS * room->stride;
    int rc;

    if (posix_memalign((void **)&room->arena, PAGE, bytes))
        return -ENOMEM;
    rc = hipio_layout_run(0, bytes, &room->arena_layout);
    if (rc == 0)
        rc = hipio_file_create_window(room->arena, bytes, "collective exchange", &driven->tunables,
                                      &room->arena_file);
    return rc;
}

/* ---- Basins ---- */

static uint64_t basins_bytes(const struct hipio_exchange_room *room)
{
    return 2 * hipio_basin_bytes((uint64_t)room->round);
}

static void lay_basins(const struct hipio_exchange_room *room, void *memory,
                       struct hipio_basin basin[2])
{
    for (int i = 0; i < 2; i++)
        hipio_basin_init(&basin[i], (char *)memory + (uint64_t)i * basins_bytes(room) / 2,
                         (uint64_t)room->round);
}

static int make_basins(struct hipio_exchange_room *room)
{
    void *memory = hipio_shared_window_of(room->shared, room->rank);

    if (!memory) {
        if (posix_memalign(&room->basins, PAGE, basins_bytes(room))) {
            room->basins = NULL;
            return -ENOMEM;
        }
        memory = room->basins;
    }
    lay_basins(room, memory, room->basin);
    return 0;
}

/* The aggregator's basins as files of the engine, where they can be reached. */
static int meet(struct hipio_exchange_room *room, const struct hipio_driven *driven, int i)
{
    struct hipio_exchange_neighbour *neighbour = &room->neighbour[i];
    void *memory = hipio_shared_window_of(room->shared, room->aggregator[i]);
    int rc = 0;

    if (!memory)
        return 0;
    lay_basins(room, memory, neighbour->basin);
    for (int k = 0; k < 2 && rc == 0; k++)
        rc =
            hipio_file_create_window(neighbour->basin[k].memory, (uint64_t)room->round,
                                     "collective exchange", &driven->tunables, &neighbour->file[k]);
    return rc;
}

/* After the shared window was made, whose memory is for all or for none. */
static int furnish_basins(struct hipio_exchange_room *room, const struct hipio_driven *driven)
{
    int rc = is_listed(room, room->rank) ? make_basins(room) : 0;

    for (int i = 0; i < room->aggregators && rc == 0; i++)
        rc = meet(room, driven, i);
    for (int rank = 0; rank < room->ranks; rank++)
        room->beside[rank] = hipio_shared_window_reaches(room->shared, rank);
    return rc;
}

/* ---- The room ---- */

static int furnish(struct hipio_exchange_room *room, const struct hipio_driven *driven)
{
    size_t ranks, most = driven->cb_nodes > 0 ? (size_t)driven->cb_nodes : 1;

    PMPI_Comm_rank(room->comm, &room->rank);
    PMPI_Comm_size(room->comm, &room->ranks);
    ranks = (size_t)room->ranks;
    size_messages(room);
    size_round(room);
    find_tags(room);
    room->range = calloc(2 * ranks, sizeof *room->range);
    room->peer = calloc(ranks, sizeof *room->peer);
    room->aggregator = calloc(most, sizeof *room->aggregator);
    room->pair = calloc(most, sizeof *room->pair);
    room->neighbour = calloc(most, sizeof *room->neighbour);
    room->beside = calloc(ranks, sizeof *room->beside);
    room->word = calloc(ranks, sizeof(MPI_Request));
    if (!room->range || !room->peer || !room->aggregator || !room->pair || !room->neighbour ||
        !room->beside || !room->word)
        return -ENOMEM;
    list_aggregators(room, driven);
    for (size_t i = 0; i < sizeof room->request / sizeof room->request[0]; i++)
        room->request[i] = MPI_REQUEST_NULL;
    for (size_t i = 0; i < ranks; i++)
        room->word[i] = MPI_REQUEST_NULL;
    return make_arena(room, driven);
}

static void destroy(struct hipio_exchange_room *room)
{
    if (!room)
        return;
    for (int i = 0; room->neighbour && i < room->aggregators; i++) {
        hipio_file_destroy(room->neighbour[i].file[0]);
        hipio_file_destroy(room->neighbour[i].file[1]);
    }
    hipio_shared_window_destroy(room->shared);
    hipio_file_destroy(room->arena_file);
    hipio_layout_release(room->arena_layout);
    free(room->arena);
    free(room->basins);
    free(room->range);
    free(room->peer);
    free(room->aggregator);
    free(room->pair);
    free(room->neighbour);
    free(room->beside);
    free(room->word);
    free(room);
}

/* What a rank can make by itself; NULL where it has no memory for it. */
static struct hipio_exchange_room *make_alone(const struct hipio_driven *driven,
                                              const struct hipio_exchange_terms *terms)
{
    struct hipio_exchange_room *room = calloc(1, sizeof *room);

    if (!room)
        return NULL;
    room->comm = driven->fd->comm;
    room->terms = *terms;
    room->window = driven->tunables.window_size;
    if (furnish(room, driven) == 0)
        return room;
    destroy(room);
    return NULL;
}

/* Collective: a rank without memory takes part in what the others make together. */
static struct hipio_exchange_room *make(const struct hipio_driven *driven,
                                        const struct hipio_exchange_terms *terms)
{
    struct hipio_exchange_room *room = make_alone(driven, terms);
    uint64_t bytes = room && is_listed(room, room->rank) ? basins_bytes(room) : 0;
    struct hipio_shared_window *shared =
        hipio_shared_window_create(driven->fd->comm, bytes, driven->tunables.shared_ranks);

    if (!room || !shared) {
        hipio_shared_window_destroy(shared);
        destroy(room);
        return NULL;
    }
    room->shared = shared;
    if (furnish_basins(room, driven) == 0)
        return room;
    destroy(room);
    return NULL;
}

/* The terms and the setting are the same on all ranks, and so is the answer. */
static bool fits(const struct hipio_exchange_room *room, const struct hipio_driven *driven,
                 const struct hipio_exchange_terms *terms)
{
    return room->terms.buffer == terms->buffer && room->terms.align == terms->align &&
           room->terms.least == terms->least && room->window == driven->tunables.window_size;
}

/*
 * A communicator for the exchange alone, so that a message that nobody took after a failure can't
 * meet one of ROMIO's, nor of a later exchange. Collective; ROMIO's attributes stay behind.
 */
static int make_comm(struct hipio_driven *driven)
{
    MPI_Group all;
    int rc = PMPI_Comm_group(driven->fd->comm, &all);

    if (rc != MPI_SUCCESS)
        return rc;
    rc = PMPI_Comm_create(driven->fd->comm, all, &driven->exchange_comm);
    if (rc != MPI_SUCCESS)
        driven->exchange_comm = MPI_COMM_NULL;
    PMPI_Group_free(&all);
    return rc;
}

void hipio_exchange_room_leave(struct hipio_driven *driven)
{
    int finalized = 1;

    destroy(driven->exchange);
    driven->exchange = NULL;
    PMPI_Finalized(&finalized);
    if (driven->exchange_comm != MPI_COMM_NULL && !finalized)
        PMPI_Comm_free(&driven->exchange_comm);
    driven->exchange_comm = MPI_COMM_NULL;
}

int hipio_exchange_room_enter(struct hipio_driven *driven, const struct hipio_exchange_terms *terms,
                              struct hipio_exchange_room **room)
{
    long long missing = 0;

    if (terms->renew || (driven->exchange && !fits(driven->exchange, driven, terms)))
        hipio_exchange_room_leave(driven);
    *room = driven->exchange;
    if (*room)
        return MPI_SUCCESS;
    if (driven->exchange_comm == MPI_COMM_NULL)
        missing = make_comm(driven) != MPI_SUCCESS;
    struct hipio_exchange_room *made = make(driven, terms);
    missing |= made == NULL;
    int code = hipio_agree_max(driven->fd->comm, &missing, 1);
    if (code == MPI_SUCCESS && !missing) {
        made->comm = driven->exchange_comm;
        *room = driven->exchange = made;
        return MPI_SUCCESS;
    }
    if (!made)
        code = hipio_mpierr_code(MPI_ERR_NO_MEM,
                                 "no memory for a collective exchange; lower HIPIO_WINDOW_SIZE or "
                                 "the hint cb_buffer_size");
    destroy(made);
    hipio_exchange_room_leave(driven);
    return code;
}

void hipio_exchange_room_set_tunables(struct hipio_exchange_room *room,
                                      const struct hipio_tunables *tunables)
{
    hipio_file_set_tunables(room->arena_file, tunables);
    for (int i = 0; i < room->aggregators; i++) {
        for (int k = 0; k < 2; k++) {
            if (room->neighbour[i].file[k])
                hipio_file_set_tunables(room->neighbour[i].file[k], tunables);
        }
    }
}

char *hipio_exchange_room_slot(const struct hipio_exchange_room *room, bool aggregator, int slot)
{
    int index = aggregator ? HIPIO_EXCHANGE_SLOTS + slot : slot;

    return room->arena + (uint64_t)index * room->stride;
}

char *hipio_exchange_room_answer(const struct hipio_exchange_room *room, bool aggregator, int slot)
{
    return hipio_exchange_room_slot(room, aggregator, slot) + list_bytes(room);
}

uint64_t hipio_exchange_room_message(const struct hipio_exchange_room *room)
{
    return list_bytes(room) + room->data;
}

MPI_Request *hipio_exchange_room_request(struct hipio_exchange_room *room,
                                         enum hipio_exchange_event event, int slot)
{
    return &room->request[(int)event * HIPIO_EXCHANGE_SLOTS + slot];
}

bool hipio_exchange_room_is_free(struct hipio_exchange_room *room, bool aggregator, int slot)
{
    int first = aggregator ? HIPIO_EXCHANGE_ARRIVED : HIPIO_EXCHANGE_SHIPPED;
    int last = aggregator ? HIPIO_EXCHANGE_GIVEN : HIPIO_EXCHANGE_MOVED;

    for (int event = first; event <= last; event++) {
        if (*hipio_exchange_room_request(room, (enum hipio_exchange_event)event, slot) !=
            MPI_REQUEST_NULL)
            return false;
    }
    return true;
}

int hipio_exchange_room_tag(const struct hipio_exchange_room *room, int64_t round)
{
    return (int)(TAG_PIECE + round % room->tags);
}

int hipio_exchange_room_answer_tag(int slot)
{
    return TAG_ANSWER + slot;
}

int hipio_exchange_room_bytes_tag(uint32_t number)
{
    return TAG_BYTES + (int)(number % BYTES_TAGS);
}

int hipio_exchange_room_word_tag(void)
{
    return TAG_WORD;
}

int hipio_exchange_room_alarm_tag(void)
{
    return TAG_ALARM;
}
