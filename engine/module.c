/* SPDX-License-Identifier: MIT */
/*
 * Module: finds the image for a device and loads it.
 */
#include "module.h"
#include "kernels.h"
#include "log.h"
#include "pulse.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What came of a device: a module, or the answer that there is none. */
struct hipio_known_module {
    const struct hipio_device_ops *ops;
    int device;
    uint64_t pulse; /* the device's, of when it was loaded */
    int status;
    unsigned users; /* of the module */
    void *handle;   /* NULL: none was loaded */
    struct hipio_module module;
    void *image; /* the runtime may point into it as long as the module lives */
    size_t image_size;
    struct hipio_known_module *next;
};

static struct {
    pthread_mutex_t lock; /* guards the rest; held while a module is loaded */
    struct hipio_known_module *known;
    bool announced;
} context = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The simulated runtime is reached through the HIP provider and takes another kind of image. */
static const char *family(const struct hipio_device_ops *ops, const char *device_name)
{
    static const char simulated[] = "hipsim";

    return strncmp(device_name, simulated, sizeof simulated - 1) == 0 ? simulated
                                                                      : ops->image_family;
}

/* A copy that no file backs: HIP opens the file that an image's page was mapped from. */
static int copy_image(struct hipio_known_module *known, const struct hipio_kernel_image *image)
{
    size_t size = image->size + 1; /* with the NUL behind it */
    void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return hipio_status_set(-ENOMEM, "no memory for the GPU kernels' image");
    memcpy(copy, image->data, size - 1);
    known->image = copy;
    known->image_size = size;
    return 0;
}

static int load(struct hipio_known_module *known)
{
    struct hipio_kernel_image image;
    char name[128] = "";

    int status = known->ops->device_name(known->device, name, sizeof name);
    if (status < 0)
        return status;
    if (hipio_kernel_image(family(known->ops, name), &image) < 0)
        return hipio_status_set(-ENOTSUP, "this build of hipio has no GPU kernels for %s (%s)",
                                name, known->ops->name);
    status = copy_image(known, &image);
    if (status == 0)
        status = known->ops->module_load(known->device, known->image, &known->handle);
    if (status == 0)
        status = known->ops->module_function(known->device, known->handle, HIPIO_KERNEL_MOVE,
                                             &known->module.function);
    if (status == -ENOTSUP)
        return hipio_status_set(-ENOTSUP, "the GPU kernels of this build (%s) do not fit %s: %s",
                                image.name, name, hipio_status_text());
    if (status == 0)
        known->module.multiprocessors = known->ops->multiprocessors(known->device);
    return status;
}

static void discard(struct hipio_known_module *known)
{
    if (known->handle)
        known->ops->module_unload(known->device, known->handle);
    if (known->image)
        munmap(known->image, known->image_size);
    free(known);
}

/* Loads and remembers the answer, unless it may be another one next time: then NULL and an error.
 * The lock is held. */
static struct hipio_known_module *make(const struct hipio_device_ops *ops, int device,
                                       uint64_t pulse, int *status)
{
    struct hipio_known_module *known = calloc(1, sizeof *known);

    if (!known) {
        *status = hipio_status_set(-ENOMEM, "no memory for a GPU module");
        return NULL;
    }
    known->ops = ops;
    known->device = device;
    known->pulse = pulse;
    known->status = load(known);
    if (known->status < 0 && known->status != -ENOTSUP) {
        *status = known->status;
        discard(known);
        return NULL;
    }
    if (known->status < 0)
        hipio_log_once(&context.announced, HIPIO_LOG_WARN,
                       "%s; strided GPU memory is moved by copies, which is slower",
                       hipio_status_text());
    known->next = context.known;
    context.known = known;
    return known;
}

/* What was loaded before the device was reset is gone, and stays in the list as a name. */
static struct hipio_known_module *find(const struct hipio_device_ops *ops, int device,
                                       uint64_t pulse)
{
    struct hipio_known_module *known = context.known;

    while (known && (known->ops != ops || known->device != device || known->pulse != pulse))
        known = known->next;
    return known;
}

/* What is known of the device, or found out now. The lock is held. */
static int look_up(const struct hipio_device_ops *ops, int device, uint64_t pulse,
                   struct hipio_module *out)
{
    struct hipio_known_module *known = find(ops, device, pulse);
    int status = 0;

    if (!known)
        known = make(ops, device, pulse, &status);
    if (!known)
        return status;
    if (known->status < 0)
        return hipio_status_set(known->status, "device %d can't run hipio's GPU kernels", device);
    known->users++;
    *out = known->module;
    out->known = known;
    return 0;
}

int hipio_module_get(const struct hipio_device_ops *ops, int device, struct hipio_module *out)
{
    if (ops->image_family[0] == '\0')
        return hipio_status_set(-ENOTSUP, "%s memory needs no GPU kernels", ops->name);
    const uint64_t pulse = hipio_pulse(ops, device);
    pthread_mutex_lock(&context.lock);
    int status = look_up(ops, device, pulse, out);
    pthread_mutex_unlock(&context.lock);
    return status;
}

void hipio_module_put(struct hipio_module *module)
{
    pthread_mutex_lock(&context.lock);
    module->known->users--;
    pthread_mutex_unlock(&context.lock);
}

void hipio_module_shutdown(void)
{
    pthread_mutex_lock(&context.lock);
    struct hipio_known_module **link = &context.known;
    while (*link) {
        struct hipio_known_module *known = *link;

        if (known->users > 0) {
            link = &known->next;
            continue;
        }
        *link = known->next;
        if (!hipio_pulse_is_same(known->ops, known->device, known->pulse))
            known->handle = NULL;
        discard(known);
    }
    pthread_mutex_unlock(&context.lock);
}
