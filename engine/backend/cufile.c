/* SPDX-License-Identifier: MIT */
/*
 * CuFile: NVIDIA's library for transfers between GPU memory and files. It is used where its kernel
 * driver, nvidia-fs, is loaded; the setting `cufile` turns it off, or on everywhere, compatibility
 * mode included, in which the library stages through host memory by itself.
 *
 * The library is a guest that has to be watched. It is loaded and opened by the first request that
 * could use it and never before. Its log, by default a file in the user's folder, goes to memory
 * (cufile_log.c). It is given a descriptor of our own. Releases up to 1.20 at least spin for ever
 * in cuFileDriverOpen where neither nvidia-fs nor /proc/modules is there.
 */
#include "../device/cuda.h"
#include "../device/dl.h"
#include "../log.h"
#include "../peer.h"
#include "cufile_log.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define SCORE 90
#define LANES 8

#define NVIDIA_FS "/proc/driver/nvidia-fs/devcount"
#define MODULES "/proc/modules"
/* The first version that was seen to spin without MODULES; 1.14 was seen not to. */
#define SPINS_FROM 1150

/* Every code of the library's own is this much and more. */
#define CODE_BASE 5000

struct cufile_error {
    int code;
    int cuda;
};

struct cufile_descriptor {
    int type; /* 1: a descriptor of Linux */
    union {
        int fd;
        void *pointer;
    } handle;
    const void *operations;
};

/* The library's functions. */
struct functions {
    struct cufile_error (*cuFileDriverOpen)(void);
    struct cufile_error (*cuFileHandleRegister)(void **handle,
                                                struct cufile_descriptor *descriptor);
    void (*cuFileHandleDeregister)(void *handle);
    ssize_t (*cuFileRead)(void *handle, void *base, size_t size, off_t offset, off_t base_offset);
    ssize_t (*cuFileWrite)(void *handle, const void *base, size_t size, off_t offset,
                           off_t base_offset);
    /* Of later releases. */
    struct cufile_error (*cuFileGetVersion)(int *version);
    struct cufile_error (*cuFileSetParameterBool)(int parameter, bool value);
    long (*cuFileUseCount)(void);
};

#define SYMBOL(name, required)                                                                     \
    {                                                                                              \
#name, offsetof(struct functions, name), required                                          \
    }
static const struct hipio_dl_symbol symbols[] = {
    SYMBOL(cuFileDriverOpen, true),
    SYMBOL(cuFileHandleRegister, true),
    SYMBOL(cuFileHandleDeregister, true),
    SYMBOL(cuFileRead, true),
    SYMBOL(cuFileWrite, true),
    SYMBOL(cuFileGetVersion, false),
    SYMBOL(cuFileSetParameterBool, false),
    SYMBOL(cuFileUseCount, false),
};

#define PARAMETER_ALLOW_COMPATIBILITY 1

static int start(struct hipio_dl *opened);

static const char *const names[] = {"libcufile.so.0", "/usr/local/cuda/lib64/libcufile.so.0", NULL};
static struct hipio_dl library = {.names = names, .start = start};
static struct functions cufile;

static struct {
    pthread_once_t once;
    bool driver;             /* nvidia-fs is loaded; constant after `once` */
    _Atomic bool refused;    /* the library can't be used in this process */
    _Atomic bool compatible; /* whoever opens it allows its compatibility mode */
} state = {.once = PTHREAD_ONCE_INIT};

static void look_for_driver(void)
{
    state.driver = access(NVIDIA_FS, R_OK) == 0;
}

static bool has_driver(void)
{
    pthread_once(&state.once, look_for_driver);
    return state.driver;
}

/* ---- The library ---- */

static int check_version(const struct hipio_dl *opened)
{
    int version = 0;

    if (cufile.cuFileGetVersion && cufile.cuFileGetVersion(&version).code != 0)
        version = 0;
    if (version >= SPINS_FROM && !has_driver() && access(MODULES, R_OK) != 0)
        return hipio_status_set(-ENODEV,
                                "%s, version %d, would wait for ever: there is no " MODULES,
                                opened->file, version);
    return 0;
}

