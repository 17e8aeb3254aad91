#include <stdbool.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

typedef float float32x8 __attribute__((vector_size(32)));
typedef float32x8 float32x8_unaligned __attribute__((aligned(sizeof(float)), may_alias));
INLINE float32x8 load_float32x8(const float *p) {
  return *(const float32x8_unaligned *)p;
}
INLINE void store_float32x8(float *p, float32x8 x) {
  *(float32x8_unaligned *)p = x;
}
INLINE float32x8 splat_float32x8(float x) {
  return (float32x8){x, x, x, x, x, x, x, x};
}
typedef int64_t int64x8 __attribute__((vector_size(64)));
INLINE int64x8 splat_int64x8(int64_t x) {
  return (int64x8){x, x, x, x, x, x, x, x};
}
typedef int32_t int32x8 __attribute__((vector_size(32)));
typedef int32_t int32x4 __attribute__((vector_size(16)));
typedef int64_t int64x4 __attribute__((vector_size(32)));
INLINE int32x8 less_int64x8(int64x8 a, int64x8 b) {
  int64x4 m0 = __builtin_shufflevector(a, a, 0, 1, 2, 3) < __builtin_shufflevector(b, b, 0, 1, 2, 3);
  int64x4 m1 = __builtin_shufflevector(a, a, 4, 5, 6, 7) < __builtin_shufflevector(b, b, 4, 5, 6, 7);
  int32x8 x0 = __builtin_shufflevector(__builtin_convertvector(m0, int32x4), __builtin_convertvector(m1, int32x4), 0, 1, 2, 3, 4, 5, 6, 7);
  return x0;
}
INLINE float32x8 select_float32x8(int32x8 mask, float32x8 x, float32x8 y) {
  return (float32x8)(((int32x8)x & mask) | ((int32x8)y & ~mask));
}
typedef float float32x4 __attribute__((vector_size(16)));
typedef float float32x2 __attribute__((vector_size(8)));
INLINE float reduce_add_float32x8(float32x8 x) {
  float32x4 x0 = __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
  float32x2 x1 = __builtin_shufflevector(x0, x0, 0, 1) + __builtin_shufflevector(x0, x0, 2, 3);
  return x1[0] + x1[1];
}
INLINE float32x8 max_float32x8(float32x8 a, float32x8 b) {
  return select_float32x8((a < b) | (b != b), b, a);
}
INLINE float32x8 fma_float32x8(float32x8 x, float32x8 y, float32x8 z) {
  for (int i = 0; i < 8; i++)
    x[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return x;
}
INLINE float32x4 select_float32x4(int32x4 mask, float32x4 x, float32x4 y) {
  return (float32x4)(((int32x4)x & mask) | ((int32x4)y & ~mask));
}
INLINE float32x4 max_float32x4(float32x4 a, float32x4 b) {
  return select_float32x4((a < b) | (b != b), b, a);
}
typedef int32_t int32x2 __attribute__((vector_size(8)));
INLINE float32x2 select_float32x2(int32x2 mask, float32x2 x, float32x2 y) {
  return (float32x2)(((int32x2)x & mask) | ((int32x2)y & ~mask));
}
INLINE float32x2 max_float32x2(float32x2 a, float32x2 b) {
  return select_float32x2((a < b) | (b != b), b, a);
}
INLINE float max_float32(float a, float b) {
  return (a < b) | (b != b) ? b : a;
}
INLINE float reduce_max_float32x8(float32x8 x) {
  float32x4 x0 = max_float32x4(__builtin_shufflevector(x, x, 0, 1, 2, 3), __builtin_shufflevector(x, x, 4, 5, 6, 7));
  float32x2 x1 = max_float32x2(__builtin_shufflevector(x0, x0, 0, 1), __builtin_shufflevector(x0, x0, 2, 3));
  return max_float32(x1[0], x1[1]);
}
typedef uint32_t uint32x8 __attribute__((vector_size(32)));
INLINE uint32x8 splat_uint32x8(uint32_t x) {
  return (uint32x8){x, x, x, x, x, x, x, x};
}
INLINE int64x4 splat_int64x4(int64_t x) {
  return (int64x4){x, x, x, x};
}
INLINE float32x4 splat_float32x4(float x) {
  return (float32x4){x, x, x, x};
}
typedef int8_t int8x4 __attribute__((vector_size(4)));
INLINE int8x4 splat_int8x4(int8_t x) {
  return (int8x4){x, x, x, x};
}
typedef float32x4 float32x4_unaligned __attribute__((aligned(sizeof(float)), may_alias));
INLINE void store_float32x4(float *p, float32x4 x) {
  *(float32x4_unaligned *)p = x;
}
INLINE float32x4 load_float32x4(const float *p) {
  return *(const float32x4_unaligned *)p;
}
typedef uint16_t uint16x8 __attribute__((vector_size(16)));
typedef uint16x8 uint16x8_unaligned __attribute__((aligned(sizeof(uint16_t)), may_alias));
INLINE uint16x8 load_uint16x8(const uint16_t *p) {
  return *(const uint16x8_unaligned *)p;
}
typedef _Float16 halfx8 __attribute__((vector_size(16)));
INLINE float32x8 half_to_float32x8(uint16x8 x) {
#if defined(__F16C__) && !defined(__clang__)
  return __builtin_ia32_vcvtph2ps256((__attribute__((vector_size(16))) short)x);
#else
  union { uint16x8 bits; halfx8 half; } both = {x};
  return __builtin_convertvector(both.half, float32x8);
#endif
}
INLINE uint16x8 float32x8_to_half(float32x8 x) {
#if defined(__F16C__) && !defined(__clang__)
  return (uint16x8)__builtin_ia32_vcvtps2ph256(x, 0);
#else
  union { halfx8 half; uint16x8 bits; } both = {__builtin_convertvector(x, halfx8)};
  return both.bits;
#endif
}
INLINE void store_uint16x8(uint16_t *p, uint16x8 x) {
  *(uint16x8_unaligned *)p = x;
}
typedef int32x8 int32x8_unaligned __attribute__((aligned(sizeof(int32_t)), may_alias));
INLINE int32x8 load_int32x8(const int32_t *p) {
  return *(const int32x8_unaligned *)p;
}
INLINE int32x8 splat_int32x8(int32_t x) {
  return (int32x8){x, x, x, x, x, x, x, x};
}
INLINE int32x8 select_int32x8(int32x8 mask, int32x8 x, int32x8 y) {
  return (int32x8)(((int32x8)x & mask) | ((int32x8)y & ~mask));
}
INLINE int32x8 floor_divide_int32x8(int32x8 a, int32x8 b) {
  int32x8 x0 = a % b;
  int32x8 x1 = select_int32x8((x0 != 0) & ((x0 ^ b) < 0), splat_int32x8(1), splat_int32x8(0));
  return a / b - x1;
}
INLINE int32x8 floor_modulo_int32x8(int32x8 a, int32x8 b) {
  int32x8 x0 = a % b;
  return x0 + select_int32x8((x0 != 0) & ((x0 ^ b) < 0), b, splat_int32x8(0));
}
INLINE void store_int32x8(int32_t *p, int32x8 x) {
  *(int32x8_unaligned *)p = x;
}
INLINE float32x4 load_masked_float32x4(const float *p, int32x4 mask, float32x4 x) {
  int missing = 0;
  for (int i = 0; i < 4; i++)
    missing |= !mask[i];
  if (!missing)
    return load_float32x4(p);
  for (int i = 0; i < 4; i++)
    if (mask[i])
      x[i] = p[i];
  return x;
}
INLINE float32x4 fma_float32x4(float32x4 x, float32x4 y, float32x4 z) {
  for (int i = 0; i < 4; i++)
    x[i] = __builtin_fmaf(x[i], y[i], z[i]);
  return x;
}
INLINE int64_t floor_divide_index(int64_t a, int64_t b) {
  int64_t x0 = a % b;
  return a / b - ((x0 != 0) & ((x0 ^ b) < 0) ? 1 : 0);
}
static const int64_t never_stops;
const volatile int64_t *polygrad_stop = &never_stops;


void add_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  float32x8 x0 = load_float32x8(data1 + 2);
  float32x8 x1 = load_float32x8(data2 + 2);
  store_float32x8(data0, load_float32x8(data1) + load_float32x8(data2));
  store_float32x8(data0 + 2, x0 + x1);
}

