/* SPDX-License-Identifier: MIT */
/*
 * hipio-info: what hipio would do here, without MPI. Prints the version, the settings in force, the
 * GPU runtimes, and for each file (or folder) named on the command line how it can be reached and
 * which path a read of it would take. Changes nothing.
 *
 *   hipio-info [--bytes N] [FILE...]
 */
#include "backend.h"
#include "device/device.h"
#include "direct.h"
#include "hipio.h"
#include "lanes.h"
#include "mapping.h"
#include "plan.h"
#include "status.h"
#include "tunables.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Settings ---- */

static void print_settings(void)
{
    static const char *const sources[] = {[HIPIO_SOURCE_DEFAULT] = "default",
                                          [HIPIO_SOURCE_ENV] = "environment",
                                          [HIPIO_SOURCE_MCA] = "MCA parameter",
                                          [HIPIO_SOURCE_HINT] = "program"};
    static const char *const scopes[] = {[HIPIO_SCOPE_PROCESS] = "process",
                                         [HIPIO_SCOPE_EACH_FILE] = "each file",
                                         [HIPIO_SCOPE_ONE_FILE] = "one file"};
    char value[64];

    printf("settings (for MCA parameters: ompi_info --param io hipio --level 9)\n");
    printf("  %-18s %-8s %-12s %-10s %s\n", "name", "value", "from", "of", "accepts");
    for (size_t i = 0; i < hipio_tunables_count(); i++) {
        const struct hipio_tunable_info *info = hipio_tunables_info(i);

        hipio_tunables_format(hipio_tunables_process(), i, value, sizeof value);
        printf("  %-18s %-8s %-12s %-10s %s\n", info->name, value,
               sources[hipio_tunables_source(i)], scopes[info->scope], info->accepts);
    }
}

/* ---- GPU runtimes ---- */

/* The runtime may be used; where no program has loaded it, it is loaded here. 0 or an errno with
 * text. */
static int attach(const struct hipio_device_ops *ops)
{
    char choice[16];

    hipio_tunables_format(hipio_tunables_process(), hipio_tunables_index("device"), choice,
                          sizeof choice);
    if (strcmp(choice, "auto") != 0 && strcmp(choice, ops->name) != 0)
        return hipio_status_set(-ENODEV, "the setting device is %s", choice);
    hipio_status_clear();
    return ops->attach(true);
}

static void print_device(const struct hipio_device_ops *ops, int device)
{
    char name[128] = "?", bus[32] = "?";

    ops->device_name(device, name, sizeof name);
    ops->pci_bus_id(device, bus, sizeof bus);
    printf("    %d: %s, %s\n", device, name, bus);
}

static void print_runtime(const struct hipio_device_ops *ops)
{
    char version[64] = "version unknown";

    if (attach(ops) < 0) {
        const char *why = hipio_status_text();
        printf("  %s: none (%s)\n", ops->name, why[0] ? why : "its library is not found");
        return;
    }
    int devices = ops->device_count();
    ops->runtime_version(version, sizeof version);
    if (devices < 0) {
        printf("  %s: %s, its devices can't be told: %s\n", ops->name, version,
               hipio_status_text());
        return;
    }
    printf("  %s: %s, %d device%s\n", ops->name, version, devices, devices == 1 ? "" : "s");
    for (int i = 0; i < devices; i++)
        print_device(ops, i);
}

static void print_runtimes(void)
{
    printf("GPU runtimes\n");
    for (size_t i = 0; i < hipio_device_count_providers(); i++) {
        if (hipio_device_provider(i) != &hipio_device_host)
            print_runtime(hipio_device_provider(i));
    }
}

/* ---- Files ---- */

static void print_access(struct hipio_file *file)
{
    const struct hipio_direct *direct;

    printf("  file system: %s, %s\n", hipio_file_system(file),
           hipio_file_is_shared(file) ? "shared between machines" : "local");
    hipio_status_clear();
    if (hipio_direct_open(file, &direct) == 0)
        printf("  direct I/O: possible (offsets in multiples of %u bytes, memory of %u)\n",
               direct->offset_align, direct->memory_align);
    else
        printf("  direct I/O: no (%s)\n", hipio_status_text());
    printf("  mapping: %s\n", hipio_mapping_allows(file, HIPIO_READ) ? "possible" : "no");
}

static void plan_for(const struct hipio_backend *backend, const struct hipio_part *part,
                     struct hipio_plan *plan)
{
    const bool staged = backend->kind == HIPIO_BACKEND_STAGING;

    if (!staged && part->request->memory.kind == HIPIO_MEMORY_DEVICE)
        hipio_lanes_plan(part, false, plan);
    else
        hipio_lanes_plan_storage(part, staged, plan);
}

