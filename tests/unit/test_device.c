/* SPDX-License-Identifier: MIT */
/*
 * Device without any GPU runtime: the table of providers, the host provider, the probe, and how
 * libraries are found and first used.
 */
#include "device/device.h"
#include "device/dl.h"
#include "status.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A library of the C library that nothing here loads. */
#define STRANGER "libresolv.so.2"

/* Sanitizers end a program that asks for too much memory, unless they are told not to. */
#define SEEN_BY_SANITIZERS __attribute__((visibility("default")))
SEEN_BY_SANITIZERS const char *__asan_default_options(void);
SEEN_BY_SANITIZERS const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* Called before the thread sanitizer is ready for instrumented code. */
__attribute__((no_sanitize_thread)) const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void table_is_complete(void **state)
{
    size_t n = hipio_device_count_providers();

    (void)state;
    assert_int_equal(n, 3);
    for (size_t i = 0; i < n; i++) {
        const struct hipio_device_ops *ops = hipio_device_provider(i);
        void *entry[sizeof(*ops) / sizeof(void *)];

        memcpy(entry, ops, sizeof(entry));
        for (size_t k = 0; k < sizeof(entry) / sizeof(entry[0]); k++)
            assert_non_null(entry[k]);
    }
    assert_ptr_equal(hipio_device_provider(n - 1), &hipio_device_host);
    assert_null(hipio_device_provider(n));
}

static void classification_needs_no_runtime(void **state)
{
    struct hipio_memory memory;
    char *heap = calloc(1, 1);

    (void)state;
    assert_int_equal(hipio_device_classify(heap, &memory), 0);
    assert_int_equal(memory.kind, HIPIO_MEMORY_HOST);
    assert_ptr_equal(memory.ops, &hipio_device_host);
    assert_int_equal(hipio_device_classify(NULL, &memory), 0);
    assert_int_equal(memory.kind, HIPIO_MEMORY_HOST);
    free(heap);
}

static void host_provider_copies(void **state)
{
    const struct hipio_device_ops *host = &hipio_device_host;
    struct hipio_stream *stream;
    struct hipio_event *event;
    unsigned char from[100], to[100] = {0};
    void *memory, *seen;

    (void)state;
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (unsigned char)i;
    assert_int_equal(host->attach(true), 0);
    assert_true(host->present());
    assert_int_equal(host->host_alloc(-1, 5000, &memory), 0);
    assert_true((uintptr_t)memory % 4096 == 0);
    assert_int_equal(host->device_pointer(-1, memory, &seen), 0);
    assert_ptr_equal(seen, memory);
    assert_int_equal(host->host_free(-1, memory), 0);
    assert_int_equal(host->host_alloc(-1, 0, &memory), -EINVAL);
    assert_int_equal(host->host_alloc(-1, SIZE_MAX / 2, &memory), -ENOMEM);

    assert_int_equal(host->stream_create(-1, &stream), 0);
    assert_int_equal(host->event_create(-1, &event), 0);
    assert_int_equal(host->copy(stream, to, from, 100, HIPIO_COPY_TO_DEVICE), 0);
    assert_memory_equal(to, from, 100);
    memset(to, 0xa5, sizeof(to));
    assert_int_equal(host->copy_2d(stream, to, 10, from, 7, 3, 10, HIPIO_COPY_TO_HOST), 0);
    for (int row = 0; row < 10; row++) {
        assert_memory_equal(to + row * 10, from + row * 7, 3);
        assert_int_equal(to[row * 10 + 3], 0xa5);
    }
    assert_int_equal(host->copy_2d(stream, to, 2, from, 7, 3, 10, HIPIO_COPY_TO_HOST), -EINVAL);
    assert_int_equal(host->event_record(event, stream), 0);
    assert_int_equal(host->event_query(event), 0);
    assert_int_equal(host->event_synchronize(event), 0);
    assert_int_equal(host->stream_synchronize(stream), 0);
    assert_int_equal(host->event_destroy(event), 0);
    assert_int_equal(host->stream_destroy(stream), 0);
}

static void host_provider_has_no_kernels(void **state)
{
    const struct hipio_device_ops *host = &hipio_device_host;
    const struct hipio_memory memory = {HIPIO_MEMORY_HOST, -1, true, host};
    struct hipio_memory found;
    uintptr_t start;
    uint64_t length;
    void *out;

    (void)state;
    assert_int_equal(host->classify(&memory, &found), 1);
    assert_int_equal(host->range(&memory, &memory, &start, &length), -ENOTSUP);
    assert_int_equal(host->module_load(-1, "", &out), -ENOTSUP);
    assert_int_equal(host->module_function(-1, NULL, "", &out), -ENOTSUP);
    assert_int_equal(host->launch(NULL, NULL, 1, 1, NULL), -ENOTSUP);
    assert_int_equal(host->multiprocessors(-1), -ENOTSUP);
    assert_int_equal(host->device_count(), 0);
    assert_string_equal(host->image_family, "");
}

/* Two pages of which the CPU can read the first. */
static char *map_half(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    return pages;
}

/* 0, or which of the answers was wrong. */
static int check_probe(const char *pages)
{
    if (hipio_device_probe(pages, 4096) != 0)
        return 1;
    if (hipio_device_probe(pages, 4097) != -EFAULT)
        return 2;
    if (hipio_device_probe(pages + 4096, 1) != -EFAULT)
        return 3;
    if (hipio_device_probe(pages + 4095, 1) != 0)
        return 4;
    if (hipio_device_probe(pages + 4096, 0) != 0)
        return 5;
    if (hipio_device_probe(pages, UINT64_MAX) != -EFAULT)
        return 6;
    if (hipio_device_probe(NULL, 1) != -EFAULT)
        return 7;
    return 0;
}

