/* SPDX-License-Identifier: MIT */
/*
 * Cases: views of datatypes that crash ROMIO, or that hold nothing. The oracle is MPI_Unpack into
 * an image of the file.
 */
#include "../adio/random_type.h"
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR, ROOM = 1 << 20, COUNT = 2, SEED = 91 };

/* ---- Shapes ---- */

static void make_no_blocks(MPI_Datatype *type)
{
    int lengths[] = {0, 2, 0}, places[] = {0, 1, 7};

    MPI_Type_indexed(3, lengths, places, MPI_INT, type);
}

static void make_nested_without_blocks(MPI_Datatype *type)
{
    int lengths[] = {1, 2}, places[] = {0, 2};
    MPI_Datatype inner, wide;

    make_no_blocks(&inner);
    MPI_Type_create_resized(inner, 0, 64, &wide);
    MPI_Type_indexed(2, lengths, places, wide, type);
    MPI_Type_free(&inner);
    MPI_Type_free(&wide);
}

static void make_nothing_but_extent(MPI_Datatype *type)
{
    int length = 0, place = 0;
    MPI_Aint places[] = {0, 12};
    int lengths[] = {3, 1};
    MPI_Datatype parts[2] = {MPI_INT, MPI_INT};

    MPI_Type_indexed(1, &length, &place, MPI_INT, &parts[0]);
    MPI_Type_create_struct(2, lengths, places, parts, type);
    MPI_Type_free(&parts[0]);
}

static void make_pairs(MPI_Datatype *type)
{
    MPI_Type_vector(3, 2, 5, MPI_DOUBLE_INT, type);
}

static void make_nested_darray(MPI_Datatype *type)
{
    int sizes[] = {6, 10}, distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 3}, processes[] = {2, 2};
    MPI_Datatype inner, array;

    MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
    MPI_Type_create_darray(4, 1, 2, sizes, distributions, arguments, processes, MPI_ORDER_C, inner,
                           &array);
    MPI_Type_create_hvector(2, 1, 2000, array, type);
    MPI_Type_free(&inner);
    MPI_Type_free(&array);
}

static const struct {
    const char *name;
    void (*make)(MPI_Datatype *type);
} shapes[] = {
    {"an indexed type with empty blocks", make_no_blocks},
    {"an indexed type of such", make_nested_without_blocks},
    {"a struct with a part that holds nothing", make_nothing_but_extent},
    {"pairs", make_pairs},
    {"a distributed array inside a vector", make_nested_darray},
};

/* ---- Checks ---- */

/* What MPI_File_get_view returns is the type that was given, in a handle of its own. */
static void check_get_view(MPI_File file, MPI_Datatype given, const char *name)
{
    MPI_Datatype etype, filetype;
    MPI_Aint lb[2], extent[2];
    MPI_Offset disp;
    int size[2], ints, addresses, types, combiner;
    char representation[MPI_MAX_DATAREP_STRING];

    if (!check_ok(MPI_File_get_view(file, &disp, &etype, &filetype, representation), "%s: get_view",
                  name))
        return;
    MPI_Type_size(given, &size[0]);
    MPI_Type_size(filetype, &size[1]);
    MPI_Type_get_extent(given, &lb[0], &extent[0]);
    MPI_Type_get_extent(filetype, &lb[1], &extent[1]);
    check(etype == MPI_BYTE && filetype != given && size[0] == size[1] && lb[0] == lb[1] &&
              extent[0] == extent[1],
          "%s: get_view tells another type", name);
    MPI_Type_get_envelope(filetype, &ints, &addresses, &types, &combiner);
    check(combiner == MPI_COMBINER_DUP || combiner == MPI_COMBINER_CONTIGUOUS,
          "%s: get_view does not tell a copy of the type (combiner %d)", name, combiner);
    MPI_Type_free(&filetype);
}

static void check_file(const char *path, const unsigned char *right, const char *name)
{
    unsigned char *got = malloc(ROOM);
    int fd = open(path, O_RDONLY | O_CLOEXEC), wrong = 0;

    check(read(fd, got, ROOM) == ROOM, "%s: the file can't be read", name);
    close(fd);
    while (wrong < ROOM && got[wrong] == right[wrong])
        wrong++;
    check(wrong == ROOM, "%s: byte %d of the file is 0x%02x, right is 0x%02x", name, wrong,
          wrong < ROOM ? got[wrong] : 0, wrong < ROOM ? right[wrong] : 0);
    free(got);
}

