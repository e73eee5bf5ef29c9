/* SPDX-License-Identifier: MIT */
/* The CUDA face: what differs from HIP. The core beneath is tested through HIP. */
#include "../../hipsim/cuda_api.h"
#include "../../hipsim/cufile_api.h"
#include "../../hipsim/hipsim_kernel.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 10000, BUSY = 600 };

/* The functions under test, looked up by their exact names. */
static struct {
#define F(name) __typeof__(name) *name;
#include "cuda_functions.def"
#undef F
    long long (*counter)(const char *name);
    void *library;
} cuda;

static void equal(int line, const char *what, long long is, long long want)
{
    if (is == want)
        return;
    fprintf(stderr, "%s:%d: %s is %lld, should be %lld\n", __FILE__, line, what, is, want);
    _exit(1);
}
#define EQUAL(is, want) equal(__LINE__, #is, (long long)(is), (long long)(want))
#define OK(call) EQUAL(call, 0)

static void load(void)
{
    cuda.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda.library) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(1);
    }
#define F(name)                                                                                    \
    *(void **)&cuda.name = dlsym(cuda.library, #name);                                             \
    EQUAL(cuda.name != NULL, 1);
#include "cuda_functions.def"
#undef F
    *(void **)&cuda.counter = dlsym(cuda.library, "hipsim_counter");
    EQUAL(cuda.counter != NULL, 1);
}

static void *context(int device)
{
    void *made;

    OK(cuda.cuDevicePrimaryCtxRetain(&made, device));
    return made;
}

static void begin(void)
{
    OK(cuda.cuInit(0));
    OK(cuda.cuCtxPushCurrent_v2(context(0)));
}

static cuda_pointer device_alloc(size_t bytes)
{
    cuda_pointer pointer;

    OK(cuda.cuMemAlloc_v2(&pointer, bytes));
    return pointer;
}

/* Before cuInit nothing is known; without a context nothing can be done. */
static void contexts(void)
{
    unsigned type = 9, flags;
    int attribute = 2, active, device = -1;
    void *values[] = {&type}, *current = &type, *first, *second;
    cuda_pointer pointer;

    EQUAL(cuda.cuPointerGetAttributes(1, &attribute, values, (uintptr_t)&type), 3);
    OK(cuda.cuInit(0));
    OK(cuda.cuPointerGetAttributes(1, &attribute, values, (uintptr_t)&type));
    EQUAL(type, 0);
    EQUAL(cuda.cuMemAlloc_v2(&pointer, 1), 201);
    EQUAL(cuda.cuCtxGetDevice(&device), 201);
    OK(cuda.cuCtxGetCurrent(&current));
    EQUAL(current == NULL, 1);
    EQUAL(cuda.cuCtxPopCurrent_v2(&current), 201);
    OK(cuda.cuDevicePrimaryCtxGetState(0, &flags, &active));
    EQUAL(active, 0);
    EQUAL(cuda.counter("contexts"), 0);
    first = context(0);
    second = context(1);
    OK(cuda.cuDevicePrimaryCtxGetState(1, &flags, &active));
    EQUAL(active, 1);
    OK(cuda.cuCtxPushCurrent_v2(first));
    OK(cuda.cuCtxPushCurrent_v2(second));
    OK(cuda.cuCtxGetDevice(&device));
    EQUAL(device, 1);
    OK(cuda.cuCtxPopCurrent_v2(&current));
    EQUAL(current == second, 1);
    OK(cuda.cuCtxGetDevice(&device));
    EQUAL(device, 0);
    OK(cuda.cuCtxSetCurrent(second));
    OK(cuda.cuCtxGetDevice(&device));
    EQUAL(device, 1);
    OK(cuda.cuCtxSetCurrent(NULL));
    OK(cuda.cuCtxGetCurrent(&current));
    EQUAL(current == NULL, 1);
    OK(cuda.cuDevicePrimaryCtxRelease_v2(1));
    EQUAL(cuda.cuCtxPushCurrent_v2(second), 201);
    EQUAL(cuda.cuDevicePrimaryCtxRelease_v2(1), 201);
    EQUAL(cuda.cuDevicePrimaryCtxRetain(&first, 2), 101);
}