void broadcast_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  float32x8 x0 = load_float32x8(data2);
  float32x8 x1 = load_float32x8(data2 + 1);
  for (int64_t i0 = 0; i0 < 4; i0++) {
    int64_t p0 = i0 * 9;
    float32x8 x2 = splat_float32x8(data1[i0]);
    store_float32x8(data0 + p0, x2 * x0 + 1.0f);
    store_float32x8(data0 + p0 + 1, x2 * x1 + 1.0f);
  }
}

void sum_rows_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  int32x8 m0 = less_int64x8((int64x8){0, 1, 2, 3, 4, 5, 6, 7}, splat_int64x8(6));
  for (int64_t i0 = 0; i0 < 5; i0++) {
    int64_t p0 = i0 * 18;
    float32x8 x0 = select_float32x8(m0, splat_float32x8(0.0f), load_float32x8(data1 + p0 + 10));
    float x1 = reduce_add_float32x8(load_float32x8(data1 + p0) + load_float32x8(data1 + p0 + 8));
    data0[i0] = x1 + reduce_add_float32x8(x0);
  }
}

void max_columns_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float32x8 x0 = max_float32x8(max_float32x8(load_float32x8(data1), load_float32x8(data1 + 24)), max_float32x8(load_float32x8(data1 + 8), load_float32x8(data1 + 32)));
  float32x8 x1 = max_float32x8(x0, max_float32x8(load_float32x8(data1 + 16), load_float32x8(data1 + 40)));
  store_float32x8(data0, x1);
}

