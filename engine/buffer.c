/* SPDX-License-Identifier: MIT */
/*
 * Buffer: asks the provider about the last byte, and puts address, bytes and kind into words.
 */
#include "buffer.h"
#include "backend.h"
#include <errno.h>
#include <stdio.h>

#define NAME_MAX_LENGTH 160

/* The addresses that `length` bytes of the request reach: [*first, *end). */
static void find_ends(const struct hipio_request *request, uint64_t length, uintptr_t *first,
                      uintptr_t *end)
{
    int64_t low, high;

    hipio_layout_bounds(request->memory_layout, request->memory_start, length, &low, &high);
    *first = (uintptr_t)request->base + (uintptr_t)low;
    *end = (uintptr_t)request->base + (uintptr_t)high;
}

/* "buffer 0x7f0000 of 4096 bytes of device memory (hip, device 0)" */
static void name_buffer(const struct hipio_request *request, char *out, size_t size)
{
    static const char *const kinds[] = {"host", "pinned", "managed", "device", "unknown"};
    const struct hipio_memory *memory = &request->memory;
    uintptr_t first, end;
    int used;

    find_ends(request, request->length, &first, &end);
    used = snprintf(out, size, "buffer %p, %llu bytes", (void *)first,
                    (unsigned long long)request->length);
    if (used > 0 && (uint64_t)(end - first) != request->length)
        used += snprintf(out + used, size - (size_t)used, " in a range of %llu",
                         (unsigned long long)(end - first));
    if (used > 0)
        used += snprintf(out + used, size - (size_t)used, " of %s memory", kinds[memory->kind]);
    if (used > 0 && memory->device >= 0)
        snprintf(out + used, size - (size_t)used, " (%s, device %d)", memory->ops->name,
                 memory->device);
}

static int refuse(const struct hipio_request *request, uintptr_t last)
{
    const struct hipio_memory *memory = &request->memory;
    uintptr_t first, end;
    char name[NAME_MAX_LENGTH];
    char allocation[96] = "";
    uint64_t length = 0;
    uintptr_t start = 0;

    find_ends(request, request->length, &first, &end);
    name_buffer(request, name, sizeof name);
    if (memory->ops->range(memory, (const void *)first, &start, &length) == 0)
        snprintf(allocation, sizeof allocation, "; it begins in an allocation of %llu bytes at %p",
                 (unsigned long long)length, (void *)start);
    return hipio_status_set(-EFAULT,
                            "%s: %s, leaves its allocation: at %p there is no GPU memory%s",
                            hipio_file_name(request->file), name, (void *)last, allocation);
}

/* Is there GPU memory behind `length` bytes of the request? A runtime that fails, or has words for
 * its answer, has not said no: the I/O will tell. */
static bool is_missing(const struct hipio_request *request, uint64_t length, uintptr_t *last)
{
    struct hipio_memory found;
    uintptr_t first, end;

    find_ends(request, length, &first, &end);
    *last = end - 1;
    hipio_status_clear();
    return request->memory.ops->classify((const void *)*last, &found) == 1 &&
           hipio_status_text()[0] == '\0';
}

int hipio_buffer_check(const struct hipio_request *request)
{
    const struct hipio_memory *memory = &request->memory;
    uintptr_t last;

    if (memory->kind != HIPIO_MEMORY_DEVICE && memory->kind != HIPIO_MEMORY_MANAGED)
        return 0;
    if (!is_missing(request, request->length, &last))
        return 0;
    const uint64_t reachable = hipio_backend_reachable(request);
    if (reachable == 0 || (reachable < request->length && !is_missing(request, reachable, &last)))
        return 0;
    return refuse(request, last);
}

int hipio_buffer_blame(const struct hipio_request *request, int status)
{
    char name[NAME_MAX_LENGTH];

    name_buffer(request, name, sizeof name);
    return hipio_status_set(status, "%s: %s: %s", hipio_file_name(request->file), name,
                            hipio_status_text());
}
