/* SPDX-License-Identifier: MIT */
/*
 * Cases: faults in a collective exchange, on each rank in turn and in its first, a middle and its
 * last round. An error on one rank is an error on all whose data may be lost, nobody hangs, and the
 * file goes on working. What the GPU runtime refuses is chosen by HIPSIM_FAIL.
 */
#include "cases.h"
#include "mpi_fault.h"
#include "watch.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RDWR = MPI_MODE_CREATE | MPI_MODE_RDWR, BLOCK = 1000, SHARE = 64 << 10, SEED = 31 };

/* Domains of `share` bytes, one for each rank, in rounds of 8 KiB. */
static const char small[] = "hipio_collective=exchange,hipio_mapping=off,cb_config_list=*:*,"
                            "cb_buffer_size=16384,hipio_window_size=64K";
/* The same in messages that MPI sends only once they are received. */
static const char large[] = "hipio_collective=exchange,hipio_mapping=off,cb_config_list=*:*,"
                            "cb_buffer_size=524288,hipio_window_size=4M";
static const char *hints = small;
static int share = SHARE; /* bytes of a rank's access */

/* Every rank's blocks lie in every domain. */
static MPI_File open_interleaved(const char *path)
{
    MPI_File file = file_open(path, RDWR, hints);
    MPI_Datatype block, view;

    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * case_ranks(), &view);
    MPI_Type_commit(&view);
    check_ok(MPI_File_set_view(file, (MPI_Offset)case_rank() * BLOCK, MPI_BYTE, view, "native",
                               MPI_INFO_NULL),
             "set_view");
    MPI_Type_free(&block);
    MPI_Type_free(&view);
    return file;
}

static uint64_t seed_of(int rank)
{
    return SEED + (uint64_t)rank;
}

static int write_all(MPI_File file, struct buffer *buffer)
{
    buffer_fill(buffer, 0, seed_of(case_rank()), 0, (size_t)share);
    return MPI_File_write_at_all(file, 0, buffer->at, share, MPI_BYTE, MPI_STATUS_IGNORE);
}

static int read_all(MPI_File file, struct buffer *buffer)
{
    buffer_poison(buffer);
    return MPI_File_read_at_all(file, 0, buffer->at, share, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void goes_on(MPI_File file, struct buffer *buffer)
{
    check_ok(write_all(file, buffer), "write_at_all after the error");
    check_ok(read_all(file, buffer), "read_at_all after the error");
    buffer_check(buffer, 0, seed_of(case_rank()), 0, (size_t)share);
}

static struct rlimit set_limit(int which, rlim_t most)
{
    struct rlimit before, limit;

    getrlimit((__rlimit_resource_t)which, &before);
    limit = before;
    limit.rlim_cur = most;
    if (setrlimit((__rlimit_resource_t)which, &limit))
        MPI_Abort(MPI_COMM_WORLD, 99);
    return before;
}

/* ---- Storage ---- */

static void write_fails_on(int odd, int round)
{
    struct buffer buffer = buffer_new((enum gpu_kind)((case_rank() + round) % case_kinds()), SHARE);
    MPI_File file = open_interleaved("fault.dat");
    struct rlimit before = {0, 0};
    bool mine = case_rank() == odd;

    watch_step("rank %d can't write from its round %d on", odd, round);
    if (mine)
        before = set_limit(RLIMIT_FSIZE, (rlim_t)odd * SHARE + (rlim_t)round * 8192 + 10);
    int code = write_all(file, &buffer);
    check_class(code, MPI_SUCCESS, "write_at_all with an aggregator (rank %d) at its limit", odd);
    if (mine)
        setrlimit(RLIMIT_FSIZE, &before);
    barrier();
    goes_on(file, &buffer);
    MPI_File_close(&file);
    buffer_free(&buffer);
    file_remove("fault.dat");
}

static void storage_write_fails(void)
{
    signal(SIGXFSZ, SIG_IGN);
    for (int odd = 0; odd < case_ranks(); odd++)
        for (int round = 0; round < 8; round += 3)
            write_fails_on(odd, round);
}

/* The descriptor that MPI has of that file, on this rank. */
static int descriptor_of(const char *name)
{
    char link[64], target[4096];

    for (int fd = 3; fd < 1024; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0)
            continue;
        target[n] = '\0';
        const char *last = strrchr(target, '/');
        if (last && strcmp(last + 1, name) == 0)
            return fd;
    }
    return -1;
}

/* Puts a descriptor that can't be read in place of the file's; returns what undoes it. */
static int spoil(int fd)
{
    int kept = dup(fd), other = open("fault.dat", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || kept < 0 || other < 0 || dup2(other, fd) < 0)
        MPI_Abort(MPI_COMM_WORLD, 99);
    close(other);
    return kept;
}

static void storage_read_fails(void)
{
    for (int odd = 0; odd < case_ranks(); odd++) {
        struct buffer buffer = buffer_new((enum gpu_kind)(case_rank() % case_kinds()), SHARE);
        MPI_File file = open_interleaved("fault.dat");
        int fd = descriptor_of("fault.dat"), kept = -1;

        watch_step("rank %d can't read", odd);
        check_ok(write_all(file, &buffer), "write_at_all");
        if (case_rank() == odd)
            kept = spoil(fd);
        check_class(read_all(file, &buffer), MPI_SUCCESS,
                    "read_at_all with an aggregator (rank %d) that can't read", odd);
        if (case_rank() == odd) {
            dup2(kept, fd);
            close(kept);
        }
        goes_on(file, &buffer);
        MPI_File_close(&file);
        buffer_free(&buffer);
        file_remove("fault.dat");
    }
}

/* ---- Memory ---- */

static rlim_t address_space(void)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (!statm || fscanf(statm, "%lu", &pages) != 1)
        MPI_Abort(MPI_COMM_WORLD, 99);
    fclose(statm);
    return (rlim_t)pages * 4096;
}