struct seen {
    uint64_t type, managed, ordinal, context;
};

static struct seen classify(cuda_pointer pointer)
{
    struct seen seen = {0, 0, 0, 0};
    int attributes[] = {2, 8, 9, 1};
    void *values[] = {&seen.type, &seen.managed, &seen.ordinal, &seen.context};

    OK(cuda.cuPointerGetAttributes(4, attributes, values, pointer));
    return seen;
}

static void classes(void)
{
    cuda_pointer device, managed, pooled, base;
    void *pinned, *stream;
    unsigned type;
    size_t bytes;
    int local;

    begin();
    device = device_alloc(SIZE);
    EQUAL(classify(device + SIZE - 1).type, 2);
    EQUAL(classify(device + SIZE).type, 0);
    EQUAL((int)classify(device + SIZE).ordinal, -2);
    EQUAL(classify(device).context != 0, 1);
    OK(cuda.cuMemHostAlloc(&pinned, SIZE, 1));
    EQUAL(classify((uintptr_t)pinned + 5).type, 1);
    OK(cuda.cuMemAllocManaged(&managed, SIZE, 1));
    EQUAL(classify(managed).type, 2);
    EQUAL(classify(managed).managed, 1);
    *(char *)(uintptr_t)managed = 1;
    OK(cuda.cuStreamCreate(&stream, 1));
    OK(cuda.cuMemAllocAsync(&pooled, SIZE, stream));
    EQUAL(classify(pooled).type, 2);
    EQUAL(classify(pooled).context, 0);
    EQUAL(cuda.cuPointerGetAttribute(&type, 2, (uintptr_t)&local), 1);
    OK(cuda.cuPointerGetAttribute(&type, 2, device));
    EQUAL(type, 2);
    OK(cuda.cuMemGetAddressRange_v2(&base, &bytes, device + 9));
    EQUAL(base, device);
    EQUAL(bytes, SIZE);
    EQUAL(cuda.cuMemGetAddressRange_v2(&base, &bytes, (uintptr_t)&local), 500);
    EQUAL(write(1, (void *)(uintptr_t)device, 1), -1);
    EQUAL(errno, EFAULT);
    EQUAL(cuda.cuMemFree_v2(0), 1);
    EQUAL(cuda.cuMemFree_v2((uintptr_t)pinned), 1);
    OK(cuda.cuMemFreeAsync(pooled, stream));
    OK(cuda.cuCtxSynchronize());
    EQUAL(classify(pooled).type, 0);
    OK(cuda.cuMemFree_v2(managed));
    OK(cuda.cuMemFreeHost(pinned));
    OK(cuda.cuMemFree_v2(device));
    OK(cuda.cuStreamDestroy_v2(stream));
}

