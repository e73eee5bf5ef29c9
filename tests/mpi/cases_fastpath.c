/* SPDX-License-Identifier: MIT */
/*
 * Cases of the fast path: AIS through MPI-IO, healthy, absent and failing in every way that hipsim
 * can make it fail. Each case names in its claim what the environment must say (CMakeLists.txt).
 */
#include "cases.h"
#include "watch.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define SEED 11

/* What the counters said when the case began. */
static struct {
    int64_t fast, staged, fallbacks, given_up, failed;
} before;

static void note_counters(void)
{
    before.fast = case_counter("ais_bytes_read") + case_counter("ais_bytes_written");
    before.staged = case_counter("bounce_bytes_read") + case_counter("bounce_bytes_written");
    before.fallbacks = case_counter("fallbacks");
    before.given_up = case_counter("given_up");
    before.failed = case_counter("failed");
}

static void check_counter(const char *what, int64_t now, int64_t then, int64_t right)
{
    check(now - then == right, "%s: %lld, right is %lld", what, (long long)(now - then),
          (long long)right);
}

static void check_counters(int64_t fast, int64_t staged, int64_t fallbacks)
{
    check_counter("bytes by AIS",
                  case_counter("ais_bytes_read") + case_counter("ais_bytes_written"), before.fast,
                  fast);
    check_counter("bytes staged",
                  case_counter("bounce_bytes_read") + case_counter("bounce_bytes_written"),
                  before.staged, staged);
    check_counter("fallbacks", case_counter("fallbacks"), before.fallbacks, fallbacks);
}

static int64_t ais_calls(void)
{
    int64_t (*get)(const char *);
    *(void **)&get = dlsym(RTLD_DEFAULT, "hipsim_counter");

    return get ? get("ais_reads") + get("ais_writes") : -1;
}

/* Each rank writes `bytes` of pattern at its own place, and reads them back. */
static void write_and_read(MPI_File file, size_t bytes, bool collective)
{
    const MPI_Offset at = (MPI_Offset)bytes * case_rank();
    struct buffer buffer = buffer_new(GPU_DEVICE, bytes);
    MPI_Status status;
    int code;

    buffer_fill(&buffer, 0, SEED, (uint64_t)at, bytes);
    code = collective ? MPI_File_write_at_all(file, at, buffer.at, (int)bytes, MPI_BYTE, &status)
                      : MPI_File_write_at(file, at, buffer.at, (int)bytes, MPI_BYTE, &status);
    check_ok(code, "write");
    check_bytes(&status, (int64_t)bytes, "write");
    buffer_poison(&buffer);
    code = collective ? MPI_File_read_at_all(file, at, buffer.at, (int)bytes, MPI_BYTE, &status)
                      : MPI_File_read_at(file, at, buffer.at, (int)bytes, MPI_BYTE, &status);
    check_ok(code, "read");
    check_bytes(&status, (int64_t)bytes, "read");
    buffer_check(&buffer, 0, SEED, (uint64_t)at, bytes);
    buffer_free(&buffer);
}

