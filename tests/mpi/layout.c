/* SPDX-License-Identifier: MIT */
/*
 * Layout: the byte model of a datatype, for the oracle.
 */
#include "layout.h"
#include <stdlib.h>

void layout_init(struct layout *layout, int64_t extent)
{
    *layout = (struct layout){.extent = extent};
}

void layout_add(struct layout *layout, int64_t start, int64_t length)
{
    if (layout->runs == LAYOUT_RUNS)
        abort();
    layout->start[layout->runs] = start;
    layout->length[layout->runs] = length;
    layout->runs++;
    layout->bytes += length;
}

int64_t layout_locate(const struct layout *layout, int64_t packed, int64_t *left)
{
    int64_t tile = packed / layout->bytes;
    int64_t rest = packed % layout->bytes;
    int run = 0;

    while (rest >= layout->length[run])
        rest -= layout->length[run++];
    *left = layout->length[run] - rest;
    if (layout->bytes == layout->extent)
        *left = INT64_MAX / 2;
    return tile * layout->extent + layout->start[run] + rest;
}

int64_t layout_below(const struct layout *layout, int64_t packed, int64_t bytes, int64_t end)
{
    int64_t count = 0;

    while (count < bytes) {
        int64_t left;
        int64_t at = layout_locate(layout, packed + count, &left);

        if (at >= end)
            break;
        if (left > end - at)
            left = end - at;
        count += left;
    }
    return count < bytes ? count : bytes;
}
