/* SPDX-License-Identifier: MIT */
/*
 * Gather: turns a layout into as few launches as it takes.
 *
 * Strips that continue each other are joined to *series*. A long series, or the only one, is a
 * launch of its own. The others are collected in the table: first as the offsets of equal blocks,
 * which is the shortest form, and once that no longer fits, as entries.
 */
#include "gather.h"
#include "kernels.h"
#include "module.h"
#include "stats.h"
#include "status.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Pinned bytes for tables. A launch costs as much as moving this many bytes of offsets. */
#define TABLE_BYTES ((uint64_t)256 << 10)
/* A series of so many bytes gets its own launch rather than making others look for it in a table.
 */
#define LONG_SERIES ((uint64_t)64 << 10)
/* A series of more blocks than this is shorter as an entry. */
#define FEW_BLOCKS (sizeof(struct hipio_kernel_entry) / sizeof(int64_t))

struct hipio_gather {
    const struct hipio_device_ops *ops;
    int device;
    struct hipio_stream *stream;
    struct hipio_module module;
    char *table; /* pinned, or NULL until it is needed */
    uint64_t table_device;
    uint64_t used; /* bytes of it that queued launches may still read */
};

/* Blocks of `length` bytes, `stride` apart from `first` on, of which the first `skip` bytes are
 * left out and then `bytes` are meant. */
struct series {
    int64_t first;
    uint64_t length;
    int64_t stride;
    uint64_t skip;
    uint64_t bytes;
};

/* The table being filled: what will be one launch. */
struct collection {
    bool entries;          /* of entries, not of offsets */
    uint64_t n;            /* of either */
    uint64_t packed;       /* where its packed bytes begin */
    uint64_t bytes;        /* and how many they are */
    int64_t base;          /* offset that the table's are relative to */
    uint64_t length, skip; /* offsets: of the blocks */
    bool cut;              /* offsets: the last block is, nothing can follow */
    uint64_t bits;
};

/* One hipio_gather_run. */
struct run {
    struct hipio_gather *gather;
    const struct hipio_gather_work *work;
    struct hipio_cursor *cursor;
    uint64_t packed;          /* device address */
    uint64_t taken;           /* bytes taken from the cursor, the pending strip's too */
    struct hipio_strip strip; /* looked at, not used yet; count 0: none */
    uint64_t done;            /* packed bytes that have been launched or collected */
    struct collection collection;
};

static int device_address(const struct hipio_gather *gather, const void *pinned, uint64_t *out)
{
    void *address;

    int status = gather->ops->device_pointer(gather->device, (void *)(uintptr_t)pinned, &address);
    if (status == 0)
        *out = (uint64_t)(uintptr_t)address;
    return status;
}

static int launch(struct hipio_gather *gather, struct hipio_kernel_move *move)
{
    void *params[] = {move};

    hipio_stats_add(HIPIO_COUNT_kernels, 1);
    return gather->ops->launch(gather->stream, gather->module.function,
                               hipio_kernel_blocks(move->bytes, gather->module.multiprocessors),
                               HIPIO_KERNEL_THREADS, params);
}

static struct hipio_kernel_move prepare(const struct run *run, int64_t offset, uint64_t packed,
                                        uint64_t bytes)
{
    return (struct hipio_kernel_move){
        .packed = run->packed + packed,
        .bytes = bytes,
        .memory = (uint64_t)(uintptr_t)run->work->base + (uint64_t)offset,
        .way = run->work->way == HIPIO_COPY_TO_HOST ? HIPIO_KERNEL_PACK : HIPIO_KERNEL_UNPACK,
        .swap = run->work->swap,
    };
}

/* 1: run->strip is the next strip. 0: everything has been taken. */
static int peek(struct run *run)
{
    if (run->strip.count > 0)
        return 1;
    if (run->taken == run->work->bytes)
        return 0;
    uint64_t n = hipio_cursor_next(run->cursor, run->work->bytes - run->taken, &run->strip);
    if (n == 0) {
        run->strip.count = 0;
        return hipio_status_set(-EINVAL, "the memory layout ends %llu bytes early",
                                (unsigned long long)(run->work->bytes - run->taken));
    }
    run->taken += n;
    return 1;
}