/* Writes two of the type through it as a view, and reads them back. */
static void check_view(MPI_Datatype type, const char *name)
{
    static unsigned char image[ROOM], packed[ROOM];
    struct buffer buffer = buffer_new(case_kinds() > 1 ? GPU_DEVICE : GPU_HOST, ROOM);
    int size, bytes, position = 0;
    MPI_Status status;
    MPI_File file;

    MPI_Type_size(type, &size);
    bytes = COUNT * size;
    file_make("view.dat", SEED, ROOM);
    pattern_fill(image, SEED, 0, ROOM);
    pattern_fill(packed, SEED + 1, 0, (size_t)bytes);
    MPI_Unpack(packed, bytes, &position, image + 8, COUNT, type, MPI_COMM_SELF);
    file = file_open("view.dat", RDWR, NULL);
    buffer_put(&buffer, 0, packed, (size_t)bytes);
    if (check_ok(MPI_File_set_view(file, 8, MPI_BYTE, type, "native", MPI_INFO_NULL),
                 "%s: set_view", name)) {
        check_get_view(file, type, name);
        check_ok(MPI_File_write_at(file, 0, buffer.at, bytes, MPI_BYTE, &status), "%s: write_at",
                 name);
        check_bytes(&status, bytes, "%s: write_at", name);
        check_file("view.dat", image, name);
        buffer_poison(&buffer);
        check_ok(MPI_File_read_all(file, buffer.at, bytes, MPI_BYTE, &status), "%s: read_all",
                 name);
        buffer_check(&buffer, 0, SEED + 1, 0, (size_t)bytes);
    }
    MPI_File_close(&file);
    buffer_free(&buffer);
}

static void crashing_shapes(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        MPI_Datatype type;

        watch_step("view of %s", shapes[i].name);
        shapes[i].make(&type);
        MPI_Type_commit(&type);
        check_view(type, shapes[i].name);
        MPI_Type_free(&type);
    }
    file_remove("view.dat");
}

/* Do the bytes of the types, one after another, lie in rising order, as MPI asks of a view? */
static bool rises(MPI_Datatype type)
{
    static unsigned char plane[2][ROOM], packed[ROOM];
    int size, position, last = 0;

    MPI_Type_size(type, &size);
    memset(plane, 0, sizeof plane);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < COUNT * size; i++)
            packed[i] = (unsigned char)((i + 1) >> 8 * k);
        position = 0;
        MPI_Unpack(packed, COUNT * size, &position, plane[k], COUNT, type, MPI_COMM_SELF);
    }
    for (int i = 0; i < ROOM; i++) {
        const int number = plane[0][i] | plane[1][i] << 8;

        if (number == 0)
            continue;
        if (number != last + 1)
            return false;
        last = number;
    }
    return last == COUNT * size;
}

/* Positions follow the etypes, whatever the blocks. */
static void check_positions(MPI_Datatype type, const char *name)
{
    MPI_File file = file_open("view.dat", RDWR, NULL);
    int size;
    char byte;

    MPI_Type_size(type, &size);
    check_ok(MPI_File_set_view(file, 8, MPI_BYTE, type, "native", MPI_INFO_NULL), "%s: set_view",
             name);
    for (int k = 0; k < COUNT * size; k += 1 + size / 7) {
        MPI_Offset position = -1;

        check_ok(MPI_File_seek(file, k, MPI_SEEK_SET), "%s: seek", name);
        check_ok(MPI_File_get_position(file, &position), "%s: get_position", name);
        check(position == k, "%s: position %lld after a seek to %d", name, (long long)position, k);
        check_ok(MPI_File_read(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), "%s: read", name);
        check((unsigned char)byte == pattern_byte(SEED + 1, (uint64_t)k),
              "%s: the byte at position %d is wrong", name, k);
    }
    MPI_File_close(&file);
}

