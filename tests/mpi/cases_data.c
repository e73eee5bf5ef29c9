/* SPDX-License-Identifier: MIT */
/*
 * Cases: the right bytes at the right place, at the right time.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR };

/* R9: a write that ends inside a page changes nothing but its bytes. */
static void tail_page(void)
{
    enum { FILE_SIZE = 64 << 10, AT = 8192, BYTES = 4096 + 100 };

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);
        MPI_File file;

        file_make("r9.dat", 9, FILE_SIZE);
        file = file_open("r9.dat", RDWR, NULL);
        buffer_fill(&buffer, 0, 10, 0, BYTES);
        check_ok(MPI_File_write_at(file, AT, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_at of %d bytes", BYTES);
        MPI_File_close(&file);
        file_check("r9.dat", 0, 9, 0, AT);
        file_check("r9.dat", AT, 10, 0, BYTES);
        file_check("r9.dat", AT + BYTES, 9, AT + BYTES, FILE_SIZE - AT - BYTES);
        file_check_size("r9.dat", FILE_SIZE);
        buffer_free(&buffer);
    }
    file_remove("r9.dat");
}

/* R12: host memory that is taken and filled right after the call is not what gets written. */
static void staging_lives(void)
{
    enum { BYTES = 8 << 20, BLOCKS = 64, BLOCK = 1 << 16 };
    char *blocks[BLOCKS];

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);
        MPI_File file = file_open("r12.dat", RDWR, NULL);
        MPI_Request request;
        MPI_Status status;

        buffer_fill(&buffer, 0, 12, 0, BYTES);
        check_ok(MPI_File_iwrite_at(file, 0, buffer.at, BYTES, MPI_BYTE, &request), "iwrite_at");
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BLOCK);
            memset(blocks[i], 0x42, BLOCK);
        }
        check_ok(MPI_Wait(&request, &status), "wait");
        check_bytes(&status, BYTES, "iwrite_at");
        MPI_File_close(&file);
        file_check("r12.dat", 0, 12, 0, BYTES);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        buffer_free(&buffer);
    }
    file_remove("r12.dat");
}