void matmul_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  for (int64_t i0 = 0; i0 < 2; i0++) {
    int64_t p0 = i0 * 48;
    float32x8 acc0 = splat_float32x8(0.0f);
    float32x8 acc1 = splat_float32x8(0.0f);
    float32x8 acc2 = splat_float32x8(0.0f);
    float32x8 acc3 = splat_float32x8(0.0f);
    for (int64_t i1 = 0; i1 < 12; i1++) {
      int64_t p1 = p0 + i1;
      float32x8 x0 = load_float32x8(data2 + (i1 << 3));
      acc0 = fma_float32x8(splat_float32x8(data1[p1]), x0, acc0);
      acc1 = fma_float32x8(splat_float32x8(data1[p1 + 12]), x0, acc1);
      acc2 = fma_float32x8(splat_float32x8(data1[p1 + 24]), x0, acc2);
      acc3 = fma_float32x8(splat_float32x8(data1[p1 + 36]), x0, acc3);
    }
    int64_t p2 = i0 << 5;
    store_float32x8(data0 + p2, acc0);
    store_float32x8(data0 + p2 + 8, acc1);
    store_float32x8(data0 + p2 + 16, acc2);
    store_float32x8(data0 + p2 + 24, acc3);
  }
}

void softmax_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  int32x8 m0 = less_int64x8((int64x8){0, 1, 2, 3, 4, 5, 6, 7}, splat_int64x8(4));
  for (int64_t i0 = 0; i0 < 3; i0++) {
    int64_t p0 = i0 * 20;
    float32x8 x0 = select_float32x8(m0, splat_float32x8(-__builtin_inff()), load_float32x8(data1 + p0 + 12));
    float32x8 x1 = max_float32x8(load_float32x8(data1 + p0), load_float32x8(data1 + p0 + 8));
    data0[i0] = max_float32(reduce_max_float32x8(x1), reduce_max_float32x8(x0));
  }
}

