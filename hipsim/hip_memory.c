/* SPDX-License-Identifier: MIT */
/* The HIP face: memory. */
#include "hip_api.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "flavor.h"
#include "hostcall.h"
#include "memory.h"
#include "process.h"
#include "settings.h"
#include "stream.h"

enum {
    FINE_GRAINED = 1, /* flags of hipExtMallocWithFlags */
    SIGNAL = 2,
    PITCH_ALIGN = 256,
};

static unsigned bit(enum hipsim_kind kind)
{
    return 1u << kind;
}

/* Allocations of every kind: zero bytes give NULL and succeed. */
static int allocate(enum hipsim_kind kind, void **pointer, size_t bytes, unsigned flags)
{
    if (!pointer)
        return HIPSIM_INVALID_VALUE;
    *pointer = NULL;
    if (!bytes)
        return 0;
    return hipsim_memory_allocate(kind, hipsim_current_device(), bytes, flags, pointer);
}

int hipMalloc(void **pointer, size_t bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : allocate(HIPSIM_KIND_DEVICE, pointer, bytes, 0));
}

int hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (rc)
        return hipsim_leave(rc);
    if (flags == SIGNAL)
        rc =
            bytes == 8 ? allocate(HIPSIM_KIND_SIGNAL, pointer, bytes, flags) : HIPSIM_INVALID_VALUE;
    else if (flags <= FINE_GRAINED)
        rc = allocate(HIPSIM_KIND_DEVICE, pointer, bytes, flags);
    else
        rc = HIPSIM_INVALID_VALUE;
    if (!rc && flags == SIGNAL)
        *(uint64_t *)*pointer = 0;
    return hipsim_leave(rc);
}

int hipMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && flags != 1 && flags != 2)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc && !hipsim_settings_get()->managed)
        rc = HIPSIM_NOT_SUPPORTED;
    return hipsim_leave(rc ? rc : allocate(HIPSIM_KIND_MANAGED, pointer, bytes, flags));
}

int hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    size_t row = (width + PITCH_ALIGN - 1) & ~(size_t)(PITCH_ALIGN - 1), bytes;

    if (!rc && (!pitch || row < width || __builtin_mul_overflow(row, height, &bytes)))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = allocate(HIPSIM_KIND_DEVICE, pointer, bytes, 0);
    if (!rc)
        *pitch = row;
    return hipsim_leave(rc);
}

int hipMallocAsync(void **pointer, size_t bytes, void *handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream = NULL;

    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    if (!pointer) {
        rc = HIPSIM_INVALID_VALUE;
    } else if (bytes) {
        rc = hipsim_memory_allocate(HIPSIM_KIND_DEVICE, stream->device, bytes, 0, pointer);
        if (!rc)
            hipsim_memory_set_pooled(*pointer);
    } else {
        *pointer = NULL;
    }
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

/* Frees wait for the whole device, as the real ones do. The error state does not keep memory. */
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

int hipFree(void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    unsigned kinds = bit(HIPSIM_KIND_DEVICE) | bit(HIPSIM_KIND_MANAGED) | bit(HIPSIM_KIND_SIGNAL);

    if (!rc && pointer)
        rc = drain_and_free(pointer, kinds);
    return hipsim_leave(rc);
}

int hipFreeAsync(void *pointer, void *handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream;

    if (!rc && !pointer)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    rc = hipsim_hostcall_free(stream, pointer);
    hipsim_stream_unref(stream);
    return hipsim_leave(rc);
}

static int host_allocate(const char *name, void **pointer, size_t bytes, unsigned flags)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    /* Coherent and non-coherent at once is a contradiction. */
    if (!rc && (flags & 0xc0000000u) == 0xc0000000u)
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : allocate(HIPSIM_KIND_PINNED, pointer, bytes, flags));
}

int hipHostMalloc(void **pointer, size_t bytes, unsigned flags)
{
    return host_allocate(__func__, pointer, bytes, flags);
}

int hipHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    return host_allocate(__func__, pointer, bytes, flags);
}

int hipMallocHost(void **pointer, size_t bytes)
{
    return host_allocate(__func__, pointer, bytes, 0);
}

int hipMemAllocHost(void **pointer, size_t bytes)
{
    return host_allocate(__func__, pointer, bytes, 0);
}

static int host_free(const char *name, void *pointer)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_DEVICE);

    if (!rc && pointer)
        rc = drain_and_free(pointer, bit(HIPSIM_KIND_PINNED));
    return hipsim_leave(rc);
}

int hipHostFree(void *pointer)
{
    return host_free(__func__, pointer);
}

int hipFreeHost(void *pointer)
{
    return host_free(__func__, pointer);
}

int hipHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && (!pointer || !bytes || flags > 15))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_memory_register(pointer, bytes, hipsim_current_device(), flags);
    return hipsim_leave(rc);
}

int hipHostUnregister(void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && !pointer)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc) {
        hipsim_device_drain(hipsim_current_device());
        rc = hipsim_memory_unregister(pointer);
    }
    return hipsim_leave(rc);
}

