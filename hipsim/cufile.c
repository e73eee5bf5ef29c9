/* SPDX-License-Identifier: MIT */
/* A libcufile.so.0 over the simulated libcuda, in what the real one calls compatibility mode: it
 * moves data by the host, at any alignment. It keeps the conventions (structs returned by value,
 * negated codes, -1 with errno), the refusals, and one habit: a log in the working folder, unless
 * CUFILE_LOGFILE_PATH names another place. HIPSIM_CUFILE=refuse: no file is taken (5008), and the
 * driver neither (5001) once the caller has forbidden the compatibility mode.
 * HIPSIM_CUFILE_VERSION: what cuFileGetVersion answers. */
#include "cufile_api.h"

#include "bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FIRST_CODE = 5000,
    NOT_INITIALIZED = 5001,
    IO_NOT_SUPPORTED = 5008,
    CUDA_ERROR = 5011,
    RANGE_ERROR = 5014,
    INVALID_FILE_TYPE = 5018,
    INVALID_VALUE = 5022,
    ALREADY_REGISTERED = 5023,
    NOT_REGISTERED = 5024,
    HANDLE_NOT_REGISTERED = 5027,
    HANDLE_ALREADY_REGISTERED = 5028,
    INTERNAL_ERROR = 5030,
    ASYNC_NOT_SUPPORTED = 5038,
    ALLOW_COMPATIBILITY = 1,
    VERSION = 1140,
};

/* A registered file (by descriptor) or buffer (by address). */
struct entry {
    struct entry *next;
    int fd;
    const void *base;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock; /* guards the rest */
    struct entry *files, *buffers;
    long opened;
    bool strict; /* the compatibility mode was forbidden */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A code of ours is one of the library's from FIRST_CODE on, and CUDA's below. */
static struct cufile_error wrap(int code)
{
    if (code == 0 || code > FIRST_CODE)
        return (struct cufile_error){code, 0};
    return (struct cufile_error){CUDA_ERROR, code};
}

static int enter(const char *name, enum hipsim_need need)
{
    return hipsim_bridge_get()->enter(name, need);
}

static bool is_refused(void)
{
    const char *mode = getenv("HIPSIM_CUFILE");

    return mode && !strcmp(mode, "refuse");
}

static void write_log(int code)
{
    const char *path = getenv("CUFILE_LOGFILE_PATH");
    FILE *log = fopen(path ? path : "cufile.log", "a");

    if (!log)
        return;
    fprintf(log, "hipsim: cuFileDriverOpen answers %d\n", code);
    fclose(log);
}

struct cufile_error cuFileDriverOpen(void)
{
    int code = enter(__func__, HIPSIM_NEED_INIT);

    pthread_mutex_lock(&registry.lock);
    if (!code && registry.strict && is_refused())
        code = NOT_INITIALIZED;
    registry.opened += code == 0;
    pthread_mutex_unlock(&registry.lock);
    write_log(code);
    return wrap(code);
}

static struct cufile_error close_driver(const char *name)
{
    int code = enter(name, HIPSIM_NEED_INIT);

    pthread_mutex_lock(&registry.lock);
    registry.opened -= !code && registry.opened > 0;
    pthread_mutex_unlock(&registry.lock);
    return wrap(code);
}

struct cufile_error cuFileDriverClose(void)
{
    return close_driver(__func__);
}

struct cufile_error cuFileDriverClose_v2(void)
{
    return close_driver(__func__);
}

long cuFileUseCount(void)
{
    pthread_mutex_lock(&registry.lock);
    long opened = registry.opened;
    pthread_mutex_unlock(&registry.lock);
    return opened;
}

struct cufile_error cuFileGetVersion(int *version)
{
    const char *text = getenv("HIPSIM_CUFILE_VERSION");
    int code = enter(__func__, HIPSIM_NEED_NOTHING);

