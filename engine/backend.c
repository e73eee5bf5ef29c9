/* SPDX-License-Identifier: MIT */
/*
 * Backend: choose by score, run, fall back, account.
 */
#include "backend.h"
#include "stats.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const struct hipio_backend *backend;
    const struct hipio_backend *fallback;
} table[] = {
#define BACKEND(name, fallback) {&hipio_backend_##name, fallback},
#include "backend/table.def"
#undef BACKEND
};

#define TABLE_SIZE (sizeof table / sizeof table[0])
_Static_assert(TABLE_SIZE <= HIPIO_STATS_BACKENDS, "every backend of the table has counters");

/* What was registered besides the table. Entries are never changed or freed. */
struct link {
    const struct hipio_backend *backend;
    const struct hipio_backend *fallback;
    struct link *next;
};

static struct {
    pthread_mutex_t lock; /* guards links */
    struct link *links;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held. */
static const struct hipio_backend *find_fallback(const struct hipio_backend *backend)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (table[i].backend == backend && table[i].fallback)
            return table[i].fallback;
    for (const struct link *link = registry.links; link; link = link->next)
        if (link->backend == backend)
            return link->fallback;
    return NULL;
}

/* With the lock held: 0 or -EINVAL with the reason. There is no cycle yet, so the walk ends. */
static int check_registration(const struct hipio_backend *backend,
                              const struct hipio_backend *fallback)
{
    const struct hipio_backend *present = find_fallback(backend);
    if (present)
        return hipio_status_set(-EINVAL, "backend %s already falls back to %s; %s is refused",
                                backend->name, present->name, fallback->name);
    for (const struct hipio_backend *at = fallback; at; at = find_fallback(at))
        if (at == backend)
            return hipio_status_set(-EINVAL,
                                    "backend %s can't fall back to %s, which falls back to it",
                                    backend->name, fallback->name);
    return 0;
}

int hipio_backend_set_fallback(const struct hipio_backend *backend,
                               const struct hipio_backend *fallback)
{
    if (!backend || !fallback)
        return hipio_status_set(-EINVAL, "a fallback needs two backends, and the %s is NULL",
                                backend ? "fallback" : "backend");
    if (backend == fallback)
        return hipio_status_set(-EINVAL, "backend %s can't be its own fallback", backend->name);
    struct link *link = malloc(sizeof *link);
    if (!link)
        return hipio_status_set(-ENOMEM, "no memory to register a fallback of backend %s",
                                backend->name);

    pthread_mutex_lock(&registry.lock);
    int status = check_registration(backend, fallback);
    if (status == 0) {
        *link = (struct link){backend, fallback, registry.links};
        registry.links = link;
        link = NULL;
    }
    pthread_mutex_unlock(&registry.lock);
    free(link);
    return status;
}

const struct hipio_backend *hipio_backend_fallback(const struct hipio_backend *backend)
{
    pthread_mutex_lock(&registry.lock);
    const struct hipio_backend *fallback = find_fallback(backend);
    pthread_mutex_unlock(&registry.lock);
    return fallback;
}

size_t hipio_backend_count(void)
{
    return TABLE_SIZE;
}

const struct hipio_backend *hipio_backend_at(size_t index)
{
    return index < TABLE_SIZE ? table[index].backend : NULL;
}

size_t hipio_backend_index(const struct hipio_backend *backend)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (table[i].backend == backend)
            return i;
    return SIZE_MAX;
}

static bool allowed(const struct hipio_backend *backend, const struct hipio_tunables *settings)
{
    if (backend->kind == HIPIO_BACKEND_FAST_PATH)
        return settings->fastpath != HIPIO_OFF && settings->fallback != HIPIO_FORCE;
    if (backend->kind == HIPIO_BACKEND_STAGING)
        return settings->fallback != HIPIO_OFF && settings->fastpath != HIPIO_FORCE;
    return true;
}