void softmax_1(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  int32x8 m0 = less_int64x8((int64x8){0, 1, 2, 3, 4, 5, 6, 7}, splat_int64x8(4));
  for (int64_t i0 = 0; i0 < 3; i0++) {
    int64_t p0 = i0 * 20;
    float32x8 x0 = splat_float32x8(data2[i0]);
    float32x8 x1 = load_float32x8(data1 + p0) - x0;
    float32x8 x2 = load_float32x8(data1 + p0 + 8) - x0;
    float32x8 x3 = select_float32x8(x1 < -110.73026f, splat_float32x8(-110.73026f), x1);
    float32x8 x4 = select_float32x8(x2 < -110.73026f, splat_float32x8(-110.73026f), x2);
    float32x8 x5 = fma_float32x8(x3, splat_float32x8(1.442695f), splat_float32x8(12583072.0f));
    float32x8 x6 = fma_float32x8(x4, splat_float32x8(1.442695f), splat_float32x8(12583072.0f));
    float32x8 x7 = load_float32x8(data1 + p0 + 12) - x0;
    float32x8 x8 = select_float32x8(x7 < -110.73026f, splat_float32x8(-110.73026f), x7);
    float32x8 x9 = fma_float32x8(x8, splat_float32x8(1.442695f), splat_float32x8(12583072.0f));
    float32x8 x10 = fma_float32x8(x3, splat_float32x8(1.925963e-08f), fma_float32x8(x3, splat_float32x8(1.442695f), 12583072.0f - x5));
    float32x8 x11 = fma_float32x8(x4, splat_float32x8(1.925963e-08f), fma_float32x8(x4, splat_float32x8(1.442695f), 12583072.0f - x6));
    float32x8 x12 = fma_float32x8(splat_float32x8(0.00015453163f), x10, splat_float32x8(0.0013390863f));
    float32x8 x13 = fma_float32x8(splat_float32x8(0.00015453163f), x11, splat_float32x8(0.0013390863f));
    float32x8 x14 = fma_float32x8(fma_float32x8(x12, x10, splat_float32x8(0.009618083f)), x10, splat_float32x8(0.05550357f));
    float32x8 x15 = fma_float32x8(fma_float32x8(x13, x11, splat_float32x8(0.009618083f)), x11, splat_float32x8(0.05550357f));
    float32x8 x16 = fma_float32x8(fma_float32x8(x14, x10, splat_float32x8(0.2402265f)), x10, splat_float32x8(0.6931472f));
    float32x8 x17 = fma_float32x8(fma_float32x8(x15, x11, splat_float32x8(0.2402265f)), x11, splat_float32x8(0.6931472f));
    float32x8 x18 = fma_float32x8(x16, x10, splat_float32x8(1.0f)) * (float32x8)((uint32x8)x5 << 23u);
    float32x8 x19 = fma_float32x8(x17, x11, splat_float32x8(1.0f)) * (float32x8)((uint32x8)x6 << 23u);
    float32x8 x20 = fma_float32x8(x8, splat_float32x8(1.925963e-08f), fma_float32x8(x8, splat_float32x8(1.442695f), 12583072.0f - x9));
    float32x8 x21 = fma_float32x8(splat_float32x8(0.00015453163f), x20, splat_float32x8(0.0013390863f));
    float32x8 x22 = fma_float32x8(fma_float32x8(x21, x20, splat_float32x8(0.009618083f)), x20, splat_float32x8(0.05550357f));
    float32x8 x23 = fma_float32x8(fma_float32x8(x22, x20, splat_float32x8(0.2402265f)), x20, splat_float32x8(0.6931472f));
    float32x8 x24 = fma_float32x8(x23, x20, splat_float32x8(1.0f)) * (float32x8)((uint32x8)x9 << 23u);
    float x25 = reduce_add_float32x8(select_float32x8(m0, splat_float32x8(0.0f), x24 * 1.1641532e-10f));
    float x26 = reduce_add_float32x8(x18 * 1.1641532e-10f + x19 * 1.1641532e-10f) + x25;
    data0[i0] = 1.0f / x26;
  }
}

