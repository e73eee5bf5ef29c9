/* SPDX-License-Identifier: MIT */
/*
 * Cases: nonblocking operations: their errors, their progress, their end.
 */
#include "cases.h"
#include "watch.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR, BYTES = 64 << 10, MANY = 8 };

static MPI_File expected_file;
static int handler_calls, handler_class;

/* The file's own handler; MPI hands over the file that the fault belongs to. */
static void on_error(MPI_File *file, int *code, ...)
{
    handler_calls++;
    MPI_Error_class(*code, &handler_class);
    check(*file == expected_file, "the error handler was called for another file");
}

enum finish { BY_WAIT, BY_TEST, BY_WAITALL, BY_WAITSOME, FINISHES };
static const char *const finish_names[] = {"Wait", "Test", "Waitall", "Waitsome"};

/* Completes one request; returns its error. */
static int finish(MPI_Request *request, enum finish how)
{
    MPI_Status status = {.MPI_ERROR = MPI_SUCCESS};
    int done = 0, count, index, code = MPI_SUCCESS;

    switch (how) {
    case BY_WAIT:
        return MPI_Wait(request, &status);
    case BY_TEST:
        while (!done && code == MPI_SUCCESS)
            code = MPI_Test(request, &done, &status);
        return code;
    case BY_WAITALL:
        code = MPI_Waitall(1, request, &status);
        break;
    default:
        code = MPI_Waitsome(1, request, &count, &index, &status);
    }
    if (code == MPI_SUCCESS)
        return MPI_SUCCESS;
    check_class(code, MPI_ERR_IN_STATUS, "Wait%s of a failed operation",
                how == BY_WAITALL ? "all" : "some");
    return status.MPI_ERROR;
}

/* Starts the operation of that number on a file where it must fail. */
static int start_failing(MPI_File file, int call, struct buffer *buffer, MPI_Request *request)
{
    switch (call) {
    case 0:
        return MPI_File_iwrite_at(file, 0, buffer->at, BYTES, MPI_BYTE, request);
    case 1:
        return MPI_File_iwrite(file, buffer->at, BYTES, MPI_BYTE, request);
    default:
        return MPI_File_iwrite_at_all(file, 0, buffer->at, BYTES, MPI_BYTE, request);
    }
}

/* /dev/full opens, and refuses every write with ENOSPC. */
static void fail_once(struct buffer *buffer, int call, enum finish how, int class)
{
    MPI_File file = file_open("/dev/full", MPI_MODE_RDWR, NULL);
    MPI_Errhandler handler;
    MPI_Request request = MPI_REQUEST_NULL;
    int code;

    watch_step("call %d ended by %s", call, finish_names[how]);
    MPI_File_create_errhandler(on_error, &handler);
    MPI_File_set_errhandler(file, handler);
    expected_file = file;
    handler_calls = 0;
    handler_class = 0;
    code = start_failing(file, call, buffer, &request);
    if (code == MPI_SUCCESS)
        code = finish(&request, how);
    check_class(code, class, "iwrite %d to a full device, ended by %s", call, finish_names[how]);
    check(handler_calls == 1, "the file's error handler was called %d times, right is once",
          handler_calls);
    check(request == MPI_REQUEST_NULL, "the request is not null after its failure");
    MPI_File_close(&file);
    MPI_Errhandler_free(&handler);
}

/* What a full device must be called; ROMIO, which may serve host memory, calls it any error. */
static int no_space(enum gpu_kind kind)
{
    return kind == GPU_HOST || kind == GPU_PINNED ? MPI_SUCCESS : MPI_ERR_NO_SPACE;
}

/* R45: a failed operation tells, in the call or at its end, and the file's handler hears it once.
 */
static void failure_is_told(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);

        for (int call = 0; call < 3; call++)
            for (int how = 0; how < FINISHES; how++)
                fail_once(&buffer, call, (enum finish)how, no_space(buffer.kind));
        buffer_free(&buffer);
    }
}