/* May a failure be mended elsewhere at all? Forcing the fast path asks to see its failures. */
static bool may_fall_back(const struct hipio_tunables *settings)
{
    return settings->fallback != HIPIO_OFF && settings->fastpath != HIPIO_FORCE;
}

uint64_t hipio_backend_whole(const struct hipio_part *part, bool *own)
{
    *own = true;
    return part->length;
}

int hipio_backend_unconcerned(struct hipio_file *file)
{
    (void)file;
    return -ENODEV;
}

/* What takes over from the backend in this request: where that would be staging, the request's own.
 */
static const struct hipio_backend *fallback_for(const struct hipio_backend *backend,
                                                const struct hipio_request *request)
{
    const struct hipio_backend *fallback = hipio_backend_fallback(backend);

    if (fallback && fallback->kind == HIPIO_BACKEND_STAGING && request->staging)
        return request->staging;
    return fallback;
}

/* Can all of the part be moved if this backend takes its own shares of it? */
static bool covers(const struct hipio_backend *backend, const struct hipio_part *part,
                   const struct hipio_tunables *settings)
{
    bool own = false;

    if (backend->share(part, &own) >= part->length && own)
        return true;
    const struct hipio_backend *fallback = fallback_for(backend, part->request);
    return may_fall_back(settings) && fallback && allowed(fallback, settings) &&
           fallback->score(part) >= 0;
}

static const struct hipio_backend *choose(const struct hipio_part *part,
                                          const struct hipio_backend *const *candidates, size_t n)
{
    const struct hipio_tunables *settings = hipio_file_tunables(part->request->file);
    const struct hipio_backend *best = NULL;
    int best_score = -1;

    for (size_t i = 0; i < n; i++) {
        const struct hipio_backend *backend = candidates ? candidates[i] : table[i].backend;
        if (!candidates && backend->kind == HIPIO_BACKEND_ON_DEMAND)
            continue;
        if (backend->kind == HIPIO_BACKEND_STAGING && part->request->staging &&
            backend != part->request->staging)
            continue;
        int score = allowed(backend, settings) ? backend->score(part) : -1;
        if (score > best_score && covers(backend, part, settings)) {
            best = backend;
            best_score = score;
        }
    }
    return best;
}

static const struct hipio_backend *choose_fallback(const struct hipio_backend *failed,
                                                   const struct hipio_part *part, int error,
                                                   const struct hipio_part *rest)
{
    const struct hipio_tunables *settings = hipio_file_tunables(part->request->file);

    /* An error after the last byte leaves nothing for another backend to do. */
    if (rest->length == 0 || !may_fall_back(settings) || !failed->eligible(part, error))
        return NULL;
    const struct hipio_backend *fallback = fallback_for(failed, part->request);
    if (!fallback || !allowed(fallback, settings) || fallback->score(rest) < 0)
        return NULL;
    return fallback;
}

/* A request on its way through the backends. */
struct course {
    struct hipio_request *request;
    const struct hipio_backend *backend; /* takes its own shares of what remains */
    const struct hipio_backend *failed;  /* that it took over from, or NULL */
    char earlier[HIPIO_TEXT_MAX];        /* why */
    uint32_t counted;                    /* backends of the table that have counted the request */
};

_Static_assert(TABLE_SIZE <= 32, "a bit of `counted` for every backend of the table");

/* Bytes between memory and a window of host memory are no file's: who moves the window counts. */
static bool counts(const struct hipio_request *request)
{
    return !hipio_file_window(request->file);
}

/* Counts what a backend moved, whatever became of the rest; the request itself once. */
static void account(struct course *course, const struct hipio_backend *backend,
                    const struct hipio_part *part)
{
    size_t index = hipio_backend_index(backend);
    bool reads = part->request->op == HIPIO_READ;

    if (!counts(part->request))
        return;
    hipio_stats_backend_name(index, backend->name);
    hipio_stats_backend_add(index, reads ? HIPIO_BACKEND_READ : HIPIO_BACKEND_WRITTEN, part->moved);
    if (index < TABLE_SIZE && !(course->counted & 1u << index)) {
        course->counted |= 1u << index;
        hipio_stats_backend_add(index, HIPIO_BACKEND_REQUESTS, 1);
    }
}

