/* SPDX-License-Identifier: MIT */
/*
 * Memory datatypes and views, each with its byte model written down beside it.
 */
#include "table.h"
#include <stdlib.h>

const char *const shape_names[SHAPES] = {"contig", "vector", "nested", "reversed", "bottom", "lb"};
const char *const view_names[VIEWS] = {"contig", "strided", "subarray"};
const char *const variant_names[VARIANTS] = {"plain", "large",  "eof",   "zero",
                                             "mixed", "ignore", "atomic"};
const char *const hint_names[HINTS] = {"auto", "cb", "nocb"};

/* Four blocks of three ints, five ints apart: 72 bytes of extent. */
static void build_vector(struct memory_type *out)
{
    MPI_Type_vector(4, 3, 5, MPI_INT, &out->type);
    layout_init(&out->layout, 72);
    for (int block = 0; block < 4; block++)
        layout_add(&out->layout, block * 20, 12);
    out->elements_per_unit = 12;
}

/* A structure of a vector that starts below the address, a double and another vector, with gaps
 * between and around: extent 104, and the lower bound of choice. */
static void build_nested(MPI_Aint lower_bound, MPI_Datatype *type)
{
    MPI_Datatype low, high, both;
    int lengths[] = {1, 1, 1};
    MPI_Aint starts[] = {-24, 8, 24};

    MPI_Type_vector(2, 2, 3, MPI_INT, &low);
    MPI_Type_vector(3, 2, 4, MPI_INT, &high);
    MPI_Type_create_struct(3, lengths, starts, (MPI_Datatype[]){low, MPI_DOUBLE, high}, &both);
    MPI_Type_create_resized(both, lower_bound, 104, type);
    MPI_Type_free(&low);
    MPI_Type_free(&high);
    MPI_Type_free(&both);
}

static void model_nested(struct memory_type *out)
{
    static const int starts[] = {-24, -12, 8, 24, 40, 56};

    layout_init(&out->layout, 104);
    for (int i = 0; i < 6; i++)
        layout_add(&out->layout, starts[i], 8);
    out->elements_per_unit = 11;
    out->ints_only = false;
}

/* Later bytes of the file come to lower addresses. */
static void build_reversed(struct memory_type *out)
{
    MPI_Datatype inner;
    int lengths[] = {4, 4, 4};
    MPI_Aint starts[] = {80, 40, 0};

    MPI_Type_create_hindexed(3, lengths, starts, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 112, &out->type);
    MPI_Type_free(&inner);
    layout_init(&out->layout, 112);
    for (int i = 0; i < 3; i++)
        layout_add(&out->layout, starts[i], 16);
    out->elements_per_unit = 12;
}

/* One datatype that holds all units at absolute addresses. */
static void build_bottom(int units, void *base, struct memory_type *out)
{
    MPI_Datatype nested;
    MPI_Aint *address = calloc((size_t)units, sizeof *address);

    if (!address)
        abort();
    build_nested(0, &nested);
    for (int i = 0; i < units; i++)
        MPI_Get_address((char *)base + (ptrdiff_t)i * 104, &address[i]);
    MPI_Type_create_hindexed_block(units, 1, address, nested, &out->type);
    MPI_Type_free(&nested);
    free(address);
    model_nested(out);
    out->bottom = true;
    out->count = 1;
}

void memory_type_build(enum shape shape, int units, void *base, struct memory_type *out)
{
    *out = (struct memory_type){.count = units, .ints_only = true};
    switch (shape) {
    case SHAPE_CONTIG:
        out->type = MPI_INT;
        layout_init(&out->layout, UNIT);
        layout_add(&out->layout, 0, UNIT);
        out->count = units * 12;
        out->elements_per_unit = 12;
        break;
    case SHAPE_VECTOR:
        build_vector(out);
        break;
    case SHAPE_NESTED:
        build_nested(0, &out->type);
        model_nested(out);
        break;
    case SHAPE_LB:
        build_nested(-32, &out->type);
        model_nested(out);
        break;
    case SHAPE_REVERSED:
        build_reversed(out);
        break;
    case SHAPE_BOTTOM:
        build_bottom(units ? units : 1, base, out);
        break;
    default:
        abort();
    }
    MPI_Type_commit(&out->type);
}

void memory_type_free(struct memory_type *type)
{
    if (type->type != MPI_INT)
        MPI_Type_free(&type->type);
}

/* Blocks of five ints dealt to the ranks in turn, with two ints that belong to nobody. */
static void build_strided(int rank, int ranks, struct view *out)
{
    MPI_Datatype block;
    int64_t extent = (5 * ranks + 2) * 4;

    MPI_Type_contiguous(5, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, extent, &out->filetype);
    MPI_Type_free(&block);
    out->etype = MPI_INT;
    out->etype_size = 4;
    out->disp = 16 + rank * 20;
    layout_init(&out->layout, extent);
    layout_add(&out->layout, 0, 20);
}

/* Six columns of rows 1 to 3 of an array of five rows, the array repeating. */
static void build_subarray(int rank, int ranks, struct view *out)
{
    int sizes[] = {5, 6 * ranks}, subsizes[] = {3, 6}, starts[] = {1, 6 * rank};
    int64_t row = 6 * ranks * 4;

    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &out->filetype);
    out->etype = MPI_INT;
    out->etype_size = 4;
    out->disp = 8;
    layout_init(&out->layout, 5 * row);
    for (int i = 1; i <= 3; i++)
        layout_add(&out->layout, i * row + rank * 24, 24);
}

void view_build(enum view_kind kind, int rank, int ranks, struct view *out)
{
    switch (kind) {
    case VIEW_CONTIG:
        out->filetype = MPI_DOUBLE;
        out->etype = MPI_DOUBLE;
        out->etype_size = 8;
        out->disp = 40;
        layout_init(&out->layout, 8);
        layout_add(&out->layout, 0, 8);
        break;
    case VIEW_STRIDED:
        build_strided(rank, ranks, out);
        break;
    case VIEW_SUBARRAY:
        build_subarray(rank, ranks, out);
        break;
    default:
        abort();
    }
    MPI_Type_commit(&out->filetype);
}

void view_free(struct view *view)
{
    if (view->filetype != MPI_DOUBLE)
        MPI_Type_free(&view->filetype);
}