static bool is_host_kind(enum hipsim_kind kind)
{
    return kind == HIPSIM_KIND_PINNED || kind == HIPSIM_KIND_REGISTERED ||
           kind == HIPSIM_KIND_SIGNAL;
}

int hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_block *block;

    if (!rc && (!device || !host || flags))
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        return hipsim_leave(rc);
    block = hipsim_memory_find(host);
    if (!block || !is_host_kind(block->kind))
        rc = HIPSIM_INVALID_VALUE;
    else
        *device = (void *)(block->device_pointer + ((uintptr_t)host - block->pointer));
    hipsim_memory_release(block);
    return hipsim_leave(rc);
}

int hipHostGetFlags(unsigned *flags, void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_block *block;

    if (!rc && (!flags || !pointer))
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        return hipsim_leave(rc);
    block = hipsim_memory_find(pointer);
    if (!block || !is_host_kind(block->kind))
        rc = HIPSIM_INVALID_VALUE;
    else
        *flags = block->flags;
    hipsim_memory_release(block);
    return hipsim_leave(rc);
}

/* The numbers of hipMemoryType changed with 6.0, and managed memory got its own. */
static int type_number(enum hipsim_kind kind)
{
    if (hipsim_flavor.major <= 5)
        return kind == HIPSIM_KIND_DEVICE ? 1 : 0;
    if (kind == HIPSIM_KIND_MANAGED)
        return 3;
    return kind == HIPSIM_KIND_DEVICE ? 2 : 1;
}

static void describe(const struct hipsim_block *block, uintptr_t address,
                     struct hip_pointer_attributes *out)
{
    uintptr_t offset = address - block->pointer < block->size ? address - block->pointer
                                                              : address - block->device_pointer;

    out->type = type_number(block->kind);
    out->device = block->device;
    out->device_pointer = (void *)(block->device_pointer + offset);
    out->host_pointer =
        block->kind == HIPSIM_KIND_DEVICE ? NULL : (void *)(block->pointer + offset);
    out->is_managed = block->kind == HIPSIM_KIND_MANAGED;
    out->flags = block->flags;
}

/* What this version says about memory that the runtime does not know. */
static int describe_unknown(const void *pointer, struct hip_pointer_attributes *out)
{
    if (hipsim_flavor.major <= 5 || (!pointer && hipsim_flavor.major < 7))
        return HIPSIM_INVALID_VALUE;
    *out = (struct hip_pointer_attributes){.device = -2};
    return 0;
}

int hipPointerGetAttributes(struct hip_pointer_attributes *attributes, const void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_block *block;

    if (!rc && !attributes)
        rc = HIPSIM_INVALID_VALUE;
    if (rc)
        return hipsim_leave(rc);
    hipsim_counters_add(HIPSIM_COUNT_classifications, 1);
    block = hipsim_memory_find(pointer);
    if (block)
        describe(block, (uintptr_t)pointer, attributes);
    else
        rc = describe_unknown(pointer, attributes);
    hipsim_memory_release(block);
    return hipsim_leave(rc);
}

static int address_range(void **base, size_t *bytes, void *pointer)
{
    struct hipsim_block *block = hipsim_memory_find(pointer);

    if (!block)
        return HIPSIM_NOT_FOUND;
    if (base)
        *base = (void *)block->pointer;
    *bytes = block->size;
    hipsim_memory_release(block);
    return 0;
}

int hipMemGetAddressRange(void **base, size_t *bytes, void *pointer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && (!base || !bytes || !pointer))
        hipsim_error_die("hipMemGetAddressRange with a NULL argument: the real one crashes");
    return hipsim_leave(rc ? rc : address_range(base, bytes, pointer));
}

int hipMemPtrGetInfo(void *pointer, size_t *bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && (!bytes || !pointer || address_range(NULL, bytes, pointer)))
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc);
}

int hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    size_t free_now, all;

    if (rc)
        return hipsim_leave(rc);
    hipsim_memory_info(hipsim_current_device(), &free_now, &all);
    if (free_bytes)
        *free_bytes = free_now;
    if (total)
        *total = all;
    return hipsim_leave(0);
}

/* Advice and prefetching move nothing in a simulation; only their arguments are checked. */
static int check_managed(const void *pointer, size_t bytes, int device)
{
    struct hipsim_range range;
    int rc;

    if (!pointer || !bytes || (device != -1 && !hipsim_device_get(device)))
        return HIPSIM_INVALID_VALUE;
    rc = hipsim_memory_resolve(pointer, bytes, &range);
    if (!rc && range.kind != HIPSIM_KIND_MANAGED)
        rc = HIPSIM_INVALID_VALUE;
    hipsim_memory_put(&range);
    return rc;
}

int hipMemAdvise(const void *pointer, size_t bytes, int advice, int device)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    (void)advice;
    return hipsim_leave(rc ? rc : check_managed(pointer, bytes, device));
}

int hipMemPrefetchAsync(const void *pointer, size_t bytes, int device, void *handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    struct hipsim_stream *stream;

    if (!rc)
        rc = hipsim_stream_resolve(handle, &stream);
    if (rc)
        return hipsim_leave(rc);
    hipsim_stream_unref(stream);
    return hipsim_leave(check_managed(pointer, bytes, device));
}