static void account_fallback(const struct hipio_backend *failed, int error)
{
    hipio_stats_add(HIPIO_COUNT_fallbacks, 1);
    hipio_stats_fallback_reason(error);
    hipio_stats_backend_add(hipio_backend_index(failed), HIPIO_BACKEND_FALLBACKS, 1);
}

static void account_request(const struct hipio_request *request)
{
    const struct hipio_memory *memory = &request->memory;
    bool reads = request->op == HIPIO_READ;

    if (counts(request)) {
        hipio_stats_add(HIPIO_COUNT_requests, 1);
        hipio_stats_add(reads ? HIPIO_COUNT_bytes_read : HIPIO_COUNT_bytes_written,
                        (int64_t)request->done);
    }
    if (memory->kind == HIPIO_MEMORY_DEVICE && !memory->cpu_access)
        hipio_stats_add(HIPIO_COUNT_device_bytes, (int64_t)request->done);
    if (request->status < 0)
        hipio_stats_add(HIPIO_COUNT_failed, 1);
}

/* Runs one backend and holds it to its contract: an error has words, a count has a bound, and a
 * short write has a reason. */
static int run_one(struct course *course, const struct hipio_backend *backend,
                   struct hipio_part *part)
{
    const char *name = hipio_file_name(part->request->file);

    hipio_status_clear();
    part->moved = 0;
    int status = backend->io(part);
    if (part->moved > part->length)
        part->moved = part->length;
    if (status > 0)
        status = -EIO;
    if (status == 0 && part->request->op == HIPIO_WRITE && part->moved < part->length)
        status = hipio_status_set(-EIO, "%s: backend %s wrote %llu of %llu bytes without an error",
                                  name, backend->name, (unsigned long long)part->moved,
                                  (unsigned long long)part->length);
    if (status < 0 && hipio_status_text()[0] == '\0')
        hipio_status_set(status, "%s: backend %s failed: %s", name, backend->name,
                         strerror(-status));
    account(course, backend, part);
    return status;
}

/* Puts the words of an earlier failure behind those of the later one; both are cut to fit. */
static void join_texts(char *text, const char *backend, const char *earlier)
{
    char later[HIPIO_TEXT_MAX / 2];

    snprintf(later, sizeof later, "%.*s", (int)sizeof later - 1, text);
    snprintf(text, HIPIO_TEXT_MAX, "%s; before that %s failed: %.200s", later, backend, earlier);
}

/* Runs a share and what its failures are mended by. False: the request ends here. */
static bool run_share(struct course *course, const struct hipio_backend *backend,
                      struct hipio_part part)
{
    struct hipio_request *request = course->request;

    for (;;) {
        int status = run_one(course, backend, &part);
        request->done += part.moved;
        request->status = status;
        if (status == 0) {
            request->text[0] = '\0';
            return part.moved == part.length;
        }
        snprintf(request->text, sizeof request->text, "%s", hipio_status_text());
        if (course->failed)
            join_texts(request->text, course->failed->name, course->earlier);

        struct hipio_part rest = {request, part.start + part.moved, part.length - part.moved, 0};
        const struct hipio_backend *next = choose_fallback(backend, &part, status, &rest);
        if (!next)
            return false;
        if (!course->failed)
            account_fallback(backend, status);
        course->failed = backend;
        memcpy(course->earlier, request->text, sizeof course->earlier);
        course->backend = backend = next;
        part = rest;
    }
}

/* Share after share, in order, so that what is done has no gap. Once a fallback has taken over, all
 * that remains is its own. */