void softmax_2(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  float *data3 = (float *)buffers[3];
  for (int64_t i0 = 0; i0 < 3; i0++) {
    float32x8 x0 = splat_float32x8(data2[i0]);
    float32x8 x1 = splat_float32x8(data3[i0]);
    int64_t p0 = i0 * 20;
    for (int64_t i1 = 0; i1 < 2; i1++) {
      int64_t p1 = p0 + (i1 < 1 ? i1 << 4 : 4);
      float32x8 x2 = load_float32x8(data1 + p1) - x0;
      float32x8 x3 = load_float32x8(data1 + p1 + 8) - x0;
      float32x8 x4 = select_float32x8(x2 < -110.73026f, splat_float32x8(-110.73026f), x2);
      float32x8 x5 = select_float32x8(x3 < -110.73026f, splat_float32x8(-110.73026f), x3);
      float32x8 x6 = fma_float32x8(x4, splat_float32x8(1.442695f), splat_float32x8(12583072.0f));
      float32x8 x7 = fma_float32x8(x5, splat_float32x8(1.442695f), splat_float32x8(12583072.0f));
      float32x8 x8 = fma_float32x8(x4, splat_float32x8(1.925963e-08f), fma_float32x8(x4, splat_float32x8(1.442695f), 12583072.0f - x6));
      float32x8 x9 = fma_float32x8(x5, splat_float32x8(1.925963e-08f), fma_float32x8(x5, splat_float32x8(1.442695f), 12583072.0f - x7));
      float32x8 x10 = fma_float32x8(splat_float32x8(0.00015453163f), x8, splat_float32x8(0.0013390863f));
      float32x8 x11 = fma_float32x8(splat_float32x8(0.00015453163f), x9, splat_float32x8(0.0013390863f));
      float32x8 x12 = fma_float32x8(fma_float32x8(x10, x8, splat_float32x8(0.009618083f)), x8, splat_float32x8(0.05550357f));
      float32x8 x13 = fma_float32x8(fma_float32x8(x11, x9, splat_float32x8(0.009618083f)), x9, splat_float32x8(0.05550357f));
      float32x8 x14 = fma_float32x8(fma_float32x8(x12, x8, splat_float32x8(0.2402265f)), x8, splat_float32x8(0.6931472f));
      float32x8 x15 = fma_float32x8(fma_float32x8(x13, x9, splat_float32x8(0.2402265f)), x9, splat_float32x8(0.6931472f));
      float32x8 x16 = fma_float32x8(x14, x8, splat_float32x8(1.0f)) * (float32x8)((uint32x8)x6 << 23u);
      float32x8 x17 = fma_float32x8(x15, x9, splat_float32x8(1.0f)) * (float32x8)((uint32x8)x7 << 23u);
      store_float32x8(data0 + p1, x16 * 1.1641532e-10f * x1);
      store_float32x8(data0 + p1 + 8, x17 * 1.1641532e-10f * x1);
    }
  }
}

void transpose_pad_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  int64x4 x0 = (int64x4){0, 1, 2, 3};
  int64x4 m0 = 0 + x0 < 4;
  int64x4 m1 = 2 + x0 < 4;
  for (int64_t i0 = 0; i0 < 7; i0++) {
    int8x4 x1 = splat_int8x4((int8_t)-(0 < i0));
    int64x4 m2 = __builtin_convertvector(x1, int64x4) & m0;
    int64x4 m3 = __builtin_convertvector(x1, int64x4) & m1;
    float32x4 x2 = (float32x4){data1[(m2[0] != 0 ? i0 : 1) - 1], data1[(m2[1] != 0 ? i0 : -5) + 5], data1[(m2[2] != 0 ? i0 : -11) + 11], data1[(m2[3] != 0 ? i0 : -17) + 17]};
    float32x4 x3 = select_float32x4(__builtin_convertvector(m2, int32x4), x2, splat_float32x4(0.0f));
    float x4 = data1[(m3[0] != 0 ? i0 : -11) + 11];
    float x5 = data1[(m3[1] != 0 ? i0 : -17) + 17];
    float x6 = data1[(m3[2] != 0 ? i0 : -23) + 23];
    float x7 = data1[(m3[3] != 0 ? i0 : -29) + 29];
    float32x4 x8 = select_float32x4(__builtin_convertvector(m3, int32x4), (float32x4){x4, x5, x6, x7}, splat_float32x4(0.0f));
    int64_t p0 = i0 * 6;
    store_float32x4(data0 + p0, x3);
    store_float32x4(data0 + p0 + 2, x8);
  }
}

void gather_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  int32_t *data1 = (int32_t *)buffers[1];
  float *data2 = (float *)buffers[2];
  for (int64_t i0 = 0; i0 < 3; i0++) {
    int32_t x0 = data1[i0];
    int32_t x1 = x0 < 0 ? x0 + 50 : x0;
    bool m0 = (-1 < x1) & (x1 < 50);
    float32x4 x2 = select_float32x4(__builtin_convertvector(splat_int8x4((int8_t)-m0), int32x4), load_float32x4(data2 + (m0 ? (int64_t)x1 << 2 : 0)), splat_float32x4(0.0f));
    store_float32x4(data0 + (i0 << 2), x2);
  }
}

