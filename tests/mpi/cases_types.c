/* SPDX-License-Identifier: MIT */
/*
 * Cases: datatypes in memory and as views. The oracle is MPI_Pack on host memory: what a datatype
 * packs is what must come to the file, and what packs from the file's image is what a view shows.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR, ROOM = 16 << 10, BASE = 2048 };

/* Resized twice: lower bound 4, extent 12, and again. */
static void make_resized(MPI_Datatype *type)
{
    MPI_Datatype inner;

    MPI_Type_create_resized(MPI_INT, 4, 12, &inner);
    MPI_Type_create_resized(inner, 0, 16, type);
    MPI_Type_free(&inner);
}

/* The same with a lower bound that stays. */
static void make_lower_bound(MPI_Datatype *type)
{
    MPI_Datatype vector;

    MPI_Type_vector(3, 2, 4, MPI_INT, &vector);
    MPI_Type_create_resized(vector, -8, 64, type);
    MPI_Type_free(&vector);
}

static void make_below(MPI_Datatype *type)
{
    int length = 12;
    MPI_Aint start = -48;

    MPI_Type_create_hindexed(1, &length, &start, MPI_INT, type);
}

static void make_darray(MPI_Datatype *type)
{
    int sizes[] = {12, 20}, distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 3}, processes[] = {2, 2};

    MPI_Type_create_darray(4, 3, 2, sizes, distributions, arguments, processes, MPI_ORDER_C,
                           MPI_INT, type);
}

static void make_subarrays(MPI_Datatype *type)
{
    int sizes[] = {4, 5, 6}, subsizes[] = {2, 3, 2}, starts[] = {1, 1, 3};
    int lengths[] = {1, 2};
    MPI_Aint places[] = {0, 600};
    MPI_Datatype sub;

    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &sub);
    MPI_Type_create_hindexed(2, lengths, places, sub, type);
    MPI_Type_free(&sub);
}

/* Data on both sides of the address, in a structure of a duplicated vector and others. */
static void make_negative(MPI_Datatype *type)
{
    MPI_Datatype parts[3];
    int lengths[] = {1, 2, 1};
    MPI_Aint places[] = {-200, -40, 72};

    MPI_Type_vector(4, 1, 3, MPI_DOUBLE, &parts[0]);
    MPI_Type_dup(MPI_INT, &parts[1]);
    MPI_Type_create_hvector(2, 3, 20, MPI_SHORT, &parts[2]);
    MPI_Type_create_struct(3, lengths, places, parts, type);
    for (int i = 0; i < 3; i++)
        MPI_Type_free(&parts[i]);
}

static void make_indexed(MPI_Datatype *type)
{
    int lengths[] = {3, 0, 1, 5}, places[] = {2, 6, 9, 20};
    MPI_Datatype inner;

    MPI_Type_indexed(4, lengths, places, MPI_INT, &inner);
    MPI_Type_contiguous(3, inner, type);
    MPI_Type_free(&inner);
}

static void make_blocks(MPI_Datatype *type)
{
    int places[] = {0, 5, 11};
    MPI_Aint far[] = {0, 200};
    MPI_Datatype inner;

    MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &inner);
    MPI_Type_create_hindexed_block(2, 1, far, inner, type);
    MPI_Type_free(&inner);
}

static const struct {
    const char *name;
    void (*make)(MPI_Datatype *type);
    bool view;  /* may be a filetype too: ascending, nothing below 0 */
    bool romio; /* plain ROMIO does it right */
} types[] = {
    {"resized of resized", make_resized, true, false},
    {"one piece below the address", make_below, false, false},
    {"resized with a lower bound", make_lower_bound, false, false},
    {"darray, block and cyclic", make_darray, true, true},
    {"hindexed of subarrays", make_subarrays, true, false},
    {"structure with data below the address", make_negative, false, true},
    {"contiguous of indexed", make_indexed, true, true},
    {"hindexed blocks of indexed blocks", make_blocks, true, true},
};
enum { TYPES = sizeof types / sizeof *types, COUNT = 2 };

