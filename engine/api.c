/* SPDX-License-Identifier: MIT */
/*
 * Api: the public C library (hipio.h) over the engine: files, blocking calls, settings, counters.
 */
#include "engine.h"
#include "handle.h"
#include "hipio.h"
#include "request.h"
#include "stats.h"
#include "status.h"
#include "stream.h"
#include "tunables.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECES_MAX (1 << 20)

const char *hipio_version(void)
{
    return HIPIO_VERSION;
}

const char *hipio_error_text(void)
{
    return hipio_status_text();
}

int hipio_register_file(int fd, const char *name, struct hipio_handle **file)
{
    if (!file)
        return hipio_status_set(-EINVAL, "no place for the file's handle");
    return hipio_handle_open(fd, name, file);
}

void hipio_deregister_file(struct hipio_handle *file)
{
    if (file)
        hipio_handle_drop(file);
}

/* Runs the request with one layout for memory and one for the file, and releases both. */
static ssize_t run(struct hipio_request *request, struct hipio_layout *memory)
{
    struct hipio_layout *file = NULL;
    const uint64_t length = hipio_layout_size(memory);

    int status = hipio_layout_run(0, length, &file);
    if (status == 0) {
        request->memory_layout = memory;
        request->file_layout = file;
        request->length = length;
        status = hipio_request_run(request);
        if (status < 0)
            hipio_status_set(status, "%s", request->text);
    }
    hipio_layout_release(memory);
    hipio_layout_release(file);
    return status < 0 ? status : (ssize_t)request->done;
}

static int check(const struct hipio_handle *file, off_t file_offset)
{
    if (!file)
        return hipio_status_set(-EINVAL, "no file");
    if (file_offset < 0)
        return hipio_status_set(-EINVAL, "%s: negative file offset %lld",
                                hipio_file_name(hipio_handle_file(file)), (long long)file_offset);
    return 0;
}

static ssize_t move(struct hipio_handle *file, enum hipio_op op, void *base, size_t size,
                    off_t file_offset)
{
    struct hipio_request request = {.op = op, .base = base, .file_base = file_offset};
    struct hipio_layout *memory;

    int status = check(file, file_offset);
    if (status < 0 || size == 0)
        return status;
    request.file = hipio_handle_file(file);
    status = hipio_device_classify(base, &request.memory);
    if (status == 0)
        status = hipio_layout_run(0, size, &memory);
    return status < 0 ? status : run(&request, memory);
}

ssize_t hipio_read(struct hipio_handle *file, void *gpu_base, size_t size, off_t file_offset,
                   off_t buffer_offset)
{
    return move(file, HIPIO_READ, (void *)((uintptr_t)gpu_base + (uintptr_t)buffer_offset), size,
                file_offset);
}

ssize_t hipio_write(struct hipio_handle *file, const void *gpu_base, size_t size, off_t file_offset,
                    off_t buffer_offset)
{
    return move(file, HIPIO_WRITE, (void *)((uintptr_t)gpu_base + (uintptr_t)buffer_offset), size,
                file_offset);
}

/* One kind of memory for all pieces that are not empty. 1: there is one; 0: all are empty. */
static int classify_pieces(const struct iovec *pieces, int n, struct hipio_memory *memory)
{
    struct hipio_memory other;
    int found = 0;

    for (int i = 0; i < n; i++) {
        if (pieces[i].iov_len == 0)
            continue;
        int status = hipio_device_classify(pieces[i].iov_base, found ? &other : memory);
        if (status < 0)
            return status;
        if (found && (other.kind != memory->kind || other.device != memory->device ||
                      other.ops != memory->ops))
            return hipio_status_set(-EINVAL,
                                    "piece %d is memory of another kind or another GPU "
                                    "than those before it: use one call for each",
                                    i);
        found = 1;
    }
    return found;
}

