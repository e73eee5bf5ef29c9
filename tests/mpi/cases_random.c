/* SPDX-License-Identifier: MIT */
/*
 * Cases, R18: random views and random memory. Each seed deals a file's blocks to the ranks and to
 * nobody, and lays each rank's data into memory in random pieces, order and gaps. Writes go out by
 * one call, come back by another one into another layout; the file is compared byte by byte.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 48, PIECES = 96, RANKS = 8, FILE_ROOM = 64 << 10, MEMORY = 128 << 10 };

/* The same numbers on every rank. */
static uint64_t state;

static uint32_t pick(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

struct pieces {
    int count;
    int length[PIECES];
    MPI_Aint start[PIECES];
    int bytes;
};

static void add(struct pieces *pieces, MPI_Aint start, int length)
{
    pieces->start[pieces->count] = start;
    pieces->length[pieces->count] = length;
    pieces->count++;
    pieces->bytes += length;
}

/* Deals consecutive blocks; owner `ranks` is nobody. Returns the file's length. */
static int deal(struct pieces *view, int ranks)
{
    int at = 0;

    memset(view, 0, sizeof *view * RANKS);
    for (int i = 0; i < BLOCKS; i++) {
        int owner = (int)pick((uint32_t)ranks + 1);
        int length = pick(4) ? 1 + (int)pick(60) : 1 + (int)pick(3000);

        if (at + length > FILE_ROOM)
            break;
        if (owner < ranks)
            add(&view[owner], at, length);
        at += length;
    }
    return at;
}

/* Cuts `bytes` into pieces at random places of memory, ascending, and then perhaps shuffles them.
 */
static void scatter(struct pieces *memory, int bytes)
{
    MPI_Aint at = (MPI_Aint)pick(64) - 64;
    bool shuffled = pick(2), dense = pick(4) == 0;

    memset(memory, 0, sizeof *memory);
    while (memory->bytes < bytes) {
        int length = dense ? bytes : 1 + (int)pick(pick(3) ? 50 : 4000);

        if (length > bytes - memory->bytes || memory->count == PIECES - 1)
            length = bytes - memory->bytes;
        add(memory, at, length);
        at += length + (dense ? 0 : (int)pick(40));
    }
    for (int i = memory->count - 1; shuffled && i > 0; i--) {
        int j = (int)pick((uint32_t)i + 1), length = memory->length[i];
        MPI_Aint start = memory->start[i];

        memory->start[i] = memory->start[j];
        memory->length[i] = memory->length[j];
        memory->start[j] = start;
        memory->length[j] = length;
    }
}

/* ROMIO takes data in one piece below the address for data at the address. */
static void spare_romio(struct pieces *memory)
{
    MPI_Aint below = -memory->start[0];

    for (int i = 1; i < memory->count; i++)
        if (memory->start[i] != memory->start[i - 1] + memory->length[i - 1])
            return;
    for (int i = 0; i < memory->count && below > 0; i++)
        memory->start[i] += below;
}

static MPI_Datatype type_of(const struct pieces *pieces)
{
    MPI_Datatype type;

    MPI_Type_create_hindexed(pieces->count, pieces->length, pieces->start, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static const char *const calls[] = {"at", "at_all", "i*_at", "i*_at_all"};

static int transfer(MPI_File file, int call, bool write, void *at, MPI_Datatype type, int count,
                    MPI_Status *status)
{
    MPI_Request request;
    int code;

    if (call == 0)
        return write ? MPI_File_write_at(file, 0, at, count, type, status)
                     : MPI_File_read_at(file, 0, at, count, type, status);
    if (call == 1)
        return write ? MPI_File_write_at_all(file, 0, at, count, type, status)
                     : MPI_File_read_at_all(file, 0, at, count, type, status);
    if (call == 2)
        code = write ? MPI_File_iwrite_at(file, 0, at, count, type, &request)
                     : MPI_File_iread_at(file, 0, at, count, type, &request);
    else
        code = write ? MPI_File_iwrite_at_all(file, 0, at, count, type, &request)
                     : MPI_File_iread_at_all(file, 0, at, count, type, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
}

struct trial {
    uint64_t seed;
    enum gpu_kind kind;
    struct pieces view[RANKS];
    struct pieces memory;
    int file_bytes;
    int call[2]; /* of the write and of the read */
    const char *hints;
    struct buffer *buffer;
};
enum { MEMORY_BASE = 4096 };

static void fill(const struct trial *trial, unsigned char *host)
{
    int done = 0;

    memset(host, POISON, MEMORY);
    for (int i = 0; i < trial->memory.count; i++) {
        pattern_fill(host + MEMORY_BASE + trial->memory.start[i],
                     trial->seed * RANKS + (uint64_t)case_rank(), (uint64_t)done,
                     (size_t)trial->memory.length[i]);
        done += trial->memory.length[i];
    }
}

static void check_trial_file(const struct trial *trial)
{
    static unsigned char right[FILE_ROOM], got[FILE_ROOM];
    int fd = open("r18.dat", O_RDONLY | O_CLOEXEC), at = 0;
    ssize_t bytes = pread(fd, got, FILE_ROOM, 0);

    close(fd);
    pattern_fill(right, 18, 0, FILE_ROOM);
    for (int rank = 0; rank < case_ranks(); rank++) {
        int done = 0;

        for (int i = 0; i < trial->view[rank].count; i++) {
            pattern_fill(right + trial->view[rank].start[i], trial->seed * RANKS + (uint64_t)rank,
                         (uint64_t)done, (size_t)trial->view[rank].length[i]);
            done += trial->view[rank].length[i];
        }
    }
    while (at < FILE_ROOM && bytes == FILE_ROOM && got[at] == right[at])
        at++;
    check(at == FILE_ROOM,
          "seed %llu (%s memory, write_%s, %s): file byte %d is 0x%02x, right is 0x%02x",
          (unsigned long long)trial->seed, gpu_kind_name(trial->kind), calls[trial->call[0]],
          trial->hints, at, at < FILE_ROOM ? got[at] : 0, at < FILE_ROOM ? right[at] : 0);
}

static void write_trial(const struct trial *trial, MPI_File file, unsigned char *host)
{
    MPI_Datatype type = type_of(&trial->memory);
    int bytes = trial->memory.bytes;
    MPI_Status status = {0};

    fill(trial, host);
    buffer_put(trial->buffer, 0, host, MEMORY);
    check_ok(transfer(file, trial->call[0], true, trial->buffer->at + MEMORY_BASE, type,
                      bytes ? 1 : 0, &status),
             "seed %llu: write_%s", (unsigned long long)trial->seed, calls[trial->call[0]]);
    if (bytes)
        check_bytes(&status, bytes, "seed %llu: write_%s", (unsigned long long)trial->seed,
                    calls[trial->call[0]]);
    MPI_Type_free(&type);
    barrier();
    if (case_rank() == 0)
        check_trial_file(trial);
    barrier();
}

static void read_trial(struct trial *trial, MPI_File file, unsigned char *host)
{
    static unsigned char got[MEMORY];
    MPI_Datatype type;
    MPI_Status status;
    int at = 0;

    type = type_of(&trial->memory);
    buffer_poison(trial->buffer);
    check_ok(transfer(file, trial->call[1], false, trial->buffer->at + MEMORY_BASE, type,
                      trial->memory.bytes ? 1 : 0, &status),
             "seed %llu: read_%s", (unsigned long long)trial->seed, calls[trial->call[1]]);
    MPI_Type_free(&type);
    fill(trial, host);
    buffer_get(trial->buffer, 0, got, MEMORY);
    while (at < MEMORY && got[at] == host[at])
        at++;
    check(at == MEMORY,
          "seed %llu (%s memory, read_%s, %s): memory byte %d is 0x%02x, right is 0x%02x",
          (unsigned long long)trial->seed, gpu_kind_name(trial->kind), calls[trial->call[1]],
          trial->hints, at - MEMORY_BASE, at < MEMORY ? got[at] : 0, at < MEMORY ? host[at] : 0);
}

static void lay_out(struct trial *trial)
{
    scatter(&trial->memory, trial->view[case_rank()].bytes);
    if (case_romio_serves(trial->kind))
        spare_romio(&trial->memory);
}

static void run_trial(struct trial *trial)
{
    static const char *const hints[] = {
        "romio_cb_write=automatic",
        "romio_cb_write=enable,romio_cb_read=enable,cb_config_list=*:*,cb_buffer_size=4096",
        "romio_cb_write=disable,romio_cb_read=disable,romio_ds_write=disable",
    };
    static unsigned char host[MEMORY];
    int kinds = case_hipio() ? 4 : 2;
    MPI_Datatype filetype;
    MPI_File file;

    state = trial->seed;
    trial->file_bytes = deal(trial->view, case_ranks());
    for (int i = 0; i < 2; i++)
        trial->call[i] = (int)pick((uint32_t)kinds);
    trial->hints = hints[pick(3)];
    watch_doing("R18 seed %llu, %s memory, write_%s, read_%s, %s", (unsigned long long)trial->seed,
                gpu_kind_name(trial->kind), calls[trial->call[0]], calls[trial->call[1]],
                trial->hints);
    file_make("r18.dat", 18, FILE_ROOM);
    file = file_open("r18.dat", MPI_MODE_RDWR, trial->hints);
    /* From here on the ranks' numbers differ. */
    state += 7919 * (uint64_t)case_rank();
    lay_out(trial);
    filetype = type_of(&trial->view[case_rank()]);
    if (trial->memory.bytes)
        check_ok(MPI_File_set_view(file, 0, MPI_BYTE, filetype, "native", MPI_INFO_NULL),
                 "set_view");
    else
        MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    write_trial(trial, file, host);
    lay_out(trial);
    read_trial(trial, file, host);
    MPI_Type_free(&filetype);
    MPI_File_close(&file);
}

static void random_views(void)
{
    const char *first = getenv("HIPIO_TEST_SEED");
    static struct trial trial;
    struct buffer buffer[GPU_KINDS];

    for (int kind = 0; kind < case_kinds(); kind++)
        buffer[kind] = buffer_new((enum gpu_kind)kind, MEMORY);
    for (int i = 0; i < case_repeat(40); i++) {
        trial.seed = (first ? strtoull(first, NULL, 10) : 1) + (uint64_t)i;
        trial.kind = (enum gpu_kind)((int)(trial.seed + (uint64_t)case_rank()) % case_kinds());
        trial.buffer = &buffer[trial.kind];
        run_trial(&trial);
    }
    for (int kind = 0; kind < case_kinds(); kind++)
        buffer_free(&buffer[kind]);
    file_remove("r18.dat");
}

static const struct test_case cases[] = {
    {"R18", "random views and memory; HIPIO_TEST_SEED and --repeat choose", 1, RANKS, NEEDS_NOTHING,
     random_views},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
