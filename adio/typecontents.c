/* SPDX-License-Identifier: MIT */
/* Typecontents: MPI_Type_get_envelope and _contents with the cleanup that goes with them. */
#include "typecontents.h"
#include "engine/status.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool hipio_typecontents_is_leaf(const struct hipio_typecontents *contents)
{
    switch (contents->combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
        return true;
    default:
        return false;
    }
}

static void *array(int n, size_t size)
{
    return calloc(n > 0 ? (size_t)n : 1, size);
}

int hipio_typecontents_get(MPI_Datatype type, struct hipio_typecontents *contents)
{
    memset(contents, 0, sizeof *contents);
    if (PMPI_Type_get_envelope(type, &contents->n_ints, &contents->n_addresses, &contents->n_types,
                               &contents->combiner) != MPI_SUCCESS)
        return hipio_status_set(-EINVAL, "MPI does not know the datatype; was it freed?");
    if (hipio_typecontents_is_leaf(contents)) {
        contents->n_ints = contents->n_addresses = contents->n_types = 0;
        return 0;
    }
    contents->ints = array(contents->n_ints, sizeof(int));
    contents->addresses = array(contents->n_addresses, sizeof(MPI_Aint));
    contents->types = array(contents->n_types, sizeof(MPI_Datatype));
    if (!contents->ints || !contents->addresses || !contents->types) {
        contents->n_types = 0;
        hipio_typecontents_free(contents);
        return hipio_status_set(-ENOMEM, "no memory to take a datatype apart");
    }
    if (PMPI_Type_get_contents(type, contents->n_ints, contents->n_addresses, contents->n_types,
                               contents->ints, contents->addresses,
                               contents->types) != MPI_SUCCESS) {
        contents->n_types = 0;
        hipio_typecontents_free(contents);
        return hipio_status_set(-EINVAL, "MPI does not tell the contents of the datatype");
    }
    return 0;
}

/* MPI hands out a new reference to every derived type inside; predefined ones must not be freed. */
static void free_type(MPI_Datatype *type)
{
    struct hipio_typecontents inner = {0};
    if (PMPI_Type_get_envelope(*type, &inner.n_ints, &inner.n_addresses, &inner.n_types,
                               &inner.combiner) == MPI_SUCCESS &&
        !hipio_typecontents_is_leaf(&inner))
        PMPI_Type_free(type);
}

void hipio_typecontents_free(struct hipio_typecontents *contents)
{
    for (int i = 0; i < contents->n_types; i++)
        free_type(&contents->types[i]);
    free(contents->ints);
    free(contents->addresses);
    free(contents->types);
    memset(contents, 0, sizeof *contents);
}