void half_0(char **buffers, int64_t *variables) {
  uint16_t *data0 = (uint16_t *)buffers[0];
  uint16_t *data1 = (uint16_t *)buffers[1];
  float32x8 x0 = half_to_float32x8(float32x8_to_half(half_to_float32x8(load_uint16x8(data1)) * 3.0f));
  store_uint16x8(data0, float32x8_to_half(x0 + 1.0f));
}

void integers_0(char **buffers, int64_t *variables) {
  int32_t *data0 = (int32_t *)buffers[0];
  int32_t *data1 = (int32_t *)buffers[1];
  int32_t *data2 = (int32_t *)buffers[2];
  int32x8 x0 = load_int32x8(data1 + 1);
  int32x8 x1 = load_int32x8(data2);
  int32x8 x2 = load_int32x8(data2 + 1);
  int32x8 m0 = (x1 == 0) | (x1 == -1);
  int32x8 m1 = (x2 == 0) | (x2 == -1);
  int32x8 x3 = floor_modulo_int32x8(floor_divide_int32x8(load_int32x8(data1), splat_int32x8(3)), select_int32x8(m0, splat_int32x8(1), x1));
  int32x8 x4 = floor_modulo_int32x8(floor_divide_int32x8(x0, splat_int32x8(3)), select_int32x8(m1, splat_int32x8(1), x2));
  store_int32x8(data0, select_int32x8(m0, splat_int32x8(0), x3));
  store_int32x8(data0 + 1, select_int32x8(m1, splat_int32x8(0), x4));
}

void convolution_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  int64x4 x0 = (int64x4){0, 1, 2, 3};
  for (int64_t i0 = 0; i0 < 2; i0++) {
    int64_t p0 = i0 * 3;
    int64_t p1 = p0 + 1;
    int64_t p2 = p0 + 2;
    int64_t p3 = i0 * 18;
    for (int64_t i1 = 0; i1 < 2; i1++) {
      int64_t p4 = i1 < 1 ? i1 << 2 : 2;
      int64_t p5 = p3 + p4;
      int64x4 p6 = splat_int64x4(p4) + x0;
      float32x4 acc0 = splat_float32x4(0.0f);
      float32x4 acc1 = splat_float32x4(0.0f);
      float32x4 acc2 = splat_float32x4(0.0f);
      float32x4 acc3 = splat_float32x4(0.0f);
      float32x4 acc4 = splat_float32x4(0.0f);
      float32x4 acc5 = splat_float32x4(0.0f);
      float32x4 acc6 = splat_float32x4(0.0f);
      float32x4 acc7 = splat_float32x4(0.0f);
      float32x4 acc8 = splat_float32x4(0.0f);
      for (int64_t i2 = 0; i2 < 2; i2++) {
        int64_t p7 = p5 + i2 * 36;
        int64_t p8 = i2 * 9;
        for (int64_t i3 = 0; i3 < 3; i3++) {
          int64_t p9 = p7 + i3 * 6;
          int64_t p10 = p0 + i3;
          int64_t p11 = p1 + i3;
          int64_t p12 = p2 + i3;
          int64_t p13 = p8 + i3 * 3;
          int8x4 x1 = splat_int8x4((int8_t)-((0 < p10) & (p10 < 7)));
          int8x4 x2 = splat_int8x4((int8_t)-((0 < p11) & (p11 < 7)));
          int8x4 x3 = splat_int8x4((int8_t)-((0 < p12) & (p12 < 7)));
          for (int64_t i4 = 0; i4 < 3; i4++) {
            int64_t p14 = p9 + i4;
            int64x4 p15 = p6 + splat_int64x4(i4);
            int64x4 m0 = 0 < p15;
            int64x4 m1 = p15 < 7;
            int32x4 x4 = __builtin_convertvector((__builtin_convertvector(x1, int64x4) & m0) & m1, int32x4);
            float32x4 x5 = load_masked_float32x4(data1 + p14 - 7, x4, splat_float32x4(0.0f));
            int32x4 x6 = __builtin_convertvector((__builtin_convertvector(x2, int64x4) & m0) & m1, int32x4);
            float32x4 x7 = load_masked_float32x4(data1 + p14 - 1, x6, splat_float32x4(0.0f));
            int32x4 x8 = __builtin_convertvector((__builtin_convertvector(x3, int64x4) & m0) & m1, int32x4);
            float32x4 x9 = load_masked_float32x4(data1 + p14 + 5, x8, splat_float32x4(0.0f));
            int64_t p16 = p13 + i4;
            float32x4 x10 = splat_float32x4(data2[p16]);
            float32x4 x11 = splat_float32x4(data2[p16 + 18]);
            float32x4 x12 = splat_float32x4(data2[p16 + 36]);
            acc0 = fma_float32x4(x5, x10, acc0);
            acc1 = fma_float32x4(x7, x10, acc1);
            acc2 = fma_float32x4(x9, x10, acc2);
            acc3 = fma_float32x4(x5, x11, acc3);
            acc4 = fma_float32x4(x7, x11, acc4);
            acc5 = fma_float32x4(x9, x11, acc5);
            acc6 = fma_float32x4(x5, x12, acc6);
            acc7 = fma_float32x4(x7, x12, acc7);
            acc8 = fma_float32x4(x9, x12, acc8);
          }
        }
      }
      store_float32x4(data0 + p5, acc0);
      store_float32x4(data0 + p5 + 6, acc1);
      store_float32x4(data0 + p5 + 12, acc2);
      store_float32x4(data0 + p5 + 36, acc3);
      store_float32x4(data0 + p5 + 42, acc4);
      store_float32x4(data0 + p5 + 48, acc5);
      store_float32x4(data0 + p5 + 72, acc6);
      store_float32x4(data0 + p5 + 78, acc7);
      store_float32x4(data0 + p5 + 84, acc8);
    }
  }
}

