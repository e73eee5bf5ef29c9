/* SPDX-License-Identifier: MIT */
/* File reads and writes straight to and from device memory, by the rules of the AMD kernel. The
 * data goes through the simulator's view, so the descriptor's own flags act as they really do. */
#include "ais.h"

#include "counters.h"
#include "error.h"
#include "flavor.h"
#include "memory.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { AIS_VERSION = 70000000, AIS_MAX = 0x7ffff000 };

/* The entry points take an 8-byte union of a descriptor and a pointer by value. */
typedef union {
    void *pointer;
    int fd;
    char bytes[8];
} ais_handle;

struct ais_call {
    bool write;
    int fd;
    char *view;
    uint64_t size;
    int64_t offset;
    struct hipsim_fault fault;
    uint64_t moved;
};

/* File systems that the kernel refuses to map for peer-to-peer transfers. */
static bool refused_file_system(int fd)
{
    static const unsigned long refused[] = {
        0x01021994 /* tmpfs */, 0x794c7630 /* overlay */, 0x6969 /* nfs */,
        0xff534d42 /* cifs */,  0x0bd00bd0 /* lustre */,  0x19830326 /* beegfs */,
        0x65735546 /* fuse */,  0x858458f6 /* ramfs */,
    };
    struct statfs facts;

    if (fstatfs(fd, &facts))
        return true;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if ((unsigned long)facts.f_type == refused[i])
            return true;
    return false;
}

/* Moves up to `end` bytes. Returns 0 or an errno; the end of the file is no error. */
static int transfer(struct ais_call *call, uint64_t end)
{
    while (call->moved < end) {
        size_t left = end - call->moved;
        off_t at = call->offset + (int64_t)call->moved;
        ssize_t n = call->write ? pwrite(call->fd, call->view + call->moved, left, at)
                                : pread(call->fd, call->view + call->moved, left, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            break;
        call->moved += (uint64_t)n;
    }
    return 0;
}

static int serve(struct ais_call *call)
{
    const struct hipsim_settings *settings = hipsim_settings_get();
    uint64_t limit = call->fault.action ? call->fault.bytes : UINT64_MAX;
    int flags = fcntl(call->fd, F_GETFL), error;

    if (flags < 0)
        return EBADF;
    if (!(flags & O_DIRECT))
        hipsim_counters_add(HIPSIM_COUNT_ais_buffered, 1);
    if (settings->ais == HIPSIM_AIS_REFUSE || settings->apu)
        return ENODEV;
    if (settings->ais == HIPSIM_AIS_STRICT && refused_file_system(call->fd))
        return ENODEV;
    if (call->size > AIS_MAX)
        return ESPIPE;
    error = transfer(call, call->size < limit ? call->size : limit);
    if (!error && call->fault.action == HIPSIM_FAULT_ERRNO)
        error = call->fault.code;
    hipsim_counters_add(HIPSIM_COUNT_ais_bytes, (int64_t)call->moved);
    return error;
}

static bool misaligned(const struct ais_call *call, const struct hipsim_range *range)
{
    uint64_t place = (uint64_t)(range->view - range->block->view);

    return (place | call->size | (uint64_t)call->offset) % hipsim_settings_get()->ais_align != 0;
}

/* Runs the call on a resolved range: the outputs are written here and nowhere else. */
static int finish(struct ais_call *call, struct hipsim_range *range, uint64_t *copied,
                  int32_t *status)
{
    int error;

    call->view = range->view;
    error = misaligned(call, range) ? EINVAL : serve(call);
    *copied = call->moved;
    *status = -error;
    return error ? HIPSIM_UNKNOWN : 0;
}

static int start(struct ais_call *call, void *device, uint64_t *copied, int32_t *status)
{
    struct hipsim_range range;
    int rc;

    if (call->size == 0)
        return 0;
    if (!device || !copied || !status || call->offset < 0)
        return HIPSIM_INVALID_VALUE;
    call->fault = hipsim_thread_get()->fault;
    if (call->fault.action == HIPSIM_FAULT_LATE)
        call->fault.action = HIPSIM_FAULT_NONE;
    if (hipsim_memory_resolve(device, call->size, &range))
        return HIPSIM_UNKNOWN;
    /* Plain device memory of the thread's current device, nothing else. */
    if (range.kind != HIPSIM_KIND_DEVICE || range.block->device != hipsim_current_device())
        rc = HIPSIM_UNKNOWN;
    else
        rc = finish(call, &range, copied, status);
    hipsim_memory_put(&range);
    return rc;
}

static int file_read(ais_handle handle, void *device, uint64_t size, int64_t offset,
                     uint64_t *copied, int32_t *status)
{
    struct ais_call call = {.fd = handle.fd, .size = size, .offset = offset};
    int rc = hipsim_enter("hipAmdFileRead", HIPSIM_NEED_DEVICE);

    hipsim_counters_add(HIPSIM_COUNT_ais_reads, 1);
    return hipsim_leave(rc ? rc : start(&call, device, copied, status));
}

static int file_write(ais_handle handle, void *device, uint64_t size, int64_t offset,
                      uint64_t *copied, int32_t *status)
{
    struct ais_call call = {.write = true, .fd = handle.fd, .size = size, .offset = offset};
    int rc = hipsim_enter("hipAmdFileWrite", HIPSIM_NEED_DEVICE);

    hipsim_counters_add(HIPSIM_COUNT_ais_writes, 1);
    return hipsim_leave(rc ? rc : start(&call, device, copied, status));
}

int hipsim_ais_entry(const char *symbol, int version, void **function)
{
    bool read = !strcmp(symbol, "hipAmdFileRead"), write = !strcmp(symbol, "hipAmdFileWrite");

    if (hipsim_flavor.major < 7 || hipsim_settings_get()->ais == HIPSIM_AIS_OFF ||
        (!read && !write))
        return HIPSIM_AIS_MISSING;
    if (version < AIS_VERSION)
        return HIPSIM_AIS_TOO_OLD;
    *function = read ? (void *)file_read : (void *)file_write;
    return HIPSIM_AIS_FOUND;
}
