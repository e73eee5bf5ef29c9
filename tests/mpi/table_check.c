/* SPDX-License-Identifier: MIT */
/*
 * Compares what is with what should be: status, position, memory and file.
 */
#include "pattern.h"
#include "table.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void verdict_fail(struct verdict *verdict, enum check check, const char *format, ...)
{
    va_list list;

    if (known_fault(verdict->cell, check, verdict->romio)) {
        verdict->known++;
        return;
    }
    if (verdict->failures++)
        return;
    va_start(list, format);
    vsnprintf(verdict->first, sizeof verdict->first, format, list);
    va_end(list);
}

static void fail_code(struct verdict *verdict, int index, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, class = 0;

    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    verdict_fail(verdict, CHECK_CODE, "call %d returned %d (class %d): %s", index, code, class,
                 text);
}

/* Elements are known without a doubt when the access is whole, or nothing but ints. */
static int expected_elements(const struct access *access, const struct memory_type *type)
{
    if (access->avail == access->bytes)
        return access->units * type->elements_per_unit;
    if (access->avail == 0)
        return 0;
    return type->ints_only && access->avail % 4 == 0 ? (int)(access->avail / 4) : -1;
}

void check_call(struct verdict *verdict, const struct plan *plan, int index,
                const struct call *call, const struct memory_type *type)
{
    const struct access *access = &plan->access[verdict->cell->rank][index];
    int bytes = -1, count = -1, elements = -1, size, wanted;

    if (call->code != MPI_SUCCESS) {
        fail_code(verdict, index, call->code);
        return;
    }
    if (call->request != MPI_REQUEST_NULL)
        verdict_fail(verdict, CHECK_CODE, "call %d: the request is not null after its completion",
                     index);
    if (call->status == MPI_STATUS_IGNORE)
        return;
    MPI_Get_count(call->status, MPI_BYTE, &bytes);
    if (bytes != access->avail) {
        verdict_fail(verdict, CHECK_COUNT, "call %d: status says %d bytes, right is %lld of %lld",
                     index, bytes, (long long)access->avail, (long long)access->bytes);
        return;
    }
    MPI_Type_size(type->type, &size);
    wanted = access->avail % size ? MPI_UNDEFINED : (int)(access->avail / size);
    MPI_Get_count(call->status, type->type, &count);
    if (count != wanted)
        verdict_fail(verdict, CHECK_COUNT, "call %d: MPI_Get_count gives %d, right is %d", index,
                     count, wanted);
    wanted = expected_elements(access, type);
    MPI_Get_elements(call->status, type->type, &elements);
    if (wanted >= 0 && elements != wanted)
        verdict_fail(verdict, CHECK_COUNT, "call %d: MPI_Get_elements gives %d, right is %d", index,
                     elements, wanted);
}

/* Where a contiguous blocking read met the end of the file the pointer stands there. Other accesses
 * may stand there or where they would have without the end: ROMIO does either by its inner path. */
static bool position_fits(const struct cell *cell, const struct plan *plan, MPI_Offset position)
{
    const struct access *access = plan->access[cell->rank];
    int64_t moved = access[0].at + access[0].avail / plan->view[cell->rank].etype_size;
    bool whole = access[1].avail == access[1].bytes;
    bool contiguous = cell->shape == SHAPE_CONTIG && cell->view == VIEW_CONTIG &&
                      cell->op->mode == OP_BLOCKING && !cell->op->collective;

    if (cell->op->pointer != OP_INDIVIDUAL || whole)
        return position == plan->position[cell->rank];
    if (!contiguous && position == plan->position[cell->rank])
        return true;
    return position == moved + access[1].avail / plan->view[cell->rank].etype_size;
}

