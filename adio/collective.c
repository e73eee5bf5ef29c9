/* SPDX-License-Identifier: MIT */
/*
 * Collective: one reduction tells all ranks the same facts, from them each takes the same path, and
 * a second reduction ends the access on all. What a rank alone knows (its buffer's kind, an error)
 * reaches the others only through these.
 */
#include "collective.h"
#include "agree.h"
#include "begun.h"
#include "engine/stats.h"
#include "engine/status.h"
#include "exchange.h"
#include "independent.h"
#include "mpierr.h"
#include "staged.h"
#include "view.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

/* The highest of all ranks, each. */
struct facts {
    long long error;       /* MPI class */
    long long ours;        /* ROMIO's collective can't serve some rank's buffer */
    long long independent; /* some rank can't, or must not, send its data to another */
    long long exchange;  /* 1: some rank would have an exchange where ranks interleave, 2: always */
    long long staged;    /* some rank asks for ROMIO's exchange, with windows */
    long long unaligned; /* some rank starts inside an etype, which ROMIO's could not say */
    long long rounds;    /* of windows */
    long long end;       /* one past the last byte named */
    long long size;      /* of the file */
    long long room;      /* what each rank allows an aggregator, as a negative number */
    long long align;     /* and wants for the domains */
    long long least;
    long long renew; /* MPI has failed in the last exchange, as some rank knows */
};
#define FACTS (int)(sizeof(struct facts) / sizeof(long long))

/* Data that go to another rank are staged there, which these settings forbid. */
static bool must_not_stage(const struct hipio_driven *driven)
{
    return driven->tunables.fastpath == HIPIO_FORCE || driven->tunables.fallback == HIPIO_OFF;
}

/*
 * The settings first, then ROMIO's hints; without a word from them, shared file systems aggregate
 * and local ones do not.
 */
static void prefer(const struct hipio_access *access, struct facts *facts)
{
    struct hipio_driven *driven = access->driven;
    const struct hipio_romio_hints *hints = driven->fd->hints;
    int hint = access->call.op == HIPIO_READ ? hints->cb_read : hints->cb_write;

    if (driven->tunables.collective == HIPIO_COLLECTIVE_INDEPENDENT || must_not_stage(driven))
        facts->independent = 1;
    else if (driven->tunables.collective == HIPIO_COLLECTIVE_STAGED)
        facts->staged = 1;
    else if (driven->tunables.collective == HIPIO_COLLECTIVE_EXCHANGE)
        facts->exchange = 2;
    else if (hint == HIPIO_ROMIO_HINT_DISABLE)
        facts->independent = 1;
    else if (hint == HIPIO_ROMIO_HINT_ENABLE)
        facts->exchange = 2;
    else if (driven->file && hipio_file_is_shared(driven->file))
        facts->exchange = 1;
}

/*
 * Atomic mode orders whole accesses, by locks that an aggregator could not hold for others. A
 * change of byte order can't be cut inside an element, as rounds would.
 */
static bool must_be_alone(const struct hipio_driven *driven)
{
    return driven->fd->atomicity || driven->external32;
}

static void gather_facts(struct hipio_access *access, const struct hipio_memory *memory,
                         struct facts *facts)
{
    struct hipio_driven *driven = access->driven;
    uint64_t window = hipio_staged_window(driven);
    struct hipio_exchange_terms terms;
    int64_t start;

    facts->ours = driven->tunables.host_collectives != HIPIO_OFF ||
                  hipio_independent_is_ours(driven, &access->call, memory) ||
                  !hipio_layout_is_contiguous(access->memory_layout, &start) ||
                  access->bytes > INT_MAX;
    facts->rounds = (long long)((access->bytes + window - 1) / window);
    facts->end = access->call.op == HIPIO_READ ? hipio_access_end(access) : 0;
    facts->size = -1;
    if (driven->fd->is_open && hipio_driver_file(driven, &access->request.file) == 0)
        facts->size = hipio_file_size(access->request.file);
    facts->unaligned =
        driven->fd->etype_size && access->position % (uint64_t)driven->fd->etype_size;
    hipio_exchange_propose(driven, &terms);
    facts->room = -terms.buffer;
    facts->align = terms.align;
    facts->least = terms.least;
    facts->renew = hipio_exchange_is_broken(driven);
    prefer(access, facts);
    if (must_be_alone(driven) && !facts->staged)
        facts->independent = 1;
}

/* Whether there is memory for it must be known before the ranks agree. */
static int prepare_background(struct hipio_driven *driven)
{
    driven->begun = hipio_begun_create();
    return driven->begun ? 0 : hipio_status_set(-ENOMEM, "no memory for a split collective");
}

/* Fills the access and this rank's facts; returns its MPI code. */
static int prepare(struct hipio_driven *driven, const struct hipio_call *call,
                   struct hipio_access *access, struct facts *facts)
{
    struct hipio_memory memory;
    int rc, code;

    memset(facts, 0, sizeof *facts);
    *access = (struct hipio_access){.driven = driven, .call = *call, .lock_fd = -1};
    if (driven->argument_error != MPI_SUCCESS) {
        code = driven->argument_error;
        driven->argument_error = MPI_SUCCESS;
        facts->error = code;
        return code;
    }
    rc = hipio_call_memory(call, &memory);
    if (rc == 0)
        rc = hipio_access_prepare(driven, call, &memory, access);
    if (rc == 0 && driven->beginning)
        rc = prepare_background(driven);
    if (rc) {
        code = hipio_access_code(access, rc, NULL);
        facts->error = hipio_mpierr_class_of(code);
        return code;
    }
    gather_facts(access, &memory, facts);
    return MPI_SUCCESS;
}