    if (!code && !version)
        code = INVALID_VALUE;
    if (!code)
        *version = text ? atoi(text) : VERSION;
    return wrap(code);
}

struct cufile_error cuFileSetParameterBool(int parameter, bool value)
{
    pthread_mutex_lock(&registry.lock);
    int code = registry.opened ? INVALID_VALUE : 0;
    if (!code && parameter == ALLOW_COMPATIBILITY)
        registry.strict = !value;
    pthread_mutex_unlock(&registry.lock);
    return wrap(code);
}

/* Adds `entry` to the list unless one with its descriptor and address is there: then `present`. */
static int add(struct entry **list, const struct entry *entry, int present, void **out)
{
    struct entry *found, *copy = malloc(sizeof(*copy));
    int code = copy ? 0 : INTERNAL_ERROR;

    pthread_mutex_lock(&registry.lock);
    for (found = *list; found; found = found->next)
        if (found->fd == entry->fd && found->base == entry->base)
            code = present;
    if (!code) {
        *copy = *entry;
        copy->next = *list;
        *list = copy;
        *out = copy;
        copy = NULL;
    }
    pthread_mutex_unlock(&registry.lock);
    free(copy);
    return code;
}

static int check_descriptor(const struct cufile_descriptor *descriptor)
{
    if (!descriptor)
        return INVALID_VALUE;
    if (descriptor->type != 1 || fcntl(descriptor->handle.fd, F_GETFD) < 0)
        return INVALID_FILE_TYPE;
    return is_refused() ? IO_NOT_SUPPORTED : 0;
}

struct cufile_error cuFileHandleRegister(void **handle, struct cufile_descriptor *descriptor)
{
    int code = enter(__func__, HIPSIM_NEED_INIT);

    if (!code)
        code = handle ? check_descriptor(descriptor) : INVALID_VALUE;
    if (!code && cuFileUseCount() == 0)
        code = NOT_INITIALIZED;
    if (!code) {
        struct entry file = {.fd = descriptor->handle.fd};
        code = add(&registry.files, &file, HANDLE_ALREADY_REGISTERED, handle);
    }
    return wrap(code);
}

void cuFileHandleDeregister(void *handle)
{
    struct entry **link, *found;

    if (enter(__func__, HIPSIM_NEED_NOTHING))
        return;
    pthread_mutex_lock(&registry.lock);
    for (link = &registry.files; *link && *link != handle; link = &(*link)->next)
        ;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&registry.lock);
    if (found && fcntl(found->fd, F_GETFD) < 0) {
        fprintf(stderr, "hipsim: cuFileHandleDeregister after its descriptor was closed\n");
        abort();
    }
    free(found);
}

struct cufile_error cuFileBufRegister(const void *base, size_t bytes, int flags)
{
    struct entry buffer = {.fd = -1, .base = base, .bytes = bytes};
    struct hipsim_range range;
    void *out;
    int code = enter(__func__, HIPSIM_NEED_DEVICE);

    (void)flags;
    if (!code && (!base || bytes == 0))
        code = INVALID_VALUE;
    if (!code && hipsim_bridge_get()->resolve(base, bytes, &range))
        code = RANGE_ERROR;
    if (!code) {
        hipsim_bridge_get()->put(&range);
        code = add(&registry.buffers, &buffer, ALREADY_REGISTERED, &out);
    }
    return wrap(code);
}

struct cufile_error cuFileBufDeregister(const void *base)
{
    struct entry **link, *found;
    int code = enter(__func__, HIPSIM_NEED_INIT);

    if (code)
        return wrap(code);
    pthread_mutex_lock(&registry.lock);
    for (link = &registry.buffers; *link && (*link)->base != base; link = &(*link)->next)
        ;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&registry.lock);
    free(found);
    return wrap(found ? 0 : NOT_REGISTERED);
}

struct transfer {
    bool write;
    struct entry *handle;
    char *base;
    size_t bytes;
    off_t file_offset;
    off_t base_offset;
};

/* The handle's descriptor, and whether a registered buffer is long enough. */
static int look_up(const struct transfer *transfer, int *fd)
{
    size_t end = (size_t)transfer->base_offset + transfer->bytes;
    int code = HANDLE_NOT_REGISTERED;

    pthread_mutex_lock(&registry.lock);
    for (struct entry *file = registry.files; file; file = file->next)
        if (file == transfer->handle) {
            code = 0;
            *fd = file->fd;
        }
    for (struct entry *buffer = registry.buffers; buffer && !code; buffer = buffer->next)
        if (buffer->base == transfer->base && end > buffer->bytes)
            code = RANGE_ERROR;
    pthread_mutex_unlock(&registry.lock);
    return code;
}

