/* SPDX-License-Identifier: MIT */
/*
 * Cases of names and limits: where a file is found, what is left beside it, and a process that may
 * have few descriptors or no locked memory.
 */
#include "cases.h"
#include "watch.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)
#define SEED 40
#define RDWR (MPI_MODE_CREATE | MPI_MODE_RDWR)

static const char *const ways[] = {
    NULL,
    "hipio_direct=force",
    "hipio_direct=force,hipio_uring=force,hipio_fallback=force",
    "hipio_mapping=force",
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- Descriptors ---- */

static void limit_descriptors(rlim_t most)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = most;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* None is to be had until the limit is set again. What it was. */
static rlim_t leave_no_descriptor(void)
{
    struct rlimit limit;
    int fd = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    while (fcntl(fd, F_GETFD) >= 0)
        fd++;
    limit_descriptors((rlim_t)fd);
    return limit.rlim_cur;
}

static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 4096; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Each rank writes a MiB of its own and reads it back; the file is looked at by its plain name.
 * `starving`: the calls have no descriptor to open. */
static void move_starving(MPI_File file, const char *name, bool starving)
{
    const MPI_Offset at = (MPI_Offset)MIB * case_rank();
    struct buffer buffer = buffer_new(case_kinds() > 1 ? GPU_DEVICE : GPU_HOST, MIB);
    rlim_t limit = 0;

    buffer_fill(&buffer, 0, SEED, (uint64_t)at, MIB);
    if (starving)
        limit = leave_no_descriptor();
    check_ok(MPI_File_write_at(file, at, buffer.at, (int)MIB, MPI_BYTE, MPI_STATUS_IGNORE),
             "write of %s", name);
    if (starving)
        limit_descriptors(limit);
    file_check(name, at, SEED, (uint64_t)at, MIB);
    buffer_poison(&buffer);
    if (starving)
        limit = leave_no_descriptor();
    check_ok(MPI_File_read_at(file, at, buffer.at, (int)MIB, MPI_BYTE, MPI_STATUS_IGNORE),
             "read of %s", name);
    if (starving)
        limit_descriptors(limit);
    buffer_check(&buffer, 0, SEED, (uint64_t)at, MIB);
    buffer_free(&buffer);
}

static void move(MPI_File file, const char *name)
{
    move_starving(file, name, false);
}

/* ---- Names ---- */

static void change_folder(const char *path)
{
    if (chdir(path) != 0) {
        fprintf(stderr, "test: no way to %s: %m\n", path);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

static void check_folder(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        check(strcmp(entry->d_name, "data") == 0 || strcmp(entry->d_name, "link") == 0 ||
                  entry->d_name[0] == '.',
              "%s is left in the folder", entry->d_name);
    if (folder)
        closedir(folder);
}

/* R40: through a symbolic link by a relative name, from a folder that is left while the file is
 * open; nothing is left beside it, files whose names begin with a dot included. */
static void names(void)
{
    for (int way = 0; way < WAYS; way++) {
        MPI_File file;
        watch_doing("%s", ways[way] ? ways[way] : "automatic");
        if (case_rank() == 0 && (mkdir("r40", 0700) || symlink("data", "r40/link")))
            check(false, "no folder: %s", strerror(errno));
        barrier();
        change_folder("r40");
        file = file_open("./link", RDWR, ways[way]);
        move(file, "data");
        change_folder("..");
        move(file, "r40/data");
        check_ok(MPI_File_sync(file), "sync");
        move(file, "r40/data");
        MPI_File_close(&file);
        barrier();
        if (case_rank() == 0) {
            check_folder("r40");
            unlink("r40/link");
            unlink("r40/data");
            check(rmdir("r40") == 0, "the folder is not empty: %s", strerror(errno));
        }
        barrier();
    }
}

/* R40: a rank is killed with the file open, after it has written; run.sh sees the job end. */
static void killed(void)
{
    MPI_File file = file_open("killed.dat", RDWR, "hipio_direct=force");

    move(file, "killed.dat");
    barrier();
    if (case_rank() == case_ranks() - 1)
        raise(SIGKILL);
    barrier();
    check(false, "nobody was killed");
}

/* R40: and the next job finds what was written, and nothing in its way. */
static void after_the_kill(void)
{
    MPI_File file;

    file_check("killed.dat", (MPI_Offset)MIB * case_rank(), SEED,
               (uint64_t)MIB * (uint64_t)case_rank(), MIB);
    for (int way = 0; way < WAYS; way++) {
        file = file_open("killed.dat", RDWR, ways[way]);
        move(file, "killed.dat");
        check_ok(MPI_File_set_atomicity(file, 1), "atomic mode");
        move(file, "killed.dat");
        MPI_File_close(&file);
    }
    file_remove("killed.dat");
}

/* R40: hints for a striped file system, on one that has no stripes: no error. */
static void striping_hints(void)
{
    MPI_File file = file_open("striped.dat", RDWR, "striping_factor=4,striping_unit=65536");

    move(file, "striped.dat");
    MPI_File_close(&file);
    file_remove("striped.dat");
}

/* ---- Few descriptors ---- */

enum { FILES = 40, DESCRIPTORS = 64 };

/* Opens on all ranks; the class is the same on all. */
static int try_open(const char *name, const char *hints, MPI_File *file)
{
    MPI_Info info = info_of(hints);
    const int code = MPI_File_open(MPI_COMM_WORLD, name, RDWR, info, file);
    int class, low, high;

    MPI_Error_class(code, &class);
    MPI_Allreduce(&class, &low, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&class, &high, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(low == high, "open of %s: classes from %d to %d, mine is %d", name, low, high, class);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return class;
}

/* R76: two descriptors for a file are one too many. What opens works, what does not open is the
 * same error on all ranks, and all descriptors come back. */
static void few_descriptors(void)
{
    /* A ring is kept for the next file. */
    const char *const hints = "hipio_direct=force,hipio_uring=off";
    MPI_File file[FILES];
    struct rlimit before;
    int opened = 0, descriptors;
    char name[32];

    file[0] = file_open("r76.dat", RDWR, hints);
    move(file[0], "r76.dat");
    MPI_File_close(&file[0]);
    file_remove("r76.dat");
    getrlimit(RLIMIT_NOFILE, &before);
    descriptors = count_descriptors();
    limit_descriptors(DESCRIPTORS);
    while (opened < FILES) {
        snprintf(name, sizeof name, "r76.%d.dat", opened);
        if (try_open(name, hints, &file[opened]) != MPI_SUCCESS)
            break;
        opened++;
    }
    check(opened > 0, "no file could be opened");
    limit_descriptors(before.rlim_cur);
    for (int i = 0; i < opened; i++) {
        snprintf(name, sizeof name, "r76.%d.dat", i);
        move_starving(file[i], name, i % 4 != 0);
    }
    for (int i = 0; i < opened; i++) {
        MPI_File_close(&file[i]);
        snprintf(name, sizeof name, "r76.%d.dat", i);
        file_remove(name);
    }
    snprintf(name, sizeof name, "r76.%d.dat", opened);
    file_remove(name);
    check(count_descriptors() == descriptors, "%d descriptors, right is %d", count_descriptors(),
          descriptors);
}

/* R76: one rank can't open the file at all. */
static void no_descriptor_on_one_rank(void)
{
    struct rlimit before;
    MPI_File file;

    getrlimit(RLIMIT_NOFILE, &before);
    if (case_rank() == case_ranks() - 1)
        leave_no_descriptor();
    if (try_open("r76.dat", NULL, &file) == MPI_SUCCESS) {
        check(false, "the open works");
        MPI_File_close(&file);
    }
    limit_descriptors(before.rlim_cur);
    file = file_open("r76.dat", RDWR, NULL);
    move(file, "r76.dat");
    MPI_File_close(&file);
    file_remove("r76.dat");
}

/* ---- Locked memory ---- */

/* R88: `ulimit -l 64`, also for root. The environment may take pinned memory away, too. */
static void little_locked_memory(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    const struct rlimit limit = {64 * KIB, 64 * KIB};

    if (syscall(SYS_capget, &header, data) == 0) {
        data[0].effective &= ~(1u << CAP_IPC_LOCK);
        data[0].permitted &= ~(1u << CAP_IPC_LOCK);
        check(syscall(SYS_capset, &header, data) == 0, "capset: %s", strerror(errno));
    }
    check(setrlimit(RLIMIT_MEMLOCK, &limit) == 0, "setrlimit: %s", strerror(errno));
    for (int way = 0; way < WAYS; way++) {
        MPI_File file = file_open("r88.dat", RDWR, ways[way]);
        watch_doing("%s", ways[way] ? ways[way] : "automatic");
        move(file, "r88.dat");
        MPI_File_close(&file);
        file_remove("r88.dat");
    }
}

static const struct test_case cases[] = {
    {"R40", "links, relative names, and what is left", 1, 16, NEEDS_HIPIO, names},
    {"R40_killed", "a rank is killed", 2, 16, NEEDS_HIPIO | NEEDS_REQUEST, killed},
    {"R40_after", "the job after it", 2, 16, NEEDS_HIPIO | NEEDS_REQUEST, after_the_kill},
    {"R40_hints", "hints about stripes", 1, 16, NEEDS_NOTHING, striping_hints},
    {"R76", "64 descriptors for 40 files", 1, 4, NEEDS_HIPIO, few_descriptors},
    {"R76_one", "no descriptor on one rank", 2, 4, NEEDS_HIPIO, no_descriptor_on_one_rank},
    {"R88", "64 KiB of locked memory", 1, 16, NEEDS_HIPIO, little_locked_memory},
};

int main(int argc, char **argv)
{
    return cases_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
