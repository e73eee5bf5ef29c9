/* SPDX-License-Identifier: MIT */
/*
 * Status: the thread's last error text. One buffer per thread, nothing else.
 */
#include "status.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char thread_text[HIPIO_TEXT_MAX];

int hipio_status_set(int err, const char *format, ...)
{
    /* The arguments may point into the old text, so the new one is made beside it. */
    char text[HIPIO_TEXT_MAX];
    int saved = errno;
    va_list args;

    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0)
        text[0] = '\0';
    memcpy(thread_text, text, strlen(text) + 1);
    errno = saved;
    return err;
}

const char *hipio_status_text(void)
{
    return thread_text;
}

void hipio_status_clear(void)
{
    thread_text[0] = '\0';
}