static void probe_tells_what_the_cpu_can_read(void **state)
{
    char *pages = map_half();

    (void)state;
    errno = EXDEV;
    assert_int_equal(check_probe(pages), 0);
    assert_int_equal(errno, EXDEV);
    munmap(pages, 8192);
}

/* Makes the system calls by which the probe asks fail: the quick one, and the slow one too. */
static void forbid(int error, bool both)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, both ? SYS_process_vm_readv : SYS_rt_sigprocmask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

/* Runs check_probe in a child that may not do everything. */
static int probe_in_child(int error, bool both, bool descriptors)
{
    char *pages = map_half();
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        struct rlimit none = {0, 0};

        if (error != 0)
            forbid(error, both);
        if (!descriptors)
            setrlimit(RLIMIT_NOFILE, &none);
        _exit(check_probe(pages));
    }
    waitpid(child, &status, 0);
    munmap(pages, 8192);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void probe_works_in_a_container(void **state)
{
    int got = probe_in_child(EPERM, false, true);

    (void)state;
    if (got == 77)
        skip();
    assert_int_equal(got, 0);
    assert_int_equal(probe_in_child(EPERM, false, false), 0);
    assert_int_equal(probe_in_child(EPERM, true, true), 0);
    assert_int_equal(probe_in_child(ENOSYS, true, true), 0);
    assert_int_equal(probe_in_child(0, false, false), 0);
}

static void explanation_fits_its_buffer(void **state)
{
    char text[64];

    (void)state;
    hipio_device_explain((void *)16, text, sizeof(text));
    assert_non_null(strstr(text, "0x10"));
    memset(text, 'x', sizeof(text));
    hipio_device_explain((void *)16, text, 4);
    assert_string_equal(text, "the");
    assert_int_equal(text[4], 'x');
}

static _Atomic int starts;
static int start_answer;

static int start(struct hipio_dl *library)
{
    struct {
        void *here, *absent;
    } table = {NULL, &starts};
    const struct hipio_dl_symbol optional[] = {{"malloc", 0, true}, {"no_such_name", 8, false}};
    const struct hipio_dl_symbol required[] = {{"malloc", 0, true}, {"no_such_name", 8, true}};

    starts++;
    assert_non_null(strstr(library->file, STRANGER));
    assert_int_equal(hipio_dl_fill(library, optional, 2, &table), 0);
    assert_non_null(table.here);
    assert_null(table.absent);
    assert_int_equal(hipio_dl_fill(library, required, 2, &table), -ENODEV);
    assert_non_null(strstr(hipio_status_text(), "no_such_name"));
    usleep(20000);
    return start_answer != 0 ? hipio_status_set(start_answer, "not today") : 0;
}

static void *attach_it(void *library)
{
    return (void *)(intptr_t)hipio_dl_attach(library, false);
}

/* The life of a library: absent, loaded by somebody, refusing, willing; used by many at once. */
static void library_is_used_once_it_is_there(void **state)
{
    static const char *const names[] = {"libhipio-is-not-here.so.9", STRANGER, NULL};
    static struct hipio_dl library = {.names = names, .start = start};
    pthread_t threads[8];
    void *rc;
    int status;

    (void)state;
    assert_false(hipio_dl_present(&library));
    assert_int_equal(hipio_dl_attach(&library, false), -ENODEV);
    assert_int_equal(starts, 0);
    assert_non_null(dlopen(STRANGER, RTLD_NOW | RTLD_LOCAL));
    assert_true(hipio_dl_present(&library));
    assert_false(hipio_dl_usable(&library));

    /* "Not now" is asked again, "no" is not until something was loaded. */
    start_answer = -ENOMEM;
    assert_int_equal(hipio_dl_attach(&library, false), -ENODEV);
    assert_int_equal(hipio_dl_attach(&library, false), -ENODEV);
    assert_int_equal(starts, 2);
    start_answer = -ENODEV;
    assert_int_equal(hipio_dl_attach(&library, false), -ENODEV);
    assert_int_equal(hipio_dl_attach(&library, false), -ENODEV);
    assert_string_equal(hipio_status_text(), "not today");
    assert_int_equal(starts, 3);

    start_answer = 0;
    assert_non_null(dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL));
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, attach_it, &library);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &rc);
        assert_null(rc);
    }
    assert_int_equal(starts, 4);
    assert_true(hipio_dl_usable(&library));

    if (fork() == 0)
        _exit(hipio_dl_usable(&library) || hipio_dl_attach(&library, true) != -ENODEV);
    wait(&status);
    assert_int_equal(status, 0);
    assert_true(hipio_dl_usable(&library));
}

static void missing_library_is_not_loaded_twice(void **state)
{
    static const char *const names[] = {"libhipio-is-not-here.so.9", NULL};
    static struct hipio_dl library = {.names = names, .start = start};
    int before = starts;

    (void)state;
    assert_int_equal(hipio_dl_attach(&library, true), -ENODEV);
    assert_non_null(strstr(hipio_status_text(), "libhipio-is-not-here.so.9"));
    hipio_status_clear();
    assert_int_equal(hipio_dl_attach(&library, true), -ENODEV);
    assert_non_null(strstr(hipio_status_text(), "libhipio-is-not-here.so.9"));
    assert_int_equal(starts, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_complete),
        cmocka_unit_test(classification_needs_no_runtime),
        cmocka_unit_test(host_provider_copies),
        cmocka_unit_test(host_provider_has_no_kernels),
        cmocka_unit_test(probe_tells_what_the_cpu_can_read),
        cmocka_unit_test(probe_works_in_a_container),
        cmocka_unit_test(explanation_fits_its_buffer),
        cmocka_unit_test(library_is_used_once_it_is_there),
        cmocka_unit_test(missing_library_is_not_loaded_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
