/* SPDX-License-Identifier: MIT */
/*
 * Cases: everything about a file but its data calls.
 */
#include "cases.h"
#include "watch.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR, SMALL = 4096 };

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void delete_files(void)
{
    MPI_File file;

    file_make("gone.dat", 1, 10);
    if (case_rank() == 0) {
        check_ok(MPI_File_delete("gone.dat", MPI_INFO_NULL), "MPI_File_delete");
        check(!exists("gone.dat"), "the file is still there after MPI_File_delete");
        check_class(MPI_File_delete("gone.dat", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE,
                    "MPI_File_delete of a missing file");
    }
    barrier();
    file = file_open("gone.dat", RDWR | MPI_MODE_DELETE_ON_CLOSE, NULL);
    check(exists("gone.dat"), "the file is not there while it is open");
    barrier();
    MPI_File_close(&file);
    barrier();
    check(!exists("gone.dat"), "the file is still there after a close that deletes");
}

/* The prefix names ROMIO's file system driver; it is no part of the name. */
static void delete_with_prefix(void)
{
    file_make("prefix.dat", 1, 10);
    if (case_rank() == 0)
        check_ok(MPI_File_delete("ufs:prefix.dat", MPI_INFO_NULL), "MPI_File_delete with a prefix");
    barrier();
    check(!exists("prefix.dat"), "the file is still there after MPI_File_delete");
    file_remove("prefix.dat");
}

static int no_extent(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    (void)type;
    (void)state;
    *extent = 1;
    return MPI_SUCCESS;
}

/* Registration must not crash, and names without a registration are refused. */
static void data_representations(void)
{
    MPI_File file = file_open("rep.dat", RDWR, NULL);

    MPI_Register_datarep("mine", NULL, NULL, no_extent, NULL);
    check_class(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "no such thing", MPI_INFO_NULL),
                MPI_ERR_UNSUPPORTED_DATAREP, "set_view with an unknown representation");
    check_ok(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL),
             "set_view with the internal representation");
    MPI_File_close(&file);
    file_remove("rep.dat");
}

/* How many files the folder holds whose names contain the text. */
static int files_with(const char *text)
{
    DIR *folder = opendir(".");
    struct dirent *entry;
    int count = 0;

    while (folder && (entry = readdir(folder)))
        count += strstr(entry->d_name, text) != NULL;
    if (folder)
        closedir(folder);
    return count;
}

/* The file that keeps the shared pointer comes and goes; GPU memory in all shared calls. */
static void shared_pointer_file(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, SMALL);
        MPI_File file = file_open("shared.dat", RDWR, NULL);
        MPI_Offset position = -1;

        check_ok(MPI_File_write_shared(file, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_shared");
        barrier();
        check_ok(MPI_File_get_position_shared(file, &position), "get_position_shared");
        check(position == (MPI_Offset)SMALL * case_ranks(),
              "shared position is %lld, right is %lld", (long long)position,
              (long long)SMALL * case_ranks());
        barrier(); /* the next call moves the pointer */
        check_ok(MPI_File_seek_shared(file, -SMALL, MPI_SEEK_END), "seek_shared");
        check_ok(MPI_File_read_ordered(file, buffer.at, SMALL / case_ranks(), MPI_BYTE,
                                       MPI_STATUS_IGNORE),
                 "read_ordered");
        MPI_File_close(&file);
        barrier();
        check(files_with("shared.dat") == 1, "%d files are left in place of one after the close",
              files_with("shared.dat"));
        buffer_free(&buffer);
        file_remove("shared.dat");
    }
}

