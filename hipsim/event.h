/* SPDX-License-Identifier: MIT */
/* Events: the point of a stream that was recorded last, with its time. */
#pragma once

struct hipsim_event;
struct hipsim_stream;

enum { HIPSIM_EVENT_BLOCKING = 1, HIPSIM_EVENT_NO_TIMING = 2 };

int hipsim_event_create(int device, unsigned flags, struct hipsim_event **out);
/* An event may be destroyed before its point is reached. */
int hipsim_event_destroy(void *handle);
void hipsim_event_end_all(int device);
int hipsim_event_record(void *handle, struct hipsim_stream *stream);
int hipsim_event_query(void *handle);
int hipsim_event_synchronize(void *handle);
int hipsim_event_elapsed(float *ms, void *start, void *stop);
/* Work queued in `stream` from now on waits for what is recorded in the event now. */
int hipsim_event_wait(struct hipsim_stream *stream, void *handle);
