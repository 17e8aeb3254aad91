// The driver's interface (libcuda.so.1) without a GPU: memory is this process's, kernels are what device.py
// compiles, run by emulation.cpp. KernelArtefact with NVIDIA's own cuda.h, so that every signature and structure is that
// of the driver.
//
// Streams are lists of work. A *lazy* one does nothing before somebody waits for it; others do all they can at
// once. So a missing wait between two streams shows in what is computed: the tests make each of them the lazy
// one. Kernel code is "EMULATED pointers values barriers path".

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <sys/mman.h>
#include <vector>

using Entry = void (*)(void **, const int64_t *);
using Launch = void (*)(Entry, void **, const int64_t *, const unsigned *, const unsigned *, int, int);

struct CUstream_st;

struct Work {
  std::function<void()> run;
  CUstream_st *other = nullptr;  // that has to have done `count` pieces of work before
  uint64_t count = 0;
};

struct CUstream_st {
  std::deque<Work> work;
  uint64_t given = 0, done = 0;
  bool lazy = false;
};

struct CUevent_st {
  CUstream_st *stream = nullptr;
  uint64_t count = 0;
  double time = 0;
};

struct CUmod_st {
  void *library;
  Entry entry;
  unsigned pointers, values;
  int barriers;
  std::string name;
};

struct CUfunc_st {
  CUmod_st *module;
  int shared = 0;  // bytes that a launch has to ask for
};

struct Call {
  CUfunc_st *function;
  unsigned grid[3], block[3];
  std::vector<void *> pointers;
  std::vector<int64_t> values;
};

struct CUgraphNode_st {
  Call call;
  CUgraphNode_st *before;
};

struct CUgraph_st {
  std::vector<CUgraphNode_st *> nodes;
};

struct CUgraphExec_st {
  std::map<CUgraphNode_st *, Call> calls;
  std::vector<CUgraphNode_st *> order;
  std::set<CUgraphNode_st *> disabled;
};