/* Concurrent writers through the shared pointer: every record is there once, none is torn. */
static void shared_pointer_race(void)
{
    enum { RECORD = 512, RECORDS = 16 };

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, RECORD);
        MPI_File file = file_open("race.dat", RDWR, NULL);
        int all = RECORDS * case_ranks(), *seen = calloc((size_t)all, sizeof *seen);

        for (int i = 0; i < RECORDS; i++) {
            int number = i * case_ranks() + case_rank();
            unsigned char record[RECORD];

            memset(record, number, RECORD);
            buffer_put(&buffer, 0, record, RECORD);
            check_ok(MPI_File_write_shared(file, buffer.at, RECORD, MPI_BYTE, MPI_STATUS_IGNORE),
                     "write_shared");
        }
        MPI_File_close(&file);
        file_check_size("race.dat", (int64_t)all * RECORD);
        for (FILE *in = case_rank() ? NULL : fopen("race.dat", "r"); in;) {
            unsigned char record[RECORD];

            if (fread(record, RECORD, 1, in) != 1) {
                fclose(in);
                break;
            }
            for (int i = 1; i < RECORD; i++)
                if (!check(record[i] == record[0], "a record is torn at byte %d", i))
                    break;
            if (record[0] < all)
                seen[record[0]]++;
        }
        for (int i = 0; case_rank() == 0 && i < all; i++)
            check(seen[i] == 1, "record %d is there %d times", i, seen[i]);
        free(seen);
        buffer_free(&buffer);
        file_remove("race.dat");
    }
}

