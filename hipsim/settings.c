/* SPDX-License-Identifier: MIT */
/* Reads the environment. Nothing else in hipsim does. */
#include "settings.h"

#include "error.h"
#include "flavor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct hipsim_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t suffix_factor(const char *name, const char *text, const char *end)
{
    if (end == text || (end[0] && end[1]))
        hipsim_error_die("%s=%s is not a number with an optional K, M or G", name, text);
    switch (*end) {
    case '\0':
        return 1;
    case 'K':
        return UINT64_C(1) << 10;
    case 'M':
        return UINT64_C(1) << 20;
    case 'G':
        return UINT64_C(1) << 30;
    }
    hipsim_error_die("%s=%s: the suffix must be K, M or G", name, text);
}

static uint64_t number(const char *name, uint64_t fallback, uint64_t max)
{
    const char *text = getenv(name);
    char *end;
    uint64_t value, factor;

    if (!text || !*text)
        return fallback;
    errno = 0;
    value = strtoull(text, &end, 0);
    factor = suffix_factor(name, text, end);
    if (errno || *text == '-' || value > max / factor)
        hipsim_error_die("%s=%s is outside 0 to %llu", name, text, (unsigned long long)max);
    return value * factor;
}

static bool flag(const char *name, bool fallback)
{
    return number(name, fallback, 1) != 0;
}

static enum hipsim_ais_mode ais_mode(void)
{
    static const char *const names[] = {"off", "on", "strict", "refuse"};
    const char *text = getenv("HIPSIM_AIS");

    if (!text || !*text)
        return HIPSIM_AIS_ON;
    for (int i = 0; i < 4; i++)
        if (!strcmp(text, names[i]))
            return (enum hipsim_ais_mode)i;
    hipsim_error_die("HIPSIM_AIS=%s: must be off, on, strict or refuse", text);
}

static int mpi_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);

        if (text && *text)
            return atoi(text);
    }
    return -1;
}

static void load(void)
{
    settings.devices = (int)number("HIPSIM_DEVICES", 1, HIPSIM_MAX_DEVICES);
    settings.apu = flag("HIPSIM_APU", false);
    settings.large_bar = flag("HIPSIM_LARGE_BAR", false);
    settings.wait_value = flag("HIPSIM_WAIT_VALUE", true);
    settings.managed = flag("HIPSIM_MANAGED", true);
    settings.register_alias = flag("HIPSIM_REGISTER_ALIAS", false);
    settings.ais = ais_mode();
    settings.ais_align = number("HIPSIM_AIS_ALIGN", 4096, UINT64_C(1) << 20);
    if (!settings.ais_align)
        hipsim_error_die("HIPSIM_AIS_ALIGN=0: must be at least 1");
    settings.memory = number("HIPSIM_MEMORY", UINT64_C(16) << 30, UINT64_C(1) << 46);
    settings.poison = number("HIPSIM_POISON", UINT64_C(16) << 20, UINT64_C(1) << 46);
    settings.seed = number("HIPSIM_SEED", 1, UINT64_MAX);
    settings.delay_us = (unsigned)number("HIPSIM_DELAY_US", 50, 1000000);
    settings.fail = getenv("HIPSIM_FAIL");
    settings.stats = getenv("HIPSIM_STATS");
    settings.rank = mpi_rank();
}

const struct hipsim_settings *hipsim_settings_get(void)
{
    pthread_once(&once, load);
    return &settings;
}
