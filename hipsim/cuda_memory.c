/* SPDX-License-Identifier: MIT */
/* The CUDA face: memory. */
#include "cuda_api.h"

#include "counters.h"
#include "cuda_context.h"
#include "device.h"
#include "error.h"
#include "hostcall.h"
#include "memory.h"
#include "process.h"
#include "settings.h"
#include "stream.h"

enum attribute {
    CONTEXT = 1,
    MEMORY_TYPE = 2,
    DEVICE_POINTER = 3,
    HOST_POINTER = 4,
    SYNC_MEMOPS = 6,
    BUFFER_ID = 7,
    IS_MANAGED = 8,
    DEVICE_ORDINAL = 9,
    RANGE_START = 11,
    RANGE_SIZE = 12,
    MAPPED = 13,
    MEMPOOL_HANDLE = 17,
};

static const struct hipsim_block unknown = {.kind = HIPSIM_KIND_PAGEABLE};

static bool is_host_kind(enum hipsim_kind kind)
{
    return kind == HIPSIM_KIND_PINNED || kind == HIPSIM_KIND_REGISTERED;
}

static void *context_of(const struct hipsim_block *block)
{
    return block == &unknown || block->pooled || block->piece ? NULL
                                                              : hipsim_cuda_context(block->device);
}

static unsigned type_of(const struct hipsim_block *block)
{
    if (block == &unknown)
        return 0;
    return is_host_kind(block->kind) ? 1 : 2;
}

/* The sizes that the driver writes: some attributes fill only half of an 8-byte variable. */
static int describe(const struct hipsim_block *block, uintptr_t address, int attribute, void *value)
{
    bool known = block != &unknown;
    uintptr_t offset = !known                                   ? 0
                       : address - block->pointer < block->size ? address - block->pointer
                                                                : address - block->device_pointer;

    switch ((enum attribute)attribute) {
    case CONTEXT:
        *(void **)value = context_of(block);
        return 0;
    case MEMORY_TYPE:
        *(unsigned *)value = type_of(block);
        return 0;
    case DEVICE_POINTER:
        *(cuda_pointer *)value = known ? block->device_pointer + offset : 0;
        return 0;
    case HOST_POINTER:
        *(void **)value =
            known && block->kind != HIPSIM_KIND_DEVICE ? (void *)(block->pointer + offset) : NULL;
        return 0;
    case SYNC_MEMOPS:
        *(unsigned char *)value = 0;
        return 0;
    case BUFFER_ID:
        *(uint64_t *)value = block->id;
        return 0;
    case IS_MANAGED:
        *(unsigned *)value = block->kind == HIPSIM_KIND_MANAGED;
        return 0;
    case DEVICE_ORDINAL:
        *(int *)value = known ? block->device : -2;
        return 0;
    case RANGE_START:
        *(uintptr_t *)value = known ? block->pointer : 0;
        return 0;
    case RANGE_SIZE:
        *(size_t *)value = block->size;
        return 0;
    case MAPPED:
        *(unsigned *)value = known;
        return 0;
    case MEMPOOL_HANDLE:
        *(void **)value = block->pooled ? hipsim_cuda_context(block->device) : NULL;
        return 0;
    }
    return HIPSIM_INVALID_VALUE;
}

int cuPointerGetAttributes(unsigned count, int *attributes, void **values, cuda_pointer pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_block *block;

    if (!rc && (!attributes || !values))
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        return hipsim_leave(rc);
    hipsim_counters_add(HIPSIM_COUNT_classifications, 1);
    block = hipsim_memory_find((const void *)(uintptr_t)pointer);
    for (unsigned i = 0; i < count && !rc; i++)
        rc = describe(block ? block : &unknown, (uintptr_t)pointer, attributes[i], values[i]);
    hipsim_memory_release(block);
    return hipsim_leave(rc);
}

int cuPointerGetAttribute(void *value, int attribute, cuda_pointer pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    struct hipsim_block *block;

    if (!rc && !value)
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        return hipsim_leave(rc);
    hipsim_counters_add(HIPSIM_COUNT_classifications, 1);
    block = hipsim_memory_find((const void *)(uintptr_t)pointer);
    /* The singular form fails on memory that the driver does not know. */
    rc = block ? describe(block, (uintptr_t)pointer, attribute, value) : HIPSIM_INVALID_VALUE;
    hipsim_memory_release(block);
    return hipsim_leave(rc);
}

