/* SPDX-License-Identifier: MIT */
/*
 * Cases: offsets, displacements and lengths beyond 2 GiB. Files and memory are sparse where that is
 * enough; what really moves gigabytes runs only when it is named.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR, MIB = 1 << 20, BLOCK = 64 << 10 };
#define GIB (1ll << 30)

/* A datatype of that many bytes, a multiple of a MiB. */
static MPI_Datatype big_block(int64_t bytes)
{
    MPI_Datatype mib, type;

    MPI_Type_contiguous(MIB, MPI_BYTE, &mib);
    MPI_Type_contiguous((int)(bytes / MIB), mib, &type);
    MPI_Type_free(&mib);
    return type;
}

/* R30: views of 3 GiB for each rank, and an access at 2.5 GiB of it. */
static void far_in_the_view(void)
{
    const int64_t size = 3 * GIB, at = 5 * GIB / 2;

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, MIB);
        MPI_File file = file_open("r30.dat", RDWR, NULL);
        MPI_Datatype block = big_block(size), filetype;
        MPI_Aint start = (MPI_Aint)(case_rank() * size);
        MPI_Offset where = -1, right = case_rank() * size + at;
        MPI_Status status;
        int one = 1;

        watch_step("%s memory", gpu_kind_name(buffer.kind));
        MPI_Type_create_hindexed(1, &one, &start, block, &filetype);
        MPI_Type_commit(&filetype);
        check_ok(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL),
                 "set_view");
        check_ok(MPI_File_get_byte_offset(file, at, &where), "get_byte_offset");
        check(where == right, "byte offset is %lld, right is %lld", (long long)where,
              (long long)right);
        buffer_fill(&buffer, 0, 30, (uint64_t)right, MIB);
        check_ok(MPI_File_write_at(file, at, buffer.at, MIB, MPI_BYTE, &status), "write_at");
        check_bytes(&status, MIB, "write_at");
        file_check("r30.dat", right, 30, (uint64_t)right, MIB);
        buffer_poison(&buffer);
        /* ROMIO reads from elsewhere when the filetype begins beyond 2 GiB. */
        if (!case_romio_serves(buffer.kind))
            check_ok(MPI_File_read_at_all(file, at, buffer.at, MIB, MPI_BYTE, &status),
                     "read_at_all into %s memory", gpu_kind_name(buffer.kind));
        else if (case_rank() == 0)
            check_ok(MPI_File_read_at(file, at, buffer.at, MIB, MPI_BYTE, &status), "read_at");
        if (!case_romio_serves(buffer.kind) || case_rank() == 0)
            buffer_check(&buffer, 0, 30, (uint64_t)right, MIB);
        MPI_Type_free(&filetype);
        MPI_Type_free(&block);
        MPI_File_close(&file);
        buffer_free(&buffer);
        file_remove("r30.dat");
    }
}

/* R31, cheap: data more than 2 GiB apart in memory. Most of the memory is never touched. */
static void far_in_memory(void)
{
    const size_t size = (size_t)(9 * GIB / 4);
    int lengths[] = {10, 1024, 5000};
    MPI_Aint starts[] = {0, GIB - 1024, (MPI_Aint)size - 5000};

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = {(enum gpu_kind)kind, NULL, size};
        MPI_File file = file_open("r31.dat", RDWR, NULL);
        MPI_Datatype type;
        MPI_Status status;
        int position = 0;

        if (kind == GPU_PINNED || kind == GPU_MANAGED)
            continue; /* such memory is there from the start */
        buffer.at = gpu_alloc(buffer.kind, size);
        MPI_Type_create_hindexed(3, lengths, starts, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        for (int i = 0; i < 3; position += lengths[i++])
            buffer_fill(&buffer, (size_t)starts[i], 31, (uint64_t)position, (size_t)lengths[i]);
        check_ok(MPI_File_write_at_all(file, 0, buffer.at, 1, type, &status), "write_at_all");
        check_bytes(&status, position, "write_at_all");
        file_check("r31.dat", 0, 31, 0, (size_t)position);
        for (int i = 0; i < 3; i++)
            buffer_fill(&buffer, (size_t)starts[i], 1, 0, (size_t)lengths[i]);
        check_ok(MPI_File_read_at(file, 0, buffer.at, 1, type, &status), "read_at");
        for (int i = position = 0; i < 3; position += lengths[i++])
            buffer_check(&buffer, (size_t)starts[i], 31, (uint64_t)position, (size_t)lengths[i]);
        MPI_Type_free(&type);
        MPI_File_close(&file);
        gpu_free(buffer.kind, buffer.at);
        file_remove("r31.dat");
    }
}

/* A sparse file with marks at both ends and around the system calls' limit. */
static void make_marked(const char *path, int64_t size)
{
    const int64_t marks[] = {0, 0x7ffff000 - BLOCK / 2, size - BLOCK};
    char *block = malloc(BLOCK);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    for (int i = 0; i < 3; i++) {
        pattern_fill(block, 28, (uint64_t)marks[i], BLOCK);
        if (pwrite(fd, block, BLOCK, marks[i]) != BLOCK)
            check(false, "%s can't be made: %m", path);
    }
    close(fd);
    free(block);
}

