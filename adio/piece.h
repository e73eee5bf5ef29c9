/* SPDX-License-Identifier: MIT */
/*
 * Piece: one message of a collective's exchange. It says which bytes of an aggregator's round are
 * meant, as strips, and in a write the bytes follow, packed, or come as a message of their own, as
 * the sender likes. Ranks of a job run the same binary on the same kind of machine, so the structs
 * are the format.
 */
#pragma once
#include "engine/extent.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    HIPIO_PIECE_FIRST = 1,   /* of its sender in this round */
    HIPIO_PIECE_LAST = 2,    /* of its sender in this round */
    HIPIO_PIECE_ABANDON = 4, /* the sender has failed and sends nothing more into this domain */
    HIPIO_PIECE_APART = 8, /* the bytes come, or in a read are wanted, as a message of their own */
};

struct hipio_piece {
    int64_t round;
    int64_t next_low, next_high; /* first piece: what the sender touches of this domain in the next
                                    round in which it does; empty: nothing more */
    uint64_t bytes;              /* of all strips */
    uint32_t strips;
    uint32_t flags;
    uint32_t pieces; /* last piece: how many there were in this round */
    uint32_t slot;   /* read: where the sender waits for the answer; write, bytes that come apart:
                        the number of their piece in the sender's part of the round */
    uint64_t spare[2];
};
_Static_assert(sizeof(struct hipio_piece) == 64, "head of a message");

/* `count` blocks of `length` bytes; offsets count from the first byte of the round. */
struct hipio_piece_strip {
    uint32_t offset, length, count, stride;
};

/*
 * Head of the answer to a piece of a read, whose bytes follow, packed, or come apart; and the word
 * to a rank of the same host that a basin is open to it.
 */
struct hipio_piece_answer {
    int64_t end;     /* read: the bytes below this offset of the file are there */
    uint64_t failed; /* the aggregator could not read; no bytes follow, and none are in the basin */
    uint64_t basin;  /* which of the two */
    uint64_t spare[5];
};
_Static_assert(sizeof(struct hipio_piece_answer) == 64, "head of a message");

static inline struct hipio_piece_strip *hipio_piece_strips(struct hipio_piece *piece)
{
    return (struct hipio_piece_strip *)(piece + 1);
}

/* Bytes of head and strips. */
static inline uint64_t hipio_piece_list_bytes(const struct hipio_piece *piece)
{
    return sizeof *piece + piece->strips * sizeof(struct hipio_piece_strip);
}

struct hipio_piece_source {
    const struct hipio_layout *layout; /* monotonic */
    int64_t base;                      /* its offsets are relative to it */
    int64_t round_low;                 /* first byte of the round */
};

/*
 * Lists the bytes of the layout from packed position `position` on, at most `bytes` and `strips`.
 * All of them must lie in the round. Fills strips and bytes of the piece, and returns the bytes.
 */
uint64_t hipio_piece_list(struct hipio_piece *piece, const struct hipio_piece_source *source,
                          uint64_t position, uint64_t bytes, uint64_t strips);

/* How many of the bytes, from the first on, lie below that offset in the round. */
uint64_t hipio_piece_bytes_below(const struct hipio_piece *piece, uint64_t offset);

/* True: the message of `received` bytes is a piece whose strips lie within a round of `size`
 * bytes; with data, if `data`. */
bool hipio_piece_is_sound(const struct hipio_piece *piece, uint64_t received, uint64_t size,
                          bool data);
