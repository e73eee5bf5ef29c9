/* SPDX-License-Identifier: MIT */
/*
 * Cases of the collective exchange: accesses of extreme shape, and which way the bytes take, as
 * hipio's counters tell it.
 */
#include "cases.h"
#include "watch.h"
#include <stdio.h>

/* ---- Accesses of extreme shape ---- */

/* Pieces that are far from each other cost messages for themselves alone, not for what lies
 * between: this is 2^22 rounds if all are gone through. */
static void far_apart(void)
{
    enum { PIECES = 16, BYTES = 1000 };
    const MPI_Aint stride = (MPI_Aint)1 << 33;
    struct buffer buffer =
        buffer_new((enum gpu_kind)(case_kinds() - 1 - case_rank() % case_kinds()), PIECES * BYTES);
    MPI_File file = file_open("far.dat", MPI_MODE_CREATE | MPI_MODE_RDWR,
                              "hipio_collective=exchange,cb_buffer_size=65536,cb_config_list=*:*");
    MPI_Datatype view;

    MPI_Type_create_hvector(PIECES, BYTES, stride, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, (MPI_Offset)case_rank() * 4000, MPI_BYTE, view, "native",
                      MPI_INFO_NULL);
    buffer_fill(&buffer, 0, (uint64_t)case_rank(), 0, PIECES * BYTES);
    check_ok(MPI_File_write_at_all(file, 0, buffer.at, PIECES * BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at_all");
    for (int i = 0; i < PIECES; i++)
        file_check("far.dat", case_rank() * 4000 + i * stride, (uint64_t)case_rank(),
                   (uint64_t)i * BYTES, BYTES);
    buffer_poison(&buffer);
    check_ok(MPI_File_read_at_all(file, 0, buffer.at, PIECES * BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
             "read_at_all");
    buffer_check(&buffer, 0, (uint64_t)case_rank(), 0, PIECES * BYTES);
    MPI_Type_free(&view);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("far.dat");
}

/* All ranks read the same bytes, more than an aggregator's buffer holds. */
static void all_read_the_same(void)
{
    enum { BYTES = 300000 };
    struct buffer buffer = buffer_new((enum gpu_kind)(case_rank() % case_kinds()), BYTES);
    MPI_File file;
    MPI_Status status;

    file_make("same.dat", 4, BYTES - 1000);
    file = file_open("same.dat", MPI_MODE_RDONLY,
                     "romio_cb_read=enable,cb_buffer_size=32768,cb_config_list=*:*");
    check_ok(MPI_File_read_all(file, buffer.at, BYTES, MPI_BYTE, &status), "read_all");
    check_bytes(&status, BYTES - 1000, "read_all");
    buffer_check(&buffer, 0, 4, 0, BYTES - 1000);
    buffer_check_poison(&buffer, BYTES - 1000, 1000);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("same.dat");
}

/* More than 2 GiB of each rank in one call; memory is one block, again and again. */
static void large(void)
{
    enum { BLOCK = 64 << 20, TIMES = 35, STRIPE = 1 << 20 };
    const int64_t bytes = (int64_t)BLOCK * TIMES;
    struct buffer buffer = buffer_new((enum gpu_kind)(case_rank() % case_kinds()), BLOCK);
    MPI_Datatype block, memory, stripe, view;
    MPI_File file;
    MPI_Status status;

    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_hvector(TIMES, 1, 0, block, &memory);
    MPI_Type_commit(&memory);
    MPI_Type_contiguous(STRIPE, MPI_BYTE, &stripe);
    MPI_Type_create_resized(stripe, 0, (MPI_Aint)STRIPE * case_ranks(), &view);
    MPI_Type_commit(&view);
    for (int shared = 0; shared < 2; shared++) {
        file = file_open("large.dat", MPI_MODE_CREATE | MPI_MODE_RDWR,
                         shared ? "hipio_collective=exchange,hipio_shared_ranks=0"
                                : "hipio_collective=exchange,hipio_shared_ranks=1");
        MPI_File_set_view(file, (MPI_Offset)case_rank() * STRIPE, MPI_BYTE, view, "native",
                          MPI_INFO_NULL);
        buffer_fill(&buffer, 0, (uint64_t)case_rank(), 0, BLOCK);
        watch_doing("large, write, shared_ranks %d", !shared);
        check_ok(MPI_File_write_at_all(file, 0, buffer.at, 1, memory, &status), "write_at_all");
        check_bytes(&status, bytes, "write_at_all");
        for (int64_t at = 0; at < bytes; at += 5 * (int64_t)STRIPE)
            file_check("large.dat", at * case_ranks() + (int64_t)case_rank() * STRIPE,
                       (uint64_t)case_rank(), (uint64_t)(at % BLOCK), STRIPE);
        buffer_poison(&buffer);
        watch_doing("large, read, shared_ranks %d", !shared);
        check_ok(MPI_File_read_at_all(file, 0, buffer.at, 1, memory, &status), "read_at_all");
        check_bytes(&status, bytes, "read_at_all");
        buffer_check(&buffer, 0, (uint64_t)case_rank(), 0, BLOCK);
        MPI_File_close(&file);
        file_remove("large.dat");
    }
    MPI_Type_free(&block);
    MPI_Type_free(&memory);
    MPI_Type_free(&stripe);
    MPI_Type_free(&view);
    buffer_free(&buffer);
}

/* ---- The way that bytes take ---- */

struct counts {
    int64_t shared, sent, rounds, lower;
};

static struct counts counts_now(void)
{
    return (struct counts){case_counter("exchange_shared"), case_counter("exchange_sent"),
                           case_counter("exchange_rounds"), case_counter("host_passed")};
}

/* Writes interleaved or whole blocks with these hints; tells what was counted for it. */
static struct counts counted_with(const char *hints, bool interleaved, const struct buffer *buffer)
{
    enum { BLOCK = 8192, BLOCKS = 40 };
    int ranks = interleaved ? case_ranks() : 1;
    MPI_File file = file_open("way.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, hints);
    MPI_Datatype view;
    struct counts before, after;

    MPI_Type_vector(BLOCKS, BLOCK, BLOCK * ranks, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    check_ok(MPI_File_set_view(file, (MPI_Offset)case_rank() * (interleaved ? 1 : BLOCKS) * BLOCK,
                               MPI_BYTE, view, "native", MPI_INFO_NULL),
             "set_view");
    before = counts_now();
    check_ok(MPI_File_write_all(file, buffer->at, BLOCK * BLOCKS, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_all with %s", hints);
    after = counts_now();
    MPI_Type_free(&view);
    MPI_File_close(&file);
    file_remove("way.dat");
    return (struct counts){after.shared - before.shared, after.sent - before.sent,
                           after.rounds - before.rounds, after.lower - before.lower};
}

static struct counts counted(const char *hints, bool interleaved)
{
    struct buffer buffer = buffer_new((enum gpu_kind)(case_rank() % case_kinds()), 40 * 8192);
    struct counts got = counted_with(hints, interleaved, &buffer);

    buffer_free(&buffer);
    return got;
}

static void check_way(const char *hints, bool interleaved, int64_t shared, int64_t sent)
{
    struct counts got = counted(hints, interleaved);

    check(got.shared == shared && got.sent == sent,
          "%s, %s: %lld bytes through shared memory, right is %lld; %lld in messages, right is "
          "%lld",
          hints, interleaved ? "interleaved" : "side by side", (long long)got.shared,
          (long long)shared, (long long)got.sent, (long long)sent);
    check(got.lower == 0, "%s: the call was left to ROMIO", hints);
}

/* ROMIO's hints and hipio's settings choose who moves the bytes, and by which way they go. */
static void ways(void)
{
    enum { BYTES = 40 * 8192 };

    check_way("hipio_collective=exchange", true, BYTES, 0);
    check_way("hipio_collective=exchange,hipio_shared_ranks=1,cb_config_list=*:*", true,
              BYTES / case_ranks(), BYTES - BYTES / case_ranks());
    check_way("romio_cb_write=enable", true, BYTES, 0);
    check_way("romio_cb_write=enable", false, BYTES, 0);
    check_way("romio_cb_write=disable", true, 0, 0);
    check_way("romio_cb_write=automatic", true, 0, 0); /* a local file system */
    check_way("hipio_collective=independent,romio_cb_write=enable", true, 0, 0);
}

/* The GPU copies straight to and from what the ranks share; with fastpath=off all is staged, and
 * what must not be staged goes from rank to file without an exchange. */
static void straight(void)
{
    enum { BLOCK = 8192, BLOCKS = 40, BYTES = BLOCK * BLOCKS };
    static const struct {
        const char *hints;
        bool exchanged, straight;
    } ways[] = {
        {"hipio_collective=exchange", true, true},
        {"hipio_collective=exchange,hipio_shared_ranks=1,cb_config_list=*:*", true, true},
        {"hipio_collective=exchange,hipio_fastpath=off", true, false},
    };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct buffer buffer = buffer_new(GPU_DEVICE, BYTES);
        int64_t before = case_counter("window_bytes");
        struct counts got = counted_with(ways[i].hints, true, &buffer);
        int64_t bytes = case_counter("window_bytes") - before;

        check(got.shared + got.sent == (ways[i].exchanged ? BYTES : 0), "%s: %lld bytes exchanged",
              ways[i].hints, (long long)(got.shared + got.sent));
        check(bytes == (ways[i].straight ? BYTES : 0), "%s: the GPU copied %lld bytes by itself",
              ways[i].hints, (long long)bytes);
        buffer_free(&buffer);
    }
}

/* Ranks of different hosts share no memory, without being told so. */
static void apart(void)
{
    enum { BYTES = 40 * 8192 };
    MPI_Comm host;
    int ranks = 0;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &ranks);
    MPI_Comm_free(&host);
    check(ranks == 1, "%d ranks on this host, right is 1", ranks);
    check_way("hipio_collective=exchange,cb_config_list=*:*", true, BYTES / case_ranks(),
              BYTES - BYTES / case_ranks());
}

enum { OWN = 1 << 20, SHORT = 12345 };
static const char *window; /* one piece of each rank in a round, or many */

/* Every rank's bytes go as messages to the aggregator, rank 0, or come from it, in blocks; in
 * memory they are one run or, `strided`, halves with a gap between. */
static MPI_File open_blocks(int64_t block, const char *path, bool strided, MPI_Datatype *memory)
{
    char hints[256];
    MPI_Datatype view;

    snprintf(hints, sizeof hints,
             "hipio_collective=exchange,hipio_shared_ranks=1,cb_buffer_size=262144,"
             "hipio_window_size=%s",
             window);
    MPI_File file = file_open(path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints);

    MPI_Type_vector((int)(OWN / block), (int)block, (int)block * case_ranks(), MPI_BYTE, &view);
    MPI_Type_commit(&view);
    check_ok(MPI_File_set_view(file, (MPI_Offset)case_rank() * block, MPI_BYTE, view, "native",
                               MPI_INFO_NULL),
             "set_view");
    MPI_Type_free(&view);
    MPI_Type_vector(OWN / 4096, strided ? 4000 : 4096, 4096, MPI_BYTE, memory);
    MPI_Type_commit(memory);
    return file;
}

static void check_in_place(enum gpu_kind kind, int64_t block, bool strided)
{
    struct buffer buffer = buffer_new(kind, OWN);
    MPI_Datatype memory;
    MPI_File file = open_blocks(block, "place.dat", strided, &memory);
    struct counts before = counts_now();
    int64_t in_place = case_counter("exchange_in_place"), sent;
    uint64_t seed = 70 + (uint64_t)case_rank();

    watch_step("%s memory, blocks of %lld, %s", gpu_kind_name(kind), (long long)block,
               strided ? "strided" : "one run");
    buffer_fill(&buffer, 0, seed, 0, OWN);
    check_ok(MPI_File_write_at_all(file, 0, buffer.at, 1, memory, MPI_STATUS_IGNORE), "write");
    buffer_poison(&buffer);
    check_ok(MPI_File_read_at_all(file, 0, buffer.at, 1, memory, MPI_STATUS_IGNORE), "read");
    for (int64_t at = 0; at < OWN; at += 4096) {
        buffer_check(&buffer, (size_t)at, seed, (uint64_t)at, 4000);
        if (strided)
            buffer_check_poison(&buffer, (size_t)at + 4000, 96);
    }
    sent = counts_now().sent - before.sent;
    in_place = case_counter("exchange_in_place") - in_place;
    check(sent == (case_rank() == 0 ? 0
                   : strided        ? OWN / 4096 * 8000
                                    : 2 * OWN),
          "%lld bytes in messages", (long long)sent);
    check(in_place == (strided || kind != GPU_HOST ? 0 : sent),
          "%lld bytes in place of %lld in messages", (long long)in_place, (long long)sent);
    MPI_Type_free(&memory);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("place.dat");
}

/* Behind the end of the file nothing is received. */
static void check_short(int64_t block)
{
    struct buffer buffer = buffer_new(GPU_HOST, OWN);
    int64_t from = (int64_t)case_rank() * block, there = SHORT - from;
    MPI_Datatype memory;
    MPI_File file;
    MPI_Status status;

    file_make("place.dat", 5, SHORT);
    file = open_blocks(block, "place.dat", false, &memory);
    watch_step("a short file, blocks of %lld", (long long)block);
    there = there < 0 ? 0 : there > block ? block : there;
    check_ok(MPI_File_read_at_all(file, 0, buffer.at, 1, memory, &status), "read");
    check_bytes(&status, there, "read");
    buffer_check(&buffer, 0, 5, (uint64_t)from, (size_t)there);
    buffer_check_poison(&buffer, (size_t)there, OWN - (size_t)there);
    MPI_Type_free(&memory);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("place.dat");
}

/* MPI takes host memory as it is, and puts answers there, where that is one run. */
static void in_place_with(const char *size)
{
    window = size;
    for (int64_t block = 8192; block <= OWN; block *= 128) {
        check_in_place(GPU_HOST, block, false);
        check_in_place(GPU_HOST, block, true);
        check_in_place((enum gpu_kind)(case_kinds() > 1 ? GPU_DEVICE : GPU_HOST), block, false);
        check_short(block);
    }
}

static void in_place(void)
{
    in_place_with("64K");
    in_place_with("16M");
}

/* A setting that comes later holds for the exchange, too. */
static void later_setting(void)
{
    enum { BYTES = 64 << 10 };
    struct buffer buffer = buffer_new(GPU_DEVICE, BYTES);
    MPI_File file =
        file_open("later.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, "hipio_collective=exchange");
    MPI_Offset at = (MPI_Offset)case_rank() * BYTES;
    MPI_Info info = info_of("hipio_fastpath=off");

    check_ok(MPI_File_write_at_all(file, at, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at_all");
    check_ok(MPI_File_set_info(file, info), "set_info");
    int64_t before = case_counter("window_bytes");
    check_ok(MPI_File_write_at_all(file, at, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at_all");
    int64_t bytes = case_counter("window_bytes") - before;
    check(bytes == 0, "the GPU copied %lld bytes by itself after fastpath=off", (long long)bytes);
    MPI_Info_free(&info);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("later.dat");
}

static const struct test_case cases[] = {
    {"far", "pieces far apart", 1, 16, NEEDS_HIPIO, far_apart},
    {"same", "all read the same", 1, 16, NEEDS_HIPIO, all_read_the_same},
    {"large", "more than 2 GiB a rank", 1, 4, NEEDS_HIPIO | NEEDS_REQUEST, large},
    {"apart", "ranks on hosts of their own", 2, 2, NEEDS_HIPIO | NEEDS_REQUEST, apart},
    {"ways", "the way that bytes take", 2, 2, NEEDS_HIPIO, ways},
    {"later", "a setting after the first exchange", 1, 4, NEEDS_HIPIO | NEEDS_GPU, later_setting},
    {"in_place", "messages from and to the buffer itself", 2, 4, NEEDS_HIPIO, in_place},
    {"straight", "from the GPU to shared memory", 2, 4, NEEDS_HIPIO | NEEDS_GPU, straight},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
