/* SPDX-License-Identifier: MIT */
/*
 * Cases: storage work goes on while the application is outside MPI. Where the test has a gate
 * before the storage (tests/support/storage_gate.c), it is held until the call has returned, so
 * that nothing can have been moved inside it. Then no MPI call is made until the bytes are where
 * they belong: in the file, which a plain descriptor shows, or in the buffer.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 3 << 20, ROW = 24 << 10, PATIENCE_S = 30, SEED = 5 };

/* ---- The gate ---- */

static struct {
    void (*hold)(const char *path);
    void (*release)(void);
    int (*trespassers)(void);
} gate;

static bool find_gate(void)
{
    *(void **)&gate.hold = dlsym(RTLD_DEFAULT, "storage_gate_hold");
    *(void **)&gate.release = dlsym(RTLD_DEFAULT, "storage_gate_release");
    *(void **)&gate.trespassers = dlsym(RTLD_DEFAULT, "storage_gate_trespassers");
    return gate.hold && gate.release && gate.trespassers;
}

/* ---- The operations ---- */

/* What an operation is given: rank r has the r-th BYTES bytes of the file. */
struct access {
    MPI_File file;
    struct buffer *buffer;
    int count;
    MPI_Datatype type;
    MPI_Offset at;
    MPI_Request request;
};

static int start_at(struct access *a, bool write)
{
    return write ? MPI_File_iwrite_at(a->file, a->at, a->buffer->at, a->count, a->type, &a->request)
                 : MPI_File_iread_at(a->file, a->at, a->buffer->at, a->count, a->type, &a->request);
}

static int start_pointer(struct access *a, bool write)
{
    return write ? MPI_File_iwrite(a->file, a->buffer->at, a->count, a->type, &a->request)
                 : MPI_File_iread(a->file, a->buffer->at, a->count, a->type, &a->request);
}

static int start_shared(struct access *a, bool write)
{
    return write ? MPI_File_iwrite_shared(a->file, a->buffer->at, a->count, a->type, &a->request)
                 : MPI_File_iread_shared(a->file, a->buffer->at, a->count, a->type, &a->request);
}

static int start_at_all(struct access *a, bool write)
{
    return write ? MPI_File_iwrite_at_all(a->file, a->at, a->buffer->at, a->count, a->type,
                                          &a->request)
                 : MPI_File_iread_at_all(a->file, a->at, a->buffer->at, a->count, a->type,
                                         &a->request);
}

static int start_all(struct access *a, bool write)
{
    return write ? MPI_File_iwrite_all(a->file, a->buffer->at, a->count, a->type, &a->request)
                 : MPI_File_iread_all(a->file, a->buffer->at, a->count, a->type, &a->request);
}

static int wait_for(struct access *a, bool write, MPI_Status *status)
{
    (void)write;
    return MPI_Wait(&a->request, status);
}

static int begin_at_all(struct access *a, bool write)
{
    return write ? MPI_File_write_at_all_begin(a->file, a->at, a->buffer->at, a->count, a->type)
                 : MPI_File_read_at_all_begin(a->file, a->at, a->buffer->at, a->count, a->type);
}

static int end_at_all(struct access *a, bool write, MPI_Status *status)
{
    return write ? MPI_File_write_at_all_end(a->file, a->buffer->at, status)
                 : MPI_File_read_at_all_end(a->file, a->buffer->at, status);
}

static int begin_all(struct access *a, bool write)
{
    return write ? MPI_File_write_all_begin(a->file, a->buffer->at, a->count, a->type)
                 : MPI_File_read_all_begin(a->file, a->buffer->at, a->count, a->type);
}

static int end_all(struct access *a, bool write, MPI_Status *status)
{
    return write ? MPI_File_write_all_end(a->file, a->buffer->at, status)
                 : MPI_File_read_all_end(a->file, a->buffer->at, status);
}

static int begin_ordered(struct access *a, bool write)
{
    return write ? MPI_File_write_ordered_begin(a->file, a->buffer->at, a->count, a->type)
                 : MPI_File_read_ordered_begin(a->file, a->buffer->at, a->count, a->type);
}

static int end_ordered(struct access *a, bool write, MPI_Status *status)
{
    return write ? MPI_File_write_ordered_end(a->file, a->buffer->at, status)
                 : MPI_File_read_ordered_end(a->file, a->buffer->at, status);
}

static const struct operation {
    const char *name;
    int (*start)(struct access *a, bool write);
    int (*finish)(struct access *a, bool write, MPI_Status *status);
} operations[] = {
    {"i*_at", start_at, wait_for},         {"i*", start_pointer, wait_for},
    {"i*_shared", start_shared, wait_for}, {"i*_at_all", start_at_all, wait_for},
    {"i*_all", start_all, wait_for},       {"*_at_all_begin", begin_at_all, end_at_all},
    {"*_all_begin", begin_all, end_all},   {"*_ordered_begin", begin_ordered, end_ordered},
};
enum { OPERATIONS = sizeof operations / sizeof *operations, SHARED = 2 };

/* ---- One trial ---- */

struct trial {
    const struct operation *operation;
    bool write, strided;
    struct buffer *buffer;
    bool held;
};

/* Where byte `i` of the rank's data stands in the buffer: rows, with gaps of half a row if the
 * memory is strided. */
static size_t place(const struct trial *trial, size_t row)
{
    return trial->strided ? row * (ROW + ROW / 2) : row * ROW;
}

