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
