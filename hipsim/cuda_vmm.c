/* SPDX-License-Identifier: MIT */
/* The CUDA face: virtual memory management. */
#include "cuda_api.h"

#include "device.h"
#include "error.h"
#include "process.h"
#include "vmm.h"

enum { ON_DEVICE = 1, PINNED = 1, READ_WRITE = 3 };

static void *address(cuda_pointer pointer)
{
    return (void *)(uintptr_t)pointer;
}

/* Memory of a device, not to be shared with another process. */
static int check(const struct cuda_allocation *what)
{
    if (!what || what->type != PINNED || what->location.type != ON_DEVICE)
        return HIPSIM_INVALID_VALUE;
    if (what->handle_types)
        return HIPSIM_NOT_SUPPORTED;
    return hipsim_device_get(what->location.id) ? 0 : HIPSIM_INVALID_DEVICE;
}

int cuMemGetAllocationGranularity(size_t *bytes, const struct cuda_allocation *what, int option)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && (!bytes || option < 0 || option > 1))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = check(what);
    if (!rc)
        *bytes = HIPSIM_VMM_GRANULARITY;
    return hipsim_leave(rc);
}

int cuMemAddressReserve(cuda_pointer *pointer, size_t bytes, size_t alignment, cuda_pointer wish,
                        unsigned long long flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    void *found;

    (void)wish;
    if (!rc && (!pointer || flags || alignment > HIPSIM_VMM_GRANULARITY))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_vmm_reserve(bytes, &found);
    if (!rc)
        *pointer = (uintptr_t)found;
    return hipsim_leave(rc);
}

int cuMemAddressFree(cuda_pointer pointer, size_t bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_vmm_unreserve(address(pointer), bytes));
}

int cuMemCreate(uint64_t *handle, size_t bytes, const struct cuda_allocation *what,
                unsigned long long flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);
    void *made;

    if (!rc && (!handle || flags))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = check(what);
    if (!rc)
        rc = hipsim_vmm_create(what->location.id, bytes, &made);
    if (!rc)
        *handle = (uintptr_t)made;
    return hipsim_leave(rc);
}

int cuMemRelease(uint64_t handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_vmm_release((void *)(uintptr_t)handle));
}

int cuMemMap(cuda_pointer pointer, size_t bytes, size_t offset, uint64_t handle,
             unsigned long long flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && flags)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_vmm_map(address(pointer), bytes, offset, (void *)(uintptr_t)handle);
    return hipsim_leave(rc);
}

int cuMemSetAccess(cuda_pointer pointer, size_t bytes, const struct cuda_access *access,
                   size_t count)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && (!access || count != 1 || access->location.type != ON_DEVICE ||
                access->flags != READ_WRITE))
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_vmm_access(address(pointer), bytes));
}

int cuMemUnmap(cuda_pointer pointer, size_t bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    return hipsim_leave(rc ? rc : hipsim_vmm_unmap(address(pointer), bytes));
}