/* Do all bytes stand where they belong by now? The memory is looked at by copies of the GPU's. */
static bool arrived_in_memory(const struct trial *trial)
{
    static unsigned char memory[BYTES / 2 * 3];
    uint64_t base = (uint64_t)case_rank() * BYTES;

    buffer_get(trial->buffer, 0, memory, sizeof memory);
    for (size_t i = 0; i < BYTES / ROW; i++) {
        if (pattern_check(memory + place(trial, i), SEED, base + i * ROW, ROW) != ROW)
            return false;
    }
    return true;
}

static bool arrived_in_file(int fd)
{
    static unsigned char piece[ROW];
    uint64_t base = (uint64_t)case_rank() * BYTES;

    for (uint64_t i = 0; i < BYTES; i += ROW) {
        if (pread(fd, piece, ROW, (off_t)(base + i)) != ROW ||
            pattern_check(piece, SEED, base + i, ROW) != ROW)
            return false;
    }
    return true;
}

/* No MPI call in here. */
static bool arrives(const struct trial *trial, int fd)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct timespec now, end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += PATIENCE_S;
    do {
        if (trial->write ? arrived_in_file(fd) : arrived_in_memory(trial))
            return true;
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec);
    return false;
}

static const char *trial_name(const struct trial *trial)
{
    static char text[128];

    snprintf(text, sizeof text, "%s (* = %s), %s%s memory", trial->operation->name,
             trial->write ? "write" : "read", trial->strided ? "strided " : "",
             gpu_kind_name(trial->buffer->kind));
    return text;
}

/* The call with the storage held: it returns all the same, and has not touched the file. */
static int start(const struct trial *trial, struct access *access)
{
    int code;

    if (!trial->held)
        return trial->operation->start(access, trial->write);
    gate.hold("overlap.dat");
    code = trial->operation->start(access, trial->write);
    check(gate.trespassers() == 0, "%s: the call itself moved bytes of the file",
          trial_name(trial));
    gate.release();
    return code;
}

static void set_data(const struct trial *trial)
{
    uint64_t base = (uint64_t)case_rank() * BYTES;

    static unsigned char memory[BYTES / 2 * 3];

    memset(memory, POISON, sizeof memory);
    for (size_t i = 0; trial->write && i < BYTES / ROW; i++)
        pattern_fill(memory + place(trial, i), SEED, base + i * ROW, ROW);
    buffer_put(trial->buffer, 0, memory, sizeof memory);
    if (trial->write)
        file_make("overlap.dat", 0, 0);
    else
        file_make("overlap.dat", SEED, (size_t)case_ranks() * BYTES);
}

/* Ordered operations follow the ranks, the shared pointer follows chance: one rank has it all. */
static bool has_part(const struct trial *trial)
{
    return trial->operation != &operations[SHARED] || case_rank() == 0;
}

static void run_operation(const struct trial *trial, struct access *access, int fd)
{
    int64_t background = case_counter("background"), bytes;
    MPI_Status status;

    if (has_part(trial) && check_ok(start(trial, access), "%s", trial_name(trial))) {
        check(arrives(trial, fd), "%s: the bytes have not arrived after %d s outside MPI",
              trial_name(trial), PATIENCE_S);
        bytes = case_counter("background") - background;
        check(bytes == 1, "%s: %lld operations in the background, right is 1", trial_name(trial),
              (long long)bytes);
        check_ok(trial->operation->finish(access, trial->write, &status), "%s, its end",
                 trial_name(trial));
        check_bytes(&status, BYTES, "%s", trial_name(trial));
    }
}

static void run_trial(const struct trial *trial)
{
    struct access access = {.buffer = trial->buffer,
                            .count = trial->strided ? 1 : BYTES,
                            .type = MPI_BYTE,
                            .at = (MPI_Offset)case_rank() * BYTES};
    MPI_Datatype rows;
    int fd;

    watch_step("%s", trial_name(trial));
    MPI_Type_vector(BYTES / ROW, ROW, ROW + ROW / 2, MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    if (trial->strided)
        access.type = rows;
    set_data(trial);
    access.file = file_open("overlap.dat", MPI_MODE_RDWR, trial->held ? "hipio_mapping=off" : NULL);
    MPI_File_seek(access.file, access.at, MPI_SEEK_SET);
    fd = open("overlap.dat", O_RDONLY | O_CLOEXEC);
    barrier();
    run_operation(trial, &access, fd);
    close(fd);
    MPI_File_close(&access.file);
    MPI_Type_free(&rows);
}

static void run_all(bool held)
{
    struct trial trial = {.held = held};

    for (int kind = 0; kind < case_kinds(); kind++) {
        struct buffer buffer = buffer_new((enum gpu_kind)kind, BYTES / 2 * 3);

        trial.buffer = &buffer;
        for (int i = 0; i < OPERATIONS * 4; i++) {
            trial.operation = &operations[i / 4];
            trial.write = i % 2;
            trial.strided = i / 2 % 2;
            run_trial(&trial);
        }
        buffer_free(&buffer);
    }
    file_remove("overlap.dat");
}

static void outside_mpi(void)
{
    run_all(false);
}

static void held_storage(void)
{
    if (check(find_gate(), "the gate before the storage is not preloaded"))
        run_all(true);
}

static const struct test_case cases[] = {
    {"outside", "bytes arrive while the application makes no MPI call", 1, 8, NEEDS_HIPIO,
     outside_mpi},
    {"held", "calls return while the storage moves nothing", 1, 8, NEEDS_HIPIO | NEEDS_REQUEST,
     held_storage},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
