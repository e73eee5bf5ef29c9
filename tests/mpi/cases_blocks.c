/* SPDX-License-Identifier: MIT */
/*
 * Cases: datatypes of millions of small blocks at irregular places. What hipio needs for them
 * beyond the application's memory and MPI's own datatype is bounded: the process's peak during a
 * call is compared with what it had before. Mappings of the file are off, since their pages would
 * count.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 8000000, BLOCK = 4, STEP = 12, BYTES = BLOCKS * BLOCK, SPAN = BLOCKS * STEP };
#define BOUND ((int64_t)64 << 20)

static void *must_have(size_t bytes)
{
    void *memory = malloc(bytes);

    if (!memory) {
        fprintf(stderr, "test: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    return memory;
}

/* Where block i begins: one of two places of its step, by chance. */
static int block_at(int i)
{
    return i * STEP + (pattern_byte(3, (uint64_t)i) & 1) * BLOCK;
}

/* ---- The datatypes ---- */

enum form { INDEXED, HINDEXED, DECREASING, FORMS };
static const char *const form_names[] = {"indexed", "hindexed",
                                         "indexed_block from the last to the first"};

static MPI_Datatype make_by_index(enum form form)
{
    int *at = must_have(BLOCKS * sizeof *at), *length = must_have(BLOCKS * sizeof *length);
    MPI_Datatype type;

    for (int i = 0; i < BLOCKS; i++) {
        at[i] = block_at(form == DECREASING ? BLOCKS - 1 - i : i) / BLOCK;
        length[i] = 1;
    }
    if (form == INDEXED)
        MPI_Type_indexed(BLOCKS, length, at, MPI_INT, &type);
    else
        MPI_Type_create_indexed_block(BLOCKS, 1, at, MPI_INT, &type);
    free(at);
    free(length);
    return type;
}

static MPI_Datatype make_by_address(void)
{
    MPI_Aint *at = must_have(BLOCKS * sizeof *at);
    int *length = must_have(BLOCKS * sizeof *length);
    MPI_Datatype type;

    for (int i = 0; i < BLOCKS; i++) {
        at[i] = block_at(i);
        length[i] = 1;
    }
    MPI_Type_create_hindexed(BLOCKS, length, at, MPI_INT, &type);
    free(at);
    free(length);
    return type;
}

static MPI_Datatype make_type(enum form form)
{
    MPI_Datatype type = form == HINDEXED ? make_by_address() : make_by_index(form);

    MPI_Type_commit(&type);
    return type;
}

/* ---- Memory of the process ---- */

/* A number of /proc/self/status, in bytes. */
static int64_t memory(const char *key)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long long kilobytes = -1;

    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), ": %lld", &kilobytes);
    if (status)
        fclose(status);
    return kilobytes * 1024;
}

/* The peak begins anew. Returns what the process has now. */
static int64_t memory_mark(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

    malloc_trim(0);
    check(fd >= 0 && write(fd, "5", 1) == 1, "the peak of memory can't be reset: %m");
    close(fd);
    return memory("VmRSS");
}

static void memory_check(int64_t before, enum form form, const char *what)
{
    int64_t more = memory("VmHWM") - before;

    printf("     %s of %s: %.1f MiB more at most\n", what, form_names[form],
           (double)more / (1 << 20));
    check(more < BOUND, "%s of %s: %lld bytes more memory, right is less than %lld", what,
          form_names[form], (long long)more, (long long)BOUND);
}

/* ---- The trial ---- */

static void check_file(enum form form, const unsigned char *image)
{
    unsigned char *got = must_have(BYTES);
    int fd = open("blocks.dat", O_RDONLY | O_CLOEXEC), i = 0;

    check(fd >= 0 && read(fd, got, BYTES) == BYTES, "the file is too short");
    close(fd);
    for (; i < BLOCKS; i++) {
        int block = form == DECREASING ? BLOCKS - 1 - i : i;

        if (memcmp(got + (size_t)i * BLOCK, image + block_at(block), BLOCK) != 0)
            break;
    }
    check(i == BLOCKS, "%s: block %d of the file is wrong", form_names[form], i);
    free(got);
}

/* Only the blocks may have come back. */
static void check_memory(enum form form, struct buffer *buffer, const unsigned char *image)
{
    unsigned char *got = must_have(SPAN), right[STEP];
    int i = 0;

    buffer_get(buffer, 0, got, SPAN);
    for (; i < BLOCKS; i++) {
        memset(right, POISON, STEP);
        memcpy(right + (block_at(i) - i * STEP), image + block_at(i), BLOCK);
        if (memcmp(got + (size_t)i * STEP, right, STEP) != 0)
            break;
    }
    check(i == BLOCKS, "%s: block %d in memory is wrong", form_names[form], i);
    free(got);
}

static void try_form(enum form form, struct buffer *buffer, const unsigned char *image)
{
    MPI_File file = file_open("blocks.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, "hipio_mapping=off");
    MPI_Datatype type = make_type(form);
    MPI_Status status;
    int64_t before;

    watch_doing("%s", form_names[form]);
    buffer_put(buffer, 0, image, SPAN);
    before = memory_mark();
    check_ok(MPI_File_write_at(file, 0, buffer->at, 1, type, &status), "write_at");
    memory_check(before, form, "write");
    check_bytes(&status, BYTES, "write_at");
    check_file(form, image);
    buffer_poison(buffer);
    before = memory_mark();
    check_ok(MPI_File_read_at(file, 0, buffer->at, 1, type, &status), "read_at");
    memory_check(before, form, "read");
    check_bytes(&status, BYTES, "read_at");
    check_memory(form, buffer, image);
    MPI_Type_free(&type);
    MPI_File_close(&file);
    file_remove("blocks.dat");
}

static void many_blocks(void)
{
    unsigned char *image;
    struct buffer buffer;

    /* Memory that is freed must leave the process, or who needs it next would seem to need none. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    image = must_have(SPAN);
    buffer = buffer_new(GPU_DEVICE, SPAN);
    pattern_fill(image, 8, 0, SPAN);
    for (int form = 0; form < FORMS; form++)
        try_form((enum form)form, &buffer, image);
    buffer_free(&buffer);
    free(image);
}

static const struct test_case cases[] = {
    {"blocks", "8 million blocks of 4 bytes under 64 MiB", 1, 1, NEEDS_GPU, many_blocks},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