namespace {

constexpr size_t PAGE = 4096, ALIGNMENT = 256;
constexpr unsigned MOST[3] = {0x7fffffffu, 65535, 65535}, BLOCK[3] = {1024, 1024, 64};
int devices = 1, lazy_stream = -1, initialized = 0;
size_t limit = (size_t)1 << 40, used = 0;
CUresult sticky = CUDA_SUCCESS, poison = CUDA_SUCCESS, refusal = CUDA_SUCCESS;
std::vector<CUstream_st *> streams;
std::map<CUdeviceptr, size_t> allocations;
bool retained = false;
int context;
thread_local CUcontext current = nullptr;

CUresult enter() {
  if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
  if (sticky != CUDA_SUCCESS) return sticky;
  return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

#define ENTER                                      \
  if (CUresult error = enter(); error != CUDA_SUCCESS) return error

// Does a stream's work up to piece number `count`. `forced`: also what it waits for.
void pump(CUstream_st *s, bool forced, uint64_t count = UINT64_MAX) {
  while (!s->work.empty() && s->done < count) {
    Work &w = s->work.front();
    if (w.other && w.other->done < w.count) {
      if (!forced) return;
      pump(w.other, true, w.count);
    }
    if (w.run && sticky == CUDA_SUCCESS) w.run();
    s->work.pop_front();
    s->done++;
  }
}

void give(CUstream_st *s, Work w) {
  s->work.push_back(std::move(w));
  s->given++;
  if (!s->lazy) pump(s, false);
}

void finish() {
  for (auto s : streams) pump(s, true);
}

void execute(const Call &call) {
  if (poison != CUDA_SUCCESS) {
    sticky = poison;
    poison = CUDA_SUCCESS;
    return;
  }
  static Launch launch = (Launch)dlsym(RTLD_DEFAULT, "emulated_launch");
  CUmod_st *m = call.function->module;
  std::vector<void *> pointers = call.pointers;
  pointers.push_back(nullptr);
  std::vector<int64_t> values = call.values;
  values.push_back(0);
  launch(m->entry, pointers.data(), values.data(), call.grid, call.block, m->barriers, 0);
}

constexpr size_t up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// A buffer ends, but for its alignment, before a page that nobody may touch: a kernel that goes further ends the process.
CUdeviceptr map(size_t nbytes) {
  size_t size = up(up(nbytes, ALIGNMENT), PAGE);
  char *pages = (char *)mmap(nullptr, size + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return 0;
  mprotect(pages + size, PAGE, PROT_NONE);
  return (CUdeviceptr)(pages + size - up(nbytes, ALIGNMENT));
}

void unmap(CUdeviceptr p, size_t nbytes) {
  munmap((void *)(p / PAGE * PAGE), up(up(nbytes, ALIGNMENT), PAGE) + PAGE);
}

CUresult call_of(CUfunction f, const unsigned *grid, const unsigned *block, void **parameters, Call &out) {
  out.function = f;
  if ((size_t)block[0] * block[1] * block[2] > 1024) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 3; i++) {
    if (!grid[i] || grid[i] > MOST[i] || !block[i] || block[i] > BLOCK[i]) return CUDA_ERROR_INVALID_VALUE;
    out.grid[i] = grid[i];
    out.block[i] = block[i];
  }
  for (unsigned i = 0; i < f->module->pointers; i++) {
    CUdeviceptr p = *(CUdeviceptr *)parameters[i];
    auto found = allocations.upper_bound(p);
    if (found == allocations.begin() || p >= std::prev(found)->first + std::prev(found)->second)
      return CUDA_ERROR_INVALID_VALUE;  // stricter than a driver, which would only fault
    out.pointers.push_back((void *)p);
  }
  for (unsigned i = 0; i < f->module->values; i++)
    out.values.push_back(*(int *)parameters[f->module->pointers + i]);
  return CUDA_SUCCESS;
}

CUresult call_of(const CUDA_KERNEL_NODE_PARAMS *p, Call &out) {
  unsigned grid[3] = {p->gridDimX, p->gridDimY, p->gridDimZ}, block[3] = {p->blockDimX, p->blockDimY, p->blockDimZ};
  if ((int)p->sharedMemBytes != p->func->shared) return CUDA_ERROR_INVALID_VALUE;
  return call_of(p->func, grid, block, p->kernelParams, out);
}

}  // namespace

extern "C" {

// --- what tests ask for

void fake_reset() {
  devices = 1;
  lazy_stream = -1;
  limit = (size_t)1 << 40;
  sticky = poison = refusal = CUDA_SUCCESS;
}
void fake_devices(int n) { devices = n; }
void fake_lazy(int stream) {
  lazy_stream = stream;
  for (size_t i = 0; i < streams.size(); i++) streams[i]->lazy = (int)(i % 2) == stream;
}
void fake_limit(size_t nbytes) { limit = nbytes; }
size_t fake_used() { return used; }
void fake_poison(int error) { poison = (CUresult)error; }    // the next kernel that runs fails so
void fake_refuse(int error) { refusal = (CUresult)error; }  // the next launch is refused so

// --- the driver

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **address, int, cuuint64_t,
                                  CUdriverProcAddressQueryResult *status) {
  *address = nullptr;
  Dl_info here;
  dladdr((void *)&fake_reset, &here);
  static void *self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  for (const char *suffix : {"_v3", "_v2", ""})
    if (!*address) *address = dlsym(self, (std::string(symbol) + suffix).c_str());
  if (status)
    *status = *address ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// NVRTC asks a driver that is loaded for tables of its own.
CUresult CUDAAPI cuGetExportTable(const void **table, const CUuuid *) {
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuInit(unsigned) {
  if (!devices) return CUDA_ERROR_NO_DEVICE;
  initialized = 1;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDriverGetVersion(int *version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorName(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorString(CUresult, const char **text) {
  *text = "emulated";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetCount(int *count) {
  *count = devices;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return ordinal < devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult CUDAAPI cuDeviceGetName(char *name, int length, CUdevice) {
  snprintf(name, length, "emulated GPU");
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceTotalMem(size_t *nbytes, CUdevice) {
  *nbytes = limit;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  static const std::map<int, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 227 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, BLOCK[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, BLOCK[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, BLOCK[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, MOST[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, MOST[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, MOST[2]},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
  };
  auto found = values.find(attribute);
  if (found == values.end()) return CUDA_ERROR_INVALID_VALUE;
  *value = found->second;
  return CUDA_SUCCESS;
}

// --- contexts

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice, unsigned *flags, int *active) {
  *flags = 0;
  *active = retained;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice) {
  *out = (CUcontext)&context;
  retained = true;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice) {
  for (auto s : streams) s->work.clear();
  streams.clear();  // what is in it is left behind: nobody may use it
  for (auto &a : allocations) unmap(a.first, a.second);
  allocations.clear();
  used = 0;
  sticky = poison = CUDA_SUCCESS;
  retained = false;
  current = nullptr;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext c) {
  current = c;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSynchronize() {
  ENTER;
  finish();
  return sticky;
}

// --- memory

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *out, size_t nbytes) {
  ENTER;
  if (!nbytes) return CUDA_ERROR_INVALID_VALUE;
  if (used + nbytes > limit) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = map(nbytes);
  if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
  memset((void *)*out, 0xff, nbytes < 1 << 20 ? nbytes : 1 << 20);
  allocations[*out] = nbytes;
  used += nbytes;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFree(CUdeviceptr p) {
  ENTER;
  auto found = allocations.find(p);
  if (found == allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  finish();
  used -= found->second;
  unmap(p, found->second);
  allocations.erase(found);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemHostAlloc(void **out, size_t nbytes, unsigned) {
  ENTER;
  *out = malloc(nbytes);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFreeHost(void *p) {
  free(p);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t nbytes, CUstream stream) {
  ENTER;
  give(stream, {[=] { memcpy((void *)to, from, nbytes); }});
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t nbytes, CUstream stream) {
  ENTER;
  give(stream, {[=] { memcpy(to, (void *)from, nbytes); }});
  return CUDA_SUCCESS;
}

// --- streams and events

CUresult CUDAAPI cuStreamCreate(CUstream *out, unsigned) {
  ENTER;
  *out = new CUstream_st;
  (*out)->lazy = lazy_stream == (int)(streams.size() % 2);
  streams.push_back(*out);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamDestroy(CUstream s) {
  pump(s, true);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned) {
  ENTER;
  *out = new CUevent_st;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventDestroy(CUevent) { return CUDA_SUCCESS; }  // work that is left may still set its time
CUresult CUDAAPI cuEventRecord(CUevent e, CUstream s) {
  ENTER;
  e->stream = s;
  e->count = s->given + 1;
  give(s, {[=] {
         e->time = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
                       .count();
       }});
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
  ENTER;
  if (e->stream) give(s, {nullptr, e->stream, e->count});
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventSynchronize(CUevent e) {
  ENTER;
  if (e->stream) pump(e->stream, true, e->count);
  return sticky;
}
CUresult CUDAAPI cuEventElapsedTime(float *out, CUevent start, CUevent stop) {
  ENTER;
  for (auto e : {start, stop})
    if (!e->stream || e->stream->done < e->count) return CUDA_ERROR_NOT_READY;
  *out = (float)(stop->time - start->time);
  return CUDA_SUCCESS;
}

// --- kernels

CUresult CUDAAPI cuModuleLoadData(CUmodule *out, const void *image) {
  ENTER;
  auto module = new CUmod_st;
  char path[4096];
  if (sscanf((const char *)image, "EMULATED %u %u %d %4095s", &module->pointers, &module->values,
             &module->barriers, path) != 4)
    return CUDA_ERROR_INVALID_IMAGE;
  module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module->library) return CUDA_ERROR_INVALID_IMAGE;
  module->entry = (Entry)dlsym(module->library, "emulated_entry");
  *out = module;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleUnload(CUmodule) {
  ENTER;
  finish();
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  ENTER;
  if (!dlsym(module->library, name)) return CUDA_ERROR_NOT_FOUND;
  *out = new CUfunc_st{module};
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
  ENTER;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > 227 << 10) return CUDA_ERROR_INVALID_VALUE;
  f->shared = value;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
  ENTER;
  if (refusal != CUDA_SUCCESS) {
    CUresult error = refusal;
    refusal = CUDA_SUCCESS;
    return error;
  }
  unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  Call call;
  CUresult error = extra ? CUDA_ERROR_INVALID_VALUE : call_of(f, grid, block, parameters, call);
  if (error == CUDA_SUCCESS && (int)shared != f->shared) error = CUDA_ERROR_INVALID_VALUE;
  if (error == CUDA_SUCCESS) give(stream, {[=] { execute(call); }});
  return error;
}

// --- graphs

CUresult CUDAAPI cuGraphCreate(CUgraph *out, unsigned) {
  ENTER;
  *out = new CUgraph_st;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS *parameters) {
  ENTER;
  auto node = new CUgraphNode_st;
  CUresult error = call_of(parameters, node->call);
  if (error != CUDA_SUCCESS) return error;
  node->before = count ? before[0] : nullptr;
  graph->nodes.push_back(node);
  *out = node;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *out, CUgraph graph, unsigned long long) {
  ENTER;
  auto made = new CUgraphExec_st;
  for (size_t i = 0; i < graph->nodes.size(); i++) {
    auto node = graph->nodes[i];
    if (node->before != (i ? graph->nodes[i - 1] : nullptr)) return CUDA_ERROR_INVALID_VALUE;  // not in order
    made->order.push_back(node);
    made->calls[node] = node->call;
  }
  *out = made;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec graph, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS *parameters) {
  ENTER;
  Call call;
  CUresult error = call_of(parameters, call);
  if (error == CUDA_SUCCESS) graph->calls[node] = call;
  return error;
}
CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec graph, CUgraphNode node, unsigned enabled) {
  ENTER;
  enabled ? (void)graph->disabled.erase(node) : (void)graph->disabled.insert(node);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  ENTER;
  std::vector<Call> calls;  // as they are now: a later update does not concern this launch
  for (auto node : graph->order)
    if (!graph->disabled.count(node)) calls.push_back(graph->calls[node]);
  give(stream, {[=] {
         for (auto &call : calls)
           if (sticky == CUDA_SUCCESS) execute(call);
       }});
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec graph) {
  delete graph;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  for (auto node : graph->nodes) delete node;
  delete graph;
  return CUDA_SUCCESS;
}
}
