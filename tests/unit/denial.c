/* SPDX-License-Identifier: MIT */
/*
 * Denial: seccomp filters, capabilities and limits.
 */
#include "denial.h"
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

void deny_call(unsigned number, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        exit(77);
}

void deny_locked_memory(uint64_t bytes)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    const struct rlimit limit = {bytes, bytes};

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    data[0].permitted &= ~(1u << CAP_IPC_LOCK);
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

FILE *catch_messages(void)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    return file;
}

unsigned count_messages(FILE *file, const char *words)
{
    char line[1024];
    unsigned n = 0;

    rewind(file);
    while (fgets(line, sizeof line, file))
        n += strstr(line, words) != NULL;
    return n;
}
