/* SPDX-License-Identifier: MIT */
/* Access: offset rules, buffer classification, byte-range locks, error words. */
#include "access.h"
#include "engine/log.h"
#include "engine/status.h"
#include "flatten.h"
#include "mpierr.h"
#include "view.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int hipio_call_bytes(const struct hipio_call *call, uint64_t *bytes)
{
    MPI_Count size = 0;
    if (PMPI_Type_size_x(call->type, &size) != MPI_SUCCESS || size < 0 || call->count < 0)
        return hipio_status_set(-EINVAL, "MPI does not know the size of the datatype");
    if (__builtin_mul_overflow((uint64_t)size, (uint64_t)call->count, bytes) ||
        *bytes > INT64_MAX) {
        *bytes = 0;
        return hipio_status_set(-EOVERFLOW,
                                "count %d times datatype size %lld is more than 2^63 bytes",
                                call->count, (long long)size);
    }
    return 0;
}

int hipio_call_memory(const struct hipio_call *call, struct hipio_memory *memory)
{
    MPI_Count lb = 0, extent = 0, size = 0;

    *memory = (struct hipio_memory){
        .kind = HIPIO_MEMORY_HOST, .device = -1, .cpu_access = true, .ops = &hipio_device_host};
    PMPI_Type_size_x(call->type, &size);
    if (call->count == 0 || size == 0)
        return 0;
    PMPI_Type_get_true_extent_x(call->type, &lb, &extent);
    char words[HIPIO_TEXT_MAX];
    void *first = (char *)call->buffer + lb;
    int rc = hipio_device_classify(first, memory);
    if (rc || memory->kind != HIPIO_MEMORY_INVALID)
        return rc;
    hipio_device_explain(first, words, sizeof words);
    return hipio_status_set(-EFAULT, "buffer %p: %s", first, words);
}

bool hipio_call_is_displaced(const struct hipio_call *call)
{
    MPI_Count lb = 0, extent = 0, true_lb = 0, size = 0;

    PMPI_Type_size_x(call->type, &size);
    if (size == 0)
        return false;
    PMPI_Type_get_extent_x(call->type, &lb, &extent);
    PMPI_Type_get_true_extent_x(call->type, &true_lb, &extent);
    return lb != 0 || true_lb < 0;
}

int hipio_call_lower_collective(struct hipio_driven *driven, const struct hipio_call *call)
{
    const struct hipio_romio_fns *lower = driven->lower;
    MPI_Status status;
    int error = MPI_SUCCESS;

    driven->collective_error = MPI_SUCCESS;
    driven->in_collective++;
    if (call->op == HIPIO_READ)
        lower->read_strided_coll(driven->fd, call->buffer, call->count, call->type, call->pointer,
                                 call->offset, &status, &error);
    else
        lower->write_strided_coll(driven->fd, call->buffer, call->count, call->type, call->pointer,
                                  call->offset, &status, &error);
    driven->in_collective--;
    return error != MPI_SUCCESS ? error : driven->collective_error;
}

/* Strips at the start of a datatype whose memory is looked at one by one. */
#define STRIPS_LOOKED_AT 64

static int check_kind_at(const struct hipio_access *access, int64_t offset)
{
    const struct hipio_memory *memory = &access->request.memory;
    struct hipio_memory other;
    int rc = hipio_device_classify((char *)access->call.buffer + offset, &other);

    if (rc || (other.kind == memory->kind && other.device == memory->device))
        return rc;
    if (access->contiguous)
        return hipio_status_set(-EFAULT,
                                "the last of the bytes is not in the same memory as the first: the "
                                "buffer at %p is shorter "
                                "than the access",
                                access->call.buffer);
    return hipio_status_set(
        -EFAULT, "the datatype names memory of different kinds (host and GPU, or two GPUs, or not "
                 "mapped); use one access for each");
}

/*
 * A datatype may name blocks of different kinds of memory, and a request has one kind, so a mixture
 * is refused. Blocks that lie far from each other stand at the start of a type or at its end; what
 * is between is looked at up to a bound.
 */