/* romio_no_indep_rw: only aggregators open the file; the others do when they must. */
static void deferred_open(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, SMALL);
        MPI_File file = file_open("deferred.dat", RDWR, "romio_no_indep_rw=true,cb_nodes=1");
        MPI_Offset at = (MPI_Offset)case_rank() * SMALL;

        buffer_fill(&buffer, 0, 7, (uint64_t)at, SMALL);
        check_ok(MPI_File_write_at_all(file, at, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_at_all with a deferred open");
        barrier();
        buffer_poison(&buffer);
        check_ok(MPI_File_read_at(file, at, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                 "read_at with a deferred open");
        buffer_check(&buffer, 0, 7, (uint64_t)at, SMALL);
        MPI_File_close(&file);
        file_check("deferred.dat", 0, 7, 0, (size_t)SMALL * (size_t)case_ranks());
        buffer_free(&buffer);
        file_remove("deferred.dat");
    }
    /* Opened and closed without any access. */
    for (int i = 0; i < 2; i++) {
        MPI_File file = file_open("deferred.dat", RDWR, "romio_no_indep_rw=true,cb_nodes=1");

        if (i)
            MPI_File_sync(file);
        MPI_File_close(&file);
    }
    file_remove("deferred.dat");
}

/* Atomic mode: overlapping writes of all ranks leave one rank's bytes, whole. */
static void atomic_mode(void)
{
    enum { BYTES = 48 << 10 };

    for (int kind = 0; kind < case_kinds(); kind++)
        for (int strided = 0; strided < 2; strided++) {
            struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);
            MPI_File file = file_open("atomic.dat", RDWR, NULL);
            unsigned char *host = malloc(BYTES);
            MPI_Datatype every_other;
            int mixed = 0, on = 0;

            MPI_Type_create_resized(MPI_BYTE, 0, 2, &every_other);
            MPI_Type_commit(&every_other);
            check_ok(MPI_File_set_atomicity(file, 1), "set_atomicity");
            MPI_File_get_atomicity(file, &on);
            check(on == 1, "atomicity is %d after it was set", on);
            MPI_File_set_view(file, 0, MPI_BYTE, strided ? every_other : MPI_BYTE, "native",
                              MPI_INFO_NULL);
            memset(host, case_rank() + 1, BYTES);
            buffer_put(&buffer, 0, host, BYTES);
            barrier();
            check_ok(MPI_File_write_at(file, 0, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                     "atomic write_at");
            check_ok(MPI_File_read_at(file, 0, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                     "atomic read_at");
            buffer_get(&buffer, 0, host, BYTES);
            for (int i = 1; i < BYTES; i++)
                mixed += host[i] != host[0];
            check(mixed == 0, "%d of %d bytes are from another rank's write", mixed, BYTES);
            MPI_File_close(&file);
            MPI_Type_free(&every_other);
            free(host);
            buffer_free(&buffer);
            file_remove("atomic.dat");
        }
}

/* Sizes, offsets and positions. */
static void sizes_and_positions(void)
{
    struct buffer buffer = buffer_new((enum gpu_kind)(case_kinds() > 1), 128);
    MPI_File file = file_open("size.dat", RDWR, NULL);
    MPI_Offset value = -1;
    MPI_Datatype filetype;

    check_ok(MPI_File_set_size(file, 1000), "set_size");
    check_ok(MPI_File_preallocate(file, 5000), "preallocate");
    check_ok(MPI_File_get_size(file, &value), "get_size");
    check(value == 5000, "size is %lld after preallocate, right is 5000", (long long)value);
    check_ok(MPI_File_preallocate(file, 10), "preallocate of less");
    check_ok(MPI_File_set_size(file, 200), "set_size");
    MPI_File_get_size(file, &value);
    check(value == 200, "size is %lld after set_size, right is 200", (long long)value);

    MPI_Type_create_resized(MPI_INT, 0, 16, &filetype);
    MPI_Type_commit(&filetype);
    MPI_File_set_view(file, 8, MPI_INT, filetype, "native", MPI_INFO_NULL);
    check_ok(MPI_File_get_byte_offset(file, 5, &value), "get_byte_offset");
    check(value == 8 + 5 * 16, "byte offset of 5 is %lld, right is 88", (long long)value);
    check_ok(MPI_File_seek(file, 3, MPI_SEEK_SET), "seek");
    check_ok(MPI_File_read(file, buffer.at, 2, MPI_INT, MPI_STATUS_IGNORE), "read");
    MPI_File_get_position(file, &value);
    check(value == 5, "position is %lld after 2 ints from 3 on, right is 5", (long long)value);
    check_ok(MPI_File_seek(file, -4, MPI_SEEK_CUR), "seek");
    MPI_File_get_position(file, &value);
    check(value == 1, "position is %lld after a seek back by 4, right is 1", (long long)value);
    check_ok(MPI_File_seek(file, 0, MPI_SEEK_END), "seek to the end");
    MPI_File_get_position(file, &value);
    check(value == 12, "position is %lld at the end of 200 bytes, right is 12", (long long)value);
    check_class(MPI_File_seek(file, -5, MPI_SEEK_SET), MPI_SUCCESS, "seek before the start");
    MPI_Type_free(&filetype);
    check_ok(MPI_File_sync(file), "sync");
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("size.dat");
}

/* Append mode starts at the end; sequential mode forbids explicit offsets. */
static void open_modes(void)
{
    struct buffer buffer = buffer_new((enum gpu_kind)(case_kinds() > 1), 100);
    MPI_File file;

    file_make("append.dat", 3, 300);
    buffer_fill(&buffer, 0, 3, 300 + 100 * (uint64_t)case_rank(), 100);
    file = file_open("append.dat", MPI_MODE_RDWR | MPI_MODE_APPEND, NULL);
    check_ok(MPI_File_write_ordered(file, buffer.at, 100, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_ordered in append mode");
    MPI_File_close(&file);
    barrier();
    file_check("append.dat", 0, 3, 0, 300 + 100 * (size_t)case_ranks());
    barrier();
    file = file_open("append.dat", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, NULL);
    check_class(MPI_File_read_at(file, 0, buffer.at, 10, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_ERR_UNSUPPORTED_OPERATION, "read_at in sequential mode");
    check_ok(MPI_File_read_shared(file, buffer.at, 10, MPI_BYTE, MPI_STATUS_IGNORE),
             "read_shared in sequential mode");
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("append.dat");
}

/* ROMIO's NFS driver below: it keeps the descriptor's position, which nobody may leave stale. */
static void nfs_table(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 4 * SMALL),
                      host = buffer_new(GPU_HOST, SMALL);
        MPI_File file = file_open("nfs:nfs.dat", RDWR, NULL);
        MPI_Offset base = (MPI_Offset)case_rank() * 4 * SMALL;

        buffer_fill(&buffer, 0, 8, (uint64_t)base, 4 * SMALL);
        for (int piece = 3; piece >= 0; piece--)
            check_ok(MPI_File_write_at(file, base + piece * SMALL, buffer.at + piece * SMALL, SMALL,
                                       MPI_BYTE, MPI_STATUS_IGNORE),
                     "write_at over the NFS table");
        for (int piece = 0; piece < 4; piece += 2) {
            check_ok(MPI_File_read_at(file, base + (piece + 1) * SMALL, host.at, SMALL, MPI_BYTE,
                                      MPI_STATUS_IGNORE),
                     "read_at over the NFS table");
            buffer_check(&host, 0, 8, (uint64_t)base + (uint64_t)(piece + 1) * SMALL, SMALL);
            check_ok(MPI_File_read_at(file, base + piece * SMALL, buffer.at, SMALL, MPI_BYTE,
                                      MPI_STATUS_IGNORE),
                     "read_at over the NFS table");
            buffer_check(&buffer, 0, 8, (uint64_t)base + (uint64_t)piece * SMALL, SMALL);
        }
        check_ok(
            MPI_File_write_at_all(file, base, buffer.at, 4 * SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
            "write_at_all over the NFS table");
        MPI_File_close(&file);
        buffer_free(&buffer);
        buffer_free(&host);
        file_remove("nfs.dat");
    }
}

/* Hints that crash or corrupt plain ROMIO, in use with data. */
static void dangerous_hints(void)
{
    struct buffer buffer = buffer_new((enum gpu_kind)(case_kinds() > 1), 4 * SMALL);
    MPI_Offset at = (MPI_Offset)case_rank() * 4 * SMALL;
    MPI_File file = file_open("hints.dat", RDWR,
                              "romio_cb_pfr=enable,romio_cb_write=enable,cb_buffer_size=4096");
    MPI_Info info = info_of("cb_buffer_size=1048576");

    buffer_fill(&buffer, 0, 9, (uint64_t)at, 4 * SMALL);
    watch_step("write_at_all with persistent file realms");
    check_ok(MPI_File_write_at_all(file, at, buffer.at, 4 * SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at_all with persistent file realms");
    watch_step("accesses with a larger buffer");
    check_ok(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info),
             "set_view with a larger buffer");
    check_ok(MPI_File_write_at_all(file, at, buffer.at, 4 * SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at_all with a larger buffer");
    buffer_poison(&buffer);
    check_ok(MPI_File_read_at_all(file, at, buffer.at, 4 * SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
             "read_at_all with a larger buffer");
    buffer_check(&buffer, 0, 9, (uint64_t)at, 4 * SMALL);
    MPI_Info_free(&info);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("hints.dat");
}

static void check_shown(MPI_File file, const char *key, const char *wanted)
{
    char value[MPI_MAX_INFO_VAL + 1] = "";
    MPI_Info info;
    int found = 0;

    check_ok(MPI_File_get_info(file, &info), "get_info");
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    check(found && strcmp(value, wanted) == 0, "%s is shown as '%s', right is '%s'", key, value,
          wanted);
    MPI_Info_free(&info);
}

/* What is shown is in force: hints for the whole process are not, nor are those of a refused view.
 */
static void hints_without_effect(void)
{
    MPI_File file = file_open("scope.dat", RDWR,
                              "hipio_device=off,hipio_async_buffer_size=64K,hipio_lanes=3,"
                              "hipio_stats=finalize");
    MPI_Info info = info_of("hipio_window_size=2M,hipio_chunk_size=64K");
    MPI_Info none = info_of("hipio_kernels=auto");

    check_shown(file, "hipio_device", "auto");
    check_shown(file, "hipio_async_buffer_size", "16M");
    check_shown(file, "hipio_stats", "off");
    check_shown(file, "hipio_lanes", "3");
    check_class(MPI_File_set_view(file, -1, MPI_BYTE, MPI_BYTE, "native", info), MPI_ERR_ARG,
                "set_view with a negative displacement");
    check_ok(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", none), "set_view");
    check_shown(file, "hipio_window_size", "16M");
    check_ok(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info), "set_view");
    check_shown(file, "hipio_window_size", "2M");
    check_shown(file, "hipio_chunk_size", "64K");
    MPI_Info_free(&none);
    MPI_Info_free(&info);
    MPI_File_close(&file);
    file_remove("scope.dat");
}

/* hipio is there and may not drive: rank 0's GPU memory is refused, and the others' collectives
 * end. */
static void guarded_collectives(void)
{
    struct buffer buffer = buffer_new(case_rank() == 0 ? GPU_DEVICE : GPU_HOST, SMALL);
    MPI_Offset at = (MPI_Offset)case_rank() * SMALL;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request request;
    int length;

    file_make("guarded.dat", 5, (size_t)case_ranks() * SMALL);
    MPI_File file = file_open("guarded.dat", RDWR, NULL);
    for (int i = 0; i < 4; i++) {
        buffer_fill(&buffer, 0, 6, (uint64_t)at, SMALL);
        request = MPI_REQUEST_NULL;
        watch_step("nonblocking collective %d", i);
        MPI_File_seek(file, at, MPI_SEEK_SET);
        int code = i == 0   ? MPI_File_iwrite_at_all(file, at, buffer.at, SMALL, MPI_BYTE, &request)
                   : i == 1 ? MPI_File_iread_at_all(file, at, buffer.at, SMALL, MPI_BYTE, &request)
                   : i == 2 ? MPI_File_iwrite_all(file, buffer.at, SMALL, MPI_BYTE, &request)
                            : MPI_File_iread_all(file, buffer.at, SMALL, MPI_BYTE, &request);
        if (case_rank() == 0) {
            check_class(code, MPI_ERR_BUFFER, "GPU memory on a file that is not driven");
            MPI_Error_string(code, text, &length);
            check(strstr(text, "hipio does not drive this file") && strstr(text, "romio_layout"),
                  "the text is '%s'", text);
            check(request == MPI_REQUEST_NULL, "an error left a request");
        } else {
            check_ok(code, "the others' call");
            check_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
            buffer_check(&buffer, 0, 6, (uint64_t)at, SMALL);
        }
    }
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("guarded.dat");
}

/* The folder is gone, so that the hidden file of the shared pointer can't be made: errors for all,
 * and no rank waits. */
static void shared_pointer_impossible(void)
{
    struct buffer buffer = buffer_new((enum gpu_kind)(case_kinds() > 1), SMALL);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_File file;

    if (case_rank() == 0)
        check(mkdir("gone", 0700) == 0, "mkdir");
    barrier();
    file = file_open("gone/data.dat", RDWR, NULL);
    barrier();
    if (case_rank() == 0)
        check(unlink("gone/data.dat") == 0 && rmdir("gone") == 0, "removing the folder");
    barrier();
    watch_step("ordered");
    check_class(MPI_File_write_ordered(file, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_SUCCESS, "write_ordered");
    watch_step("split ordered");
    check_class(MPI_File_write_ordered_begin(file, buffer.at, SMALL, MPI_BYTE), MPI_SUCCESS,
                "write_ordered_begin");
    watch_step("seek_shared");
    check_class(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_SUCCESS, "seek_shared");
    watch_step("iwrite_shared");
    check_class(MPI_File_iwrite_shared(file, buffer.at, SMALL, MPI_BYTE, &request), MPI_SUCCESS,
                "iwrite_shared");
    check(request == MPI_REQUEST_NULL, "iwrite_shared left a request");
    watch_step("the data themselves");
    check_ok(MPI_File_write_at_all(file, (MPI_Offset)case_rank() * SMALL, buffer.at, SMALL,
                                   MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at_all");
    MPI_File_close(&file);
    buffer_free(&buffer);
}

/* Several handles of one file, and of several communicators, at once. */
static void many_handles(void)
{
    enum { HANDLES = 12 };
    struct buffer buffer = buffer_new((enum gpu_kind)(case_kinds() > 1), SMALL);
    MPI_File world[HANDLES], self[HANDLES];
    char name[32];

    snprintf(name, sizeof name, "self.%d.dat", case_rank());
    for (int i = 0; i < HANDLES; i++) {
        world[i] = file_open("world.dat", RDWR, NULL);
        check_ok(MPI_File_open(MPI_COMM_SELF, name, RDWR, MPI_INFO_NULL, &self[i]), "open");
    }
    for (int i = 0; i < HANDLES; i++) {
        MPI_Offset at = (MPI_Offset)(i * case_ranks() + case_rank()) * SMALL;

        buffer_fill(&buffer, 0, 2, (uint64_t)at, SMALL);
        check_ok(MPI_File_write_at_all(world[i], at, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_at_all");
        check_ok(MPI_File_write_at(self[i], at, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_at");
        file_check(name, at, 2, (uint64_t)at, SMALL);
    }
    for (int i = HANDLES - 1; i >= 0; i--) {
        MPI_File_close(&world[i]);
        MPI_File_close(&self[i]);
    }
    barrier();
    file_check("world.dat", 0, 2, 0, (size_t)HANDLES * (size_t)case_ranks() * SMALL);
    unlink(name);
    buffer_free(&buffer);
    file_remove("world.dat");
}

/* Files that the program never closes; MPI_Finalize comes right after. Runs last. */
static void left_open(void)
{
    static struct buffer buffer;
    static MPI_File plain, shared;
    MPI_Request request;

    buffer = buffer_new((enum gpu_kind)(case_kinds() > 1), SMALL);
    plain = file_open("left.dat", RDWR, NULL);
    shared = file_open("left2.dat", RDWR, NULL);
    check_ok(MPI_File_write_at_all(plain, 0, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at_all");
    check_ok(MPI_File_write_shared(shared, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_shared");
    check_ok(MPI_File_iwrite_at(plain, SMALL, buffer.at, SMALL, MPI_BYTE, &request), "iwrite_at");
    check_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
}

static const struct test_case cases[] = {
    {"delete", "delete, and delete on close", 1, 16, NEEDS_NOTHING, delete_files},
    {"delete_prefix", "delete with ROMIO's prefix", 1, 16, NEEDS_HIPIO, delete_with_prefix},
    {"datarep", "data representations", 1, 16, NEEDS_NOTHING, data_representations},
    {"shared_file", "the hidden file of the shared pointer", 1, 4, NEEDS_NOTHING,
     shared_pointer_file},
    {"shared_race", "concurrent writers at the shared pointer", 1, 8, NEEDS_NOTHING,
     shared_pointer_race},
    {"deferred", "deferred opens", 1, 16, NEEDS_NOTHING, deferred_open},
    {"atomic", "atomic mode", 1, 16, NEEDS_NOTHING, atomic_mode},
    {"sizes", "sizes, offsets, positions", 1, 16, NEEDS_NOTHING, sizes_and_positions},
    {"modes", "append and sequential mode", 1, 16, NEEDS_NOTHING, open_modes},
    {"nfs", "ROMIO's NFS driver below", 1, 16, NEEDS_NOTHING, nfs_table},
    {"hints", "hints that break plain ROMIO", 1, 16, NEEDS_HIPIO, dangerous_hints},
    {"scope", "hints that must have no effect", 1, 16, NEEDS_HIPIO, hints_without_effect},
    {"guarded", "GPU memory in a collective on a file of ROMIO's own", 2, 16,
     NEEDS_GPU | NEEDS_REQUEST, guarded_collectives},
    {"shared_impossible", "no hidden file for the shared pointer", 1, 16, NEEDS_HIPIO,
     shared_pointer_impossible},
    {"handles", "many handles at once", 1, 16, NEEDS_NOTHING, many_handles},
    {"left_open", "files left open at MPI_Finalize", 1, 16, NEEDS_NOTHING, left_open},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
