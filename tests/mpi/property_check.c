/* SPDX-License-Identifier: MIT */
/*
 * The property test: what should be. Every rank writes its data into a file of its own making, a
 * run at a time by pwrite, from what MPI_Pack makes of its memory; the file that hipio has written
 * must be the same. What a read must find is known from what the file was filled with.
 */
#include "pattern.h"
#include "property.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_SEED = 77, FILE_ROOM = 4 << 20 };

static struct {
    int real, right;
    unsigned char before[FILE_MOST]; /* what the file holds at the beginning */
    unsigned char image[MEMORY], got[MEMORY];
    unsigned char file[2][FILE_ROOM];
} state;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "test: %s: %m\n", what);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

void files_open(void)
{
    pattern_fill(state.before, FILE_SEED, 0, FILE_MOST);
    state.right = open("right.dat", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    state.real = open("real.dat", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    must(state.right >= 0 && state.real >= 0, "files can't be made");
}

void files_close(void)
{
    close(state.right);
    close(state.real);
}

static void prepare(int fd, int64_t size)
{
    must(ftruncate(fd, 0) == 0 && pwrite(fd, state.before, (size_t)size, 0) == size,
         "a file can't be filled");
}

void files_prepare(const struct trial *trial)
{
    prepare(state.real, trial->size);
    prepare(state.right, trial->size);
}

/* ---- Writes ---- */

static void write_right_file(const struct trial *trial)
{
    unsigned char *packed = must_have((size_t)trial->bytes);
    int at = 0;

    MPI_Pack(state.image + MEMORY / 2, trial->count, trial->memory.type, packed, (int)trial->bytes,
             &at, MPI_COMM_SELF);
    for (int64_t done = 0, n; done < trial->bytes; done += n) {
        int64_t start = trial_file_offset(trial, done);

        for (n = 1; done + n < trial->bytes; n++)
            if (trial_file_offset(trial, done + n) != start + n)
                break;
        must(pwrite(state.right, packed + done, (size_t)n, start) == n, "pwrite");
    }
    free(packed);
}

static int64_t whole(int fd, unsigned char *out)
{
    struct stat info;

    must(fstat(fd, &info) == 0 && info.st_size <= FILE_ROOM &&
             pread(fd, out, (size_t)info.st_size, 0) == info.st_size,
         "a file can't be read");
    return info.st_size;
}

static void check_files(const struct trial *trial)
{
    int64_t real = whole(state.real, state.file[0]), right = whole(state.right, state.file[1]);
    int64_t at = 0, both = real < right ? real : right;

    if (real == right && memcmp(state.file[0], state.file[1], (size_t)real) == 0)
        return;
    while (at < both && state.file[0][at] == state.file[1][at])
        at++;
    check(false, "%s: the file has %lld bytes, right is %lld; byte %lld is 0x%02x, right is 0x%02x",
          trial_name(trial), (long long)real, (long long)right, (long long)at,
          at < real ? state.file[0][at] : 0, at < right ? state.file[1][at] : 0);
}

/* ---- Reads ---- */

/* How many bytes of the access lie before the end of the file; puts them into the image. */
static int64_t read_right(const struct trial *trial)
{
    int64_t found = 0, at;

    for (; found < trial->bytes; found++) {
        at = trial_file_offset(trial, found);
        if (at >= trial->size)
            break;
        state.image[trial_memory_offset(trial, found)] = state.before[at];
    }
    return found;
}

static void check_memory(const struct trial *trial)
{
    int at = 0;

    buffer_get(trial->buffer, 0, state.got, MEMORY);
    if (memcmp(state.got, state.image, MEMORY) == 0)
        return;
    while (state.got[at] == state.image[at])
        at++;
    check(false, "%s: memory byte %d is 0x%02x, right is 0x%02x", trial_name(trial),
          at - MEMORY / 2, state.got[at], state.image[at]);
}

/* ---- Both ---- */

/* The bytes that the access may touch, with a margin. */
static void hull(const struct trial *trial, size_t *start, size_t *bytes)
{
    MPI_Aint first = MEMORY / 2 + trial->memory.low, end = first + trial->memory.span;
    MPI_Aint move = trial->count ? (trial->count - 1) * trial->memory.extent : 0;

    *start = (size_t)(move < 0 ? first + move : first);
    *bytes = (size_t)(move < 0 ? end : end + move) - *start;
}

void trial_prepare(const struct trial *trial)
{
    size_t start, bytes;

    if (!trial->write) {
        memset(state.image, POISON, MEMORY);
        buffer_poison(trial->buffer);
        return;
    }
    hull(trial, &start, &bytes);
    pattern_fill(state.image + start, trial->seed * 64 + (uint64_t)case_rank(), 0, bytes);
    buffer_put(trial->buffer, start, state.image + start, bytes);
    write_right_file(trial);
}

void trial_check(const struct trial *trial, int code, const MPI_Status *status)
{
    int64_t bytes = trial->write ? trial->bytes : read_right(trial);
    MPI_Count got = -1;

    if (code != MPI_SUCCESS) {
        check_ok(code, "%s", trial_name(trial));
        return;
    }
    MPI_Get_elements_x(status, MPI_BYTE, &got);
    check(got == bytes, "%s: status says %lld bytes, right is %lld", trial_name(trial),
          (long long)got, (long long)bytes);
    if (!trial->write)
        check_memory(trial);
    else if (case_rank() == 0)
        check_files(trial);
}