static int check_one_kind(const struct hipio_access *access)
{
    const struct hipio_layout *layout = access->memory_layout;
    struct hipio_cursor cursor;
    struct hipio_strip strip;
    int64_t last;
    int rc = 0;

    hipio_cursor_init(&cursor, layout, 0);
    for (int i = 0;
         i < STRIPS_LOOKED_AT && rc == 0 && hipio_cursor_next(&cursor, UINT64_MAX, &strip); i++) {
        rc = check_kind_at(access, strip.offset);
        if (rc == 0 && strip.count > 1)
            rc = check_kind_at(access, strip.offset + (int64_t)(strip.count - 1) * strip.stride);
    }
    hipio_cursor_init(&cursor, layout, hipio_layout_size(layout) - 1);
    if (rc == 0 && hipio_cursor_next_run(&cursor, 1, &last))
        rc = check_kind_at(access, last);
    return rc;
}

static int prepare_memory(struct hipio_access *access)
{
    const struct hipio_call *call = &access->call;
    int64_t start;
    int rc = hipio_flatten(call->type, call->count, &access->memory_layout);

    if (rc)
        return rc;
    access->contiguous = hipio_layout_is_contiguous(access->memory_layout, &start);
    if (access->bytes &&
        (!access->contiguous || access->request.memory.kind != HIPIO_MEMORY_HOST)) {
        rc = check_one_kind(access);
        if (rc)
            return rc;
    }
    if (access->driven->external32)
        return hipio_flatten_swap(call->type, &access->swap);
    return 0;
}

static int prepare_file(struct hipio_access *access)
{
    struct hipio_driven *driven = access->driven;
    const struct hipio_call *call = &access->call;
    struct hipio_request *request = &access->request;
    int rc;

    if (call->absolute) {
        request->file_base =
            call->pointer == HIPIO_ROMIO_INDIVIDUAL ? driven->fd->fp_ind : call->offset;
        return hipio_layout_run(0, access->bytes, &access->file_layout);
    }
    rc = hipio_view_prepare(driven);
    if (rc)
        return rc;
    if (hipio_view_is_empty(driven)) {
        access->bytes = 0;
        return hipio_layout_run(0, 0, &access->file_layout);
    }
    access->contiguous = access->contiguous && hipio_view_is_contiguous(driven);
    rc = hipio_view_position(driven, call->pointer, call->offset, &access->position);
    if (rc)
        return rc;
    access->file_layout = hipio_layout_retain(driven->view);
    if (access->bytes > hipio_layout_size(driven->view) - access->position)
        return hipio_status_set(-EOVERFLOW, "the access reaches past the range of file offsets");
    request->file_base = driven->fd->disp;
    request->file_start = access->position;
    return 0;
}

int hipio_access_prepare(struct hipio_driven *driven, const struct hipio_call *call,
                         const struct hipio_memory *memory, struct hipio_access *access)
{
    struct hipio_request *request = &access->request;
    int rc;

    memset(access, 0, sizeof *access);
    access->driven = driven;
    access->call = *call;
    access->lock_fd = -1;
    request->op = call->op;
    request->base = call->buffer;
    request->memory = *memory;
    rc = hipio_call_bytes(call, &access->bytes);
    if (rc == 0)
        rc = prepare_memory(access);
    if (rc == 0)
        rc = prepare_file(access);
    if (rc)
        return rc;
    request->memory_layout = access->memory_layout;
    request->file_layout = access->file_layout;
    request->length = access->bytes;
    request->swap = access->swap;
    return 0;
}

void hipio_access_release(struct hipio_access *access)
{
    hipio_access_unlock(access);
    hipio_layout_release(access->memory_layout);
    hipio_layout_release(access->file_layout);
    hipio_flatten_free_swap(access->swap);
    access->memory_layout = access->file_layout = NULL;
    access->swap = NULL;
}

static int set_lock(struct hipio_access *access, short type)
{
    struct flock lock = {.l_type = type,
                         .l_whence = SEEK_SET,
                         .l_start = access->lock_low,
                         .l_len = access->lock_high - access->lock_low};
    int rc;
    do
        rc = fcntl(access->lock_fd, F_SETLKW, &lock);
    while (rc == -1 && errno == EINTR);
    return rc == -1 ? -errno : 0;
}

