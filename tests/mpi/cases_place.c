/* SPDX-License-Identifier: MIT */
/*
 * Cases of the place where a program runs: file systems, alignments, limits. The same data by every
 * way that a file's bytes may take. place.sh runs it in places of many kinds.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define SEED 34
#define RDWR (MPI_MODE_CREATE | MPI_MODE_RDWR)

/* Ways of a file's bytes, as info hints. What a place can't do must cost nothing but speed. */
static const char *const ways[] = {
    NULL,
    "hipio_fastpath=off",
    "hipio_fallback=force",
    "hipio_direct=force",
    "hipio_direct=force,hipio_uring=off",
    "hipio_direct=force,hipio_fallback=force",
    "hipio_uring=force",
    "hipio_uring=force,hipio_uring_registered=force,hipio_fallback=force",
    "hipio_mapping=force",
    "hipio_mapping=off",
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Where a rank's data begins in memory and, behind its share of the file, in the file. */
struct shape {
    size_t memory;
    size_t file;
    size_t bytes;
};

static const char *way_name(int way)
{
    return ways[way] ? ways[way] : "automatic";
}

static void check_around(const struct buffer *buffer, const struct shape *shape)
{
    buffer_check_poison(buffer, 0, shape->memory);
    buffer_check_poison(buffer, shape->memory + shape->bytes,
                        buffer->size - shape->memory - shape->bytes);
}

struct counts {
    int64_t moved; /* bytes by all backends */
    int64_t fallbacks, given_up;
};

static struct counts count(void)
{
    static const char *const names[] = {
        "ais_bytes_read",        "ais_bytes_written", "hostmem_bytes_read",
        "hostmem_bytes_written", "bounce_bytes_read", "bounce_bytes_written",
    };
    struct counts counts = {0, case_counter("fallbacks"), case_counter("given_up")};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        counts.moved += case_counter(names[i]);
    return counts;
}

static void check_count(const char *what, int64_t found, int64_t right)
{
    check(found == right, "%lld %s, right is %lld", (long long)found, what, (long long)right);
}

/* One independent write and read of each rank, from `base` of the file on. Where its data ends. */
static MPI_Offset move_shape(MPI_File file, enum gpu_kind kind, const struct shape *shape,
                             size_t base)
{
    const size_t share = (shape->bytes / 4096 + 3) * 4096;
    const MPI_Offset at = (MPI_Offset)(base + shape->file + share * (size_t)case_rank());
    struct buffer buffer = buffer_new(kind, shape->memory + shape->bytes + 4096);
    const int bytes = (int)shape->bytes;
    MPI_Status status;

    buffer_fill(&buffer, shape->memory, SEED, (uint64_t)at, shape->bytes);
    check_ok(MPI_File_write_at(file, at, buffer.at + shape->memory, bytes, MPI_BYTE, &status),
             "write");
    check_bytes(&status, bytes, "write");
    barrier();
    file_check("place.dat", at, SEED, (uint64_t)at, shape->bytes);
    buffer_poison(&buffer);
    check_ok(MPI_File_read_at(file, at, buffer.at + shape->memory, bytes, MPI_BYTE, &status),
             "read");
    check_bytes(&status, bytes, "read");
    buffer_check(&buffer, shape->memory, SEED, (uint64_t)at, shape->bytes);
    check_around(&buffer, shape);
    buffer_free(&buffer);
    return at + bytes;
}

/* Heads of 96 and 2048 bytes are what file formats put before their data. */
static const struct shape shapes[] = {
    {0, 0, 640 * KIB},     {1, 0, 4096},         {512, 0, 4096},
    {0, 512, 4096},        {1, 512, 600 * KIB},  {0, 96, 640 * KIB + 13},
    {96, 96, 640 * KIB},   {0, 2048, 640 * KIB}, {2048, 2048, 640 * KIB},
    {100, 7, 3 * MIB + 1},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int64_t move_shapes(int way, enum gpu_kind kind)
{
    MPI_File file = file_open("place.dat", RDWR, ways[way]);
    MPI_Offset end = 0;
    int64_t sum = 0;

    for (int i = 0; i < SHAPES; i++) {
        watch_doing("%s, %s memory + %zu, file + %zu", way_name(way), gpu_kind_name(kind),
                    shapes[i].memory, shapes[i].file);
        end = move_shape(file, kind, &shapes[i], (size_t)i * 16 * MIB);
        sum += 2 * (int64_t)shapes[i].bytes;
    }
    MPI_File_close(&file);
    if (case_rank() == case_ranks() - 1)
        file_check_size("place.dat", end);
    file_remove("place.dat");
    return sum;
}

/* R34, R36, R37, R42, R43: every way agrees with the file as plain calls see it, at every alignment
 * of memory and file. Independent calls with host memory are ROMIO's. */
static void agree(void)
{
    const struct counts before = count();
    int64_t moved = 0;

    for (int way = 0; way < WAYS; way++) {
        moved += move_shapes(way, GPU_DEVICE);
        move_shapes(way, GPU_PINNED);
    }
    /* Pinned memory may be ROMIO's or hipio's. */
    check(count().moved - before.moved >= moved, "%lld bytes, at least %lld are right",
          (long long)(count().moved - before.moved), (long long)moved);
}

/* Blocks of all ranks in turn, by a collective; memory in pieces too. */
static void move_blocks(int way, enum gpu_kind kind, int block, int count)
{
    const int ranks = case_ranks(), rank = case_rank();
    struct buffer buffer = buffer_new(kind, (size_t)block * 2 * (size_t)count);
    MPI_File file = file_open("blocks.dat", RDWR, ways[way]);
    MPI_Datatype in_file, in_memory;
    MPI_Status status;

    watch_doing("%s, %s memory, blocks of %d", way_name(way), gpu_kind_name(kind), block);
    MPI_Type_vector(count, block, block * ranks, MPI_BYTE, &in_file);
    MPI_Type_vector(count, block, block * 2, MPI_BYTE, &in_memory);
    MPI_Type_commit(&in_file);
    MPI_Type_commit(&in_memory);
    MPI_File_set_view(file, (MPI_Offset)rank * block, MPI_BYTE, in_file, "native", MPI_INFO_NULL);
    for (int i = 0; i < count; i++)
        buffer_fill(&buffer, (size_t)(2 * i) * (size_t)block, SEED,
                    (uint64_t)(i * ranks + rank) * (uint64_t)block, (size_t)block);
    check_ok(MPI_File_write_all(file, buffer.at, 1, in_memory, &status), "write_all");
    check_bytes(&status, (int64_t)block * count, "write_all");
    barrier();
    file_check("blocks.dat", 0, SEED, 0, (size_t)block * (size_t)count * (size_t)ranks);
    buffer_poison(&buffer);
    check_ok(MPI_File_read_at_all(file, 0, buffer.at, 1, in_memory, &status), "read_all");
    check_bytes(&status, (int64_t)block * count, "read_all");
    for (int i = 0; i < count; i++) {
        buffer_check(&buffer, (size_t)(2 * i) * (size_t)block, SEED,
                     (uint64_t)(i * ranks + rank) * (uint64_t)block, (size_t)block);
        buffer_check_poison(&buffer, (size_t)(2 * i + 1) * (size_t)block, (size_t)block);
    }
    MPI_Type_free(&in_file);
    MPI_Type_free(&in_memory);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("blocks.dat");
}

static void agree_on_blocks(void)
{
    static const enum gpu_kind kinds[] = {GPU_HOST, GPU_DEVICE, GPU_PINNED};

    for (int way = 0; way < WAYS; way++)
        for (int i = 0; i < 3; i++) {
            move_blocks(way, kinds[i], 3000, 50);
            move_blocks(way, kinds[i], 65536, 5);
        }
}

/* All ranks have the same class, or none of them an error. */
static int common_class(int code, const char *what)
{
    int class = MPI_SUCCESS, low, high;

    MPI_Error_class(code, &class);
    MPI_Allreduce(&class, &low, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&class, &high, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(low == high, "%s: classes from %d to %d, mine is %d", what, low, high, class);
    return class;
}

/* R37: the fast path forced: all ranks are refused at open, or all open and it works. Which of
 * them, HIPIO_TEST_FORCED says: "works" or "refused". */
static void forced(void)
{
    const char *wanted = getenv("HIPIO_TEST_FORCED");
    MPI_Info info = info_of("hipio_fastpath=force");
    MPI_File file = MPI_FILE_NULL;
    const int class = common_class(MPI_File_open(MPI_COMM_WORLD, "forced.dat", RDWR, info, &file),
                                   "MPI_File_open");

    check(class == MPI_SUCCESS || class == MPI_ERR_UNSUPPORTED_OPERATION, "class %d", class);
    check(wanted && strcmp(wanted, class == MPI_SUCCESS ? "works" : "refused") == 0,
          "the open %s, right is %s", class == MPI_SUCCESS ? "works" : "is refused",
          wanted ? wanted : "(HIPIO_TEST_FORCED is not set)");
    if (class == MPI_SUCCESS) {
        const MPI_Offset at = (MPI_Offset)MIB * case_rank();
        struct buffer buffer = buffer_new(GPU_DEVICE, MIB);
        buffer_fill(&buffer, 0, SEED, (uint64_t)at, MIB);
        check_ok(MPI_File_write_at(file, at, buffer.at, (int)MIB, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write");
        file_check("forced.dat", at, SEED, (uint64_t)at, MIB);
        buffer_free(&buffer);
        MPI_File_close(&file);
    }
    MPI_Info_free(&info);
    file_remove("forced.dat");
}

/* R42: the kernel finds out at the first call that it can't (HIPSIM_AIS=refuse): staged, and
 * counted with its reason. */
static void refused_by_the_kernel(void)
{
    const struct counts before = count();
    const int64_t moved = move_shapes(0, GPU_DEVICE);
    const struct counts after = count();

    check_count("bytes", after.moved - before.moved, moved);
    check_count("fallbacks", after.fallbacks - before.fallbacks, 1);
    check_count("paths given up", after.given_up - before.given_up, 1);
}

/* R39: what one rank has written is there for another that had the file open already, after
 * sync-barrier-sync. */
static void sync_barrier_sync(void)
{
    for (int way = 0; way < WAYS; way++) {
        struct buffer buffer = buffer_new(case_kinds() > 1 ? GPU_DEVICE : GPU_HOST, MIB);
        MPI_Info info = info_of(ways[way]);
        MPI_File file;

        watch_doing("%s", way_name(way));
        file_make("sync.dat", SEED, MIB);
        check_ok(MPI_File_open(MPI_COMM_SELF, "sync.dat", MPI_MODE_RDWR, info, &file), "open");
        check_ok(MPI_File_read_at(file, 0, buffer.at, (int)MIB, MPI_BYTE, MPI_STATUS_IGNORE),
                 "first read");
        buffer_check(&buffer, 0, SEED, 0, MIB);
        barrier();
        if (case_rank() == 0) {
            buffer_fill(&buffer, 0, SEED + 1, 0, MIB);
            check_ok(MPI_File_write_at(file, 0, buffer.at, (int)MIB, MPI_BYTE, MPI_STATUS_IGNORE),
                     "write");
        }
        check_ok(MPI_File_sync(file), "sync");
        barrier();
        check_ok(MPI_File_sync(file), "sync");
        buffer_poison(&buffer);
        check_ok(MPI_File_read_at(file, 0, buffer.at, (int)MIB, MPI_BYTE, MPI_STATUS_IGNORE),
                 "second read");
        buffer_check(&buffer, 0, SEED + 1, 0, MIB);
        MPI_File_close(&file);
        if (info != MPI_INFO_NULL)
            MPI_Info_free(&info);
        buffer_free(&buffer);
        file_remove("sync.dat");
    }
}

static const struct test_case cases[] = {
    {"agree", "all ways agree at every alignment", 1, 16, NEEDS_HIPIO | NEEDS_GPU, agree},
    {"agree_on_blocks", "all ways agree on blocks of all ranks", 1, 16, NEEDS_HIPIO | NEEDS_GPU,
     agree_on_blocks},
    {"R39", "sync, barrier, sync", 1, 16, NEEDS_HIPIO, sync_barrier_sync},
    {"forced", "a forced fast path, for all ranks or for none", 1, 16,
     NEEDS_HIPIO | NEEDS_GPU | NEEDS_REQUEST, forced},
    {"R42", "refused by the kernel: staged and counted", 1, 16,
     NEEDS_HIPIO | NEEDS_GPU | NEEDS_REQUEST, refused_by_the_kernel},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
