/* SPDX-License-Identifier: MIT */
/* The HIP face: devices, errors, entry points by name. */
#include "hip_api.h"

#include "ais.h"
#include "device.h"
#include "error.h"
#include "flavor.h"
#include "process.h"
#include "settings.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int hipInit(unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && flags)
        rc = HIPSIM_INVALID_VALUE;
    return hipsim_leave(rc);
}

int hipRuntimeGetVersion(int *version)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_NOTHING);

    if (!rc && !version)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        *version = hipsim_flavor.version;
    return hipsim_leave(rc);
}

int hipDriverGetVersion(int *version)
{
    return hipRuntimeGetVersion(version);
}

int hipGetDeviceCount(int *count)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!count)
        return hipsim_leave(HIPSIM_INVALID_VALUE);
    *count = rc ? 0 : hipsim_settings_get()->devices;
    if (!hipsim_settings_get()->devices)
        rc = HIPSIM_NO_DEVICE;
    return hipsim_leave(rc);
}

int hipGetDevice(int *device)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && !device)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        *device = hipsim_thread_get()->device;
    return hipsim_leave(rc);
}

int hipSetDevice(int device)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && !hipsim_device_get(device))
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc)
        hipsim_thread_get()->device = device;
    return hipsim_leave(rc);
}

/* The usual checks of a question about one device. */
static int ask(const char *name, const void *answer, int device)
{
    int rc = hipsim_enter(name, HIPSIM_NEED_INIT);

    if (!rc && !answer)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc && !hipsim_device_get(device))
        rc = HIPSIM_INVALID_DEVICE;
    return rc;
}

int hipDeviceGet(int *device, int ordinal)
{
    int rc = ask(__func__, device, ordinal);

    if (!rc)
        *device = ordinal;
    return hipsim_leave(rc);
}

/* HIP's attribute numbers, the same since 5.1. Those not listed are not offered. */
static const struct {
    int number;
    enum hipsim_attribute attribute;
} attributes[] = {
    {0, HIPSIM_ATTR_ZERO},
    {2, HIPSIM_ATTR_ASYNC_ENGINES},
    {3, HIPSIM_ATTR_ONE},
    {4, HIPSIM_ATTR_HOST_POINTER_SAME},
    {8, HIPSIM_ATTR_ONE},
    {9, HIPSIM_ATTR_MANAGED},
    {13, HIPSIM_ATTR_INTEGRATED},
    {15, HIPSIM_ATTR_ZERO},
    {16, HIPSIM_ATTR_INTEGRATED},
    {18, HIPSIM_ATTR_ZERO},
    {23, HIPSIM_ATTR_MAJOR},
    {24, HIPSIM_ATTR_MANAGED},
    {26, HIPSIM_ATTR_MAX_THREADS},
    {27, HIPSIM_ATTR_MAX_THREADS},
    {28, HIPSIM_ATTR_MAX_THREADS},
    {29, HIPSIM_ATTR_MAX_GRID},
    {30, HIPSIM_ATTR_MAX_GRID},
    {31, HIPSIM_ATTR_MAX_GRID},
    {56, HIPSIM_ATTR_MAX_THREADS},
    {58, HIPSIM_ATTR_MAX_PITCH},
    {61, HIPSIM_ATTR_MINOR},
    {63, HIPSIM_ATTR_PROCESSORS},
    {65, HIPSIM_ATTR_ZERO},
    {66, HIPSIM_ATTR_ZERO},
    {67, HIPSIM_ATTR_PCI_BUS},
    {68, HIPSIM_ATTR_ZERO},
    {69, HIPSIM_ATTR_ZERO},
    {85, HIPSIM_ATTR_HOST_DIRECT},
    {87, HIPSIM_ATTR_WARP},
    {88, HIPSIM_ATTR_ONE},
    {90, HIPSIM_ATTR_ONE},
    {10011, HIPSIM_ATTR_LARGE_BAR},
    {10013, HIPSIM_ATTR_WAIT_VALUE},
    {10016, HIPSIM_ATTR_ONE},
};

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    int rc = ask(__func__, value, device);

    for (size_t i = 0; !rc && i < sizeof(attributes) / sizeof(attributes[0]); i++)
        if (attributes[i].number == attribute) {
            *value = hipsim_device_attribute(device, attributes[i].attribute);
            return hipsim_leave(0);
        }
    return hipsim_leave(rc ? rc : HIPSIM_INVALID_VALUE);
}

int hipDeviceComputeCapability(int *major, int *minor, int device)
{
    int rc = ask(__func__, major && minor ? major : NULL, device);

    if (!rc) {
        *major = hipsim_device_attribute(device, HIPSIM_ATTR_MAJOR);
        *minor = hipsim_device_attribute(device, HIPSIM_ATTR_MINOR);
    }
    return hipsim_leave(rc);
}

int hipDeviceGetName(char *name, int size, int device)
{
    int rc = ask(__func__, size > 0 ? name : NULL, device);

    if (!rc)
        hipsim_device_name(device, name, (size_t)size);
    return hipsim_leave(rc);
}