static void no_memory(void)
{
    for (int odd = 0; odd < case_ranks(); odd++) {
        struct buffer buffer = buffer_new(GPU_HOST, SHARE);
        MPI_File file = file_open("fault.dat", RDWR,
                                  "hipio_collective=exchange,hipio_window_size=64M,"
                                  "cb_config_list=*:*,cb_buffer_size=300000000");
        struct rlimit before = {0, 0};

        watch_step("rank %d has no memory", odd);
        if (case_rank() == odd)
            before = set_limit(RLIMIT_AS, address_space() + (100 << 20));
        check_class(MPI_File_write_at_all(file, (MPI_Offset)case_rank() * SHARE, buffer.at, SHARE,
                                          MPI_BYTE, MPI_STATUS_IGNORE),
                    case_rank() == odd ? MPI_ERR_NO_MEM : MPI_ERR_IO,
                    "write_at_all while rank %d has no memory", odd);
        if (case_rank() == odd)
            setrlimit(RLIMIT_AS, &before);
        check_ok(MPI_File_write_at_all(file, (MPI_Offset)case_rank() * SHARE, buffer.at, SHARE,
                                       MPI_BYTE, MPI_STATUS_IGNORE),
                 "write_at_all with memory");
        MPI_File_close(&file);
        buffer_free(&buffer);
        file_remove("fault.dat");
    }
}

/* ---- The GPU ---- */

/* How many ranks an access failed on: all or none. */
static int failed_on(int code, int turn)
{
    int failed = code != MPI_SUCCESS, sum = 0;

    MPI_Allreduce(&failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == 0 || sum == case_ranks(), "access %d failed on %d of %d ranks", turn, sum,
          case_ranks());
    return sum;
}

/* The runtime refuses something in the middle of these accesses. Before that, and afterwards if it
 * is only once, they are right. */
static void gpu_fails(void)
{
    const char *rule = getenv("HIPSIM_FAIL");
    unsigned char *gpu = gpu_alloc(GPU_DEVICE, SHARE);
    struct buffer host = buffer_new(GPU_HOST, SHARE);
    MPI_File file = open_interleaved("fault.dat");
    int failures = 0;

    check_ok(write_all(file, &host), "write_at_all of host memory");
    for (int turn = 0; turn < 12; turn++) {
        watch_step("%s, access %d", rule, turn);
        failures += failed_on(
            turn % 2 ? MPI_File_write_at_all(file, 0, gpu, SHARE, MPI_BYTE, MPI_STATUS_IGNORE)
                     : MPI_File_read_at_all(file, 0, gpu, SHARE, MPI_BYTE, MPI_STATUS_IGNORE),
            turn);
        if (failures)
            break;
    }
    check(rule && failures > 0, "HIPSIM_FAIL=%s made nothing fail", rule ? rule : "");
    goes_on(file, &host);
    MPI_File_close(&file);
    buffer_free(&host);
    file_remove("fault.dat");
}