static void run_course(struct course *course, struct hipio_part part)
{
    bool more = true;

    while (more && part.length > 0) {
        const struct hipio_backend *backend = course->backend;
        struct hipio_part share = part;
        const uint64_t before = course->request->done;
        bool own = true;

        share.length = backend->share(&part, &own);
        if (share.length == 0 || share.length > part.length)
            share.length = part.length;
        more = run_share(course, own ? backend : fallback_for(backend, course->request), share);
        if (!own)
            hipio_stats_add(HIPIO_COUNT_unaligned_bytes, (int64_t)(course->request->done - before));
        part.start += share.length;
        part.length -= share.length;
    }
}

/* Only a size above 0 is believed: pipes, devices and /proc tell none, and their reads find out. So
 * do those of a file system of several machines, where the size that this one remembers may be
 * older than the bytes. */
uint64_t hipio_backend_reachable(const struct hipio_request *request)
{
    if (request->op != HIPIO_READ || hipio_file_is_shared(request->file))
        return request->length;
    int64_t size = hipio_file_size(request->file);
    if (size <= 0)
        return request->length;
    return hipio_layout_bytes_below(request->file_layout, request->file_start, request->length,
                                    size - request->file_base);
}

static const char *switch_word(uint64_t value)
{
    return value == HIPIO_OFF ? "off" : value == HIPIO_FORCE ? "force" : "auto";
}

static int refuse(const struct hipio_part *part)
{
    static const char *const kinds[] = {"host", "pinned", "managed", "device", "invalid"};
    const struct hipio_request *request = part->request;
    const struct hipio_tunables *settings = hipio_file_tunables(request->file);

    return hipio_status_set(
        -ENOTSUP,
        "%s: no way to move %llu bytes between it and %s memory with fastpath=%s and "
        "fallback=%s%s; fallback=auto allows staging",
        hipio_file_name(request->file), (unsigned long long)part->length,
        kinds[request->memory.kind], switch_word(settings->fastpath),
        switch_word(settings->fallback), request->swap ? " and a byte order change" : "");
}

int hipio_backend_run(struct hipio_request *request, const struct hipio_backend *const *candidates,
                      size_t n)
{
    struct hipio_part part = {.request = request, .length = hipio_backend_reachable(request)};

    request->done = 0;
    request->status = 0;
    request->text[0] = '\0';
    if (part.length > 0) {
        struct course course = {.request = request};
        course.backend = choose(&part, candidates, candidates ? n : TABLE_SIZE);
        if (course.backend) {
            run_course(&course, part);
        } else {
            request->status = refuse(&part);
            snprintf(request->text, sizeof request->text, "%s", hipio_status_text());
        }
    }
    if (request->status < 0)
        hipio_status_set(request->status, "%s", request->text);
    account_request(request);
    return request->status;
}

const struct hipio_backend *hipio_backend_preview(struct hipio_request *request)
{
    const struct hipio_part part = {.request = request, .length = request->length};

    return choose(&part, NULL, TABLE_SIZE);
}

int hipio_file_check_fastpath(struct hipio_file *file)
{
    const struct hipio_tunables *settings = hipio_file_tunables(file);
    char why[HIPIO_TEXT_MAX / 2] = "";

    if (settings->fastpath != HIPIO_FORCE)
        return 0;
    if (settings->fallback == HIPIO_FORCE)
        return hipio_status_set(-EINVAL, "%s: fastpath=force and fallback=force exclude each other",
                                hipio_file_name(file));
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        int status = table[i].backend->usable(file);
        if (status == 0)
            return 0;
        if (status != -ENODEV)
            snprintf(why, sizeof why, "%s", hipio_status_text());
    }
    if (why[0] == '\0')
        return 0;
    return hipio_status_set(-ENOTSUP, "%s; fastpath=force needs it, fastpath=auto stages instead",
                            why);
}
