/* SPDX-License-Identifier: MIT */
/*
 * Cases: empty accesses, short reads, the end of the file, and what the status says of them.
 */
#include "cases.h"
#include "watch.h"
#include <string.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR };

static const char *const buffering[] = {"romio_cb_read=automatic",
                                        "romio_cb_read=enable,romio_cb_write=enable",
                                        "romio_cb_read=disable,romio_cb_write=disable"};

/* R19: a loop that reads until nothing comes ends, with true counts. */
static void collective_eof(void)
{
    static const MPI_Offset offsets[] = {0, 10, 1000};
    static const int counts[] = {10, 0, 0};

    file_make("r19.dat", 19, 10);
    for (int kind = 0; kind < case_kinds(); kind++)
        for (int hints = 0; hints < 3; hints++) {
            struct buffer buffer = buffer_new((enum gpu_kind)kind, 100);
            MPI_File file = file_open("r19.dat", RDWR, buffering[hints]);

            for (int i = 0; i < 3; i++) {
                MPI_Status status;

                watch_step("%s memory, %s, offset %lld", gpu_kind_name(buffer.kind),
                           buffering[hints], (long long)offsets[i]);
                memset(&status, 0xff, sizeof status);
                buffer_poison(&buffer);
                check_ok(MPI_File_read_at_all(file, offsets[i], buffer.at, 100, MPI_BYTE, &status),
                         "read_at_all");
                check_bytes(&status, counts[i], "%s memory, %s, read_at_all at %lld of 10 bytes",
                            gpu_kind_name(buffer.kind), buffering[hints], (long long)offsets[i]);
                buffer_check(&buffer, 0, 19, 0, (size_t)counts[i]);
                if (buffer.kind != GPU_HOST)
                    buffer_check_poison(&buffer, (size_t)counts[i], 100 - (size_t)counts[i]);
            }
            MPI_File_close(&file);
            buffer_free(&buffer);
        }
    file_remove("r19.dat");
}

/* R19: the same in atomic mode, by calls that return a request. */
static void atomic_eof(void)
{
    static const char *const names[] = {"iread_at", "iread", "iread_shared"};

    file_make("atomic.dat", 19, 10);
    for (int kind = 0; kind < case_kinds(); kind++)
        for (int call = 0; call < 3; call++) {
            struct buffer buffer = buffer_new((enum gpu_kind)kind, 100);
            MPI_File file = file_open("atomic.dat", RDWR, NULL);
            MPI_Request request = MPI_REQUEST_NULL;
            MPI_Status status;
            int code;

            watch_step("%s, %s memory", names[call], gpu_kind_name(buffer.kind));
            MPI_File_set_atomicity(file, 1);
            if (call == 0)
                code = MPI_File_iread_at(file, 4, buffer.at, 100, MPI_BYTE, &request);
            else if (call == 1)
                code = MPI_File_iread(file, buffer.at, 100, MPI_BYTE, &request);
            else
                code = MPI_File_iread_shared(file, buffer.at, 100, MPI_BYTE, &request);
            check_ok(code, "%s in atomic mode", names[call]);
            check_ok(MPI_Wait(&request, &status), "wait");
            check_bytes(&status, call ? 10 : 6, "%s memory, %s in atomic mode",
                        gpu_kind_name(buffer.kind), names[call]);
            MPI_File_close(&file);
            buffer_free(&buffer);
        }
    file_remove("atomic.dat");
}