int cuMemGetAddressRange_v2(cuda_pointer *base, size_t *bytes, cuda_pointer pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_block *block;

    if (rc)
        return hipsim_leave(rc);
    block = hipsim_memory_find((const void *)(uintptr_t)pointer);
    if (!block)
        return hipsim_leave(HIPSIM_NOT_FOUND);
    if (base)
        *base = block->pointer;
    if (bytes)
        *bytes = block->size;
    hipsim_memory_release(block);
    return hipsim_leave(0);
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && (!free_bytes || !total))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        hipsim_memory_info(hipsim_current_device(), free_bytes, total);
    return hipsim_leave(rc);
}

static int allocate(enum hipsim_kind kind, void **pointer, size_t bytes, unsigned flags)
{
    if (!pointer || !bytes)
        return HIPSIM_INVALID_VALUE;
    return hipsim_memory_allocate(kind, hipsim_current_device(), bytes, flags, pointer);
}

static int allocate_device(enum hipsim_kind kind, cuda_pointer *pointer, size_t bytes,
                           unsigned flags)
{
    void *memory;
    int rc = pointer ? allocate(kind, &memory, bytes, flags) : HIPSIM_INVALID_VALUE;

    if (!rc)
        *pointer = (uintptr_t)memory;
    return rc;
}

int cuMemAlloc_v2(cuda_pointer *pointer, size_t bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : allocate_device(HIPSIM_KIND_DEVICE, pointer, bytes, 0));
}

int cuMemAllocAsync(cuda_pointer *pointer, size_t bytes, void *handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream;
    void *memory;

    if (!rc && (!pointer || !bytes))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    rc = hipsim_memory_allocate(HIPSIM_KIND_DEVICE, stream->device, bytes, 0, &memory);
    if (!rc) {
        hipsim_memory_set_pooled(memory);
        *pointer = (uintptr_t)memory;
    }
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

int cuMemAllocManaged(cuda_pointer *pointer, size_t bytes, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && flags != 1 && flags != 2)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc && !hipsim_settings_get()->managed)
        rc = HIPSIM_NOT_SUPPORTED;
    return hipsim_leave(rc ? rc : allocate_device(HIPSIM_KIND_MANAGED, pointer, bytes, flags));
}

/* Frees wait for the whole device, as the real ones do. */
static int drain_and_free(void *pointer, unsigned kinds)
{
    struct hipsim_block *block = hipsim_memory_find(pointer);
    int rc;

    if (!block)
        return HIPSIM_INVALID_VALUE;
    hipsim_device_drain(block->device);
    rc = hipsim_memory_free(pointer, kinds);
    hipsim_memory_release(block);
    return rc;
}

int cuMemFree_v2(cuda_pointer pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    unsigned kinds = 1u << HIPSIM_KIND_DEVICE | 1u << HIPSIM_KIND_MANAGED;

    return hipsim_leave(rc ? rc : drain_and_free((void *)(uintptr_t)pointer, kinds));
}

int cuMemFreeAsync(cuda_pointer pointer, void *handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream;

    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    rc = hipsim_hostcall_free(stream, (void *)(uintptr_t)pointer);
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && flags > 7)
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : allocate(HIPSIM_KIND_PINNED, pointer, bytes, flags));
}

int cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : allocate(HIPSIM_KIND_PINNED, pointer, bytes, 0));
}

int cuMemFreeHost(void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : drain_and_free(pointer, 1u << HIPSIM_KIND_PINNED));
}

int cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && (!pointer || !bytes || flags > 15))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_memory_register(pointer, bytes, hipsim_current_device(), flags);
    return hipsim_leave(rc);
}

int cuMemHostUnregister(void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (rc)
        return hipsim_leave(rc);
    hipsim_device_drain(hipsim_current_device());
    return hipsim_leave(hipsim_memory_unregister(pointer));
}

int cuMemHostGetDevicePointer_v2(cuda_pointer *device, void *host, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_block *block;

    if (!rc && (!device || flags))
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        return hipsim_leave(rc);
    block = hipsim_memory_find(host);
    if (!block || !is_host_kind(block->kind))
        rc = HIPSIM_INVALID_VALUE;
    else
        *device = block->device_pointer + ((uintptr_t)host - block->pointer);
    hipsim_memory_release(block);
    return hipsim_leave(rc);
}

int cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_block *block;

    if (rc)
        return hipsim_leave(rc);
    block = hipsim_memory_find(pointer);
    if (!flags || !block || !is_host_kind(block->kind))
        rc = HIPSIM_INVALID_VALUE;
    else
        *flags = block->flags;
    hipsim_memory_release(block);
    return hipsim_leave(rc);
}