/* ---- Messages ---- */

static struct {
    mpi_fault_arm_fn *arm;
    mpi_fault_hits_fn *hits;
    mpi_fault_pending_fn *pending;
} fault;

static void find_faults(void)
{
    *(void **)&fault.arm = dlsym(RTLD_DEFAULT, "mpi_fault_arm");
    *(void **)&fault.hits = dlsym(RTLD_DEFAULT, "mpi_fault_hits");
    *(void **)&fault.pending = dlsym(RTLD_DEFAULT, "mpi_fault_pending");
    if (!fault.arm || !fault.hits || !fault.pending) {
        fprintf(stderr, "test: no library for faults of MPI is preloaded\n");
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

/* No message that was on its way when the access ended may come into memory that the application
 * uses for other things since. */
static void check_left_alone(MPI_File file, struct buffer *used)
{
    enum gpu_kind kind = used->kind;
    struct buffer other = buffer_new(GPU_HOST, (size_t)share);

    buffer_free(used);
    *used = buffer_new(kind, (size_t)share);
    barrier();
    goes_on(file, &other);
    buffer_check_poison(used, 0, (size_t)share);
    buffer_free(&other);
}

/* One access in which, on one rank, that call fails for the nth time. False: there was no nth. */
static bool message_fails(MPI_File file, const char *call, int odd, unsigned nth, unsigned times)
{
    struct buffer buffer =
        buffer_new((enum gpu_kind)(nth % 3 ? GPU_HOST : case_kinds() - 1), (size_t)share);
    int hits, any = 0;

    for (int write = 0; write < 2; write++) {
        watch_step("%s %u of rank %d fails, %s", call, nth, odd, write ? "write" : "read");
        fault.arm(call, case_rank() == odd ? nth : 0, times);
        int code = write ? write_all(file, &buffer) : read_all(file, &buffer);
        hits = (int)fault.hits();
        check(fault.pending() == 0, "%u messages are on their way after the access",
              fault.pending());
        fault.arm(call, 0, 0);
        MPI_Allreduce(MPI_IN_PLACE, &hits, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (hits)
            check_class(code, case_rank() == odd ? MPI_ERR_OTHER : MPI_SUCCESS,
                        "%s while %s %u of rank %d fails", write ? "write" : "read", call, nth,
                        odd);
        else
            check_ok(code, "an access without a fault");
        check_left_alone(file, &buffer);
        any |= hits;
    }
    buffer_free(&buffer);
    return any;
}

static void message_faults(const char *call, unsigned times)
{
    MPI_File file = open_interleaved("fault.dat");
    struct buffer buffer = buffer_new(GPU_HOST, (size_t)share);

    goes_on(file, &buffer);
    for (int odd = 0; odd < case_ranks(); odd++) {
        unsigned nth = 1;
        while (message_fails(file, call, odd, nth, times))
            nth = 2 * nth + 1;
        check(nth > 1, "%s is never called by rank %d", call, odd);
    }
    buffer_free(&buffer);
    MPI_File_close(&file);
    file_remove("fault.dat");
}

static void messages_fail(void)
{
    find_faults();
    message_faults("PMPI_Isend", 1);
    message_faults("PMPI_Irecv", 1);
    message_faults("PMPI_Irecv", 1000000);
    message_faults("PMPI_Testany", 1);
    message_faults("PMPI_Allgather", 1);
    hints = large;
    share = 1 << 20;
    message_faults("PMPI_Isend", 1);
    message_faults("PMPI_Irecv", 1);
    message_faults("PMPI_Testany", 1);
}

static const struct test_case cases[] = {
    {"write", "an aggregator that can't write", 1, 16, NEEDS_HIPIO, storage_write_fails},
    {"read", "an aggregator that can't read", 1, 16, NEEDS_HIPIO, storage_read_fails},
    {"memory", "a rank without memory", 2, 16, NEEDS_HIPIO, no_memory},
    {"gpu", "a GPU that fails as HIPSIM_FAIL says", 1, 16, NEEDS_HIPIO | NEEDS_GPU | NEEDS_REQUEST,
     gpu_fails},
    {"messages", "MPI calls that fail", 2, 16, NEEDS_HIPIO | NEEDS_REQUEST, messages_fail},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
