/* SPDX-License-Identifier: MIT */
/* Basin and piece: what goes in comes out at its place, in the file as in memory, and nothing else.
 */
#include "basin.h"
#include "piece.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 200000, START = 40960, ROOM = START + SIZE + 5000 };

static struct {
    struct hipio_basin basin;
    struct hipio_file *file;
    void *memory;
    int fd;
    char right[ROOM];
} fixture;

static int set_up(void **state)
{
    char name[] = "/tmp/hipio-basin-XXXXXX";

    (void)state;
    fixture.fd = mkstemp(name);
    unlink(name);
    memset(fixture.right, 0x5a, ROOM);
    if (fixture.fd < 0 || pwrite(fixture.fd, fixture.right, ROOM, 0) != ROOM)
        return -1;
    if (posix_memalign(&fixture.memory, 4096, hipio_basin_bytes(SIZE)))
        return -1;
    memset(fixture.memory, 0xee, hipio_basin_bytes(SIZE)); /* stale, bits too */
    hipio_basin_init(&fixture.basin, fixture.memory, SIZE);
    return hipio_file_create(fixture.fd, "basin", HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE,
                             hipio_tunables_process(), &fixture.file);
}

static int tear_down(void **state)
{
    (void)state;
    hipio_file_destroy(fixture.file);
    close(fixture.fd);
    free(fixture.memory);
    return 0;
}

static void check_file(void)
{
    static char got[ROOM];

    assert_int_equal(pread(fixture.fd, got, ROOM, 0), ROOM);
    assert_memory_equal(got, fixture.right, ROOM);
}

/* A piece of all of a layout's bytes, with data that `put` can take. */
static struct hipio_piece *piece_of(struct hipio_layout *layout, int seed)
{
    uint64_t bytes = hipio_layout_size(layout), strips = 100000;
    struct hipio_piece *piece =
        malloc(sizeof *piece + strips * sizeof(struct hipio_piece_strip) + bytes);
    struct hipio_piece_source source = {layout, START, START};

    assert_int_equal(hipio_piece_list(piece, &source, 0, bytes, strips), bytes);
    char *data = (char *)piece + hipio_piece_list_bytes(piece);
    for (uint64_t k = 0; k < bytes; k++)
        data[k] = (char)((uint64_t)seed + k * 7);
    assert_true(hipio_piece_is_sound(piece, hipio_piece_list_bytes(piece) + bytes, SIZE, true));
    return piece;
}

/* The same bytes in the file that should be. */
static void expect(const struct hipio_layout *layout, const struct hipio_piece *piece)
{
    const char *data = (const char *)piece + hipio_piece_list_bytes(piece);
    struct hipio_cursor cursor;
    int64_t offset;

    hipio_cursor_init(&cursor, layout, 0);
    while (hipio_cursor_next_run(&cursor, 1, &offset))
        fixture.right[START + offset] = *data++;
}

static void put(struct hipio_layout *layout, int seed)
{
    struct hipio_piece *piece = piece_of(layout, seed);
    char *back = malloc(piece->bytes);

    hipio_basin_put(&fixture.basin, piece);
    hipio_basin_take(&fixture.basin, piece, back);
    assert_memory_equal(back, (char *)piece + hipio_piece_list_bytes(piece), piece->bytes);
    expect(layout, piece);
    free(back);
    free(piece);
    hipio_layout_release(layout);
}

static void open_basin(void)
{
    hipio_basin_open(&fixture.basin, 0, (struct hipio_range){START, START + SIZE});
    hipio_basin_clear(&fixture.basin);
}

static struct hipio_layout *vector(int64_t offset, uint64_t length, uint64_t count, int64_t stride)
{
    struct hipio_layout *run, *layout;

    assert_int_equal(hipio_layout_run(0, length, &run), 0);
    assert_int_equal(hipio_layout_vector(run, offset, count, stride, &layout), 0);
    return layout;
}

static void stores_what_was_put(void **state)
{
    (void)state;
    srandom(11);
    for (int turn = 0; turn < 60; turn++) {
        open_basin();
        for (int i = 0; i < 4; i++) {
            int64_t length = 1 + random() % 200, stride = length + random() % 200;
            int64_t count = 1 + random() % (SIZE / stride / 2);
            put(vector(random() % (SIZE - stride * count), (uint64_t)length, (uint64_t)count,
                       stride),
                turn * 4 + i);
        }
        assert_int_equal(hipio_basin_store(&fixture.basin, fixture.file), 0);
        assert_int_equal(hipio_basin_settle(&fixture.basin), 0);
        check_file();
    }
}

/* Bits of every position in a word, first and last bytes, neighbours in one word. */
static void stores_single_bytes(void **state)
{
    (void)state;
    for (int length = 1; length < 140; length += 23) {
        open_basin();
        put(vector(0, (uint64_t)length, 1, 0), length);
        put(vector(SIZE - length, (uint64_t)length, 1, 0), length + 1);
        put(vector(5000 + length, (uint64_t)length, 64, 2 * length + 1), length + 2);
        assert_int_equal(hipio_basin_store(&fixture.basin, fixture.file), 0);
        assert_int_equal(hipio_basin_settle(&fixture.basin), 0);
        check_file();
    }
}

/* More runs than one request takes. */
static void stores_many_runs(void **state)
{
    (void)state;
    open_basin();
    put(vector(1, 1, 66000, 3), 9);
    assert_int_equal(hipio_basin_store(&fixture.basin, fixture.file), 0);
    assert_int_equal(hipio_basin_settle(&fixture.basin), 0);
    check_file();
}

