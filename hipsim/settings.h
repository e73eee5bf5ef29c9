/* SPDX-License-Identifier: MIT */
/* The environment variables HIPSIM_*, read once. A bad value ends the process with the reason. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { HIPSIM_MAX_DEVICES = 16 };

enum hipsim_ais_mode {
    HIPSIM_AIS_OFF,    /* the entry points are not found */
    HIPSIM_AIS_ON,     /* served on every file */
    HIPSIM_AIS_STRICT, /* served only where the kernel would: no tmpfs, overlay or network file */
    HIPSIM_AIS_REFUSE, /* every call ends in ENODEV */
};

struct hipsim_settings {
    int devices;
    bool apu;            /* device memory is host memory, integrated attribute 1 */
    bool large_bar;      /* device memory is host addressable though it should not be used so */
    bool wait_value;     /* the device can wait for a memory value */
    bool managed;        /* managed memory is offered */
    bool register_alias; /* registered memory has another address on the device */
    enum hipsim_ais_mode ais;
    uint64_t ais_align;
    uint64_t memory; /* bytes per device */
    uint64_t poison; /* bytes of a fresh allocation that are poisoned at each end */
    uint64_t seed;
    unsigned delay_us;
    const char *fail;  /* fault rules or NULL */
    const char *stats; /* where to report at exit or NULL */
    int rank;          /* of an MPI process, -1 outside MPI */
};

const struct hipsim_settings *hipsim_settings_get(void);
