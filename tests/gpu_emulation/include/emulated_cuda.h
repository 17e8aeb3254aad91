// CUDA C++, as much as kernels use of it.

#pragma once

#include "emulation.h"

#define __global__
#define __device__
#define __shared__ EMULATED_SHARED
#define threadIdx emulated_invocation
#define blockIdx emulated_workgroup
#define __syncthreads() emulated_barrier(__LINE__)

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
