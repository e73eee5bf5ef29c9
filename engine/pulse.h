/* SPDX-License-Identifier: MIT */
/*
 * Pulse: is what hipio holds on a GPU still there?
 *
 * An application that resets a device (hipDeviceReset, cuDevicePrimaryCtxReset) ends all streams,
 * events, modules and pinned memory on it, hipio's too, and tells nobody. To ask a runtime about a
 * handle that is gone may crash; to ask about an address never does. So a page of pinned memory
 * with a mark in it stands for all that was made with it: each thing that is kept remembers the
 * device's pulse of when it was made, and is abandoned, without a call for it, once that is another
 * one.
 */
#pragma once
#include "device/device.h"
#include <stdbool.h>
#include <stdint.h>

/*
 * The device's pulse now. It is another one after each reset that can be told, and always the same
 * where there is no pinned memory to have (or none that a reset ends: HIP with several devices).
 * Host: 0. One question about an address; thread-safe; not for the thread of a stream.
 */
uint64_t hipio_pulse(const struct hipio_device_ops *ops, int device);

/* Is what was made at that pulse still there? `made` 0: its maker did not ask. */
bool hipio_pulse_is_same(const struct hipio_device_ops *ops, int device, uint64_t made);

/* Gives the pages back. The pulses stay what they are. */
void hipio_pulse_shutdown(void);
