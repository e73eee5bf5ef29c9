/* SPDX-License-Identifier: MIT */
/* Modules and kernel launches. */
#include "module.h"

#include "counters.h"
#include "device.h"
#include "error.h"
#include "memory.h"
#include "stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024 };

struct module;

struct function {
    const struct hipsim_kernel *kernel;
    struct module *module;
};

struct module {
    struct module *next, *previous;
    atomic_int refs; /* the handle's and each queued launch's */
    int device;
    size_t count;
    struct function functions[];
};

struct launch_op {
    struct hipsim_op op;
    struct function *function;
    struct hipsim_grid grid;
    void **params;
    char *values;
};

/* A running kernel's memory: what it translated stays mapped until it ends. */
struct kernel_memory {
    struct hipsim_memory memory;
    struct hipsim_block **blocks;
    size_t count;
    int device;
    bool failed;
};

/* All loaded modules, so that a stale handle is found out. */
static struct {
    pthread_mutex_t lock;
    struct module *first;
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a real runtime says to an image that is not for it: code for other devices, or no code. */
static int refuse(const char *image)
{
    static const char *const known[] = {"\177ELF", "__CLANG_OFFLOAD_BUNDLE__", "\x50\xed\x55\xba",
                                        "//", ".version"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strncmp(image, known[i], strlen(known[i])))
            return HIPSIM_NO_BINARY;
    return HIPSIM_INVALID_IMAGE;
}

static void put_module(struct module *module)
{
    if (atomic_fetch_sub(&module->refs, 1) == 1)
        free(module);
}

int hipsim_module_load(int device, const void *data, void **handle)
{
    const struct hipsim_image *image = data;
    struct module *module;

    if (strncmp(image->magic, HIPSIM_KERNEL_MAGIC, sizeof(image->magic)))
        return refuse(data);
    module = calloc(1, sizeof(*module) + image->kernel_count * sizeof(module->functions[0]));
    if (!module)
        return HIPSIM_OUT_OF_MEMORY;
    atomic_init(&module->refs, 1);
    module->device = device;
    module->count = image->kernel_count;
    for (size_t i = 0; i < module->count; i++)
        module->functions[i] = (struct function){&image->kernels[i], module};
    pthread_mutex_lock(&modules.lock);
    module->next = modules.first;
    if (module->next)
        module->next->previous = module;
    modules.first = module;
    pthread_mutex_unlock(&modules.lock);
    hipsim_counters_add(HIPSIM_COUNT_modules_live, 1);
    *handle = module;
    return 0;
}

/* The lock is held. */
static struct module *find(void *handle)
{
    struct module *module = modules.first;

    while (module && module != handle)
        module = module->next;
    return module;
}

int hipsim_module_unload(void *handle)
{
    struct module *module;

    pthread_mutex_lock(&modules.lock);
    module = find(handle);
    if (module) {
        if (module->next)
            module->next->previous = module->previous;
        if (module->previous)
            module->previous->next = module->next;
        else
            modules.first = module->next;
    }
    pthread_mutex_unlock(&modules.lock);
    if (!module)
        return HIPSIM_INVALID_HANDLE;
    hipsim_counters_add(HIPSIM_COUNT_modules_live, -1);
    put_module(module);
    return 0;
}

void hipsim_module_end_all(int device)
{
    struct module *module;

    do {
        pthread_mutex_lock(&modules.lock);
        module = modules.first;
        while (module && module->device != device)
            module = module->next;
        pthread_mutex_unlock(&modules.lock);
        if (module)
            hipsim_module_unload(module);
    } while (module);
}

int hipsim_module_function(void *handle, const char *name, void **function)
{
    struct module *module;
    int rc = HIPSIM_INVALID_HANDLE;

    pthread_mutex_lock(&modules.lock);
    module = find(handle);
    if (module)
        rc = HIPSIM_NOT_FOUND;
    for (size_t i = 0; module && i < module->count; i++)
        if (!strcmp(module->functions[i].kernel->name, name)) {
            *function = &module->functions[i];
            rc = 0;
            break;
        }
    pthread_mutex_unlock(&modules.lock);
    return rc;
}

/* The function behind a handle, holding its module, or NULL. */
static struct function *borrow(void *handle)
{
    struct function *function = NULL;

