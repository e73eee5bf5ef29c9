/* SPDX-License-Identifier: MIT */
/*
 * Direct: opens, keeps, parks and closes second descriptors.
 */
#include "direct.h"
#include "log.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* With so many parked, no more second descriptors are opened: what can't be closed is bounded. */
#define PARKED_MAX 64

/* A descriptor of ours and the file that it was opened on: a library that closes what is not its
 * own (cuFile is given this one) must not make us close a stranger. */
struct second {
    int fd;
    dev_t device;
    ino_t inode;
};

static struct {
    pthread_mutex_t lock; /* guards the rest */
    unsigned n;
    struct second second[PARKED_MAX];
} parked = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum state { CLOSED, OPEN, REFUSED };

struct record {
    struct hipio_attachment attachment; /* first */
    pthread_mutex_t lock;               /* guards the opening */
    int state;                          /* atomic; what is below is constant once not CLOSED */
    struct hipio_direct direct;
    struct second second;
    char reason[HIPIO_TEXT_MAX];
};

static char room;

/* ---- Closing ---- */

static bool is_still_ours(const struct second *second)
{
    struct stat now;

    return fstat(second->fd, &now) == 0 && now.st_dev == second->device &&
           now.st_ino == second->inode;
}

/* Does anybody hold a record lock on the file? A lock that belongs to an open file description
 * conflicts with those of every process, the calling one included, which plain F_GETLK leaves out.
 */
static bool is_locked(int fd)
{
    struct flock any = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_OFD_GETLK, &any) == 0)
        return any.l_type != F_UNLCK;
    return errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS;
}

/* True: nothing is left of it. */
static bool try_close(const struct second *second)
{
    if (!is_still_ours(second))
        return true;
    if (is_locked(second->fd))
        return false;
    close(second->fd);
    return true;
}

/* With the lock held. */
static void close_parked(void)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < parked.n; i++)
        if (!try_close(&parked.second[i]))
            parked.second[kept++] = parked.second[i];
    parked.n = kept;
}

/* Where the list is full all the same, the descriptor stays open for the life of the process:
 * better than a lock that is silently gone. */
static void park(const struct second *second)
{
    pthread_mutex_lock(&parked.lock);
    close_parked();
    if (!try_close(second) && parked.n < PARKED_MAX)
        parked.second[parked.n++] = *second;
    pthread_mutex_unlock(&parked.lock);
}

unsigned hipio_direct_parked(void)
{
    pthread_mutex_lock(&parked.lock);
    close_parked();
    const unsigned n = parked.n;
    pthread_mutex_unlock(&parked.lock);
    return n;
}

/* A forked child has no record locks to lose, and the list may have been locked by a thread that is
 * not there. */
static void destroy(struct hipio_attachment *attachment, bool forked)
{
    struct record *record = (struct record *)attachment;

    if (record->second.fd >= 0 && forked)
        close(record->second.fd);
    else if (record->second.fd >= 0)
        park(&record->second);
    if (!forked)
        pthread_mutex_destroy(&record->lock);
    free(record);
}

/* ---- Opening ---- */

static struct hipio_attachment *make(void)
{
    struct record *record = calloc(1, sizeof *record);

    if (!record)
        return NULL;
    pthread_mutex_init(&record->lock, NULL);
    record->second.fd = -1;
    record->attachment.destroy = destroy;
    return &record->attachment;
}

#ifdef STATX_DIOALIGN
/* As the kernel tells them, from 6.1 on. */
static bool ask_kernel(int fd, struct hipio_direct *direct)
{
    struct statx facts;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) != 0 ||
        !(facts.stx_mask & STATX_DIOALIGN))
        return false;
    direct->offset_align = facts.stx_dio_offset_align;
    direct->memory_align = facts.stx_dio_mem_align;
    return true;
}
#else
static bool ask_kernel(int fd, struct hipio_direct *direct)
{
    (void)fd;
    (void)direct;
    return false;
}
#endif

/* False: the kernel says that there is no O_DIRECT. */
static bool read_alignments(int fd, struct hipio_direct *direct)
{
    if (!ask_kernel(fd, direct))
        direct->offset_align = direct->memory_align = HIPIO_DIRECT_ALIGN;
    return direct->offset_align > 0 && direct->memory_align > 0;
}