void check_position(struct verdict *verdict, const struct plan *plan, MPI_File file)
{
    const struct cell *cell = verdict->cell;
    MPI_Offset position = -1;

    if (MPI_File_get_position(file, &position) != MPI_SUCCESS ||
        !position_fits(cell, plan, position))
        verdict_fail(verdict, CHECK_POSITION, "individual position is %lld etypes, right is %lld",
                     (long long)position, (long long)plan->position[cell->rank]);
    if (cell->op->pointer != OP_SHARED && cell->op->pointer != OP_ORDERED)
        return;
    position = -1;
    if (MPI_File_get_position_shared(file, &position) != MPI_SUCCESS ||
        position != plan->shared_position)
        verdict_fail(verdict, CHECK_POSITION, "shared position is %lld etypes, right is %lld",
                     (long long)position, (long long)plan->shared_position);
}

void image_prepare(const struct cell *cell, int index, int64_t bytes,
                   const struct memory_type *type, struct image *image)
{
    memset(image->bytes, POISON, (size_t)image->size);
    if (!cell->op->write)
        return;
    for (int64_t done = 0, left; done < bytes; done += left) {
        int64_t at = image->base + layout_locate(&type->layout, done, &left);

        if (left > bytes - done)
            left = bytes - done;
        pattern_fill(image->bytes + at, plan_seed(cell->rank, index), (uint64_t)done, (size_t)left);
    }
}

/* What a read must have put into the image. */
static void expect_read(const struct cell *cell, const struct plan *plan, int index,
                        const struct memory_type *type, struct image *image)
{
    int64_t avail = plan->access[cell->rank][index].avail, left, run;

    for (int64_t done = 0; done < avail; done += left) {
        int64_t at = image->base + layout_locate(&type->layout, done, &left);
        int64_t from = plan_offset(plan, cell->rank, index, done, &run);

        if (left > run)
            left = run;
        if (left > avail - done)
            left = avail - done;
        pattern_fill(image->bytes + at, BACKGROUND_SEED, (uint64_t)from, (size_t)left);
    }
}

/* The packed byte that lives at `at` of the image, or -1 for a gap. */
static int64_t packed_at(const struct memory_type *type, const struct image *image, int64_t at,
                         int64_t bytes)
{
    for (int64_t done = 0, left; done < bytes; done += left) {
        int64_t start = image->base + layout_locate(&type->layout, done, &left);

        if (at >= start && at - start < left && at - start < bytes - done)
            return done + at - start;
    }
    return -1;
}

static void report_memory(struct verdict *verdict, const struct plan *plan, int index,
                          const struct memory_type *type, const struct image *images)
{
    const struct image *is = &images[0], *right = &images[1];
    const struct access *access = &plan->access[verdict->cell->rank][index];
    int64_t first = -1, last = -1, differ = 0, packed, file = -1, left;
    bool past = true;

    for (int64_t i = 0; i < is->size; i++) {
        if (is->bytes[i] == right->bytes[i])
            continue;
        packed = packed_at(type, is, i, access->bytes);
        if (packed < access->avail && past) {
            past = false; /* a worse fault than what was seen so far: it is the one to show */
            first = -1;
        }
        if (first < 0)
            first = i;
        last = i;
        differ++;
    }
    packed = packed_at(type, is, first, access->bytes);
    if (packed >= 0)
        file = plan_offset(plan, verdict->cell->rank, index, packed, &left);
    verdict_fail(verdict, past ? CHECK_PAST_EOF : CHECK_MEMORY,
                 "call %d: memory byte %lld (%s %lld, file byte %lld) is 0x%02x%s, right is "
                 "0x%02x; %lld bytes differ up to byte %lld",
                 index, (long long)(first - is->base),
                 packed < 0               ? "a gap, data byte"
                 : packed < access->avail ? "data byte"
                                          : "data byte past the end of the file",
                 (long long)packed, (long long)file, is->bytes[first],
                 is->bytes[first] == POISON ? " (poison)" : "", right->bytes[first],
                 (long long)differ, (long long)(last - is->base));
}

