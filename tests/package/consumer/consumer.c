/* SPDX-License-Identifier: MIT */
/* A program that knows hipio only as it is installed: writes a file, reads it back. */
#include <fcntl.h>
#include <hipio.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char out[100000], in[sizeof out];
    struct hipio_handle *file;
    const int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;

    memset(out, 'x', sizeof out);
    if (hipio_register_file(fd, "consumer", &file) < 0 ||
        hipio_write(file, out, sizeof out, 7, 0) != (ssize_t)sizeof out ||
        hipio_read(file, in, sizeof in, 7, 0) != (ssize_t)sizeof in ||
        memcmp(in, out, sizeof in) != 0) {
        fprintf(stderr, "consumer: %s\n", hipio_error_text());
        return 1;
    }
    hipio_deregister_file(file);
    close(fd);
    printf("hipio %s\n", hipio_version());
    return 0;
}
