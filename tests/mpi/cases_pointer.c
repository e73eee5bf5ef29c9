/* SPDX-License-Identifier: MIT */
/*
 * Cases: what kind of memory a pointer is.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR, SMALL = 4096, PAGE = 4096 };

static struct buffer early; /* allocated before MPI_Init */

/* R1: tiny writes of device memory reach the file. */
static void tiny_write(void)
{
    file_make("r1.dat", 1, 0);
    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, 4);
        MPI_File file = file_open("r1.dat", RDWR, NULL);
        MPI_Status status;

        buffer_fill(&buffer, 0, (uint64_t)kind, 4 * (uint64_t)case_rank(), 4);
        memset(&status, 0xff, sizeof status);
        check_ok(MPI_File_write_at(file, 4 * case_rank(), buffer.at, 4, MPI_BYTE, &status),
                 "write_at of 4 bytes");
        check_bytes(&status, 4, "write_at of 4 bytes");
        MPI_File_close(&file);
        barrier();
        file_check_size("r1.dat", 4 * case_ranks());
        file_check("r1.dat", 0, (uint64_t)kind, 0, 4 * (size_t)case_ranks());
        buffer_free(&buffer);
        barrier();
    }
    file_remove("r1.dat");
}

/* R1 with GPU support off: an error, never success without data. */
static void device_off(void)
{
    MPI_File file = file_open("off.dat", RDWR, NULL);
    struct buffer device = buffer_new(GPU_DEVICE, SMALL), host = buffer_new(GPU_HOST, SMALL);
    MPI_Request request;
    int code;

    check_class(MPI_File_write_at(file, 0, device.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_SUCCESS, "write_at of device memory without GPU support");
    check_class(MPI_File_read_at(file, 0, device.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_SUCCESS, "read_at into device memory without GPU support");
    check_class(MPI_File_write_at_all(file, 0, device.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_SUCCESS, "write_at_all of device memory without GPU support");
    code = MPI_File_iwrite_at(file, 0, device.at, SMALL, MPI_BYTE, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_class(code, MPI_SUCCESS, "iwrite_at of device memory without GPU support");
    check_ok(MPI_File_write_at(file, 0, host.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
             "write_at of host memory");
    MPI_File_close(&file);
    buffer_free(&device);
    buffer_free(&host);
    file_remove("off.dat");
}

/* R3: managed memory through one aggregator, last touched by the host or by the GPU. */
static void managed_aggregated(void)
{
    for (int touch = 0; touch < 2; touch++) {
        struct buffer buffer = buffer_new(GPU_MANAGED, SMALL),
                      source = buffer_new(GPU_DEVICE, SMALL);
        MPI_File file =
            file_open("r3.dat", RDWR, "romio_cb_write=enable,romio_cb_read=enable,cb_nodes=1");
        size_t position = (size_t)case_rank() * SMALL;

        buffer_fill(&source, 0, 3, position, SMALL);
        if (touch)
            gpu_copy(buffer.at, source.at, SMALL);
        else
            pattern_fill(buffer.at, 3, position, SMALL);
        check_ok(MPI_File_write_at_all(file, (MPI_Offset)position, buffer.at, SMALL, MPI_BYTE,
                                       MPI_STATUS_IGNORE),
                 "write_at_all of managed memory touched by the %s", touch ? "GPU" : "host");
        buffer_poison(&buffer);
        check_ok(MPI_File_read_at_all(file, (MPI_Offset)position, buffer.at, SMALL, MPI_BYTE,
                                      MPI_STATUS_IGNORE),
                 "read_at_all into managed memory");
        buffer_check(&buffer, 0, 3, position, SMALL);
        MPI_File_close(&file);
        barrier();
        file_check("r3.dat", 0, 3, 0, (size_t)case_ranks() * SMALL);
        file_remove("r3.dat");
        buffer_free(&buffer);
        buffer_free(&source);
    }
}

/* Writes and reads back `buffer` at its own place of the file. */
static void round_trip(struct buffer *buffer, uint64_t seed, const char *what)
{
    MPI_Offset at = (MPI_Offset)case_rank() * (MPI_Offset)buffer->size;
    MPI_File file = file_open("trip.dat", RDWR, NULL);
    int bytes = (int)buffer->size;
    MPI_Status status;

    watch_step("%s", what);
    buffer_fill(buffer, 0, seed, (uint64_t)at, buffer->size);
    check_ok(MPI_File_write_at(file, at, buffer->at, bytes, MPI_BYTE, &status), "%s: write_at",
             what);
    check_bytes(&status, bytes, "%s: write_at", what);
    buffer_poison(buffer);
    check_ok(MPI_File_read_at(file, at, buffer->at, bytes, MPI_BYTE, &status), "%s: read_at", what);
    check_bytes(&status, bytes, "%s: read_at", what);
    buffer_check(buffer, 0, seed, (uint64_t)at, buffer->size);
    MPI_File_close(&file);
    file_check("trip.dat", at, seed, (uint64_t)at, buffer->size);
    file_remove("trip.dat");
}

/* R4: memory from before MPI_Init; an address that becomes host memory, and device memory again. */
static void address_reuse(void)
{
    struct buffer device, host;
    void *address;

    round_trip(&early, 40, "device memory from before MPI_Init");
    device = buffer_new(GPU_DEVICE, 16 * PAGE);
    address = device.at;
    round_trip(&device, 41, "device memory");
    buffer_free(&device);
    host = (struct buffer){
        GPU_HOST,
        mmap(address, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        16 * PAGE};
    if (host.at == MAP_FAILED)
        abort();
    if (host.at != address)
        watch_step("the address is still taken");
    round_trip(&host, 42, "host memory at a freed device address");
    munmap(host.at, 16 * PAGE);
    for (int i = 0; i < 50; i++) {
        device = buffer_new(GPU_DEVICE, 16 * PAGE);
        if (device.at == address)
            i = 50;
        round_trip(&device, 43, "device memory where host memory was");
        buffer_free(&device);
    }
}

/* R94: every kind of host memory, of which the GPU knows some or parts. */
static void host_kinds(void)
{
    unsigned char stack[SMALL], *heap = aligned_alloc(PAGE, 4 * PAGE);
    static unsigned char data[SMALL];
    struct buffer on_stack = {GPU_HOST, stack, SMALL}, in_data = {GPU_HOST, data, SMALL},
                  on_heap = {GPU_HOST, heap, 4 * PAGE};

    round_trip(&on_stack, 50, "stack");
    round_trip(&in_data, 51, "static data");
    round_trip(&on_heap, 52, "heap");
    if (case_kinds() > 1) {
        gpu_register(heap + PAGE, PAGE);
        round_trip(&on_heap, 53, "heap of which the middle is registered");
        gpu_unregister(heap + PAGE);
        round_trip(&on_heap, 54, "heap that was registered");
    }
    free(heap);
}

static void gpu_kinds(void)
{
    for (int kind = GPU_DEVICE; kind < case_kinds(); kind++) {
        struct buffer whole = buffer_new((enum gpu_kind)kind, 3 * PAGE + 100), part = whole;

        round_trip(&whole, 55, gpu_kind_name(whole.kind));
        part.at += 101;
        part.size -= 301;
        round_trip(&part, 56, "the inside of an allocation, not aligned");
        buffer_free(&whole);
    }
}

static void expect_refused(void *address, const char *what)
{
    MPI_File file = file_open("wild.dat", MPI_MODE_RDWR, NULL);
    MPI_Request request;
    int code;

    watch_step("%s", what);
    check_class(MPI_File_write_at(file, 0, address, SMALL, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_SUCCESS, "write_at from %s", what);
    check_class(MPI_File_read_at(file, 0, address, SMALL, MPI_BYTE, MPI_STATUS_IGNORE), MPI_SUCCESS,
                "read_at into %s", what);
    code = MPI_File_iread_at(file, 0, address, SMALL, MPI_BYTE, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_class(code, MPI_SUCCESS, "iread_at into %s", what);
    MPI_File_close(&file);
}

/* R94: addresses that are no memory end as errors. */
static void wild_addresses(void)
{
    void *hole = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    file_make("wild.dat", 9, 4 * SMALL);
    expect_refused(NULL, "NULL");
    expect_refused((void *)(uintptr_t)16, "address 16");
    expect_refused(hole, "memory without access");
    munmap(hole, 4 * PAGE);
    expect_refused(hole, "unmapped memory");
    barrier();
    file_check("wild.dat", 0, 9, 0, 4 * SMALL);
    file_remove("wild.dat");
}

static void freed_device_memory(void)
{
    struct buffer device = buffer_new(GPU_DEVICE, 64 * PAGE);
    void *address = device.at;

    file_make("wild.dat", 9, 4 * SMALL);
    buffer_free(&device);
    expect_refused(address, "freed device memory");
    barrier();
    file_check("wild.dat", 0, 9, 0, 4 * SMALL);
    file_remove("wild.dat");
}

/* One rank brings a bad address to a collective: it gets an error, and nobody waits for ever. */
static void wild_in_collective(void)
{
    struct buffer buffer = buffer_new(GPU_DEVICE, SMALL);
    MPI_Offset at = (MPI_Offset)case_rank() * SMALL;
    bool wild = case_rank() == case_ranks() - 1;
    struct buffer gone = buffer_new(GPU_DEVICE, 64 * PAGE);
    void *address = gone.at;

    buffer_free(&gone);
    for (int enable = 0; enable < 2; enable++) {
        MPI_File file = file_open("wild.dat", RDWR,
                                  enable ? "romio_cb_write=enable,romio_cb_read=enable"
                                         : "romio_cb_write=automatic");
        int code;

        watch_step("write_at_all, collective buffering %s", enable ? "on" : "automatic");
        code = MPI_File_write_at_all(file, at, wild ? address : buffer.at, SMALL, MPI_BYTE,
                                     MPI_STATUS_IGNORE);
        if (wild)
            check_class(code, MPI_SUCCESS, "write_at_all from freed memory");
        watch_step("read_at_all, collective buffering %s", enable ? "on" : "automatic");
        code = MPI_File_read_at_all(file, at, wild ? address : buffer.at, SMALL, MPI_BYTE,
                                    MPI_STATUS_IGNORE);
        if (wild)
            check_class(code, MPI_SUCCESS, "read_at_all into freed memory");
        MPI_File_close(&file);
    }
    buffer_free(&buffer);
    file_remove("wild.dat");
}

/* The calling thread's device is the same after every call, good or bad. */
static void current_device(void)
{
    int last = gpu_device_count() - 1;
    struct buffer buffer;
    MPI_File file;

    gpu_set_device(last);
    buffer = buffer_new(GPU_DEVICE, SMALL);
    gpu_set_device(0);
    file = file_open("device.dat", RDWR, NULL);
    MPI_File_write_at(file, 0, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE);
    check(gpu_device() == 0, "the current device is %d after a write, right is 0", gpu_device());
    MPI_File_read_at(file, 0, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE);
    check(gpu_device() == 0, "the current device is %d after a read, right is 0", gpu_device());
    MPI_File_read_at(file, -1, buffer.at, SMALL, MPI_BYTE, MPI_STATUS_IGNORE);
    check(gpu_device() == 0, "the current device is %d after an error, right is 0", gpu_device());
    MPI_File_close(&file);
    gpu_set_device(last);
    buffer_free(&buffer);
    gpu_set_device(0);
    file_remove("device.dat");
}

/* A count that reaches past the allocation is an error before anything is written. */
static void past_the_allocation(void)
{
    enum { BYTES = 1 << 20 };
    struct buffer buffer = buffer_new((enum gpu_kind)1, BYTES);
    MPI_File file = file_open("past.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, NULL);

    check_class(MPI_File_write_at(file, 0, buffer.at, 3 * BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_ERR_BUFFER, "write_at past the allocation");
    check_class(MPI_File_write_at_all(file, 0, buffer.at, 3 * BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                MPI_ERR_BUFFER, "write_at_all past the allocation");
    file_check_size("past.dat", 0);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("past.dat");
}

/* The application resets its GPU while the file is open, and goes on; MPI_Finalize follows a reset,
 * too. Runs last. */
static void device_reset(void)
{
    enum { BYTES = 300000 };
    MPI_File file = file_open("reset.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, NULL);
    const MPI_Offset own = (MPI_Offset)case_rank() * BYTES;

    for (uint64_t round = 1; round < 4; round++) {
        struct buffer buffer = buffer_new(GPU_DEVICE, 2 * BYTES);
        MPI_Request request;
        MPI_Datatype every_other;

        MPI_Type_vector(BYTES / 100, 100, 200, MPI_BYTE, &every_other);
        MPI_Type_commit(&every_other);
        buffer_fill(&buffer, 0, round, 0, BYTES);
        check_ok(MPI_File_write_at_all(file, own, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_at_all in round %d", (int)round);
        barrier();
        file_check("reset.dat", own, round, 0, BYTES);
        buffer_poison(&buffer);
        check_ok(MPI_File_read_at(file, own, buffer.at, 1, every_other, MPI_STATUS_IGNORE),
                 "read_at in round %d", (int)round);
        buffer_check(&buffer, 2000, round, 1000, 100);
        buffer_check_poison(&buffer, 2100, 100);
        check_ok(MPI_File_iread_at_all(file, own, buffer.at, BYTES, MPI_BYTE, &request), "iread");
        check_ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait in round %d", (int)round);
        buffer_check(&buffer, 0, round, 0, BYTES);
        MPI_Type_free(&every_other);
        barrier();
        gpu_reset();
    }
    MPI_File_close(&file);
    file_remove("reset.dat");
}

static const struct test_case cases[] = {
    {"past", "a count that leaves the allocation", 1, 4, NEEDS_HIPIO | NEEDS_GPU,
     past_the_allocation},
    {"R1", "tiny writes reach the file", 1, 16, NEEDS_NOTHING, tiny_write},
    {"R1_off", "device memory is refused when GPU support is off", 1, 1, NEEDS_GPU | NEEDS_REQUEST,
     device_off},
    {"R3", "managed memory through one aggregator", 2, 16, NEEDS_GPU, managed_aggregated},
    {"R4", "an address changes its kind", 1, 16, NEEDS_GPU, address_reuse},
    {"R94_host", "all kinds of host memory", 1, 16, NEEDS_NOTHING, host_kinds},
    {"R94_gpu", "all kinds of GPU memory, whole and in part", 1, 16, NEEDS_GPU, gpu_kinds},
    {"R94_wild", "addresses that are no memory", 1, 16, NEEDS_NOTHING, wild_addresses},
    {"R94_freed", "device memory after its release", 1, 16, NEEDS_GPU, freed_device_memory},
    {"R94_collective", "a bad address on one rank of a collective", 2, 16, NEEDS_GPU,
     wild_in_collective},
    {"R61", "the current device is kept", 1, 16, NEEDS_GPU, current_device},
    {"reset", "the device is reset while a file is open", 1, 16, NEEDS_HIPIO | NEEDS_GPU,
     device_reset},
};

int main(int argc, char **argv)
{
    bool romio = false;

    for (int i = 1; i < argc; i++)
        romio |= strcmp(argv[i], "--romio") == 0;
    if (!romio && gpu_available())
        early = buffer_new(GPU_DEVICE, SMALL);
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