int hipio_access_lock(struct hipio_access *access)
{
    struct hipio_driven *driven = access->driven;
    const struct hipio_request *request = &access->request;
    int rc;

    if (!driven->fd->atomicity || access->bytes == 0 ||
        !driven->lower->feature(driven->fd, HIPIO_ROMIO_FEATURE_LOCKS))
        return 0;
    hipio_layout_bounds(access->file_layout, request->file_start, access->bytes, &access->lock_low,
                        &access->lock_high);
    access->lock_low += request->file_base;
    access->lock_high += request->file_base;
    access->lock_fd = driven->fd->fd_sys;
    rc = set_lock(access, access->call.op == HIPIO_READ ? F_RDLCK : F_WRLCK);
    if (rc) {
        access->lock_fd = -1;
        return hipio_status_set(rc, "atomic mode: locking bytes %lld to %lld failed: %s",
                                (long long)access->lock_low, (long long)access->lock_high,
                                strerror(-rc));
    }
    return 0;
}

void hipio_access_unlock(struct hipio_access *access)
{
    if (access->lock_fd < 0)
        return;
    set_lock(access, F_UNLCK);
    access->lock_fd = -1;
}

/* Bytes asked for, also where the access was refused before they were known. 0: too many to count.
 */
static unsigned long long bytes_asked(const struct hipio_access *access)
{
    MPI_Count size = 0;
    uint64_t bytes = 0;

    if (access->bytes)
        return access->bytes;
    PMPI_Type_size_x(access->call.type, &size);
    return __builtin_mul_overflow((uint64_t)size, (uint64_t)access->call.count, &bytes) ? 0 : bytes;
}

/* The engine's words without the file's name, which stands in front of them already. */
static const char *without_name(const char *words, const char *name)
{
    size_t n = strlen(name);
    return strncmp(words, name, n) == 0 && strncmp(words + n, ": ", 2) == 0 ? words + n + 2 : words;
}

int hipio_access_code(const struct hipio_access *access, int err, const char *words)
{
    const char *name = access->driven->fd->filename;
    bool read = access->call.op == HIPIO_READ;
    char text[HIPIO_TEXT_MAX + 256];

    if (err == 0)
        return MPI_SUCCESS;
    if (!words)
        words = hipio_status_text();
    snprintf(text, sizeof text, "%s of %llu bytes %s %s: %s", read ? "read" : "write",
             bytes_asked(access), read ? "from" : "to", name,
             *words ? without_name(words, name) : strerror(-err));
    hipio_log(HIPIO_LOG_INFO, "%s", text);
    return hipio_mpierr_code(hipio_mpierr_class(err), text);
}

/*
 * As ROMIO moves it: past what was really transferred where memory and view are contiguous, past
 * what was asked for where they are not.
 */
void hipio_access_advance(const struct hipio_access *access, uint64_t done)
{
    struct hipio_driven *driven = access->driven;

    hipio_view_touch(driven);
    if (access->call.pointer != HIPIO_ROMIO_INDIVIDUAL || access->bytes == 0)
        return;
    if (access->call.absolute)
        hipio_view_seek(driven, access->request.file_base + (int64_t)done);
    else
        hipio_view_seek(driven,
                        hipio_view_offset(driven, access->position +
                                                      (access->contiguous ? done : access->bytes)));
}

int64_t hipio_access_end(const struct hipio_access *access)
{
    const struct hipio_request *request = &access->request;
    int64_t low, high;

    if (access->bytes == 0)
        return 0;
    hipio_layout_bounds(request->file_layout, request->file_start, access->bytes, &low, &high);
    return request->file_base + high;
}

void hipio_access_grow(struct hipio_access *access)
{
    struct hipio_request *request = &access->request;
    int64_t size, end = hipio_access_end(access);

    if (access->call.op != HIPIO_WRITE || access->bytes == 0 ||
        (!access->driven->fd->is_open || hipio_driver_file(access->driven, &request->file)))
        return;
    size = hipio_file_size(request->file);
    if (size < 0 || end <= size)
        return;
    /* Where this fails, the write itself will and says so. */
    if (pwrite(hipio_file_descriptor(request->file), "", 1, end - 1) < 0)
        hipio_log(HIPIO_LOG_DEBUG, "%s: growing to %lld bytes: %s", access->driven->fd->filename,
                  (long long)end, strerror(errno));
}

int hipio_access_run(struct hipio_access *access)
{
    struct hipio_request *request = &access->request;
    int rc;

    if (access->bytes == 0)
        return MPI_SUCCESS;
    rc = hipio_driver_file(access->driven, &request->file);
    if (rc == 0)
        rc = hipio_access_lock(access);
    if (rc)
        return hipio_access_code(access, rc, NULL);
    rc = hipio_request_run(request);
    hipio_access_unlock(access);
    return hipio_access_code(access, rc, request->text);
}
