/* SPDX-License-Identifier: MIT */
/*
 * Cases: buffers of any kind, and files by plain system calls.
 */
#include "cases.h"
#include "pattern.h"
#include "watch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *must_alloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);

    if (!memory) {
        fprintf(stderr, "test: no memory for %zu bytes\n", size);
        exit(99);
    }
    return memory;
}

struct buffer buffer_new(enum gpu_kind kind, size_t size)
{
    struct buffer buffer = {kind, gpu_alloc(kind, size ? size : 1), size};

    watch_memory(gpu_kind_name(kind), buffer.at, size);
    buffer_poison(&buffer);
    return buffer;
}

void buffer_free(struct buffer *buffer)
{
    gpu_free(buffer->kind, buffer->at);
    buffer->at = NULL;
}

/* Host memory is reached without a GPU runtime. */
void buffer_put(struct buffer *buffer, size_t at, const void *in, size_t bytes)
{
    if (buffer->kind == GPU_HOST)
        memcpy(buffer->at + at, in, bytes);
    else if (bytes)
        gpu_copy(buffer->at + at, in, bytes);
}

void buffer_get(const struct buffer *buffer, size_t at, void *out, size_t bytes)
{
    if (buffer->kind == GPU_HOST)
        memcpy(out, buffer->at + at, bytes);
    else if (bytes)
        gpu_copy(out, buffer->at + at, bytes);
}

void buffer_poison(struct buffer *buffer)
{
    if (buffer->kind == GPU_HOST)
        memset(buffer->at, POISON, buffer->size);
    else if (buffer->size)
        gpu_set(buffer->at, POISON, buffer->size);
}

void buffer_fill(struct buffer *buffer, size_t at, uint64_t seed, uint64_t position, size_t bytes)
{
    unsigned char *host = must_alloc(bytes);

    pattern_fill(host, seed, position, bytes);
    buffer_put(buffer, at, host, bytes);
    free(host);
}

bool buffer_check(const struct buffer *buffer, size_t at, uint64_t seed, uint64_t position,
                  size_t bytes)
{
    unsigned char *host = must_alloc(bytes);
    size_t wrong;
    bool ok;

    buffer_get(buffer, at, host, bytes);
    wrong = pattern_check(host, seed, position, bytes);
    ok = check(wrong == bytes, "%s memory: byte %zu of %zu is 0x%02x%s, right is 0x%02x",
               gpu_kind_name(buffer->kind), at + wrong, at + bytes, wrong < bytes ? host[wrong] : 0,
               wrong < bytes && host[wrong] == POISON ? " (poison)" : "",
               pattern_byte(seed, position + wrong));
    free(host);
    return ok;
}

bool buffer_check_poison(const struct buffer *buffer, size_t at, size_t bytes)
{
    unsigned char *host = must_alloc(bytes);
    size_t i = 0;
    bool ok;

    buffer_get(buffer, at, host, bytes);
    while (i < bytes && host[i] == POISON)
        i++;
    ok = check(i == bytes, "%s memory: byte %zu was to be left alone, but is 0x%02x",
               gpu_kind_name(buffer->kind), at + i, i < bytes ? host[i] : 0);
    free(host);
    return ok;
}

void file_make(const char *path, uint64_t seed, size_t bytes)
{
    if (case_rank() == 0) {
        char *host = must_alloc(bytes);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        pattern_fill(host, seed, 0, bytes);
        if (fd < 0 || write(fd, host, bytes) != (ssize_t)bytes) {
            fprintf(stderr, "test: %s can't be made: %m\n", path);
            MPI_Abort(MPI_COMM_WORLD, 99);
        }
        close(fd);
        free(host);
    }
    barrier();
}

void file_remove(const char *path)
{
    barrier();
    if (case_rank() == 0)
        unlink(path);
    barrier();
}

bool file_check(const char *path, int64_t at, uint64_t seed, uint64_t position, size_t bytes)
{
    unsigned char *host = must_alloc(bytes);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, host, bytes, at);
    size_t wrong;
    bool ok = check(got == (ssize_t)bytes, "%s: %zd bytes at %lld, right is %zu", path, got,
                    (long long)at, bytes);

    if (ok) {
        wrong = pattern_check(host, seed, position, bytes);
        ok = check(wrong == bytes, "%s: byte %lld is 0x%02x, right is 0x%02x", path,
                   (long long)at + (long long)wrong, wrong < bytes ? host[wrong] : 0,
                   pattern_byte(seed, position + wrong));
    }
    if (fd >= 0)
        close(fd);
    free(host);
    return ok;
}

bool file_check_size(const char *path, int64_t size)
{
    struct stat info = {.st_size = -1};
    int failed = stat(path, &info);

    return check(!failed && info.st_size == size, "%s has %lld bytes, right is %lld", path,
                 failed ? -1ll : (long long)info.st_size, (long long)size);
}

MPI_Info info_of(const char *hints)
{
    MPI_Info info;
    char *copy, *rest, *word;

    if (!hints)
        return MPI_INFO_NULL;
    MPI_Info_create(&info);
    copy = rest = strdup(hints);
    while ((word = strsep(&rest, ","))) {
        char *value = strchr(word, '=');

        if (!value)
            abort();
        *value++ = '\0';
        MPI_Info_set(info, word, value);
    }
    free(copy);
    return info;
}

MPI_File file_open(const char *path, int mode, const char *hints)
{
    MPI_File file = MPI_FILE_NULL;
    MPI_Info info = info_of(hints);

    if (!check_ok(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &file), "MPI_File_open of %s",
                  path))
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    return file;
}
