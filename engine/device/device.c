/* SPDX-License-Identifier: MIT */
/*
 * Device: the list of providers, and the question whose memory an address is.
 */
#include "device/device.h"
#include "device/provider.h"
#include "log.h"
#include "status.h"
#include "tunables.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const struct {
    const struct hipio_device_ops *ops;
    uint64_t choice; /* value of the setting `device` that forces it */
} providers[] = {
#define PROVIDER(name, choice) {&hipio_device_##name, choice},
#include "table.def"
#undef PROVIDER
};

/* Host memory is the last of the table and is not asked. */
#define GPU_PROVIDERS (sizeof(providers) / sizeof(providers[0]) - 1)

size_t hipio_device_count_providers(void)
{
    return GPU_PROVIDERS + 1;
}

const struct hipio_device_ops *hipio_device_provider(size_t index)
{
    return index <= GPU_PROVIDERS ? providers[index].ops : NULL;
}

/*
 * What a signal mask at the address would be: with a `how` that does not exist the kernel reads the
 * mask, changes nothing and answers EINVAL, or EFAULT where it can't read. It is the cheapest
 * system call that reads memory as the CPU does. Returns the errno.
 */
static int read_as_mask(uintptr_t address)
{
    const uintptr_t bytes = 8; /* of a mask; from a multiple of them on, so in one page */
    const int no_how = -1;

    return syscall(SYS_rt_sigprocmask, no_how, address / bytes * bytes, NULL, bytes) == 0 ? 0
                                                                                          : errno;
}

/* That the kernel reads before it judges is no promise, so it is tried once on an address that
 * nobody can read. */
static bool is_mask_read_first(void)
{
    static _Atomic int known; /* 0: not tried, 1: yes, 2: no */

    if (known == 0)
        known = read_as_mask(UINTPTR_MAX) == EFAULT ? 1 : 2;
    return known == 1;
}

/* For kernels and containers where the quick way is closed. The first call refuses what a driver
 * has mapped by page frame, so a pipe has the last word, which reads as write(2) to a file does. */
static bool is_readable_slowly(const void *address)
{
    char byte;
    struct iovec to = {.iov_base = &byte, .iov_len = 1};
    struct iovec from = {.iov_base = (void *)(uintptr_t)address, .iov_len = 1};
    int ends[2];
    bool readable, faulted;

    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1)
        return true;
    faulted = errno == EFAULT;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return !faulted; /* no descriptor left to ask with; if nobody knows, the I/O will tell */
    readable = write(ends[1], address, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return readable;
}

static bool is_readable(const void *address)
{
    int error = is_mask_read_first() ? read_as_mask((uintptr_t)address) : EPERM;

    if (error == EINVAL || error == EFAULT)
        return error == EINVAL;
    return is_readable_slowly(address);
}

int hipio_device_probe(const void *address, uint64_t bytes)
{
    uintptr_t last = (uintptr_t)address + (bytes - 1);
    int saved = errno;
    bool readable;

    if (bytes == 0)
        return 0;
    readable = last >= (uintptr_t)address && is_readable(address) &&
               (bytes == 1 || is_readable((const void *)last));
    errno = saved;
    if (readable)
        return 0;
    return hipio_status_set(-EFAULT, "the CPU can't read the %llu bytes at %p",
                            (unsigned long long)bytes, address);
}

static bool is_allowed(size_t provider, uint64_t choice)
{
    return choice == HIPIO_DEVICE_AUTO || choice == providers[provider].choice;
}

/* Attaches what the settings allow; true if the provider can be asked. */
static bool is_attached(size_t provider, uint64_t choice)
{
    static bool told;
    const struct hipio_device_ops *ops = providers[provider].ops;
    bool forced = choice == providers[provider].choice;

    if (!is_allowed(provider, choice) || (!forced && !ops->present()))
        return false;
    if (ops->attach(forced) == 0)
        return true;
    if (forced)
        hipio_log_once(&told, HIPIO_LOG_WARN, "HIPIO_DEVICE=%s can't be followed: %s", ops->name,
                       hipio_status_text());
    return false;
}

int hipio_device_classify(const void *address, struct hipio_memory *memory)
{
    const struct hipio_memory host = {HIPIO_MEMORY_HOST, -1, true, &hipio_device_host};
    const struct hipio_memory invalid = {HIPIO_MEMORY_INVALID, -1, false, &hipio_device_host};
    uint64_t choice = hipio_tunables_process()->device;
    bool present = false;

    for (size_t i = 0; i < GPU_PROVIDERS && address != NULL; i++) {
        struct hipio_memory found;
        int rc;

        if (is_attached(i, choice)) {
            rc = providers[i].ops->classify(address, &found);
            if (rc < 0)
                return rc;
            if (rc == 0) {
                *memory = found;
                return 0;
            }
        }
        present = present || providers[i].ops->present();
    }
    *memory = present && hipio_device_probe(address, 1) != 0 ? invalid : host;
    return 0;
}

/* Asks the provider about the address once more, for the words of a failure. */
static const char *words_of_failure(const struct hipio_device_ops *ops, const void *address)
{
    struct hipio_memory memory;

    hipio_status_clear();
    (void)ops->classify(address, &memory);
    return hipio_status_text();
}

/* What one provider has to say about an address that it does not serve. Empty: nothing. */
static void explain_provider(size_t provider, const void *address, char *out, size_t size)
{
    const struct hipio_device_ops *ops = providers[provider].ops;
    uint64_t choice = hipio_tunables_process()->device;
    const char *words;

    out[0] = '\0';
    if (!is_allowed(provider, choice)) {
        if (ops->present())
            snprintf(out, size,
                     "the program uses the %s runtime, but the setting device (HIPIO_DEVICE) is "
                     "%s: set it to auto or %s to serve its memory",
                     ops->name, choice == HIPIO_DEVICE_OFF ? "off" : "for another runtime",
                     ops->name);
        return;
    }
    if (!is_attached(provider, choice)) {
        if (ops->present() || choice == providers[provider].choice)
            snprintf(out, size, "the %s runtime can't be used: %s", ops->name, hipio_status_text());
        return;
    }
    words = words_of_failure(ops, address);
    if (words[0] != '\0')
        snprintf(out, size, "%s", words);
    else
        snprintf(out, size, "the %s runtime does not know it (freed, or past its end?)", ops->name);
}

void hipio_device_explain(const void *address, char *out, size_t size)
{
    char words[HIPIO_TEXT_MAX];
    size_t used;
    int length;

    length = snprintf(out, size, "the memory at %p can't be read by the CPU", address);
    used = length > 0 ? (size_t)length : 0;
    for (size_t i = 0; i < GPU_PROVIDERS && used < size; i++) {
        explain_provider(i, address, words, sizeof(words));
        if (words[0] == '\0')
            continue;
        length = snprintf(out + used, size - used, "; %s", words);
        used += length > 0 ? (size_t)length : 0;
    }
}