static long resident_kib(void)
{
    FILE *status = fopen("/proc/self/statm", "r");
    long all = 0, resident = 0;

    if (status && fscanf(status, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    if (status)
        fclose(status);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* R12: calls that fail cost no memory. */
static void failures_leak_nothing(void)
{
    enum { BYTES = 64 << 10 };
    struct buffer buffer = buffer_new(case_kinds() > 1 ? GPU_DEVICE : GPU_HOST, BYTES);
    MPI_File file;
    long before = 0, after;
    int repeat = case_repeat(1000);

    file_make("leak.dat", 12, BYTES);
    file = file_open("leak.dat", MPI_MODE_RDONLY, NULL);
    for (int i = 0; i < repeat; i++) {
        if (i == repeat / 5)
            before = resident_kib();
        if (MPI_File_write_all(file, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS)
            check(false, "write_all on a file opened for reading succeeded");
    }
    after = resident_kib();
    check(after - before < 8192, "resident memory grew from %ld to %ld KiB in failing calls",
          before, after);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("leak.dat");
}

/* R13: the pointer counts etypes, at once when a nonblocking call is made. */
static void pointer_in_etypes(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 160);
        MPI_File file = file_open("r13.dat", RDWR, NULL);
        MPI_Request request[2];
        MPI_Offset position = -1;

        MPI_File_set_size(file, 0);
        MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL);
        buffer_fill(&buffer, 0, 13, 0, 160);
        check_ok(MPI_File_iwrite(file, buffer.at, 10, MPI_DOUBLE, &request[0]), "iwrite");
        check_ok(MPI_File_iwrite(file, buffer.at + 80, 10, MPI_DOUBLE, &request[1]), "iwrite");
        MPI_File_get_position(file, &position);
        check(position == 20, "position is %lld after two iwrites of 10 doubles, right is 20",
              (long long)position);
        check_ok(MPI_Waitall(2, request, MPI_STATUSES_IGNORE), "waitall");
        MPI_File_close(&file);
        file_check_size("r13.dat", 160);
        file_check("r13.dat", 0, 13, 0, 160);
        buffer_free(&buffer);
    }
    file_remove("r13.dat");
}

/* R15: after a blocking read the bytes are there for any later GPU work, whatever its stream. */
static void read_is_complete(void)
{
    enum { BYTES = 256 << 10 };
    struct buffer buffer = buffer_new(GPU_DEVICE, BYTES), copy = buffer_new(GPU_PINNED, BYTES);
    MPI_File file = file_open("r15.dat", RDWR, NULL);
    unsigned char *host = malloc(BYTES);

    for (int i = 0; i < case_repeat(60); i++) {
        int bytes = (32 << 10) + i * 4093 % (BYTES - (32 << 10));

        pattern_fill(host, (uint64_t)i, 0, (size_t)bytes);
        MPI_File_write_at(file, 0, host, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        if (!check_ok(MPI_File_read_at(file, 0, buffer.at, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                      "read_at"))
            break;
        gpu_copy_other_stream(copy.at, buffer.at, (size_t)bytes);
        if (pattern_check(copy.at, (uint64_t)i, 0, (size_t)bytes) != (size_t)bytes) {
            check(false, "round %d: old bytes were there after read_at had returned", i);
            break;
        }
    }
    free(host);
    MPI_File_close(&file);
    buffer_free(&buffer);
    buffer_free(&copy);
    file_remove("r15.dat");
}

/* What each rank of R16 writes: rank 0 the middle in one piece, the others strides around it. */
static void write_mixed(MPI_File file, const struct buffer *buffer, MPI_Datatype strides)
{
    int code;

    if (case_rank() == 0) {
        MPI_File_set_view(file, 4096, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
        code = MPI_File_write_at(file, 0, buffer->at, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
    } else {
        MPI_File_set_view(file, 16 * (case_rank() - 1), MPI_BYTE, strides, "native", MPI_INFO_NULL);
        code = MPI_File_write_at(file, 0, buffer->at, 2 * 1024, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    check_ok(code, "write_at");
}

enum { PIECES = 128 };

/* 64 pieces of 16 bytes in steps of 64 below rank 0's page, and 64 above it. */
static MPI_Aint piece_start(int piece)
{
    return piece < 64 ? piece * 64 : 8192 + (piece - 64) * 64;
}

static MPI_Datatype make_strides(void)
{
    MPI_Datatype strides;
    MPI_Aint starts[PIECES];

    for (int i = 0; i < PIECES; i++)
        starts[i] = piece_start(i);
    MPI_Type_create_hindexed_block(PIECES, 16, starts, MPI_BYTE, &strides);
    MPI_Type_commit(&strides);
    return strides;
}

static bool check_neighbours(uint64_t seed)
{
    bool ok = file_check("r16.dat", 4096, seed, 0, 4096);

    for (int rank = 1; rank < case_ranks(); rank++)
        for (int i = 0; i < PIECES && ok; i++)
            ok = file_check("r16.dat", 16 * (rank - 1) + piece_start(i), seed + (uint64_t)rank,
                            (uint64_t)i * 16, 16);
    return ok;
}

static void write_rounds(enum gpu_kind kind)
{
    struct buffer buffer = buffer_new(kind, 4096);
    MPI_Datatype strides = make_strides();
    MPI_File file = file_open("r16.dat", RDWR, NULL);

    for (int round = 0; round < case_repeat(40); round++) {
        uint64_t seed = (uint64_t)round * 16;
        int ok = 1;

        buffer_fill(&buffer, 0, seed + (uint64_t)case_rank(), 0, 4096);
        barrier();
        write_mixed(file, &buffer, strides);
        barrier();
        if (case_rank() == 0)
            ok = check_neighbours(seed);
        MPI_Bcast(&ok, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!ok)
            break;
    }
    MPI_File_close(&file);
    MPI_Type_free(&strides);
    buffer_free(&buffer);
    file_remove("r16.dat");
}

/* R16: nobody's bytes are lost when ranks write next to each other. */
static void neighbours_survive(void)
{
    write_rounds(case_kinds() > 1 ? GPU_DEVICE : GPU_HOST);
}

/* The same where some ranks have host memory: what ROMIO reads, changes and writes back must not
 * undo what another rank wrote from GPU memory in between. */
static void mixed_neighbours_survive(void)
{
    write_rounds((enum gpu_kind)(case_rank() % case_kinds()));
    write_rounds(case_rank() % 2 ? GPU_HOST : (enum gpu_kind)(case_kinds() > 1));
}

/* R16: four ranks fill one page, 100 bytes each. */
static void one_page(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 100);
        MPI_File file = file_open("page.dat", RDWR, NULL);

        for (int round = 0; round < case_repeat(40); round++) {
            MPI_Offset at = 100 * case_rank();

            buffer_fill(&buffer, 0, (uint64_t)round, (uint64_t)at, 100);
            barrier();
            check_ok(MPI_File_write_at(file, at, buffer.at, 100, MPI_BYTE, MPI_STATUS_IGNORE),
                     "write_at");
            barrier();
            if (!file_check("page.dat", 0, (uint64_t)round, 0, 100 * (size_t)case_ranks()))
                break;
        }
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
    file_remove("page.dat");
}

static const struct test_case cases[] = {
    {"R9", "a write that ends inside a page", 1, 1, NEEDS_NOTHING, tail_page},
    {"R12", "staging memory lives as long as the write", 1, 1, NEEDS_NOTHING, staging_lives},
    {"R12_leak", "failing calls leak nothing", 1, 2, NEEDS_NOTHING, failures_leak_nothing},
    {"R13", "the file pointer counts etypes", 1, 1, NEEDS_NOTHING, pointer_in_etypes},
    {"R15", "a blocking read is complete when it returns", 1, 1, NEEDS_GPU, read_is_complete},
    {"R16", "strided writers and a contiguous one side by side", 2, 4, NEEDS_NOTHING,
     neighbours_survive},
    /* Plain ROMIO loses updates here now and then. */
    {"R16_mixed", "the same with host and GPU memory mixed", 2, 4, NEEDS_HIPIO,
     mixed_neighbours_survive},
    {"R16_page", "several writers in one page", 2, 16, NEEDS_NOTHING, one_page},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