/* The etype is walked by ROMIO, too; MPI_File_get_view tells it as it was given. */
static void crashing_etype(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        MPI_File file = file_open("etype.dat", RDWR, NULL);
        MPI_Datatype type, etype, filetype;
        char representation[MPI_MAX_DATAREP_STRING];
        MPI_Offset disp = -1, at = -1;
        int size[2];

        watch_step("etype of %s", shapes[i].name);
        shapes[i].make(&type);
        MPI_Type_commit(&type);
        MPI_Type_size(type, &size[0]);
        check_ok(MPI_File_set_view(file, 5, type, type, "native", MPI_INFO_NULL), "%s: set_view",
                 shapes[i].name);
        check_ok(MPI_File_get_view(file, &disp, &etype, &filetype, representation), "get_view");
        MPI_Type_size(etype, &size[1]);
        check(disp == 5 && size[0] == size[1], "%s: get_view tells an etype of %d bytes, not %d",
              shapes[i].name, size[1], size[0]);
        check_ok(MPI_File_seek(file, 3, MPI_SEEK_SET), "seek");
        check_ok(MPI_File_get_position(file, &at), "get_position");
        check(at == 3, "%s: position %lld in etypes, not 3", shapes[i].name, (long long)at);
        MPI_Type_free(&etype);
        MPI_Type_free(&filetype);
        MPI_Type_free(&type);
        MPI_File_close(&file);
    }
    file_remove("etype.dat");
}

static void random_shapes(void)
{
    const char *first = getenv("HIPIO_TEST_SEED");
    const unsigned long start = first ? strtoul(first, NULL, 10) : 0;
    const unsigned long seeds = (unsigned long)case_repeat(150);
    unsigned long checked = 0;

    for (unsigned long seed = start; seed < start + seeds; seed++) {
        struct random_state random;
        MPI_Aint lb, extent;
        char name[32];
        int size;

        snprintf(name, sizeof name, "seed %lu", seed);
        watch_step("view of %s", name);
        random_seed(&random, seed);
        MPI_Datatype type = random_type(&random, 1 + (int)(seed % 4), 1);
        MPI_Type_get_extent(type, &lb, &extent);
        MPI_Type_size(type, &size);
        if (size > 0 && size < 20000 && extent < ROOM / 4 && rises(type)) {
            check_view(type, name);
            check_positions(type, name);
            checked++;
        }
        MPI_Type_free(&type);
    }
    check(checked > seeds / 2, "only %lu of %lu types could be checked", checked, seeds);
    file_remove("view.dat");
}

/* There is one position in a view of nothing. */
static void positions_in_nothing(void)
{
    MPI_File file = file_open("nothing.dat", RDWR, NULL);
    MPI_Offset offset = -1;
    MPI_Datatype nothing;
    MPI_Status status;
    int number[1] = {0};

    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    check_ok(MPI_File_write_at_all(file, 0, number, case_rank() == 0, MPI_INT, &status), "write");
    check_ok(MPI_File_set_view(file, 12, MPI_INT, nothing, "native", MPI_INFO_NULL), "set_view");
    for (int whence = 0; whence < 3; whence++) {
        const int all[] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};

        check_ok(MPI_File_seek(file, 5, all[whence]), "seek %d", whence);
        check_ok(MPI_File_seek_shared(file, 5, all[whence]), "seek_shared %d", whence);
        check_ok(MPI_File_get_position(file, &offset), "get_position");
        check(offset == 0, "position %lld in nothing", (long long)offset);
    }
    check_class(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG, "seek before nothing");
    check_ok(MPI_File_get_byte_offset(file, 7, &offset), "get_byte_offset");
    check(offset == 12, "byte offset %lld, the view's displacement is 12", (long long)offset);
    check_ok(MPI_File_read(file, number, 1, MPI_INT, &status), "read of nothing");
    check_bytes(&status, 0, "read of nothing");
    MPI_Type_free(&nothing);
    MPI_File_close(&file);
    file_remove("nothing.dat");
}

static const struct test_case cases[] = {
    {"crashing", "views of types that crash ROMIO", 1, 16, NEEDS_HIPIO, crashing_shapes},
    {"etype", "the same as etypes", 1, 16, NEEDS_HIPIO, crashing_etype},
    {"random", "views of random types", 1, 1, NEEDS_HIPIO, random_shapes},
    {"R54_positions", "seeks and positions in a view of nothing", 1, 16, NEEDS_HIPIO,
     positions_in_nothing},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
