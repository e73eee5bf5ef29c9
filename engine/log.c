/* SPDX-License-Identifier: MIT */
/*
 * Log: each line is made in one piece on the stack and written by one write(2), so that lines of
 * threads and of ranks do not mix. No lock: a line can be written from anywhere, also in a forked
 * child.
 */
#include "log.h"
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024
#define PREFIX_MAX 32

static _Atomic int level_in_force = HIPIO_LOG_WARN;

/* A reader that meets a writer may see letters of both, which harms nobody. */
static _Atomic char prefix_letters[PREFIX_MAX];

void hipio_log_set_level(enum hipio_log_level level)
{
    atomic_store_explicit(&level_in_force, (int)level, memory_order_relaxed);
}

bool hipio_log_enabled(enum hipio_log_level level)
{
    return level != HIPIO_LOG_NONE &&
           (int)level <= atomic_load_explicit(&level_in_force, memory_order_relaxed);
}

void hipio_log_set_prefix(const char *prefix)
{
    size_t i = 0;

    for (; i < PREFIX_MAX - 1 && prefix[i]; ++i)
        atomic_store_explicit(&prefix_letters[i], prefix[i], memory_order_relaxed);
    atomic_store_explicit(&prefix_letters[i], '\0', memory_order_relaxed);
}

/* "hipio: " or "hipio[prefix]: "; returns its length. */
static size_t put_head(char *line, size_t size)
{
    char prefix[PREFIX_MAX];

    for (size_t i = 0; i < PREFIX_MAX; ++i)
        prefix[i] = atomic_load_explicit(&prefix_letters[i], memory_order_relaxed);
    prefix[PREFIX_MAX - 1] = '\0';
    if (prefix[0])
        return (size_t)snprintf(line, size, "hipio[%s]: ", prefix);
    return (size_t)snprintf(line, size, "hipio: ");
}

static void write_line(const char *line, size_t length)
{
    ssize_t written;

    /* A line that stderr does not take is lost: there is nowhere to say so. */
    do
        written = write(STDERR_FILENO, line, length);
    while (written < 0 && errno == EINTR);
}

static void __attribute__((format(printf, 1, 0))) log_text(const char *format, va_list args)
{
    static const char mark[] = " [cut]";
    const int saved = errno;
    char line[LINE_MAX_BYTES]; /* the end of the line takes the place of the final zero */
    size_t length = put_head(line, sizeof line);
    const size_t room = LINE_MAX_BYTES - length;

    const int wanted = vsnprintf(line + length, room, format, args);
    if (wanted >= 0 && (size_t)wanted >= room)
        memcpy(line + LINE_MAX_BYTES - sizeof mark, mark, sizeof mark);
    length = strlen(line);
    /* Names of files may hold anything; one message stays one line. */
    for (size_t i = 0; i < length; ++i) {
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    }
    line[length++] = '\n';
    write_line(line, length);
    errno = saved;
}

void hipio_log(enum hipio_log_level level, const char *format, ...)
{
    va_list args;

    if (!hipio_log_enabled(level))
        return;
    va_start(args, format);
    log_text(format, args);
    va_end(args);
}

void hipio_log_once(bool *once, enum hipio_log_level level, const char *format, ...)
{
    va_list args;

    if (!hipio_log_enabled(level) || __atomic_exchange_n(once, true, __ATOMIC_RELAXED))
        return;
    va_start(args, format);
    log_text(format, args);
    va_end(args);
}
