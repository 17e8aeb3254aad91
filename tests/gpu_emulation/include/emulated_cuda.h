// CUDA C++, as much as kernels use of it.

#pragma once

#include "emulation.h"

#define __global__
#define __device__
#define __shared__ EMULATED_SHARED
#define __align__(n)  // an array has a page
#define threadIdx emulated_invocation
#define blockIdx emulated_workgroup
#define __syncthreads() emulated_barrier(__LINE__)

#define __shfl_xor_sync(lanes, x, mask) emulated_shuffle_xor(x, mask, __LINE__)

#define sqrtf __builtin_sqrtf
#define sqrt __builtin_sqrt
#define truncf __builtin_truncf
#define trunc __builtin_trunc
#define fmaf __builtin_fmaf
#define fma __builtin_fma

template <class To, class From> inline To emulated_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "a bitcast keeps the size");
  To y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}

inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }

#define EMULATED_VECTORS(name, type)                                                     \
  struct __attribute__((aligned(2 * sizeof(type)))) name##2 { type x, y; };              \
  struct __attribute__((aligned(4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16))) name##4 \
  { type x, y, z, w; };                                                                  \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                       \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

EMULATED_VECTORS(char, signed char)
EMULATED_VECTORS(uchar, unsigned char)
EMULATED_VECTORS(short, short)
EMULATED_VECTORS(ushort, unsigned short)
EMULATED_VECTORS(int, int)
EMULATED_VECTORS(uint, unsigned)
EMULATED_VECTORS(longlong, long long)
EMULATED_VECTORS(ulonglong, unsigned long long)
EMULATED_VECTORS(float, float)
EMULATED_VECTORS(double, double)

// mma.sync, as the PTX ISA describes its fragments: "Matrix Fragments for mma.m16n8k16 with floating point type",
// "mma.m16n8k8".
struct EmulatedMmaC {
  static unsigned c_row(unsigned lane, int i) { return lane / 4 + (i < 2 ? 0 : 8); }
  static unsigned c_column(unsigned lane, int i) { return lane % 4 * 2 + (i & 1); }
};
struct EmulatedMma16 : EmulatedMmaC {
  static unsigned a_row(unsigned lane, int i) { return lane / 4 + ((i & 2) ? 8 : 0); }
  static unsigned a_column(unsigned lane, int i) { return lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8); }
  static unsigned b_row(unsigned lane, int i) { return lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8); }
  static unsigned b_column(unsigned lane, int) { return lane / 4; }
};
struct EmulatedMma8 : EmulatedMmaC {
  static unsigned a_row(unsigned lane, int i) { return lane / 4 + ((i & 1) ? 8 : 0); }
  static unsigned a_column(unsigned lane, int i) { return lane % 4 + (i < 2 ? 0 : 4); }
  static unsigned b_row(unsigned lane, int i) { return lane % 4 + (i ? 4 : 0); }
  static unsigned b_column(unsigned lane, int) { return lane / 4; }
};

template <class T>
EMULATED_UNSEEN inline float4 emulated_mma_16(T a0, T a1, T a2, T a3, T a4, T a5, T a6, T a7, T b0, T b1, T b2, T b3,
                                              float c0, float c1, float c2, float c3) {
  float a[] = {(float)a0, (float)a1, (float)a2, (float)a3, (float)a4, (float)a5, (float)a6, (float)a7};
  float b[] = {(float)b0, (float)b1, (float)b2, (float)b3}, c[] = {c0, c1, c2, c3};
  emulated_wmma<16, 8, 16, 8, 4, 4, EmulatedMma16>(a, b, c);
  return {c[0], c[1], c[2], c[3]};
}
#define mma_m16n8k16_half emulated_mma_16<half>
#define mma_m16n8k16_bfloat emulated_mma_16<__nv_bfloat16>

