/* SPDX-License-Identifier: MIT */
/*
 * Tunables: the table of settings, what each accepts, and the process's own values.
 */
#include "tunables.h"
#include "log.h"
#include "plan.h"
#include "status.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

#define VALUE_LENGTH_MAX 64 /* of a value's text with its NUL */

/* ---- Types ---- */

/* A word of an enumeration. The first word of a value is the one that is printed. */
struct word {
    const char *text;
    uint64_t value;
};

/* clang-format off */
static const struct word device_words[] = {
    {"auto", HIPIO_DEVICE_AUTO}, {"hip", HIPIO_DEVICE_HIP}, {"cuda", HIPIO_DEVICE_CUDA},
    {"off", HIPIO_DEVICE_OFF}, {"0", HIPIO_DEVICE_OFF}, {"no", HIPIO_DEVICE_OFF},
    {"false", HIPIO_DEVICE_OFF}, {NULL, 0}};
static const struct word sync_words[] = {
    {"stream", HIPIO_SYNC_STREAM}, {"device", HIPIO_SYNC_DEVICE}, {"none", HIPIO_SYNC_NONE},
    {NULL, 0}};
static const struct word switch_words[] = {
    {"auto", HIPIO_AUTO},
    {"off", HIPIO_OFF}, {"0", HIPIO_OFF}, {"no", HIPIO_OFF}, {"false", HIPIO_OFF},
    {"force", HIPIO_FORCE}, {"1", HIPIO_FORCE}, {"yes", HIPIO_FORCE}, {"true", HIPIO_FORCE},
    {"on", HIPIO_FORCE}, {NULL, 0}};
static const struct word collective_words[] = {
    {"auto", HIPIO_COLLECTIVE_AUTO}, {"independent", HIPIO_COLLECTIVE_INDEPENDENT},
    {"exchange", HIPIO_COLLECTIVE_EXCHANGE}, {"staged", HIPIO_COLLECTIVE_STAGED},
    {NULL, 0}};
static const struct word host_words[] = {
    {"auto", HIPIO_AUTO}, {"off", HIPIO_OFF}, {"0", HIPIO_OFF}, {"no", HIPIO_OFF},
    {"false", HIPIO_OFF}, {NULL, 0}};
static const struct word stats_words[] = {
    {"off", HIPIO_STATS_OFF}, {"0", HIPIO_STATS_OFF}, {"no", HIPIO_STATS_OFF},
    {"false", HIPIO_STATS_OFF}, {"close", HIPIO_STATS_CLOSE},
    {"finalize", HIPIO_STATS_FINALIZE}, {"1", HIPIO_STATS_FINALIZE},
    {"yes", HIPIO_STATS_FINALIZE}, {"true", HIPIO_STATS_FINALIZE},
    {"on", HIPIO_STATS_FINALIZE}, {NULL, 0}};
static const struct word log_words[] = {
    {"none", HIPIO_LOG_NONE}, {"off", HIPIO_LOG_NONE}, {"error", HIPIO_LOG_ERROR},
    {"warn", HIPIO_LOG_WARN}, {"info", HIPIO_LOG_INFO}, {"debug", HIPIO_LOG_DEBUG}, {NULL, 0}};
/* clang-format on */

enum type { SIZE, UINT, STREAM, DEVICE, SYNC, SWITCH, COLLECTIVE, HOST, STATS, LOG };

static const struct word *const words_of[] = {
    [SIZE] = NULL,       [UINT] = NULL,
    [STREAM] = NULL,     [DEVICE] = device_words,
    [SYNC] = sync_words, [SWITCH] = switch_words,
    [HOST] = host_words, [STATS] = stats_words,
    [LOG] = log_words,   [COLLECTIVE] = collective_words,
};

/* ---- The table ---- */

enum index {
#define TUNABLE(field, type, scope, text, help) INDEX_##field,
#include "tunables.def"
#undef TUNABLE
    COUNT
};

static const enum type type_of[COUNT] = {
#define TUNABLE(field, type, scope, text, help) type,
#include "tunables.def"
#undef TUNABLE
};

#define ACCEPTS_MAX 128
static char accepts[COUNT][ACCEPTS_MAX]; /* written once, by describe_all */

