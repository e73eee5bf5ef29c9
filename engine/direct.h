/* SPDX-License-Identifier: MIT */
/*
 * Direct: the second descriptor of a file. One of the two has O_DIRECT, which fast paths need, and
 * the other has not, which everything unaligned needs. It is opened when first asked for, and
 * nothing depends on it: without one, a file is served through the descriptor that it has.
 *
 * Closing *any* descriptor of a file drops every POSIX record lock that the process holds on it. So
 * the second one lives as long as its struct hipio_file, whose owner closes his own right after and
 * loses the locks anyway; and where somebody holds a lock on the file at that moment, perhaps this
 * process through another open of it, the descriptor is parked and closed later, when no lock is
 * left. Descriptors are not shared between opens of one file: that would need inode numbers to be
 * unique, which some file systems only pretend.
 */
#pragma once
#include "file.h"
#include <stdint.h>

struct hipio_direct {
    int fd;    /* with O_DIRECT */
    int plain; /* without; -1: it could not be had, the file's own is the one with O_DIRECT */
    uint32_t offset_align; /* of file offsets and lengths */
    uint32_t memory_align; /* of addresses */
};

/* What is assumed where the kernel does not tell: enough for every device but the strangest. */
#define HIPIO_DIRECT_ALIGN 4096u

/*
 * The file's descriptors and alignments; *out lives as long as the file. The first call opens,
 * later ones repeat its answer. 0; -EOPNOTSUPP with text: the file has no O_DIRECT, or a descriptor
 * could not be had (which is announced once in a process).
 */
int hipio_direct_open(struct hipio_file *file, const struct hipio_direct **out);

/* The same without opening anything: NULL if it was not opened or can't be. */
const struct hipio_direct *hipio_direct_known(struct hipio_file *file);

/* How many descriptors are parked (tests). */
unsigned hipio_direct_parked(void);
