/* SPDX-License-Identifier: MIT */
/* Compiled once per library, with HIPSIM_FLAVOR_* given by the build. */
#include "flavor.h"

const struct hipsim_flavor hipsim_flavor = {
    .vendor = HIPSIM_FLAVOR_VENDOR,
    .major = HIPSIM_FLAVOR_MAJOR,
    .version = HIPSIM_FLAVOR_VERSION,
    .library = HIPSIM_FLAVOR_LIBRARY,
};