/* One call of the kernel's. A descriptor with O_DIRECT takes no unaligned rest of a file, so data
 * goes through aligned memory, as the real library's does. */
static ssize_t call(bool write, int fd, char *view, size_t bytes, off_t offset)
{
    enum { PIECE = 1 << 20 };
    void *host = NULL;
    size_t asked = bytes < PIECE ? bytes : PIECE;
    ssize_t n;

    if (posix_memalign(&host, 4096, PIECE))
        return -1;
    if (write)
        memcpy(host, view, asked);
    n = write ? pwrite(fd, host, asked, offset) : pread(fd, host, asked, offset);
    if (!write && n > 0)
        memcpy(view, host, (size_t)n);
    free(host);
    return n;
}

/* Moves up to `end` bytes; the count, or -1 with errno if the first call fails. */
static ssize_t move(const struct transfer *transfer, int fd, char *view, size_t end)
{
    size_t done = 0;

    while (done < end) {
        ssize_t n =
            call(transfer->write, fd, view + done, end - done, transfer->file_offset + (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && done == 0)
            return -1;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

static ssize_t run(const struct transfer *transfer, int fd, const struct hipsim_range *range)
{
    struct hipsim_fault fault = hipsim_bridge_get()->fault();
    bool limited = fault.action == HIPSIM_FAULT_ERRNO || fault.action == HIPSIM_FAULT_SHORT;
    size_t end = limited && fault.bytes < transfer->bytes ? (size_t)fault.bytes : transfer->bytes;
    ssize_t done = move(transfer, fd, range->view, end);

    if (done > 0)
        hipsim_bridge_get()->count(HIPSIM_COUNT_cufile_bytes, done);
    if (fault.action != HIPSIM_FAULT_ERRNO || done < 0)
        return done;
    errno = fault.code;
    return -1;
}

static ssize_t start(const char *name, const struct transfer *transfer)
{
    const struct hipsim_bridge *bridge = hipsim_bridge_get();
    struct hipsim_range range;
    ssize_t result;
    int fd = -1, code = bridge->enter(name, HIPSIM_NEED_DEVICE);

    bridge->count(transfer->write ? HIPSIM_COUNT_cufile_writes : HIPSIM_COUNT_cufile_reads, 1);
    if (!code && (!transfer->base || transfer->file_offset < 0 || transfer->base_offset < 0))
        code = INVALID_VALUE;
    if (!code)
        code = look_up(transfer, &fd);
    if (!code && bridge->resolve(transfer->base + transfer->base_offset, transfer->bytes, &range))
        code = RANGE_ERROR;
    if (code)
        return -wrap(code).code;
    result = run(transfer, fd, &range);
    bridge->put(&range);
    return result;
}

ssize_t cuFileRead(void *handle, void *base, size_t bytes, off_t file_offset, off_t base_offset)
{
    struct transfer transfer = {false, handle, base, bytes, file_offset, base_offset};

    return start(__func__, &transfer);
}

ssize_t cuFileWrite(void *handle, const void *base, size_t bytes, off_t file_offset,
                    off_t base_offset)
{
    struct transfer transfer = {true,  handle,      (void *)(uintptr_t)base,
                                bytes, file_offset, base_offset};

    return start(__func__, &transfer);
}

struct cufile_error cuFileStreamRegister(void *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return wrap(ASYNC_NOT_SUPPORTED);
}

struct cufile_error cuFileStreamDeregister(void *stream)
{
    (void)stream;
    return wrap(ASYNC_NOT_SUPPORTED);
}

struct cufile_error cuFileReadAsync(void *handle, void *base, size_t *bytes, off_t *file_offset,
                                    off_t *base_offset, ssize_t *done, void *stream)
{
    (void)handle;
    (void)base;
    (void)bytes;
    (void)file_offset;
    (void)base_offset;
    (void)done;
    (void)stream;
    return wrap(ASYNC_NOT_SUPPORTED);
}

struct cufile_error cuFileWriteAsync(void *handle, void *base, size_t *bytes, off_t *file_offset,
                                     off_t *base_offset, ssize_t *done, void *stream)
{
    return cuFileReadAsync(handle, base, bytes, file_offset, base_offset, done, stream);
}