/* Packs COUNT elements of host memory. */
static int pack(const void *memory, MPI_Datatype type, unsigned char *out)
{
    int position = 0;

    MPI_Pack(memory, COUNT, type, out, ROOM, &position, MPI_COMM_SELF);
    return position;
}

/* Writes from and reads into memory of a type; the file is contiguous. */
static void check_memory_type(int index, enum gpu_kind kind)
{
    static unsigned char host[ROOM], packed[ROOM], got[ROOM], right[ROOM];
    struct buffer buffer = buffer_new(kind, ROOM);
    MPI_File file = file_open("r57.dat", RDWR, NULL);
    MPI_Datatype type;
    MPI_Status status;
    int bytes, position = 0, fd;

    watch_step("%s in %s memory", types[index].name, gpu_kind_name(kind));
    types[index].make(&type);
    MPI_Type_commit(&type);
    pattern_fill(host, 57, 0, ROOM);
    buffer_put(&buffer, 0, host, ROOM);
    bytes = pack(host + BASE, type, packed);
    check_ok(MPI_File_write_at(file, 100, buffer.at + BASE, COUNT, type, &status), "%s: write_at",
             types[index].name);
    check_bytes(&status, bytes, "%s: write_at", types[index].name);
    fd = open("r57.dat", O_RDONLY | O_CLOEXEC);
    check(pread(fd, got, (size_t)bytes, 100) == bytes && memcmp(got, packed, (size_t)bytes) == 0,
          "%s from %s memory: the file is not what MPI_Pack gives", types[index].name,
          gpu_kind_name(kind));
    close(fd);

    buffer_poison(&buffer);
    check_ok(MPI_File_read_at(file, 100, buffer.at + BASE, COUNT, type, &status), "%s: read_at",
             types[index].name);
    check_bytes(&status, bytes, "%s: read_at", types[index].name);
    memset(right, POISON, ROOM);
    MPI_Unpack(packed, bytes, &position, right + BASE, COUNT, type, MPI_COMM_SELF);
    buffer_get(&buffer, 0, got, ROOM);
    position = 0;
    while (position < ROOM && got[position] == right[position])
        position++;
    check(position == ROOM, "%s in %s memory: byte %d is 0x%02x, MPI_Unpack gives 0x%02x",
          types[index].name, gpu_kind_name(kind), position - BASE,
          position < ROOM ? got[position] : 0, position < ROOM ? right[position] : 0);
    MPI_File_close(&file);
    MPI_Type_free(&type);
    buffer_free(&buffer);
}

static bool expect_right(int index, enum gpu_kind kind)
{
    return types[index].romio || (case_hipio() && !case_romio_serves(kind));
}

static void memory_types(void)
{
    for (int kind = 0; kind < case_kinds(); kind++)
        for (int i = 0; i < TYPES; i++)
            if (expect_right(i, (enum gpu_kind)kind))
                check_memory_type(i, (enum gpu_kind)kind);
    file_remove("r57.dat");
}