int hipDeviceGetUuid(void *uuid, int device)
{
    int rc = ask(__func__, uuid, device);

    if (!rc)
        hipsim_device_uuid(device, uuid);
    return hipsim_leave(rc);
}

int hipDeviceGetPCIBusId(char *text, int size, int device)
{
    int rc = ask(__func__, size > 0 ? text : NULL, device);

    if (!rc)
        hipsim_device_pci(device, text, (size_t)size);
    return hipsim_leave(rc);
}

int hipDeviceGetByPCIBusId(int *device, const char *text)
{
    int rc = ask(__func__, device && text ? device : NULL, 0);
    int found = rc ? -1 : hipsim_device_by_pci(text);

    if (!rc && found < 0)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        *device = found;
    return hipsim_leave(rc);
}

int hipDeviceTotalMem(size_t *bytes, int device)
{
    int rc = ask(__func__, bytes, device);

    if (!rc)
        *bytes = hipsim_settings_get()->memory;
    return hipsim_leave(rc);
}

/* The layout that the unsuffixed name keeps in all versions, as far as it is filled in. */
struct properties {
    char name[256];
    size_t total_memory, shared_per_block;
    int registers, warp, max_threads, max_block[3], max_grid[3], clock, memory_clock, bus_width;
    size_t constant_memory;
    int major, minor, processors, l2_bytes;
    unsigned char rest[792 - 344];
};
_Static_assert(sizeof(struct properties) == 792, "hipDeviceProp_t up to 5.7");

int hipGetDeviceProperties(void *properties, int device)
{
    struct properties *out = properties;
    int rc = ask(__func__, properties, device);

    if (rc)
        return hipsim_leave(rc);
    memset(out, 0, sizeof(*out));
    hipsim_device_name(device, out->name, sizeof(out->name));
    out->total_memory = hipsim_settings_get()->memory;
    out->warp = hipsim_device_attribute(device, HIPSIM_ATTR_WARP);
    out->max_threads = hipsim_device_attribute(device, HIPSIM_ATTR_MAX_THREADS);
    for (int i = 0; i < 3; i++) {
        out->max_block[i] = out->max_threads;
        out->max_grid[i] = hipsim_device_attribute(device, HIPSIM_ATTR_MAX_GRID);
    }
    out->major = hipsim_device_attribute(device, HIPSIM_ATTR_MAJOR);
    out->minor = hipsim_device_attribute(device, HIPSIM_ATTR_MINOR);
    out->processors = hipsim_device_attribute(device, HIPSIM_ATTR_PROCESSORS);
    return hipsim_leave(0);
}

int hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    int rc = ask(__func__, can, device);

    if (!rc && !hipsim_device_get(peer))
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc)
        *can = device != peer;
    return hipsim_leave(rc);
}

int hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc && flags)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        rc = hipsim_device_enable_peer(hipsim_current_device(), peer);
    return hipsim_leave(rc);
}

int hipDeviceDisablePeerAccess(int peer)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc)
        rc = hipsim_device_disable_peer(hipsim_current_device(), peer);
    return hipsim_leave(rc);
}

int hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc && least)
        *least = 1;
    if (!rc && greatest)
        *greatest = -1;
    return hipsim_leave(rc);
}

int hipDeviceReset(void)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_INIT);

    if (!rc)
        hipsim_device_reset(hipsim_current_device());
    return hipsim_leave(rc);
}

int hipDeviceSynchronize(void)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_DEVICE);

    if (!rc)
        rc = hipsim_device_drain(hipsim_current_device());
    return hipsim_leave(rc);
}

int hipGetLastError(void)
{
    struct hipsim_thread *thread = hipsim_thread_get();
    int rc = thread->last_error;

    thread->last_error = 0;
    return rc;
}

int hipPeekAtLastError(void)
{
    return hipsim_thread_get()->last_error;
}

int hipExtGetLastError(void)
{
    struct hipsim_thread *thread = hipsim_thread_get();
    int rc = thread->last_call;

    thread->last_call = 0;
    return rc;
}

const char *hipGetErrorName(int code)
{
    const char *name = hipsim_error_name(code);

    return name ? name : "hipErrorUnknown";
}

const char *hipGetErrorString(int code)
{
    const char *text = hipsim_error_text(code);

    return text ? text : "unrecognized error code";
}

/* Exported functions are found in this very library, whatever else the process has loaded. */
static void *exported(const char *symbol)
{
    Dl_info self;
    void *library, *function;

    if (!dladdr((void *)hipInit, &self) || strncmp(symbol, "hip", 3))
        return NULL;
    library = dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        return NULL;
    function = dlsym(library, symbol);
    dlclose(library);
    return function;
}

int hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_NOTHING);
    int found = HIPSIM_AIS_MISSING;

    if (rc || !symbol || !function || flags > 2)
        return hipsim_leave(rc ? rc : HIPSIM_INVALID_VALUE);
    *function = exported(symbol);
    if (*function)
        found = HIPSIM_AIS_FOUND;
    else
        found = hipsim_ais_entry(symbol, version, function);
    if (status)
        *status = found;
    return hipsim_leave(found == HIPSIM_AIS_FOUND ? 0 : HIPSIM_INVALID_VALUE);
}