    pthread_mutex_lock(&modules.lock);
    for (struct module *m = modules.first; m && !function; m = m->next)
        for (size_t i = 0; i < m->count; i++)
            if (&m->functions[i] == handle)
                function = &m->functions[i];
    if (function)
        atomic_fetch_add(&function->module->refs, 1);
    pthread_mutex_unlock(&modules.lock);
    return function;
}

static bool keep(struct kernel_memory *memory, struct hipsim_block *block)
{
    struct hipsim_block **grown = realloc(memory->blocks, (memory->count + 1) * sizeof(*grown));

    if (!grown)
        return false;
    memory->blocks = grown;
    memory->blocks[memory->count++] = block;
    return true;
}

/* Only device addresses: registered memory may have another one than on the host. */
static bool usable(const struct hipsim_range *range, const void *pointer, int device)
{
    if (!range->block || (uintptr_t)pointer - range->block->device_pointer >= range->block->size)
        return false;
    return range->kind != HIPSIM_KIND_DEVICE || hipsim_device_reaches(device, range->block->device);
}

/* Where the range lies in memory that this kernel holds already, or NULL. */
static void *held(const struct kernel_memory *memory, uintptr_t address, size_t bytes)
{
    for (size_t i = 0; i < memory->count; i++) {
        const struct hipsim_block *block = memory->blocks[i];
        size_t offset = address - block->device_pointer;

        if (offset < block->size && bytes <= block->size - offset)
            return block->view + offset;
    }
    return NULL;
}

static void *translate(const struct hipsim_memory *base, const void *pointer, size_t bytes)
{
    struct kernel_memory *memory = (struct kernel_memory *)(uintptr_t)base;
    struct hipsim_range range;
    void *known = held(memory, (uintptr_t)pointer, bytes);

    if (known)
        return known;
    if (hipsim_memory_resolve(pointer, bytes, &range)) {
        memory->failed = true;
        return NULL;
    }
    if (!usable(&range, pointer, memory->device) || !keep(memory, range.block)) {
        hipsim_memory_put(&range);
        memory->failed = true;
        return NULL;
    }
    return range.view;
}

static void run_launch(struct hipsim_op *base, struct hipsim_stream *stream)
{
    struct launch_op *op = (struct launch_op *)base;
    struct kernel_memory memory = {.memory.translate = translate, .device = stream->device};

    hipsim_counters_add(HIPSIM_COUNT_launches, 1);
    op->function->kernel->run(op->params, &op->grid, &memory.memory);
    for (size_t i = 0; i < memory.count; i++)
        hipsim_memory_release(memory.blocks[i]);
    free(memory.blocks);
    if (memory.failed)
        hipsim_device_break(stream->device, HIPSIM_ILLEGAL_ADDRESS);
}

static void release_launch(struct hipsim_op *base)
{
    struct launch_op *op = (struct launch_op *)base;

    put_module(op->function->module);
    free(op->params);
    free(op->values);
    free(op);
}

static size_t padded(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

/* Copies the arguments: the caller may reuse its own right after the launch call. */
static int copy_params(struct launch_op *op, void **params)
{
    const struct hipsim_kernel *kernel = op->function->kernel;
    size_t total = 0, at = 0;

    if (kernel->param_count && !params)
        return HIPSIM_INVALID_VALUE;
    for (size_t i = 0; i < kernel->param_count; i++)
        total += padded(kernel->param_sizes[i]);
    op->params = calloc(kernel->param_count + 1, sizeof(*op->params));
    op->values = malloc(total + 1);
    if (!op->params || !op->values)
        return HIPSIM_OUT_OF_MEMORY;
    for (size_t i = 0; i < kernel->param_count; i++) {
        op->params[i] = memcpy(op->values + at, params[i], kernel->param_sizes[i]);
        at += padded(kernel->param_sizes[i]);
    }
    return 0;
}

static int check_grid(const struct hipsim_grid *grid)
{
    uint64_t threads = 1;

    for (int i = 0; i < 3; i++) {
        if (!grid->grid[i] || !grid->block[i])
            return HIPSIM_INVALID_VALUE;
        if ((uint64_t)grid->grid[i] * grid->block[i] > UINT32_MAX)
            return HIPSIM_INVALID_VALUE;
        threads *= grid->block[i];
        if (threads > MAX_THREADS)
            return HIPSIM_INVALID_VALUE;
    }
    return 0;
}

int hipsim_module_launch(void *handle, const struct hipsim_grid *grid, void **params,
                         struct hipsim_stream *stream)
{
    struct function *function = borrow(handle);
    struct launch_op *op;
    int rc;

    if (!function)
        return HIPSIM_INVALID_HANDLE;
    op = calloc(1, sizeof(*op));
    if (!op) {
        put_module(function->module);
        return HIPSIM_OUT_OF_MEMORY;
    }
    op->op.run = run_launch;
    op->op.release = release_launch;
    op->function = function;
    op->grid = *grid;
    op->grid.device = stream->device;
    rc = function->module->device == stream->device ? 0 : HIPSIM_INVALID_FUNCTION;
    if (!rc)
        rc = check_grid(grid);
    if (!rc)
        rc = copy_params(op, params);
    if (!rc)
        return hipsim_stream_submit(stream, &op->op, NULL);
    release_launch(&op->op);
    return rc;
}
