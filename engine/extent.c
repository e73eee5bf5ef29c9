/* SPDX-License-Identifier: MIT */
/*
 * Extent: builders of layouts. They bring a description into its smallest form: empty parts are
 * left out, runs that touch become one, equal lengths and constant strides are stored once.
 */
#include "extent.h"
#include "extent_node.h"
#include <errno.h>
#include <stdlib.h>

/* ---- Runs and vectors ---- */

/* Blocks of `length` bytes at a constant stride. */
static int strips_create(int64_t offset, uint64_t length, uint64_t count, int64_t stride,
                         struct hipio_layout **out)
{
    struct hipio_layout *node = hipio_layout_node_create();

    if (!node)
        return hipio_layout_no_memory();
    node->offset = offset;
    node->length = length;
    node->count = count;
    node->stride = stride;
    node->size = length * count;
    return hipio_layout_node_finish(node, out);
}

int hipio_layout_run(int64_t offset, uint64_t length, struct hipio_layout **out)
{
    if (length > INT64_MAX)
        return hipio_layout_too_large("a run is too long");
    return strips_create(offset, length, 1, 0, out);
}

/* The same layout, moved. Takes the reference. */
static int layout_move(struct hipio_layout *layout, int64_t by, struct hipio_layout **out)
{
    int64_t offset;
    int64_t low;
    int64_t high;

    if (by == 0) {
        *out = layout;
        return 0;
    }
    if (__builtin_add_overflow(layout->offset, by, &offset) ||
        __builtin_add_overflow(layout->low, by, &low) ||
        __builtin_add_overflow(layout->high, by, &high)) {
        hipio_layout_release(layout);
        return hipio_layout_too_large("an offset is too large");
    }
    struct hipio_layout *node = hipio_layout_node_own(layout);
    if (!node)
        return hipio_layout_no_memory();
    node->offset = offset;
    node->low = low;
    node->high = high;
    *out = node;
    return 0;
}

/* `count` copies of a strided node that continue its stride are one longer node. */
static int strided_repeat(struct hipio_layout *child, int64_t offset, uint64_t count,
                          struct hipio_layout **out)
{
    struct hipio_layout *node = hipio_layout_node_own(child);

    if (!node)
        return hipio_layout_no_memory();
    node->count *= count;
    node->size *= count;
    int err = hipio_layout_node_finish(node, &node);
    return err ? err : layout_move(node, offset, out);
}

static int vector_create(struct hipio_layout *child, int64_t offset, uint64_t count, int64_t stride,
                         struct hipio_layout **out)
{
    struct hipio_layout *node = hipio_layout_node_create();

    if (!node) {
        hipio_layout_release(child);
        return hipio_layout_no_memory();
    }
    node->offset = offset;
    node->count = count;
    node->stride = stride;
    node->size = child->size * count;
    node->length = child->size;
    node->child = child;
    return hipio_layout_node_finish(node, out);
}

/* Copies of one run: a longer run where they touch, else strips. Takes the reference. */
static int run_repeat(struct hipio_layout *run, int64_t offset, uint64_t count, int64_t stride,
                      struct hipio_layout **out)
{
    int64_t start;
    uint64_t length = run->length;
    bool overflow = __builtin_add_overflow(run->offset, offset, &start);

    hipio_layout_release(run);
    if (overflow)
        return hipio_layout_too_large("an offset is too large");
    if (count == 1 || stride == (int64_t)length)
        return hipio_layout_run(start, length * count, out);
    return strips_create(start, length, count, stride, out);
}

int hipio_layout_vector(struct hipio_layout *child, int64_t offset, uint64_t count, int64_t stride,
                        struct hipio_layout **out)
{
    uint64_t size;

    if (count == 0 || child->size == 0) {
        hipio_layout_release(child);
        return hipio_layout_run(0, 0, out);
    }
    if (__builtin_mul_overflow(child->size, count, &size) || size > INT64_MAX) {
        hipio_layout_release(child);
        return hipio_layout_too_large("it names too many bytes");
    }
    if (node_is_run(child))
        return run_repeat(child, offset, count, stride, out);
    if (count == 1)
        return layout_move(child, offset, out);
    if (node_is_strided(child) && (__int128)child->count * child->stride == stride)
        return strided_repeat(child, offset, count, out);
    return vector_create(child, offset, count, stride, out);
}

/* ---- Runs from a source ---- */

/* Goes through a source, without empty runs and with touching ones merged. */
struct scan {
    const struct hipio_run_source *source;
    uint64_t next;
    int64_t at; /* the run found: where it starts, */
    uint64_t bytes;
};

