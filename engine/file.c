/* SPDX-License-Identifier: MIT */
/*
 * File: facts of an open file, its settings, and the requests that hold it.
 */
#include "file.h"
#include "log.h"
#include "status.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- File systems ---- */

struct file_system {
    uint32_t magic; /* statfs f_type */
    const char *name;
    bool shared; /* other machines may write to it */
};

/* Numbers from the kernel's linux/magic.h and from the file systems' own sources. FUSE may be
 * anything, so it counts as shared, and so does what is not listed. */
static const struct file_system file_systems[] = {
    {0x0000ef53, "ext4", false},
    {0x01021994, "tmpfs", false},
    {0x58465342, "xfs", false},
    {0x9123683e, "btrfs", false},
    {0x794c7630, "overlay", false},
    {0x2fc12fc1, "zfs", false},
    {0xf2f52010, "f2fs", false},
    {0x858458f6, "ramfs", false},
    {0x4d44, "vfat", false},
    {0x2011bab0, "exfat", false},
    {0x5346544e, "ntfs", false},
    {0x3153464a, "jfs", false},
    {0x52654973, "reiserfs", false},
    {0x73717368, "squashfs", false},
    {0xca451a4e, "bcachefs", false},
    {0x64626720, "debugfs", false},
    {0x9fa0, "proc", false},
    {0x62656572, "sysfs", false},
    {0x958458f6, "hugetlbfs", false},
    {0xf15f, "ecryptfs", false},
    {0x6969, "nfs", true},
    {0x0bd00bd0, "lustre", true},
    {0x47504653, "gpfs", true},
    {0x19830326, "beegfs", true},
    {0x00c36400, "ceph", true},
    {0x65735546, "fuse", true},
    {0xff534d42, "cifs", true},
    {0xfe534d42, "smb2", true},
    {0x517b, "smb", true},
    {0x01161970, "gfs2", true},
    {0x7461636f, "ocfs2", true},
    {0x20030528, "orangefs", true},
    {0x5346414f, "afs", true},
    {0x6b414653, "afs", true},
    {0x01021997, "9p", true},
    {0xaad7aaea, "panfs", true},
    {0x73757245, "coda", true},
    {0x564c, "ncp", true},

};

static const struct file_system unknown_system = {0, "unknown", true};
static const struct file_system block_device = {0, "block", false};
static const struct file_system memory_window = {0, "memory", false};

static const struct file_system *find_system(uint32_t magic)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof file_systems[0]; ++i) {
        if (file_systems[i].magic == magic)
            return &file_systems[i];
    }
    return &unknown_system;
}

static const struct file_system *system_of(int fd)
{
    struct stat status;
    struct statfs system;

    if (fstat(fd, &status) == 0 && S_ISBLK(status.st_mode))
        return &block_device;
    if (fstatfs(fd, &system) != 0)
        return &unknown_system;
    return find_system((uint32_t)system.f_type);
}

/* ---- The file ---- */

/* Settings as they were at some time. They stay until the file goes, because requests in flight
 * look at them; a setting that comes back is not stored again, so there are never more of them than
 * were different. */
struct settings {
    struct hipio_tunables tunables;
    struct settings *older;
};

struct hipio_file {
    int fd;       /* -1: a window */
    void *window; /* NULL: a descriptor */
    uint64_t window_size;
    int access;
    bool direct;   /* the descriptor has O_DIRECT */
    pid_t process; /* that made it */
    char *name;
    const struct file_system *system;
    struct settings *settings;             /* list of all; changed under the lock */
    const struct hipio_tunables *in_force; /* atomic; one of the list */
    struct hipio_attachment *attachments;  /* atomic; list that only grows, under the lock */
    pthread_mutex_t lock;                  /* guards the lists and `holders` */
    pthread_cond_t idle;                   /* holders has become 0 */
    uint64_t holders;
    uint64_t resizes; /* atomic */
};

/* Does the descriptor allow what is wanted of it? 0 or -EBADF. */
static int check_descriptor(int fd, const char *name, int access)
{
    const int flags = fcntl(fd, F_GETFL);
    int allowed = HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE;

    if (flags < 0)
        return hipio_status_set(-EBADF, "%s: %d is not an open file descriptor", name, fd);
    if ((flags & O_ACCMODE) == O_RDONLY)
        allowed = HIPIO_ACCESS_READ;
    else if ((flags & O_ACCMODE) == O_WRONLY)
        allowed = HIPIO_ACCESS_WRITE;
    if ((flags & O_PATH) || (access & ~allowed))
        return hipio_status_set(-EBADF, "%s: descriptor %d was not opened for %s", name, fd,
                                access & HIPIO_ACCESS_WRITE ? "writing" : "reading");
    return 0;
}

/* The settings stored for these values, or a new entry of the list; NULL: no memory. Needs the
 * lock. */
static struct settings *intern(struct hipio_file *file, const struct hipio_tunables *tunables)
{
    struct settings *entry = file->settings;

    while (entry && memcmp(&entry->tunables, tunables, sizeof *tunables) != 0)
        entry = entry->older;
    if (entry)
        return entry;
    entry = malloc(sizeof *entry);
    if (!entry)
        return NULL;
    entry->tunables = *tunables;
    entry->older = file->settings;
    file->settings = entry;
    return entry;
}

static void free_file(struct hipio_file *file)
{
    while (file->settings) {
        struct settings *older = file->settings->older;

        free(file->settings);
        file->settings = older;
    }
    free(file->name);
    free(file);
}

