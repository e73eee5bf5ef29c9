/* SPDX-License-Identifier: MIT */
/*
 * Cases of several GPUs: which device does the work is told by the pointer, never by the rank or by
 * what is current, and what was current stays so.
 */
#include "cases.h"
#include "pattern.h"
#include <stdio.h>

enum { BYTES = 3 << 19, IN_FLIGHT = 24, SEED = 61 };

static const char path[] = "devices.dat";

static int far_device(void)
{
    return (gpu_device() + 1) % gpu_device_count();
}

/* Memory of a device that is not the current one. */
static struct buffer buffer_on(int device, size_t size)
{
    const int current = gpu_device();

    gpu_set_device(device);
    struct buffer buffer = buffer_new(GPU_DEVICE, size);
    gpu_set_device(current);
    return buffer;
}

static void check_current(int device, const char *after)
{
    struct buffer fresh = buffer_new(GPU_DEVICE, 4096);

    check(gpu_device() == device, "%s: device %d is current, it was %d", after, gpu_device(),
          device);
    check(gpu_device_of(fresh.at) == device, "%s: memory comes from device %d, %d is current",
          after, gpu_device_of(fresh.at), device);
    buffer_free(&fresh);
}

enum call { ALONE, TOGETHER, BACKGROUND, CALLS };
static const char *const call_name[CALLS] = {"_at", "_at_all", "i_at"};

static int move(MPI_File file, enum call call, bool write, MPI_Offset at, void *memory, int bytes)
{
    MPI_Status status;
    MPI_Request request;
    int code;

    if (call == ALONE && write)
        return MPI_File_write_at(file, at, memory, bytes, MPI_BYTE, &status);
    if (call == ALONE)
        return MPI_File_read_at(file, at, memory, bytes, MPI_BYTE, &status);
    if (call == TOGETHER && write)
        return MPI_File_write_at_all(file, at, memory, bytes, MPI_BYTE, &status);
    if (call == TOGETHER)
        return MPI_File_read_at_all(file, at, memory, bytes, MPI_BYTE, &status);
    code = write ? MPI_File_iwrite_at(file, at, memory, bytes, MPI_BYTE, &request)
                 : MPI_File_iread_at(file, at, memory, bytes, MPI_BYTE, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, &status) : code;
}

/* Out and back with every call, in blocks that interleave, so that an exchange has work. */
static void there_and_back(const char *hints)
{
    enum { BLOCK = 64 << 10 };
    struct buffer buffer = buffer_on(far_device(), BYTES);
    const int current = gpu_device();
    MPI_File file = file_open(path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints);
    MPI_Datatype view;

    MPI_Type_vector(BYTES / BLOCK, BLOCK, BLOCK * case_ranks(), MPI_BYTE, &view);
    MPI_Type_commit(&view);
    check_ok(MPI_File_set_view(file, (MPI_Offset)case_rank() * BLOCK, MPI_BYTE, view, "native",
                               MPI_INFO_NULL),
             "set_view");
    for (int call = 0; call < CALLS; call++) {
        const uint64_t seed = SEED + (uint64_t)(call * case_ranks() + case_rank());

        buffer_fill(&buffer, 0, seed, 0, BYTES);
        check_ok(move(file, (enum call)call, true, 0, buffer.at, BYTES), "write%s, %s",
                 call_name[call], hints);
        check_current(current, call_name[call]);
        buffer_poison(&buffer);
        barrier();
        check_ok(move(file, (enum call)call, false, 0, buffer.at, BYTES), "read%s, %s",
                 call_name[call], hints);
        check_current(current, call_name[call]);
        buffer_check(&buffer, 0, seed, 0, BYTES);
        barrier();
    }
    MPI_Type_free(&view);
    MPI_File_close(&file);
    check(gpu_device_of(buffer.at) != current, "the buffer is on the current device");
    buffer_free(&buffer);
    file_remove(path);
}