/* R45: blocking calls on a full device. */
static void full_device(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);
        MPI_File file = file_open("/dev/full", MPI_MODE_RDWR, NULL);
        MPI_Datatype vector;

        MPI_Type_vector(BYTES / 64, 32, 64, MPI_BYTE, &vector);
        MPI_Type_commit(&vector);
        check_class(MPI_File_write_at(file, 0, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                    no_space(buffer.kind), "write_at to a full device, %s memory",
                    gpu_kind_name(buffer.kind));
        if (!case_romio_serves(buffer.kind))
            check_class(MPI_File_write_at(file, 0, buffer.at, 1, vector, MPI_STATUS_IGNORE),
                        no_space(buffer.kind), "write_at of a vector to a full device, %s memory",
                        gpu_kind_name(buffer.kind));
        check_class(MPI_File_write_shared(file, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "write_shared to a full device");
        MPI_Type_free(&vector);
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
}

/* R27: writes that never move a byte end as an error, not as an endless loop. */
static void stuck_writes(void)
{
    for (int kind = GPU_DEVICE; kind <= GPU_MANAGED && kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES);
        MPI_File file = file_open("stuck.dat", RDWR, NULL);
        MPI_Request request;
        int code;

        watch_step("%s memory, write_at", gpu_kind_name(buffer.kind));
        check_class(MPI_File_write_at(file, 0, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "%s memory, write_at that moves nothing",
                    gpu_kind_name(buffer.kind));
        watch_step("%s memory, iwrite_at", gpu_kind_name(buffer.kind));
        code = MPI_File_iwrite_at(file, 0, buffer.at, BYTES, MPI_BYTE, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_class(code, MPI_SUCCESS, "%s memory, iwrite_at that moves nothing",
                    gpu_kind_name(buffer.kind));
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
    file_remove("stuck.dat");
}

/* Accesses that the open mode forbids are errors in every form. */
static void wrong_mode(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 64);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_File file;
        int code;

        file_make("mode.dat", 45, 64);
        file = file_open("mode.dat", MPI_MODE_WRONLY, NULL);
        code = MPI_File_iread(file, buffer.at, 64, MPI_BYTE, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_class(code, MPI_SUCCESS, "iread of a file opened for writing");
        check_class(MPI_File_read_all(file, buffer.at, 64, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "read_all of a file opened for writing");
        buffer_check_poison(&buffer, 0, 64);
        MPI_File_close(&file);
        file = file_open("mode.dat", MPI_MODE_RDONLY, NULL);
        check_class(MPI_File_write_at(file, 0, buffer.at, 64, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "write_at to a file opened for reading");
        check_class(MPI_File_write_shared(file, buffer.at, 64, MPI_BYTE, MPI_STATUS_IGNORE),
                    MPI_SUCCESS, "write_shared to a file opened for reading");
        MPI_File_close(&file);
        file_check("mode.dat", 0, 45, 0, 64);
        buffer_free(&buffer);
    }
    file_remove("mode.dat");
}

/* R46: the second part of a read fails. What came before is there, what comes after is left alone.
 */
static void failure_in_the_middle(void)
{
    long page = sysconf(_SC_PAGESIZE);
    unsigned char *source = aligned_alloc((size_t)page, 8 * (size_t)page);
    MPI_Offset hole = 64 << 10; /* below the lowest address that a program may map */

    memset(source, 7, 8 * (size_t)page);
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 8 * (size_t)page);
        MPI_File file = file_open("/proc/self/mem", MPI_MODE_RDONLY, NULL);
        MPI_Status status;

        check_ok(MPI_File_read_at(file, (MPI_Offset)(uintptr_t)source, buffer.at, (int)(8 * page),
                                  MPI_BYTE, &status),
                 "read of our own memory");
        check_bytes(&status, 8 * page, "read of our own memory");
        buffer_poison(&buffer);
        check_class(
            MPI_File_read_at(file, hole - 4 * page, buffer.at, (int)(8 * page), MPI_BYTE, &status),
            MPI_ERR_IO, "read of what is not there");
        buffer_check_poison(&buffer, 0, 8 * (size_t)page);
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
    free(source);
}

/* R67: a request that is freed, or cancelled, or outlived by nothing: the file's close waits. */
static void requests_let_go(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, MANY * BYTES);
        MPI_File file = file_open("r67.dat", RDWR, NULL);
        MPI_Request request;
        MPI_Status status;

        buffer_fill(&buffer, 0, 67, 0, MANY * BYTES);
        for (int i = 0; i < MANY; i++) {
            check_ok(MPI_File_iwrite_at(file, (MPI_Offset)i * BYTES, buffer.at + i * BYTES, BYTES,
                                        MPI_BYTE, &request),
                     "iwrite_at");
            if (i % 2 == 0) {
                check_ok(MPI_Request_free(&request), "MPI_Request_free");
                continue;
            }
            MPI_Cancel(&request);
            check_ok(MPI_Wait(&request, &status), "wait after MPI_Cancel");
        }
        check_ok(MPI_File_close(&file), "close with operations in flight");
        file_check("r67.dat", 0, 67, 0, MANY * BYTES);
        buffer_free(&buffer);
        file_remove("r67.dat");
    }
}

/* R69: testing alone makes an operation end; once it has ended it stays so. */
static void testing_progresses(void)
{
    file_make("r69.dat", 69, MANY * BYTES);
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, MANY * BYTES);
        MPI_File file = file_open("r69.dat", MPI_MODE_RDWR, NULL);
        MPI_Request request[MANY];
        MPI_Status status;
        int done = 0;

        for (int i = 0; i < MANY; i++)
            check_ok(MPI_File_iread_at(file, (MPI_Offset)i * BYTES, buffer.at + i * BYTES, BYTES,
                                       MPI_BYTE, &request[i]),
                     "iread_at");
        while (!done)
            MPI_Request_get_status(request[0], &done, &status);
        buffer_check(&buffer, 0, 69, 0, BYTES);
        check_bytes(&status, BYTES, "MPI_Request_get_status");
        for (done = 0; !done;)
            MPI_Testall(MANY, request, &done, MPI_STATUSES_IGNORE);
        buffer_check(&buffer, 0, 69, 0, MANY * BYTES);
        MPI_File_close(&file);
        buffer_free(&buffer);
    }
    file_remove("r69.dat");
}

