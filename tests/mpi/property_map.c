/* SPDX-License-Identifier: MIT */
/*
 * The property test: what a datatype means is asked of MPI_Pack, by memory of which each byte holds
 * its own offset, one digit of it at a time.
 */
#include "property.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *must_have(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory) {
        fprintf(stderr, "test: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    return memory;
}

static void ask_pack(struct map *map)
{
    unsigned char *image = must_have((size_t)map->span), *packed = must_have((size_t)map->bytes);

    for (int digit = 0; digit < 2; digit++) {
        int at = 0;

        for (MPI_Aint i = 0; i < map->span; i++)
            image[i] = (unsigned char)(i >> (8 * digit));
        MPI_Pack(image - map->low, 1, map->type, packed, map->bytes, &at, MPI_COMM_SELF);
        for (int k = 0; k < map->bytes; k++)
            map->offset[k] |= packed[k] << (8 * digit);
    }
    for (int k = 0; k < map->bytes; k++)
        map->offset[k] += (int)map->low;
    free(image);
    free(packed);
}

static bool is_small(const struct map *map, int most_bytes)
{
    _Static_assert(MOST_SPAN < 1 << 16, "two digits tell an offset");
    return map->bytes > 0 && map->bytes <= most_bytes && map->span <= MOST_SPAN &&
           labs(map->extent) <= MOST_SPAN && labs(map->low) <= MOST_SPAN;
}

static void measure(struct map *map, MPI_Datatype type)
{
    MPI_Aint lb;

    map->type = type;
    map->offset = NULL;
    MPI_Type_size(type, &map->bytes);
    true_span(type, &map->low, &map->span);
    MPI_Type_get_extent(type, &lb, &map->extent);
}

static void fill(struct map *map)
{
    map->offset = must_have((size_t)map->bytes * sizeof *map->offset);
    ask_pack(map);
}

void map_make(struct map *map, MPI_Datatype type)
{
    measure(map, type);
    fill(map);
}

void map_free(struct map *map)
{
    if (map->type != MPI_DATATYPE_NULL)
        MPI_Type_free(&map->type);
    free(map->offset);
    map->offset = NULL;
}

void map_make_random(struct map *map, struct random_state *random, const struct random_kind *kind,
                     int most_bytes)
{
    for (;;) {
        measure(map, random_type_of(random, (int)random_below(random, 5), kind));
        if (is_small(map, most_bytes)) {
            fill(map);
            if (!kind->rising || map_rises(map))
                return;
        }
        map_free(map);
    }
}

bool map_rises(const struct map *map)
{
    for (int k = 1; k < map->bytes; k++) {
        if (map->offset[k] <= map->offset[k - 1])
            return false;
    }
    return true;
}

bool map_overlaps(const struct map *map, int count)
{
    size_t hull = (size_t)map->span + (size_t)labs(map->extent) * (size_t)count;
    MPI_Aint first = map->extent < 0 ? -map->extent * count : 0;
    unsigned char *seen = must_have(hull);
    bool twice = false;

    for (int i = 0; i < count && !twice; i++) {
        for (int k = 0; k < map->bytes && !twice; k++) {
            unsigned char *at = seen + first + i * map->extent + map->offset[k] - map->low;

            twice = *at;
            *at = 1;
        }
    }
    free(seen);
    return twice;
}

MPI_Datatype map_runs(const struct map *map, MPI_Datatype unit, int size)
{
    int *length = must_have((size_t)map->bytes * sizeof *length), n = 0;
    MPI_Aint *start = must_have((size_t)map->bytes * sizeof *start);
    MPI_Datatype type;

    for (int k = 0; k < map->bytes; k += size) {
        if (n == 0 || map->offset[k] != start[n - 1] + length[n - 1] * size)
            start[n++] = map->offset[k];
        length[n - 1]++;
    }
    MPI_Type_create_hindexed(n, length, start, unit, &type);
    free(length);
    free(start);
    return type;
}
