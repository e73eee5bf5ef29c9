/* SPDX-License-Identifier: MIT */
/*
 * Log: the only writer to stderr. One line per message, "hipio: text" or "hipio[prefix]: text",
 * silent below the level in force (HIPIO_LOG; default warn). Thread-safe. Text is lower case,
 * exact, and ends without a full stop.
 */
#pragma once
#include <stdbool.h>

enum hipio_log_level {
    HIPIO_LOG_NONE,
    HIPIO_LOG_ERROR,
    HIPIO_LOG_WARN,
    HIPIO_LOG_INFO,
    HIPIO_LOG_DEBUG
};

/* Until it is set, the level is HIPIO_LOG_WARN. */
void hipio_log_set_level(enum hipio_log_level level);
bool hipio_log_enabled(enum hipio_log_level level);

/* A short word that tells processes apart, such as "rank 3"; copied. */
void hipio_log_set_prefix(const char *prefix);

void hipio_log(enum hipio_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The same, at most once per `once` (a static flag of the caller's). Use it for what a user must
 * know but not per request.
 */
void hipio_log_once(bool *once, enum hipio_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
