/* SPDX-License-Identifier: MIT */
/*
 * Faults of MPI calls that a library makes by their profiling names. The library mpi_fault.c is
 * preloaded; a program that wants faults looks these functions up (dlsym).
 */
#pragma once

/*
 * From now on the nth call (from 1) of that name by this process fails, and those after it up to
 * `times` of them. PMPI_Isend and PMPI_Irecv do nothing then. PMPI_Allgather and PMPI_Testany do
 * their work, so that other ranks get theirs, and fail afterwards; only those calls of PMPI_Testany
 * count that find something. nth 0: none fails.
 */
typedef void mpi_fault_arm_fn(const char *call, unsigned nth, unsigned times);
/* How many calls have failed since then. */
typedef unsigned mpi_fault_hits_fn(void);
/* How many messages that were posted since then are still on their way. The requests must still be
 * there. */
typedef unsigned mpi_fault_pending_fn(void);

extern mpi_fault_arm_fn mpi_fault_arm;
extern mpi_fault_hits_fn mpi_fault_hits;
extern mpi_fault_pending_fn mpi_fault_pending;
