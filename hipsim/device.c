/* SPDX-License-Identifier: MIT */
/* The simulated devices. */
#include "device.h"

#include "counters.h"
#include "error.h"
#include "event.h"
#include "flavor.h"
#include "memory.h"
#include "module.h"
#include "settings.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hipsim_device devices[HIPSIM_MAX_DEVICES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void)
{
    for (int i = 0; i < HIPSIM_MAX_DEVICES; i++) {
        devices[i].index = i;
        pthread_mutex_init(&devices[i].lock, NULL);
    }
}

struct hipsim_device *hipsim_device_get(int index)
{
    pthread_once(&once, start);
    if (index < 0 || index >= hipsim_settings_get()->devices)
        return NULL;
    return &devices[index];
}

void hipsim_device_break(int index, int code)
{
    struct hipsim_device *device = hipsim_device_get(index);
    int healthy = 0;

    if (device)
        atomic_compare_exchange_strong(&device->sticky, &healthy, code);
}

int hipsim_device_sticky(int index)
{
    struct hipsim_device *device = hipsim_device_get(index);

    return device ? atomic_load(&device->sticky) : HIPSIM_INVALID_DEVICE;
}

bool hipsim_device_reaches(int device, int owner)
{
    struct hipsim_device *self = hipsim_device_get(device);

    return device == owner || (self && atomic_load(&self->peers) >> owner & 1);
}

int hipsim_device_enable_peer(int device, int peer)
{
    struct hipsim_device *self = hipsim_device_get(device);

    if (!self || !hipsim_device_get(peer) || device == peer)
        return HIPSIM_INVALID_DEVICE;
    return atomic_fetch_or(&self->peers, 1u << peer) >> peer & 1 ? HIPSIM_PEER_ENABLED : 0;
}

int hipsim_device_disable_peer(int device, int peer)
{
    struct hipsim_device *self = hipsim_device_get(device);

    if (!self || !hipsim_device_get(peer) || device == peer)
        return HIPSIM_INVALID_DEVICE;
    return atomic_fetch_and(&self->peers, ~(1u << peer)) >> peer & 1 ? 0 : HIPSIM_PEER_NOT_ENABLED;
}

/* The points that all streams of the device have been given so far. */
static size_t snapshot(struct hipsim_device *device, struct hipsim_point **points)
{
    size_t count = 0, used = 0;

    pthread_mutex_lock(&device->lock);
    for (struct hipsim_stream *s = device->streams; s; s = s->next)
        count++;
    *points = calloc(count + 1, sizeof(**points));
    if (!*points)
        hipsim_error_die("out of memory in a device synchronisation");
    for (struct hipsim_stream *s = device->streams; s; s = s->next) {
        hipsim_stream_ref(s);
        pthread_mutex_lock(&s->lock);
        (*points)[used++] = (struct hipsim_point){s, s->submitted};
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&device->lock);
    return used;
}

int hipsim_device_drain(int index)
{
    struct hipsim_device *device = hipsim_device_get(index);
    struct hipsim_point *points;
    size_t count;

    if (!device)
        return HIPSIM_INVALID_DEVICE;
    hipsim_counters_add(HIPSIM_COUNT_syncs_device, 1);
    count = snapshot(device, &points);
    for (size_t i = 0; i < count; i++) {
        hipsim_stream_wait(&points[i]);
        hipsim_stream_put_point(&points[i]);
    }
    free(points);
    return atomic_load(&device->sticky);
}

void hipsim_device_reset(int index)
{
    struct hipsim_device *device = hipsim_device_get(index);

    hipsim_device_drain(index);
    hipsim_stream_end_all(device);
    hipsim_event_end_all(index);
    hipsim_module_end_all(index);
    hipsim_memory_end_all(index);
    atomic_store(&device->peers, 0);
    atomic_store(&device->sticky, 0);
}

int hipsim_device_attribute(int index, enum hipsim_attribute attribute)
{
    const struct hipsim_settings *settings = hipsim_settings_get();

    switch (attribute) {
    case HIPSIM_ATTR_ZERO:
        return 0;
    case HIPSIM_ATTR_ONE:
        return 1;
    case HIPSIM_ATTR_ASYNC_ENGINES:
        return 2;
    case HIPSIM_ATTR_INTEGRATED:
        return settings->apu;
    case HIPSIM_ATTR_LARGE_BAR:
        return settings->large_bar || settings->apu;
    case HIPSIM_ATTR_WAIT_VALUE:
        return settings->wait_value;
    case HIPSIM_ATTR_MANAGED:
        return settings->managed;
    case HIPSIM_ATTR_HOST_POINTER_SAME:
        return !settings->register_alias;
    case HIPSIM_ATTR_HOST_DIRECT:
        return settings->large_bar || settings->apu;
    case HIPSIM_ATTR_MAX_THREADS:
        return 1024;
    case HIPSIM_ATTR_PROCESSORS:
        return 8;
    case HIPSIM_ATTR_WARP:
        return hipsim_flavor.vendor == HIPSIM_HIP ? 64 : 32;
    case HIPSIM_ATTR_MAJOR:
        return 9;
    case HIPSIM_ATTR_MINOR:
        return 0;
    case HIPSIM_ATTR_PCI_BUS:
        return index + 1;
    case HIPSIM_ATTR_MAX_GRID:
    case HIPSIM_ATTR_MAX_PITCH:
        return INT32_MAX;
    }
    return 0;
}

void hipsim_device_name(int index, char *name, size_t size)
{
    snprintf(name, size, "hipsim: simulated device %d (no GPU)", index);
}

void hipsim_device_uuid(int index, unsigned char uuid[16])
{
    memcpy(uuid, "hipsim-no-gpu-\0\0", 16);
    uuid[15] = (unsigned char)index;
}

void hipsim_device_pci(int index, char *text, size_t size)
{
    snprintf(text, size, "0000:%02x:00.0", index + 1);
}

int hipsim_device_by_pci(const char *text)
{
    char own[32];

    for (int i = 0; i < hipsim_settings_get()->devices; i++) {
        hipsim_device_pci(i, own, sizeof(own));
        if (!strcmp(own, text))
            return i;
    }
    return -1;
}
