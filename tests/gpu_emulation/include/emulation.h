// What a kernel's text needs to be C++ that runs on the CPU: its place in the grid, barriers, and an entry that
// gives it its arguments. emulation.cpp is the other side.

#pragma once

#include <stdint.h>

#define EMULATED_UNSEEN __attribute__((no_sanitize("thread")))  // accesses that are none of the kernel's

struct EmulatedPlace {
  unsigned x, y, z;
};

extern "C" {
extern EmulatedPlace emulated_workgroup, emulated_invocation;
void emulated_barrier(int line);

// Memory of workgroups lies in a section of its own, whose ends the linker names.
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));
}

// A page for each array: what lies behind one is part of no other.
#define EMULATED_SHARED static __attribute__((section("emulated_shared"), aligned(4096)))

// Arguments of a kernel: pointers, then variables, then what its language passes beside them.
struct EmulatedArguments {
  void **pointers;
  const int64_t *variables;
  int places;
};

template <class T> struct EmulatedArgument {
  EMULATED_UNSEEN static T next(EmulatedArguments &from) { return (T)*from.variables++; }
};
template <class T> struct EmulatedArgument<T *> {
  EMULATED_UNSEEN static T *next(EmulatedArguments &from) { return (T *)*from.pointers++; }
};
template <class T> struct EmulatedArgument<const T &> {
  EMULATED_UNSEEN static const T &next(EmulatedArguments &from) { return *(const T *)from.variables++; }  // little-endian
};

template <class... A> struct EmulatedCall {
  EMULATED_UNSEEN EmulatedCall(void (*kernel)(A...), A... arguments) { kernel(arguments...); }
};

template <class... A>
EMULATED_UNSEEN void emulated_call(void (*kernel)(A...), void **pointers, const int64_t *variables) {
  EmulatedArguments from{pointers, variables, 0};
  EmulatedCall<A...>{kernel, EmulatedArgument<A>::next(from)...};  // braces: from left to right
}

#define EMULATED_ENTRY(kernel)                                                                       \
  extern "C" EMULATED_UNSEEN void emulated_entry(void **pointers, const int64_t *variables) {        \
    emulated_call(kernel, pointers, variables);                                                      \
  }                                                                                                  \
  extern "C" EMULATED_UNSEEN char *emulated_start() { return __start_emulated_shared; }              \
  extern "C" EMULATED_UNSEEN char *emulated_stop() { return __stop_emulated_shared; }