static void copies(void)
{
    enum { ROWS = 6, WIDTH = 40, PITCH = 100 };
    char host[ROWS * PITCH], back[ROWS * WIDTH] = {0};
    struct cuda_copy_2d rows = {.from_type = 2,
                                .from_pitch = PITCH,
                                .to_type = 1,
                                .to_host = back,
                                .width = WIDTH,
                                .height = ROWS};
    cuda_pointer device, other;
    void *stream;

    begin();
    device = device_alloc(sizeof(host));
    other = device_alloc(sizeof(host));
    OK(cuda.cuStreamCreate(&stream, 1));
    for (size_t i = 0; i < sizeof(host); i++)
        host[i] = (char)(i * 3);
    OK(cuda.cuMemcpyHtoDAsync_v2(device, host, sizeof(host), stream));
    OK(cuda.cuMemcpyDtoDAsync_v2(other, device, sizeof(host), stream));
    rows.from_device = other;
    rows.from_x = 7;
    OK(cuda.cuMemcpy2DAsync_v2(&rows, stream));
    OK(cuda.cuStreamSynchronize(stream));
    for (int i = 0; i < ROWS; i++)
        EQUAL(memcmp(back + i * WIDTH, host + i * PITCH + 7, WIDTH), 0);
    /* The stated direction counts here. */
    EQUAL(cuda.cuMemcpyDtoHAsync_v2(back, (uintptr_t)host, 4, stream), 1);
    EQUAL(cuda.cuMemcpyHtoDAsync_v2((uintptr_t)back, host, 4, stream), 1);
    EQUAL(cuda.cuMemcpyHtoDAsync_v2(device, (void *)(uintptr_t)other, 4, stream), 1);
    OK(cuda.cuMemcpyAsync((uintptr_t)back, device, 4, stream));
    OK(cuda.cuMemsetD8Async(device, 9, 4, stream));
    OK(cuda.cuStreamSynchronize(stream));
    OK(cuda.cuMemcpyDtoH_v2(back, device, 4));
    EQUAL(back[3], 9);
    EQUAL(cuda.cuMemcpyDtoH_v2(back, device + sizeof(host) - 3, 4), 1);
    OK(cuda.cuStreamDestroy_v2(stream));
    EQUAL(cuda.cuStreamSynchronize(stream), 400);
}

static void set_one(void *data)
{
    *(int *)data = 1;
}

static void double_it(void **params, const struct hipsim_grid *grid,
                      const struct hipsim_memory *memory)
{
    int *value = memory->translate(memory, *(void **)params[0], sizeof(*value));

    (void)grid;
    if (value)
        *value *= 2;
}

