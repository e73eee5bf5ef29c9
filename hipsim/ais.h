/* SPDX-License-Identifier: MIT */
/* hipAmdFileRead and hipAmdFileWrite, which only hipGetProcAddress hands out. */
#pragma once

enum { HIPSIM_AIS_FOUND = 0, HIPSIM_AIS_MISSING = 1, HIPSIM_AIS_TOO_OLD = 2 };

/* Answers one of the values above; the numbers are hipGetProcAddress's own. */
int hipsim_ais_entry(const char *symbol, int version, void **function);
