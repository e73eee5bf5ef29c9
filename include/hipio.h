/* SPDX-License-Identifier: MIT */
/*
 * hipio: file I/O of GPU memory, without MPI.
 *
 * Register a file descriptor, then read and write GPU memory: at once (hipio_read, hipio_write) or
 * in the order of a GPU stream (hipio_read_async, hipio_write_async). Memory may be device memory,
 * managed, pinned or ordinary memory of HIP or CUDA; the runtime is the one that the program uses,
 * and hipio is linked to none.
 *
 *     struct hipio_handle *file;
 *     hipio_register_file(fd, "state", &file);
 *     hipio_stream_register(stream, 0);
 *     step<<<..., stream>>>(field);
 *     hipio_write_async(file, field, &size, &file_offset, &buffer_offset, &done, stream);
 *     step<<<..., stream>>>(field);             // after the write has taken its bytes
 *     hipStreamSynchronize(stream);             // done == size, or -ENOSPC, ...
 *
 * Results are 0 or a count, or a negative errno; hipio_error_text has the words for the calling
 * thread's last one. All functions may be called from any thread, and from several at once, but not
 * from a host function or callback of a GPU stream, nor in a forked child of a process that has
 * used hipio (-ENOTSUP). Offsets and sizes are in bytes and have 64 bits.
 */
/* clang-format off */
/*
 * How the stream calls compare with cuFileReadAsync, hipFileReadAsync and their writes:
 *
 * | the same                                 | better                                             |
 * | ---------------------------------------- | -------------------------------------------------- |
 * | arguments and their order; pointers that | the result keeps the errno (-ENOSPC, -EIO), and    |
 * | are read when the stream gets there      | hipio_stream_status has the words for it           |
 * | flags of a registered stream: 1, 2, 4, 8 | an error stays in its operation: the stream and    |
 * |                                          | its later operations go on                         |
 * | the size may shrink until then, not grow | a fast path that fails falls back, as in blocking  |
 * |                                          | calls                                              |
 * | *bytes_done is 0 when the call returns,  | file and stream may be closed, destroyed and       |
 * | and valid once the stream is past it     | deregistered at any time: what is queued ends well |
 * | a stream that was not registered works,  | a captured or destroyed stream, or one of another  |
 * | with flags 0                             | GPU than the buffer, is refused before anything is |
 * |                                          | queued                                             |
 * | one pinned bounce buffer for a stream    | storage and copies overlap inside it, and several  |
 * |                                          | threads fill it where files are read faster so     |
 * | parameters must stay until the stream is | any file system, any alignment, ordinary and       |
 * | past the operation                       | pinned memory too; no driver to open               |
 */
/* clang-format on */
#ifndef HIPIO_H
#define HIPIO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *hipio_version(void);

/*
 * The words for the last error that a function of this header returned in the calling thread: what
 * failed, why, and what to do. "" if there was none. Valid until the thread's next call of hipio.
 */
const char *hipio_error_text(void);

/* ---- Files ---- */

struct hipio_handle;

/*
 * Makes a file known. Its descriptor is duplicated: the caller's stays the caller's and may be
 * closed at once. The access mode is the descriptor's; O_APPEND is not for it (writes have
 * offsets). `name` is copied and stands in messages; NULL: the descriptor's number. 0; -EBADF: no
 * open descriptor; -EMFILE, -ENFILE: no descriptor left; -ENOMEM.
 */
int hipio_register_file(int fd, const char *name, struct hipio_handle **file);

/*
 * Forgets the file; the handle must not be used again. Returns at once: operations that are queued
 * on streams keep what they need until they are over, and the duplicated descriptor is closed after
 * the last. (As always with POSIX, closing it releases this process's fcntl locks on the file.)
 * NULL is allowed.
 */
void hipio_deregister_file(struct hipio_handle *file);

/*
 * Reads `size` bytes at `file_offset` to `gpu_base` + `buffer_offset`, or writes them from there.
 * Blocks. Work on the default stream and on blocking streams that was queued before the call is
 * waited for (setting sync) where the memory is device or managed memory; pinned memory counts as
 * host memory. Work queued later, on any stream, sees what was read. Returns the bytes moved: less
 * than `size` when the file ended. Errors: -EINVAL an argument; -EBADF the file was not opened for
 * it; -EFAULT no memory there; -ENOTSUP the settings forbid every way; -ENOSPC, -EIO and whatever
 * else the file system or the GPU runtime answers. After an error it is unknown how much has been
 * moved.
 */
ssize_t hipio_read(struct hipio_handle *file, void *gpu_base, size_t size, off_t file_offset,
                   off_t buffer_offset);
ssize_t hipio_write(struct hipio_handle *file, const void *gpu_base, size_t size, off_t file_offset,
                    off_t buffer_offset);

/*
 * The same between one range of the file and several pieces of memory, in their order. The pieces
 * must be of one kind and one GPU (-EINVAL); up to 2^20 of them.
 */
ssize_t hipio_readv(struct hipio_handle *file, const struct iovec *pieces, int n,
                    off_t file_offset);
