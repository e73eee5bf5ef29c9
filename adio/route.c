/* SPDX-License-Identifier: MIT */
/* Route: rounds, pairs and the ends of their parts. */
#include "route.h"

/* The access as its file layout sees it. */
static int64_t offset_of(const struct hipio_route *self, uint64_t position)
{
    const struct hipio_request *request = &self->access->request;
    struct hipio_cursor cursor;
    int64_t offset = 0;

    hipio_cursor_init(&cursor, request->file_layout, request->file_start + position);
    hipio_cursor_next_run(&cursor, 1, &offset);
    return request->file_base + offset;
}

uint64_t hipio_route_below(const struct hipio_route *self, uint64_t start, uint64_t bytes,
                           int64_t offset)
{
    const struct hipio_request *request = &self->access->request;

    if (offset == INT64_MAX)
        return bytes;
    return hipio_layout_bytes_below(request->file_layout, request->file_start + start, bytes,
                                    offset - request->file_base);
}

/* Ranks begin at different aggregators. */
static int pair_at(const struct hipio_route *self, int turn)
{
    return (int)(((int64_t)turn + self->room->rank) % self->domains->count);
}

static void init_pairs(struct hipio_route *self)
{
    const struct hipio_range *range = &self->room->range[self->room->rank];
    uint64_t at = 0;

    for (int i = 0; i < self->domains->count; i++) {
        struct hipio_exchange_pair *pair = &self->room->pair[i];
        struct hipio_range share = hipio_domains_share(self->domains, i, range);

        pair->at = pair->end = at;
        pair->round = -1;
        if (share.low == share.high)
            continue;
        /* The aggregator waits for us here even if the range has a hole there. */
        pair->round = hipio_domains_round_of(self->domains, i, share.low);
        pair->end = at + hipio_route_below(self, at, self->access->bytes - at, share.high);
        at = pair->end;
    }
}

static int64_t lowest_round(const struct hipio_route *self)
{
    int64_t lowest = -1;

    for (int i = 0; i < self->domains->count; i++) {
        int64_t round = self->room->pair[i].round;
        if (round >= 0 && (lowest < 0 || round < lowest))
            lowest = round;
    }
    return lowest;
}

void hipio_route_init(struct hipio_route *self, struct hipio_exchange_room *room,
                      const struct hipio_access *access, const struct hipio_domains *domains)
{
    *self = (struct hipio_route){.room = room, .access = access, .domains = domains};
    init_pairs(self);
    self->round = lowest_round(self);
}

int hipio_route_next(struct hipio_route *self)
{
    while (self->round >= 0) {
        for (; self->visited < self->domains->count; self->visited++) {
            int i = pair_at(self, self->visited);
            if (self->room->pair[i].round == self->round)
                return i;
        }
        self->visited = 0;
        self->round = lowest_round(self);
    }
    return -1;
}

void hipio_route_begin(struct hipio_route *self, int i)
{
    const struct hipio_exchange_pair *pair = &self->room->pair[i];

    self->limit =
        pair->at + hipio_route_below(self, pair->at, pair->end - pair->at,
                                     hipio_domains_round(self->domains, i, pair->round).high);
}

void hipio_route_announce(struct hipio_route *self, int i, bool nothing, struct hipio_piece *piece)
{
    const struct hipio_exchange_pair *pair = &self->room->pair[i];
    struct hipio_range round;

    self->more = self->limit < pair->end && !nothing;
    if (!self->more)
        return;
    piece->next_low = offset_of(self, self->limit);
    round = hipio_domains_round(self->domains, i,
                                hipio_domains_round_of(self->domains, i, piece->next_low));
    uint64_t bytes = hipio_route_below(self, self->limit, pair->end - self->limit, round.high);
    piece->next_high = offset_of(self, self->limit + bytes - 1) + 1;
}

void hipio_route_list(const struct hipio_route *self, int i, struct hipio_piece *piece)
{
    const struct hipio_request *request = &self->access->request;
    const struct hipio_exchange_pair *pair = &self->room->pair[i];
    struct hipio_piece_source source = {request->file_layout, request->file_base,
                                        hipio_domains_round(self->domains, i, pair->round).low};
    uint64_t bytes = self->limit - pair->at;

    if (bytes > self->room->data)
        bytes = self->room->data;
    hipio_piece_list(piece, &source, request->file_start + pair->at, bytes, self->room->strips);
}

void hipio_route_leave(struct hipio_route *self, int i, bool abandoned)
{
    struct hipio_exchange_pair *pair = &self->room->pair[i];

    self->pieces = 0;
    self->visited++;
    if (abandoned || !self->more)
        pair->round = -1;
    else
        pair->round = hipio_domains_round_of(self->domains, i, offset_of(self, pair->at));
}
