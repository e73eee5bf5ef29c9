/* SPDX-License-Identifier: MIT */
/* The codes that simulated calls return. HIP and CUDA share the numbers; the names differ. */
#pragma once

enum hipsim_error {
    HIPSIM_OK = 0,
    HIPSIM_INVALID_VALUE = 1,
    HIPSIM_OUT_OF_MEMORY = 2,
    HIPSIM_NOT_INITIALIZED = 3,
    HIPSIM_DEINITIALIZED = 4,
    HIPSIM_INVALID_PITCH = 12,
    HIPSIM_INVALID_DIRECTION = 21,
    HIPSIM_INVALID_FUNCTION = 98,
    HIPSIM_NO_DEVICE = 100,
    HIPSIM_INVALID_DEVICE = 101,
    HIPSIM_INVALID_IMAGE = 200,
    HIPSIM_INVALID_CONTEXT = 201,
    HIPSIM_NO_BINARY = 209,
    HIPSIM_INVALID_HANDLE = 400,
    HIPSIM_NOT_FOUND = 500,
    HIPSIM_NOT_READY = 600,
    HIPSIM_ILLEGAL_ADDRESS = 700,
    HIPSIM_PEER_ENABLED = 704,
    HIPSIM_PEER_NOT_ENABLED = 705,
    HIPSIM_CONTEXT_DESTROYED = 709,
    HIPSIM_ALREADY_REGISTERED = 712,
    HIPSIM_NOT_REGISTERED = 713,
    HIPSIM_LAUNCH_FAILURE = 719,
    HIPSIM_NOT_SUPPORTED = 801,
    HIPSIM_CAPTURE_UNSUPPORTED = 900,
    HIPSIM_CAPTURE_INVALIDATED = 901,
    HIPSIM_CAPTURE_UNMATCHED = 903,
    HIPSIM_CAPTURE_IMPLICIT = 906,
    HIPSIM_UNKNOWN = 999,
};

/* The vendor's name of a code and a sentence about it; NULL for a code that the vendor has not. */
const char *hipsim_error_name(int code);
const char *hipsim_error_text(int code);

/* The simulator itself is misused and going on would hide it: says why on stderr and aborts. */
void hipsim_error_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