static struct series begin(const struct hipio_strip *strip)
{
    return (struct series){.first = strip->offset,
                           .length = strip->length,
                           .stride = strip->count > 1 ? strip->stride : 0,
                           .bytes = strip->length * strip->count};
}

/* Offsets may be anything that fits 64 bits; so are their differences, modulo 2^64. */
static int64_t difference(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t block_at(const struct series *series, uint64_t index)
{
    return (int64_t)((uint64_t)series->first + index * (uint64_t)series->stride);
}

/* A run before its second strip: the tail of a block, a whole one, or any. */
static bool join_second(struct series *series, const struct hipio_strip *strip)
{
    uint64_t missing = strip->length > series->bytes ? strip->length - series->bytes : 0;
    int64_t first = difference(series->first, (int64_t)missing);
    int64_t stride = difference(strip->offset, first);

    if (strip->count > 1 && strip->stride != stride)
        return false;
    if (strip->count > 1 && strip->length < series->bytes)
        return false;
    if (strip->length > series->length)
        series->length = strip->length;
    series->first = first;
    series->skip = missing;
    series->stride = stride;
    series->bytes += strip->length * strip->count;
    return true;
}

/* Adds the strip to the series if it goes on in the same way. */
static bool join(struct series *series, const struct hipio_strip *strip)
{
    uint64_t behind = series->skip + series->bytes;
    uint64_t blocks = behind / series->length;

    if (series->skip == 0 && series->bytes == series->length)
        return join_second(series, strip);
    if (behind % series->length != 0 || strip->offset != block_at(series, blocks))
        return false;
    if (strip->count > 1 && (strip->stride != series->stride || strip->length != series->length))
        return false;
    if (strip->length > series->length)
        return false;
    series->bytes += strip->length * strip->count;
    return true;
}

static int launch_series(struct run *run, const struct series *series)
{
    struct hipio_kernel_move move = prepare(run, series->first, run->done, series->bytes);

    move.shape = HIPIO_KERNEL_STRIP;
    move.length = series->length;
    move.stride = series->stride;
    move.skip = series->skip;
    run->done += series->bytes;
    return launch(run->gather, &move);
}

static uint64_t table_bytes(const struct collection *collection)
{
    return collection->n *
           (collection->entries ? sizeof(struct hipio_kernel_entry) : sizeof(int64_t));
}

static void *table_at(const struct run *run)
{
    return run->gather->table + run->gather->used;
}

static uint64_t table_room(const struct run *run)
{
    return TABLE_BYTES - run->gather->used - table_bytes(&run->collection);
}

/* Launches what has been collected. */
static int flush(struct run *run)
{
    struct collection *collection = &run->collection;
    struct hipio_gather *gather = run->gather;

    if (collection->n == 0)
        return 0;
    struct hipio_kernel_move move =
        prepare(run, collection->base, collection->packed, collection->bytes);
    move.shape = collection->entries ? HIPIO_KERNEL_LIST : HIPIO_KERNEL_BLOCKS;
    move.table = gather->table_device + gather->used;
    move.bits = collection->bits;
    if (collection->entries) {
        move.entries = collection->n;
    } else {
        move.length = collection->length;
        move.skip = collection->skip;
        move.bits |= collection->n > 1 ? collection->length : 0;
    }
    gather->used += table_bytes(collection);
    collection->n = 0;
    return launch(gather, &move);
}

static int make_table(struct hipio_gather *gather)
{
    void *table;

    int status = gather->ops->host_alloc(gather->device, TABLE_BYTES, &table);
    if (status < 0)
        return status;
    status = device_address(gather, table, &gather->table_device);
    if (status < 0) {
        gather->ops->host_free(gather->device, table);
        return status;
    }
    gather->table = table;
    hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, (int64_t)TABLE_BYTES);
    return 0;
}