/* Offsets are addresses: the request's base is 0. */
static int lay_out(const struct iovec *pieces, int n, struct hipio_layout **out)
{
    int64_t *offset = malloc((size_t)n * sizeof *offset);
    uint64_t *length = malloc((size_t)n * sizeof *length);
    int status;

    for (int i = 0; offset && length && i < n; i++) {
        offset[i] = (int64_t)(uintptr_t)pieces[i].iov_base;
        length[i] = pieces[i].iov_len;
    }
    if (offset && length)
        status = hipio_layout_runs((uint64_t)n, offset, length, out);
    else
        status = hipio_status_set(-ENOMEM, "no memory for %d pieces", n);
    free(offset);
    free(length);
    return status;
}

static ssize_t move_pieces(struct hipio_handle *file, enum hipio_op op, const struct iovec *pieces,
                           int n, off_t file_offset)
{
    struct hipio_request request = {.op = op, .file_base = file_offset};
    struct hipio_layout *memory;

    int status = check(file, file_offset);
    if (status == 0 && (n < 0 || n > PIECES_MAX || (n > 0 && !pieces)))
        status = hipio_status_set(-EINVAL, "%d pieces: 0 to %d are taken", n, PIECES_MAX);
    if (status < 0)
        return status;
    request.file = hipio_handle_file(file);
    status = classify_pieces(pieces, n, &request.memory);
    if (status <= 0)
        return status;
    status = lay_out(pieces, n, &memory);
    return status < 0 ? status : run(&request, memory);
}

ssize_t hipio_readv(struct hipio_handle *file, const struct iovec *pieces, int n, off_t file_offset)
{
    return move_pieces(file, HIPIO_READ, pieces, n, file_offset);
}

ssize_t hipio_writev(struct hipio_handle *file, const struct iovec *pieces, int n,
                     off_t file_offset)
{
    return move_pieces(file, HIPIO_WRITE, pieces, n, file_offset);
}

/* ---- Settings and counters ---- */

static int check_setting(const char *setting, const char *value)
{
    return setting && value ? 0 : hipio_status_set(-EINVAL, "a setting needs a name and a value");
}

int hipio_set(const char *setting, const char *value)
{
    int status = check_setting(setting, value);

    return status < 0 ? status : hipio_tunables_set_process(setting, value, HIPIO_SOURCE_HINT);
}

int hipio_set_file(struct hipio_handle *file, const char *setting, const char *value)
{
    struct hipio_tunables tunables;

    int status = check(file, 0);
    if (status == 0)
        status = check_setting(setting, value);
    if (status < 0)
        return status;
    tunables = *hipio_file_tunables(hipio_handle_file(file));
    status = hipio_tunables_set_file(&tunables, setting, value);
    if (status < 0)
        return -EINVAL;
    hipio_file_set_tunables(hipio_handle_file(file), &tunables);
    return 0;
}

int hipio_get(struct hipio_handle *file, const char *setting, char *value, size_t size)
{
    const uint32_t index = setting ? hipio_tunables_index(setting) : HIPIO_TUNABLE_NONE;

    if (index == HIPIO_TUNABLE_NONE || !value)
        return hipio_status_set(-EINVAL, "there is no setting %.64s; hipio-info lists them",
                                setting ? setting : "(NULL)");
    const bool shared = hipio_tunables_info(index)->scope == HIPIO_SCOPE_PROCESS;
    hipio_tunables_format(file && !shared ? hipio_file_tunables(hipio_handle_file(file))
                                          : hipio_tunables_process(),
                          index, value, size);
    return 0;
}

int hipio_statistic(const char *counter, uint64_t *value)
{
    for (int i = 0; counter && value && i < HIPIO_COUNTERS; i++) {
        if (strcmp(hipio_stats_name((enum hipio_counter)i), counter) == 0) {
            *value = hipio_stats_get((enum hipio_counter)i);
            return 0;
        }
    }
    return hipio_status_set(-EINVAL, "there is no counter %.64s", counter ? counter : "(NULL)");
}

void hipio_report(char *text, size_t size)
{
    hipio_stats_report(text, size);
}

void hipio_shutdown(void)
{
    if (!hipio_engine_usable())
        return;
    hipio_streams_shutdown();
    hipio_engine_shutdown();
}
