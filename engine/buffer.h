/* SPDX-License-Identifier: MIT */
/*
 * Buffer: the GPU memory of a request: is its end there, and how errors name it.
 */
#pragma once
#include "request.h"

/*
 * Is the last byte that the request reaches still GPU memory? Asked before the first byte moves, so
 * that a request that leaves its allocation fails whole, and no kernel runs into what is not there,
 * which would end all work of the process on that GPU. A read reaches no further than its file.
 * Only device and managed memory are asked about: of host memory a part may be registered. What
 * lies between the ends may be of several allocations or mappings and is not looked at. Calls the
 * GPU runtime: not for the thread of a stream. 0, or -EFAULT with a text that names the buffer.
 */
int hipio_buffer_check(const struct hipio_request *request);

/* Puts the name of the request's buffer before the words of a failed copy, which know an address
 * at best. Returns `status`. */
int hipio_buffer_blame(const struct hipio_request *request, int status);
