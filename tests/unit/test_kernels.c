/* SPDX-License-Identifier: MIT */
/*
 * Kernels: the C form of the kernel against plain loops, over random shapes and alignments, and
 * the images that the library carries.
 */
#include "kernel_trial.h"
#include "kernels.h"
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define ROUNDS 3000

static uint64_t address_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static void move_by_kernel(const struct trial *trial, struct trial_buffers *buffers)
{
    struct hipio_kernel_move move = trial->move;

    move.memory += address_of(buffers->memory);
    move.packed = address_of(buffers->packed + trial->packed_at);
    hipio_kernel_run_on_host(&move, 1 + (unsigned)trial_draw(3));
}

static void equals_plain_loops(void **state)
{
    (void)state;
    struct trial *trial = malloc(sizeof *trial);
    struct trial_buffers *expected = aligned_alloc(64, sizeof *expected);
    struct trial_buffers *got = aligned_alloc(64, sizeof *got);

    assert_true(trial && expected && got);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from = trial_seed();

        trial_make(trial);
        if (round % 50 == 0)
            trial_fill(expected);
        memcpy(got, expected, sizeof *got);
        trial_run_plainly(trial, expected);
        move_by_kernel(trial, got);
        if (memcmp(expected, got, sizeof *got) != 0)
            fail_msg("round %d, seed %llu: shape %u, way %u, swap %u, %llu bytes", round,
                     (unsigned long long)from, trial->move.shape, trial->move.way, trial->move.swap,
                     (unsigned long long)trial->move.bytes);
    }
    free(trial);
    free(expected);
    free(got);
}

/* Overlapping blocks are packed as often as they are named. */
static void overlapping_blocks_are_packed(void **state)
{
    (void)state;
    unsigned char memory[64], packed[64] = {0};
    struct hipio_kernel_move move = {.packed = address_of(packed),
                                     .bytes = 40,
                                     .memory = address_of(memory),
                                     .shape = HIPIO_KERNEL_STRIP,
                                     .length = 8,
                                     .stride = 1};

    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (unsigned char)i;
    hipio_kernel_run_on_host(&move, 1);
    for (size_t i = 0; i < 40; i++)
        assert_int_equal(packed[i], i / 8 + i % 8);
}

static void late_values_are_read_at_the_run(void **state)
{
    (void)state;
    unsigned char memory[4096], packed[1024] = {0}, expected[1024];
    int64_t offset = 77;
    uint64_t size = 0;
    struct hipio_kernel_move move = {.packed = address_of(packed + 3),
                                     .bytes = 1000,
                                     .memory = address_of(memory + 100),
                                     .shape = HIPIO_KERNEL_STRIP,
                                     .length = UINT64_MAX,
                                     .late_size = address_of(&size),
                                     .late_done = 500,
                                     .late_offset = address_of(&offset)};
    static const struct {
        uint64_t size;
        size_t moved;
    } cases[] = {{0, 0},    {499, 0},    {500, 0},           {501, 1},          {515, 15},
                 {516, 16}, {517, 17},   {1499, 999},        {1500, 1000},      {1501, 1000},
                 {64, 0},   {1024, 524}, {1ull << 40, 1000}, {UINT64_MAX, 1000}};

    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (unsigned char)(i * 31 + i / 256);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(packed, 0xee, sizeof packed);
        memset(expected, 0xee, sizeof expected);
        memcpy(expected + 3, memory + 100 + 77, cases[i].moved);
        size = cases[i].size;
        hipio_kernel_run_on_host(&move, 1);
        assert_memory_equal(packed, expected, sizeof packed);
    }
}

