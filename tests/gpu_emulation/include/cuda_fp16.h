// float16 of CUDA's: the compiler's own.

#pragma once

#include "emulated_cuda.h"

typedef _Float16 half;
struct __attribute__((aligned(4))) half2 {
  half x, y;
};

inline half2 make_half2(half x, half y) { return {x, y}; }
inline float __half2float(half x) { return (float)x; }
inline half __float2half_rn(float x) { return (half)x; }
inline half __double2half(double x) { return (half)x; }
inline unsigned short __half_as_ushort(half x) { return emulated_bits<unsigned short>(x); }
inline half __ushort_as_half(unsigned short x) { return emulated_bits<half>(x); }