/* ROMIO's own collective keeps its lock, as everywhere. */
static int run_lower(struct hipio_access *access)
{
    hipio_host_take_back();
    hipio_access_grow(access);
    int code = hipio_call_lower_collective(access->driven, &access->call);
    hipio_host_let_go();
    hipio_stats_add(HIPIO_COUNT_host_passed, 1);
    access->request.done = access->bytes;
    return code;
}

static int run_staged(struct hipio_access *access, const struct facts *all)
{
    hipio_host_take_back();
    hipio_access_grow(access);
    int code = hipio_staged_move(access, all->rounds, all->size);
    hipio_host_let_go();
    return code;
}

/* ROMIO opens the file. That it can't is told where the file is used. */
static void open_deferred(struct hipio_access *access)
{
    hipio_host_take_back();
    hipio_driver_file(access->driven, &access->request.file);
    hipio_host_let_go();
}

/* This rank's own blocks. What a split collective begins with them goes on in the background;
 * atomic mode would hold a lock of the file meanwhile. */
static int run_alone(struct hipio_access *access, bool *begun)
{
    struct hipio_driven *driven = access->driven;

    if (!driven->fd->is_open)
        open_deferred(access);
    *begun = driven->beginning && !driven->fd->atomicity;
    if (!*begun)
        return hipio_access_run(access);
    hipio_access_advance(access, access->bytes);
    hipio_begun_start(driven->begun, access);
    return MPI_SUCCESS;
}

/* Through aggregators, if that is of use. */
static int run_exchange(struct hipio_access *access, const struct facts *all, bool *begun)
{
    const struct hipio_exchange_terms terms = {-all->room, all->align, all->least, all->renew};
    enum hipio_exchange_verdict verdict;
    int code = hipio_exchange_survey(access, &terms, all->exchange > 1, &verdict);

    if (verdict == HIPIO_EXCHANGE_POSSIBLE)
        return hipio_exchange_move(access);
    /* This rank alone does not know what the others do. If they have begun, the end will tell them,
     * and if they exchange, they hear the alarm and wait there, too. */
    if (code != MPI_SUCCESS && access->driven->beginning &&
        hipio_exchange_is_broken(access->driven)) {
        hipio_begun_fail(access->driven->begun, code);
        *begun = true;
        return MPI_SUCCESS;
    }
    return verdict == HIPIO_EXCHANGE_NEEDLESS ? run_alone(access, begun) : code;
}

/* What all ranks do, decided from what all ranks know. *begun: the end is still to come, on all
 * alike. */
static int run(struct hipio_access *access, const struct facts *all, bool *begun)
{
    bool past_end = access->call.op == HIPIO_READ && all->size >= 0 && all->end > all->size;
    int code;

    if (!all->ours && !past_end)
        return run_lower(access);
    if (all->independent)
        code = run_alone(access, begun);
    else if (all->staged && !all->unaligned)
        code = run_staged(access, all);
    else if (all->exchange)
        code = run_exchange(access, all, begun);
    else
        code = run_alone(access, begun);
    if (code == MPI_SUCCESS && !*begun)
        hipio_access_advance(access, access->request.done);
    return code;
}

/* The ranks' agreement, the work, and the agreement on how it went. ROMIO's lock is not held. */
static int move_together(struct hipio_access *access, int own, struct facts *all, bool *begun)
{
    struct hipio_driven *driven = access->driven;
    int rc = hipio_agree_max(driven->fd->comm, (long long *)all, FACTS);

    if (own != MPI_SUCCESS)
        return own;
    if (rc != MPI_SUCCESS)
        return rc;
    if (all->error != MPI_SUCCESS)
        return hipio_mpierr_code(MPI_ERR_OTHER,
                                 "collective access: another rank's arguments or buffer were "
                                 "refused, so nothing was moved; its own error says why");
    rc = run(access, all, begun);
    return *begun ? rc
                  : hipio_agree_end(driven->fd->comm, rc, driven->fd->filename,
                                    hipio_exchange_attend, driven);
}

void hipio_collective_move(hipio_romio_fd fd, const struct hipio_call *call, MPI_Status *status,
                           int *error)
{
    struct hipio_driven *driven = hipio_driver_find(fd);
    struct hipio_access access;
    struct facts all;
    long long pointer = fd->fp_ind;
    bool begun = false;
    int own = prepare(driven, call, &access, &all);

    hipio_host_let_go();
    *error = move_together(&access, own, &all, &begun);
    hipio_host_take_back();
    /* Where some rank failed, all stay where they were, so that they can try again together. */
    if (*error != MPI_SUCCESS)
        fd->fp_ind = pointer;
    else if (!begun)
        hipio_mpierr_set_bytes(status, access.request.done);
    if (driven->beginning && !begun) {
        hipio_begun_destroy(driven->begun);
        driven->begun = NULL;
    }
    hipio_view_touch(driven);
    hipio_access_release(&access);
}