void assign_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float32x8 x0 = load_float32x8(data1 + 4);
  float32x8 x1 = load_float32x8(data1);
  float32x8 x2 = load_float32x8(data1 + 4);
  float32x8 x3 = __builtin_shufflevector(x0, x0, 7, 6, 5, 4, 3, 2, 1, 0) + load_float32x8(data1);
  store_float32x8(data0, x3);
  store_float32x8(data0 + 4, __builtin_shufflevector(x1, x1, 7, 6, 5, 4, 3, 2, 1, 0) + x2);
}

void assign_1(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float32x8 x0 = load_float32x8(data1 + 4);
  store_float32x8(data0, load_float32x8(data1));
  store_float32x8(data0 + 4, x0);
}

void symbolic_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  int64_t var_n = variables[0];
  float acc0 = 0.0f;
  for (int64_t i0 = 0; i0 < var_n; i0++) {
    acc0 += data1[i0];
  }
  data0[0] = acc0;
}

void local_memory_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  int32x8 m0 = less_int64x8((int64x8){0, 1, 2, 3, 4, 5, 6, 7}, splat_int64x8(4));
  for (int64_t i0 = 0; i0 < 16; i0++) {
    int64_t p0 = i0 * 60;
    for (int64_t i1 = 0; i1 < 4; i1++) {
      int64_t p1 = i1 < 3 ? i1 << 4 : 44;
      int64_t p2 = p1 + p0;
      float32x8 x0 = load_float32x8(data1 + p2);
      float32x8 x1 = load_float32x8(data1 + p2 + 8);
      float32x8 x2 = select_float32x8(x0 < -253.75f, splat_float32x8(-253.75f), x0);
      float32x8 x3 = select_float32x8(x1 < -253.75f, splat_float32x8(-253.75f), x1);
      float32x8 x4 = select_float32x8(129.0f < x2, splat_float32x8(129.0f), x2);
      float32x8 x5 = select_float32x8(129.0f < x3, splat_float32x8(129.0f), x3);
      float32x8 x6 = x4 + 12583166.0f;
      float32x8 x7 = x5 + 12583166.0f;
      uint32x8 x8 = (uint32x8)x6;
      uint32x8 x9 = (uint32x8)x7;
      uint32x8 x10 = x8 >> 1u;
      uint32x8 x11 = x9 >> 1u;
      float32x8 x12 = x4 - (x6 - 12583166.0f);
      float32x8 x13 = x5 - (x7 - 12583166.0f);
      float32x8 x14 = fma_float32x8(splat_float32x8(0.00015453163f), x12, splat_float32x8(0.0013390863f));
      float32x8 x15 = fma_float32x8(splat_float32x8(0.00015453163f), x13, splat_float32x8(0.0013390863f));
      float32x8 x16 = fma_float32x8(fma_float32x8(x14, x12, splat_float32x8(0.009618083f)), x12, splat_float32x8(0.05550357f));
      float32x8 x17 = fma_float32x8(fma_float32x8(x15, x13, splat_float32x8(0.009618083f)), x13, splat_float32x8(0.05550357f));
      float32x8 x18 = fma_float32x8(fma_float32x8(x16, x12, splat_float32x8(0.2402265f)), x12, splat_float32x8(0.6931472f));
      float32x8 x19 = fma_float32x8(fma_float32x8(x17, x13, splat_float32x8(0.2402265f)), x13, splat_float32x8(0.6931472f));
      float32x8 x20 = fma_float32x8(x18, x12, splat_float32x8(1.0f)) * (float32x8)(x10 << 23u);
      float32x8 x21 = fma_float32x8(x19, x13, splat_float32x8(1.0f)) * (float32x8)(x11 << 23u);
      store_float32x8(data2 + p1, x20 * (float32x8)((x8 - x10) << 23u));
      store_float32x8(data2 + p1 + 8, x21 * (float32x8)((x9 - x11) << 23u));
    }
    float32x8 acc0 = splat_float32x8(0.0f);
    float32x8 acc1 = splat_float32x8(0.0f);
    for (int64_t i2 = 0; i2 < 3; i2++) {
      int64_t p3 = i2 << 4;
      acc0 += load_float32x8(data2 + p3);
      acc1 += load_float32x8(data2 + p3 + 8);
    }
    float x22 = reduce_add_float32x8(acc0 + acc1) + reduce_add_float32x8(load_float32x8(data2 + 48));
    float32x8 x23 = select_float32x8(m0, splat_float32x8(0.0f), load_float32x8(data2 + 52));
    float32x8 x24 = splat_float32x8(x22 + reduce_add_float32x8(x23));
    for (int64_t i3 = 0; i3 < 4; i3++) {
      int64_t p4 = i3 < 3 ? i3 << 4 : 44;
      float32x8 x25 = load_float32x8(data2 + p4 + 8);
      int64_t p5 = p0 + p4;
      store_float32x8(data0 + p5, load_float32x8(data2 + p4) / x24);
      store_float32x8(data0 + p5 + 8, x25 / x24);
    }
  }
}

