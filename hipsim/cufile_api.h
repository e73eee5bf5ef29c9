/* SPDX-License-Identifier: MIT */
/* The cuFile face, declared by us. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(default)

struct cufile_error {
    int code;      /* 0 or 5001 and above */
    int cuda_code; /* with 5011 */
};

struct cufile_descriptor {
    int type; /* 1: file descriptor */
    union {
        int fd;
        void *pointer;
    } handle;
    const void *operations;
};
_Static_assert(sizeof(struct cufile_descriptor) == 24, "CUfileDescr_t");

struct cufile_error cuFileDriverOpen(void);
struct cufile_error cuFileDriverClose(void);
struct cufile_error cuFileDriverClose_v2(void);
long cuFileUseCount(void);
struct cufile_error cuFileGetVersion(int *version);
struct cufile_error cuFileSetParameterBool(int parameter, bool value);
struct cufile_error cuFileHandleRegister(void **handle, struct cufile_descriptor *descriptor);
void cuFileHandleDeregister(void *handle);
struct cufile_error cuFileBufRegister(const void *base, size_t bytes, int flags);
struct cufile_error cuFileBufDeregister(const void *base);
ssize_t cuFileRead(void *handle, void *base, size_t bytes, off_t file_offset, off_t base_offset);
ssize_t cuFileWrite(void *handle, const void *base, size_t bytes, off_t file_offset,
                    off_t base_offset);
struct cufile_error cuFileStreamRegister(void *stream, unsigned flags);
struct cufile_error cuFileStreamDeregister(void *stream);
struct cufile_error cuFileReadAsync(void *handle, void *base, size_t *bytes, off_t *file_offset,
                                    off_t *base_offset, ssize_t *done, void *stream);
struct cufile_error cuFileWriteAsync(void *handle, void *base, size_t *bytes, off_t *file_offset,
                                     off_t *base_offset, ssize_t *done, void *stream);

#pragma GCC visibility pop
