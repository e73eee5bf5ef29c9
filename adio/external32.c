/* SPDX-License-Identifier: MIT */
/*
 * External32: a datatype's element sizes, so that the engine can change byte order on the way
 * (declared in flatten.h).
 *
 * Types whose external32 form differs from the native one in more than byte order are refused: a
 * program would get other numbers back.
 */
#include "engine/status.h"
#include "flatten.h"
#include "typecontents.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More groups than this are a type that repeats nothing; it is refused rather than kept. */
#define GROUPS_MAX 65536

struct list {
    struct hipio_swap_group *group;
    uint64_t n, room, bytes;
};

static int append(struct list *list, uint64_t bytes, uint32_t size)
{
    if (bytes == 0)
        return 0;
    list->bytes += bytes;
    if (list->n && list->group[list->n - 1].size == size) {
        list->group[list->n - 1].bytes += bytes;
        return 0;
    }
    if (list->n == GROUPS_MAX)
        return hipio_status_set(-ENOTSUP,
                                "external32: the datatype has more than %d changes of element type",
                                GROUPS_MAX);
    if (list->n == list->room) {
        uint64_t room = list->room ? 2 * list->room : 8;
        struct hipio_swap_group *more = realloc(list->group, room * sizeof *more);
        if (!more)
            return hipio_status_set(-ENOMEM, "external32: no memory");
        list->group = more;
        list->room = room;
    }
    list->group[list->n++] = (struct hipio_swap_group){bytes, size};
    return 0;
}

/* Appends what the list got since `from` another `times` - 1 times. */
static int repeat(struct list *list, struct list *part, uint64_t times)
{
    int rc = 0;
    if (part->n == 1)
        return append(list, part->bytes * times, part->group[0].size);
    for (uint64_t k = 0; k < times && rc == 0; k++) {
        for (uint64_t i = 0; i < part->n && rc == 0; i++)
            rc = append(list, part->group[i].bytes, part->group[i].size);
    }
    return rc;
}

/* One row: types of which each element is a 1/`parts` of the type. 0: the external32 form is
 * another one. */
static const struct {
    MPI_Datatype type;
    uint32_t parts;
} predefined[] = {
    {MPI_LONG, 0},
    {MPI_UNSIGNED_LONG, 0},
    {MPI_LONG_DOUBLE, 0},
    {MPI_WCHAR, 0},
    {MPI_LONG_INT, 0},
    {MPI_LONG_DOUBLE_INT, 0},
    {MPI_C_LONG_DOUBLE_COMPLEX, 0},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, 0},
    {MPI_C_FLOAT_COMPLEX, 2},
    {MPI_C_DOUBLE_COMPLEX, 2},
    {MPI_CXX_FLOAT_COMPLEX, 2},
    {MPI_CXX_DOUBLE_COMPLEX, 2},
    {MPI_COMPLEX, 2},
    {MPI_DOUBLE_COMPLEX, 2},
    {MPI_COMPLEX8, 2},
    {MPI_COMPLEX16, 2},
    {MPI_COMPLEX32, 2},
    {MPI_2INT, 2},
    {MPI_FLOAT_INT, 2},
    {MPI_2REAL, 2},
    {MPI_2DOUBLE_PRECISION, 2},
    {MPI_2INTEGER, 2},
    {MPI_2COMPLEX, 4},
    {MPI_2DOUBLE_COMPLEX, 4},
};

/* Size of the elements that a predefined type is made of; 0: its external32 form is another one. */
static uint32_t element_size(MPI_Datatype type, int combiner, MPI_Count size)
{
    MPI_Count element = combiner == MPI_COMBINER_F90_COMPLEX ? size / 2 : size;

    for (size_t i = 0; i < sizeof predefined / sizeof predefined[0]; i++) {
        if (predefined[i].type == type)
            element = predefined[i].parts ? size / predefined[i].parts : 0;
    }
    return element == 1 || element == 2 || element == 4 || element == 8 || element == 16
               ? (uint32_t)element
               : 0;
}

static int leaf(MPI_Datatype type, int combiner, struct list *list)
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    MPI_Count size = 0;
    int length = 0, rc = 0;

    if (type == MPI_SHORT_INT)
        rc = append(list, 2, 2);
    if (type == MPI_DOUBLE_INT)
        rc = append(list, 8, 8);
    if (rc)
        return rc;
    if (type == MPI_SHORT_INT || type == MPI_DOUBLE_INT)
        return append(list, 4, 4);
    PMPI_Type_size_x(type, &size);
    uint32_t element = size ? element_size(type, combiner, size) : 1;
    if (element)
        return append(list, (uint64_t)size, element);
    PMPI_Type_get_name(type, name, &length);
    return hipio_status_set(-ENOTSUP,
                            "external32: %s has another size or format in a file than in memory "
                            "here; use a type of fixed "
                            "size such as MPI_INT64_T",
                            length ? name : "a type");
}

static int walk(MPI_Datatype type, struct list *list);

static int walk_times(MPI_Datatype type, uint64_t times, struct list *list)
{
    struct list part = {0};
    int rc = times ? walk(type, &part) : 0;
    if (rc == 0 && times)
        rc = repeat(list, &part, times);
    free(part.group);
    return rc;
}

/* How many items of its one inner type a constructor holds: its size tells, whatever its shape. */
static int walk_inner(MPI_Datatype type, MPI_Datatype inner, struct list *list)
{
    MPI_Count whole = 0, one = 0;
    PMPI_Type_size_x(type, &whole);
    PMPI_Type_size_x(inner, &one);
    return one > 0 ? walk_times(inner, (uint64_t)(whole / one), list) : 0;
}

static int walk(MPI_Datatype type, struct list *list)
{
    struct hipio_typecontents contents;
    int rc = hipio_typecontents_get(type, &contents);
    if (rc)
        return rc;
    if (hipio_typecontents_is_leaf(&contents))
        return leaf(type, contents.combiner, list);
    if (contents.combiner == MPI_COMBINER_STRUCT) {
        for (int i = 0; i < contents.ints[0] && rc == 0; i++)
            rc = walk_times(contents.types[i], (uint64_t)contents.ints[1 + i], list);
    } else {
        rc = walk_inner(type, contents.types[0], list);
    }
    hipio_typecontents_free(&contents);
    return rc;
}

int hipio_flatten_swap(MPI_Datatype type, struct hipio_swap **swap)
{
    struct list list = {0};
    struct hipio_swap *made = NULL;
    int rc = walk(type, &list);

    if (rc == 0) {
        made = malloc(sizeof *made);
        rc = made ? 0 : hipio_status_set(-ENOMEM, "external32: no memory");
    }
    if (rc) {
        free(list.group);
        return rc;
    }
    *made = (struct hipio_swap){.period = list.bytes, .n = list.n, .group = list.group};
    *swap = made;
    return 0;
}

void hipio_flatten_free_swap(struct hipio_swap *swap)
{
    if (swap)
        free((void *)swap->group);
    free(swap);
}
