/* SPDX-License-Identifier: MIT */
/*
 * Device: the one door to GPU runtimes.
 *
 * A provider (host.c, hip.c, cuda.c; listed in table.def) fills every entry of struct
 * hipio_device_ops. Vendor names, enum values and symbols stay in its file; runtimes are loaded
 * with dlopen, never linked. Functions return 0 or a negative errno with a text (status.h) that
 * carries the runtime's own words: -ENODEV nothing there, -ENOMEM no memory, -ENOTSUP the runtime
 * or device can't, -EINVAL bad argument, -EIO the runtime failed.
 *
 * Rules for every entry: the calling thread's current device and context are the same after the
 * call as before, on every exit; an expected failure leaves no trace in the application's last
 * error; no GPU is initialised for a program that uses none; nothing is freed from a host function.
 * All entries may be called from any thread.
 */
#pragma once
#include "extent.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hipio_memory_kind {
    HIPIO_MEMORY_HOST,    /* ordinary memory */
    HIPIO_MEMORY_PINNED,  /* host memory known to the runtime; the CPU may touch it */
    HIPIO_MEMORY_MANAGED, /* migrates; the CPU may touch it once GPU work on it is complete */
    HIPIO_MEMORY_DEVICE,  /* the CPU may not touch it, unless cpu_access says so (an APU) */
    HIPIO_MEMORY_INVALID  /* not mapped, or a GPU's memory that no provider may serve */
};

struct hipio_device_ops;
struct hipio_user_stream_ops;

/* What an address is. Made once per MPI call or request and carried along; never cached by address.
 */
struct hipio_memory {
    enum hipio_memory_kind kind;
    int device;      /* owner's ordinal; -1 for host memory */
    bool cpu_access; /* plain loads, stores and system calls are right and fast */
    const struct hipio_device_ops
        *ops; /* serves this memory; never NULL (host.c serves host memory) */
};

enum hipio_copy { HIPIO_COPY_TO_DEVICE, HIPIO_COPY_TO_HOST, HIPIO_COPY_DEVICE };

/* Opaque: a stream of one device, non-blocking, created by us. Host provider: synchronous. */
struct hipio_stream;
struct hipio_event;

struct hipio_device_ops {
    const char *name; /* "host", "hip", "cuda" */

    /*
     * Makes the runtime usable if the process has it loaded already (RTLD_NOLOAD) or if `force`
     * asks to load it. Cheap when it was done before; may be called again until it succeeds, since
     * an application may load the runtime later. 0, or -ENODEV (not an error).
     */
    int (*attach)(bool force);
    /* True as soon as the runtime's library is in the process, attached or not; no side effect. */
    bool (*present)(void);

    /* Fills `memory` and returns 0 if the address is this runtime's (pinned, managed, device); 1 if
     * it is not; < 0 on error. */
    int (*classify)(const void *address, struct hipio_memory *memory);
    /* Start and length of the allocation that holds `address`; -ENOTSUP or -EINVAL where it can't
     * be told. Only for optimisation. */
    int (*range)(const struct hipio_memory *memory, const void *address, uintptr_t *start,
                 uint64_t *length);

    int (*device_count)(void);
    int (*device_name)(int device, char *out, size_t size);
    int (*pci_bus_id)(int device, char *out, size_t size);
    int (*runtime_version)(char *out, size_t size); /* "HIP 5.2.21153", "CUDA driver 13.0" */

    /* Waits for the default stream and all blocking streams of the device, or (everything) for all
     * its work. */
    int (*synchronize)(int device, bool everything);

    /* Pinned, portable, mapped host memory. */
    int (*host_alloc)(int device, size_t bytes, void **out);
    int (*host_free)(int device, void *memory);
    /* Pins host memory that is there already, whole pages of it, so that it is as host_alloc's.
     * -ENOTSUP where the runtime can't; the memory must be unregistered before it goes. */
    int (*host_register)(int device, void *memory, size_t bytes);
    int (*host_unregister)(int device, void *memory);

    int (*stream_create)(int device, struct hipio_stream **out);
    int (*stream_destroy)(struct hipio_stream *stream);
    int (*stream_synchronize)(struct hipio_stream *stream);

    /* Queues a copy. The host side must be pinned memory, or the call may act as if it were
     * synchronous. */
    int (*copy)(struct hipio_stream *stream, void *to, const void *from, uint64_t bytes,
                enum hipio_copy way);
    /* Queues `rows` rows of `width` bytes, `to_pitch` and `from_pitch` bytes apart (>= width).
     * -ENOTSUP: shape not taken. */
    int (*copy_2d)(struct hipio_stream *stream, void *to, uint64_t to_pitch, const void *from,
                   uint64_t from_pitch, uint64_t width, uint64_t rows, enum hipio_copy way);

    int (*event_create)(int device, struct hipio_event **out);
    int (*event_destroy)(struct hipio_event *event);
    int (*event_record)(struct hipio_event *event, struct hipio_stream *stream);
    int (*event_synchronize)(struct hipio_event *event); /* complete: 0; the work failed: -EIO */
    int (*event_query)(struct hipio_event *event);       /* complete: 0; not yet: -EAGAIN */

    /* Kernels; -ENOTSUP where no image fits the device. The image must stay readable while the
     * module lives. */
    int (*module_load)(int device, const void *image, void **module);
    int (*module_function)(int device, void *module, const char *name, void **function);
    int (*module_unload)(int device, void *module);
    int (*launch)(struct hipio_stream *stream, void *function, unsigned blocks, unsigned threads,
                  void **params);
    /* Address of pinned memory as kernels see it. */
    int (*device_pointer)(int device, void *pinned, void **out);
    int (*multiprocessors)(int device);
    /* Name of the kernel image family that this provider takes: "hip", "cuda", "" (none). */
    const char *image_family;
    /* Work on streams of the application (user_stream.h). */
    const struct hipio_user_stream_ops *user_streams;
};

/* The providers, in the order of table.def; host last. */
extern const struct hipio_device_ops hipio_device_host;
size_t hipio_device_count_providers(void);
const struct hipio_device_ops *hipio_device_provider(size_t index);

/*
 * Classifies an address: asks the providers that the settings allow and that are in the process.
 * Host-only programs pay one test. NULL is host memory. An address that no runtime knows is host
 * memory; when some GPU runtime is in the process (allowed or not), it is first probed with a
 * system call, and HIPIO_MEMORY_INVALID is the answer where the CPU can't read it. 0, or a negative
 * errno with a text when a runtime failed.
 */
int hipio_device_classify(const void *address, struct hipio_memory *memory);

/* Asks whether the whole range [address, address + bytes) can be read by the CPU at its first and
 * last byte: 0 or -EFAULT. */
int hipio_device_probe(const void *address, uint64_t bytes);

/* Why memory of kind INVALID can't be served, as a text for users ("no GPU runtime is attached:
 * HIPIO_DEVICE=off", ...). */
void hipio_device_explain(const void *address, char *out, size_t size);