ssize_t hipio_writev(struct hipio_handle *file, const struct iovec *pieces, int n,
                     off_t file_offset);

/* ---- Streams ---- */

/* What a program promises of all operations on a stream: the value at the call is the value. */
enum hipio_stream_flag {
    HIPIO_FIXED_BUFFER_OFFSET = 1,
    HIPIO_FIXED_FILE_OFFSET = 2,
    HIPIO_FIXED_SIZE = 4,
    HIPIO_ALL_PAGE_ALIGNED = 8 /* accepted; hipio has no use for it */
};

/*
 * Gives a stream (hipStream_t, cudaStream_t, CUstream; NULL: the default stream of the current
 * device) its pinned bounce buffer of HIPIO_ASYNC_BUFFER_SIZE bytes and its thread. `flags`: of
 * hipio_stream_flag. 0; -EEXIST: it is registered; -EINVAL: flags, or no such stream; -EBUSY: it is
 * being captured; -ENOTSUP: the per-thread default stream, which is not one stream; -ENODEV: no GPU
 * runtime in the process; -ENOMEM.
 *
 * Without it, the first operation on a stream registers it with flags 0.
 */
int hipio_stream_register(void *stream, unsigned flags);

/*
 * Takes buffer and thread back: at once if nothing of hipio's is left on the stream, else when the
 * stream is past it. Never blocks for that. The stream itself is not touched; it may have been
 * destroyed before. A program that destroys streams deregisters them, because a new stream may get
 * the same handle. 0, or -ENOENT: not registered.
 */
int hipio_stream_deregister(void *stream);

/*
 * Queues a read or write on a stream: after the stream's earlier work, before its later work.
 *
 * Everything pointed to must stay until the stream is past the operation. `*size`, `*file_offset`
 * and `*buffer_offset` are read when the stream gets there, unless they are declared fixed: a host
 * function, or a kernel writing pinned memory, may set them until then. `*size` at the call is the
 * most that will be moved; one that has grown ends the operation with -EINVAL. `*buffer_offset` is
 * trusted: the GPU faults if it points to no memory. Only where size and buffer offset are both
 * declared fixed, the buffer's end is checked at the call (-EFAULT). `*bytes_done` is 0 when the
 * call returns, and once the stream is past the operation it is the number of bytes moved (less
 * than *size where a read met the end of the file) or a negative errno, which concerns this
 * operation only.
 *
 * Where the GPU itself fails (the stream's synchronisation says so), *bytes_done may be left alone,
 * and what is pointed to must stay until hipio_shutdown has returned.
 *
 * Blocks only as the GPU runtime does when its own queue of a stream is full; an operation takes
 * three places of it for each eighth of the bounce buffer that it moves, so a larger buffer lets
 * larger operations be queued ahead.
 *
 * 0; -EINVAL: an argument, a destroyed stream; -EFAULT: no memory there; -EXDEV: the buffer is on
 * another GPU than the stream; -EBADF: the file was not opened for it; -EBUSY: the stream is being
 * captured to a graph; others as hipio_stream_register. Then nothing was queued. Only if the GPU
 * runtime itself fails while the operation is being queued, a part may be: then *bytes_done, too,
 * tells the error, and what is pointed to must stay until the stream has been synchronised.
 */
int hipio_read_async(struct hipio_handle *file, void *gpu_base, const size_t *size,
                     const off_t *file_offset, const off_t *buffer_offset, ssize_t *bytes_done,
                     void *stream);
int hipio_write_async(struct hipio_handle *file, const void *gpu_base, const size_t *size,
                      const off_t *file_offset, const off_t *buffer_offset, ssize_t *bytes_done,
                      void *stream);

/*
 * The first error of the stream's operations since the last time it was asked for, with its words
 * in `text` (may be NULL). 0: none. Tells of the operations that the stream is past. -ENOENT: not
 * registered.
 */
int hipio_stream_status(void *stream, char *text, size_t size);

/* ---- Settings and counters ---- */

/*
 * Sets a setting (hipio-info, docs/settings.md) of the process, for files and streams
 * that are registered later; or of one file, if it is no setting of the whole process. Call
 * hipio_set before other threads use hipio.
 * 0; -EINVAL with words that name the setting, the value and what it accepts.
 */
int hipio_set(const char *setting, const char *value);
int hipio_set_file(struct hipio_handle *file, const char *setting, const char *value);
/* The value in force, for the process or (not NULL) a file. 0; -EINVAL: no such setting. */
int hipio_get(struct hipio_handle *file, const char *setting, char *value, size_t size);

/* One counter of the process by its name ("bytes_read", "pinned_now"): 0 or -EINVAL. */
int hipio_statistic(const char *counter, uint64_t *value);
/* Those that are not 0 as text, a line each; one line says so where all are. */
void hipio_report(char *text, size_t size);

/*
 * Ends what hipio has running: deregisters all streams, waits for what is queued on them, joins
 * threads and frees pinned memory while the GPU runtime still works. Files stay registered, and
 * hipio may be used again. A program that simply exits need not call it.
 */
void hipio_shutdown(void);

#ifdef __cplusplus
}
#endif
#endif