/* Places beyond 32 bits; the memory between them is never touched. */
static void offsets_beyond_4_gib(void **state)
{
    (void)state;
    const uint64_t length = 3, stride = 5, skip = 6000000001ull, bytes = 5000;
    const size_t span = (size_t)((skip + bytes) / length + 1) * stride;
    unsigned char *memory = mmap(NULL, span, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char packed[5000] = {0};

    if (memory == MAP_FAILED)
        skip();
    struct hipio_kernel_move move = {.packed = address_of(packed),
                                     .bytes = bytes,
                                     .memory = address_of(memory),
                                     .shape = HIPIO_KERNEL_STRIP,
                                     .length = length,
                                     .stride = (int64_t)stride,
                                     .skip = skip};
    for (uint64_t at = skip; at < skip + bytes; at++)
        memory[at / length * stride + at % length] = (unsigned char)(at % 251);
    hipio_kernel_run_on_host(&move, 2);
    for (uint64_t i = 0; i < bytes; i++)
        assert_int_equal(packed[i], (skip + i) % 251);
    munmap(memory, span);
}

static void launch_geometry(void **state)
{
    (void)state;
    assert_int_equal(hipio_kernel_blocks(0, 132), 1);
    assert_int_equal(hipio_kernel_blocks(1, 132), 1);
    assert_int_equal(hipio_kernel_blocks(4096, 132), 2);
    assert_int_equal(hipio_kernel_blocks(1 << 20, 132), 257);
    assert_int_equal(hipio_kernel_blocks((uint64_t)1 << 40, 132), 8 * 132);
    assert_int_equal(hipio_kernel_blocks((uint64_t)1 << 40, 0), 8 * 60);
    assert_int_equal(hipio_kernel_blocks(UINT64_MAX, -1), 8 * 60);
}

static void ptx_is_there(void **state)
{
    (void)state;
    struct hipio_kernel_image image;

    assert_int_equal(hipio_kernel_image("cuda", &image), 0);
    const char *text = image.data;
    assert_int_equal(address_of(text) % 4096, 0);
    assert_int_equal(strlen(text), image.size);
    assert_non_null(strstr(text, "\n.version 6.0\n.target sm_50\n"));
    assert_non_null(strstr(text, ".visible .entry " HIPIO_KERNEL_MOVE "("));
    /* The kernel's own idea of its argument. */
    char size[32];
    snprintf(size, sizeof size, "_param_0[%zu]", sizeof(struct hipio_kernel_move));
    assert_non_null(strstr(text, size));
    assert_int_equal(hipio_kernel_image("none", &image), -1);
}

struct bundle_entry {
    uint64_t offset;
    uint64_t size;
    uint64_t name_length;
};

static bool has_symbol(const char *object, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                       const char *name)
{
    for (uint64_t at = 0; at < table->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;

        memcpy(&symbol, object + table->sh_offset + at, sizeof symbol);
        if (strcmp(object + strings->sh_offset + symbol.st_name, name) == 0)
            return true;
    }
    return false;
}

/* A GPU's code object: right kind, and both of the kernel's symbols in its dynamic table. */
static void check_object(const char *object, uint64_t size)
{
    const unsigned amd_gpu = 224;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)object;
    bool found = false;

    assert_true(size > sizeof *header);
    assert_memory_equal(header->e_ident, ELFMAG, SELFMAG);
    assert_int_equal(header->e_machine, amd_gpu);
    assert_true(header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize <= size);
    const Elf64_Shdr *section = (const Elf64_Shdr *)(object + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++)
        if (section[i].sh_type == SHT_DYNSYM) {
            const Elf64_Shdr *strings = &section[section[i].sh_link];

            found = has_symbol(object, &section[i], strings, HIPIO_KERNEL_MOVE) &&
                    has_symbol(object, &section[i], strings, HIPIO_KERNEL_MOVE ".kd");
        }
    assert_true(found);
}

/* What the HIP runtime relies on when it takes a bundle apart. */
static void amd_bundle_is_sound(void **state)
{
    (void)state;
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    struct hipio_kernel_image image;
    struct bundle_entry entry;
    uint64_t count, at = sizeof magic - 1;

    if (hipio_kernel_image("hip", &image) < 0)
        skip();
    const char *data = image.data;
    assert_int_equal(address_of(data) % 4096, 0);
    assert_true(image.size > 4096);
    assert_memory_equal(data, magic, sizeof magic - 1);
    memcpy(&count, data + at, sizeof count);
    at += sizeof count;
    assert_in_range(count, 2, 60);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&entry, data + at, sizeof entry);
        at += sizeof entry + entry.name_length;
        assert_true(at <= 4096);
        assert_true(entry.offset + entry.size <= image.size);
        if (i == 0) {
            assert_int_equal(entry.size, 0);
            continue;
        }
        assert_int_equal(entry.offset % 4096, 0);
        assert_memory_equal(data + at - entry.name_length, "hipv4-amdgcn-amd-amdhsa--gfx", 28);
        check_object(data + entry.offset, entry.size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_plain_loops),
        cmocka_unit_test(overlapping_blocks_are_packed),
        cmocka_unit_test(late_values_are_read_at_the_run),
        cmocka_unit_test(offsets_beyond_4_gib),
        cmocka_unit_test(launch_geometry),
        cmocka_unit_test(ptx_is_there),
        cmocka_unit_test(amd_bundle_is_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