/* Makes room for `bytes` more of the table; what was collected may have been launched for that. */
static int make_room(struct run *run, uint64_t bytes)
{
    struct hipio_gather *gather = run->gather;

    if (!gather->table) {
        int status = make_table(gather);
        if (status < 0)
            return status;
    }
    if (table_room(run) >= bytes)
        return 0;
    int status = flush(run);
    if (status == 0)
        status = gather->ops->stream_synchronize(gather->stream);
    gather->used = 0;
    return status;
}

static void open_collection(struct run *run, const struct series *series)
{
    run->collection = (struct collection){
        .packed = run->done,
        .base = series->first,
        .length = series->length,
        .skip = series->skip,
    };
}

static uint64_t count_blocks(const struct series *series)
{
    return (series->skip + series->bytes + series->length - 1) / series->length;
}

/* Can the series' blocks be told by their offsets behind those that are there? */
static bool fits_offsets(const struct collection *collection, const struct series *series)
{
    if (count_blocks(series) > FEW_BLOCKS)
        return false;
    if (collection->n == 0)
        return true;
    return !collection->entries && !collection->cut && series->skip == 0 &&
           series->length == collection->length;
}

static int add_offsets(struct run *run, const struct series *series)
{
    struct collection *collection = &run->collection;
    uint64_t blocks = count_blocks(series);

    int status = make_room(run, blocks * sizeof(int64_t));
    if (status < 0)
        return status;
    if (collection->n == 0)
        open_collection(run, series);
    int64_t *table = table_at(run);
    for (uint64_t i = 0; i < blocks; i++) {
        int64_t offset = difference(block_at(series, i), collection->base);

        table[collection->n++] = offset;
        collection->bits |= (uint64_t)offset;
    }
    collection->cut = (series->skip + series->bytes) % series->length != 0;
    collection->bytes += series->bytes;
    run->done += series->bytes;
    return 0;
}

/* Rewrites offsets as entries where they stand, from the last to the first. */
static void turn_into_entries(struct run *run)
{
    struct collection *collection = &run->collection;
    const int64_t *offset = table_at(run);
    struct hipio_kernel_entry *entry = table_at(run);

    for (uint64_t i = collection->n; i-- > 0;) {
        uint64_t skip = i == 0 ? collection->skip : 0;
        struct hipio_kernel_entry one = {
            .packed = i == 0 ? 0 : i * collection->length - collection->skip,
            .offset = (int64_t)((uint64_t)offset[i] + skip),
            .length = collection->length - skip,
        };

        collection->bits |= one.packed | (uint64_t)one.offset;
        memcpy(&entry[i], &one, sizeof one);
    }
    collection->entries = true;
}

static void add_entry(struct run *run, int64_t offset, const struct series *like, uint64_t bytes)
{
    struct collection *collection = &run->collection;
    struct hipio_kernel_entry *entry = table_at(run);
    struct hipio_kernel_entry one = {
        .packed = collection->bytes,
        .offset = difference(offset, collection->base),
        .length = bytes < like->length ? bytes : like->length,
        .stride = like->stride,
    };

    collection->bits |= one.packed | (uint64_t)one.offset;
    if (bytes > one.length)
        collection->bits |= one.length | (uint64_t)one.stride;
    entry[collection->n++] = one;
    collection->bytes += bytes;
    run->done += bytes;
}