static int create(const char *name, int access, const struct hipio_tunables *tunables,
                  struct hipio_file **out)
{
    struct hipio_file *file = calloc(1, sizeof *file);
    struct settings *entry = file ? intern(file, tunables) : NULL;
    if (entry)
        file->name = strdup(name);
    if (!entry || !file->name) {
        if (file)
            free_file(file);
        return hipio_status_set(-ENOMEM, "%s: no memory to open the file", name);
    }
    file->fd = -1;
    file->access = access;
    file->process = getpid();
    file->in_force = &entry->tunables;
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->idle, NULL);
    *out = file;
    return 0;
}

int hipio_file_create(int fd, const char *name, int access, const struct hipio_tunables *tunables,
                      struct hipio_file **out)
{
    int err = check_descriptor(fd, name, access);
    if (err == 0)
        err = create(name, access, tunables, out);
    if (err)
        return err;
    (*out)->fd = fd;
    (*out)->direct = fcntl(fd, F_GETFL) & O_DIRECT;
    (*out)->system = system_of(fd);
    return 0;
}

int hipio_file_create_window(void *memory, uint64_t length, const char *name,
                             const struct hipio_tunables *tunables, struct hipio_file **out)
{
    int err = create(name, HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE, tunables, out);
    if (err)
        return err;
    (*out)->window = memory;
    (*out)->window_size = length;
    (*out)->system = &memory_window;
    return 0;
}

void *hipio_file_window(const struct hipio_file *file)
{
    return file->window;
}

static struct hipio_attachment *find_attachment(const struct hipio_file *file, const void *room)
{
    struct hipio_attachment *at = __atomic_load_n(&file->attachments, __ATOMIC_ACQUIRE);

    while (at && at->room != room)
        at = at->next;
    return at;
}

struct hipio_attachment *hipio_file_attachment(struct hipio_file *file, const void *room,
                                               struct hipio_attachment *(*make)(void))
{
    struct hipio_attachment *found = find_attachment(file, room);

    if (found || !make)
        return found;
    pthread_mutex_lock(&file->lock);
    found = find_attachment(file, room);
    if (!found)
        found = make();
    if (found && found->room != room) {
        found->room = room;
        found->next = file->attachments;
        __atomic_store_n(&file->attachments, found, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&file->lock);
    return found;
}

static void destroy_attachments(struct hipio_file *file, bool forked)
{
    while (file->attachments) {
        struct hipio_attachment *last = file->attachments;

        file->attachments = last->next;
        last->destroy(last, forked);
    }
}

void hipio_file_destroy(struct hipio_file *file)
{
    if (!file)
        return;
    /* In a forked child the threads that would drop the file are not there, and the lock may be
     * held by one of them. */
    const bool forked = file->process != getpid();
    if (!forked) {
        pthread_mutex_lock(&file->lock);
        while (file->holders > 0)
            pthread_cond_wait(&file->idle, &file->lock);
        pthread_mutex_unlock(&file->lock);
        pthread_cond_destroy(&file->idle);
        pthread_mutex_destroy(&file->lock);
    }
    destroy_attachments(file, forked);
    free_file(file);
}

void hipio_file_hold(struct hipio_file *file)
{
    pthread_mutex_lock(&file->lock);
    ++file->holders;
    pthread_mutex_unlock(&file->lock);
}

void hipio_file_drop(struct hipio_file *file)
{
    /* The signal is given under the lock: once it is free, the file may be gone. */
    pthread_mutex_lock(&file->lock);
    if (--file->holders == 0)
        pthread_cond_broadcast(&file->idle);
    pthread_mutex_unlock(&file->lock);
}

void hipio_file_set_tunables(struct hipio_file *file, const struct hipio_tunables *tunables)
{
    pthread_mutex_lock(&file->lock);
    const struct settings *entry = intern(file, tunables);
    if (entry)
        __atomic_store_n(&file->in_force, &entry->tunables, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&file->lock);
    if (!entry)
        hipio_log(HIPIO_LOG_ERROR, "%s: no memory for new settings, the old ones stay in force",
                  file->name);
}

const struct hipio_tunables *hipio_file_tunables(const struct hipio_file *file)
{
    return __atomic_load_n(&file->in_force, __ATOMIC_ACQUIRE);
}

int hipio_file_descriptor(const struct hipio_file *file)
{
    return file->fd;
}

bool hipio_file_is_direct(const struct hipio_file *file)
{
    return file->direct;
}

const char *hipio_file_name(const struct hipio_file *file)
{
    return file->name;
}

int hipio_file_access(const struct hipio_file *file)
{
    return file->access;
}

void hipio_file_resized(struct hipio_file *file)
{
    __atomic_fetch_add(&file->resizes, 1, __ATOMIC_ACQ_REL);
}

uint64_t hipio_file_resizes(const struct hipio_file *file)
{
    return __atomic_load_n(&file->resizes, __ATOMIC_ACQUIRE);
}

int64_t hipio_file_size(const struct hipio_file *file)
{
    struct stat status;
    uint64_t bytes = 0;

    if (file->window)
        return (int64_t)file->window_size;
    int failed = fstat(file->fd, &status);

    if (!failed && S_ISBLK(status.st_mode)) {
        failed = ioctl(file->fd, BLKGETSIZE64, &bytes);
        status.st_size = (off_t)bytes;
    }
    if (failed)
        return hipio_status_set(-errno, "%s: its size can't be told: %m", file->name);
    return status.st_size;
}

const char *hipio_file_system(const struct hipio_file *file)
{
    return file->system->name;
}

bool hipio_file_is_shared(const struct hipio_file *file)
{
    return file->system->shared;
}
