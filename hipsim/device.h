/* SPDX-License-Identifier: MIT */
/* The simulated devices: facts, broken state, peer access, and the list of their streams. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hipsim_stream;

struct hipsim_device {
    int index;
    atomic_int sticky;   /* the error that all work answers since a fault, 0 = healthy */
    atomic_uint peers;   /* bit n: this device may use memory of device n */
    atomic_int contexts; /* CUDA: how often the primary context is retained */
    atomic_bool reset;   /* CUDA: and nobody has retained it since: nothing works */
    /* Guards the list, every stream's place in it and the order of submission between the legacy
     * stream and the blocking ones. Taken before a stream's own lock, never after. */
    pthread_mutex_t lock;
    struct hipsim_stream *streams;
    struct hipsim_stream *legacy;
    int capturing; /* blocking streams under capture */
};

/* NULL when `index` is no device. */
struct hipsim_device *hipsim_device_get(int index);

/* Breaks the device: the first error stays. */
void hipsim_device_break(int index, int code);
int hipsim_device_sticky(int index);

/* May work on `device` use memory of `owner`? */
bool hipsim_device_reaches(int device, int owner);
int hipsim_device_enable_peer(int device, int peer);
int hipsim_device_disable_peer(int device, int peer);

/* Ends all that was made on the device: streams but the default ones, events, modules, memory. The
 * device is as new, healthy again too. */
void hipsim_device_reset(int index);

/* Waits for everything submitted to the device so far. Returns 0 or its sticky error. */
int hipsim_device_drain(int index);

enum hipsim_attribute {
    HIPSIM_ATTR_ZERO, /* known to the vendor, answered with 0 */
    HIPSIM_ATTR_ONE,
    HIPSIM_ATTR_ASYNC_ENGINES,
    HIPSIM_ATTR_INTEGRATED,
    HIPSIM_ATTR_LARGE_BAR,
    HIPSIM_ATTR_WAIT_VALUE,
    HIPSIM_ATTR_MANAGED,
    HIPSIM_ATTR_HOST_POINTER_SAME,
    HIPSIM_ATTR_HOST_DIRECT,
    HIPSIM_ATTR_MAX_THREADS,
    HIPSIM_ATTR_PROCESSORS,
    HIPSIM_ATTR_WARP,
    HIPSIM_ATTR_MAJOR,
    HIPSIM_ATTR_MINOR,
    HIPSIM_ATTR_PCI_BUS,
    HIPSIM_ATTR_MAX_GRID,
    HIPSIM_ATTR_MAX_PITCH,
};

int hipsim_device_attribute(int index, enum hipsim_attribute attribute);
void hipsim_device_name(int index, char *name, size_t size);
void hipsim_device_uuid(int index, unsigned char uuid[16]);
void hipsim_device_pci(int index, char *text, size_t size);
int hipsim_device_by_pci(const char *text);
