// bfloat16 of CUDA's: its bits.

#pragma once

#include "emulated_cuda.h"

inline unsigned short emulated_bfloat16(float x) {
  unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;  // NaN
  return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

struct __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float x) : bits(emulated_bfloat16(x)) {}
  explicit operator float() const { return __uint_as_float((unsigned)bits << 16); }
};
struct __attribute__((aligned(4))) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline float __bfloat162float(__nv_bfloat16 x) { return (float)x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
// rounded once: to odd in float32, where the last bit says that there was a rest
inline __nv_bfloat16 __double2bfloat16(double x) {
  float y = (float)x;
  if (y == y && (double)y != x) {
    unsigned bits = __float_as_uint(y);
    bool beyond = (double)y > x ? y > 0 : y < 0;  // rounded away from zero
    if (beyond) bits -= 1;
    y = __uint_as_float(bits | 1u);
  }
  return __nv_bfloat16(y);
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return emulated_bits<__nv_bfloat16>(x); }
