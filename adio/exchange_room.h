/* SPDX-License-Identifier: MIT */
/*
 * Exchange room: the memory and the messages of a file's collective exchanges, made at the first
 * one and kept. Its size follows the settings, whatever the size of an access.
 */
#pragma once
#include "basin.h"
#include "domains.h"
#include "driver.h"
#include "shared_window.h"

/* Messages that a role has in flight at most. */
enum { HIPIO_EXCHANGE_SLOTS = 4 };

/* What a message is to this rank; requests of one kind stand together. */
enum hipio_exchange_event {
    HIPIO_EXCHANGE_SHIPPED,  /* a piece of ours was sent */
    HIPIO_EXCHANGE_TOLD,     /* an empty one that goes before it was sent */
    HIPIO_EXCHANGE_ANSWERED, /* the answer to a piece of ours is here, or the word that a basin is
                                ours to use */
    HIPIO_EXCHANGE_MOVED,   /* the bytes of a piece of ours, apart from it, were sent or are here */
    HIPIO_EXCHANGE_ARRIVED, /* as aggregator: a piece is here */
    HIPIO_EXCHANGE_FILLED,  /* as aggregator: the bytes of a piece, apart from it, are here */
    HIPIO_EXCHANGE_REPLIED, /* as aggregator: an answer was sent */
    HIPIO_EXCHANGE_GIVEN,   /* as aggregator: the bytes of an answer, apart from it, were sent */
    HIPIO_EXCHANGE_EVENTS
};

/* What all ranks agreed on before they make a room. */
struct hipio_exchange_terms {
    int64_t buffer; /* bytes that an aggregator may use, the least of all ranks */
    int64_t align;  /* blocks of the file that no two aggregators may share */
    int64_t least;  /* bytes of a domain, at least */
    bool renew;     /* some rank's room is broken */
};

/* Packed positions of an access that lie in one aggregator's domain and are still to be moved. */
struct hipio_exchange_pair {
    uint64_t at, end;
    int64_t round; /* in which `at` is; -1: nothing more */
};

/* An aggregator on this host, whose basins this rank can address. */
struct hipio_exchange_neighbour {
    struct hipio_basin basin[2];
    struct hipio_file *file[2]; /* the same memory as the engine sees it; NULL: not on this host */
};

struct hipio_exchange_room {
    MPI_Comm comm; /* the exchange's own, of all ranks of the file */
    int rank, ranks;
    int aggregators;
    int *aggregator; /* their ranks, each once */
    int64_t tags;    /* rounds that tags can tell apart */
    struct hipio_exchange_terms terms;
    uint64_t window; /* the setting that the messages were made for */

    uint64_t strips, data; /* of one message, at most */
    uint64_t stride;       /* from slot to slot */
    char *arena;           /* the slots of both roles */
    struct hipio_file *arena_file;
    struct hipio_layout *arena_layout;
    MPI_Request request[HIPIO_EXCHANGE_EVENTS * HIPIO_EXCHANGE_SLOTS];
    bool inbound[HIPIO_EXCHANGE_EVENTS * HIPIO_EXCHANGE_SLOTS]; /* which of them are receives */
    int mail_code; /* why no message is posted any more, an MPI code */
    bool broken;   /* messages may be on their way that nobody waits for */
    bool alarm;    /* the other ranks don't know that yet */

    struct hipio_range *range;        /* what each rank touches */
    struct hipio_range *peer;         /* aggregator: what each rank touches next in its domain */
    struct hipio_exchange_pair *pair; /* one for each aggregator */

    int64_t round;               /* bytes of a round */
    struct hipio_basin basin[2]; /* of this rank, if it is an aggregator */
    void *basins;                /* their memory, where it is not shared */

    struct hipio_shared_window *shared;         /* aggregators' basins */
    struct hipio_exchange_neighbour *neighbour; /* one for each aggregator */
    bool *beside;                               /* which ranks use our basins directly */
    MPI_Request *word; /* aggregator: to each of them that a basin is open */
};

/*
 * The file's room. Collective: all ranks have it afterwards or none. Returns this rank's MPI code;
 * *room is NULL where some rank has no memory for it.
 */
int hipio_exchange_room_enter(struct hipio_driven *driven, const struct hipio_exchange_terms *terms,
                              struct hipio_exchange_room **room);
/* Destroys the file's room, if there is one, and its communicator. All ranks do so together. */
void hipio_exchange_room_leave(struct hipio_driven *driven);

/* Puts other settings in force for what moves bytes in the room. */
void hipio_exchange_room_set_tunables(struct hipio_exchange_room *room,
                                      const struct hipio_tunables *tunables);

/* Place of a slot in the arena: for pieces of ours, or (as aggregator) of others. */
char *hipio_exchange_room_slot(const struct hipio_exchange_room *room, bool aggregator, int slot);
/* Where the answer to the piece in a slot is, or is made. */
char *hipio_exchange_room_answer(const struct hipio_exchange_room *room, bool aggregator, int slot);
/* Bytes that a slot takes before the answer: the longest list; and those of the longest message. */
uint64_t hipio_exchange_room_message(const struct hipio_exchange_room *room);

MPI_Request *hipio_exchange_room_request(struct hipio_exchange_room *room,
                                         enum hipio_exchange_event event, int slot);
/* True: no message of the slot, of ours or (as aggregator) of others, is on its way. */
bool hipio_exchange_room_is_free(struct hipio_exchange_room *room, bool aggregator, int slot);
/* Tags of the pieces of a round, and of the answer to the piece in a slot. */
int hipio_exchange_room_tag(const struct hipio_exchange_room *room, int64_t round);
int hipio_exchange_room_answer_tag(int slot);
/* Tag of the bytes that come apart from a piece or an answer; the piece says which of the numbers
 * from 0 to HIPIO_EXCHANGE_SLOTS - 1 it is. */
int hipio_exchange_room_bytes_tag(uint32_t number);
/* Tag of the word that a basin is open, and of the alarm. */
int hipio_exchange_room_word_tag(void);
int hipio_exchange_room_alarm_tag(void);
