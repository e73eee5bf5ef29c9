/* SPDX-License-Identifier: MIT */
/* What stream.c and order.c share: the handles with fixed values and the device's list. */
#pragma once

#include "stream.h"

#define HIPSIM_STREAM_LEGACY ((void *)1)
#define HIPSIM_STREAM_PER_THREAD ((void *)2)

/* Takes the stream off its device's list; the device's lock is held. */
void hipsim_stream_unlink(struct hipsim_stream *stream);