static MPI_File open_file(const char *hints)
{
    return file_open("fast.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, hints);
}

static void close_file(MPI_File file, size_t bytes)
{
    MPI_File_close(&file);
    if (case_rank() == 0 && bytes)
        file_check("fast.dat", 0, SEED, 0, bytes * (size_t)case_ranks());
    file_remove("fast.dat");
}

static void healthy(void)
{
    for (int collective = 0; collective < 2; collective++) {
        MPI_File file = open_file(NULL);
        note_counters();
        write_and_read(file, 4 * MIB, collective);
        check_counters(8 * MIB, 0, 0);
        close_file(file, 4 * MIB);
    }
}

/* Ranks meet inside a page: heads and tails go through the page cache, and nobody's are undone. */
static void split(void)
{
    const size_t bytes = MIB + 100;

    for (int round = 0; round < case_repeat(3); round++) {
        MPI_File file = open_file(NULL);
        note_counters();
        write_and_read(file, bytes, round % 2);
        check(case_counter("ais_bytes_written") > 0, "AIS was not used");
        check_counter("fallbacks", case_counter("fallbacks"), before.fallbacks, 0);
        close_file(file, bytes);
    }
}

/* HIPSIM_AIS=off, HIPIO_FASTPATH=off, HIPIO_FALLBACK=force: the same data, staged. */
static void staged(void)
{
    MPI_File file = open_file(NULL);

    note_counters();
    write_and_read(file, 2 * MIB, false);
    check_counters(0, 4 * MIB, 0);
    check(ais_calls() == 0, "AIS was called %lld times", (long long)ais_calls());
    close_file(file, 2 * MIB);
}

/* The same by an info hint, for one file. */
static void staged_by_hint(void)
{
    MPI_File file = open_file("hipio_fastpath=off");

    note_counters();
    write_and_read(file, 2 * MIB, false);
    check_counters(0, 4 * MIB, 0);
    close_file(file, 2 * MIB);
    file = open_file(NULL);
    note_counters();
    write_and_read(file, 2 * MIB, false);
    check_counters(4 * MIB, 0, 0);
    close_file(file, 2 * MIB);
}

/* HIPSIM_AIS=refuse, or ENODEV from the first call: one fallback, and the file is not tried again
 * until it is opened again. */
static void given_up(void)
{
    for (int round = 0; round < 2; round++) {
        MPI_File file = open_file(NULL);
        const int64_t calls = ais_calls();
        note_counters();
        write_and_read(file, 2 * MIB, false);
        check_counters(0, 4 * MIB, 1);
        check_counter("given up", case_counter("given_up"), before.given_up, 1);
        check(ais_calls() == calls + 1, "%lld calls, right is 1", (long long)(ais_calls() - calls));
        close_file(file, 2 * MIB);
    }
}

/* EREMOTEIO after 32 MiB of the first write: they count, the rest is staged, one request. */
static void in_the_middle(void)
{
    MPI_File file = open_file(NULL);
    struct buffer buffer = buffer_new(GPU_DEVICE, 64 * MIB);
    MPI_Status status;

    note_counters();
    buffer_fill(&buffer, 0, SEED, 0, 64 * MIB);
    check_ok(MPI_File_write_at(file, 0, buffer.at, 64 * MIB, MPI_BYTE, &status), "write_at");
    check_bytes(&status, 64 * MIB, "write_at");
    check_counters(32 * MIB, 32 * MIB, 1);
    buffer_free(&buffer);
    close_file(file, 64 * MIB);
}

/* The same for a nonblocking write. */
static void in_the_background(void)
{
    MPI_File file = open_file(NULL);
    struct buffer buffer = buffer_new(GPU_DEVICE, 2 * MIB);
    MPI_Request request;
    MPI_Status status;

    note_counters();
    buffer_fill(&buffer, 0, SEED, 0, 2 * MIB);
    check_ok(MPI_File_iwrite_at(file, 0, buffer.at, 2 * MIB, MPI_BYTE, &request), "iwrite_at");
    check_ok(MPI_Wait(&request, &status), "wait");
    check_bytes(&status, 2 * MIB, "wait");
    check_counters(MIB, MIB, 1);
    buffer_free(&buffer);
    close_file(file, 2 * MIB);
}

/* EIO or ENOSPC on rank 1's first write: reported there, not tried elsewhere; the others go on. */
static void reported(int class, bool collective)
{
    MPI_File file = open_file(NULL);
    const MPI_Offset at = 2 * (MPI_Offset)MIB * case_rank();
    struct buffer buffer = buffer_new(GPU_DEVICE, 2 * MIB);
    MPI_Status status;
    int code;

    note_counters();
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    buffer_fill(&buffer, 0, SEED, (uint64_t)at, 2 * MIB);
    code = collective ? MPI_File_write_at_all(file, at, buffer.at, 2 * MIB, MPI_BYTE, &status)
                      : MPI_File_write_at(file, at, buffer.at, 2 * MIB, MPI_BYTE, &status);
    if (case_rank() == 1) {
        check_class(code, class, "write");
        check_counters(MIB, 0, 0);
        check_counter("failed", case_counter("failed"), before.failed, 1);
    } else if (!collective) {
        check_ok(code, "write of the others");
        check_counters(2 * MIB, 0, 0);
    }
    if (case_rank() == 0)
        file_check("fast.dat", 0, SEED, 0, 2 * MIB);
    barrier();
    buffer_free(&buffer);
    close_file(file, 0);
}

static void reported_eio(void)
{
    reported(MPI_ERR_IO, false);
}

static void reported_eio_collective(void)
{
    reported(MPI_ERR_IO, true);
}

static void reported_enospc(void)
{
    reported(MPI_ERR_NO_SPACE, false);
}

/* Every call moves 64 KiB at most: AIS does it all the same. */
static void short_counts(void)
{
    MPI_File file = open_file(NULL);

    note_counters();
    write_and_read(file, MIB, false);
    check_counters(2 * MIB, 0, 0);
    check(ais_calls() == 32, "%lld calls, right is 32", (long long)ais_calls());
    close_file(file, MIB);
}

/* HIPIO_FASTPATH=force: what it can do works at any size, the rest is an error, never staged. */
static void forced(void)
{
    MPI_File file = open_file(NULL);
    struct buffer buffer = buffer_new(GPU_DEVICE, MIB);
    MPI_Status status;

    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    note_counters();
    write_and_read(file, MIB, false);
    write_and_read(file, 4 * KIB, false);
    check_class(MPI_File_write_at(file, 1, buffer.at, MIB, MPI_BYTE, &status),
                MPI_ERR_UNSUPPORTED_OPERATION, "unaligned write_at");
    check_counters(2 * MIB + 8 * KIB, 0, 0);
    buffer_free(&buffer);
    close_file(file, 0);
}

/* HIPIO_FALLBACK=off and ENODEV: the failure is the caller's. */
static void alone(void)
{
    MPI_File file = open_file(NULL);
    struct buffer buffer = buffer_new(GPU_DEVICE, MIB);
    MPI_Status status;

    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    note_counters();
    check_class(MPI_File_write_at(file, 0, buffer.at, MIB, MPI_BYTE, &status), MPI_ERR_IO,
                "write_at");
    check_counters(0, 0, 0);
    buffer_free(&buffer);
    close_file(file, 0);
}

/* HIPIO_FASTPATH=force where no file can take it: no rank opens the file. */
static void refused_at_open(void)
{
    MPI_File file = MPI_FILE_NULL;
    const int code = MPI_File_open(MPI_COMM_WORLD, "fast.dat", MPI_MODE_CREATE | MPI_MODE_RDWR,
                                   MPI_INFO_NULL, &file);

    check_class(code, MPI_ERR_UNSUPPORTED_OPERATION, "MPI_File_open");
    if (code == MPI_SUCCESS)
        MPI_File_close(&file);
    file_remove("fast.dat");
}

#define ON_REQUEST (NEEDS_HIPIO | NEEDS_GPU | NEEDS_REQUEST)

static const struct test_case cases[] = {
    {"healthy", "aligned data goes by AIS alone", 1, 4, NEEDS_HIPIO | NEEDS_GPU, healthy},
    {"split", "ranks that meet inside a page", 1, 4, NEEDS_HIPIO | NEEDS_GPU, split},
    {"staged_by_hint", "off for one file", 1, 4, NEEDS_HIPIO | NEEDS_GPU, staged_by_hint},
    {"staged", "absent or off: staged", 1, 4, ON_REQUEST, staged},
    {"given_up", "not supported here: given up until the next open", 1, 4, ON_REQUEST, given_up},
    {"in_the_middle", "EREMOTEIO in the middle of 64 MiB", 1, 1, ON_REQUEST, in_the_middle},
    {"in_the_background", "EREMOTEIO in a nonblocking write", 1, 1, ON_REQUEST, in_the_background},
    {"reported_eio", "EIO is reported, not retried", 2, 4, ON_REQUEST, reported_eio},
    {"reported_eio_collective", "EIO of one rank in a collective", 2, 4, ON_REQUEST,
     reported_eio_collective},
    {"reported_enospc", "ENOSPC is reported, not retried", 2, 4, ON_REQUEST, reported_enospc},
    {"short_counts", "short counts are continued", 1, 1, ON_REQUEST, short_counts},
    {"forced", "forced: what can't be done is an error", 1, 1, ON_REQUEST, forced},
    {"alone", "without a fallback the failure shows", 1, 1, ON_REQUEST, alone},
    {"refused_at_open", "forced where it can't be: refused on all ranks", 1, 4, ON_REQUEST,
     refused_at_open},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