/* Reads and overwrites through a view of a type; memory is contiguous. */
static void check_view(int index, enum gpu_kind kind, bool collective)
{
    static unsigned char image[ROOM], packed[ROOM], got[ROOM];
    struct buffer buffer = buffer_new(kind, ROOM);
    MPI_File file;
    MPI_Datatype type;
    int bytes, position = 0, fd, disp = 52;

    watch_step("view of %s, %s memory", types[index].name, gpu_kind_name(kind));
    file_make("r57v.dat", 58, ROOM);
    pattern_fill(image, 58, 0, ROOM);
    types[index].make(&type);
    MPI_Type_commit(&type);
    bytes = pack(image + disp, type, packed);
    file = file_open("r57v.dat", RDWR, NULL);
    check_ok(MPI_File_set_view(file, disp, MPI_INT, type, "native", MPI_INFO_NULL), "set_view");
    check_ok((collective ? MPI_File_read_at_all : MPI_File_read_at)(file, 0, buffer.at, bytes / 4,
                                                                    MPI_INT, MPI_STATUS_IGNORE),
             "view of %s: read", types[index].name);
    buffer_get(&buffer, 0, got, ROOM);
    check(memcmp(got, packed, (size_t)bytes) == 0,
          "view of %s, %s memory: the data read is not what MPI_Pack gives", types[index].name,
          gpu_kind_name(kind));
    buffer_check_poison(&buffer, (size_t)bytes, ROOM - (size_t)bytes);

    pattern_fill(packed, 59, 0, (size_t)bytes);
    buffer_put(&buffer, 0, packed, (size_t)bytes);
    MPI_Unpack(packed, bytes, &position, image + disp, COUNT, type, MPI_COMM_SELF);
    check_ok((collective ? MPI_File_write_at_all : MPI_File_write_at)(file, 0, buffer.at, bytes / 4,
                                                                      MPI_INT, MPI_STATUS_IGNORE),
             "view of %s: write", types[index].name);
    MPI_File_close(&file);
    fd = open("r57v.dat", O_RDONLY | O_CLOEXEC);
    check(read(fd, got, ROOM) == ROOM && memcmp(got, image, ROOM) == 0,
          "view of %s, %s memory: the file written is not what MPI_Unpack gives", types[index].name,
          gpu_kind_name(kind));
    close(fd);
    MPI_Type_free(&type);
    buffer_free(&buffer);
}

static void view_types(void)
{
    for (int kind = 0; kind < case_kinds(); kind++)
        for (int i = 0; i < TYPES; i++)
            if (types[i].view && expect_right(i, (enum gpu_kind)kind)) {
                check_view(i, (enum gpu_kind)kind, false);
                check_view(i, (enum gpu_kind)kind, true);
            }
    file_remove("r57v.dat");
}

#ifdef HIPIO_TEST_LARGE_CONSTRUCTORS
/* R58: a subarray made with counts of MPI_Count. */
static void large_count_type(void)
{
    MPI_Count sizes[] = {8, 8}, subsizes[] = {4, 4}, starts[] = {2, 2};
    struct buffer buffer = buffer_new(case_kinds() > 1 ? GPU_DEVICE : GPU_HOST, 64);
    MPI_File file = file_open("r58.dat", RDWR, NULL);
    MPI_Datatype type;

    MPI_Type_create_subarray_c(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL) == MPI_SUCCESS) {
        buffer_fill(&buffer, 0, 58, 0, 64);
        check_ok(MPI_File_write_at(file, 0, buffer.at, 16, MPI_INT, MPI_STATUS_IGNORE), "write_at");
        for (int row = 0; row < 4; row++)
            file_check("r58.dat", (2 + row) * 32 + 8, 58, 16 * (uint64_t)row, 16);
    }
    MPI_File_close(&file);
    MPI_Type_free(&type);
    buffer_free(&buffer);
    file_remove("r58.dat");
}
#endif

/* The calls that R60 tries: each writes and reads back `count` doubles. */
static int transfer32(MPI_File f, int call, bool write, void *at, int count)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = MPI_DOUBLE;
    int code;

    switch (call) {
    case 0:
        return write ? MPI_File_write_at(f, 0, at, count, type, MPI_STATUS_IGNORE)
                     : MPI_File_read_at(f, 0, at, count, type, MPI_STATUS_IGNORE);
    case 1:
        return write ? MPI_File_write_at_all(f, 0, at, count, type, MPI_STATUS_IGNORE)
                     : MPI_File_read_at_all(f, 0, at, count, type, MPI_STATUS_IGNORE);
    case 2:
        return write ? MPI_File_write_shared(f, at, count, type, MPI_STATUS_IGNORE)
                     : MPI_File_read_shared(f, at, count, type, MPI_STATUS_IGNORE);
    case 3:
        code = write ? MPI_File_write_all_begin(f, at, count, type)
                     : MPI_File_read_all_begin(f, at, count, type);
        if (code != MPI_SUCCESS)
            return code;
        return write ? MPI_File_write_all_end(f, at, MPI_STATUS_IGNORE)
                     : MPI_File_read_all_end(f, at, MPI_STATUS_IGNORE);
    case 4:
        code = write ? MPI_File_iwrite_at(f, 0, at, count, type, &request)
                     : MPI_File_iread_at(f, 0, at, count, type, &request);
        break;
    case 5:
        return write ? MPI_File_write_ordered(f, at, count, type, MPI_STATUS_IGNORE)
                     : MPI_File_read_ordered(f, at, count, type, MPI_STATUS_IGNORE);
    default:
        code = write ? MPI_File_iwrite_at_all(f, 0, at, count, type, &request)
                     : MPI_File_iread_at_all(f, 0, at, count, type, &request);
    }
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

