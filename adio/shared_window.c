/* SPDX-License-Identifier: MIT */
/* Shared window: who is beside whom, and the mapping of each other's memory. */
#include "shared_window.h"
#include "engine/log.h"
#include "engine/status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a rank tells its neighbours. The sign is also the first word of the memory: a process of the
 * same number may be another one, where neighbours live in containers of their own. */
struct offer {
    uint64_t rank; /* in the communicator of the file */
    uint64_t bytes;
    uint64_t sign;
    int64_t process, descriptor;
    int64_t refused; /* this rank can't share */
};

struct neighbour {
    int rank;
    uint64_t bytes;
    void *memory; /* NULL: it offers none */
};

struct hipio_shared_window {
    int descriptor; /* of this rank's memory; -1: none */
    void *memory;
    int n; /* neighbours, this rank among them; 0: sharing failed */
    struct neighbour *neighbour;
};

/* The ranks that share with this one, as a communicator. Collective. */
static MPI_Comm beside(MPI_Comm comm, uint64_t group)
{
    MPI_Comm host = MPI_COMM_NULL, part = MPI_COMM_NULL;
    int rank = 0;

    if (PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS)
        return MPI_COMM_NULL;
    if (group == 0 || group > INT32_MAX)
        return host;
    PMPI_Comm_rank(host, &rank);
    if (PMPI_Comm_split(host, rank / (int)group, rank, &part) != MPI_SUCCESS)
        part = MPI_COMM_NULL;
    PMPI_Comm_free(&host);
    return part;
}

/* ---- The memory of this rank ---- */

static int make_memory(uint64_t bytes, uint64_t sign)
{
    int fd = memfd_create("hipio exchange", MFD_CLOEXEC);

    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)bytes) || pwrite(fd, &sign, sizeof sign, 0) != sizeof sign) {
        close(fd);
        return -1;
    }
    return fd;
}

int hipio_shared_window_ensure(const struct hipio_shared_window *window, const void *memory,
                               uint64_t bytes)
{
    int rc;

    if (window->descriptor < 0 || bytes == 0)
        return 0;
    off_t at = (const char *)memory - (const char *)window->memory;
    do
        rc = fallocate(window->descriptor, 0, at, (off_t)bytes);
    while (rc && errno == EINTR);
    return rc ? hipio_status_set(-ENOMEM, "no memory to share with the ranks of this host: %m") : 0;
}

static void make_offer(MPI_Comm comm, uint64_t bytes, struct offer *offer)
{
    int rank = 0;

    PMPI_Comm_rank(comm, &rank);
    *offer = (struct offer){
        .rank = (uint64_t)rank, .bytes = bytes, .process = getpid(), .descriptor = -1};
    if (bytes == 0)
        return;
    if (getrandom(&offer->sign, sizeof offer->sign, GRND_NONBLOCK) != sizeof offer->sign)
        offer->sign = (uint64_t)(uintptr_t)offer ^ (uint64_t)getpid();
    offer->descriptor = make_memory(bytes, offer->sign);
}

/* ---- The memory of others ---- */

static void *map(int fd, const struct offer *offer)
{
    struct stat status;
    void *memory;

    if (fd < 0 || fstat(fd, &status) || (uint64_t)status.st_size != offer->bytes)
        return NULL;
    memory = mmap(NULL, offer->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (*(const uint64_t *)memory == offer->sign)
        return memory;
    munmap(memory, offer->bytes);
    return NULL;
}

static void *reach(const struct offer *offer)
{
    char path[64];
    void *memory;

    if (offer->process == getpid())
        return map((int)offer->descriptor, offer);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)offer->process,
             (long long)offer->descriptor);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    memory = map(fd, offer);
    if (fd >= 0)
        close(fd);
    return memory;
}

static bool reach_all(struct hipio_shared_window *window, const struct offer *offer)
{
    for (int i = 0; i < window->n; i++) {
        window->neighbour[i].rank = (int)offer[i].rank;
        window->neighbour[i].bytes = offer[i].bytes;
        if (offer[i].bytes == 0)
            continue;
        window->neighbour[i].memory = reach(&offer[i]);
        if (!window->neighbour[i].memory)
            return false;
        if (offer[i].process == getpid())
            window->memory = window->neighbour[i].memory;
    }
    return true;
}

static void let_go(struct hipio_shared_window *window)
{
    for (int i = 0; i < window->n; i++) {
        if (window->neighbour[i].memory)
            munmap(window->neighbour[i].memory, window->neighbour[i].bytes);
    }
    free(window->neighbour);
    window->neighbour = NULL;
    window->n = 0;
    if (window->descriptor >= 0)
        close(window->descriptor);
    window->descriptor = -1;
}

/* Collective over `part`. `own` may be NULL; the rank takes part all the same. */
static void share(MPI_Comm part, struct offer *own, struct hipio_shared_window *window)
{
    struct offer *offers;
    int n = 0, failed, any = 1;

    PMPI_Comm_size(part, &n);
    window->descriptor = (int)own->descriptor;
    offers = calloc((size_t)n, sizeof *offers);
    window->neighbour = calloc((size_t)n, sizeof *window->neighbour);
    window->n = window->neighbour ? n : 0;
    failed = !offers || !window->neighbour || own->refused || (own->bytes && own->descriptor < 0);
    if (PMPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, part) == MPI_SUCCESS && !any) {
        failed = PMPI_Allgather(own, sizeof *own, MPI_BYTE, offers, sizeof *own, MPI_BYTE, part) !=
                     MPI_SUCCESS ||
                 !reach_all(window, offers);
        if (PMPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, part) != MPI_SUCCESS)
            any = 1;
    }
    if (any) {
        let_go(window);
        hipio_log(HIPIO_LOG_INFO, "ranks of this host can't share memory; their collectives "
                                  "exchange messages");
    }
    free(offers);
}

struct hipio_shared_window *hipio_shared_window_create(MPI_Comm comm, uint64_t bytes,
                                                       uint64_t group)
{
    struct hipio_shared_window *window = calloc(1, sizeof *window), spare = {.descriptor = -1};
    MPI_Comm part = beside(comm, group);
    struct offer own;

    if (window)
        window->descriptor = -1;
    if (part != MPI_COMM_NULL) {
        make_offer(comm, bytes, &own);
        own.refused = !window;
        share(part, &own, window ? window : &spare);
        let_go(&spare);
        PMPI_Comm_free(&part);
    }
    return window;
}

void hipio_shared_window_destroy(struct hipio_shared_window *window)
{
    if (!window)
        return;
    let_go(window);
    free(window);
}

static const struct neighbour *find(const struct hipio_shared_window *window, int rank)
{
    for (int i = 0; i < window->n; i++) {
        if (window->neighbour[i].rank == rank)
            return &window->neighbour[i];
    }
    return NULL;
}

bool hipio_shared_window_reaches(const struct hipio_shared_window *window, int rank)
{
    return find(window, rank) != NULL;
}

void *hipio_shared_window_of(const struct hipio_shared_window *window, int rank)
{
    const struct neighbour *neighbour = find(window, rank);

    return neighbour ? neighbour->memory : NULL;
}
