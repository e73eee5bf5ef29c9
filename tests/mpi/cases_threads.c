/* SPDX-License-Identifier: MIT */
/*
 * Cases of MPI_THREAD_MULTIPLE (run with --threads): several threads of each rank move data at
 * once. Threads report into a text of their own, which the main thread looks at after them.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 32, BLOCK = 3000, BLOCKS = 40, BYTES = BLOCK * BLOCKS, ROUNDS = 6 };

struct worker {
    pthread_t thread;
    int index;
    MPI_File file;
    MPI_Comm comm;
    struct buffer buffer;
    const char *hints;
    char name[32];
    char fault[160]; /* "": none */
};

static void fail(struct worker *worker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void fail(struct worker *worker, const char *format, ...)
{
    va_list list;

    if (worker->fault[0])
        return;
    va_start(list, format);
    vsnprintf(worker->fault, sizeof worker->fault, format, list);
    va_end(list);
}

/* The stream that this rank writes in a round of this worker's. */
static uint64_t seed_of(const struct worker *worker, int round)
{
    return (uint64_t)((worker->index * 100 + round) * 64 + case_rank());
}

static void fill(struct worker *worker, int round, bool poison)
{
    unsigned char bytes[BYTES];

    memset(bytes, POISON, sizeof bytes);
    if (!poison)
        pattern_fill(bytes, seed_of(worker, round), 0, sizeof bytes);
    buffer_put(&worker->buffer, 0, bytes, sizeof bytes);
}

static void compare(struct worker *worker, int round, const char *what)
{
    unsigned char bytes[BYTES];
    size_t wrong;

    buffer_get(&worker->buffer, 0, bytes, sizeof bytes);
    wrong = pattern_check(bytes, seed_of(worker, round), 0, sizeof bytes);
    if (wrong < sizeof bytes)
        fail(worker, "round %d, %s: byte %zu is 0x%02x, right is 0x%02x", round, what, wrong,
             bytes[wrong], pattern_byte(seed_of(worker, round), wrong));
}

static void expect(struct worker *worker, int code, const MPI_Status *status, const char *what)
{
    int bytes = -1;

    if (code == MPI_SUCCESS)
        MPI_Get_count(status, MPI_BYTE, &bytes);
    if (code != MPI_SUCCESS || bytes != BYTES)
        fail(worker, "%s returned %d and %d bytes, right is %d", what, code, bytes, BYTES);
}

/* ---- Collectives, each thread on a file and a communicator of its own ---- */

/* In a different order on each rank: thread k begins when the threads before it have had a while.
 */
static void stagger(const struct worker *worker, int threads)
{
    usleep((useconds_t)((worker->index + case_rank()) % threads) * 20000);
}

enum { TOGETHER = 4 };

static int write_together(struct worker *worker, int round, MPI_Status *status)
{
    unsigned char *at = worker->buffer.at;
    int code;

    if (round % 3 == 0)
        return MPI_File_write_at_all(worker->file, 0, at, BYTES, MPI_BYTE, status);
    if (round % 3 == 1) {
        MPI_File_seek(worker->file, 0, MPI_SEEK_SET);
        return MPI_File_write_all(worker->file, at, BYTES, MPI_BYTE, status);
    }
    code = MPI_File_write_at_all_begin(worker->file, 0, at, BYTES, MPI_BYTE);
    int end = MPI_File_write_at_all_end(worker->file, at, status);
    return code != MPI_SUCCESS ? code : end;
}

static void *run_together(void *argument)
{
    struct worker *worker = argument;
    MPI_Status status;

    for (int round = 0; round < ROUNDS; round++) {
        fill(worker, round, false);
        stagger(worker, TOGETHER);
        expect(worker, write_together(worker, round, &status), &status, "a collective write");
        fill(worker, round, true);
        expect(worker,
               MPI_File_read_at_all(worker->file, 0, worker->buffer.at, BYTES, MPI_BYTE, &status),
               &status, "read_at_all");
        compare(worker, round, "read_at_all");
    }
    return NULL;
}

/* The ranks' blocks in turn. */
static void set_view(const struct worker *worker)
{
    MPI_Datatype block, view;

    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * case_ranks(), &view);
    MPI_Type_commit(&view);
    check_ok(MPI_File_set_view(worker->file, (MPI_Offset)BLOCK * case_rank(), MPI_BYTE, view,
                               "native", MPI_INFO_NULL),
             "set_view");
    MPI_Type_free(&block);
    MPI_Type_free(&view);
}

