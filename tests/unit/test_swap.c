/* SPDX-License-Identifier: MIT */
/*
 * Swap: elements are reversed wherever a chunk begins, and chunks are cut between elements.
 */
#include "swap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A struct of a double, two ints, three shorts, five chars and a long double. */
static const struct hipio_swap_group mixed_groups[] = {{8, 8}, {8, 4}, {6, 2}, {5, 1}, {16, 16}};
static const struct hipio_swap mixed = {43, 5, mixed_groups};

/* One element of each is enough to say where the byte at `position` comes from. */
static uint64_t source_of(const struct hipio_swap *swap, uint64_t position)
{
    uint64_t start = position / swap->period * swap->period;
    for (uint64_t i = 0; i < swap->n; i++) {
        const struct hipio_swap_group *group = &swap->group[i];
        if (position < start + group->bytes) {
            uint64_t element = (position - start) / group->size;
            uint64_t inside = (position - start) % group->size;
            return start + element * group->size + group->size - 1 - inside;
        }
        start += group->bytes;
    }
    return UINT64_MAX;
}

static void cuts_between_elements(void **state)
{
    (void)state;
    static const struct {
        uint64_t position, wanted;
    } rows[] = {
        {0, 0},   {1, 0},   {7, 0},   {8, 8},   {11, 8},  {12, 12}, {15, 12},
        {16, 16}, {17, 16}, {18, 18}, {22, 22}, {23, 23}, {26, 26}, {27, 27},
        {28, 27}, {42, 27}, {43, 43}, {50, 43}, {86, 86},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(hipio_swap_align(&mixed, rows[i].position), rows[i].wanted);
    assert_int_equal(hipio_swap_align(NULL, 12345), 12345);
}

static void reverses_elements_from_any_boundary(void **state)
{
    (void)state;
    unsigned char in[43 * 3], out[43 * 3];
    for (unsigned i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)i;

    for (uint64_t cut = 0; cut <= sizeof in; cut++) {
        uint64_t at = hipio_swap_align(&mixed, cut);
        memcpy(out, in, sizeof in);
        hipio_swap_apply(&mixed, 0, out, at);
        hipio_swap_apply(&mixed, at, out + at, sizeof in - at);
        for (unsigned i = 0; i < sizeof in; i++)
            assert_int_equal(out[i], in[source_of(&mixed, i)]);
    }
}

static void leaves_a_part_of_an_element_as_it_is(void **state)
{
    (void)state;
    unsigned char bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    hipio_swap_apply(&mixed, 0, bytes, sizeof bytes);
    static const unsigned char wanted[] = {8, 7, 6, 5, 4, 3, 2, 1, 9, 10, 11};
    assert_memory_equal(bytes, wanted, sizeof wanted);
}

static void knows_a_sound_pattern(void **state)
{
    (void)state;
    static const struct hipio_swap_group odd[] = {{6, 4}};
    static const struct hipio_swap_group none[] = {{0, 4}};
    static const struct hipio_swap_group zero[] = {{8, 0}};
    static const struct hipio_swap_group vast[] = {{8192, 8192}};
    static const struct hipio_swap_group overflow[] = {{UINT64_MAX, 1}, {2, 1}};

    assert_true(hipio_swap_valid(&mixed));
    assert_false(hipio_swap_valid(&(struct hipio_swap){42, 5, mixed_groups}));
    assert_false(hipio_swap_valid(&(struct hipio_swap){6, 1, odd}));
    assert_false(hipio_swap_valid(&(struct hipio_swap){0, 1, none}));
    assert_false(hipio_swap_valid(&(struct hipio_swap){8, 1, zero}));
    assert_false(hipio_swap_valid(&(struct hipio_swap){8192, 1, vast}));
    assert_false(hipio_swap_valid(&(struct hipio_swap){1, 2, overflow}));
    assert_false(hipio_swap_valid(&(struct hipio_swap){0, 0, NULL}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_between_elements),
        cmocka_unit_test(reverses_elements_from_any_boundary),
        cmocka_unit_test(leaves_a_part_of_an_element_as_it_is),
        cmocka_unit_test(knows_a_sound_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
