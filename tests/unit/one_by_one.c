/* SPDX-License-Identifier: MIT */
/*
 * One by one: a fork for every test, before anything is loaded.
 */
#include "one_by_one.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOT_HERE 77
/* A test that hangs ends by this signal's default action. */
#define SECONDS 250

static bool is_named(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

static void set_environment(const char *environment)
{
    char *copy = strdup(environment), *rest = copy, *word;

    while ((word = strsep(&rest, " ")) != NULL)
        if (word[0] != '\0')
            putenv(strdup(word));
    free(copy);
}

static int run_child(const struct one_test *test)
{
    const struct CMUnitTest tests[] = {{test->name, test->run, NULL, NULL, NULL}};

    alarm(SECONDS);
    if (test->environment)
        set_environment(test->environment);
    return cmocka_run_group_tests_name(test->name, tests, NULL, NULL);
}

static int run_one(const struct one_test *test)
{
    int status = -1;

    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        exit(run_child(test));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 1;
    if (WIFSIGNALED(status))
        printf("%s ended by signal %d\n", test->name, WTERMSIG(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int one_by_one(int argc, char **argv, const struct one_test *tests, size_t n)
{
    int failed = 0, ran = 0;

    for (size_t i = 0; i < n; i++) {
        if (!is_named(argc, argv, tests[i].name))
            continue;
        const int code = run_one(&tests[i]);
        ran += code != NOT_HERE;
        failed += code != 0 && code != NOT_HERE;
        if (code != 0)
            printf("%s: %s\n", tests[i].name, code == NOT_HERE ? "skipped" : "FAILED");
    }
    if (failed)
        return 1;
    return ran ? 0 : NOT_HERE;
}
