/* SPDX-License-Identifier: MIT */
/* Proof: the ROMIO of this process against what we believe of it. */
#include "proof.h"

#include "engine/device/device.h"
#include "opal/threads/mutex.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SLOTS (sizeof(struct hipio_romio_fns) / sizeof(void *))
#define SLOT_NAME (offsetof(struct hipio_romio_fns, fsname) / sizeof(void *))

enum { TABLE_UFS, TABLE_NFS, TABLE_TESTFS, TABLES };

static const char *const table_names[TABLES] = {"ADIO_UFS_operations", "ADIO_NFS_operations",
                                                "ADIO_TESTFS_operations"};

/* The function that each slot of a table must hold, in the order of struct hipio_romio_fns; NULL:
 * an empty slot, or the name's. */
static const char *const slot_names[][SLOTS] = {
    [TABLE_UFS] =
        {"ADIOI_UFS_Open",           "ADIOI_GEN_OpenColl",        "ADIOI_GEN_ReadContig",
         "ADIOI_GEN_WriteContig",    "ADIOI_GEN_ReadStridedColl", "ADIOI_GEN_WriteStridedColl",
         "ADIOI_GEN_SeekIndividual", "ADIOI_GEN_Fcntl",           "ADIOI_GEN_SetInfo",
         "ADIOI_GEN_ReadStrided",    "ADIOI_GEN_WriteStrided",    "ADIOI_GEN_Close",
         "ADIOI_FAKE_IreadContig",   "ADIOI_FAKE_IwriteContig",   "ADIOI_GEN_IODone",
         "ADIOI_GEN_IODone",         "ADIOI_GEN_IOComplete",      "ADIOI_GEN_IOComplete",
         "ADIOI_GEN_IreadStrided",   "ADIOI_GEN_IwriteStrided",   "ADIOI_GEN_Flush",
         "ADIOI_GEN_Resize",         "ADIOI_GEN_Delete",          "ADIOI_GEN_Feature"},
    [TABLE_NFS] =
        {"ADIOI_NFS_Open",           "ADIOI_FAILSAFE_OpenColl",   "ADIOI_NFS_ReadContig",
         "ADIOI_NFS_WriteContig",    "ADIOI_GEN_ReadStridedColl", "ADIOI_GEN_WriteStridedColl",
         "ADIOI_GEN_SeekIndividual", "ADIOI_NFS_Fcntl",           "ADIOI_GEN_SetInfo",
         "ADIOI_NFS_ReadStrided",    "ADIOI_NFS_WriteStrided",    "ADIOI_GEN_Close",
         "ADIOI_FAKE_IreadContig",   "ADIOI_FAKE_IwriteContig",   "ADIOI_NFS_ReadDone",
         "ADIOI_NFS_WriteDone",      "ADIOI_NFS_ReadComplete",    "ADIOI_NFS_WriteComplete",
         "ADIOI_GEN_IreadStrided",   "ADIOI_GEN_IwriteStrided",   "ADIOI_GEN_Flush",
         "ADIOI_NFS_Resize",         "ADIOI_GEN_Delete",          "ADIOI_NFS_Feature"},
};

static struct {
    pthread_mutex_t lock;
    bool done, ok;
    char text[HIPIO_PROOF_TEXT];
    void *library;
    const struct hipio_romio_fns *table[TABLES];
    struct hipio_host_romio functions;
    opal_mutex_t *mutex; /* of ROMIO's module; NULL: not known */
} proof = {.lock = PTHREAD_MUTEX_INITIALIZER};

const struct hipio_host_romio *hipio_host_romio(void)
{
    return &proof.functions;
}

void hipio_host_let_go(void)
{
    if (proof.mutex)
        OPAL_THREAD_UNLOCK(proof.mutex);
}

void hipio_host_take_back(void)
{
    if (proof.mutex)
        OPAL_THREAD_LOCK(proof.mutex);
}

static bool prove_version(const mca_base_component_t *romio)
{
    if (romio->mca_project_major_version == OMPI_MAJOR_VERSION &&
        romio->mca_project_minor_version == OMPI_MINOR_VERSION)
        return true;
    snprintf(proof.text, sizeof proof.text, "%s is of Open MPI %d.%d.%d, hipio was built for %d.%d",
             romio->mca_component_name, romio->mca_project_major_version,
             romio->mca_project_minor_version, romio->mca_project_release_version,
             OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION);
    return false;
}

