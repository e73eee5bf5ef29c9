/* SPDX-License-Identifier: MIT */
/*
 * Run check: what a request between one run of memory and one of a file must have done, compared
 * block-wise, for requests that are too long for the rig's byte-wise oracle.
 */
#pragma once
#include <stdint.h>

struct run {
    uint64_t memory; /* where it begins in memory */
    int64_t file;    /* and in the file */
    uint64_t done;   /* bytes that moved */
};

/* Memory of `size` bytes that was 0xA5 all over, after a read from a file of pattern `seed`. */
void run_check_read(const struct run *run, const unsigned char *bytes, uint64_t size,
                    uint64_t seed);
/* The file, which was pattern `before` in its first `size` bytes and nothing behind, after a write
 * of memory with pattern `seed`. */
void run_check_write(const struct run *run, int fd, uint64_t size, uint64_t seed, uint64_t before);
