/* SPDX-License-Identifier: MIT */
/*
 * CuFile log: a file in memory, and a line of environment that names it.
 */
#include "cufile_log.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CONFIGURATION "/etc/cufile.json"
#define CONFIGURATION_MAX ((size_t)64 << 10)

/* Does an uncommented line of the configuration name the folder of the log? */
static bool names_folder(char *text)
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *key = strstr(line, "\"dir\"");
        const char *comment = strstr(line, "//");
        if (key && (!comment || comment > key))
            return true;
    }
    return false;
}

static bool configuration_names_folder(void)
{
    const char *path = getenv("CUFILE_ENV_PATH_JSON");
    const int fd = open(path && path[0] ? path : CONFIGURATION, O_RDONLY | O_CLOEXEC);
    char *text = fd < 0 ? NULL : malloc(CONFIGURATION_MAX);
    bool named = false;

    if (text) {
        const ssize_t n = read(fd, text, CONFIGURATION_MAX - 1);
        text[n > 0 ? n : 0] = '\0';
        named = names_folder(text);
    }
    free(text);
    if (fd >= 0)
        close(fd);
    return named;
}

static size_t count(char **list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* Never freed: readers may be anywhere in it. */
static char **kept;

/* The environment with one more line; NULL: no memory. */
static char **with_line(char **list, char *line)
{
    const size_t n = count(list);
    char **copy = malloc((n + 2) * sizeof *copy);

    if (!copy)
        return NULL;
    memcpy(copy, list, n * sizeof *copy);
    copy[n] = line;
    copy[n + 1] = NULL;
    kept = copy;
    return copy;
}

void hipio_cufile_log_divert(struct hipio_cufile_log *log)
{
    char *line;

    *log = (struct hipio_cufile_log){NULL, NULL};
    if (getenv("CUFILE_LOGFILE_PATH") || configuration_names_folder())
        return;
    /* Both live as long as the process: the library may write at any time. */
    const int fd = memfd_create("cufile.log", MFD_CLOEXEC);
    if (fd < 0)
        return;
    if (asprintf(&line, "CUFILE_LOGFILE_PATH=/proc/self/fd/%d", fd) < 0) {
        close(fd);
        return;
    }
    char **before = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    log->with = with_line(before, line);
    if (!log->with) {
        free(line);
        close(fd);
        return;
    }
    log->before = before;
    __atomic_store_n(&environ, log->with, __ATOMIC_RELEASE);
}

/* Did anybody else change the array that was put in place? */
static bool is_untouched(const struct hipio_cufile_log *log)
{
    const size_t n = count(log->before);

    if (__atomic_load_n(&environ, __ATOMIC_ACQUIRE) != log->with || count(log->with) != n + 1)
        return false;
    return n == 0 || memcmp(log->before, log->with, n * sizeof *log->with) == 0;
}

void hipio_cufile_log_restore(struct hipio_cufile_log *log)
{
    if (log->before && is_untouched(log))
        __atomic_store_n(&environ, log->before, __ATOMIC_RELEASE);
}