static void start(struct worker *worker, int index, enum gpu_kind kind, const char *hints)
{
    MPI_Info info = info_of(hints);

    *worker = (struct worker){.index = index, .buffer = buffer_new(kind, BYTES)};
    snprintf(worker->name, sizeof worker->name, "thread%d.dat", index);
    MPI_Comm_dup(MPI_COMM_WORLD, &worker->comm);
    check_ok(MPI_File_open(worker->comm, worker->name, MPI_MODE_CREATE | MPI_MODE_RDWR, info,
                           &worker->file),
             "MPI_File_open of %s", worker->name);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
}

static void end(struct worker *worker)
{
    check(!worker->fault[0], "thread %d: %s", worker->index, worker->fault);
    MPI_File_close(&worker->file);
    MPI_Comm_free(&worker->comm);
    buffer_free(&worker->buffer);
    file_remove(worker->name);
}

static void together(const char *hints)
{
    struct worker worker[TOGETHER];

    watch_step("%s", hints);
    for (int i = 0; i < TOGETHER; i++) {
        start(&worker[i], i, (enum gpu_kind)(i % case_kinds()), hints);
        set_view(&worker[i]);
    }
    barrier();
    for (int i = 0; i < TOGETHER; i++)
        pthread_create(&worker[i].thread, NULL, run_together, &worker[i]);
    for (int i = 0; i < TOGETHER; i++)
        pthread_join(worker[i].thread, NULL);
    barrier();
    for (int i = 0; i < TOGETHER; i++)
        end(&worker[i]);
}

/* R82 for collectives: no thread waits for one that waits for it through another rank. */
static void collectives(void)
{
    together("hipio_collective=exchange");
    together("hipio_collective=exchange,hipio_shared_ranks=1,cb_config_list=*:*,"
             "cb_buffer_size=20000,hipio_window_size=64K");
    together("hipio_collective=independent");
}

/* ---- Independent accesses ---- */

/* A worker's own part of a file that all workers of all ranks share, or of its own file. */
struct part {
    struct worker *worker;
    MPI_File file;
    MPI_Offset at;
};

static void *run_part(void *argument)
{
    const struct part *part = argument;
    struct worker *worker = part->worker;
    MPI_Request request;
    MPI_Status status;

    for (int round = 0; round < ROUNDS; round++) {
        int code;

        fill(worker, round, false);
        code = MPI_File_write_at(part->file, part->at, worker->buffer.at, BYTES, MPI_BYTE, &status);
        expect(worker, code, &status, "write_at");
        fill(worker, round, true);
        code =
            MPI_File_iread_at(part->file, part->at, worker->buffer.at, BYTES, MPI_BYTE, &request);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&request, &status);
        expect(worker, code, &status, "iread_at");
        compare(worker, round, "iread_at");
    }
    return NULL;
}

static void run_parts(struct worker *worker, struct part *part)
{
    for (int i = 0; i < MOST; i++)
        pthread_create(&worker[i].thread, NULL, run_part, &part[i]);
    for (int i = 0; i < MOST; i++)
        pthread_join(worker[i].thread, NULL);
    barrier();
}

/* R82: many threads, a file each, and then all on one. */
static void independent(void)
{
    static struct worker worker[MOST];
    static struct part part[MOST];
    MPI_File shared = file_open("shared.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, NULL);

    for (int i = 0; i < MOST; i++) {
        start(&worker[i], i, (enum gpu_kind)(i % case_kinds()), NULL);
        part[i] = (struct part){&worker[i], worker[i].file, (MPI_Offset)case_rank() * BYTES};
    }
    watch_step("a file for each thread");
    run_parts(worker, part);
    watch_step("one file for all");
    for (int i = 0; i < MOST; i++)
        part[i] = (struct part){&worker[i], shared, (MPI_Offset)(case_rank() * MOST + i) * BYTES};
    run_parts(worker, part);
    for (int i = 0; i < MOST; i++)
        end(&worker[i]);
    MPI_File_close(&shared);
    file_remove("shared.dat");
}

static const struct test_case cases[] = {
    {"R82", "threads on files of their own and on one", 1, 4, NEEDS_HIPIO, independent},
    {"R82_all", "threads in collectives at once, in any order", 1, 8, NEEDS_HIPIO, collectives},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
