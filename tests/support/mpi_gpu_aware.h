/* SPDX-License-Identifier: MIT */
/*
 * An MPI library that takes GPU memory: mpi_gpu_aware.c is preloaded, and a program that wants to
 * know looks this function up (dlsym).
 */
#pragma once

/* Bytes of GPU memory that messages were sent from or received in. */
typedef unsigned long long mpi_gpu_aware_bytes_fn(void);
extern mpi_gpu_aware_bytes_fn mpi_gpu_aware_bytes;
