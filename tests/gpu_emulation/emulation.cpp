// Runs kernels for grids of workgroups on the CPU: an invocation after the other, each with a stack of its own
// that is left at barriers.
//
// Compiled with -fsanitize=thread a kernel calls __tsan_read4 and the like before each access to memory. Here
// these are not ThreadSanitizer's: they look whether the access is within a buffer or a workgroup's memory, and
// whether another invocation has accessed the same bytes without a barrier between the two, one of them
// writing. They find what a kernel's text does, whoever wrote it.

#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>

namespace {

constexpr size_t STACK = 256 << 10;
constexpr size_t MOST_ERRORS = 10;

struct Place {
  unsigned x, y, z;
};

}  // namespace

extern "C" {
Place emulated_workgroup, emulated_invocation;
}

namespace {

using Entry = void (*)(void **, const int64_t *);

struct Fiber {
  ucontext_t context;
  jmp_buf jump;
  char *stack = nullptr;
  Place place;
  bool started, done;
  int line;  // of the barrier that it waits at
};

// Who accessed a byte: a workgroup, an invocation of it, and how many barriers it had come to.
struct Access {
  int64_t workgroup = -1;
  int invocation = -1;
  int epoch = -1;
};

struct Shadow {
  Access writer, reader, other;  // the last two that read and are not the same invocation
  bool workgroups = false;       // of several workgroups some have read it
  bool written = false;
};

struct Region {
  char *start, *stop;
  bool shared, writes;
};

std::vector<Fiber> fibers;
jmp_buf scheduler;
Fiber *current = nullptr;
Entry entry = nullptr;
void **pointers;
const int64_t *variables;

bool checking = false;
Access now;
std::vector<Region> regions;
std::unordered_map<uintptr_t, Shadow> shadows, shared_shadows;
std::vector<std::string> errors;
std::string report;
uint64_t bytes_read = 0, bytes_written = 0;

void fail(const char *format, ...) {
  if (errors.size() >= MOST_ERRORS) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (auto &known : errors)
    if (known == text) return;
  errors.push_back(text);
}

void run_fiber() {
  entry(pointers, variables);
  current->done = true;
  _longjmp(scheduler, 1);
}

// Runs an invocation to its next barrier, or to its end.
void resume(Fiber &fiber);

const Region *region_of(char *address) {
  for (auto &region : regions)
    if (region.start <= address && address < region.stop) return &region;
  return nullptr;
}

bool races(const Access &before, bool shared) {
  if (before.invocation < 0) return false;
  if (before.workgroup != now.workgroup) return !shared;
  return before.invocation != now.invocation && before.epoch == now.epoch;
}

void touch(Shadow &shadow, bool write, const Region &region, char *address) {
  bool conflict = races(shadow.writer, region.shared);
  if (write)
    conflict = conflict || races(shadow.reader, region.shared) || races(shadow.other, region.shared) ||
               (shadow.workgroups && !region.shared);
  if (conflict)
    fail("race: byte %ld of %s %ld: two invocations (the second: %d of workgroup %ld) access it without a barrier "
         "between them, one of them writes",
         (long)(address - region.start), region.shared ? "shared memory" : "buffer", (long)(&region - regions.data()),
         now.invocation, (long)now.workgroup);
  if (write) {
    shadow.writer = now;
    shadow.written = true;
    return;
  }
  if (region.shared && !shadow.written)
    fail("undefined: byte %ld of shared memory %ld is read by invocation %d and no one has written it",
         (long)(address - region.start), (long)(&region - regions.data()), now.invocation);
  if (shadow.reader.invocation >= 0 && shadow.reader.workgroup != now.workgroup) shadow.workgroups = true;
  if (shadow.reader.invocation != now.invocation || shadow.reader.workgroup != now.workgroup)
    shadow.other = shadow.reader;
  shadow.reader = now;
}

bool is_place(char *address, Place &place) { return (char *)&place <= address && address < (char *)(&place + 1); }

void check(char *address, size_t size, bool write) {
  if (!checking || !current) return;
  if (current->stack && current->stack <= address && address < current->stack + STACK) return;
  if (is_place(address, emulated_workgroup) || is_place(address, emulated_invocation)) return;
  const Region *region = region_of(address);
  if (!region || address + size > region->stop) {
    const Region *near = nullptr;
    for (auto &r : regions)
      if (!near || labs(address - r.start) < labs(address - near->start)) near = &r;
    fail("bounds: invocation %d of workgroup %ld %s %zu bytes outside of memory (byte %ld of the nearest, of %ld)",
         now.invocation, (long)now.workgroup, write ? "writes" : "reads", size,
         near ? (long)(address - near->start) : 0, near ? (long)(near->stop - near->start) : 0);
    return;
  }
  if (write && !region->writes) fail("write: to buffer %ld, which is only read", (long)(region - regions.data()));
  bool variable = (char *)variables == region->start;
  if (!region->shared && !variable) (write ? bytes_written : bytes_read) += size;
  auto &table = region->shared ? shared_shadows : shadows;
  for (size_t i = 0; i < size; i++) touch(table[(uintptr_t)(address + i)], write, *region, address + i);
}

}  // namespace

