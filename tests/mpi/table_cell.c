/* SPDX-License-Identifier: MIT */
/*
 * Runs one cell of the table: a fresh file, two calls on every rank, and all checks.
 */
#include "pattern.h"
#include "table.h"
#include "watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The type's address 0 in a buffer: room for negative lower bounds and a guard, and not at the
 * start of the allocation. */
enum { BUFFER_BYTES = 128 << 10, BASE = 1032, MOST_PRINTED = 60 };

struct run {
    const struct cell *cell;
    const struct setting *setting;
    struct plan plan;
    struct verdict verdict;
    enum gpu_kind kind; /* of this rank's buffers */
    unsigned char *buffer[CALLS];
    struct memory_type type[CALLS];
    struct call call[CALLS];
    MPI_Status status[CALLS];
    MPI_File file;
};

/* Buffers live as long as the process: allocation is not what is tested here. */
static unsigned char *buffer_of(enum gpu_kind kind, int index)
{
    static unsigned char *buffer[GPU_KINDS][CALLS];

    if (!buffer[kind][index])
        buffer[kind][index] = gpu_alloc(kind, BUFFER_BYTES);
    return buffer[kind][index];
}

static unsigned char *staging(void)
{
    static unsigned char bytes[BUFFER_BYTES];

    return bytes;
}

/* Host memory is reached without a GPU runtime. */
static void move(enum gpu_kind kind, void *to, const void *from)
{
    if (kind == GPU_HOST)
        memcpy(to, from, BUFFER_BYTES);
    else
        gpu_copy(to, from, BUFFER_BYTES);
}

void cell_describe(const struct cell *cell, char *out, size_t size)
{
    snprintf(out, size, "%s memory=%s type=%s view=%s variant=%s hints=%s ranks=%d", cell->op->name,
             gpu_kind_name(cell->memory), shape_names[cell->shape], view_names[cell->view],
             variant_names[cell->variant], hint_names[cell->hints], cell->ranks);
}