static int start(struct hipio_dl *opened)
{
    int status = hipio_dl_fill(opened, symbols, sizeof symbols / sizeof symbols[0], &cufile);

    if (status == 0)
        status = check_version(opened);
    if (status < 0)
        return status;
    /* Parameters are the opener's; where the program has opened the library, they are its own. */
    const bool is_open = cufile.cuFileUseCount && cufile.cuFileUseCount() > 0;
    if (!is_open && !atomic_load(&state.compatible) && cufile.cuFileSetParameterBool)
        cufile.cuFileSetParameterBool(PARAMETER_ALLOW_COMPATIBILITY, false);
    const struct cufile_error error = cufile.cuFileDriverOpen();
    if (error.code == 0)
        return 0;
    return hipio_status_set(-ENODEV, "%s: cuFileDriverOpen failed: %d (cuda %d)", opened->file,
                            error.code, error.cuda);
}

/* Opens the library on first need; a failure is for good. */
static int open_library(void)
{
    struct hipio_cufile_log log;

    if (hipio_dl_usable(&library))
        return 0;
    if (atomic_load(&state.refused))
        return hipio_status_set(-EOPNOTSUPP, "cuFile was found unusable before");
    hipio_cufile_log_divert(&log);
    const int status = hipio_dl_attach(&library, true);
    hipio_cufile_log_restore(&log);
    if (status == 0)
        return 0;
    atomic_store(&state.refused, true);
    hipio_log(HIPIO_LOG_INFO, "cuFile is not used: %s", hipio_status_text());
    return -EOPNOTSUPP;
}

static bool present(const struct hipio_file *file)
{
    const uint64_t wish = hipio_file_tunables(file)->cufile;

    if (wish == HIPIO_OFF || atomic_load(&state.refused))
        return false;
    return wish == HIPIO_FORCE || has_driver();
}

/* ---- Handles ---- */

enum registration { NEW, REGISTERED, REFUSED };

struct record {
    struct hipio_attachment attachment; /* first */
    pthread_mutex_t lock;               /* guards the registration */
    int state;                          /* atomic; the rest is constant once not NEW */
    void *handle;
    char reason[HIPIO_TEXT_MAX / 2];
};

static char room;

static int state_of(const struct record *record)
{
    return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
}

static void destroy(struct hipio_attachment *attachment, bool forked)
{
    struct record *record = (struct record *)attachment;

    if (!forked && state_of(record) == REGISTERED && hipio_dl_usable(&library))
        cufile.cuFileHandleDeregister(record->handle);
    if (!forked)
        pthread_mutex_destroy(&record->lock);
    free(record);
}

static struct hipio_attachment *make(void)
{
    struct record *record = calloc(1, sizeof *record);

    if (!record)
        return NULL;
    pthread_mutex_init(&record->lock, NULL);
    record->attachment.destroy = destroy;
    return &record->attachment;
}

static int register_handle(const struct hipio_file *file, const struct hipio_direct *direct,
                           int device, struct record *record)
{
    struct cufile_descriptor descriptor = {.type = 1};
    struct cufile_error error;
    bool pushed;
    int status = hipio_cuda_enter_device(device, &pushed);

    if (status < 0)
        return status;
    descriptor.handle.fd = direct->fd;
    error = cufile.cuFileHandleRegister(&record->handle, &descriptor);
    hipio_cuda_leave(pushed, 0);
    if (error.code == 0)
        return 0;
    return hipio_status_set(-EOPNOTSUPP, "%s: cuFile does not take this file (%s): %d (cuda %d)",
                            hipio_file_name(file), hipio_file_system(file), error.code, error.cuda);
}