static bool scan_next(struct scan *scan)
{
    const struct hipio_run_source *source = scan->source;
    int64_t offset = 0;
    uint64_t length = 0;

    while (length == 0 && scan->next < source->n)
        source->get(source, scan->next++, &offset, &length);
    if (length == 0)
        return false;
    scan->at = offset;
    scan->bytes = length;
    for (; scan->next < source->n; ++scan->next) {
        source->get(source, scan->next, &offset, &length);
        if (length > 0 && offset != offset_add(scan->at, scan->bytes))
            break;
        scan->bytes += length;
    }
    return true;
}

/* What two passes over the source have to agree on. */
struct survey {
    uint64_t runs;
    uint64_t size;
    int64_t first;
    int64_t low; /* of all starts */
    int64_t high;
    uint64_t length; /* of the first run */
    int64_t stride;  /* from the first to the second */
    bool equal;      /* all lengths are the first one's */
    bool strided;    /* all strides are the first one */
};

/* Ends of runs must be offsets, and the sum a size: then nothing later can wrap. */
static int check_runs(const struct hipio_run_source *source)
{
    uint64_t size = 0;

    for (uint64_t i = 0; i < source->n; ++i) {
        int64_t offset;
        uint64_t length;

        source->get(source, i, &offset, &length);
        if (length > INT64_MAX || size + length > INT64_MAX)
            return hipio_layout_too_large("it names too many bytes");
        if (offset > INT64_MAX - (int64_t)length)
            return hipio_layout_too_large("an offset is too large");
        size += length;
    }
    return 0;
}

static void survey_add(struct survey *survey, const struct scan *scan, int64_t before)
{
    int64_t stride = offset_add(scan->at, -(uint64_t)before);

    if (survey->runs == 0) {
        *survey = (struct survey){.first = scan->at,
                                  .low = scan->at,
                                  .high = scan->at,
                                  .length = scan->bytes,
                                  .equal = true,
                                  .strided = true};
    } else if (survey->runs == 1) {
        survey->stride = stride;
    }
    if (survey->runs > 1 && stride != survey->stride)
        survey->strided = false;
    /* A distance that wrapped is no stride. */
    if (survey->runs > 0 && (stride > 0) != (scan->at > before))
        survey->strided = false;
    if (scan->bytes != survey->length)
        survey->equal = false;
    if (scan->at < survey->low)
        survey->low = scan->at;
    if (scan->at > survey->high)
        survey->high = scan->at;
    survey->size += scan->bytes;
    ++survey->runs;
}

static struct survey survey_runs(struct scan scan)
{
    struct survey survey = {0};
    int64_t before = 0;

    while (scan_next(&scan)) {
        survey_add(&survey, &scan, before);
        before = scan.at;
    }
    return survey;
}

/* Places for the numbers of a leaf with arrays; `room` serves for the first of them where its
 * 32-bit numbers do. It is the node's then. */
static int make_numbers(struct hipio_layout *node, const struct survey *survey, void *room)
{
    const uint64_t span = (uint64_t)survey->high - (uint64_t)survey->low;

    if (room && span <= UINT32_MAX)
        node->delta.narrow = room;
    else if (hipio_layout_numbers_create(&node->delta, survey->runs, span))
        return -ENOMEM;
    if (survey->equal)
        return 0;
    return hipio_layout_numbers_create(&node->prefix, survey->runs + 1, survey->size);
}

static void fill_numbers(struct hipio_layout *node, struct scan *scan, const struct survey *survey)
{
    uint64_t position = 0;

    while (scan_next(scan)) {
        if (!survey->equal)
            numbers_put(&node->prefix, node->count, position);
        numbers_put(&node->delta, node->count, (uint64_t)scan->at - (uint64_t)survey->low);
        position += scan->bytes;
        ++node->count;
    }
    if (!survey->equal)
        numbers_put(&node->prefix, node->count, position);
}

/* A leaf with arrays. Takes over `room`. */
static int indexed_create(struct scan scan, const struct survey *survey, void *room,
                          struct hipio_layout **out)
{
    struct hipio_layout *node = hipio_layout_node_create();
    int err = node ? make_numbers(node, survey, room) : -ENOMEM;
    const bool taken = node && room && node->delta.narrow == room;