/* R21: what is past the end of the file leaves no trace, least of all what was staged before. */
static void nothing_past_eof(void)
{
    enum { BIG = 1 << 20 };

    file_make("r21.dat", 21, 10);
    for (int kind = GPU_DEVICE; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BIG);
        MPI_File file = file_open("secret.dat", RDWR, NULL);
        MPI_Status status;

        buffer_fill(&buffer, 0, 666, 0, BIG);
        check_ok(MPI_File_write_at(file, 0, buffer.at, BIG, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        MPI_File_close(&file);
        file = file_open("r21.dat", RDWR, NULL);
        buffer_poison(&buffer);
        check_ok(MPI_File_read_at(file, 0, buffer.at, BIG, MPI_BYTE, &status), "read");
        check_bytes(&status, 10, "read of 1 MiB from a file of 10 bytes");
        buffer_check(&buffer, 0, 21, 0, 10);
        buffer_check_poison(&buffer, 10, BIG - 10);
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
    file_remove("secret.dat");
    file_remove("r21.dat");
}

/* Reads 10 bytes on rank 0 and none elsewhere, by the call of that number. */
static int read_some(MPI_File file, int call, void *buffer, int count, MPI_Status *status)
{
    MPI_Request request;
    int code;

    switch (call) {
    case 0:
        return MPI_File_read_at(file, 0, buffer, count, MPI_BYTE, status);
    case 1:
        return MPI_File_read_at_all(file, 0, buffer, count, MPI_BYTE, status);
    case 2:
        code = MPI_File_iread_at(file, 0, buffer, count, MPI_BYTE, &request);
        break;
    default:
        code = MPI_File_iread_at_all(file, 0, buffer, count, MPI_BYTE, &request);
    }
    return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
}

/* R22: who reads nothing, with NULL, is told so in a status that held garbage. */
static void empty_status(void)
{
    static const char *const names[] = {"read_at", "read_at_all", "iread_at", "iread_at_all"};

    file_make("r22.dat", 22, 100);
    for (int kind = 0; kind < case_kinds(); kind++)
        for (int hints = 0; hints < 3; hints++)
            for (int call = 0; call < 4; call++) {
                struct buffer buffer = buffer_new((enum gpu_kind)kind, 10);
                MPI_File file = file_open("r22.dat", RDWR, buffering[hints]);
                int count = case_rank() == 0 ? 10 : 0;
                MPI_Status status;

                watch_step("%s, %s", names[call], buffering[hints]);
                memset(&status, 0xff, sizeof status);
                check_ok(read_some(file, call, count ? buffer.at : NULL, count, &status), "%s",
                         names[call]);
                check_bytes(&status, count, "%s of %d bytes, %s", names[call], count,
                            buffering[hints]);
                buffer_check(&buffer, 0, 22, 0, (size_t)count);
                MPI_File_close(&file);
                buffer_free(&buffer);
            }
    file_remove("r22.dat");
}

/* R24: the last piece of a loop is empty and starts where the buffer ends. */
static void empty_last_piece(void)
{
    enum { PIECE = 4096, PIECES = 4 };

    file_make("r24.dat", 24, PIECE * PIECES);
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, PIECE * PIECES);
        MPI_File file = file_open("r24.dat", RDWR, NULL);

        for (int i = 0; i <= PIECES; i++) {
            int count = i < PIECES ? PIECE : 0;
            MPI_Status status;

            memset(&status, 0xff, sizeof status);
            check_ok(MPI_File_read_at(file, (MPI_Offset)i * PIECE, buffer.at + (size_t)i * PIECE,
                                      count, MPI_BYTE, &status),
                     "piece %d of %d", i, PIECES);
            if (case_hipio())
                check_bytes(&status, count, "piece %d of %d", i, PIECES);
            check_ok(MPI_File_read_at_all(file, (MPI_Offset)i * PIECE,
                                          buffer.at + (size_t)i * PIECE, count, MPI_BYTE,
                                          MPI_STATUS_IGNORE),
                     "piece %d of %d", i, PIECES);
        }
        buffer_check(&buffer, 0, 24, 0, PIECE * PIECES);
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
    file_remove("r24.dat");
}

/* R25: reads that meet the end of the file inside, and at the edge of, a block. */
static void short_blocks(void)
{
    enum { SIZE = 4096 * 3 + 10 };
    static const int lengths[] = {16384, 4096, 4096}, counts[] = {SIZE, 10, 0};
    static const MPI_Offset offsets[] = {0, 12288, 16384};

    file_make("r25.dat", 25, SIZE);
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 16384);
        MPI_File file = file_open("r25.dat", RDWR, NULL);

        for (int i = 0; i < 3; i++) {
            MPI_Status status;

            buffer_poison(&buffer);
            check_ok(MPI_File_read_at(file, offsets[i], buffer.at, lengths[i], MPI_BYTE, &status),
                     "read of %d bytes at %lld", lengths[i], (long long)offsets[i]);
            check_bytes(&status, counts[i], "read of %d bytes at %lld", lengths[i],
                        (long long)offsets[i]);
            buffer_check(&buffer, 0, 25, (uint64_t)offsets[i], (size_t)counts[i]);
            buffer_check_poison(&buffer, (size_t)counts[i], 16384 - (size_t)counts[i]);
        }
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
    file_remove("r25.dat");
}

/* Count 0, a datatype of size 0, and an empty file, alone and together. */
static void nothing_at_all(void)
{
    MPI_Datatype empty;

    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    file_make("none.dat", 0, 0);
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 64);
        MPI_File file = file_open("none.dat", RDWR, NULL);
        MPI_Status status;

        check_ok(MPI_File_write_at(file, 5, buffer.at, 3, empty, MPI_STATUS_IGNORE),
                 "write_at of three empty elements");
        check_ok(MPI_File_write_at_all(file, 5, buffer.at, 3, empty, MPI_STATUS_IGNORE),
                 "write_at_all of three empty elements");
        check_ok(MPI_File_read_at(file, 5, NULL, 0, MPI_INT, MPI_STATUS_IGNORE), "read_at of none");
        check_ok(MPI_File_read_at(file, 0, buffer.at, 16, MPI_INT, &status),
                 "read of an empty file");
        check_bytes(&status, 0, "read of an empty file");
        buffer_check_poison(&buffer, 0, 64);
        MPI_File_close(&file);
        buffer_free(&buffer);
        barrier();
        file_check_size("none.dat", 0);
        barrier();
    }
    MPI_Type_free(&empty);
    file_remove("none.dat");
}

static const struct test_case cases[] = {
    {"R19", "a collective read at the end of the file tells what it got", 1, 16, NEEDS_HIPIO,
     collective_eof},
    {"R19_atomic", "a request in atomic mode tells what was there", 1, 1, NEEDS_HIPIO, atomic_eof},
    {"R21", "bytes past the end of the file are left alone", 1, 1, NEEDS_GPU, nothing_past_eof},
    {"R22", "an empty access has a status of its own", 1, 16, NEEDS_HIPIO, empty_status},
    {"R24", "an empty piece at the end of a buffer", 1, 16, NEEDS_NOTHING, empty_last_piece},
    {"R25", "reads that end inside a block", 1, 16, NEEDS_NOTHING, short_blocks},
    {"nothing", "no elements, empty elements, an empty file", 1, 16, NEEDS_NOTHING, nothing_at_all},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
