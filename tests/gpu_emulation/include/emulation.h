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
void emulated_exchange(int line);  // waits for the others of a workgroup, but orders no memory
unsigned emulated_lane(void);  // an invocation's number in its workgroup

// Memory of workgroups lies in a section of its own, whose ends the linker names.
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));
}

// A page for each array: what lies behind one is part of no other.
#define EMULATED_SHARED static constinit __attribute__((section("emulated_shared"), aligned(4096)))

// What the lane of a subgroup of 32 has whose number differs by some bits.
template <class T> EMULATED_UNSEEN T emulated_shuffle_xor(T x, unsigned mask, int line) {
  static T all[1024];
  unsigned number = emulated_lane();
  all[number] = x;
  emulated_exchange(line);
  T other = all[number ^ mask];
  emulated_exchange(line);  // before any shows another
  return other;
}

// Tensor cores: every lane of a subgroup of 32 shows its fragments of a and b to the others, and computes its part
// of c. `a_row` and the like say where a lane's element is, as the instruction's documentation does.
template <int M, int N, int K, int NA, int NB, int NC, class Layout>
EMULATED_UNSEEN void emulated_wmma(const float (&a)[NA], const float (&b)[NB], float (&c)[NC]) {
  static float all_a[32][32][NA], all_b[32][32][NB];  // by subgroup and lane
  unsigned number = emulated_lane(), group = number / 32, lane = number % 32;
  for (int i = 0; i < NA; i++) all_a[group][lane][i] = a[i];
  for (int i = 0; i < NB; i++) all_b[group][lane][i] = b[i];
  emulated_exchange(1);
  float matrix_a[M][K], matrix_b[K][N];
  for (unsigned l = 0; l < 32; l++) {
    for (int i = 0; i < NA; i++) matrix_a[Layout::a_row(l, i)][Layout::a_column(l, i)] = all_a[group][l][i];
    for (int i = 0; i < NB; i++) matrix_b[Layout::b_row(l, i)][Layout::b_column(l, i)] = all_b[group][l][i];
  }
  emulated_exchange(1);  // before any shows others
  for (int i = 0; i < NC; i++)
    for (int k = 0; k < K; k++)
      c[i] += matrix_a[Layout::c_row(lane, i)][k] * matrix_b[k][Layout::c_column(lane, i)];
}

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