static const struct hipio_tunable_info infos[COUNT] = {
#define TUNABLE(field, type, scope, text, help)                                                    \
    {#field, text, help, accepts[INDEX_##field], HIPIO_SCOPE_##scope},
#include "tunables.def"
#undef TUNABLE
};

/* What a number must lie between, and what it is rounded up to. */
static const struct limit {
    uint64_t low;
    uint64_t high; /* 0: no limit is known for this setting */
    uint64_t multiple;
} limits[COUNT] = {
    [INDEX_chunk_size] = {4 * KIB, GIB, 4 * KIB},
    [INDEX_pinned_limit] = {64 * KIB, 1024 * GIB, 1},
    [INDEX_lanes] = {0, HIPIO_PLAN_LANES_MAX, 1},
    [INDEX_mapping_window] = {MIB, GIB, MIB},
    [INDEX_queue_depth] = {1, 256, 1},
    [INDEX_window_size] = {4 * KIB, 64 * GIB, 1},
    [INDEX_async_threads] = {1, 64, 1},
    [INDEX_async_buffer_size] = {16 * KIB, GIB, 4 * KIB},
};

_Static_assert(sizeof(struct hipio_tunables) == COUNT * sizeof(uint64_t),
               "every field is one uint64_t, in the order of the table");

static uint64_t *field(struct hipio_tunables *t, size_t index)
{
    return (uint64_t *)t + index;
}

static struct limit limit_of(size_t index)
{
    return limits[index].high ? limits[index] : (struct limit){0, INT64_MAX, 1};
}

size_t hipio_tunables_count(void)
{
    return COUNT;
}

uint32_t hipio_tunables_index(const char *name)
{
    for (uint32_t i = 0; i < COUNT; ++i) {
        if (strcmp(infos[i].name, name) == 0)
            return i;
    }
    return HIPIO_TUNABLE_NONE;
}

/* ---- Values and their text ---- */

static void format_size(uint64_t value, char *out, size_t size)
{
    static const char suffix[] = {0, 'K', 'M', 'G'};
    unsigned i = 0;

    for (; i < 3 && value && value % 1024 == 0; ++i)
        value /= 1024;
    snprintf(out, size, "%llu%.1s", (unsigned long long)value, suffix[i] ? &suffix[i] : "");
}

static void format_value(size_t index, uint64_t value, char *out, size_t size)
{
    const struct word *word = words_of[type_of[index]];

    if (type_of[index] == SIZE) {
        format_size(value, out, size);
        return;
    }
    if (type_of[index] == STREAM && value) {
        snprintf(out, size, "0x%llx", (unsigned long long)value);
        return;
    }
    while (word && word->text && word->value != value)
        ++word;
    if (word && word->text)
        snprintf(out, size, "%s", word->text);
    else
        snprintf(out, size, "%llu", (unsigned long long)value);
}

void hipio_tunables_format(const struct hipio_tunables *t, size_t index, char *out, size_t size)
{
    if (index < COUNT)
        format_value(index, ((const uint64_t *)t)[index], out, size);
    else if (size)
        out[0] = '\0';
}

/* Decimal digits alone; *end is what follows them. */
static int parse_digits(const char *text, const char **end, uint64_t *out)
{
    uint64_t value = 0;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    for (; *text >= '0' && *text <= '9'; ++text) {
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return -EINVAL;
    }
    *end = text;
    *out = value;
    return 0;
}

int hipio_tunables_parse_size(const char *text, uint64_t *out)
{
    static const char suffixes[] = "kKmMgG";
    const char *end;
    uint64_t value;
    uint64_t unit = 1;

    if (parse_digits(text, &end, &value))
        return -EINVAL;
    const char *suffix = *end ? strchr(suffixes, *end) : NULL;
    if (suffix) {
        unit = UINT64_C(1) << (10 * (1 + (suffix - suffixes) / 2));
        ++end;
    }
    if (*end || __builtin_mul_overflow(value, unit, &value))
        return -EINVAL;
    *out = value;
    return 0;
}

/* A pointer as printf's %p writes it, or 0. */
static int parse_stream(const char *text, uint64_t *out)
{
    const bool hexadecimal = text[0] == '0' && text[1] == 'x' && text[2] != '\0';
    uint64_t value = 0;

    if (!hexadecimal && strcmp(text, "0") != 0)
        return -EINVAL;
    for (text += hexadecimal ? 2 : 1; *text; ++text) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, *text);

        if (!digit || value >> 60)
            return -EINVAL;
        value = value << 4 | (uint64_t)(digit - digits);
    }
    *out = value;
    return 0;
}