static void create_file(const struct run *run)
{
    size_t size = (size_t)run->plan.size_before;
    char *bytes = malloc(size + 1);
    int fd = open(run->setting->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (!bytes || fd < 0) {
        fprintf(stderr, "test: %s can't be created: %m\n", run->setting->path);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    pattern_fill(bytes, BACKGROUND_SEED, 0, size);
    if (write(fd, bytes, size) != (ssize_t)size)
        MPI_Abort(MPI_COMM_WORLD, 99);
    close(fd);
    free(bytes);
}

static void prepare_memory(struct run *run)
{
    const struct cell *cell = run->cell;

    run->kind = cell->memory;
    if (cell->variant == VARIANT_MIXED)
        run->kind = run->setting->romio ? GPU_HOST
                                        : (enum gpu_kind)((cell->memory + cell->rank) % GPU_KINDS);
    watch_memory(NULL, NULL, 0);
    for (int i = 0; i < CALLS; i++) {
        const struct access *access = &run->plan.access[cell->rank][i];
        struct image image = {staging(), BUFFER_BYTES, BASE};

        run->buffer[i] = buffer_of(run->kind, i);
        watch_memory(i ? "the buffer of call 1" : "the buffer of call 0", run->buffer[i],
                     BUFFER_BYTES);
        memory_type_build(cell->shape, access->units, run->buffer[i] + BASE, &run->type[i]);
        image_prepare(cell, i, access->bytes, &run->type[i], &image);
        move(run->kind, run->buffer[i], image.bytes);
    }
}

static MPI_Info hints_of(const struct cell *cell)
{
    MPI_Info info;

    MPI_Info_create(&info);
    if (cell->hints == HINTS_AUTO)
        return info;
    if (cell->hints == HINTS_CB) {
        MPI_Info_set(info, "romio_cb_read", "enable");
        MPI_Info_set(info, "romio_cb_write", "enable");
        MPI_Info_set(info, "cb_config_list", "*:*");
        MPI_Info_set(info, "cb_buffer_size", "2048");
    } else {
        MPI_Info_set(info, "romio_cb_read", "disable");
        MPI_Info_set(info, "romio_cb_write", "disable");
        MPI_Info_set(info, "romio_ds_read", "disable");
        MPI_Info_set(info, "romio_ds_write", "disable");
    }
    return info;
}

/* Opens the file and places the pointers. False when that failed, on every rank alike. */
static bool open_file(struct run *run)
{
    const struct cell *cell = run->cell;
    const struct view *view = &run->plan.view[cell->rank];
    const struct access *access = run->plan.access[cell->rank];
    MPI_Info info = hints_of(cell);
    int code = MPI_File_open(MPI_COMM_WORLD, run->setting->path, MPI_MODE_RDWR, info, &run->file);

    MPI_Info_free(&info);
    if (code != MPI_SUCCESS) {
        verdict_fail(&run->verdict, CHECK_CODE, "MPI_File_open returned %d", code);
        return false;
    }
    if (cell->variant == VARIANT_ATOMIC)
        code = MPI_File_set_atomicity(run->file, 1);
    if (code == MPI_SUCCESS)
        code = MPI_File_set_view(run->file, view->disp, view->etype, view->filetype, "native",
                                 MPI_INFO_NULL);
    if (code == MPI_SUCCESS && cell->op->pointer == OP_INDIVIDUAL)
        code = MPI_File_seek(run->file, access[0].at, MPI_SEEK_SET);
    if (code == MPI_SUCCESS && (cell->op->pointer == OP_SHARED || cell->op->pointer == OP_ORDERED))
        code = MPI_File_seek_shared(run->file, run->plan.access[0][0].at, MPI_SEEK_SET);
    if (code != MPI_SUCCESS)
        verdict_fail(&run->verdict, CHECK_CODE, "setting atomicity, view or position returned %d",
                     code);
    return true;
}

static void issue(struct run *run, int index)
{
    const struct cell *cell = run->cell;
    const struct access *access = &run->plan.access[cell->rank][index];
    struct call *call = &run->call[index];

    watch_step("call %d", index);
    memset(&run->status[index], 0xff, sizeof run->status[index]);
    call->at = access->at;
    call->type = run->type[index].type;
    call->count = access->units ? run->type[index].count : 0;
    call->buffer = run->buffer[index] + BASE;
    if (run->type[index].bottom)
        call->buffer = MPI_BOTTOM;
    if (access->units == 0)
        call->buffer = NULL;
    call->status = cell->variant == VARIANT_IGNORE ? MPI_STATUS_IGNORE : &run->status[index];
    op_issue(cell->op, run->file, call);
}

/* Completes the nonblocking calls: some cells by one wait for all, others by testing. */
static void complete(struct run *run)
{
    for (int i = CALLS - 1; i >= 0; i--) {
        struct call *call = &run->call[i];
        int done = 0;

        if (call->code != MPI_SUCCESS || call->request == MPI_REQUEST_NULL)
            continue;
        watch_step("waiting for call %d", i);
        if (run->cell->hints == HINTS_AUTO)
            call->code = MPI_Wait(&call->request, call->status);
        else
            while (!done && call->code == MPI_SUCCESS)
                call->code = MPI_Test(&call->request, &done, call->status);
    }
}

/* Ranks that share a pointer take turns, so that it is known who gets what. Ordered calls do so by
 * themselves, but ROMIO lets a rank's next call overtake another rank's last. */
static void perform(struct run *run)
{
    const struct cell *cell = run->cell;

    for (int i = 0; i < CALLS; i++) {
        for (int turn = 0; turn < cell->ranks; turn++) {
            if (turn == cell->rank)
                issue(run, i);
            if (cell->op->pointer == OP_SHARED)
                MPI_Barrier(MPI_COMM_WORLD);
        }
        if (cell->op->pointer == OP_ORDERED)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    /* The pointers move when a nonblocking call is made, not when it completes. */
    if (cell->op->mode == OP_NONBLOCKING) {
        watch_step("position");
        check_position(&run->verdict, &run->plan, run->file);
        complete(run);
    }
    watch_step("position");
    check_position(&run->verdict, &run->plan, run->file);
}

static void check_all(struct run *run)
{
    const struct cell *cell = run->cell;

    watch_step("checks");
    for (int i = 0; i < CALLS; i++) {
        struct image image = {staging(), BUFFER_BYTES, BASE};

        check_call(&run->verdict, &run->plan, i, &run->call[i], &run->type[i]);
        move(run->kind, image.bytes, run->buffer[i]);
        check_memory(&run->verdict, &run->plan, i, &run->type[i], &image);
    }
    if (cell->rank == 0)
        check_file(&run->verdict, &run->plan, run->setting->path);
}

static void print_failure(const struct cell *cell, const struct setting *setting, int rank,
                          const char *text)
{
    static int printed;
    char where[256];

    if (printed++ == MOST_PRINTED)
        printf("FAIL: more cells fail, which are only counted\n");
    if (printed > MOST_PRINTED)
        return;
    cell_describe(cell, where, sizeof where);
    printf("FAIL %s: rank %d: %s\n", where, rank, text);
    printf("     reproduce: mpirun -n %d %s --op %s --memory %s --type %s --view %s --variant %s "
           "--hints %s\n",
           cell->ranks, setting->command, cell->op->name, gpu_kind_name(cell->memory),
           shape_names[cell->shape], view_names[cell->view], variant_names[cell->variant],
           hint_names[cell->hints]);
    fflush(stdout);
}

/* Ranks tell rank 0, which prints one line for the cell. */
static enum outcome conclude(struct run *run)
{
    const struct cell *cell = run->cell;
    const struct verdict *verdict = &run->verdict;
    int mine[2] = {verdict->failures > 0 ? cell->rank : MAX_RANKS, -verdict->known}, all[2];
    char text[sizeof verdict->first];

    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all[0] == MAX_RANKS)
        return all[1] ? OUTCOME_KNOWN : OUTCOME_PASS;
    memcpy(text, verdict->first, sizeof text);
    MPI_Bcast(text, sizeof text, MPI_CHAR, all[0], MPI_COMM_WORLD);
    if (cell->rank == 0)
        print_failure(cell, run->setting, all[0], text);
    return OUTCOME_FAIL;
}

enum outcome cell_run(const struct cell *cell, const struct setting *setting)
{
    static struct run run;
    char text[256];

    memset(&run, 0, sizeof run);
    run.cell = cell;
    run.setting = setting;
    run.verdict.cell = cell;
    run.verdict.romio = setting->romio;
    if (known_fault(cell, CHECK_RUNS, setting->romio))
        return OUTCOME_SKIP;
    cell_describe(cell, text, sizeof text);
    watch_doing("%s", text);
    plan_make(cell, &run.plan);
    prepare_memory(&run);
    if (cell->rank == 0)
        create_file(&run);
    MPI_Barrier(MPI_COMM_WORLD);
    if (open_file(&run)) {
        perform(&run);
        watch_step("close");
        MPI_File_close(&run.file);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    check_all(&run);
    for (int i = 0; i < CALLS; i++)
        memory_type_free(&run.type[i]);
    view_free(&run.plan.view[cell->rank]);
    return conclude(&run);
}
