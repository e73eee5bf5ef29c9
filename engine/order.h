/* SPDX-License-Identifier: MIT */
/*
 * Order: a request's place behind the application's GPU work. What was queued before the call must
 * be over before the request touches the memory: on the way out it is the data, on the way in its
 * last readers.
 */
#pragma once
#include "request.h"

/* What has to be waited for, or nothing. */
struct hipio_order {
    const struct hipio_device_ops *ops;
    struct hipio_event *event;
};

/*
 * With the file's setting `stream`: marks the work that is on that stream now, without waiting.
 * Otherwise waits as the setting `sync` says, in which case nothing is left to wait for. 0, or an
 * error with text: -EINVAL or -ENOTSUP no stream to follow, -EBUSY it is being captured.
 */
int hipio_order_mark(const struct hipio_request *request, struct hipio_order *order);
/* Waits for what was marked. Once for each mark that succeeded. */
int hipio_order_wait(struct hipio_order *order);
