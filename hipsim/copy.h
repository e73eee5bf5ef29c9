/* SPDX-License-Identifier: MIT */
/* The copy engine: copies and fills, always through the simulator's own view of memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hipsim_stream;

enum hipsim_direction {
    HIPSIM_COPY_H2H,
    HIPSIM_COPY_H2D,
    HIPSIM_COPY_D2H,
    HIPSIM_COPY_D2D,
    HIPSIM_COPY_ANY,
};

/* A box of bytes. A contiguous copy has height and depth 1; pitches then do not matter. */
struct hipsim_copy {
    void *to;
    const void *from;
    size_t to_pitch, to_slice; /* bytes from row to row and from plane to plane */
    size_t from_pitch, from_slice;
    size_t width, height, depth;
    enum hipsim_direction direction; /* as stated by the caller */
    bool strict;                     /* CUDA: the stated direction must fit the pointers */
};

struct hipsim_copy hipsim_copy_linear(void *to, const void *from, size_t bytes,
                                      enum hipsim_direction direction);

/* Queues the copy. Pageable sources are read when the stream gets there, not now. */
int hipsim_copy_async(const struct hipsim_copy *copy, struct hipsim_stream *stream);
/* What the blocking copies do: copies within the device and small ones from pageable memory may
 * still be under way when it returns (the source of the latter may be reused). */
int hipsim_copy_blocking(const struct hipsim_copy *copy, struct hipsim_stream *stream);

/* A pattern of `unit` bytes (1, 2 or 4), `width` units in each of `height` rows. */
struct hipsim_fill {
    void *to;
    unsigned value, unit;
    size_t width, height, pitch;
};

int hipsim_fill_async(const struct hipsim_fill *fill, struct hipsim_stream *stream);
/* Returns before the device memory is set, as the real call does; host memory is waited for. */
int hipsim_fill_blocking(const struct hipsim_fill *fill, struct hipsim_stream *stream);