static int register_once(struct hipio_file *file, const struct hipio_direct *direct, int device,
                         struct record *record)
{
    pthread_mutex_lock(&record->lock);
    if (state_of(record) == NEW) {
        const int status = register_handle(file, direct, device, record);
        if (status < 0)
            snprintf(record->reason, sizeof record->reason, "%s", hipio_status_text());
        __atomic_store_n(&record->state, status < 0 ? REFUSED : REGISTERED, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&record->lock);
    if (state_of(record) == REGISTERED)
        return 0;
    return hipio_status_set(-EOPNOTSUPP, "%s", record->reason);
}

/* The descriptor comes first, so that it goes last: a handle must not outlive it. */
static int prepare(struct hipio_file *file, int device)
{
    const struct hipio_direct *direct;

    if (hipio_file_tunables(file)->cufile == HIPIO_FORCE)
        atomic_store(&state.compatible, true);
    int status = open_library();
    if (status == 0)
        status = hipio_direct_open(file, &direct);
    if (status < 0)
        return status;
    struct record *record = (struct record *)hipio_file_attachment(file, &room, make);
    if (!record)
        return hipio_status_set(-ENOMEM, "%s: no memory for a cuFile handle",
                                hipio_file_name(file));
    return register_once(file, direct, device, record);
}

/* ---- Transfers ---- */

/* The library's own codes: what is refused is staged instead. */
static int decode(long code)
{
    switch (code - CODE_BASE) {
    case 12: /* pointer, its type, its range, its context, a value */
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
    case 22:
    case 47:
        return -EINVAL;
    case 36: /* GPU memory could not be pinned, no memory */
    case 43:
        return -ENOMEM;
    case 44:
        return -EIO;
    default:
        return -EOPNOTSUPP;
    }
}

static int explain(const struct hipio_request *request, int64_t offset, uint64_t length, long code,
                   int error)
{
    return hipio_status_set(error, "%s: cuFile %s of %llu bytes at offset %lld failed: %s (%ld)",
                            hipio_file_name(request->file),
                            request->op == HIPIO_READ ? "read" : "write",
                            (unsigned long long)length, (long long)offset, strerror(-error), code);
}

static int move(const struct hipio_request *request, void *address, int64_t offset, uint64_t length,
                uint64_t *moved)
{
    const struct record *record =
        (struct record *)hipio_file_attachment(request->file, &room, NULL);
    bool pushed;
    ssize_t got;
    int status = hipio_cuda_enter_device(request->memory.device, &pushed);

    if (status < 0)
        return status;
    errno = 0;
    if (request->op == HIPIO_READ)
        got = cufile.cuFileRead(record->handle, address, length, offset, 0);
    else
        got = cufile.cuFileWrite(record->handle, address, length, offset, 0);
    status = got == -1 ? -errno : 0;
    hipio_cuda_leave(pushed, 0);
    if (got >= 0) {
        *moved = (uint64_t)got;
        return 0;
    }
    if (got != -1)
        status = decode(-got);
    else if (status == 0)
        status = -EIO;
    return explain(request, offset, length, got, status);
}

static const struct hipio_peer peer = {
    .backend = &hipio_backend_cufile,
    .ops = &hipio_device_cuda,
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

static int usable(struct hipio_file *file)
{
    if (hipio_device_cuda.attach(false) != 0 || hipio_device_cuda.device_count() < 1)
        return -ENODEV;
    if (!present(file))
        return hipio_status_set(-ENOTSUP,
                                "%s: cuFile is not usable here: it is turned off, refused its "
                                "service, or the nvidia-fs driver is not loaded",
                                hipio_file_name(file));
    return prepare(file, 0);
}

const struct hipio_backend hipio_backend_cufile = {
    .name = "cufile",
    .kind = HIPIO_BACKEND_FAST_PATH,
    .score = score,
    .io = io,
    .eligible = eligible,
    .share = hipio_peer_share,
    .usable = usable,
};
