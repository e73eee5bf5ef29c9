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

static bool is_same(MPI_Datatype type, const MPI_Datatype *set, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (type == set[i])
            return true;
    }
    return false;
}

/* Size of the elements that a predefined type is made of; 0: its external32 form is another one. */
static uint32_t element_size(MPI_Datatype type, MPI_Count size)
{
    const MPI_Datatype other[] = {
        MPI_LONG,     MPI_UNSIGNED_LONG,   MPI_LONG_DOUBLE,          MPI_WCHAR,
        MPI_LONG_INT, MPI_LONG_DOUBLE_INT, MPI_C_LONG_DOUBLE_COMPLEX};
    const MPI_Datatype halves[] = {MPI_C_FLOAT_COMPLEX,
                                   MPI_C_DOUBLE_COMPLEX,
                                   MPI_COMPLEX,
                                   MPI_DOUBLE_COMPLEX,
                                   MPI_2INT,
                                   MPI_FLOAT_INT,
                                   MPI_2REAL,
                                   MPI_2DOUBLE_PRECISION,
                                   MPI_2INTEGER};
    if (is_same(type, other, sizeof other / sizeof other[0]))
        return 0;
    if (is_same(type, halves, sizeof halves / sizeof halves[0]))
        return (uint32_t)(size / 2);
    return size == 1 || size == 2 || size == 4 || size == 8 || size == 16 ? (uint32_t)size : 0;
}

static int leaf(MPI_Datatype type, struct list *list)
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
    uint32_t element = size ? element_size(type, size) : 1;
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
        return leaf(type, list);
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
