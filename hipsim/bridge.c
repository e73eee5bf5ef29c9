/* SPDX-License-Identifier: MIT */
/* The bridge from libcufile into libcuda. */
#include "bridge.h"

static struct hipsim_fault current_fault(void)
{
    return hipsim_thread_get()->fault;
}

const struct hipsim_bridge *hipsim_bridge_get(void)
{
    static const struct hipsim_bridge bridge = {
        .enter = hipsim_enter,
        .fault = current_fault,
        .resolve = hipsim_memory_resolve,
        .put = hipsim_memory_put,
        .count = hipsim_counters_add,
    };

    return &bridge;
}
