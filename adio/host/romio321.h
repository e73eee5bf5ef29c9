/* SPDX-License-Identifier: MIT */
/*
 * ROMIO 3.2.1 as Open MPI 4.1 ships it, x86-64: the layouts that the driver stands on, declared by
 * us. proof.c holds them against the binary before anything is touched; the assertions below hold
 * them against the offsets that were found.
 */
#pragma once
#include <mpi.h>
#include <stddef.h>

#define HIPIO_ROMIO_COOKIE 2487376
#define HIPIO_ROMIO_EXPLICIT_OFFSET 100
#define HIPIO_ROMIO_INDIVIDUAL 101

enum { HIPIO_ROMIO_HINT_AUTO = 0, HIPIO_ROMIO_HINT_ENABLE = 1, HIPIO_ROMIO_HINT_DISABLE = 2 };
enum { HIPIO_ROMIO_FEATURE_LOCKS = 300 };

struct hipio_romio_fns;

struct hipio_romio_hints {
    int initialized, striping_factor, striping_unit, cb_read, cb_write, cb_nodes, cb_buffer_size;
    int cb_pfr, cb_fr_type, cb_fr_alignment, cb_ds_threshold, cb_alltoall, ds_read, ds_write;
    int no_indep_rw, ind_rd_buffer_size, ind_wr_buffer_size, deferred_open, min_fdomain_size;
    char *cb_config_list;
    int *ranklist;
    char fs_hints[32];
};

struct hipio_romio_file {
    int cookie, fd_sys, null_fd, fd_direct, direct_read, direct_write;
    unsigned d_mem, d_miniosz;
    long blksize;
    long long fp_ind, fp_sys_posn;
    const struct hipio_romio_fns *fns;
    MPI_Comm comm;
    int is_open, is_agg;
    char *filename;
    int file_system, access_mode, orig_access_mode;
    long long disp;
    MPI_Datatype etype, filetype;
    MPI_Count etype_size;
    struct hipio_romio_hints *hints;
    MPI_Info info;
    int split_coll_count;
    MPI_Status split_status;
    MPI_Datatype split_datatype;
    char *shared_fp_fname;
    struct hipio_romio_file *shared_fp_fd;
    int async_count, perm, atomicity, fortran_handle;
    MPI_Errhandler err_handler;
    void *fs_ptr;
    long long *file_realm_st_offs;
    MPI_Datatype *file_realm_types;
    int my_cb_nodes_index;
    char *io_buf;
    MPI_Win io_buf_window;
    int *io_buf_put_amounts;
    MPI_Win io_buf_put_amounts_window;
    int is_external32;
};

typedef struct hipio_romio_file *hipio_romio_fd;

typedef void hipio_romio_read_fn(hipio_romio_fd fd, void *buf, int count, MPI_Datatype type,
                                 int pointer, long long offset, MPI_Status *status, int *error);
typedef void hipio_romio_write_fn(hipio_romio_fd fd, const void *buf, int count, MPI_Datatype type,
                                  int pointer, long long offset, MPI_Status *status, int *error);
typedef void hipio_romio_iread_fn(hipio_romio_fd fd, void *buf, int count, MPI_Datatype type,
                                  int pointer, long long offset, MPI_Request *request, int *error);
typedef void hipio_romio_iwrite_fn(hipio_romio_fd fd, const void *buf, int count, MPI_Datatype type,
                                   int pointer, long long offset, MPI_Request *request, int *error);

struct hipio_romio_fns {
    void (*open)(hipio_romio_fd fd, int *error);
    void (*open_coll)(hipio_romio_fd fd, int rank, int access_mode, int *error);
    hipio_romio_read_fn *read_contig;
    hipio_romio_write_fn *write_contig;
    hipio_romio_read_fn *read_strided_coll;
    hipio_romio_write_fn *write_strided_coll;
    long long (*seek_individual)(hipio_romio_fd fd, long long offset, int whence, int *error);
    void (*fcntl)(hipio_romio_fd fd, int flag, void *args, int *error);
    void (*set_info)(hipio_romio_fd fd, MPI_Info info, int *error);
    hipio_romio_read_fn *read_strided;
    hipio_romio_write_fn *write_strided;
    void (*close)(hipio_romio_fd fd, int *error);
    hipio_romio_iread_fn *iread_contig;
    hipio_romio_iwrite_fn *iwrite_contig;
    int (*read_done)(MPI_Request *request, MPI_Status *status, int *error);
    int (*write_done)(MPI_Request *request, MPI_Status *status, int *error);
    void (*read_complete)(MPI_Request *request, MPI_Status *status, int *error);
    void (*write_complete)(MPI_Request *request, MPI_Status *status, int *error);
    hipio_romio_iread_fn *iread_strided;
    hipio_romio_iwrite_fn *iwrite_strided;
    void (*flush)(hipio_romio_fd fd, int *error);
    void (*resize)(hipio_romio_fd fd, long long size, int *error);
    void (*remove)(const char *name, int *error);
    int (*feature)(hipio_romio_fd fd, int feature);
    const char *fsname;
    hipio_romio_iread_fn *iread_strided_coll;
    hipio_romio_iwrite_fn *iwrite_strided_coll;
};

_Static_assert(sizeof(struct hipio_romio_fns) == 216, "27 slots");
_Static_assert(sizeof(struct hipio_romio_file) == 304, "size of an open file");
_Static_assert(offsetof(struct hipio_romio_file, fp_ind) == 40, "fp_ind");
_Static_assert(offsetof(struct hipio_romio_file, fns) == 56, "fns");
_Static_assert(offsetof(struct hipio_romio_file, filename) == 80, "filename");
_Static_assert(offsetof(struct hipio_romio_file, etype_size) == 128, "etype_size");
_Static_assert(offsetof(struct hipio_romio_file, split_status) == 160, "split_status");
_Static_assert(offsetof(struct hipio_romio_file, atomicity) == 216, "atomicity");
_Static_assert(offsetof(struct hipio_romio_file, fs_ptr) == 232, "fs_ptr");
_Static_assert(offsetof(struct hipio_romio_file, is_external32) == 296, "is_external32");
_Static_assert(sizeof(struct hipio_romio_hints) == 128, "hints");
_Static_assert(offsetof(struct hipio_romio_hints, cb_config_list) == 80, "cb_config_list");