/* Looks up in the library that holds the component, whatever else in the process has such names. */
static bool open_library(const mca_base_component_t *romio)
{
    Dl_info where;

    if (dladdr(romio, &where) == 0 || !where.dli_fname) {
        snprintf(proof.text, sizeof proof.text, "the library of %s can't be told",
                 romio->mca_component_name);
        return false;
    }
    proof.library = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (!proof.library)
        snprintf(proof.text, sizeof proof.text, "%s: %s", where.dli_fname, dlerror());
    return proof.library != NULL;
}

static bool prove_size(int table)
{
    const struct hipio_romio_fns *fns = dlsym(proof.library, table_names[table]);
    const ElfW(Sym) *symbol = NULL;
    Dl_info where;

    if (!fns) {
        snprintf(proof.text, sizeof proof.text, "ROMIO does not export %s", table_names[table]);
        return false;
    }
    if (!dladdr1(fns, &where, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
        symbol->st_size != sizeof *fns) {
        snprintf(proof.text, sizeof proof.text, "%s has %llu bytes, not %zu", table_names[table],
                 symbol ? (unsigned long long)symbol->st_size : 0, sizeof *fns);
        return false;
    }
    proof.table[table] = fns;
    return true;
}

static bool prove_slots(int table)
{
    void *slot[SLOTS];

    memcpy(slot, proof.table[table], sizeof slot);
    for (size_t i = 0; i < SLOTS; i++) {
        const char *name = slot_names[table][i];
        if (i == SLOT_NAME ? slot[i] != NULL
                           : slot[i] == (name ? dlsym(proof.library, name) : NULL))
            continue;
        snprintf(proof.text, sizeof proof.text, "slot %zu of %s is not %s", i, table_names[table],
                 i == SLOT_NAME ? "a name"
                 : name         ? name
                                : "empty");
        return false;
    }
    return true;
}

/* A function that the driver calls by name. */
static bool find_function(const char *name, void *function)
{
    void *symbol = dlsym(proof.library, name);

    if (!symbol) {
        snprintf(proof.text, sizeof proof.text, "ROMIO does not export %s", name);
        return false;
    }
    memcpy(function, &symbol, sizeof symbol);
    return true;
}

/* Where the lock is not what it should be, it is left alone, and ROMIO's deadlock of two threads
 * stays. */
static void find_mutex(void)
{
    const ElfW(Sym) *symbol = NULL;
    opal_mutex_t *mutex = dlsym(proof.library, "mca_io_romio321_mutex");
    Dl_info where;

    if (mutex && dladdr1(mutex, &where, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
        symbol->st_size == sizeof *mutex)
        proof.mutex = mutex;
}

static bool find_functions(void)
{
    find_mutex();
    return find_function("ADIO_ImmediateOpen", &proof.functions.immediate_open) &&
           find_function("ADIO_Get_shared_fp", &proof.functions.get_shared_pointer);
}

static bool prove_library(const mca_base_component_t *romio)
{
    if (!prove_version(romio) || !open_library(romio))
        return false;
    for (int table = 0; table < TABLES; table++) {
        if (!prove_size(table))
            return false;
    }
    return prove_slots(TABLE_UFS) && prove_slots(TABLE_NFS) && find_functions();
}

bool hipio_proof_library(const mca_base_component_t *romio, const char **why)
{
    pthread_mutex_lock(&proof.lock);
    if (!proof.done) {
        proof.ok = prove_library(romio);
        proof.done = true;
    }
    pthread_mutex_unlock(&proof.lock);
    *why = proof.text;
    return proof.ok;
}

void hipio_proof_close(void)
{
    if (proof.library)
        dlclose(proof.library);
    proof.library = NULL;
    proof.mutex = NULL;
    proof.done = false;
}

static bool differs(char *text, const char *what, long long found, long long expected)
{
    snprintf(text, HIPIO_PROOF_TEXT, "an open file's %s is %lld, not %lld", what, found, expected);
    return false;
}

static bool unreadable(char *text, const char *what)
{
    snprintf(text, HIPIO_PROOF_TEXT, "an open file's %s can't be read", what);
    return false;
}

static bool known_table(const struct hipio_romio_fns *fns)
{
    for (int table = 0; table < TABLES; table++) {
        if (fns == proof.table[table])
            return true;
    }
    return false;
}

/* The members that are plain numbers. */
static bool prove_numbers(hipio_romio_fd fd, int amode, char *text)
{
    const struct {
        const char *name;
        long long found, expected;
    } member[] = {
        {"orig_access_mode", fd->orig_access_mode, amode},
        {"access_mode", fd->access_mode, amode & ~MPI_MODE_EXCL},
        {"is_open", fd->is_open, fd->is_open != 0},
        {"is_agg", fd->is_agg, fd->is_agg != 0},
        {"disp", fd->disp, 0},
        {"etype_size", fd->etype_size, 1},
        {"split_coll_count", fd->split_coll_count, 0},
        {"async_count", fd->async_count, 0},
        {"atomicity", fd->atomicity, 0},
        {"is_external32", fd->is_external32, 0},
    };
    for (size_t i = 0; i < sizeof member / sizeof member[0]; i++) {
        if (member[i].found != member[i].expected)
            return differs(text, member[i].name, member[i].found, member[i].expected);
    }
    return true;
}

/* ROMIO takes "ufs:", or any word of two letters and more before a colon, off the name. */
static bool prove_filename(const char *found, const char *opened, char *text)
{
    const char *colon = strchr(opened, ':');
    const char *bare = colon && colon > opened + 1 ? colon + 1 : opened;

    if (!found || hipio_device_probe(found, 1) != 0)
        return unreadable(text, "filename");
    if (strcmp(found, bare) == 0)
        return true;
    snprintf(text, HIPIO_PROOF_TEXT, "an open file's name is not the one it was opened by");
    return false;
}

static bool prove_hints(const struct hipio_romio_hints *hints, int ranks, char *text)
{
    if (!hints || hipio_device_probe(hints, sizeof *hints) != 0)
        return unreadable(text, "hints");
    if (hints->initialized != 1)
        return differs(text, "hints->initialized", hints->initialized, 1);
    if (hints->cb_nodes < 1 || hints->cb_nodes > ranks)
        return differs(text, "hints->cb_nodes", hints->cb_nodes, ranks);
    if (!hints->ranklist || hipio_device_probe(hints->ranklist, sizeof(int)) != 0)
        return unreadable(text, "hints->ranklist");
    if (hints->ranklist[0] < 0 || hints->ranklist[0] >= ranks)
        return differs(text, "hints->ranklist[0]", hints->ranklist[0], 0);
    return true;
}

static bool prove_handles(hipio_romio_fd fd, MPI_Comm comm, char *text)
{
    int like = MPI_UNEQUAL;

    if (fd->etype != MPI_BYTE || fd->filetype != MPI_BYTE) {
        snprintf(text, HIPIO_PROOF_TEXT, "an open file's first view is not of bytes");
        return false;
    }
    if (!fd->comm || hipio_device_probe(fd->comm, sizeof(void *)) != 0)
        return unreadable(text, "communicator");
    if (PMPI_Comm_compare(fd->comm, comm, &like) != MPI_SUCCESS ||
        (like != MPI_CONGRUENT && like != MPI_IDENT)) {
        snprintf(text, HIPIO_PROOF_TEXT, "an open file's communicator is not the caller's");
        return false;
    }
    return true;
}

bool hipio_proof_file(hipio_romio_fd fd, const struct hipio_proof_open *open,
                      char text[HIPIO_PROOF_TEXT])
{
    int ranks = 0;

    text[0] = '\0';
    if (!fd || hipio_device_probe(fd, sizeof *fd) != 0)
        return unreadable(text, "structure");
    if (fd->cookie != HIPIO_ROMIO_COOKIE)
        return differs(text, "cookie", fd->cookie, HIPIO_ROMIO_COOKIE);
    if (!known_table(fd->fns)) {
        snprintf(text, HIPIO_PROOF_TEXT, "an open file's table is none of ROMIO's");
        return false;
    }
    PMPI_Comm_size(open->comm, &ranks);
    return prove_numbers(fd, open->amode, text) &&
           prove_filename(fd->filename, open->filename, text) &&
           prove_hints(fd->hints, ranks, text) && prove_handles(fd, open->comm, text);
}
