/* SPDX-License-Identifier: MIT */
/* The CUDA face: devices, error texts, entry points by name. */
#include "cuda_api.h"

#include "device.h"
#include "error.h"
#include "flavor.h"
#include "process.h"
#include "settings.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int cuInit(unsigned flags)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_NOTHING);

    if (!rc && flags)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc && hipsim_process_forked())
        rc = HIPSIM_NOT_INITIALIZED;
    if (!rc && !hipsim_settings_get()->devices)
        rc = HIPSIM_NO_DEVICE;
    if (!rc)
        hipsim_process_init();
    return hipsim_leave(rc);
}

int cuDriverGetVersion(int *version)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_NOTHING);

    if (!rc && !version)
        rc = HIPSIM_INVALID_VALUE;
    if (!rc)
        *version = hipsim_flavor.version;
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

int cuDeviceGetCount(int *count)
{
    int rc = ask(__func__, count, 0);

    if (!rc)
        *count = hipsim_settings_get()->devices;
    return hipsim_leave(rc);
}

int cuDeviceGet(int *device, int ordinal)
{
    int rc = ask(__func__, device, ordinal);

    if (!rc)
        *device = ordinal;
    return hipsim_leave(rc);
}

static const struct {
    int number;
    enum hipsim_attribute attribute;
} attributes[] = {
    {1, HIPSIM_ATTR_MAX_THREADS},    {2, HIPSIM_ATTR_MAX_THREADS},
    {3, HIPSIM_ATTR_MAX_THREADS},    {4, HIPSIM_ATTR_MAX_THREADS},
    {5, HIPSIM_ATTR_MAX_GRID},       {6, HIPSIM_ATTR_MAX_GRID},
    {7, HIPSIM_ATTR_MAX_GRID},       {10, HIPSIM_ATTR_WARP},
    {11, HIPSIM_ATTR_MAX_PITCH},     {16, HIPSIM_ATTR_PROCESSORS},
    {18, HIPSIM_ATTR_INTEGRATED},    {19, HIPSIM_ATTR_ONE},
    {33, HIPSIM_ATTR_PCI_BUS},       {34, HIPSIM_ATTR_ZERO},
    {40, HIPSIM_ATTR_ASYNC_ENGINES}, {41, HIPSIM_ATTR_ONE},
    {50, HIPSIM_ATTR_ZERO},          {75, HIPSIM_ATTR_MAJOR},
    {76, HIPSIM_ATTR_MINOR},         {83, HIPSIM_ATTR_MANAGED},
    {86, HIPSIM_ATTR_ZERO},          {88, HIPSIM_ATTR_ZERO},
    {89, HIPSIM_ATTR_MANAGED},       {91, HIPSIM_ATTR_HOST_POINTER_SAME},
    {99, HIPSIM_ATTR_ONE},           {100, HIPSIM_ATTR_ZERO},
    {101, HIPSIM_ATTR_INTEGRATED},   {102, HIPSIM_ATTR_ONE},
    {115, HIPSIM_ATTR_ONE},          {116, HIPSIM_ATTR_ZERO},
    {122, HIPSIM_ATTR_WAIT_VALUE},   {124, HIPSIM_ATTR_ZERO},
};

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int rc = ask(__func__, value, device);

    for (size_t i = 0; !rc && i < sizeof(attributes) / sizeof(attributes[0]); i++)
        if (attributes[i].number == attribute) {
            *value = hipsim_device_attribute(device, attributes[i].attribute);
            return hipsim_leave(0);
        }
    return hipsim_leave(rc ? rc : HIPSIM_INVALID_VALUE);
}

int cuDeviceGetName(char *name, int size, int device)
{
    int rc = ask(__func__, size > 0 ? name : NULL, device);

    if (!rc)
        hipsim_device_name(device, name, (size_t)size);
    return hipsim_leave(rc);
}

static int uuid_of(const char *name, void *uuid, int device)
{
    int rc = ask(name, uuid, device);

    if (!rc)
        hipsim_device_uuid(device, uuid);
    return hipsim_leave(rc);
}

int cuDeviceGetUuid(void *uuid, int device)
{
    return uuid_of(__func__, uuid, device);
}

int cuDeviceGetUuid_v2(void *uuid, int device)
{
    return uuid_of(__func__, uuid, device);
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    int rc = ask(__func__, size > 0 ? text : NULL, device);

    if (!rc)
        hipsim_device_pci(device, text, (size_t)size);
    return hipsim_leave(rc);
}

int cuDeviceGetByPCIBusId(int *device, const char *text)
{
    int rc = ask(__func__, device && text ? device : NULL, 0);
    int found = rc ? -1 : hipsim_device_by_pci(text);

    if (!rc && found < 0)
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc)
        *device = found;
    return hipsim_leave(rc);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    int rc = ask(__func__, bytes, device);

    if (!rc)
        *bytes = hipsim_settings_get()->memory;
    return hipsim_leave(rc);
}

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    int rc = ask(__func__, can, device);

    if (!rc && !hipsim_device_get(peer))
        rc = HIPSIM_INVALID_DEVICE;
    if (!rc)
        *can = device != peer;
    return hipsim_leave(rc);
}

static int answer(const char *found, const char **out)
{
    *out = found;
    return found ? 0 : HIPSIM_INVALID_VALUE;
}

int cuGetErrorName(int code, const char **name)
{
    return name ? answer(hipsim_error_name(code), name) : HIPSIM_INVALID_VALUE;
}

int cuGetErrorString(int code, const char **text)
{
    return text ? answer(hipsim_error_text(code), text) : HIPSIM_INVALID_VALUE;
}

/* The plain name asks for the newest form, as the real call's does. */
static void *exported(const char *symbol)
{
    char suffixed[128];
    Dl_info self;
    void *library, *function;

    if (strncmp(symbol, "cu", 2) || !dladdr((void *)cuInit, &self))
        return NULL;
    library = dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        return NULL;
    snprintf(suffixed, sizeof(suffixed), "%s_v2", symbol);
    function = dlsym(library, suffixed);
    if (!function)
        function = dlsym(library, symbol);
    dlclose(library);
    return function;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *status)
{
    int rc = hipsim_enter(__func__, HIPSIM_NEED_NOTHING);

    (void)version;
    if (rc || !symbol || !function || flags > 2)
        return hipsim_leave(rc ? rc : HIPSIM_INVALID_VALUE);
    *function = exported(symbol);
    if (status)
        *status = *function ? 0 : 1;
    return hipsim_leave(*function ? 0 : HIPSIM_NOT_FOUND);
}