void check_memory(struct verdict *verdict, const struct plan *plan, int index,
                  const struct memory_type *type, const struct image *image)
{
    const struct cell *cell = verdict->cell;
    struct image pair[2] = {*image, *image};

    pair[1].bytes = malloc((size_t)image->size);
    if (!pair[1].bytes)
        abort();
    image_prepare(cell, index, plan->access[cell->rank][index].bytes, type, &pair[1]);
    if (!cell->op->write)
        expect_read(cell, plan, index, type, &pair[1]);
    if (memcmp(pair[0].bytes, pair[1].bytes, (size_t)image->size) != 0)
        report_memory(verdict, plan, index, type, pair);
    free(pair[1].bytes);
}

/* The whole file as it must be. */
static void expect_file(const struct cell *cell, const struct plan *plan, unsigned char *bytes)
{
    memset(bytes, 0, (size_t)plan->size_after);
    pattern_fill(bytes, BACKGROUND_SEED, 0, (size_t)plan->size_before);
    if (!cell->op->write)
        return;
    for (int rank = 0; rank < cell->ranks; rank++)
        for (int call = 0; call < CALLS; call++) {
            int64_t size = plan->access[rank][call].bytes, left;

            for (int64_t done = 0; done < size; done += left) {
                int64_t at = plan_offset(plan, rank, call, done, &left);

                if (left > size - done)
                    left = size - done;
                pattern_fill(bytes + at, plan_seed(rank, call), (uint64_t)done, (size_t)left);
            }
        }
}

/* Which access owns a byte of the file, as words. False when none does. */
static bool describe_byte(const struct cell *cell, const struct plan *plan, int64_t at, char *out,
                          size_t size)
{
    for (int rank = 0; rank < cell->ranks; rank++)
        for (int call = 0; call < CALLS; call++) {
            int64_t bytes = plan->access[rank][call].bytes, left;

            for (int64_t done = 0; done < bytes; done += left) {
                int64_t start = plan_offset(plan, rank, call, done, &left);

                if (at >= start && at - start < left && at - start < bytes - done) {
                    snprintf(out, size, "data byte %lld of rank %d's call %d",
                             (long long)(done + at - start), rank, call);
                    return true;
                }
            }
        }
    snprintf(out, size, "accessed by nobody");
    return false;
}

static void compare_file(struct verdict *verdict, const struct plan *plan,
                         const unsigned char *bytes, const unsigned char *right)
{
    int64_t first = -1, last = -1, differ = 0;
    bool hole = true;
    char whose[96];

    for (int64_t i = 0; i < plan->size_after; i++) {
        bool owned;

        if (bytes[i] == right[i])
            continue;
        owned = describe_byte(verdict->cell, plan, i, whose, sizeof whose);
        if (hole && (owned || i < plan->size_before)) {
            hole = false; /* a worse fault than what was seen so far: it is the one to show */
            first = -1;
        }
        if (first < 0)
            first = i;
        last = i;
        differ++;
    }
    if (!differ)
        return;
    describe_byte(verdict->cell, plan, first, whose, sizeof whose);
    verdict_fail(
        verdict, hole ? CHECK_HOLE : CHECK_FILE,
        "file byte %lld (%s) is 0x%02x, right is 0x%02x; %lld bytes differ up to byte %lld",
        (long long)first, whose, bytes[first], right[first], (long long)differ, (long long)last);
}

/* Reads through stdio: short_io.c makes the other calls stutter. */
void check_file(struct verdict *verdict, const struct plan *plan, const char *path)
{
    size_t size = (size_t)plan->size_after;
    unsigned char *bytes = calloc(2, size + 1);
    FILE *file = fopen(path, "re");
    struct stat info = {0};

    if (!bytes)
        abort();
    if (!file || fstat(fileno(file), &info) != 0)
        verdict_fail(verdict, CHECK_FILE, "the file can't be read back: %m");
    else if (info.st_size != plan->size_after || fread(bytes, 1, size, file) != size)
        verdict_fail(verdict, CHECK_FILE, "the file has %lld bytes, right is %lld",
                     (long long)info.st_size, (long long)plan->size_after);
    else {
        expect_file(verdict->cell, plan, bytes + size);
        compare_file(verdict, plan, bytes, bytes + size);
    }
    if (file)
        fclose(file);
    free(bytes);
}
