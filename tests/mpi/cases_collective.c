/* SPDX-License-Identifier: MIT */
/*
 * Cases: collectives in which ranks differ. Nobody waits for ever, whatever one rank brings; the
 * deadline of watch.h makes a hang a failure.
 */
#include "cases.h"
#include "watch.h"
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR };

static const char *const buffering[] = {
    "romio_cb_read=automatic,romio_cb_write=automatic",
    "romio_cb_read=enable,romio_cb_write=enable,cb_config_list=*:*,cb_buffer_size=8192",
    "romio_cb_read=disable,romio_cb_write=disable"};
static const char *const buffering_name[] = {"automatic", "enable", "disable"};

static bool has_data(int pattern)
{
    int half = case_ranks() / 2;

    switch (pattern) {
    case 0:
        return case_rank() < half;
    case 1:
        return case_rank() >= half;
    case 2:
        return false;
    default:
        return case_rank() % 2 == 1;
    }
}

/* R51: some ranks, the others, none, or every other one have data, in memory of all kinds. */
static void ranks_without_data(void)
{
    enum { BYTES = 64 << 10 };
    enum gpu_kind kind = (enum gpu_kind)(case_rank() % case_kinds());
    struct buffer buffer = buffer_new(kind, BYTES);
    MPI_Offset at = (MPI_Offset)case_rank() * BYTES;

    for (int hints = 0; hints < 3; hints++)
        for (int pattern = 0; pattern < 4; pattern++) {
            MPI_File file = file_open("r51.dat", RDWR, buffering[hints]);
            int bytes = has_data(pattern) ? BYTES : 0;

            watch_step("pattern %d, buffering %s", pattern, buffering_name[hints]);
            buffer_fill(&buffer, 0, 51, (uint64_t)at, BYTES);
            check_ok(MPI_File_write_at_all(file, at, bytes ? buffer.at : NULL, bytes, MPI_BYTE,
                                           MPI_STATUS_IGNORE),
                     "pattern %d, write_at_all", pattern);
            buffer_poison(&buffer);
            check_ok(MPI_File_read_at_all(file, at, bytes ? buffer.at : NULL, bytes, MPI_BYTE,
                                          MPI_STATUS_IGNORE),
                     "pattern %d, read_at_all", pattern);
            buffer_check(&buffer, 0, 51, (uint64_t)at, (size_t)bytes);
            buffer_check_poison(&buffer, (size_t)bytes, BYTES - (size_t)bytes);
            MPI_File_close(&file);
        }
    buffer_free(&buffer);
    file_remove("r51.dat");
}

static int open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Opens where `odd` rank names a place that does not exist; all ranks must learn of it. */
static void open_fails_on(int odd)
{
    const char *path = case_rank() == odd ? "missing/folder/r52.dat" : "r52.dat";
    MPI_File file = MPI_FILE_NULL;
    int code;

    watch_step("the open fails on rank %d", odd);
    code = MPI_File_open(MPI_COMM_WORLD, path, RDWR, MPI_INFO_NULL, &file);
    check_class(code, MPI_SUCCESS, "open that fails on rank %d", odd);
    if (code == MPI_SUCCESS)
        MPI_File_close(&file);
}