/* `skip` bytes at the start of `one` are not in the other file. */
static void check_equal(const char *one, const char *other, int64_t skip, int64_t size)
{
    char *a = malloc(2 * MIB), *b = a + MIB;
    int first = open(one, O_RDONLY | O_CLOEXEC), second = open(other, O_RDONLY | O_CLOEXEC);

    for (int64_t at = 0; at < size; at += MIB) {
        size_t bytes = size - at < MIB ? (size_t)(size - at) : MIB;

        if (pread(first, a, bytes, at + skip) != (ssize_t)bytes ||
            pread(second, b, bytes, at) != (ssize_t)bytes || memcmp(a, b, bytes) != 0) {
            check(false, "%s and %s differ in the MiB at %lld", one, other, (long long)at);
            break;
        }
    }
    close(first);
    close(second);
    free(a);
}

static bool enough_memory(int64_t bytes)
{
    int64_t there = (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);

    if (there >= bytes)
        return true;
    printf("     left out: %lld GiB of memory are free, %lld are needed\n",
           (long long)(there / GIB), (long long)(bytes / GIB));
    return false;
}

/* R28, R10: one call moves more than one system call can, from an unaligned place, and back. */
static void in_one_call(int64_t size, MPI_Datatype type, int count)
{
    enum gpu_kind kind = case_kinds() > 1 ? GPU_DEVICE : GPU_HOST;
    unsigned char *memory;
    MPI_File file;
    MPI_Status status;

    if (!enough_memory(3 * size))
        return;
    memory = gpu_alloc(kind, (size_t)size);
    make_marked("r28.in", size + 8);
    file = file_open("r28.in", MPI_MODE_RDONLY, NULL);
    check_ok(MPI_File_read_at(file, 8, memory, count, type, &status), "read_at of %lld bytes",
             (long long)size);
    check_bytes(&status, size, "read_at");
    MPI_File_close(&file);
    file = file_open("r28.out", RDWR, NULL);
    check_ok(MPI_File_write_at_all(file, 0, memory, count, type, &status),
             "write_at_all of %lld bytes", (long long)size);
    check_bytes(&status, size, "write_at_all");
    MPI_File_close(&file);
    gpu_free(kind, memory);
    file_check_size("r28.out", size);
    check_equal("r28.in", "r28.out", 8, size);
    file_remove("r28.in");
    file_remove("r28.out");
}

static void two_gib(void)
{
    in_one_call(0x7ffff001, MPI_BYTE, 0x7ffff001);
}

static void four_gib_and_one(void)
{
    MPI_Datatype block = big_block(4 * GIB), type;
    int lengths[] = {1, 1};
    MPI_Aint starts[] = {0, (MPI_Aint)(4 * GIB)};

    MPI_Type_create_struct(2, lengths, starts, (MPI_Datatype[]){block, MPI_BYTE}, &type);
    MPI_Type_commit(&type);
    in_one_call(4 * GIB + 1, type, 1);
    MPI_Type_free(&type);
    MPI_Type_free(&block);
}

/* R31: one datatype of more than 2 GiB in three pieces, by a collective and a nonblocking call. */
static void two_gib_in_pieces(void)
{
    int lengths[] = {10, (int)(GIB - 1024), (int)(GIB + 1024)};
    MPI_Aint starts[] = {0, 16, (MPI_Aint)(GIB + 16)};
    const int64_t bytes = 2 * GIB + 10;
    enum gpu_kind kind = case_kinds() > 1 ? GPU_DEVICE : GPU_HOST;
    struct buffer buffer = {kind, NULL, (size_t)(starts[2] + lengths[2])};
    MPI_Datatype type;
    MPI_File file;
    MPI_Status status;

    if (!enough_memory(2 * bytes))
        return;
    buffer.at = gpu_alloc(kind, buffer.size);
    for (int i = 0; i < 3; i++)
        buffer_fill(&buffer, (size_t)starts[i], 31, (uint64_t)starts[i], 10);
    buffer_fill(&buffer, (size_t)starts[2] + (size_t)lengths[2] - 10, 31, 5, 10);
    MPI_Type_create_hindexed(3, lengths, starts, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (int call = 0; call < 2; call++) {
        MPI_Request request = MPI_REQUEST_NULL;

        file = file_open("r31.dat", RDWR, NULL);
        watch_step("%s", call ? "iwrite" : "write_all");
        if (call) {
            check_ok(MPI_File_iwrite(file, buffer.at, 1, type, &request), "iwrite");
            check_ok(MPI_Wait(&request, &status), "wait");
        } else
            check_ok(MPI_File_write_all(file, buffer.at, 1, type, &status), "write_all");
        check_bytes(&status, bytes, "write of %lld bytes", (long long)bytes);
        MPI_File_close(&file);
        file_check_size("r31.dat", bytes);
        file_check("r31.dat", 0, 31, 0, 10);
        file_check("r31.dat", 10, 31, 16, 10);
        file_check("r31.dat", GIB - 1014, 31, (uint64_t)GIB + 16, 10);
        file_check("r31.dat", bytes - 10, 31, 5, 10);
        file_remove("r31.dat");
    }
    MPI_Type_free(&type);
    gpu_free(kind, buffer.at);
}

static const struct test_case cases[] = {
    {"R30", "an access at 2.5 GiB of a view of 3 GiB", 1, 4, NEEDS_NOTHING, far_in_the_view},
    {"R31_far", "data more than 2 GiB apart in memory", 1, 1, NEEDS_NOTHING, far_in_memory},
    {"R28", "0x7ffff001 bytes in one call", 1, 1, NEEDS_REQUEST, two_gib},
    {"R28_4g", "4 GiB and one byte in one call", 1, 1, NEEDS_REQUEST, four_gib_and_one},
    {"R31", "2 GiB in three pieces", 1, 1, NEEDS_REQUEST, two_gib_in_pieces},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
