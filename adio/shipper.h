/* SPDX-License-Identifier: MIT */
/*
 * Shipper: the part of every rank in an exchange. It cuts the rank's access into pieces, a round of
 * an aggregator's domain after the other, and sends them with their bytes (write), or sends what it
 * wants and puts the answers into the user's memory (read). Where the aggregator is on the same
 * host, the bytes go straight between the user's memory and the aggregator's basin, and messages
 * only say when. Pieces are sent in the order of the route (route.h).
 */
#pragma once
#include "access.h"
#include "exchange_room.h"
#include "route.h"

struct hipio_shipper_slot {
    int pair;                  /* whose piece it is */
    bool beside;               /* its bytes go to or from the aggregator's basin */
    bool working;              /* `part` is on its way; nothing is sent or received */
    char *in_place;            /* the user's memory, which MPI takes as it is; NULL: by `part` */
    int64_t round;             /* of the piece */
    uint64_t at, bytes;        /* of the access */
    struct hipio_request part; /* between the user's memory and the slot, or the basin */
};

struct hipio_shipper {
    struct hipio_exchange_room *room;
    struct hipio_access *access;
    const struct hipio_domains *domains;
    struct hipio_route route; /* whose piece is next */
    bool mpi_takes;           /* MPI may read and write the user's memory itself */
    int pending;              /* slots that are taken */
    struct hipio_shipper_slot slot[HIPIO_EXCHANGE_SLOTS];
    int queue[HIPIO_EXCHANGE_SLOTS]; /* slots that are working, in the order of their start */
    int queued;
    uint64_t found; /* read: the bytes before this position are there, or will be */
    int code;       /* this rank's first error, an MPI code */
};

/* room->range says what each rank touches. */
void hipio_shipper_init(struct hipio_shipper *self, struct hipio_exchange_room *room,
                        struct hipio_access *access, const struct hipio_domains *domains);
/* Begins one piece, if there is one and a slot for it. False: neither. */
bool hipio_shipper_post(struct hipio_shipper *self);
/*
 * Ends the work of the slot that has been at it longest, if it is done or if `wait` is set. False:
 * none was ended.
 */
bool hipio_shipper_settle(struct hipio_shipper *self, bool wait);
/* Handles an event of a slot: SHIPPED, TOLD, ANSWERED or MOVED. */
void hipio_shipper_event(struct hipio_shipper *self, enum hipio_exchange_event event, int slot);
bool hipio_shipper_is_done(const struct hipio_shipper *self);
