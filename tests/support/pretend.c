/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a test program: the machine says that it is another one. HIPIO_TEST_PAGE: the size
 * of a page. HIPIO_TEST_MAGIC: the number of every file system.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The C library's own, before the large-file macros could give them other names. */
int statfs64(const char *path, struct statfs64 *out);
int fstatfs64(int fd, struct statfs64 *out);

static unsigned long pretended(const char *variable)
{
    const char *text = getenv(variable);

    return text ? strtoul(text, NULL, 0) : 0;
}

long sysconf(int name)
{
    static long (*real)(int);
    const unsigned long page = pretended("HIPIO_TEST_PAGE");

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PAGESIZE && page ? (long)page : real(name);
}

int getpagesize(void)
{
    return (int)sysconf(_SC_PAGESIZE);
}

int statfs64(const char *path, struct statfs64 *out)
{
    static int (*real)(const char *, struct statfs64 *);
    const unsigned long magic = pretended("HIPIO_TEST_MAGIC");

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "statfs64");
    const int result = real(path, out);
    if (result == 0 && magic)
        out->f_type = (__typeof__(out->f_type))magic;
    return result;
}

int fstatfs64(int fd, struct statfs64 *out)
{
    static int (*real)(int, struct statfs64 *);
    const unsigned long magic = pretended("HIPIO_TEST_MAGIC");

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fstatfs64");
    const int result = real(fd, out);
    if (result == 0 && magic)
        out->f_type = (__typeof__(out->f_type))magic;
    return result;
}

/* The same on 64-bit machines. */
int statfs(const char *path, struct statfs *out)
{
    return statfs64(path, (struct statfs64 *)out);
}

int fstatfs(int fd, struct statfs *out)
{
    return fstatfs64(fd, (struct statfs64 *)out);
}