/* R52: an open that fails on one rank or on all leaves nobody behind, and no descriptor. */
static void failing_opens(void)
{
    MPI_File file;
    int before, after;

    file_make("r52.dat", 52, 4096);
    file = file_open("r52.dat", MPI_MODE_RDWR, NULL); /* what stays open from the first use on */
    MPI_File_close(&file);
    before = open_descriptors();
    for (int i = 0; i < 5; i++) {
        open_fails_on(0);
        open_fails_on(case_ranks() - 1);
        check_class(
            MPI_File_open(MPI_COMM_WORLD, "missing.dat", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
            MPI_ERR_NO_SUCH_FILE, "open of a missing file");
        check_class(
            MPI_File_open(MPI_COMM_WORLD, "r52.dat", RDWR | MPI_MODE_EXCL, MPI_INFO_NULL, &file),
            MPI_ERR_FILE_EXISTS, "exclusive open of a file that exists");
        check_class(MPI_File_open(MPI_COMM_WORLD, "r52.dat", MPI_MODE_RDONLY | MPI_MODE_RDWR,
                                  MPI_INFO_NULL, &file),
                    MPI_SUCCESS, "open with two access modes");
    }
    after = open_descriptors();
    check(after == before, "%d descriptors are open, before the failing opens it was %d", after,
          before);
    file = file_open("r52.dat", MPI_MODE_RDWR, NULL);
    MPI_File_close(&file);
    file_remove("r52.dat");
}

/* R54: a view of nothing, on one rank or on all. */
static void empty_view(void)
{
    struct buffer buffer = buffer_new((enum gpu_kind)(case_kinds() - 1), 64);
    MPI_Datatype empty;

    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    for (int all = 0; all < 2; all++) {
        bool mine = all || case_rank() == case_ranks() - 1;
        MPI_File file = file_open("r54.dat", RDWR, NULL);
        MPI_Offset position = -1;
        MPI_Status status;

        watch_step("empty view on %s", all ? "all ranks" : "the last rank");
        check_ok(
            MPI_File_set_view(file, 0, MPI_INT, mine ? empty : MPI_INT, "native", MPI_INFO_NULL),
            "set_view of nothing");
        check_ok(MPI_File_write_all(file, buffer.at, mine ? 0 : 4, MPI_INT, &status), "write_all");
        check_ok(MPI_File_read_at_all(file, 0, buffer.at, mine ? 0 : 4, MPI_INT, &status),
                 "read_at_all");
        if (mine) {
            check_ok(MPI_File_get_position(file, &position), "get_position");
            check(position == 0, "position is %lld in an empty view, right is 0",
                  (long long)position);
            check_ok(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
        }
        MPI_File_close(&file);
    }
    MPI_Type_free(&empty);
    buffer_free(&buffer);
    file_remove("r54.dat");
}

/* R55: sizes doubling, all kinds of memory, so that every message protocol is met. */
static void doubling_sizes(void)
{
    enum { MOST = 4 << 20 };

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, MOST);

        for (int bytes = 4096; bytes <= MOST; bytes *= 4) {
            MPI_Offset at = (MPI_Offset)((case_rank() + 1) % case_ranks()) * bytes;
            MPI_File file =
                file_open("r55.dat", RDWR, "romio_cb_write=enable,romio_cb_read=enable");

            watch_step("%s memory, %d bytes", gpu_kind_name(buffer.kind), bytes);
            buffer_fill(&buffer, 0, (uint64_t)bytes, (uint64_t)at, (size_t)bytes);
            check_ok(MPI_File_write_at_all(file, at, buffer.at, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                     "write_at_all of %d bytes", bytes);
            buffer_poison(&buffer);
            check_ok(MPI_File_read_at_all(file, at, buffer.at, bytes, MPI_BYTE, MPI_STATUS_IGNORE),
                     "read_at_all of %d bytes", bytes);
            buffer_check(&buffer, 0, (uint64_t)bytes, (uint64_t)at, (size_t)bytes);
            MPI_File_close(&file);
        }
        buffer_free(&buffer);
    }
    file_remove("r55.dat");
}

/* A rank whose arguments are wrong gets its error; the others are not left waiting. */
static void wrong_argument_on_one_rank(void)
{
    bool odd = case_rank() == case_ranks() - 1;

    for (int kind = 0; kind < (case_kinds() > 1 ? 2 : 1); kind++)
        for (int hints = 0; hints < 2; hints++) {
            struct buffer buffer = buffer_new((enum gpu_kind)kind, 64);
            MPI_File file = file_open("args.dat", RDWR, buffering[hints]);

            watch_step("%s memory, buffering %s", gpu_kind_name(buffer.kind),
                       buffering_name[hints]);
            MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
            if (odd)
                check_class(
                    MPI_File_write_at_all(file, 0, buffer.at, 3, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "write_at_all of 3 bytes in a view of ints");
            else
                MPI_File_write_at_all(file, 4, buffer.at, 4, MPI_INT, MPI_STATUS_IGNORE);
            if (odd)
                check_class(
                    MPI_File_read_at_all(file, -5, buffer.at, 4, MPI_INT, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "read_at_all at a negative offset");
            else
                MPI_File_read_at_all(file, 4, buffer.at, 4, MPI_INT, MPI_STATUS_IGNORE);
            /* The file goes on working. */
            check_ok(MPI_File_write_at_all(file, 4 * case_rank(), buffer.at, 4, MPI_INT,
                                           MPI_STATUS_IGNORE),
                     "write_at_all after the error");
            MPI_File_close(&file);
            buffer_free(&buffer);
        }
    file_remove("args.dat");
}

/* Writes of rank 0 beyond 64 KiB fail from here on; or not. */
static void limit_files(bool limited)
{
    static struct rlimit before;
    struct rlimit limit;

    if (case_rank() != 0)
        return;
    signal(SIGXFSZ, SIG_IGN);
    if (limited) {
        getrlimit(RLIMIT_FSIZE, &before);
        limit = before;
        limit.rlim_cur = 64 << 10;
        setrlimit(RLIMIT_FSIZE, &limit);
    } else
        setrlimit(RLIMIT_FSIZE, &before);
}

static int write_limited(MPI_File file, int call, const struct buffer *buffer, int bytes)
{
    MPI_Offset at = (MPI_Offset)case_rank() * bytes;
    MPI_Request request;
    int code;

    if (call == 0)
        return MPI_File_write_at_all(file, at, buffer->at, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    if (call == 1) {
        code = MPI_File_write_at_all_begin(file, at, buffer->at, bytes, MPI_BYTE);
        return MPI_File_write_at_all_end(file, buffer->at, MPI_STATUS_IGNORE) | code;
    }
    code = MPI_File_iwrite_at_all(file, at, buffer->at, bytes, MPI_BYTE, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/* The aggregator's disk is full: an error on every rank whose data is lost, and no hang. Who is
 * told of success finds its data in the file. */
static void aggregator_write_fails(void)
{
    enum { BYTES = 128 << 10 };

    for (int kind = 0; kind < (case_kinds() > 1 ? 2 : 1); kind++)
        for (int call = 0; call < 3; call++) {
            struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);
            MPI_File file = file_open(
                "full.dat", RDWR,
                "romio_cb_write=enable,cb_nodes=1,cb_config_list=*:1,cb_buffer_size=16384");
            int code;

            watch_step("%s memory, call %d", gpu_kind_name(buffer.kind), call);
            limit_files(true);
            buffer_fill(&buffer, 0, 46, (uint64_t)case_rank() * BYTES, BYTES);
            code = write_limited(file, call, &buffer, BYTES);
            barrier();
            if (code == MPI_SUCCESS)
                file_check("full.dat", (int64_t)case_rank() * BYTES, 46,
                           (uint64_t)case_rank() * BYTES, BYTES);
            limit_files(false);
            check_ok(MPI_File_write_at_all(file, (MPI_Offset)case_rank() * 100, buffer.at, 100,
                                           MPI_BYTE, MPI_STATUS_IGNORE),
                     "write_at_all after the error");
            MPI_File_close(&file);
            buffer_free(&buffer);
            file_remove("full.dat");
        }
}

/* After a collective that failed on one rank, all ranks' individual pointers are where they were.
 */
static void pointers_stay_together(void)
{
    enum { BYTES = 96 << 10 };

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);
        MPI_File file = file_open("stay.dat", RDWR, NULL);
        MPI_Offset at = -1;

        watch_step("%s memory", gpu_kind_name(buffer.kind));
        check_ok(
            MPI_File_seek(file, (MPI_Offset)(case_ranks() - 1 - case_rank()) * BYTES, MPI_SEEK_SET),
            "seek");
        limit_files(true);
        check_class(MPI_File_write_all(file, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "write_all that rank 0 can't do");
        limit_files(false);
        check_ok(MPI_File_get_position(file, &at), "get_position");
        check(at == (MPI_Offset)(case_ranks() - 1 - case_rank()) * BYTES, "position is %lld",
              (long long)at);
        MPI_File_close(&file);
        buffer_free(&buffer);
        file_remove("stay.dat");
    }
}

/* An offset whose bytes would leave 63 bits is an error, not another place of the file. */
static void offset_out_of_range(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 64);
        MPI_File file;

        file_make("range.dat", 5, 64);
        file = file_open("range.dat", RDWR, NULL);
        watch_step("%s memory", gpu_kind_name(buffer.kind));
        check_ok(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL),
                 "set_view");
        check_class(MPI_File_write_at_all(file, (MPI_Offset)1 << 61, buffer.at, 4, MPI_DOUBLE,
                                          MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "write_at_all at 2^61 doubles");
        barrier();
        file_check("range.dat", 0, 5, 0, 64);
        MPI_File_close(&file);
        buffer_free(&buffer);
        file_remove("range.dat");
    }
}

/* One datatype over host and GPU memory, relative to the host block: refused, and no crash. */
static void mixed_memory_in_one_type(void)
{
    struct buffer host = buffer_new(GPU_HOST, 64), device = buffer_new((enum gpu_kind)1, 64);
    MPI_File file = file_open("mixed.dat", RDWR, NULL);
    MPI_Aint from, at[2] = {0, 0};
    MPI_Datatype type;
    int length[2] = {64, 64};

    MPI_Get_address(host.at, &from);
    MPI_Get_address(device.at, &at[1]);
    at[1] = MPI_Aint_diff(at[1], from);
    MPI_Type_create_hindexed(2, length, at, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    check_class(MPI_File_write_at_all(file, 128 * case_rank(), host.at, 1, type, MPI_STATUS_IGNORE),
                MPI_SUCCESS, "write_at_all of host and GPU memory");
    check_class(MPI_File_write_at(file, 128 * case_rank(), host.at, 1, type, MPI_STATUS_IGNORE),
                MPI_SUCCESS, "write_at of host and GPU memory");
    MPI_Type_free(&type);
    MPI_File_close(&file);
    buffer_free(&host);
    buffer_free(&device);
    file_remove("mixed.dat");
}

/* Address 0 of /proc/self/mem can be opened but not read: EIO. */
static void aggregator_read_fails(void)
{
    for (int kind = 0; kind < (case_kinds() > 1 ? 2 : 1); kind++)
        for (int hints = 0; hints < 3; hints++) {
            struct buffer buffer = buffer_new((enum gpu_kind)kind, 16 << 10);
            MPI_File file = file_open("/proc/self/mem", MPI_MODE_RDONLY, buffering[hints]);

            watch_step("%s memory, buffering %s", gpu_kind_name(buffer.kind),
                       buffering_name[hints]);
            check_class(MPI_File_read_at_all(file, (MPI_Offset)case_rank() * (16 << 10), buffer.at,
                                             16 << 10, MPI_BYTE, MPI_STATUS_IGNORE),
                        MPI_ERR_IO, "%s memory, buffering %s, read_at_all of what can't be read",
                        gpu_kind_name(buffer.kind), buffering_name[hints]);
            buffer_check_poison(&buffer, 0, 16 << 10);
            MPI_File_close(&file);
            buffer_free(&buffer);
        }
}

/* One rank fails alone in a collective that is not aggregated; the others are told or succeed. */
static void one_rank_fails_alone(void)
{
    enum { BYTES = 128 << 10 };
    struct buffer buffer = buffer_new((enum gpu_kind)(case_kinds() > 1), BYTES);
    MPI_File file = file_open("alone.dat", RDWR, "romio_cb_write=disable");
    int code;

    limit_files(true);
    /* Rank 0 writes last and beyond its limit. */
    code = MPI_File_write_at_all(
        file, (MPI_Offset)((case_rank() + case_ranks() - 1) % case_ranks()) * BYTES, buffer.at,
        BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
    limit_files(false);
    if (case_rank() == 0)
        check_class(code, MPI_SUCCESS, "write_at_all beyond the limit");
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("alone.dat");
}

/* Ordered calls in a row: a rank's next call must not overtake another rank's last one. */
static void ordered_in_a_row(void)
{
    enum { BYTES = 512, CALLS_IN_A_ROW = 20 };

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES * CALLS_IN_A_ROW);
        MPI_File file = file_open("ordered.dat", RDWR, buffering[kind % 3]);

        for (int i = 0; i < CALLS_IN_A_ROW; i++)
            buffer_fill(&buffer, (size_t)i * BYTES, 5,
                        ((uint64_t)i * (uint64_t)case_ranks() + (uint64_t)case_rank()) * BYTES,
                        BYTES);
        for (int i = 0; i < CALLS_IN_A_ROW; i++)
            check_ok(MPI_File_write_ordered(file, buffer.at + (size_t)i * BYTES, BYTES, MPI_BYTE,
                                            MPI_STATUS_IGNORE),
                     "write_ordered");
        MPI_File_close(&file);
        barrier();
        file_check("ordered.dat", 0, 5, 0, (size_t)BYTES * CALLS_IN_A_ROW * (size_t)case_ranks());
        buffer_free(&buffer);
        file_remove("ordered.dat");
    }
}

static const struct test_case cases[] = {
    {"pointers", "pointers stay together after an error", 2, 4, NEEDS_HIPIO,
     pointers_stay_together},
    {"range", "offsets beyond 63 bits", 1, 4, NEEDS_HIPIO, offset_out_of_range},
    {"mixed_type", "a datatype over host and GPU memory", 1, 4, NEEDS_HIPIO | NEEDS_GPU,
     mixed_memory_in_one_type},
    {"R51", "ranks without data", 2, 16, NEEDS_NOTHING, ranks_without_data},
    {"R52", "opens that fail", 1, 16, NEEDS_NOTHING, failing_opens},
    {"R54", "views of nothing", 1, 16, NEEDS_NOTHING, empty_view},
    {"R55", "all sizes of messages", 2, 4, NEEDS_NOTHING, doubling_sizes},
    {"argument", "a wrong argument on one rank", 2, 16, NEEDS_HIPIO, wrong_argument_on_one_rank},
    {"aggregator_write", "an aggregator that can't write", 1, 16, NEEDS_HIPIO,
     aggregator_write_fails},
    {"aggregator_read", "an aggregator that can't read", 1, 16, NEEDS_HIPIO, aggregator_read_fails},
    {"alone", "one rank fails without aggregation", 1, 16, NEEDS_NOTHING, one_rank_fails_alone},
    {"ordered", "ordered calls in a row", 1, 16, NEEDS_HIPIO, ordered_in_a_row},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
