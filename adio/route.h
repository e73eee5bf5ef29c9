/* SPDX-License-Identifier: MIT */
/*
 * Route: in which order a rank sends the pieces of its access. It goes through the rounds, and in
 * each of them through the aggregators that have bytes of it then.
 *
 * An aggregator takes all pieces of a round before it waits for the next, so as long as every rank
 * keeps to this order, the lowest round that is not complete anywhere always goes on.
 */
#pragma once
#include "access.h"
#include "exchange_room.h"

struct hipio_route {
    struct hipio_exchange_room *room; /* room->pair is the route's */
    const struct hipio_access *access;
    const struct hipio_domains *domains;
    int64_t round;   /* in which pieces are being made; -1: all are */
    int visited;     /* pairs that were looked at in this round */
    uint64_t limit;  /* packed position at which the current pair's part of the round ends */
    uint32_t pieces; /* made of that part */
    bool more;       /* the aggregator was told that there is another part after it */
};

/* room->range says what each rank touches. */
void hipio_route_init(struct hipio_route *route, struct hipio_exchange_room *room,
                      const struct hipio_access *access, const struct hipio_domains *domains);
/* The pair whose piece is next; -1: there is none any more. */
int hipio_route_next(struct hipio_route *route);

/* Begins the pair's part of its round: finds where it ends. */
void hipio_route_begin(struct hipio_route *route, int pair);
/*
 * Writes into the first piece of the part what this rank touches of the domain afterwards.
 * `nothing`: it will not come again.
 */
void hipio_route_announce(struct hipio_route *route, int pair, bool nothing,
                          struct hipio_piece *piece);
/* Lists the next bytes of the part, as many as a message may have. */
void hipio_route_list(const struct hipio_route *route, int pair, struct hipio_piece *piece);
/* Behind the pair's part of its round. What the aggregator was told holds, unless the rest is
 * `abandoned`. */
void hipio_route_leave(struct hipio_route *route, int pair, bool abandoned);

/* How many bytes of the access, from packed position `start` on, lie below that offset of the file.
 */
uint64_t hipio_route_below(const struct hipio_route *route, uint64_t start, uint64_t bytes,
                           int64_t offset);
