/* SPDX-License-Identifier: MIT */
/*
 * AIS: AMD's Infinity Storage, the kernel's DMA between a GPU's memory and a file opened with
 * O_DIRECT, through two functions that the HIP runtime (7.x) gives out by name.
 *
 * Such a call answers in three ways at once: what it returns, a status that is the kernel's errno,
 * and a count that may be more than 0 whatever the others say. It writes the last two only when it
 * gets that far, and it works on the thread's current device, not on the memory's.
 */
#include "../device/hip.h"
#include "../log.h"
#include "../peer.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SCORE 100
/* Each call takes one lock of the driver: a few at a time keep a device busy. */
#define LANES 4

/* Passed by value where the runtime expects a union of a descriptor and a pointer. */
union ais_handle {
    void *pointer;
    int fd;
};

typedef int (*ais_function)(union ais_handle handle, void *address, uint64_t size, int64_t offset,
                            uint64_t *copied, int32_t *status);

static struct {
    pthread_mutex_t lock; /* guards the look-up */
    _Atomic bool sought;  /* what is below is final */
    bool there;
    ais_function read;
    ais_function write;
    _Atomic bool proven; /* a call has succeeded in this process */
} ais = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int find_functions(void)
{
    void *read, *write;
    int status = hipio_hip_find("hipAmdFileRead", &read);

    if (status == 0)
        status = hipio_hip_find("hipAmdFileWrite", &write);
    if (status == 0) {
        *(void **)&ais.read = read;
        *(void **)&ais.write = write;
    }
    return status;
}

/* Looks for the functions until the runtime has answered once. */
static bool is_there(void)
{
    if (!atomic_load_explicit(&ais.sought, memory_order_acquire)) {
        pthread_mutex_lock(&ais.lock);
        if (!atomic_load_explicit(&ais.sought, memory_order_relaxed)) {
            const int status = find_functions();
            ais.there = status == 0;
            atomic_store_explicit(&ais.sought, status != -ENODEV, memory_order_release);
        }
        pthread_mutex_unlock(&ais.lock);
    }
    return atomic_load_explicit(&ais.sought, memory_order_acquire) && ais.there;
}

static bool present(const struct hipio_file *file)
{
    (void)file;
    return is_there();
}

static int prepare(struct hipio_file *file, int device)
{
    const struct hipio_direct *direct;

    (void)device;
    return hipio_direct_open(file, &direct);
}

struct call {
    const struct hipio_request *request;
    int fd;
    void *address;
    uint64_t length;
    int64_t offset;
    uint64_t copied;
    int32_t status;
};

static int call_function(void *context)
{
    struct call *call = context;
    const ais_function function = call->request->op == HIPIO_READ ? ais.read : ais.write;
    union ais_handle handle = {.pointer = NULL};

    handle.fd = call->fd;
    call->copied = 0;
    call->status = 0;
    return function(handle, call->address, call->length, call->offset, &call->copied,
                    &call->status);
}

/* What the answer means to us. A runtime that knows nothing of an error, in a process where no call
 * has ever worked, most likely has a kernel without the interface. */
static int decode(const struct call *call, int code)
{
    if (call->status < 0)
        return call->status;
    switch (code) {
    case 0:
        return call->status == 0 ? 0 : -EIO;
    case GPU_INVALID_VALUE:
        return -EINVAL;
    case GPU_NO_DEVICE:
    case GPU_INVALID_DEVICE:
        return -ENODEV;
    case GPU_NOT_SUPPORTED:
        return -EOPNOTSUPP;
    case GPU_UNKNOWN:
        return atomic_load(&ais.proven) ? -EINVAL : -EOPNOTSUPP;
    default:
        return -EIO;
    }
}

static int explain(const struct call *call, int code, int error)
{
    const bool reads = call->request->op == HIPIO_READ;

    return hipio_status_set(error,
                            "%s: AIS %s of %llu bytes at offset %lld failed: %s (hip %d, kernel "
                            "%d, %llu bytes moved)",
                            hipio_file_name(call->request->file), reads ? "read" : "write",
                            (unsigned long long)call->length, (long long)call->offset,
                            strerror(-error), code, (int)call->status,
                            (unsigned long long)call->copied);
}

static int move(const struct hipio_request *request, void *address, int64_t offset, uint64_t length,
                uint64_t *moved)
{
    struct call call = {.request = request,
                        .fd = hipio_direct_known(request->file)->fd,
                        .address = address,
                        .length = length,
                        .offset = offset};
    int code = 0;
    int status = hipio_hip_call(request->memory.device, call_function, &call, &code);

    if (status < 0)
        return status;
    *moved = call.copied;
    status = decode(&call, code);
    if (status < 0)
        return explain(&call, code, status);
    atomic_store(&ais.proven, true);
    return 0;
}

static const struct hipio_peer peer = {
    .backend = &hipio_backend_ais,
    .ops = &hipio_device_hip,
    .score = SCORE,
    .lanes = LANES,
    .present = present,
    .prepare = prepare,
    .call = move,
};

static int score(const struct hipio_part *part)
{
    return hipio_peer_score(&peer, part);
}

static int io(struct hipio_part *part)
{
    return hipio_peer_io(&peer, part);
}

static bool eligible(const struct hipio_part *part, int error)
{
    (void)part;
    return hipio_peer_is_eligible(error);
}

/* File systems that the kernel can't map for peer transfers, whatever O_DIRECT means on them. */
static bool is_hopeless(const char *file_system)
{
    static const char *const names[] = {
        "tmpfs", "ramfs", "overlay",  "hugetlbfs", "fuse", "lustre", "beegfs", "cifs",  "smb",
        "smb2",  "9p",    "ecryptfs", "vfat",      "zfs",  "exfat",  "ntfs",   "memory"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], file_system) == 0)
            return true;
    return false;
}

static int usable(struct hipio_file *file)
{
    const struct hipio_direct *direct;

    if (hipio_device_hip.attach(false) != 0)
        return -ENODEV;
    if (hipio_hip_is_integrated(0))
        return 0; /* memory that is read and written in place */
    if (!is_there())
        return hipio_status_set(-ENOTSUP, "%s: this HIP runtime has no file functions (AIS)",
                                hipio_file_name(file));
    if (is_hopeless(hipio_file_system(file)))
        return hipio_status_set(-ENOTSUP, "%s: AIS does not work on %s", hipio_file_name(file),
                                hipio_file_system(file));
    return hipio_direct_open(file, &direct);
}

const struct hipio_backend hipio_backend_ais = {
    .name = "ais",
    .kind = HIPIO_BACKEND_FAST_PATH,
    .score = score,
    .io = io,
    .eligible = eligible,
    .share = hipio_peer_share,
    .usable = usable,
};