static int parse_number(size_t index, const char *text, uint64_t *out)
{
    const struct limit limit = limit_of(index);
    const char *end = "";
    uint64_t value;
    int err = type_of[index] == SIZE ? hipio_tunables_parse_size(text, &value)
                                     : parse_digits(text, &end, &value);

    if (err || *end || value < limit.low || value > limit.high)
        return -EINVAL;
    *out = (value + limit.multiple - 1) / limit.multiple * limit.multiple;
    return 0;
}

/* Not toupper: what a setting is called does not depend on the locale. */
static char upper(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    return c;
}

static bool same_word(const char *a, const char *b)
{
    while (*a && upper(*a) == upper(*b)) {
        ++a;
        ++b;
    }
    return upper(*a) == upper(*b);
}

static int parse_value(size_t index, const char *text, uint64_t *out)
{
    const struct word *word = words_of[type_of[index]];

    if (!word)
        return type_of[index] == STREAM ? parse_stream(text, out) : parse_number(index, text, out);
    for (; word->text; ++word) {
        if (same_word(word->text, text)) {
            *out = word->value;
            return 0;
        }
    }
    return -EINVAL;
}

/* ---- What is accepted, in words ---- */

static void describe_number(size_t index, char *out, size_t size)
{
    const struct limit limit = limit_of(index);
    char low[32];
    char high[32];

    format_value(index, limit.low, low, sizeof low);
    format_value(index, limit.high, high, sizeof high);
    if (type_of[index] == SIZE)
        snprintf(out, size, "a size in bytes from %s to %s, suffix K, M or G", low, high);
    else
        snprintf(out, size, "a number from %s to %s", low, high);
}

/* "auto, off (or 0, no, false), force (or 1)". */
static void describe_words(const struct word *word, char *out, size_t size)
{
    size_t used = 0;
    bool open = false;

    for (const struct word *at = word; at->text && used < size; ++at) {
        const bool same = at > word && at[-1].value == at->value;
        const char *lead = at == word ? "" : same && !open ? " (or " : !same && open ? "), " : ", ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", lead, at->text);
        open = same;
    }
    if (open && used < size)
        snprintf(out + used, size - used, ")");
}

static void describe_all(void)
{
    for (size_t i = 0; i < COUNT; ++i) {
        if (type_of[i] == STREAM)
            snprintf(accepts[i], ACCEPTS_MAX, "0, or a pointer as 0x and hexadecimal digits");
        else if (words_of[type_of[i]])
            describe_words(words_of[type_of[i]], accepts[i], ACCEPTS_MAX);
        else
            describe_number(i, accepts[i], ACCEPTS_MAX);
    }
}

static pthread_once_t described = PTHREAD_ONCE_INIT;

const struct hipio_tunable_info *hipio_tunables_info(size_t index)
{
    pthread_once(&described, describe_all);
    return index < COUNT ? &infos[index] : NULL;
}

/* Says why a value was not taken, what stays, and what would have been taken. */
static int refuse(const struct hipio_tunables *t, size_t index, const char *value)
{
    char kept[VALUE_LENGTH_MAX];

    hipio_tunables_format(t, index, kept, sizeof kept);
    return hipio_status_set(-EINVAL, "\"%.64s\" is not accepted, %s stays in force; it takes %s",
                            value, kept, hipio_tunables_info(index)->accepts);
}

int hipio_tunables_set(struct hipio_tunables *t, const char *name, const char *value)
{
    const uint32_t index = hipio_tunables_index(name);
    uint64_t parsed;

    if (index == HIPIO_TUNABLE_NONE)
        return hipio_status_set(-ENOENT, "there is no setting %.64s; hipio-info lists them", name);
    if (parse_value(index, value, &parsed)) {
        int err = refuse(t, index, value);
        return hipio_status_set(err, "setting %s: %s", name, hipio_status_text());
    }
    *field(t, index) = parsed;
    return 0;
}