void threads_0(char **buffers, int64_t *variables) {
  float *data0 = (float *)buffers[0];
  float *data1 = (float *)buffers[1];
  float *data2 = (float *)buffers[2];
  int64_t var_part = variables[0];
  int64_t var_parts = variables[1];
  int64_t p0 = var_part << 12;
  int64_t x0 = floor_divide_index(p0, var_parts);
  int64_t p1 = x0 << 5;
  int64_t p2 = floor_divide_index(p0 + 4096, var_parts) - x0;
  for (int64_t i0 = 0; i0 < (p2 + 511) >> 9; i0++) {
    int64_t p3 = i0 << 9;
    if (*polygrad_stop) return;
    int64_t p4 = p2 - p3;
    for (int64_t i1 = 0; i1 < (p4 < 512 ? p4 : 512); i1++) {
      int64_t p5 = p1 + ((p3 + i1) << 5);
      float32x8 x1 = load_float32x8(data1 + p5 + 8);
      float32x8 x2 = load_float32x8(data1 + p5 + 16);
      float32x8 x3 = load_float32x8(data1 + p5 + 24);
      float32x8 x4 = load_float32x8(data2 + p5 + 8);
      float32x8 x5 = load_float32x8(data2 + p5 + 16);
      float32x8 x6 = load_float32x8(data2 + p5 + 24);
      store_float32x8(data0 + p5, load_float32x8(data1 + p5) + load_float32x8(data2 + p5));
      store_float32x8(data0 + p5 + 8, x1 + x4);
      store_float32x8(data0 + p5 + 16, x2 + x5);
      store_float32x8(data0 + p5 + 24, x3 + x6);
    }
  }
}