/* No byte is moved: the address only has to be aligned as a buffer would be. */
static void print_path(struct hipio_file *file, const struct hipio_memory *memory, uint64_t bytes)
{
    struct hipio_layout *run = NULL;
    struct hipio_plan plan;
    char words[256];

    if (hipio_layout_run(0, bytes, &run) < 0) {
        printf("    %s\n", hipio_status_text());
        return;
    }
    struct hipio_request request = {
        .op = HIPIO_READ,
        .file = file,
        .base = (void *)(uintptr_t)(1 << 21),
        .memory = *memory,
        .memory_layout = run,
        .file_layout = run,
        .length = bytes,
    };
    const struct hipio_part part = {.request = &request, .length = bytes};
    const struct hipio_backend *backend = hipio_backend_preview(&request);

    printf("    %s memory: ", memory->ops->name);
    if (backend) {
        plan_for(backend, &part, &plan);
        hipio_plan_describe(&plan, words, sizeof words);
        printf("%s, %s\n", backend->name, words);
    } else {
        printf("refused by the settings fastpath and fallback\n");
    }
    hipio_layout_release(run);
}

static void print_paths(struct hipio_file *file, uint64_t bytes)
{
    const struct hipio_memory host = {HIPIO_MEMORY_HOST, -1, true, &hipio_device_host};

    printf("  a read of %llu bytes into\n", (unsigned long long)bytes);
    print_path(file, &host, bytes);
    for (size_t i = 0; i < hipio_device_count_providers(); i++) {
        const struct hipio_device_ops *ops = hipio_device_provider(i);
        const struct hipio_memory device = {HIPIO_MEMORY_DEVICE, 0, false, ops};

        if (ops != &hipio_device_host && attach(ops) == 0 && ops->device_count() > 0)
            print_path(file, &device, bytes);
    }
}

/* A folder is looked at through a file without a name. */
static int open_path(const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    /* A pipe or device without a partner would block. */
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static int print_file(const char *path, uint64_t bytes)
{
    struct hipio_file *file = NULL;
    const int fd = open_path(path);

    if (fd < 0) {
        fprintf(stderr, "hipio-info: %s: %s%s\n", path, strerror(errno),
                errno == EOPNOTSUPP ? "; name a file in it" : "");
        return 1;
    }
    const int access =
        fcntl(fd, F_GETFL) & O_RDWR ? HIPIO_ACCESS_READ | HIPIO_ACCESS_WRITE : HIPIO_ACCESS_READ;
    int rc = hipio_file_create(fd, path, access, hipio_tunables_process(), &file);
    if (rc == 0) {
        const int64_t size = hipio_file_size(file);

        printf("%s\n", path);
        print_access(file);
        print_paths(file, size > 0 && (uint64_t)size < bytes ? (uint64_t)size : bytes);
        hipio_file_destroy(file);
    } else {
        fprintf(stderr, "hipio-info: %s: %s\n", path, hipio_status_text());
    }
    close(fd);
    return rc != 0;
}

static void print_usage(void)
{
    printf("hipio-info [--bytes N] [FILE...]\n"
           "  prints version, settings and GPU runtimes, and for each FILE or folder how it\n"
           "  can be reached and which path a read of N bytes (64M) would take\n"
           "hipio-info --version\n");
}

/* ---- Arguments ---- */

enum action { SHOW, HELP, VERSION, REFUSE };

struct options {
    enum action action;
    uint64_t bytes;
    int files; /* the names are argv[1] to argv[files] */
};

static enum action refuse(const char *what, const char *argument)
{
    fprintf(stderr, "hipio-info: %s%s%s%s\nhipio-info: --help tells more\n", what,
            argument ? "\"" : "", argument ? argument : "", argument ? "\"" : "");
    return REFUSE;
}

static enum action take_bytes(const char *text, uint64_t *bytes)
{
    if (!text)
        return refuse("--bytes needs a number", NULL);
    if (hipio_tunables_parse_size(text, bytes) < 0 || *bytes == 0 || *bytes > INT64_MAX)
        return refuse("--bytes takes a number above 0, with a suffix K, M or G at most, not ",
                      text);
    return SHOW;
}

/* Sorts the names to the front. */
static struct options parse(int argc, char **argv)
{
    struct options options = {SHOW, UINT64_C(64) << 20, 0};
    bool names_only = false;

    for (int i = 1; i < argc && options.action == SHOW; i++) {
        if (names_only || argv[i][0] != '-')
            argv[++options.files] = argv[i];
        else if (strcmp(argv[i], "--") == 0)
            names_only = true;
        else if (strcmp(argv[i], "--help") == 0)
            options.action = HELP;
        else if (strcmp(argv[i], "--version") == 0)
            options.action = VERSION;
        else if (strcmp(argv[i], "--bytes") == 0)
            options.action = take_bytes(argv[++i], &options.bytes);
        else
            options.action = refuse("there is no option ", argv[i]);
    }
    return options;
}

int main(int argc, char **argv)
{
    const struct options options = parse(argc, argv);
    int failed = 0;

    switch (options.action) {
    case REFUSE:
        return 2;
    case HELP:
        print_usage();
        return 0;
    case VERSION:
        printf("hipio %s\n", hipio_version());
        return 0;
    default:
        break;
    }
    printf("hipio %s\n\n", hipio_version());
    print_settings();
    printf("\n");
    print_runtimes();
    for (int i = 1; i <= options.files; i++) {
        printf("\n");
        failed |= print_file(argv[i], options.bytes);
    }
    return failed;
}