    if (!err) {
        node->offset = survey->low;
        node->size = survey->size;
        node->length = survey->equal ? survey->length : 0;
        fill_numbers(node, &scan, survey);
        /* What is shorter in the same place can't fail, and need not succeed. */
        void *rest = taken ? realloc(room, node->count * sizeof *node->delta.narrow) : NULL;
        if (rest)
            node->delta.narrow = rest;
    }
    if (!taken)
        free(room);
    if (!err)
        return hipio_layout_node_finish(node, out);
    hipio_layout_release(node);
    return hipio_layout_no_memory();
}

int hipio_layout_runs_from(const struct hipio_run_source *source, void *room,
                           struct hipio_layout **out)
{
    const struct scan scan = {.source = source};
    struct survey survey;
    int err = check_runs(source);

    if (!err) {
        survey = survey_runs(scan);
        if (survey.runs > 1 && (!survey.strided || !survey.equal))
            return indexed_create(scan, &survey, room, out);
    }
    free(room);
    if (err)
        return err;
    if (survey.runs == 0)
        return hipio_layout_run(0, 0, out);
    if (survey.runs == 1)
        return hipio_layout_run(survey.first, survey.size, out);
    return strips_create(survey.first, survey.length, survey.runs, survey.stride, out);
}

struct arrays {
    struct hipio_run_source source; /* first */
    const int64_t *offset;
    const uint64_t *length;
};

static void get_from_arrays(const struct hipio_run_source *source, uint64_t i, int64_t *offset,
                            uint64_t *length)
{
    const struct arrays *arrays = (const struct arrays *)source;

    *offset = arrays->offset[i];
    *length = arrays->length[i];
}

int hipio_layout_runs(uint64_t n, const int64_t *offset, const uint64_t *length,
                      struct hipio_layout **out)
{
    const struct arrays arrays = {{n, get_from_arrays}, offset, length};

    return hipio_layout_runs_from(&arrays.source, NULL, out);
}

/* ---- Lists ---- */

static void release_all(uint64_t n, struct hipio_layout *const *child)
{
    for (uint64_t i = 0; i < n; ++i)
        hipio_layout_release(child[i]);
}

static bool all_runs(uint64_t n, struct hipio_layout *const *child)
{
    for (uint64_t i = 0; i < n; ++i) {
        if (!node_is_run(child[i]))
            return false;
    }
    return true;
}

/* A list of nothing but runs needs no children. */
static int list_of_runs(uint64_t n, const int64_t *offset, struct hipio_layout *const *child,
                        struct hipio_layout **out)
{
    int64_t *start = calloc(n + 1, sizeof *start);
    uint64_t *length = calloc(n + 1, sizeof *length);
    int err = start && length ? 0 : hipio_layout_no_memory();

    for (uint64_t i = 0; !err && i < n; ++i) {
        length[i] = child[i]->length;
        if (length[i] > 0 && __builtin_add_overflow(offset[i], child[i]->offset, &start[i]))
            err = hipio_layout_too_large("an offset is too large");
    }
    if (!err)
        err = hipio_layout_runs(n, start, length, out);
    free(start);
    free(length);
    return err;
}

/* The parts of a list as they are taken over. */
struct parts {
    uint64_t n;
    uint64_t size;
    int64_t *offset;
    struct hipio_layout **child;
};

/* A run that touches the run before it makes that one longer. Does not take the reference. */
static int parts_extend(struct parts *parts, int64_t offset, const struct hipio_layout *child,
                        bool *extended)
{
    *extended = false;
    if (parts->n == 0 || !node_is_run(child) || !node_is_run(parts->child[parts->n - 1]))
        return 0;

    struct hipio_layout **last = &parts->child[parts->n - 1];
    const __int128 end = (__int128)parts->offset[parts->n - 1] + (*last)->high;
    struct hipio_layout *longer;
    if (end != (__int128)offset + child->low || (*last)->high > INT64_MAX - (int64_t)child->length)
        return 0;
    int err = hipio_layout_run((*last)->offset, (*last)->length + child->length, &longer);
    if (err)
        return err;
    hipio_layout_release(*last);
    *last = longer;
    *extended = true;
    return 0;
}

/* Takes the reference to the child. */
static int parts_add(struct parts *parts, int64_t offset, struct hipio_layout *child)
{
    bool extended = true;
    int err = 0;

    if (child->size > 0)
        err = parts_extend(parts, offset, child, &extended);
    if (!err && parts->size + child->size > INT64_MAX)
        err = hipio_layout_too_large("it names too many bytes");
    if (!err)
        parts->size += child->size;
    if (err || extended) {
        hipio_layout_release(child);
        return err;
    }
    parts->offset[parts->n] = offset;
    parts->child[parts->n++] = child;
    return 0;
}

