/* SPDX-License-Identifier: MIT */
/* The HIP face: virtual memory management. */
#include "hip_api.h"

#include "device.h"
#include "error.h"
#include "flavor.h"
#include "process.h"
#include "vmm.h"

#include <string.h>

enum { ON_DEVICE = 1, READ_WRITE = 3 };

/* The properties' fields moved after 5.2: where the place of the memory stands, type and number. */
static void read_location(const void *properties, int location[2])
{
    const size_t offset = hipsim_flavor.major == 5 ? 4 : 8;

    memcpy(location, (const char *)properties + offset, 2 * sizeof(int));
}

static int check(const void *properties, int *device)
{
    int location[2];

    if (!properties)
        return HIPSIM_INVALID_VALUE;
    read_location(properties, location);
    if (location[0] != ON_DEVICE || !hipsim_device_get(location[1]))
        return HIPSIM_INVALID_VALUE;
    *device = location[1];
    return 0;
}

int hipMemGetAllocationGranularity(size_t *bytes, const void *properties, int option)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    int device;

    if (!rc && (!bytes || option < 0 || option > 1))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = check(properties, &device);
    if (!rc)
        *bytes = HIPSIM_VMM_GRANULARITY;
    return hipsim_leave(rc);
}

int hipMemAddressReserve(void **pointer, size_t bytes, size_t alignment, void *wish,
                         unsigned long long flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    (void)wish;
    if (!rc && (!pointer || flags || alignment > HIPSIM_VMM_GRANULARITY))
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_vmm_reserve(bytes, pointer));
}

int hipMemAddressFree(void *pointer, size_t bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_vmm_unreserve(pointer, bytes));
}

int hipMemCreate(void **handle, size_t bytes, const void *properties, unsigned long long flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);
    int device;

    if (!rc && (!handle || flags))
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = check(properties, &device);
    return hipsim_leave(rc ? rc : hipsim_vmm_create(device, bytes, handle));
}

int hipMemRelease(void *handle)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_vmm_release(handle));
}

int hipMemMap(void *pointer, size_t bytes, size_t offset, void *handle, unsigned long long flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && flags)
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_vmm_map(pointer, bytes, offset, handle));
}

int hipMemSetAccess(void *pointer, size_t bytes, const struct hip_access *access, size_t count)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc &&
        (!access || count != 1 || access->location[0] != ON_DEVICE || access->flags != READ_WRITE))
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc ? rc : hipsim_vmm_access(pointer, bytes));
}

int hipMemUnmap(void *pointer, size_t bytes)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    return hipsim_leave(rc ? rc : hipsim_vmm_unmap(pointer, bytes));
}
