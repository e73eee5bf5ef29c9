/* SPDX-License-Identifier: MIT */
/*
 * Cases of messages straight from and to GPU memory. An MPI library that takes GPU memory is
 * simulated by one that is preloaded, which says what was handed to it.
 */
#include "cases.h"
#include "mpi_gpu_aware.h"
#include "watch.h"
#include <dlfcn.h>
#include <stdio.h>

enum { BYTES = 1 << 20, BLOCK = 64 << 10 };

static unsigned long long handed(void)
{
    mpi_gpu_aware_bytes_fn *bytes;

    *(void **)&bytes = dlsym(RTLD_DEFAULT, "mpi_gpu_aware_bytes");
    if (bytes)
        return bytes();
    fprintf(stderr, "test: no MPI library that takes GPU memory is preloaded\n");
    MPI_Abort(MPI_COMM_WORLD, 99);
    return 0;
}

/* Blocks of all ranks in turn; rank 0 aggregates, and everything else is a message. */
static MPI_File open_blocks(const char *setting)
{
    char hints[256];
    MPI_Datatype view;

    snprintf(hints, sizeof hints, "hipio_collective=exchange,hipio_shared_ranks=1%s%s",
             setting ? ",hipio_gpu_aware_mpi=" : "", setting ? setting : "");
    MPI_File file = file_open("aware.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, hints);
    MPI_Type_vector(BYTES / BLOCK, BLOCK, BLOCK * case_ranks(), MPI_BYTE, &view);
    MPI_Type_commit(&view);
    check_ok(MPI_File_set_view(file, (MPI_Offset)case_rank() * BLOCK, MPI_BYTE, view, "native",
                               MPI_INFO_NULL),
             "set_view");
    MPI_Type_free(&view);
    return file;
}

static uint64_t seed(void)
{
    return 90 + (uint64_t)case_rank();
}

/* Writes and reads back; `wanted` bytes of it in messages straight from or to GPU memory. */
static void round_trip(const char *setting, enum gpu_kind kind, MPI_Datatype memory, size_t bytes,
                       int64_t wanted)
{
    struct buffer buffer = buffer_new(kind, BYTES);
    MPI_File file = open_blocks(setting);
    int64_t counted = case_counter("exchange_gpu");
    unsigned long long before = handed();

    watch_step("%s, %s memory", setting ? setting : "as it comes", gpu_kind_name(kind));
    buffer_fill(&buffer, 0, seed(), 0, BYTES);
    check_ok(MPI_File_write_at_all(file, 0, buffer.at, 1, memory, MPI_STATUS_IGNORE), "write");
    buffer_poison(&buffer);
    check_ok(MPI_File_read_at_all(file, 0, buffer.at, 1, memory, MPI_STATUS_IGNORE), "read");
    for (size_t at = 0; at < BYTES; at += 4096) {
        buffer_check(&buffer, at, seed(), at, bytes);
        if (bytes < 4096)
            buffer_check_poison(&buffer, at + bytes, 4096 - bytes);
    }
    counted = case_counter("exchange_gpu") - counted;
    if (case_rank() == 0)
        wanted = 0;
    check(counted == wanted && handed() - before == (unsigned long long)wanted,
          "%s: %lld bytes counted, %llu handed over, right is %lld",
          setting ? setting : "as it comes", (long long)counted, handed() - before,
          (long long)wanted);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("aware.dat");
}

/* Every 4096 bytes begin with so many of the access. */
static MPI_Datatype memory_of(size_t bytes)
{
    MPI_Datatype type;

    MPI_Type_vector(BYTES / 4096, (int)bytes, 4096, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

/* What is one run of GPU memory goes straight, where the library says yes and the setting allows
 * it; everything else through pinned memory, with the same data. */
static void straight(void)
{
    MPI_Datatype run = memory_of(4096), strided = memory_of(3000);

    round_trip("auto", GPU_DEVICE, run, 4096, 2 * BYTES);
    round_trip("force", GPU_DEVICE, run, 4096, 2 * BYTES);
    round_trip("off", GPU_DEVICE, run, 4096, 0);
    round_trip(NULL, GPU_DEVICE, run, 4096, 0);
    round_trip("auto", GPU_DEVICE, strided, 3000, 0);
    round_trip("auto", GPU_MANAGED, run, 4096, 0);
    round_trip("auto", GPU_HOST, run, 4096, 0);
    /* Ranks need not be of one mind. */
    round_trip(case_rank() % 2 ? "auto" : "off", GPU_DEVICE, run, 4096,
               case_rank() % 2 ? 2 * BYTES : 0);
    MPI_Type_free(&run);
    MPI_Type_free(&strided);
}

/* Behind the end of the file nothing comes. */
static void short_file(void)
{
    struct buffer buffer = buffer_new(GPU_DEVICE, BYTES);
    int64_t there = BLOCK + 1000 - (int64_t)case_rank() * BLOCK;
    MPI_File file;
    MPI_Status status;

    file_make("aware.dat", 6, BLOCK + 1000);
    file = open_blocks("auto");
    there = there < 0 ? 0 : there > BLOCK ? BLOCK : there;
    check_ok(MPI_File_read_at_all(file, 0, buffer.at, BYTES, MPI_BYTE, &status), "read");
    check_bytes(&status, there, "read");
    buffer_check(&buffer, 0, 6, (uint64_t)case_rank() * BLOCK, (size_t)there);
    buffer_check_poison(&buffer, (size_t)there, BYTES - (size_t)there);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("aware.dat");
}

/* What was queued on the default stream before the call is in the message. */
static void ordered(void)
{
    struct buffer pinned = buffer_new(GPU_PINNED, BYTES);
    unsigned char *device = gpu_alloc(GPU_DEVICE, BYTES);
    MPI_File file = open_blocks("auto");

    for (int turn = 0; turn < 5; turn++) {
        watch_step("turn %d", turn);
        gpu_set(device, 0x11, BYTES);
        buffer_fill(&pinned, 0, seed() + (uint64_t)turn, 0, BYTES);
        gpu_copy_queued(device, pinned.at, BYTES);
        check_ok(MPI_File_write_at_all(file, 0, device, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                 "write");
        gpu_set(device, 0x11, BYTES);
        buffer_poison(&pinned);
        check_ok(MPI_File_read_at_all(file, 0, device, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        gpu_copy(pinned.at, device, BYTES);
        buffer_check(&pinned, 0, seed() + (uint64_t)turn, 0, BYTES);
        /* A reader that is queued still must have read before the bytes are replaced. */
        gpu_copy_queued(pinned.at, device, BYTES);
        check_ok(MPI_File_read_at_all(file, 8 * BYTES, device, 1, MPI_BYTE, MPI_STATUS_IGNORE),
                 "read behind the end");
        gpu_copy(device, pinned.at, BYTES);
        buffer_check(&pinned, 0, seed() + (uint64_t)turn, 0, BYTES);
    }
    MPI_File_close(&file);
    gpu_free(GPU_DEVICE, device);
    buffer_free(&pinned);
    file_remove("aware.dat");
}

/* The library says that it can't: nothing is handed to it, and who insists is told. */
static void denied(void)
{
    struct buffer buffer = buffer_new(case_rank() ? GPU_DEVICE : GPU_HOST, BYTES);
    MPI_Datatype run = memory_of(4096);
    MPI_File file;

    round_trip("auto", GPU_DEVICE, run, 4096, 0);
    file = open_blocks("force");
    check_class(MPI_File_write_at_all(file, 0, buffer.at, BYTES, MPI_BYTE, MPI_STATUS_IGNORE),
                case_rank() ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_ERR_IO,
                "write with gpu_aware_mpi=force");
    barrier();
    MPI_File_close(&file);
    file_remove("aware.dat");
    /* On one host there are no messages. */
    file = file_open("aware.dat", MPI_MODE_CREATE | MPI_MODE_RDWR,
                     "hipio_collective=exchange,hipio_gpu_aware_mpi=force");
    check_ok(MPI_File_write_at_all(file, (MPI_Offset)case_rank() * BYTES, buffer.at, BYTES,
                                   MPI_BYTE, MPI_STATUS_IGNORE),
             "write through shared memory");
    MPI_File_close(&file);
    file_remove("aware.dat");
    MPI_Type_free(&run);
    buffer_free(&buffer);
}

/* The library has no word for it: only who insists gets it. */
static void silent(void)
{
    MPI_Datatype run = memory_of(4096);

    round_trip("auto", GPU_DEVICE, run, 4096, 0);
    round_trip("force", GPU_DEVICE, run, 4096, 2 * BYTES);
    MPI_Type_free(&run);
}

static const struct test_case cases[] = {
    {"straight", "messages from and to GPU memory", 2, 4, NEEDS_HIPIO | NEEDS_GPU, straight},
    {"short", "a file that ends", 2, 4, NEEDS_HIPIO | NEEDS_GPU, short_file},
    {"ordered", "work that is queued before the call", 2, 4, NEEDS_HIPIO | NEEDS_GPU, ordered},
    {"denied", "a library that can't", 2, 4, NEEDS_HIPIO | NEEDS_GPU | NEEDS_REQUEST, denied},
    {"silent", "a library without a word", 2, 4, NEEDS_HIPIO | NEEDS_GPU | NEEDS_REQUEST, silent},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