/* Requests of files and messages wait together; the datatype may go right after the call. */
static void mixed_requests(void)
{
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 4096);
        MPI_File file = file_open("mixed.dat", RDWR, NULL);
        int sent = 42, received = 0;
        MPI_Request request[4];
        MPI_Status status[4];
        MPI_Datatype vector;

        MPI_Type_vector(16, 16, 64, MPI_BYTE, &vector);
        MPI_Type_commit(&vector);
        buffer_fill(&buffer, 0, 4, 0, 4096);
        MPI_Irecv(&received, 1, MPI_INT, case_rank(), 1, MPI_COMM_WORLD, &request[0]);
        check_ok(MPI_File_iwrite_at(file, 0, buffer.at, 1, vector, &request[1]), "iwrite_at");
        check_ok(MPI_File_iwrite_at(file, 256, buffer.at, 100, MPI_BYTE, &request[2]), "iwrite_at");
        MPI_Type_free(&vector);
        MPI_Isend(&sent, 1, MPI_INT, case_rank(), 1, MPI_COMM_WORLD, &request[3]);
        check_ok(MPI_Waitall(4, request, status), "waitall");
        check(received == 42, "the message did not come");
        check_bytes(&status[1], 256, "iwrite_at of a vector");
        check_bytes(&status[2], 100, "iwrite_at");
        MPI_File_close(&file);
        for (int i = 0; i < 16; i++)
            file_check("mixed.dat", i * 16, 4, (uint64_t)i * 64, 16);
        file_check("mixed.dat", 256, 4, 0, 100);
        buffer_free(&buffer);
        file_remove("mixed.dat");
    }
}

static const struct test_case cases[] = {
    {"R45", "a failed operation tells", 1, 1, NEEDS_HIPIO, failure_is_told},
    {"R27", "writes that move nothing", 1, 1, NEEDS_GPU | NEEDS_REQUEST, stuck_writes},
    {"R45_full", "a full device", 1, 1, NEEDS_NOTHING, full_device},
    {"R45_mode", "accesses that the mode forbids", 1, 1, NEEDS_HIPIO, wrong_mode},
    {"R46", "a read that fails", 1, 1, NEEDS_NOTHING, failure_in_the_middle},
    {"R67", "requests freed or cancelled", 1, 1, NEEDS_NOTHING, requests_let_go},
    {"R69", "testing makes progress", 1, 1, NEEDS_NOTHING, testing_progresses},
    {"mixed", "file and message requests together", 1, 1, NEEDS_NOTHING, mixed_requests},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