/* A block of which the beginning is left out is an entry by itself. */
static int add_entries(struct run *run, const struct series *series)
{
    struct collection *collection = &run->collection;
    uint64_t head = series->skip ? series->length - series->skip : 0;
    uint64_t wanted = 2 * sizeof(struct hipio_kernel_entry);

    if (collection->n > 0 && !collection->entries)
        wanted += collection->n * (sizeof(struct hipio_kernel_entry) - sizeof(int64_t));
    int status = make_room(run, wanted);
    if (status < 0)
        return status;
    if (collection->n == 0)
        open_collection(run, series);
    else if (!collection->entries)
        turn_into_entries(run);
    collection->entries = true;
    if (head > series->bytes)
        head = series->bytes;
    if (head > 0)
        add_entry(run, (int64_t)((uint64_t)series->first + series->skip), series, head);
    if (series->bytes > head)
        add_entry(run, block_at(series, head ? 1 : 0), series, series->bytes - head);
    return 0;
}

static int add(struct run *run, const struct series *series)
{
    if (run->work->swap && ((run->done | series->bytes) & (run->work->swap - 1)) != 0)
        return hipio_status_set(-EINVAL, "the memory layout cuts elements of %u bytes",
                                run->work->swap);
    if (series->bytes >= LONG_SERIES || series->bytes == run->work->bytes) {
        int status = flush(run);
        return status < 0 ? status : launch_series(run, series);
    }
    if (fits_offsets(&run->collection, series))
        return add_offsets(run, series);
    return add_entries(run, series);
}

int hipio_gather_run(struct hipio_gather *gather, struct hipio_cursor *cursor,
                     const struct hipio_gather_work *work)
{
    struct run run = {.gather = gather, .work = work, .cursor = cursor};
    int more;

    int status = device_address(gather, work->packed, &run.packed);
    if (status < 0)
        return status;
    while ((more = peek(&run)) > 0) {
        struct series series = begin(&run.strip);

        run.strip.count = 0;
        while ((more = peek(&run)) > 0 && join(&series, &run.strip))
            run.strip.count = 0;
        status = more < 0 ? more : add(&run, &series);
        if (status < 0)
            return status;
    }
    return more < 0 ? more : flush(&run);
}

static int late_address(const struct hipio_gather *gather, const void *pinned, uint64_t *out)
{
    *out = 0;
    return pinned ? device_address(gather, pinned, out) : 0;
}

int hipio_gather_copy(struct hipio_gather *gather, const struct hipio_gather_late *late)
{
    struct hipio_kernel_move move = {
        .bytes = late->bytes,
        .memory = (uint64_t)(uintptr_t)late->memory,
        .shape = HIPIO_KERNEL_STRIP,
        .way = late->way == HIPIO_COPY_TO_HOST ? HIPIO_KERNEL_PACK : HIPIO_KERNEL_UNPACK,
        .length = UINT64_MAX,
        .late_done = late->done,
    };

    int status = device_address(gather, late->packed, &move.packed);
    if (status == 0)
        status = late_address(gather, late->size, &move.late_size);
    if (status == 0)
        status = late_address(gather, late->offset, &move.late_offset);
    return status < 0 ? status : launch(gather, &move);
}

int hipio_gather_create(const struct hipio_device_ops *ops, int device, struct hipio_stream *stream,
                        struct hipio_gather **out)
{
    struct hipio_module module;

    int status = hipio_module_get(ops, device, &module);
    if (status < 0)
        return status;
    struct hipio_gather *gather = calloc(1, sizeof *gather);
    if (!gather) {
        hipio_module_put(&module);
        return hipio_status_set(-ENOMEM, "no memory for a stream's kernel launches");
    }
    gather->ops = ops;
    gather->device = device;
    gather->stream = stream;
    gather->module = module;
    *out = gather;
    return 0;
}

void hipio_gather_abandon(struct hipio_gather *gather)
{
    if (!gather)
        return;
    if (gather->table)
        hipio_stats_level(HIPIO_COUNT_pinned_now, HIPIO_COUNT_pinned_peak, -(int64_t)TABLE_BYTES);
    gather->table = NULL;
    hipio_module_put(&gather->module);
}

void hipio_gather_destroy(struct hipio_gather *gather)
{
    if (!gather)
        return;
    if (gather->table)
        gather->ops->host_free(gather->device, gather->table);
    hipio_gather_abandon(gather);
    free(gather);
}
