/* SPDX-License-Identifier: MIT */
/*
 * Rows: both layouts walked side by side, a step at a time.
 */
#include "rows.h"
#include "status.h"
#include <errno.h>

/* So many copies are few in any case; of more, the first ones stand for all. */
#define FEW_COPIES 8u
#define LOOK_AHEAD 32u
/* To queue a copy costs what moving so many bytes does. */
#define WORTH_A_COPY ((uint64_t)16 << 10)
/* Copy engines slow down on narrower rows. */
#define WIDE_ROW 64u

/* A layout on its way: the strip that is being used up, of whose first row `taken` bytes are gone.
 */
struct side {
    uintptr_t base;
    struct hipio_cursor cursor;
    struct hipio_strip strip; /* count 0: the next one is to be fetched */
    uint64_t taken;
};

struct walk {
    struct side from, to;
    uint64_t left; /* bytes without a step */
};

/* One copy: `rows` rows of `width` bytes. */
struct step {
    uintptr_t from, to;
    uint64_t from_pitch, to_pitch;
    uint64_t width, rows;
};

static void side_init(struct side *side, const struct hipio_rows_side *what)
{
    side->base = (uintptr_t)what->base;
    hipio_cursor_init(&side->cursor, what->layout, what->start);
    side->strip.count = 0;
    side->taken = 0;
}

static void walk_init(struct walk *walk, const struct hipio_rows *rows)
{
    side_init(&walk->from, &rows->from);
    side_init(&walk->to, &rows->to);
    walk->left = rows->bytes;
}

/* What the side offers next, as rows. One that is cut is a row by itself. */
static bool offer(struct side *side, uint64_t most, struct hipio_strip *out)
{
    if (side->strip.count == 0 && hipio_cursor_next(&side->cursor, most, &side->strip) == 0)
        return false;
    *out = side->strip;
    if (side->taken > 0) {
        out->offset += (int64_t)side->taken;
        out->length -= side->taken;
        out->count = 1;
    }
    return true;
}

static void use(struct side *side, uint64_t bytes)
{
    const uint64_t done = side->taken + bytes;
    const uint64_t rows = done / side->strip.length;

    side->strip.offset += (int64_t)rows * side->strip.stride;
    side->strip.count -= rows;
    side->taken = done % side->strip.length;
}

/* How far apart rows of `width` bytes are in what a side offers. */
static uint64_t pitch_of(const struct hipio_strip *strip, uint64_t width)
{
    return strip->length == width && strip->count > 1 ? (uint64_t)strip->stride : width;
}

/* How many rows of `width` bytes it has, one after the other, that a 2D copy takes. */
static uint64_t rows_of(const struct hipio_strip *strip, uint64_t width)
{
    if (strip->length > width)
        return strip->length / width;
    return strip->stride >= 0 && (uint64_t)strip->stride >= width ? strip->count : 1;
}

/* False: the end, or one of the layouts is shorter than was said. */
static bool next_step(struct walk *walk, struct step *step)
{
    struct hipio_strip from, to;

    if (walk->left == 0 || !offer(&walk->from, walk->left, &from) ||
        !offer(&walk->to, walk->left, &to))
        return false;
    const uint64_t width = from.length < to.length ? from.length : to.length;
    const uint64_t from_rows = rows_of(&from, width), to_rows = rows_of(&to, width);
    *step = (struct step){
        .from = walk->from.base + (uintptr_t)from.offset,
        .to = walk->to.base + (uintptr_t)to.offset,
        .from_pitch = pitch_of(&from, width),
        .to_pitch = pitch_of(&to, width),
        .width = width,
        .rows = from_rows < to_rows ? from_rows : to_rows,
    };
    use(&walk->from, width * step->rows);
    use(&walk->to, width * step->rows);
    walk->left -= width * step->rows;
    return true;
}

bool hipio_rows_are_few(const struct hipio_rows *rows)
{
    uint64_t copies = 0, steps = 0;
    struct walk walk;
    struct step step;

    walk_init(&walk, rows);
    while (steps++ < LOOK_AHEAD && next_step(&walk, &step))
        copies += step.width >= WIDE_ROW ? 1 : step.rows;
    return copies <= FEW_COPIES ? walk.left == 0
                                : (rows->bytes - walk.left) / copies >= WORTH_A_COPY;
}

static int copy_row_by_row(const struct hipio_device_ops *ops, struct hipio_stream *stream,
                           const struct step *step, enum hipio_copy way)
{
    int rc = 0;

    for (uint64_t i = 0; i < step->rows && rc == 0; i++)
        rc = ops->copy(stream, (void *)(step->to + i * step->to_pitch),
                       (const void *)(step->from + i * step->from_pitch), step->width, way);
    return rc;
}

static int copy_step(const struct hipio_device_ops *ops, struct hipio_stream *stream,
                     const struct step *step, enum hipio_copy way)
{
    if (step->rows > 1) {
        int rc = ops->copy_2d(stream, (void *)step->to, step->to_pitch, (const void *)step->from,
                              step->from_pitch, step->width, step->rows, way);
        if (rc != -ENOTSUP)
            return rc;
    }
    return copy_row_by_row(ops, stream, step, way);
}

int hipio_rows_copy(const struct hipio_device_ops *ops, struct hipio_stream *stream,
                    const struct hipio_rows *rows)
{
    struct walk walk;
    struct step step;
    int rc = 0;

    walk_init(&walk, rows);
    while (rc == 0 && next_step(&walk, &step))
        rc = copy_step(ops, stream, &step, rows->way);
    if (rc == 0 && walk.left > 0)
        rc = hipio_status_set(-EINVAL, "a layout ends %llu bytes early",
                              (unsigned long long)walk.left);
    return rc;
}
