/* SPDX-License-Identifier: MIT */
/*
 * Process: what is in this process.
 */
#include "process.h"
#include <stdio.h>
#include <string.h>

bool process_maps(const char *text)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096];
    bool found = false;

    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, text) != NULL;
    if (maps)
        fclose(maps);
    return found;
}
