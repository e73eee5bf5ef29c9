/* SPDX-License-Identifier: MIT */
/*
 * View: a driven file's view and file pointer. Positions are bytes of the view's data, counted from
 * its start ("packed"); offsets are absolute bytes of the file.
 */
#pragma once
#include "driver.h"
#include "engine/extent.h"

/* Flattens the view if that was not done since it was set. 0 or a negative errno with text. Call it
 * before the others. */
int hipio_view_prepare(struct hipio_driven *driven);

/* True: the view's data are one range of the file from its displacement on. */
bool hipio_view_is_contiguous(const struct hipio_driven *driven);
/* True: the view names no bytes at all (a file type of size 0). */
bool hipio_view_is_empty(const struct hipio_driven *driven);

/* Where an access through the view starts: `offset` etypes from the start, or (individual) the file
 * pointer. */
int hipio_view_position(const struct hipio_driven *driven, int pointer, int64_t offset,
                        uint64_t *position);
/* Bytes of the view that lie below that offset of the file. */
uint64_t hipio_view_bytes_below(const struct hipio_driven *driven, int64_t offset);
/* File offset of the byte at that position; of a view of nothing, its displacement. */
int64_t hipio_view_offset(const struct hipio_driven *driven, uint64_t position);

/* Moves the individual file pointer; also marks the descriptor's own position as unknown, as any
 * I/O of ours must. */
void hipio_view_seek(struct hipio_driven *driven, int64_t offset);
void hipio_view_touch(struct hipio_driven *driven);