extern "C" {

void emulated_barrier(int line) {
  current->line = line;
  if (!_setjmp(current->jump)) _longjmp(scheduler, 1);
}

void emulated_exchange(int line) {
  current->line = -line;
  if (!_setjmp(current->jump)) _longjmp(scheduler, 1);
}

unsigned emulated_lane() { return (unsigned)now.invocation; }

// Buffers and memory of workgroups that the next launch may access; `kind`: 0 read, 1 written, 2 shared.
void emulated_regions(int count, char **starts, const int64_t *sizes, const int *kinds) {
  regions.clear();
  for (int i = 0; i < count; i++)
    regions.push_back({starts[i], starts[i] + sizes[i], kinds[i] == 2, kinds[i] != 0});
}

// What was found since the last call, a line each.
const char *emulated_errors() {
  report.clear();
  for (auto &error : errors) report += error + "\n";
  errors.clear();
  return report.c_str();
}

void emulated_traffic(uint64_t *read, uint64_t *written) {
  *read = bytes_read;
  *written = bytes_written;
  bytes_read = bytes_written = 0;
}

// Runs every invocation of every workgroup. `barriers`: whether the kernel has any.
void emulated_launch(Entry kernel, void **given, const int64_t *values, const unsigned *grid, const unsigned *group,
                     int barriers, int checked) {
  entry = kernel, pointers = given, variables = values, checking = checked;
  shadows.clear();
  size_t count = (size_t)group[0] * group[1] * group[2];
  size_t old = fibers.size();
  if (count > old) fibers.resize(count);
  bool stacks = barriers || checked;  // an invocation's own variables are no one's business
  if (stacks)
    for (size_t i = 0; i < count; i++)
      if (!fibers[i].stack) {
        void *memory = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
          fail("no memory for the stacks of %zu invocations", count);
          return;
        }
        fibers[i].stack = (char *)memory;
      }
  int64_t workgroup = 0;
  for (unsigned z = 0; z < grid[2]; z++)
    for (unsigned y = 0; y < grid[1]; y++)
      for (unsigned x = 0; x < grid[0]; x++, workgroup++) {
        emulated_workgroup = {x, y, z};
        shared_shadows.clear();
        if (checked)
          for (auto &r : regions)
            if (r.shared) memset(r.start, 0xff, r.stop - r.start);
        for (size_t i = 0; i < count; i++) {
          Fiber &f = fibers[i];
          f.started = f.done = false;
          f.line = 0;
          f.place = {(unsigned)(i % group[0]), (unsigned)(i / group[0] % group[1]),
                     (unsigned)(i / group[0] / group[1])};
        }
        now = {workgroup, 0, 0};
        for (size_t left = count; left; now.epoch++) {
          size_t ended = 0, waiting = 0;
          int line = 0;
          for (size_t i = 0; i < count; i++) {
            Fiber &f = fibers[i];
            if (f.done) continue;
            emulated_invocation = f.place;
            now.invocation = (int)i;
            current = &f;
            if (stacks) {
              resume(f);
            } else {
              kernel(given, values);
              f.done = true;
            }
            current = nullptr;
            if (f.done) {
              ended++;
            } else {
              if (waiting++ && f.line != line)
                fail("divergence: invocations of workgroup %ld wait at different barriers", (long)workgroup);
              line = f.line;
            }
          }
          if (ended && waiting) {
            fail("divergence: %zu invocations of workgroup %ld wait at a barrier that %zu never come to", waiting,
                 (long)workgroup, count - waiting);
            return;
          }
          left -= ended;
          if (waiting && line < 0) now.epoch--;  // an exchange is no barrier
        }
      }
}

#define ACCESS(size)                                                              \
  void __tsan_read##size(void *p) { check((char *)p, size, false); }              \
  void __tsan_write##size(void *p) { check((char *)p, size, true); }              \
  void __tsan_unaligned_read##size(void *p) { check((char *)p, size, false); }    \
  void __tsan_unaligned_write##size(void *p) { check((char *)p, size, true); }    \
  void __tsan_volatile_read##size(void *p) { check((char *)p, size, false); }     \
  void __tsan_volatile_write##size(void *p) { check((char *)p, size, true); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *p, unsigned long size) { check((char *)p, size, false); }
void __tsan_write_range(void *p, unsigned long size) { check((char *)p, size, true); }
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_init() {}
}

namespace {

void resume(Fiber &fiber) {
  if (_setjmp(scheduler)) return;
  if (fiber.started) _longjmp(fiber.jump, 1);
  fiber.started = true;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = STACK;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, run_fiber, 0);
  setcontext(&fiber.context);
}

}  // namespace