static void stream_work(void)
{
    static const size_t sizes[] = {sizeof(void *)};
    static const struct hipsim_kernel kernel = {"double_it", double_it, 1, sizes};
    static const struct hipsim_image image = {{'H', 'I', 'P', 'S', 'I', 'M', 'K', '1'}, 1, &kernel};
    void *stream, *event, *module, *function, *pinned, *params[] = {&pinned};
    int ran = 0;
    uint64_t *word;

    begin();
    OK(cuda.cuStreamCreate(&stream, 1));
    OK(cuda.cuEventCreate(&event, 2));
    OK(cuda.cuMemHostAlloc(&pinned, 64, 0));
    word = (uint64_t *)pinned + 1;
    *word = 0;
    *(int *)pinned = 21;
    EQUAL(cuda.cuModuleLoadData(&module, ".version 6.0\n.target sm_50"), 209);
    OK(cuda.cuModuleLoadData(&module, &image));
    OK(cuda.cuModuleGetFunction(&function, module, "double_it"));
    OK(cuda.cuStreamWaitValue64_v2(stream, (uintptr_t)word, 5, 1));
    OK(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    OK(cuda.cuLaunchHostFunc(stream, set_one, &ran));
    OK(cuda.cuEventRecord(event, stream));
    EQUAL(cuda.cuEventQuery(event), BUSY);
    __atomic_store_n(word, 5, __ATOMIC_RELEASE);
    OK(cuda.cuEventSynchronize(event));
    EQUAL(ran, 1);
    EQUAL(*(int *)pinned, 42);
    OK(cuda.cuModuleUnload(module));
    OK(cuda.cuEventDestroy_v2(event));
    OK(cuda.cuStreamDestroy_v2(stream));
}

static void call_old(void)
{
    int (*old)(void) = NULL;

    *(void **)&old = dlsym(cuda.library, "cuMemAlloc");
    if (old)
        old();
}

/* A name without _v2 is found, as in the real library, and is not what anyone wants. */
static void old_names(void)
{
    const char *name = NULL, *text = NULL;
    void *function = NULL;
    int status;
    pid_t pid = fork();

    if (!pid) {
        struct rlimit none = {0, 0};

        setrlimit(RLIMIT_CORE, &none);
        call_old();
        _exit(0);
    }
    EQUAL(waitpid(pid, &status, 0), pid);
    EQUAL(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, 1);
    begin();
    OK(cuda.cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
    EQUAL(function == *(void **)&cuda.cuMemAlloc_v2, 1);
    EQUAL(cuda.cuGetProcAddress_v2("cuNothing", &function, 12000, 0, &status), 500);
    OK(cuda.cuGetErrorName(700, &name));
    EQUAL(strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS"), 0);
    OK(cuda.cuGetErrorString(700, &text));
    EQUAL(cuda.cuGetErrorName(4711, &name), 1);
    OK(cuda.cuDriverGetVersion(&status));
    EQUAL(status, 13000);
    OK(cuda.cuDeviceGetAttribute(&status, 122, 0));
    EQUAL(status, 1);
}

/* HIPSIM_FAIL=cuMemcpyHtoDAsync_v2:2=late700 */
static void faults(void)
{
    cuda_pointer device;
    char host[16] = {0};
    void *stream;
    int ran = 0;

    begin();
    device = device_alloc(sizeof(host));
    OK(cuda.cuStreamCreate(&stream, 1));
    OK(cuda.cuMemcpyHtoDAsync_v2(device, host, sizeof(host), stream));
    OK(cuda.cuStreamSynchronize(stream));
    OK(cuda.cuMemcpyHtoDAsync_v2(device, host, sizeof(host), stream));
    cuda.cuLaunchHostFunc(stream, set_one, &ran);
    EQUAL(cuda.cuStreamSynchronize(stream), 700);
    EQUAL(ran, 0);
    EQUAL(cuda.cuMemFree_v2(device), 700);
    EQUAL(cuda.cuStreamQuery(stream), 700);
}

/* The cuFile functions, looked up like the driver's. */
static struct {
    __typeof__(cuFileDriverOpen) *open;
    __typeof__(cuFileHandleRegister) *add;
    __typeof__(cuFileHandleDeregister) *drop;
    __typeof__(cuFileBufRegister) *pin;
    __typeof__(cuFileBufDeregister) *unpin;
    __typeof__(cuFileRead) *read;
    __typeof__(cuFileWrite) *write;
} cufile;

static void load_cufile(void)
{
    void *library = dlopen("libcufile.so.0", RTLD_NOW | RTLD_LOCAL);

    EQUAL(library != NULL, 1);
    *(void **)&cufile.open = dlsym(library, "cuFileDriverOpen");
    *(void **)&cufile.add = dlsym(library, "cuFileHandleRegister");
    *(void **)&cufile.drop = dlsym(library, "cuFileHandleDeregister");
    *(void **)&cufile.pin = dlsym(library, "cuFileBufRegister");
    *(void **)&cufile.unpin = dlsym(library, "cuFileBufDeregister");
    *(void **)&cufile.read = dlsym(library, "cuFileRead");
    *(void **)&cufile.write = dlsym(library, "cuFileWrite");
    EQUAL(cufile.open && cufile.add && cufile.drop && cufile.pin && cufile.unpin && cufile.read &&
              cufile.write,
          1);
}

/* cuFileRead:2=errnoEIO/4096 :3=short/4096 :4=5008, cuFileHandleRegister:3=5027 */
static void cufile_rules(void)
{
    char path[] = "hipsim-test-XXXXXX", host[SIZE], back[SIZE];
    struct cufile_descriptor descriptor = {.type = 1};
    void *handle, *base, *other = &descriptor;

    load_cufile();
    EQUAL(cufile.open().code, 5011);
    begin();
    OK(cufile.open().code);
    descriptor.handle.fd = mkstemp(path);
    unlink(path);
    OK(cufile.add(&handle, &descriptor).code);
    EQUAL(cufile.add(&other, &descriptor).code, 5028);
    EQUAL(cufile.add(&other, &descriptor).code, 5027);
    base = (void *)(uintptr_t)device_alloc(SIZE);
    memset(host, 7, sizeof(host));
    OK(cuda.cuMemcpyHtoD_v2((uintptr_t)base, host, SIZE));
    OK(cuda.cuStreamSynchronize(NULL));
    EQUAL(cufile.write(handle, base, SIZE - 1, 100, 1), SIZE - 1);
    EQUAL(cufile.read(handle, base, SIZE, 100 + SIZE / 2, 0), SIZE - 1 - SIZE / 2);
    errno = 0;
    EQUAL(cufile.read(handle, base, SIZE, 0, 0), -1);
    EQUAL(errno, EIO);
    EQUAL(cufile.read(handle, base, SIZE, 0, 0), 4096);
    EQUAL(cufile.read(handle, base, SIZE, 0, 0), -5008);
    OK(cuda.cuMemcpyDtoH_v2(back, (uintptr_t)base, SIZE));
    EQUAL(back[99] == 0 && back[100] == 7, 1);
    EQUAL(cufile.read(other, base, SIZE, 0, 0), -5027);
    EQUAL(cufile.read(handle, base, SIZE, 0, 1), -5014);
    EQUAL(cufile.read(handle, base, SIZE, -1, 0), -5022);
    OK(cufile.pin(base, 4096, 0).code);
    EQUAL(cufile.pin(base, 4096, 0).code, 5023);
    EQUAL(cufile.read(handle, base, 4096, 0, 1), -5014);
    OK(cufile.unpin(base).code);
    EQUAL(cufile.unpin(base).code, 5024);
    cufile.drop(handle);
    EQUAL(cufile.read(handle, base, 1, 0, 0), -5027);
    EQUAL(cuda.counter("copies_d2h"), 1);
}

/* The range query tells one piece, without a context; a copy goes over the seam, and not past it.
 */
static void pieces(void)
{
    enum { PIECE = 2 << 20 };
    const struct cuda_allocation what = {.type = 1, .location = {1, 0}};
    const struct cuda_access access = {{1, 0}, 3};
    int attribute = 1;
    void *context_of = &attribute, *values[] = {&context_of};
    cuda_pointer base, start;
    char host[64] = "", back[64];
    uint64_t memory;
    size_t bytes;

    begin();
    OK(cuda.cuMemAddressReserve(&base, 3 * PIECE, 0, 0, 0));
    for (unsigned i = 0; i < 2; i++) {
        OK(cuda.cuMemCreate(&memory, PIECE, &what, 0));
        OK(cuda.cuMemMap(base + i * PIECE, PIECE, 0, memory, 0));
        OK(cuda.cuMemRelease(memory));
    }
    OK(cuda.cuMemSetAccess(base, 2 * PIECE, &access, 1));
    OK(cuda.cuPointerGetAttributes(1, &attribute, values, base));
    EQUAL(context_of == NULL, 1);
    OK(cuda.cuMemGetAddressRange_v2(&start, &bytes, base + PIECE + 1));
    EQUAL(start, base + PIECE);
    EQUAL(bytes, PIECE);
    memset(host, 7, sizeof host);
    OK(cuda.cuMemcpyHtoD_v2(base + PIECE - 32, host, sizeof host));
    OK(cuda.cuMemcpyDtoH_v2(back, base + PIECE - 32, sizeof back));
    EQUAL(memcmp(host, back, sizeof host), 0);
    EQUAL(cuda.cuMemcpyDtoH_v2(back, base + 2 * PIECE - 32, sizeof back), 1);
    OK(cuda.cuMemUnmap(base, 2 * PIECE));
    OK(cuda.cuMemAddressFree(base, 3 * PIECE));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"contexts", contexts},       {"classes", classes},     {"copies", copies},
                 {"stream_work", stream_work}, {"old_names", old_names}, {"faults", faults},
                 {"cufile", cufile_rules},     {"pieces", pieces}};

    load();
    for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
        if (!strcmp(cases[i].name, argv[1])) {
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "no such case\n");
    return 2;
}
