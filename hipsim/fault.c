/* SPDX-License-Identifier: MIT */
/* Parses HIPSIM_FAIL once and matches calls against its rules. */
#include "fault.h"

#include "counters.h"
#include "error.h"
#include "settings.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 64, MAX_NAME = 64 };

struct rule {
    char function[MAX_NAME];
    uint64_t first, last, step; /* calls first, first + step, ... up to last */
    struct hipsim_fault fault;
    _Atomic uint64_t calls;
};

static struct rule rules[MAX_RULES];
static size_t rule_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
    const char *name;
    int number;
} errno_names[] = {
    {"EPERM", EPERM},   {"EIO", EIO},       {"EBADF", EBADF},           {"ENOMEM", ENOMEM},
    {"EACCES", EACCES}, {"ENODEV", ENODEV}, {"EINVAL", EINVAL},         {"ENOTTY", ENOTTY},
    {"EFBIG", EFBIG},   {"ENOSPC", ENOSPC}, {"ESPIPE", ESPIPE},         {"EROFS", EROFS},
    {"ENOSYS", ENOSYS}, {"ESRCH", ESRCH},   {"EOPNOTSUPP", EOPNOTSUPP}, {"EREMOTEIO", EREMOTEIO},
    {"EDQUOT", EDQUOT}, {"EINTR", EINTR},
};

static void bad_rule(const char *rule, const char *why)
{
    hipsim_error_die("HIPSIM_FAIL rule \"%s\": %s; the form is FUNCTION:WHEN=WHAT, see "
                     "hipsim/README.md",
                     rule, why);
}

static uint64_t parse_number(const char *rule, const char **text)
{
    char *end;
    uint64_t value;

    if (**text < '0' || **text > '9')
        bad_rule(rule, "a number is missing");
    value = strtoull(*text, &end, 10);
    *text = end;
    return value;
}

/* WHEN is N, N+, N-M, *, or %N. */
static void parse_when(struct rule *out, const char *rule, const char **text)
{
    out->step = 1;
    out->last = UINT64_MAX;
    if (**text == '*') {
        ++*text;
        out->first = 1;
        return;
    }
    if (**text == '%') {
        ++*text;
        out->first = out->step = parse_number(rule, text);
        if (!out->step)
            bad_rule(rule, "every 0th call is no call");
        return;
    }
    out->first = parse_number(rule, text);
    if (!out->first)
        bad_rule(rule, "calls are counted from 1");
    if (**text == '+') {
        ++*text;
    } else if (**text == '-') {
        ++*text;
        out->last = parse_number(rule, text);
    } else {
        out->last = out->first;
    }
}

static int parse_errno(const char *rule, const char **text)
{
    if (**text >= '0' && **text <= '9')
        return (int)parse_number(rule, text);
    for (size_t i = 0; i < sizeof(errno_names) / sizeof(errno_names[0]); i++) {
        size_t length = strlen(errno_names[i].name);

        if (!strncmp(*text, errno_names[i].name, length)) {
            *text += length;
            return errno_names[i].number;
        }
    }
    bad_rule(rule, "unknown errno name (its number works too)");
    return 0;
}

static int skip(const char **text, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*text, word, length))
        return 0;
    *text += length;
    return 1;
}

/* WHAT is a code, sticky CODE, late CODE, errno NAME [/BYTES], or short/BYTES. */
static void parse_what(struct rule *out, const char *rule, const char **text)
{
    struct hipsim_fault *fault = &out->fault;

    if (skip(text, "errno")) {
        fault->action = HIPSIM_FAULT_ERRNO;
        fault->code = parse_errno(rule, text);
        fault->bytes = skip(text, "/") ? parse_number(rule, text) : 0;
        return;
    }
    if (skip(text, "short")) {
        fault->action = HIPSIM_FAULT_SHORT;
        if (!skip(text, "/"))
            bad_rule(rule, "short needs /BYTES");
        fault->bytes = parse_number(rule, text);
        return;
    }
    fault->action = HIPSIM_FAULT_RETURN;
    if (skip(text, "sticky"))
        fault->action = HIPSIM_FAULT_STICKY;
    else if (skip(text, "late"))
        fault->action = HIPSIM_FAULT_LATE;
    fault->code = (int)parse_number(rule, text);
    if (!fault->code)
        bad_rule(rule, "code 0 is success");
}

static void parse_rule(const char *rule)
{
    struct rule *out = &rules[rule_count];
    const char *colon = strchr(rule, ':'), *text;

    if (!colon || colon == rule || colon - rule >= MAX_NAME)
        bad_rule(rule, "no function name");
    if (rule_count == MAX_RULES)
        bad_rule(rule, "too many rules");
    memcpy(out->function, rule, (size_t)(colon - rule));
    text = colon + 1;
    parse_when(out, rule, &text);
    if (!skip(&text, "="))
        bad_rule(rule, "no = after the calls");
    parse_what(out, rule, &text);
    if (skip(&text, "@") && (int)parse_number(rule, &text) != hipsim_settings_get()->rank) {
        memset(out->function, 0, sizeof(out->function));
        return;
    }
    if (*text)
        bad_rule(rule, "text after its end");
    rule_count++;
}

static void parse(void)
{
    const char *fail = hipsim_settings_get()->fail;
    char *copy, *rest, *rule;

    if (!fail)
        return;
    copy = strdup(fail);
    if (!copy)
        hipsim_error_die("out of memory reading HIPSIM_FAIL");
    for (rule = strtok_r(copy, "; \n", &rest); rule; rule = strtok_r(NULL, "; \n", &rest))
        parse_rule(rule);
    free(copy);
}

struct hipsim_fault hipsim_fault_next(const char *function)
{
    struct hipsim_fault fault = {HIPSIM_FAULT_NONE, 0, 0};

    pthread_once(&once, parse);
    for (size_t i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        uint64_t call;

        if (strcmp(rule->function, function))
            continue;
        call = atomic_fetch_add(&rule->calls, 1) + 1;
        if (fault.action || call < rule->first || call > rule->last ||
            (call - rule->first) % rule->step)
            continue;
        fault = rule->fault;
        hipsim_counters_add(HIPSIM_COUNT_faults, 1);
    }
    return fault;
}