/* ---- The process's settings ---- */

static struct hipio_tunables process;
static enum hipio_source sources[COUNT];
static pthread_once_t process_read = PTHREAD_ONCE_INIT;

#define VARIABLE_PREFIX "HIPIO_"
#define NAME_LENGTH_MAX 64 /* of a setting's name; longer variables are none */

/* The setting's name as it stands in the environment after the prefix. */
static void upper_name(size_t index, char out[NAME_LENGTH_MAX])
{
    const char *name = infos[index].name;
    size_t i = 0;

    for (; name[i] && i < NAME_LENGTH_MAX - 1; ++i)
        out[i] = upper(name[i]);
    out[i] = '\0';
}

static uint32_t index_of_variable(const char *name)
{
    char known[NAME_LENGTH_MAX];

    for (uint32_t i = 0; i < COUNT; ++i) {
        upper_name(i, known);
        if (strcmp(known, name) == 0)
            return i;
    }
    return HIPIO_TUNABLE_NONE;
}

/* How many letters must be inserted, left out or changed to make one word the other. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[NAME_LENGTH_MAX + 1];
    size_t columns = 0;

    for (; b[columns]; ++columns)
        row[columns] = columns;
    row[columns] = columns;
    for (size_t i = 0; a[i]; ++i) {
        size_t corner = row[0];

        row[0] = i + 1;
        for (size_t k = 0; b[k]; ++k) {
            size_t best = corner + (a[i] != b[k]);

            corner = row[k + 1];
            best = row[k] + 1 < best ? row[k] + 1 : best;
            best = corner + 1 < best ? corner + 1 : best;
            row[k + 1] = best;
        }
    }
    return row[columns];
}

/* The setting that was probably meant, or HIPIO_TUNABLE_NONE where no name is close. */
static uint32_t nearest_variable(const char *name)
{
    const size_t length = strlen(name);
    size_t least = length / 3 < 2 ? 3 : length / 3 + 1;
    uint32_t nearest = HIPIO_TUNABLE_NONE;
    char known[NAME_LENGTH_MAX];

    for (uint32_t i = 0; i < COUNT; ++i) {
        upper_name(i, known);
        const size_t shorter = strlen(known) < length ? strlen(known) : length;
        const bool begins = shorter > 2 && strncmp(known, name, shorter) == 0;
        const size_t distance = begins ? 0 : edit_distance(name, known);
        if (distance < least) {
            least = distance;
            nearest = i;
        }
    }
    return nearest;
}