static void stores_nothing(void **state)
{
    (void)state;
    open_basin();
    assert_int_equal(hipio_basin_store(&fixture.basin, fixture.file), 0);
    assert_int_equal(hipio_basin_settle(&fixture.basin), 0);
    check_file();
}

static void fetches_to_the_end(void **state)
{
    (void)state;
    hipio_basin_open(&fixture.basin, 0, (struct hipio_range){START, START + SIZE});
    assert_int_equal(ftruncate(fixture.fd, START + 777), 0);
    assert_int_equal(hipio_basin_fetch(&fixture.basin, fixture.file,
                                       (struct hipio_range){START + 100, START + 5000}),
                     0);
    assert_int_equal(hipio_basin_settle(&fixture.basin), 0);
    assert_int_equal(hipio_basin_end(&fixture.basin), START + 777);
    assert_memory_equal(fixture.basin.memory + 100, fixture.right + START + 100, 677);
    assert_int_equal(hipio_basin_fetch(&fixture.basin, fixture.file,
                                       (struct hipio_range){START + 100, START + 777}),
                     0);
    assert_int_equal(hipio_basin_settle(&fixture.basin), 0);
    assert_int_equal(hipio_basin_end(&fixture.basin), INT64_MAX);
}

/* A list is cut where the bytes or the strips end. */
static void lists_within_limits(void **state)
{
    struct hipio_layout *layout = vector(0, 10, 50, 25);
    char room[sizeof(struct hipio_piece) + 4 * sizeof(struct hipio_piece_strip)];
    struct hipio_piece *piece = (struct hipio_piece *)room;
    struct hipio_piece_source source = {layout, START, START};

    (void)state;
    assert_int_equal(hipio_piece_list(piece, &source, 0, 95, 4), 95);
    assert_int_equal(piece->strips, 2);
    assert_int_equal(hipio_piece_list(piece, &source, 5, 95, 1), 5);
    assert_int_equal(piece->strips, 1);
    assert_int_equal(hipio_piece_list(piece, &source, 500, 95, 4), 0);
    hipio_layout_release(layout);
}

/* What does not fit its round, or its own length, is refused. */
static void refuses_unsound_pieces(void **state)
{
    struct {
        struct hipio_piece piece;
        struct hipio_piece_strip strip;
        char data[8];
    } message = {.piece = {.strips = 1, .bytes = 8}, .strip = {100, 8, 1, 0}};

    (void)state;
    assert_true(hipio_piece_is_sound(&message.piece, 64 + 16 + 8, 108, true));
    assert_false(hipio_piece_is_sound(&message.piece, 64 + 16 + 8, 107, true));
    assert_false(hipio_piece_is_sound(&message.piece, 64 + 16 + 7, 108, true));
    assert_false(hipio_piece_is_sound(&message.piece, 64 + 15, 108, false));
    message.piece.bytes = 9;
    assert_false(hipio_piece_is_sound(&message.piece, 64 + 16 + 9, 1000, true));
    message.piece.bytes = 8;
    message.strip.count = UINT32_MAX;
    message.strip.stride = UINT32_MAX;
    assert_false(hipio_piece_is_sound(&message.piece, 64 + 16 + 8, 1000, true));
}

/* Pieces that are one run in the memory can be sent from there and received there. */
static void knows_the_place_of_a_run(void **state)
{
    struct {
        struct hipio_piece piece;
        struct hipio_piece_strip strip[2];
    } message = {.piece = {.strips = 1, .bytes = 64}, .strip = {{100, 64, 1, 0}, {200, 8, 1, 0}}};

    (void)state;
    open_basin();
    assert_ptr_equal(hipio_basin_place(&fixture.basin, &message.piece), fixture.basin.memory + 100);
    message.strip[0] = (struct hipio_piece_strip){100, 16, 4, 16};
    assert_ptr_equal(hipio_basin_place(&fixture.basin, &message.piece), fixture.basin.memory + 100);
    message.strip[0].stride = 17;
    assert_null(hipio_basin_place(&fixture.basin, &message.piece));
    message.strip[0] = (struct hipio_piece_strip){100, 64, 1, 0};
    message.piece.strips = 2;
    assert_null(hipio_basin_place(&fixture.basin, &message.piece));
    message.piece.strips = 0;
    assert_null(hipio_basin_place(&fixture.basin, &message.piece));
}

/* What a read finds of a piece before the end of the file. */
static void counts_bytes_below(void **state)
{
    struct {
        struct hipio_piece piece;
        struct hipio_piece_strip strip[2];
    } message = {.piece = {.strips = 2, .bytes = 45}, .strip = {{100, 10, 4, 20}, {500, 5, 1, 0}}};

    (void)state;
    assert_int_equal(hipio_piece_bytes_below(&message.piece, 0), 0);
    assert_int_equal(hipio_piece_bytes_below(&message.piece, 100), 0);
    assert_int_equal(hipio_piece_bytes_below(&message.piece, 103), 3);
    assert_int_equal(hipio_piece_bytes_below(&message.piece, 115), 10);
    assert_int_equal(hipio_piece_bytes_below(&message.piece, 121), 11);
    assert_int_equal(hipio_piece_bytes_below(&message.piece, 499), 40);
    assert_int_equal(hipio_piece_bytes_below(&message.piece, 504), 44);
    assert_int_equal(hipio_piece_bytes_below(&message.piece, UINT64_MAX), 45);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stores_what_was_put, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stores_single_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stores_many_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stores_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fetches_to_the_end, set_up, tear_down),
        cmocka_unit_test(lists_within_limits),
        cmocka_unit_test(refuses_unsound_pieces),
        cmocka_unit_test_setup_teardown(knows_the_place_of_a_run, set_up, tear_down),
        cmocka_unit_test(counts_bytes_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
