/* SPDX-License-Identifier: MIT */
/*
 * A chain on one GPU stream through the C library, without MPI: work, write, work, read, step after
 * step, and the host looks only when all of it is done.
 *
 * Each step computes a field, has it written behind that, and goes on to overwrite it: the write
 * has its place in the stream and takes the bytes of its step. Then the step before is read back.
 * What stands for a kernel here is hipMemsetAsync, so that a C compiler is enough.
 *
 *     stream_chain FILE [STEPS]
 */
#include "hipio.h"
#include "stream_gpu.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD ((size_t)1 << 20)
#define STEPS_MAX 200

static void gpu(hipError_t error)
{
    if (error == hipSuccess)
        return;
    fprintf(stderr, "stream_chain: %s\n", hipGetErrorString(error));
    exit(1);
}

static void io(int status)
{
    if (status == 0)
        return;
    fprintf(stderr, "stream_chain: %s\n", hipio_error_text());
    exit(1);
}

/* What the stream reads when it gets there, and where it leaves its results: all of it has to stay
 * until the stream is synchronised. */
static struct step {
    off_t file_offset;
    off_t memory_offset;
    ssize_t written;
    ssize_t read;
} steps[STEPS_MAX];

static const size_t size = FIELD;
static const off_t zero;

static void queue_step(struct hipio_handle *file, char *field, char *history, int i,
                       hipStream_t stream)
{
    struct step *step = &steps[i];

    step->file_offset = (off_t)(i * FIELD);
    step->memory_offset = (off_t)(i * FIELD);
    gpu(hipMemsetAsync(field, i + 1, FIELD, stream));
    io(hipio_write_async(file, field, &size, &step->file_offset, &zero, &step->written, stream));
    gpu(hipMemsetAsync(field, 0, FIELD, stream));
    io(hipio_read_async(file, history, &size, &step->file_offset, &step->memory_offset, &step->read,
                        stream));
}

/* Every byte of a step, as it came back from the file. */
static int check_step(const char *history, int i, char *host)
{
    if (steps[i].written != (ssize_t)FIELD || steps[i].read != (ssize_t)FIELD) {
        fprintf(stderr, "step %d: wrote %zd, read %zd\n", i, steps[i].written, steps[i].read);
        return 1;
    }
    gpu(hipMemcpy(host, history + i * FIELD, FIELD, hipMemcpyDeviceToHost));
    for (size_t k = 0; k < FIELD; k++) {
        if ((unsigned char)host[k] != i + 1) {
            fprintf(stderr, "step %d: byte %zu is %d\n", i, k, host[k]);
            return 1;
        }
    }
    return 0;
}

static int check(const char *history, int n)
{
    char *host = malloc(FIELD);
    int wrong = !host;

    for (int i = 0; i < n && !wrong; i++)
        wrong = check_step(history, i, host);
    free(host);
    return wrong;
}

int main(int argc, char **argv)
{
    const int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 20;
    const int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    struct hipio_handle *file;
    hipStream_t stream;
    void *field, *history;

    if (fd < 0 || n < 1 || n > STEPS_MAX) {
        fprintf(stderr, "usage: stream_chain FILE [1 to %d steps]\n", STEPS_MAX);
        return 2;
    }
    gpu(hipMalloc(&field, FIELD));
    gpu(hipMalloc(&history, (size_t)n * FIELD));
    gpu(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    io(hipio_register_file(fd, argv[1], &file));
    io(hipio_stream_register(stream, HIPIO_FIXED_SIZE));
    for (int i = 0; i < n; i++)
        queue_step(file, field, history, i, stream);
    /* The file may be given up here, though most of the chain is still to come. */
    hipio_deregister_file(file);
    close(fd);
    gpu(hipStreamSynchronize(stream));
    int wrong = check(history, n);
    io(hipio_stream_deregister(stream));
    gpu(hipStreamDestroy(stream));
    gpu(hipFree(history));
    gpu(hipFree(field));
    hipio_shutdown();
    if (!wrong)
        printf("verified\n");
    return wrong;
}
