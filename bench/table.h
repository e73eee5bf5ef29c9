/* SPDX-License-Identifier: MIT */
/*
 * Table: the lines that the runs have printed, as a table for people.
 */
#pragma once
#include <stdio.h>

/* Reads lines of results and writes Markdown. Returns how many cells were wrong or are missing. */
int table_print(FILE *in, FILE *out);
