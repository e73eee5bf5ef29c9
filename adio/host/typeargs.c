/* SPDX-License-Identifier: MIT */
/*
 * Typeargs: the numbers that a datatype was made of, array by array. MPI_Type_get_contents wants
 * room for all of them at once, which for millions of blocks is more than is needed at a time.
 */
#include "ompi_config.h"

#include "host.h"
#include "ompi/datatype/ompi_datatype.h"

bool hipio_host_type_arrays(MPI_Datatype type, int *ints, MPI_Aint *addresses, MPI_Datatype *types)
{
    int n_ints = 0, n_addresses = 0, n_types = 0, combiner = 0;

    if (ompi_datatype_get_args(type, 0, &n_ints, NULL, &n_addresses, NULL, &n_types, NULL,
                               &combiner) != OMPI_SUCCESS)
        return false;
    return ompi_datatype_get_args(type, 1, &n_ints, ints, &n_addresses, addresses, &n_types, types,
                                  &combiner) == OMPI_SUCCESS;
}
