/* SPDX-License-Identifier: MIT */
/*
 * Run check: the picture that is wanted, and the first byte that differs from it.
 */
#include "run_check.h"
#include "pattern.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void compare(const char *what, const unsigned char *found, const unsigned char *wanted,
                    uint64_t size)
{
    if (memcmp(found, wanted, size) == 0)
        return;
    uint64_t at = 0;
    while (found[at] == wanted[at])
        at++;
    fail_msg("%s byte %llu is %02x, not %02x", what, (unsigned long long)at, found[at], wanted[at]);
}

void run_check_read(const struct run *run, const unsigned char *bytes, uint64_t size, uint64_t seed)
{
    unsigned char *wanted = malloc(size);

    memset(wanted, 0xA5, size);
    assert_true(run->done == 0 || run->memory + run->done <= size);
    pattern_fill(wanted + run->memory, seed, (uint64_t)run->file, run->done);
    compare("memory", bytes, wanted, size);
    free(wanted);
}

void run_check_write(const struct run *run, int fd, uint64_t size, uint64_t seed, uint64_t before)
{
    const uint64_t end = (uint64_t)run->file + run->done;
    const uint64_t longest = run->done && end > size ? end : size;
    unsigned char *wanted = calloc(1, longest + 1), *found = malloc(longest + 1);
    struct stat now;

    assert_int_equal(fstat(fd, &now), 0);
    assert_int_equal(now.st_size, longest);
    pattern_fill(wanted, before, 0, size);
    pattern_fill(wanted + run->file, seed, run->memory, run->done);
    assert_int_equal(pread(fd, found, longest, 0), longest);
    compare("file", found, wanted, longest);
    free(found);
    free(wanted);
}