static void far_buffer(void)
{
    there_and_back("hipio_collective=independent");
    there_and_back("hipio_collective=exchange");
    there_and_back("hipio_collective=exchange,hipio_shared_ranks=1");
}

/* A call that fails leaves the current device alone, too. */
static void failing_call(void)
{
    struct buffer buffer = buffer_on(far_device(), BYTES);
    const int current = gpu_device();
    MPI_File file;

    file_make(path, SEED, 4096);
    file = file_open(path, MPI_MODE_RDONLY, NULL);
    MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
    for (int call = 0; call < CALLS; call++) {
        check(move(file, (enum call)call, true, 0, buffer.at, BYTES) != MPI_SUCCESS,
              "write%s on a file that is open for reading", call_name[call]);
        check_current(current, call_name[call]);
    }
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove(path);
}

/* Many requests of both devices at once. */
static void in_flight(void)
{
    enum { EACH = 100 << 10 };
    struct buffer buffer[IN_FLIGHT];
    MPI_Request request[IN_FLIGHT];
    MPI_File file = file_open(path, MPI_MODE_CREATE | MPI_MODE_RDWR, NULL);

    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < IN_FLIGHT; i++) {
            const int64_t at = (int64_t)(i * case_ranks() + case_rank()) * EACH;

            buffer[i] = buffer_on(i % gpu_device_count(), EACH);
            if (turn == 0)
                buffer_fill(&buffer[i], 0, SEED, (uint64_t)at, EACH);
            check_ok(turn == 0
                         ? MPI_File_iwrite_at(file, at, buffer[i].at, EACH, MPI_BYTE, &request[i])
                         : MPI_File_iread_at(file, at, buffer[i].at, EACH, MPI_BYTE, &request[i]),
                     "request %d", i);
        }
        check_ok(MPI_Waitall(IN_FLIGHT, request, MPI_STATUSES_IGNORE), "waitall");
        for (int i = 0; i < IN_FLIGHT; i++) {
            const uint64_t at = (uint64_t)(i * case_ranks() + case_rank()) * EACH;

            buffer_check(&buffer[i], 0, SEED, at, EACH);
            buffer_free(&buffer[i]);
        }
        barrier();
    }
    MPI_File_close(&file);
    file_remove(path);
}

/* A rank works on its own device and leaves nothing on the others. */
static void own_device(void)
{
    const int own = (case_rank() + 1) % gpu_device_count();
    struct buffer buffer;
    MPI_File file;

    gpu_set_device(own);
    buffer = buffer_new(GPU_DEVICE, BYTES);
    buffer_fill(&buffer, 0, SEED, 0, BYTES);
    file = file_open(path, MPI_MODE_CREATE | MPI_MODE_RDWR, NULL);
    for (int call = 0; call < CALLS; call++)
        check_ok(
            move(file, (enum call)call, true, (MPI_Offset)case_rank() * BYTES, buffer.at, BYTES),
            "write%s", call_name[call]);
    MPI_File_close(&file);
    for (int i = 0; i < gpu_device_count(); i++)
        check(gpu_device_in_use(i) < 0 || gpu_device_in_use(i) == (i == own),
              "device %d is %sin use, the rank's own is %d", i, i == own ? "not " : "", own);
    buffer_free(&buffer);
    file_remove(path);
}

static const struct test_case cases[] = {
    {"R64", "only the buffer's device is used", 1, 16, NEEDS_HIPIO | NEEDS_GPU, own_device},
    {"R61", "a buffer of another device than the current one", 1, 16, NEEDS_HIPIO | NEEDS_GPU,
     far_buffer},
    {"R61_error", "the same, and the call fails", 1, 16, NEEDS_HIPIO | NEEDS_GPU, failing_call},
    {"in_flight", "requests of all devices at once", 1, 16, NEEDS_HIPIO | NEEDS_GPU, in_flight},
};

int main(int argc, char **argv)
{
    if (gpu_available() && gpu_device_count() < 2) {
        printf("cases: they need two devices\n");
        return 77;
    }
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