/* True if all parts are the same child; tells whether a constant stride leads from each to the
 * next. */
static bool parts_repeat(const struct parts *parts, bool *strided)
{
    const __int128 stride = (__int128)parts->offset[1] - parts->offset[0];

    *strided = stride >= INT64_MIN && stride <= INT64_MAX;
    for (uint64_t i = 1; i < parts->n; ++i) {
        if (parts->child[i] != parts->child[0])
            return false;
        if ((__int128)parts->offset[i] - parts->offset[i - 1] != stride)
            *strided = false;
    }
    return true;
}

/* Starts a node with its parts in place and their children still to come. */
static int placed_create(const struct parts *parts, struct hipio_layout **out)
{
    struct hipio_layout *node = hipio_layout_node_create();
    int64_t low = INT64_MAX;
    int64_t high = INT64_MIN;

    if (!node)
        return hipio_layout_no_memory();
    for (uint64_t i = 0; i < parts->n; ++i) {
        low = parts->offset[i] < low ? parts->offset[i] : low;
        high = parts->offset[i] > high ? parts->offset[i] : high;
    }
    if (hipio_layout_numbers_create(&node->delta, parts->n, (uint64_t)high - (uint64_t)low)) {
        hipio_layout_release(node);
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < parts->n; ++i)
        numbers_put(&node->delta, i, (uint64_t)parts->offset[i] - (uint64_t)low);
    node->offset = low;
    node->size = parts->size;
    *out = node;
    return 0;
}

/* The same child at many places: one reference is kept. */
static int list_of_one(struct parts *parts, bool strided, struct hipio_layout **out)
{
    struct hipio_layout *node;
    const uint64_t n = parts->n;

    if (strided) {
        release_all(n - 1, parts->child + 1);
        parts->n = 0;
        return hipio_layout_vector(parts->child[0], parts->offset[0], n,
                                   parts->offset[1] - parts->offset[0], out);
    }
    int err = placed_create(parts, &node);
    if (err)
        return err;
    release_all(n - 1, parts->child + 1);
    parts->n = 0;
    node->child = parts->child[0];
    node->length = node->child->size;
    node->count = n;
    return hipio_layout_node_finish(node, out);
}

static int list_of_many(struct parts *parts, struct hipio_layout **out)
{
    struct hipio_layout *node;
    uint64_t position = 0;
    int err = placed_create(parts, &node);

    if (err)
        return err;
    err = hipio_layout_numbers_create(&node->prefix, parts->n + 1, parts->size);
    if (err) {
        hipio_layout_release(node);
        return err;
    }
    for (uint64_t i = 0; i < parts->n; ++i) {
        numbers_put(&node->prefix, i, position);
        position += parts->child[i]->size;
    }
    numbers_put(&node->prefix, parts->n, position);
    node->children = parts->child;
    node->count = parts->n;
    parts->child = NULL;
    parts->n = 0;
    return hipio_layout_node_finish(node, out);
}

/* Chooses the smallest form for parts that are complete. Leaves in `parts` what it did not take. */
static int parts_finish(struct parts *parts, struct hipio_layout **out)
{
    bool strided;

    if (parts->n == 0)
        return hipio_layout_run(0, 0, out);
    if (parts->n == 1) {
        parts->n = 0;
        return layout_move(parts->child[0], parts->offset[0], out);
    }
    if (parts_repeat(parts, &strided))
        return list_of_one(parts, strided, out);
    return list_of_many(parts, out);
}

static int list_of_layouts(uint64_t n, const int64_t *offset, struct hipio_layout *const *child,
                           struct hipio_layout **out)
{
    struct parts parts = {0};
    uint64_t taken = 0;
    int err = 0;

    parts.offset = calloc(n, sizeof *parts.offset);
    parts.child = calloc(n, sizeof(struct hipio_layout *));
    if (!parts.offset || !parts.child)
        err = hipio_layout_no_memory();
    for (; !err && taken < n; ++taken)
        err = parts_add(&parts, offset[taken], child[taken]);
    release_all(n - taken, child + taken);
    if (!err)
        err = parts_finish(&parts, out);
    release_all(parts.n, parts.child);
    free(parts.child);
    free(parts.offset);
    return err;
}

int hipio_layout_list(uint64_t n, const int64_t *offset, struct hipio_layout *const *child,
                      struct hipio_layout **out)
{
    if (!all_runs(n, child))
        return list_of_layouts(n, offset, child, out);
    int err = list_of_runs(n, offset, child, out);
    release_all(n, child);
    return err;
}