static const char *const names32[] = {"at",    "at_all",  "shared",   "all_begin",
                                      "i*_at", "ordered", "i*_at_all"};

static void check_external32(int call, enum gpu_kind kind)
{
    enum { COUNT32 = 1000, BYTES = COUNT32 * 8 };
    static double values[COUNT32], back[COUNT32];
    static unsigned char raw[BYTES];
    struct buffer buffer = buffer_new(kind, BYTES);
    MPI_File file = file_open("r60.dat", RDWR, NULL);
    int fd, wrong = 0;

    watch_step("%s, %s memory", names32[call], gpu_kind_name(kind));
    for (int i = 0; i < COUNT32; i++)
        values[i] = i * 1.25 - 100;
    buffer_put(&buffer, 0, values, BYTES);
    MPI_File_set_size(file, 0);
    check_ok(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "external32", MPI_INFO_NULL),
             "set_view with external32");
    check_ok(transfer32(file, call, true, buffer.at, COUNT32), "external32 write, %s",
             names32[call]);
    MPI_File_sync(file);
    fd = open("r60.dat", O_RDONLY | O_CLOEXEC);
    if (read(fd, raw, BYTES) != BYTES)
        wrong = COUNT32;
    close(fd);
    for (int i = 0; i < BYTES && wrong < COUNT32; i++)
        wrong += raw[i] != ((unsigned char *)values)[i / 8 * 8 + 7 - i % 8];
    check(wrong == 0, "external32 write, %s, %s memory: %d bytes are not big-endian", names32[call],
          gpu_kind_name(kind), wrong);

    buffer_poison(&buffer);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    check_ok(transfer32(file, call, false, buffer.at, COUNT32), "external32 read, %s",
             names32[call]);
    buffer_get(&buffer, 0, back, BYTES);
    check(memcmp(back, values, BYTES) == 0, "external32 read, %s, %s memory: wrong values",
          names32[call], gpu_kind_name(kind));
    MPI_File_close(&file);
    buffer_free(&buffer);
}

/* R60: big-endian in the file, right in memory. */
static void external32(void)
{
    int calls = case_hipio() ? 7 : 4; /* plain ROMIO does not convert in the others */

    for (int kind = 0; kind < case_kinds(); kind++)
        for (int call = 0; call < calls; call++)
            check_external32(call, (enum gpu_kind)kind);
    file_remove("r60.dat");
}

static const struct test_case cases[] = {
    {"R57_memory", "datatypes in memory equal MPI_Pack", 1, 1, NEEDS_NOTHING, memory_types},
    {"R57_view", "datatypes as views equal MPI_Pack", 1, 1, NEEDS_NOTHING, view_types},
#ifdef HIPIO_TEST_LARGE_CONSTRUCTORS
    {"R58", "a datatype made with large counts", 1, 1, NEEDS_NOTHING, large_count_type},
#endif
    {"R60", "external32", 1, 1, NEEDS_NOTHING, external32},
};

int main(int argc, char **argv)
{
#ifndef HIPIO_TEST_LARGE_CONSTRUCTORS
    puts("R58 is left out: this MPI has no MPI_Type_create_subarray_c");
#endif
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
