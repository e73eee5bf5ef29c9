/* SPDX-License-Identifier: MIT */
/* Which runtime this library poses as. The only thing that differs between the libraries that are
 * linked from the same objects. */
#pragma once

enum hipsim_vendor { HIPSIM_HIP, HIPSIM_CUDA };

struct hipsim_flavor {
    enum hipsim_vendor vendor;
    int major;           /* of the vendor's release: 5, 6, 7 for ROCm */
    int version;         /* what the vendor's version call answers */
    const char *library; /* name for messages and reports */
};

extern const struct hipsim_flavor hipsim_flavor;
