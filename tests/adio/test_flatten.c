/* SPDX-License-Identifier: MIT */
/*
 * The flattened type against MPI_Pack: memory is filled so that each byte tells its own offset, one
 * byte of it a pass, and the packed stream must name the offsets that the layout's cursor names, in
 * the same order.
 *
 *   test_flatten [SEEDS [FIRST]]
 */
#include "adio/flatten.h"
#include "random_type.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(uint64_t seed, const char *what, long long a, long long b)
{
    fprintf(stderr, "seed %llu: %s: %lld, expected %lld\n", (unsigned long long)seed, what, a, b);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* offset[k]: where MPI takes packed byte k from. */
static int64_t *offsets_by_pack(MPI_Datatype type, int count, MPI_Aint low, MPI_Aint high, int n)
{
    int64_t *offset = calloc((size_t)n + 1, sizeof *offset);
    unsigned char *memory = malloc((size_t)(high - low) + 1), *packed = malloc((size_t)n + 1);

    for (int pass = 0; pass < 4; pass++) {
        int position = 0;
        for (MPI_Aint i = 0; i < high - low; i++)
            memory[i] = (unsigned char)(i >> (8 * pass));
        MPI_Pack(memory - low, count, type, packed, n, &position, MPI_COMM_SELF);
        for (int k = 0; k < n; k++)
            offset[k] |= (int64_t)packed[k] << (8 * pass);
    }
    for (int k = 0; k < n; k++)
        offset[k] += low;
    free(memory);
    free(packed);
    return offset;
}

static void compare(uint64_t seed, const struct hipio_layout *layout, const int64_t *offset, int n,
                    struct random_state *r)
{
    struct hipio_cursor cursor;
    struct hipio_strip strip;
    int k = (int)random_below(r, (uint32_t)n + 1);

    hipio_cursor_init(&cursor, layout, (uint64_t)k);
    while (hipio_cursor_next(&cursor, 1 + random_below(r, 100), &strip)) {
        for (uint64_t i = 0; i < strip.count; i++) {
            for (uint64_t j = 0; j < strip.length; j++, k++) {
                int64_t at = strip.offset + (int64_t)i * strip.stride + (int64_t)j;
                if (k >= n || at != offset[k])
                    fail(seed, "offset of a byte", at, k < n ? offset[k] : -1);
            }
        }
    }
    if (k != n)
        fail(seed, "bytes walked", k, n);
}

static void one_seed(uint64_t seed)
{
    struct random_state r;
    struct hipio_layout *layout;
    MPI_Aint lb, extent, true_lb, true_extent;
    int size, count, monotonic;

    random_seed(&r, seed);
    monotonic = (int)random_below(&r, 2);
    MPI_Datatype type = random_type(&r, (int)random_below(&r, 4), monotonic);
    count = (int)random_below(&r, 4);
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &lb, &extent);
    true_span(type, &true_lb, &true_extent);
    if (hipio_flatten(type, count, &layout))
        fail(seed, "hipio_flatten failed", -1, 0);
    if (hipio_layout_size(layout) != (uint64_t)size * (uint64_t)count)
        fail(seed, "size", (long long)hipio_layout_size(layout), (long long)size * count);
    MPI_Aint last = count > 0 ? (count - 1) * extent : 0;
    MPI_Aint low = true_lb + (last < 0 ? last : 0),
             high = true_lb + true_extent + (last > 0 ? last : 0);
    int64_t *offset = offsets_by_pack(type, count, low, high, size * count);
    compare(seed, layout, offset, size * count, &r);
    free(offset);
    hipio_layout_release(layout);
    MPI_Type_free(&type);
}

/* The groups of a struct of an int, two doubles and a short-int pair, and the refusal of a type
 * whose external form is another. */
static void swap_groups(void)
{
    MPI_Datatype part[3] = {MPI_INT, MPI_DOUBLE, MPI_SHORT_INT}, type;
    int length[3] = {1, 2, 1};
    MPI_Aint at[3] = {0, 8, 32};
    struct hipio_swap *swap;
    const struct hipio_swap_group want[4] = {{4, 4}, {16, 8}, {2, 2}, {4, 4}};

    MPI_Type_create_struct(3, length, at, part, &type);
    if (hipio_flatten_swap(type, &swap))
        fail(0, "hipio_flatten_swap", -1, 0);
    if (swap->period != 26 || swap->n != 4)
        fail(0, "swap period", (long long)swap->period, 26);
    for (int i = 0; i < 4; i++) {
        if (swap->group[i].bytes != want[i].bytes || swap->group[i].size != want[i].size)
            fail(0, "swap group", i, i);
    }
    hipio_flatten_free_swap(swap);
    MPI_Type_free(&type);
    if (hipio_flatten_swap(MPI_LONG, &swap) == 0)
        fail(0, "external32 of MPI_LONG was accepted", 0, -1);
}

/* Changes byte order as the groups say. */
static void swap_by_groups(const struct hipio_swap *swap, unsigned char *bytes)
{
    for (uint64_t g = 0; g < swap->n; g++) {
        for (uint64_t done = 0; done < swap->group[g].bytes; done += swap->group[g].size) {
            for (uint32_t i = 0; i < swap->group[g].size / 2; i++) {
                unsigned char keep = bytes[i];
                bytes[i] = bytes[swap->group[g].size - 1 - i];
                bytes[swap->group[g].size - 1 - i] = keep;
            }
            bytes += swap->group[g].size;
        }
    }
}

/* The groups of predefined types against what MPI_Pack_external makes of them. */
static void swap_equals_mpi(void)
{
    const MPI_Datatype types[] = {MPI_SHORT,
                                  MPI_INT,
                                  MPI_DOUBLE,
                                  MPI_INT64_T,
                                  MPI_COMPLEX8,
                                  MPI_COMPLEX16,
                                  MPI_C_FLOAT_COMPLEX,
                                  MPI_C_DOUBLE_COMPLEX,
                                  MPI_COMPLEX,
                                  MPI_DOUBLE_COMPLEX,
                                  MPI_CXX_FLOAT_COMPLEX,
                                  MPI_CXX_DOUBLE_COMPLEX,
                                  MPI_2INT,
                                  MPI_FLOAT_INT,
                                  MPI_2REAL,
                                  MPI_2DOUBLE_PRECISION};
    unsigned char native[64], ours[64], theirs[64];

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        struct hipio_swap *swap;
        MPI_Aint position = 0;
        int size;

        MPI_Type_size(types[t], &size);
        for (int i = 0; i < size; i++)
            native[i] = ours[i] = (unsigned char)(i + 1);
        if (hipio_flatten_swap(types[t], &swap))
            fail(t, "external32 of a type was refused", -1, 0);
        swap_by_groups(swap, ours);
        MPI_Pack_external("external32", native, 1, types[t], theirs, sizeof theirs, &position);
        if (position != size || memcmp(ours, theirs, (size_t)size))
            fail(t, "external32 of a type: first byte", ours[0], theirs[0]);
        hipio_flatten_free_swap(swap);
    }
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 3000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

    MPI_Init(&argc, &argv);
    swap_groups();
    swap_equals_mpi();
    for (uint64_t seed = first; seed < first + n; seed++)
        one_seed(seed);
    printf("%llu random types: ok\n", (unsigned long long)n);
    MPI_Finalize();
    return 0;
}
