/* SPDX-License-Identifier: MIT */
/*
 * Cases of the collective exchange: random types as views and in memory, on ranks that differ. What
 * a datatype means is asked of MPI_Pack, and the file that should be is written beside the real
 * one, a run at a time.
 */
#include "../adio/random_type.h"
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMORY = 1 << 20, MOST_BYTES = 24 << 10, MOST_HULL = 3 << 20, PREFILL_SEED = 77 };

static void *room(size_t bytes)
{
    void *memory = calloc(1, bytes ? bytes : 1);

    if (!memory) {
        fprintf(stderr, "test: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    return memory;
}

/* ---- What a datatype means ---- */

struct map {
    MPI_Datatype type;
    int64_t bytes;
    MPI_Aint low, span; /* of one item's bytes */
    MPI_Aint extent;
    int64_t *offset; /* of each packed byte of one item */
};

/* MPI_Pack of memory that holds each byte's own offset, one digit of it at a time. */
static void ask_pack(struct map *map)
{
    unsigned char *image = room((size_t)map->span), *packed = room((size_t)map->bytes);

    for (int digit = 0; digit < 4; digit++) {
        int at = 0;
        for (MPI_Aint i = 0; i < map->span; i++)
            image[i] = (unsigned char)(i >> (8 * digit));
        MPI_Pack(image - map->low, 1, map->type, packed, (int)map->bytes, &at, MPI_COMM_SELF);
        for (int64_t k = 0; k < map->bytes; k++)
            map->offset[k] |= (int64_t)packed[k] << (8 * digit);
    }
    for (int64_t k = 0; k < map->bytes; k++)
        map->offset[k] += map->low;
    free(image);
    free(packed);
}

static void map_make(struct map *map, MPI_Datatype type)
{
    MPI_Aint lb;
    int bytes;

    map->type = type;
    MPI_Type_size(map->type, &bytes);
    map->bytes = bytes;
    true_span(map->type, &map->low, &map->span);
    MPI_Type_get_extent(map->type, &lb, &map->extent);
    map->offset = room((size_t)bytes * sizeof *map->offset);
    ask_pack(map);
}

static void map_free(struct map *map)
{
    MPI_Type_free(&map->type);
    free(map->offset);
}

/* Displacements never fall, and no byte is named twice. */
static bool rises(const struct map *map)
{
    for (int64_t k = 1; k < map->bytes; k++) {
        if (map->offset[k] <= map->offset[k - 1])
            return false;
    }
    return true;
}

/* A random type that has bytes, few enough and close enough together; a rising one, if it must be.
 */
static void map_make_random(struct map *map, struct random_state *random, bool rising)
{
    enum { MOST_SPAN = 100000 };

    for (;;) {
        map_make(map, random_type(random, (int)random_below(random, 4), rising));
        if (map->bytes > 0 && map->bytes <= MOST_BYTES && map->span <= MOST_SPAN &&
            map->extent <= MOST_SPAN && map->low >= -MOST_SPAN && map->low <= MOST_SPAN &&
            (!rising || rises(map)))
            return;
        map_free(map);
    }
}

/* ---- One rank's access ---- */

struct access {
    struct map memory;
    int count;
    MPI_Offset at; /* first byte, in the view */
    int64_t bytes;
};

struct trial {
    uint64_t seed;
    struct map view;
    MPI_Aint tile, start; /* extent of all ranks' types side by side; where ours begins */
    MPI_Offset disp;
    enum gpu_kind kind;
    struct buffer *buffer;
    char hints[256];
};

static int64_t view_offset(const struct trial *trial, int64_t position)
{
    int64_t tile = position / trial->view.bytes;

    return trial->disp + tile * trial->tile + trial->start +
           trial->view.offset[position % trial->view.bytes];
}

static int64_t memory_offset(const struct access *access, int64_t position)
{
    return MEMORY / 2 + position / access->memory.bytes * access->memory.extent +
           access->memory.offset[position % access->memory.bytes];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void access_make(const struct trial *trial, struct random_state *random, bool rising,
                        struct access *access)
{
    struct map *memory = &access->memory;
    int64_t step, most;

    map_make_random(memory, random, rising);
    step = (memory->extent < 0 ? -memory->extent : memory->extent) + memory->span + 1;
    most = least(MOST_BYTES / memory->bytes + 1, (MEMORY / 2 - 300000) / step + 1);
    most = least(most, MOST_HULL / trial->tile * trial->view.bytes / memory->bytes + 1);
    /* Sooner or later a rank has nothing. */
    access->count = random_below(random, 8) ? 1 + (int)random_below(random, (uint32_t)most) : 0;
    if (memory->extent < memory->span && access->count > 1 && rising)
        access->count = 1; /* items would overlap */
    access->bytes = access->count * memory->bytes;
    access->at = random_below(random, 3) ? 0 : random_below(random, 5000);
}

/* ---- The file that should be ---- */

static void right_file(const struct trial *trial, const struct access *access,
                       const unsigned char *image)
{
    int fd = open("right.dat", O_WRONLY | O_CLOEXEC);
    unsigned char *run = room((size_t)access->bytes);
    int64_t done = 0;

    while (done < access->bytes) {
        int64_t start = view_offset(trial, access->at + done), n = 0;
        while (done + n < access->bytes && view_offset(trial, access->at + done + n) == start + n) {
            run[n] = image[memory_offset(access, done + n)];
            n++;
        }
        if (pwrite(fd, run, (size_t)n, start) != n)
            MPI_Abort(MPI_COMM_WORLD, 99);
        done += n;
    }
    free(run);
    close(fd);
}

static unsigned char *whole(const char *path, int64_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    unsigned char *bytes;

    if (fd < 0 || fstat(fd, &status))
        MPI_Abort(MPI_COMM_WORLD, 99);
    *size = status.st_size;
    bytes = room((size_t)status.st_size);
    if (pread(fd, bytes, (size_t)status.st_size, 0) != status.st_size)
        MPI_Abort(MPI_COMM_WORLD, 99);
    close(fd);
    return bytes;
}

static void compare_files(const struct trial *trial)
{
    int64_t right_size, got_size, at = 0;
    unsigned char *right = whole("right.dat", &right_size), *got = whole("real.dat", &got_size);

    while (at < right_size && at < got_size && right[at] == got[at])
        at++;
    check(at == right_size && at == got_size,
          "seed %llu (%s): the file has %lld bytes, right is %lld; byte %lld is 0x%02x, right is "
          "0x%02x",
          (unsigned long long)trial->seed, trial->hints, (long long)got_size, (long long)right_size,
          (long long)at, at < got_size ? got[at] : 0, at < right_size ? right[at] : 0);
    free(right);
    free(got);
}

/* ---- The calls ---- */

static const char *const call_names[] = {"at_all", "all", "at_all_begin", "all_begin"};

static int transfer(MPI_File file, int call, bool write, const struct access *access, void *memory,
                    MPI_Status *status)
{
    int count = access->count, code;
    MPI_Datatype type = access->memory.type;

    if (call % 2 == 1)
        MPI_File_seek(file, access->at, MPI_SEEK_SET);
    if (call == 0)
        return write ? MPI_File_write_at_all(file, access->at, memory, count, type, status)
                     : MPI_File_read_at_all(file, access->at, memory, count, type, status);
    if (call == 1)
        return write ? MPI_File_write_all(file, memory, count, type, status)
                     : MPI_File_read_all(file, memory, count, type, status);
    if (call == 2) {
        code = write ? MPI_File_write_at_all_begin(file, access->at, memory, count, type)
                     : MPI_File_read_at_all_begin(file, access->at, memory, count, type);
        int end = write ? MPI_File_write_at_all_end(file, memory, status)
                        : MPI_File_read_at_all_end(file, memory, status);
        return code ? code : end;
    }
    code = write ? MPI_File_write_all_begin(file, memory, count, type)
                 : MPI_File_read_all_begin(file, memory, count, type);
    int end = write ? MPI_File_write_all_end(file, memory, status)
                    : MPI_File_read_all_end(file, memory, status);
    return code ? code : end;
}

static void write_once(const struct trial *trial, MPI_File file, struct random_state *common,
                       struct random_state *own)
{
    static unsigned char image[MEMORY];
    int call = (int)random_below(common, 4);
    struct access access;
    MPI_Status status = {0};

    access_make(trial, own, false, &access);
    watch_step("%s, write_%s, %s memory", trial->hints, call_names[call],
               gpu_kind_name(trial->kind));
    pattern_fill(image, trial->seed * 64 + (uint64_t)case_rank(), 0, MEMORY);
    buffer_put(trial->buffer, 0, image, MEMORY);
    right_file(trial, &access, image);
    check_ok(transfer(file, call, true, &access, trial->buffer->at + MEMORY / 2, &status),
             "seed %llu: write_%s", (unsigned long long)trial->seed, call_names[call]);
    check_bytes(&status, access.bytes, "seed %llu: write_%s", (unsigned long long)trial->seed,
                call_names[call]);
    map_free(&access.memory);
    barrier();
    if (case_rank() == 0)
        compare_files(trial);
    barrier();
}

/* Bytes of the access before the end of the file, and the memory as it should be. */
static int64_t right_memory(const struct trial *trial, const struct access *access,
                            unsigned char *image)
{
    int64_t size, found = 0;
    unsigned char *file = whole("right.dat", &size);

    memset(image, POISON, MEMORY);
    while (found < access->bytes && view_offset(trial, access->at + found) < size) {
        image[memory_offset(access, found)] = file[view_offset(trial, access->at + found)];
        found++;
    }
    free(file);
    return found;
}

static void read_once(const struct trial *trial, MPI_File file, struct random_state *common,
                      struct random_state *own)
{
    static unsigned char right[MEMORY], got[MEMORY];
    int call = (int)random_below(common, 4), at = 0;
    struct access access;
    MPI_Status status = {0};

    access_make(trial, own, true, &access);
    watch_step("%s, read_%s, %s memory", trial->hints, call_names[call],
               gpu_kind_name(trial->kind));
    buffer_poison(trial->buffer);
    check_ok(transfer(file, call, false, &access, trial->buffer->at + MEMORY / 2, &status),
             "seed %llu: read_%s", (unsigned long long)trial->seed, call_names[call]);
    check_bytes(&status, right_memory(trial, &access, right), "seed %llu: read_%s",
                (unsigned long long)trial->seed, call_names[call]);
    buffer_get(trial->buffer, 0, got, MEMORY);
    while (at < MEMORY && got[at] == right[at])
        at++;
    check(at == MEMORY,
          "seed %llu (%s, read_%s, %s memory): memory byte %d is 0x%02x, right is 0x%02x",
          (unsigned long long)trial->seed, trial->hints, call_names[call],
          gpu_kind_name(trial->kind), at - MEMORY / 2, at < MEMORY ? got[at] : 0,
          at < MEMORY ? right[at] : 0);
    map_free(&access.memory);
    barrier();
}

/* ---- A trial ---- */

/* The ranks' types stand side by side in a tile, in the order of ranks or against it. */
static MPI_Datatype make_view(struct trial *trial, struct random_state *common,
                              struct random_state *own)
{
    MPI_Aint span[16];
    MPI_Datatype placed, view;
    int one = 1, turned = (int)random_below(common, 2), ranks = case_ranks();

    map_make_random(&trial->view, own, true);
    MPI_Allgather(&trial->view.span, 1, MPI_AINT, span, 1, MPI_AINT, MPI_COMM_WORLD);
    trial->tile = 0;
    for (int i = 0; i < ranks; i++) {
        int rank = turned ? ranks - 1 - i : i;
        trial->tile += random_below(common, 3) ? 0 : (MPI_Aint)random_below(common, 3000);
        if (rank == case_rank())
            trial->start = trial->tile - trial->view.low;
        trial->tile += span[rank];
    }
    MPI_Type_create_hindexed(1, &one, &trial->start, trial->view.type, &placed);
    MPI_Type_create_resized(placed, 0, trial->tile, &view);
    MPI_Type_commit(&view);
    MPI_Type_free(&placed);
    return view;
}

static void choose_hints(struct trial *trial, struct random_state *common)
{
    static const int buffers[] = {1024, 4096, 16384, 60000, 1 << 20};
    static const char *const units[] = {"", ",striping_unit=4096", ",striping_unit=65536",
                                        ",romio_min_fdomain_size=100000"};
    static const char *const nodes[] = {"*:*", "*:1", "*:2"};

    snprintf(trial->hints, sizeof trial->hints,
             "hipio_collective=exchange,hipio_window_size=%s,cb_buffer_size=%d,cb_config_list=%s%s",
             random_below(common, 2) ? "64K" : "4M", buffers[random_below(common, 5)],
             nodes[random_below(common, 3)], units[random_below(common, 4)]);
    /* Who calls the test may say that the ranks are on several hosts. */
    if (!getenv("HIPIO_SHARED_RANKS"))
        snprintf(trial->hints + strlen(trial->hints), 32, ",hipio_shared_ranks=%u",
                 random_below(common, 3));
}

static void run_trial(struct trial *trial)
{
    struct random_state common, own;
    MPI_Datatype view;
    MPI_File file;
    int64_t size;

    random_seed(&common, trial->seed * 64 + 63);
    random_seed(&own, trial->seed * 64 + (uint64_t)case_rank());
    watch_doing("seed %llu", (unsigned long long)trial->seed);
    choose_hints(trial, &common);
    size = random_below(&common, 3) ? random_below(&common, 600000) : 0;
    file_make("real.dat", PREFILL_SEED, (size_t)size);
    file_make("right.dat", PREFILL_SEED, (size_t)size);
    file = file_open("real.dat", MPI_MODE_RDWR, trial->hints);
    view = make_view(trial, &common, &own);
    trial->disp = random_below(&common, 3) ? random_below(&common, 9000) : 0;
    check_ok(MPI_File_set_view(file, trial->disp, MPI_BYTE, view, "native", MPI_INFO_NULL),
             "set_view");
    write_once(trial, file, &common, &own);
    read_once(trial, file, &common, &own);
    write_once(trial, file, &common, &own);
    MPI_File_close(&file);
    MPI_Type_free(&view);
    map_free(&trial->view);
}

static void random_types(void)
{
    const char *first = getenv("HIPIO_TEST_SEED");
    struct trial trial = {0};
    struct buffer buffer[GPU_KINDS];

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int kind = 0; kind < case_kinds(); kind++)
        buffer[kind] = buffer_new((enum gpu_kind)kind, MEMORY);
    for (int i = 0; i < case_repeat(25); i++) {
        trial.seed = (first ? strtoull(first, NULL, 10) : 1) + (uint64_t)i;
        trial.kind = (enum gpu_kind)((trial.seed + (uint64_t)case_rank()) % (uint64_t)case_kinds());
        trial.buffer = &buffer[trial.kind];
        run_trial(&trial);
    }
    for (int kind = 0; kind < case_kinds(); kind++)
        buffer_free(&buffer[kind]);
    file_remove("real.dat");
    file_remove("right.dat");
}

static const struct test_case cases[] = {
    {"random", "random types as view and memory; HIPIO_TEST_SEED and --repeat choose", 1, 16,
     NEEDS_HIPIO, random_types},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