static int check_kind(struct hipio_file *file, int fd, struct second *second)
{
    struct stat facts;

    if (fd < 0 || fstat(fd, &facts) != 0)
        return hipio_status_set(-EOPNOTSUPP, "%s: no descriptor to reopen", hipio_file_name(file));
    if (!S_ISREG(facts.st_mode) && !S_ISBLK(facts.st_mode))
        return hipio_status_set(-EOPNOTSUPP, "%s: neither a regular file nor a block device",
                                hipio_file_name(file));
    second->device = facts.st_dev;
    second->inode = facts.st_ino;
    return 0;
}

/* Opens the same file again, with the other value of O_DIRECT. */
static int reopen(int fd, int flags, struct second *second)
{
    char path[64];
    struct stat facts;

    pthread_mutex_lock(&parked.lock);
    close_parked();
    const bool full = parked.n >= PARKED_MAX;
    pthread_mutex_unlock(&parked.lock);
    if (full)
        return -EMFILE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int keep = flags & (O_ACCMODE | O_SYNC | O_DSYNC | O_LARGEFILE);
    second->fd = open(path, keep | O_CLOEXEC | O_NOCTTY | (~flags & O_DIRECT));
    if (second->fd < 0)
        return -errno;
    if (fstat(second->fd, &facts) == 0 && facts.st_dev == second->device &&
        facts.st_ino == second->inode)
        return 0;
    close(second->fd);
    second->fd = -1;
    return -ESTALE;
}

static int no_second(struct hipio_file *file, bool own, int err)
{
    static bool told;

    if (!own && err == -EINVAL)
        return hipio_status_set(-EOPNOTSUPP, "%s: %s has no O_DIRECT here", hipio_file_name(file),
                                hipio_file_system(file));
    hipio_status_set(-EOPNOTSUPP, "%s: no second descriptor %s O_DIRECT: %s", hipio_file_name(file),
                     own ? "without" : "with", strerror(-err));
    hipio_log_once(&told, HIPIO_LOG_WARN, "%s; the file is served through the one it has",
                   hipio_status_text());
    return -EOPNOTSUPP;
}

static int open_second(struct hipio_file *file, struct record *record)
{
    const int fd = hipio_file_descriptor(file);
    struct hipio_direct *direct = &record->direct;
    int status = check_kind(file, fd, &record->second);

    if (status < 0)
        return status;
    const int flags = fcntl(fd, F_GETFL);
    const bool own = hipio_file_is_direct(file);
    if (!read_alignments(fd, direct))
        return hipio_status_set(-EOPNOTSUPP, "%s: %s has no O_DIRECT for it", hipio_file_name(file),
                                hipio_file_system(file));
    status = reopen(fd, flags, &record->second);
    if (status < 0)
        status = no_second(file, own, status);
    direct->fd = own ? fd : record->second.fd;
    direct->plain = own ? record->second.fd : fd;
    return own ? 0 : status;
}

static struct record *find(struct hipio_file *file, bool create)
{
    return (struct record *)hipio_file_attachment(file, &room, create ? make : NULL);
}

static int state_of(const struct record *record)
{
    return __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
}

int hipio_direct_open(struct hipio_file *file, const struct hipio_direct **out)
{
    struct record *record = find(file, true);

    if (!record)
        return hipio_status_set(-EOPNOTSUPP, "%s: no memory for a second descriptor",
                                hipio_file_name(file));
    if (state_of(record) == CLOSED) {
        pthread_mutex_lock(&record->lock);
        if (state_of(record) == CLOSED) {
            const int status = open_second(file, record);
            if (status < 0)
                snprintf(record->reason, sizeof record->reason, "%s", hipio_status_text());
            __atomic_store_n(&record->state, status < 0 ? REFUSED : OPEN, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&record->lock);
    }
    if (state_of(record) == REFUSED)
        return hipio_status_set(-EOPNOTSUPP, "%s", record->reason);
    *out = &record->direct;
    return 0;
}

const struct hipio_direct *hipio_direct_known(struct hipio_file *file)
{
    const struct record *record = find(file, false);

    return record && state_of(record) == OPEN ? &record->direct : NULL;
}
