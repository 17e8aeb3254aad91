// What a kernel's text needs to be C++ that runs on the CPU: its place in the grid, barriers, and an entry that
// gives it its arguments. emulation.cpp is the other side.

#pragma once

#include <stdint.h>

struct EmulatedPlace {
  unsigned x, y, z;
};

extern "C" {
extern EmulatedPlace emulated_workgroup, emulated_invocation;
void emulated_barrier(int line);

// Memory of workgroups lies in a section of its own, whose ends the linker names.
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));
__attribute__((visibility("default"), no_sanitize("thread"))) inline char *emulated_shared_start() {
  return __start_emulated_shared;
}
__attribute__((visibility("default"), no_sanitize("thread"))) inline char *emulated_shared_stop() {
  return __stop_emulated_shared;
}
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
  static T next(EmulatedArguments &from) { return (T)*from.variables++; }
};
template <class T> struct EmulatedArgument<T *> {
  static T *next(EmulatedArguments &from) { return (T *)*from.pointers++; }
};
template <class T> struct EmulatedArgument<const T &> {
  static const T &next(EmulatedArguments &from) { return *(const T *)from.variables++; }  // little-endian
};

template <class... A> struct EmulatedCall {
  EmulatedCall(void (*kernel)(A...), A... arguments) { kernel(arguments...); }
};

template <class... A>
__attribute__((no_sanitize("thread"))) void emulated_call(void (*kernel)(A...), void **pointers, const int64_t *variables) {
  EmulatedArguments from{pointers, variables, 0};
  EmulatedCall<A...>{kernel, EmulatedArgument<A>::next(from)...};  // braces: from left to right
}

#define EMULATED_ENTRY(kernel)                                                                                    \
  extern "C" __attribute__((no_sanitize("thread"))) void emulated_entry(void **pointers, const int64_t *variables) { \
    (void)&emulated_shared_start;                                                                                 \
    (void)&emulated_shared_stop;                                                                                  \
    emulated_call(kernel, pointers, variables);                                                                   \
  }                                                                                                               \
  extern "C" char *emulated_start() { return emulated_shared_start(); }                                           \
  extern "C" char *emulated_stop() { return emulated_shared_stop(); }
