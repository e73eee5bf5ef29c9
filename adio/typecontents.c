/* SPDX-License-Identifier: MIT */
/* Typecontents: MPI_Type_get_envelope and _contents, in memory of our own. */
#include "typecontents.h"
#include "engine/status.h"
#include "host/host.h"
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
    return malloc(size * (n > 0 ? (size_t)n : 1));
}

static int refuse(struct hipio_typecontents *contents)
{
    hipio_typecontents_free(contents);
    return hipio_status_set(-EINVAL, "MPI does not tell the contents of the datatype");
}

static int no_memory(struct hipio_typecontents *contents)
{
    hipio_typecontents_free(contents);
    return hipio_status_set(-ENOMEM, "no memory to take a datatype apart");
}

int hipio_typecontents_get(MPI_Datatype type, struct hipio_typecontents *contents)
{
    memset(contents, 0, sizeof *contents);
    contents->type = type;
    if (PMPI_Type_get_envelope(type, &contents->n_ints, &contents->n_addresses, &contents->n_types,
                               &contents->combiner) != MPI_SUCCESS)
        return hipio_status_set(-EINVAL, "MPI does not know the datatype; was it freed?");
    if (hipio_typecontents_is_leaf(contents)) {
        contents->n_ints = contents->n_addresses = contents->n_types = 0;
        return 0;
    }
    contents->ints = array(contents->n_ints, sizeof(int));
    contents->types = array(contents->n_types, sizeof(MPI_Datatype));
    if (!contents->ints || !contents->types)
        return no_memory(contents);
    if (!hipio_host_type_arrays(type, contents->ints, NULL, contents->types))
        return refuse(contents);
    return contents->combiner == MPI_COMBINER_HINDEXED ? 0
                                                       : hipio_typecontents_get_addresses(contents);
}

int hipio_typecontents_get_addresses(struct hipio_typecontents *contents)
{
    contents->addresses = array(contents->n_addresses, sizeof(MPI_Aint));
    if (!contents->addresses)
        return no_memory(contents);
    return hipio_host_type_arrays(contents->type, NULL, contents->addresses, NULL)
               ? 0
               : refuse(contents);
}

void hipio_typecontents_free(struct hipio_typecontents *contents)
{
    free(contents->ints);
    free(contents->addresses);
    free(contents->types);
    memset(contents, 0, sizeof *contents);
}