/* Names that module files and build systems give to any package, and those of the tests. */
static bool is_of_others(const char *name)
{
    static const char *const names[] = {"ROOT", "DIR",     "HOME",   "BASE",    "PREFIX",
                                        "PATH", "VERSION", "BIN",    "LIB",     "LIBDIR",
                                        "INC",  "INCLUDE", "INCDIR", "LIB_DIR", "INCLUDE_DIR"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return strncmp(name, "TEST_", 5) == 0;
}

static void warn_unknown(const char *name)
{
    const uint32_t nearest = nearest_variable(name);
    char known[NAME_LENGTH_MAX];

    if (is_of_others(name))
        return;
    if (nearest == HIPIO_TUNABLE_NONE) {
        hipio_log(HIPIO_LOG_WARN,
                  "environment variable " VARIABLE_PREFIX
                  "%s is not a setting and is ignored; hipio-info lists them",
                  name);
        return;
    }
    upper_name(nearest, known);
    hipio_log(HIPIO_LOG_WARN,
              "environment variable " VARIABLE_PREFIX
              "%s is not a setting and is ignored; did you mean " VARIABLE_PREFIX "%s?",
              name, known);
}

/* Of a setting that only a file can have, the process takes nothing but the default. */
static int refuse_misplaced(size_t index, const char *value)
{
    const struct hipio_tunable_info *info = hipio_tunables_info(index);

    return hipio_status_set(-EINVAL,
                            "\"%.64s\" is not accepted, %s stays in force: it is a setting of one "
                            "file, given as the info hint hipio_%s, which takes %s",
                            value, info->text, info->name, info->accepts);
}

static int parse_of_process(size_t index, const char *text, uint64_t *value)
{
    if (infos[index].scope != HIPIO_SCOPE_ONE_FILE)
        return parse_value(index, text, value) ? refuse(&process, index, text) : 0;
    if (parse_value(index, text, value) || *value != *field(&process, index))
        return refuse_misplaced(index, text);
    return 0;
}

/* One "NAME=value" of the environment. Values are taken first and warnings come after, because the
 * level of the log is among the values. */
static void read_variable(const char *entry, bool warn)
{
    const size_t prefix = sizeof VARIABLE_PREFIX - 1;
    const char *equals = strchr(entry, '=');
    char name[NAME_LENGTH_MAX];
    uint64_t value;

    if (strncmp(entry, VARIABLE_PREFIX, prefix) != 0 || !equals)
        return;
    snprintf(name, sizeof name, "%.*s", (int)(equals - entry) - (int)prefix, entry + prefix);
    const uint32_t index = index_of_variable(name);
    if (index == HIPIO_TUNABLE_NONE) {
        if (warn)
            warn_unknown(name);
    } else if (parse_of_process(index, equals + 1, &value)) {
        if (warn)
            hipio_log(HIPIO_LOG_WARN, "environment variable " VARIABLE_PREFIX "%s: %s", name,
                      hipio_status_text());
    } else {
        *field(&process, index) = value;
        sources[index] = HIPIO_SOURCE_ENV;
    }
}

static void read_process(void)
{
    for (size_t i = 0; i < COUNT; ++i)
        parse_value(i, infos[i].text, field(&process, i));
    for (char **entry = environ; entry && *entry; ++entry)
        read_variable(*entry, false);
    hipio_log_set_level((enum hipio_log_level)process.log);
    for (char **entry = environ; entry && *entry; ++entry)
        read_variable(*entry, true);
}

const struct hipio_tunables *hipio_tunables_process(void)
{
    pthread_once(&process_read, read_process);
    return &process;
}

enum hipio_source hipio_tunables_source(size_t index)
{
    hipio_tunables_process();
    return index < COUNT ? sources[index] : HIPIO_SOURCE_DEFAULT;
}

int hipio_tunables_set_process(const char *name, const char *value, enum hipio_source source)
{
    const uint32_t index = hipio_tunables_index(name);
    uint64_t parsed;

    hipio_tunables_process();
    if (index == HIPIO_TUNABLE_NONE)
        return hipio_status_set(-EINVAL, "there is no setting %.64s; hipio-info lists them", name);
    int err = parse_of_process(index, value, &parsed);
    if (err)
        return hipio_status_set(err, "setting %s: %s", name, hipio_status_text());
    *field(&process, index) = parsed;
    sources[index] = source;
    hipio_log_set_level((enum hipio_log_level)process.log);
    return 0;
}

/* One word of `stats` is about the process's end; its other words are a file's. */
static bool is_process_value(size_t index, uint64_t value)
{
    return infos[index].scope == HIPIO_SCOPE_PROCESS ||
           (index == INDEX_stats && value == HIPIO_STATS_FINALIZE);
}

int hipio_tunables_set_file(struct hipio_tunables *t, const char *name, const char *value)
{
    struct hipio_tunables wanted = *t;
    char variable[NAME_LENGTH_MAX];
    char kept[VALUE_LENGTH_MAX];

    int err = hipio_tunables_set(&wanted, name, value);
    if (err)
        return err;
    const uint32_t index = hipio_tunables_index(name);
    const uint64_t parsed = *field(&wanted, index);
    const bool is_shared = infos[index].scope == HIPIO_SCOPE_PROCESS;
    if (is_process_value(index, parsed) &&
        parsed != ((const uint64_t *)hipio_tunables_process())[index]) {
        upper_name(index, variable);
        format_value(index, *field(is_shared ? &process : t, index), kept, sizeof kept);
        return hipio_status_set(-EINVAL,
                                "%s=%.64s is the whole process's, not one file's, and %s stays in "
                                "force: give it as environment variable " VARIABLE_PREFIX
                                "%s, as MCA parameter io_hipio_%s or to hipio_set",
                                name, value, kept, variable, name);
    }
    *t = wanted;
    return 0;
}
