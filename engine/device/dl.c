/* SPDX-License-Identifier: MIT */
/*
 * Dl: finds, loads and guards the libraries of GPU runtimes.
 */
#include "device/dl.h"
#include "log.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
    pthread_mutex_t lock; /* one attach at a time, of all runtimes; held while a runtime starts */
    pthread_once_t once;
    _Atomic bool used; /* a runtime was called in this process, or in the one it was forked from */
    _Atomic bool forked; /* written in the child of fork, where there is one thread */
} attach = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static int read_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(uint64_t *)loads = info->dlpi_adds;
    return 1; /* every object carries the same number */
}

/*
 * How many libraries this process has loaded so far, plus one: never 0. What is not in the process
 * can only come with a change of this number; to ask for it costs some 30 ns, where a search for
 * one name that is not there costs 30 us, because the dynamic linker walks the search path.
 */
static uint64_t count_loads(void)
{
    uint64_t loads = 0;

    dl_iterate_phdr(read_loads, &loads);
    return loads + 1;
}

/* A reference to whichever of the names is in the process, or NULL. */
static void *find_loaded(const char *const *names)
{
    for (; *names != NULL; names++) {
        void *handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);

        if (handle != NULL)
            return handle;
    }
    return NULL;
}

bool hipio_dl_present(struct hipio_dl *library)
{
    uint64_t loads;
    void *handle;

    if (atomic_load_explicit(&library->seen, memory_order_relaxed))
        return true;
    /* The number is read before the search, so that a library loaded meanwhile is looked for again.
     * Whoever holds a pointer of a runtime has seen its loading end, and so do we. */
    loads = count_loads();
    if (atomic_load_explicit(&library->missed, memory_order_relaxed) == loads)
        return false;
    handle = find_loaded(library->names);
    if (handle == NULL) {
        atomic_store_explicit(&library->missed, loads, memory_order_relaxed);
        return false;
    }
    dlclose(handle);
    atomic_store_explicit(&library->seen, true, memory_order_relaxed);
    return true;
}

/* Loads the first name that can be loaded. The text is the dynamic linker's about the first file
 * that is there and can't be loaded, or else about the first name. */
static int load_first(struct hipio_dl *library)
{
    char why[HIPIO_TEXT_MAX / 2] = "";
    bool there = false;

    for (const char *const *name = library->names; *name != NULL; name++) {
        const char *error;

        library->handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (library->handle != NULL)
            return 0;
        error = dlerror();
        if (error == NULL || there)
            continue;
        there = strncmp(error, *name, strlen(*name)) != 0 ||
                strstr(error, "cannot open shared object file: No such file") == NULL;
        if (there || why[0] == '\0')
            snprintf(why, sizeof(why), "%s", error);
    }
    return hipio_status_set(-ENODEV, "no GPU runtime library could be loaded: %s", why);
}

static int open_library(struct hipio_dl *library, bool load)
{
    struct link_map *map = NULL;
    int rc;

    if (library->handle == NULL)
        library->handle = find_loaded(library->names);
    if (library->handle == NULL && !load)
        return hipio_status_set(-ENODEV, "the process has not loaded %s", library->names[0]);
    if (library->handle == NULL) {
        rc = load_first(library);
        if (rc != 0)
            return rc;
    }
    dlinfo(library->handle, RTLD_DI_LINKMAP, &map);
    snprintf(library->file, sizeof(library->file), "%s",
             map != NULL && map->l_name[0] != '\0' ? map->l_name : library->names[0]);
    atomic_store_explicit(&library->seen, true, memory_order_relaxed);
    return 0;
}

int hipio_dl_fill(const struct hipio_dl *library, const struct hipio_dl_symbol *symbols, size_t n,
                  void *table)
{
    for (size_t i = 0; i < n; i++) {
        void *address = dlsym(library->handle, symbols[i].name);

        if (address == NULL && symbols[i].required) {
            hipio_log(HIPIO_LOG_WARN, "%s lacks the function %s: it is not used", library->file,
                      symbols[i].name);
            return hipio_status_set(-ENODEV, "%s lacks the function %s", library->file,
                                    symbols[i].name);
        }
        memcpy((char *)table + symbols[i].slot, &address, sizeof(address));
    }
    return 0;
}

/* Runs in the child of fork. The thread that held the lock, if any, does not exist here. */
static void after_fork(void)
{
    pthread_mutex_init(&attach.lock, NULL);
    if (atomic_load_explicit(&attach.used, memory_order_relaxed))
        atomic_store_explicit(&attach.forked, true, memory_order_relaxed);
}

static void watch_fork(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

/* The attach proper, inside the lock. */
static int attach_locked(struct hipio_dl *library, bool load)
{
    int rc;

    if (atomic_load_explicit(&library->usable, memory_order_relaxed))
        return 0;
    if (atomic_load_explicit(&library->refused, memory_order_relaxed) == count_loads())
        return hipio_status_set(-ENODEV, "%s", library->reason);
    rc = open_library(library, load);
    if (rc == 0) {
        atomic_store_explicit(&attach.used, true, memory_order_relaxed);
        rc = library->start(library);
    }
    if (rc == 0) {
        atomic_store_explicit(&library->usable, true, memory_order_release);
        return 0;
    }
    /* Starting loads libraries of its own, so the number is read afterwards. */
    if (rc == -ENODEV) {
        snprintf(library->reason, sizeof(library->reason), "%s", hipio_status_text());
        atomic_store_explicit(&library->refused, count_loads(), memory_order_relaxed);
        hipio_log(HIPIO_LOG_INFO, "%s", library->reason);
    }
    return -ENODEV;
}

int hipio_dl_attach(struct hipio_dl *library, bool load)
{
    int rc;

    if (atomic_load_explicit(&attach.forked, memory_order_relaxed))
        return hipio_status_set(
            -ENODEV, "the process was forked after a GPU runtime was used, which none survives; "
                     "do GPU I/O in the parent, or start the child with exec");
    if (atomic_load_explicit(&library->usable, memory_order_acquire))
        return 0;
    if (!load && !hipio_dl_present(library))
        return hipio_status_set(-ENODEV, "the process has not loaded %s", library->names[0]);
    pthread_once(&attach.once, watch_fork);
    pthread_mutex_lock(&attach.lock);
    rc = attach_locked(library, load);
    pthread_mutex_unlock(&attach.lock);
    return rc;
}

bool hipio_dl_usable(const struct hipio_dl *library)
{
    return atomic_load_explicit(&library->usable, memory_order_acquire) &&
           !atomic_load_explicit(&attach.forked, memory_order_relaxed);
}
