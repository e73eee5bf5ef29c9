/* SPDX-License-Identifier: MIT */
/*
 * Tunables: every setting of hipio, parsed and printed from one table (tunables.def). The only
 * reader of the environment.
 *
 * The nearest source wins: info hint, then MCA parameter, then environment, then default. A bad
 * value is refused with a text that names the setting, the value, what stays in force and what it
 * accepts; the field keeps what it had.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum hipio_source { HIPIO_SOURCE_DEFAULT, HIPIO_SOURCE_ENV, HIPIO_SOURCE_MCA, HIPIO_SOURCE_HINT };

/* Words of the enumerated settings, in the order in which tunables.c spells them. */
enum hipio_device_choice {
    HIPIO_DEVICE_AUTO,
    HIPIO_DEVICE_HIP,
    HIPIO_DEVICE_CUDA,
    HIPIO_DEVICE_OFF
};
enum hipio_sync { HIPIO_SYNC_STREAM, HIPIO_SYNC_DEVICE, HIPIO_SYNC_NONE };
enum hipio_switch { HIPIO_AUTO, HIPIO_OFF, HIPIO_FORCE };
enum hipio_collective_choice {
    HIPIO_COLLECTIVE_AUTO,
    HIPIO_COLLECTIVE_INDEPENDENT,
    HIPIO_COLLECTIVE_STAGED,
    HIPIO_COLLECTIVE_EXCHANGE
};
enum hipio_stats_choice { HIPIO_STATS_OFF, HIPIO_STATS_CLOSE, HIPIO_STATS_FINALIZE };

/* Whose a setting is. */
enum hipio_scope {
    HIPIO_SCOPE_PROCESS,   /* one value in force for all files */
    HIPIO_SCOPE_EACH_FILE, /* the process's value is what a file begins with */
    HIPIO_SCOPE_ONE_FILE   /* means nothing but for the file it was given to */
};

#define HIPIO_TUNABLE_NONE UINT32_MAX

/* Fields are uint64_t throughout: bytes, a count, or one of the enumerators above. */
struct hipio_tunables {
#define TUNABLE(field, type, scope, text, help) uint64_t field;
#include "tunables.def"
#undef TUNABLE
};

/* Where each field's value came from, by index (see hipio_tunables_index). */
struct hipio_tunable_info {
    const char *name; /* "chunk_size" */
    const char *text; /* default as text */
    const char *help;
    const char *accepts; /* "a size in bytes, suffix K, M or G" or "auto, off, force" */
    enum hipio_scope scope;
};

/* How many settings there are, and what the table says of one. */
size_t hipio_tunables_count(void);
const struct hipio_tunable_info *hipio_tunables_info(size_t index);

/* Index of the setting of that name (without prefix), or HIPIO_TUNABLE_NONE. */
uint32_t hipio_tunables_index(const char *name);

/*
 * The process's settings: defaults and environment, read once, on the first call (thread-safe), and
 * then what hipio_tunables_set_process put over them. A bad environment value is logged once (warn)
 * and the default kept.
 */
const struct hipio_tunables *hipio_tunables_process(void);
enum hipio_source hipio_tunables_source(size_t index);

/* Puts a value over the process's settings (MCA parameters). Call it before other threads use the
 * engine. A setting of one file takes its default only. 0 or -EINVAL with text. */
int hipio_tunables_set_process(const char *name, const char *value, enum hipio_source source);

/* Sets one field of `t` from text. 0; -ENOENT: no such setting; -EINVAL: bad value. Text in
 * hipio_status_text. */
int hipio_tunables_set(struct hipio_tunables *t, const char *name, const char *value);
/* The same for a file's settings: a value that only the process can have is -EINVAL, too, unless it
 * is the process's own. */
int hipio_tunables_set_file(struct hipio_tunables *t, const char *name, const char *value);

/* Writes the value of one field as text that hipio_tunables_set takes back ("1M", "auto", "3"). */
void hipio_tunables_format(const struct hipio_tunables *t, size_t index, char *out, size_t size);

/* Parses a byte count: decimal digits, one optional suffix K, M, G (either case), nothing else. 0
 * or -EINVAL. */
int hipio_tunables_parse_size(const char *text, uint64_t *out);