// Copies that go on while invocations compute. They happen when somebody waits for them, and no earlier.
struct EmulatedCopy {
  char *target;
  const char *source;
  int size, group;
};
struct EmulatedCopies {
  EmulatedCopy copies[4096];
  int count, groups;
};
EMULATED_UNSEEN inline EmulatedCopies &emulated_copies() {
  static EmulatedCopies all[1024];
  return all[emulated_lane()];
}
template <int size> EMULATED_UNSEEN inline void copy_async(void *target, const void *source) {
  static_assert(size == 4 || size == 8 || size == 16, "cp.async copies 4, 8 or 16 bytes");
  if ((uintptr_t)target % size || (uintptr_t)source % size) __builtin_trap();
  auto &own = emulated_copies();
  own.copies[own.count++] = {(char *)target, (const char *)source, size, own.groups};
}
EMULATED_UNSEEN inline void commit_copies() { emulated_copies().groups++; }
__attribute__((noinline)) static void emulated_copy_word(unsigned *target, const unsigned *source) { *target = *source; }
template <int pending> EMULATED_UNSEEN inline void wait_for_copies() {
  auto &own = emulated_copies();
  int left = 0;
  for (int i = 0; i < own.count; i++) {
    auto &copy = own.copies[i];
    if (copy.group >= own.groups - pending) own.copies[left++] = copy;
    else
      for (int at = 0; at < copy.size; at += 4)
        emulated_copy_word((unsigned *)(copy.target + at), (const unsigned *)(copy.source + at));
  }
  own.count = left;
}
inline void show_to_tensor_cores() {}

// wgmma.mma_async, four in a row: "Asynchronous Warpgroup Level Matrix Instructions" of the PTX ISA. The operands are
// swizzled as addresses are: bits 4 to 6 by bits 7 to 9.
template <int across, int step, class T>
EMULATED_UNSEEN inline const T *emulated_swizzled(const T *start, unsigned k, unsigned row) {
  unsigned element = across ? row / 64 * step + k * 64 + row % 64 : row * 64 + k;
  uintptr_t address = (uintptr_t)(start + element);
  return (const T *)(address ^ (address >> 3 & 0x70));
}
template <class T> __attribute__((noinline)) static void emulated_look(const T *at) { *(volatile const T *)at; }
template <int a_across, int b_across, int a_step, int b_step, class T, int count>
EMULATED_UNSEEN inline void emulated_wgmma(float (&d)[count], const T *a, const T *b) {
  unsigned lane = emulated_lane() % 128, row = lane / 32 * 16 + lane % 32 / 4;
  for (unsigned i = lane; i < 64 * 64; i += 128) emulated_look(emulated_swizzled<a_across, a_step>(a, i / 64, i % 64));
  for (unsigned i = lane; i < 2 * count * 64; i += 128)
    emulated_look(emulated_swizzled<b_across, b_step>(b, i % 64, i / 64));
  for (int i = 0; i < count; i++) {
    unsigned m = row + (i % 4 < 2 ? 0 : 8), n = i / 4 * 8 + lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 64; k++)
      d[i] += (float)*emulated_swizzled<a_across, a_step>(a, k, m) * (float)*emulated_swizzled<b_across, b_step>(b, k, n);
  }
}
#define wgmma_m64n128k64_half emulated_wgmma
#define wgmma_m64n64k64_half emulated_wgmma
#define wgmma_m64n128k64_bfloat emulated_wgmma
#define wgmma_m64n64k64_bfloat emulated_wgmma

// to nearest, ties away from 0
inline float emulated_tf32(float x) {
  unsigned bits = __float_as_uint(x);
  return (bits & 0x7f800000u) == 0x7f800000u ? x : __uint_as_float((bits + 0x1000u) & 0xffffe000u);
}
EMULATED_UNSEEN inline float4 mma_m16n8k8_tf32(float a0, float a1, float a2, float a3, float b0, float b1, float c0,
                                               float c1, float c2, float c3) {
  float a[] = {emulated_tf32(a0), emulated_tf32(a1), emulated_tf32(a2), emulated_tf32(a3)};
  float b[] = {emulated_tf32(b0), emulated_tf32(b1)}, c[] = {c0, c1, c2, c3};
  emulated_wmma<16, 8, 8, 4, 2, 4, EmulatedMma8>(a, b, c);
  return {c[0], c[1], c[2], c[3]};
}
