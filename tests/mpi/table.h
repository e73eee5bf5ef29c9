/* SPDX-License-Identifier: MIT */
/*
 * Table: every MPI-IO data call x kind of memory x memory datatype x file view x variant. One cell
 * of the table opens a file, makes two calls on every rank, and compares everything that can be
 * seen with an oracle that knows only arithmetic.
 */
#pragma once
#include "gpu.h"
#include "layout.h"
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { CALLS = 2, MAX_RANKS = 16 };

/* The dimensions. Their words are what the command line takes and what failures print. */

enum op_pointer { OP_AT, OP_INDIVIDUAL, OP_SHARED, OP_ORDERED };
enum op_mode { OP_BLOCKING, OP_SPLIT, OP_NONBLOCKING };

struct op {
    const char *name;
    bool write;
    enum op_pointer pointer;
    enum op_mode mode;
    bool collective;
};

enum shape {
    SHAPE_CONTIG,
    SHAPE_VECTOR,
    SHAPE_NESTED,   /* vectors in a structure, data below the address */
    SHAPE_REVERSED, /* the file's order is not that of the addresses */
    SHAPE_BOTTOM,   /* MPI_BOTTOM and absolute addresses */
    SHAPE_LB,       /* nested, with a lower bound that MPI_Type_create_resized put there */
    SHAPES
};
enum view_kind { VIEW_CONTIG, VIEW_STRIDED, VIEW_SUBARRAY, VIEWS };
enum variant {
    VARIANT_PLAIN,
    VARIANT_LARGE,  /* many staging chunks and collective rounds */
    VARIANT_EOF,    /* the file ends inside an access (reads), or grows from there (writes) */
    VARIANT_ZERO,   /* half of the ranks pass NULL and count 0, turn about */
    VARIANT_MIXED,  /* each rank uses another kind of memory */
    VARIANT_IGNORE, /* MPI_STATUS_IGNORE */
    VARIANT_ATOMIC,
    VARIANTS
};
enum hints { HINTS_AUTO, HINTS_CB, HINTS_NOCB, HINTS };

extern const char *const shape_names[SHAPES];
extern const char *const view_names[VIEWS];
extern const char *const variant_names[VARIANTS];
extern const char *const hint_names[HINTS];

struct cell {
    const struct op *op;
    enum gpu_kind memory;
    enum shape shape;
    enum view_kind view;
    enum variant variant;
    enum hints hints;
    int rank, ranks;
};

/* table_op.c: the calls. */

struct call {
    MPI_Offset at; /* in etypes; explicit-offset calls only */
    void *buffer;
    int count;
    MPI_Datatype type;
    MPI_Status *status; /* or MPI_STATUS_IGNORE */
    MPI_Request request;
    int code; /* what the call, or its completion, returned */
};

extern const struct op ops[];
extern const int op_count;
/* Makes the call; a split one also ends here. A nonblocking one leaves its request. */
void op_issue(const struct op *op, MPI_File file, struct call *call);

/* table_shape.c: memory datatypes and views, each with its byte model. */

enum { UNIT = 48 }; /* bytes of data in one unit of every shape */

struct memory_type {
    MPI_Datatype type;
    int count;
    bool bottom; /* addresses are absolute: the buffer is MPI_BOTTOM */
    struct layout layout;
    int elements_per_unit;
    bool ints_only;
};

struct view {
    MPI_Datatype etype, filetype;
    int64_t disp;
    int etype_size;
    struct layout layout; /* offsets count from disp */
};

void memory_type_build(enum shape shape, int units, void *base, struct memory_type *out);
void memory_type_free(struct memory_type *type);
void view_build(enum view_kind kind, int rank, int ranks, struct view *out);
void view_free(struct view *view);

/* table_plan.c: who accesses what. Pure arithmetic. */

struct access {
    int units;
    int64_t bytes; /* units * UNIT */
    int64_t at;    /* first etype in the view */
    int64_t avail; /* bytes that the call must move */
};

struct plan {
    struct view view[MAX_RANKS]; /* handles and models; those of other ranks are models alone */
    struct access access[MAX_RANKS][CALLS];
    int64_t size_before, size_after;
    int64_t position[MAX_RANKS]; /* individual pointers at the end, all bytes counted as moved */
    int64_t shared_position;
};

void plan_make(const struct cell *cell, struct plan *plan);
/* File offset of byte `packed` of an access, and how many bytes lie there in a row. */
int64_t plan_offset(const struct plan *plan, int rank, int call, int64_t packed, int64_t *left);
uint64_t plan_seed(int rank, int call);
enum { BACKGROUND_SEED = 182, POISON = 0xA5 };

/* table_known.c: what plain ROMIO does wrong. */

enum check {
    CHECK_RUNS,
    CHECK_CODE,
    CHECK_COUNT,
    CHECK_POSITION,
    CHECK_MEMORY,
    CHECK_PAST_EOF, /* memory beyond what the file held */
    CHECK_FILE,
    CHECK_HOLE /* bytes that nobody wrote beyond the former end of the file */
};

/* The reason why that check may fail in that cell, or NULL. `romio`: no hipio is loaded. */
const char *known_fault(const struct cell *cell, enum check check, bool romio);
void known_print(void);

/* table_cell.c: runs one cell. All ranks call it and get the same answer. */

enum outcome { OUTCOME_PASS, OUTCOME_KNOWN, OUTCOME_SKIP, OUTCOME_FAIL };

struct setting {
    const char *path;
    bool romio; /* expect plain ROMIO: known faults are allowed, and memory is host memory */
    const char *command; /* what to print for "reproduce with" */
};

enum outcome cell_run(const struct cell *cell, const struct setting *setting);
void cell_describe(const struct cell *cell, char *out, size_t size);

/* table_check.c: compares what is with what should be. */

struct verdict {
    const struct cell *cell;
    bool romio;
    int failures, known;
    char first[400];
};

void verdict_fail(struct verdict *verdict, enum check check, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The status and code of one call. */
void check_call(struct verdict *verdict, const struct plan *plan, int index,
                const struct call *call, const struct memory_type *type);
void check_position(struct verdict *verdict, const struct plan *plan, MPI_File file);
/* `image` is the buffer of one call as it is now, whose address 0 of the type is `base`. */
struct image {
    unsigned char *bytes;
    int64_t size, base;
};
void check_memory(struct verdict *verdict, const struct plan *plan, int index,
                  const struct memory_type *type, const struct image *image);
void check_file(struct verdict *verdict, const struct plan *plan, const char *path);
/* Fills an image as it is before the call: poison, and for writes the data. */
void image_prepare(const struct cell *cell, int index, int64_t bytes,
                   const struct memory_type *type, struct image *image);
