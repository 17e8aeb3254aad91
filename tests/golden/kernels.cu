static __device__ inline float max_float32(float a, float b) {
  return (a < b) | (b != b) ? b : a;
}
#include <cuda_fp16.h>
static __device__ inline int floor_divide_int32(int a, int b) {
  int x0 = a % b;
  return a / b - ((x0 != 0) & ((x0 ^ b) < 0) ? 1 : 0);
}
static __device__ inline int floor_modulo_int32(int a, int b) {
  int x0 = a % b;
  return x0 + ((x0 != 0) & ((x0 ^ b) < 0) ? b : 0);
}

extern "C" __global__ void add_0(float *data0, float *data1, float *data2) {
  float4 v0 = *(float4 *)data1;
  float4 v1 = *(float4 *)(data1 + 4);
  float2 v2 = *(float2 *)(data1 + 6);
  float2 v3 = *(float2 *)(data1 + 8);
  float4 v4 = *(float4 *)data2;
  float4 v5 = *(float4 *)(data2 + 4);
  float2 v6 = *(float2 *)(data2 + 6);
  float2 v7 = *(float2 *)(data2 + 8);
  *(float4 *)data0 = make_float4(v0.x + v4.x, v0.y + v4.y, v0.z + v4.z, v0.w + v4.w);
  *(float4 *)(data0 + 4) = make_float4(v1.x + v5.x, v1.y + v5.y, v1.z + v5.z, v1.w + v5.w);
  *(float2 *)(data0 + 6) = make_float2(v2.x + v6.x, v2.y + v6.y);
  *(float2 *)(data0 + 8) = make_float2(v3.x + v7.x, v3.y + v7.y);
}

extern "C" __global__ void broadcast_0(float *data0, float *data1, float *data2) {
  float4 v0 = *(float4 *)data2;
  float x0 = v0.x;
  float x1 = v0.y;
  float x2 = v0.z;
  float x3 = v0.w;
  float4 v1 = *(float4 *)(data2 + 4);
  float x4 = v1.x;
  float x5 = v1.y;
  float x6 = v1.z;
  float x7 = v1.w;
  float x8 = data2[5];
  float x9 = data2[6];
  float x10 = data2[7];
  float x11 = data2[8];
  for (int i0 = 0; i0 < 4; i0++) {
    int p0 = i0 * 9;
    float x12 = data1[i0];
    data0[p0] = x12 * x0 + 1.0f;
    data0[p0 + 1] = x12 * x1 + 1.0f;
    data0[p0 + 2] = x12 * x2 + 1.0f;
    data0[p0 + 3] = x12 * x3 + 1.0f;
    data0[p0 + 4] = x12 * x4 + 1.0f;
    data0[p0 + 5] = x12 * x5 + 1.0f;
    data0[p0 + 6] = x12 * x6 + 1.0f;
    data0[p0 + 7] = x12 * x7 + 1.0f;
    data0[p0 + 5] = x12 * x8 + 1.0f;
    data0[p0 + 6] = x12 * x9 + 1.0f;
    data0[p0 + 7] = x12 * x10 + 1.0f;
    data0[p0 + 8] = x12 * x11 + 1.0f;
  }
}

extern "C" __global__ void sum_rows_0(float *data0, float *data1) {
  bool m0 = 0 < 2;
  bool m1 = 1 < 2;
  bool m2 = 2 < 2;
  bool m3 = 3 < 2;
  for (int i0 = 0; i0 < 5; i0++) {
    int p0 = i0 * 18;
    float2 v0 = *(float2 *)(data1 + p0);
    float2 v1 = *(float2 *)(data1 + p0 + 2);
    float2 v2 = *(float2 *)(data1 + p0 + 4);
    float2 v3 = *(float2 *)(data1 + p0 + 6);
    float2 v4 = *(float2 *)(data1 + p0 + 8);
    float2 v5 = *(float2 *)(data1 + p0 + 10);
    float2 v6 = *(float2 *)(data1 + p0 + 12);
    float2 v7 = *(float2 *)(data1 + p0 + 14);
    float2 v8 = *(float2 *)(data1 + p0 + 14);
    float2 v9 = *(float2 *)(data1 + p0 + 16);
    float x0 = v0.x + v4.x + (v2.x + v6.x) + (v1.x + v5.x + (v3.x + v7.x)) + (v0.y + v4.y + (v2.y + v6.y) + (v1.y + v5.y + (v3.y + v7.y)));
    float x1 = (m0 ? 0.0f : v8.x) + (m2 ? 0.0f : v9.x) + ((m1 ? 0.0f : v8.y) + (m3 ? 0.0f : v9.y));
    data0[i0] = x0 + x1;
  }
}

extern "C" __global__ void max_columns_0(float *data0, float *data1) {
  float4 v0 = *(float4 *)data1;
  float4 v1 = *(float4 *)(data1 + 8);
  float4 v2 = *(float4 *)(data1 + 16);
  float4 v3 = *(float4 *)(data1 + 24);
  float4 v4 = *(float4 *)(data1 + 32);
  float4 v5 = *(float4 *)(data1 + 40);
  float4 v6 = *(float4 *)(data1 + 4);
  float4 v7 = *(float4 *)(data1 + 12);
  float4 v8 = *(float4 *)(data1 + 20);
  float4 v9 = *(float4 *)(data1 + 28);
  float4 v10 = *(float4 *)(data1 + 36);
  float4 v11 = *(float4 *)(data1 + 44);
  float x0 = max_float32(max_float32(max_float32(v0.x, v3.x), max_float32(v1.x, v4.x)), max_float32(v2.x, v5.x));
  float x1 = max_float32(max_float32(max_float32(v0.y, v3.y), max_float32(v1.y, v4.y)), max_float32(v2.y, v5.y));
  float x2 = max_float32(max_float32(max_float32(v0.z, v3.z), max_float32(v1.z, v4.z)), max_float32(v2.z, v5.z));
  float x3 = max_float32(max_float32(max_float32(v0.w, v3.w), max_float32(v1.w, v4.w)), max_float32(v2.w, v5.w));
  float x4 = max_float32(max_float32(max_float32(v6.x, v9.x), max_float32(v7.x, v10.x)), max_float32(v8.x, v11.x));
  float x5 = max_float32(max_float32(max_float32(v6.y, v9.y), max_float32(v7.y, v10.y)), max_float32(v8.y, v11.y));
  float x6 = max_float32(max_float32(max_float32(v6.z, v9.z), max_float32(v7.z, v10.z)), max_float32(v8.z, v11.z));
  float x7 = max_float32(max_float32(max_float32(v6.w, v9.w), max_float32(v7.w, v10.w)), max_float32(v8.w, v11.w));
  *(float4 *)data0 = make_float4(x0, x1, x2, x3);
  *(float4 *)(data0 + 4) = make_float4(x4, x5, x6, x7);
}

extern "C" __global__ void matmul_0(float *data0, float *data1, float *data2) {
  for (int i0 = 0; i0 < 2; i0++) {
    int p0 = i0 * 48;
    float acc0 = 0.0f;
    float acc1 = 0.0f;
    float acc2 = 0.0f;
    float acc3 = 0.0f;
    float acc4 = 0.0f;
    float acc5 = 0.0f;
    float acc6 = 0.0f;
    float acc7 = 0.0f;
    float acc8 = 0.0f;
    float acc9 = 0.0f;
    float acc10 = 0.0f;
    float acc11 = 0.0f;
    float acc12 = 0.0f;
    float acc13 = 0.0f;
    float acc14 = 0.0f;
    float acc15 = 0.0f;
    float acc16 = 0.0f;
    float acc17 = 0.0f;
    float acc18 = 0.0f;
    float acc19 = 0.0f;
    float acc20 = 0.0f;
    float acc21 = 0.0f;
    float acc22 = 0.0f;
    float acc23 = 0.0f;
    float acc24 = 0.0f;
    float acc25 = 0.0f;
    float acc26 = 0.0f;
    float acc27 = 0.0f;
    float acc28 = 0.0f;
    float acc29 = 0.0f;
    float acc30 = 0.0f;
    float acc31 = 0.0f;
    for (int i1 = 0; i1 < 12; i1++) {
      int p1 = p0 + i1;
      int p2 = i1 << 3;
      float x0 = data1[p1];
      float4 v0 = *(float4 *)(data2 + p2);
      float x1 = v0.x;
      float x2 = v0.y;
      float x3 = v0.z;
      float x4 = v0.w;
      float4 v1 = *(float4 *)(data2 + p2 + 4);
      float x5 = v1.x;
      float x6 = v1.y;
      float x7 = v1.z;
      float x8 = v1.w;
      float x9 = data1[p1 + 12];
      float x10 = data1[p1 + 24];
      float x11 = data1[p1 + 36];
      acc0 = fmaf(x0, x1, acc0);
      acc1 = fmaf(x0, x2, acc1);
      acc2 = fmaf(x0, x3, acc2);
      acc3 = fmaf(x0, x4, acc3);
      acc4 = fmaf(x0, x5, acc4);
      acc5 = fmaf(x0, x6, acc5);
      acc6 = fmaf(x0, x7, acc6);
      acc7 = fmaf(x0, x8, acc7);
      acc8 = fmaf(x9, x1, acc8);
      acc9 = fmaf(x9, x2, acc9);
      acc10 = fmaf(x9, x3, acc10);
      acc11 = fmaf(x9, x4, acc11);
      acc12 = fmaf(x9, x5, acc12);
      acc13 = fmaf(x9, x6, acc13);
      acc14 = fmaf(x9, x7, acc14);
      acc15 = fmaf(x9, x8, acc15);
      acc16 = fmaf(x10, x1, acc16);
      acc17 = fmaf(x10, x2, acc17);
      acc18 = fmaf(x10, x3, acc18);
      acc19 = fmaf(x10, x4, acc19);
      acc20 = fmaf(x10, x5, acc20);
      acc21 = fmaf(x10, x6, acc21);
      acc22 = fmaf(x10, x7, acc22);
      acc23 = fmaf(x10, x8, acc23);
      acc24 = fmaf(x11, x1, acc24);
      acc25 = fmaf(x11, x2, acc25);
      acc26 = fmaf(x11, x3, acc26);
      acc27 = fmaf(x11, x4, acc27);
      acc28 = fmaf(x11, x5, acc28);
      acc29 = fmaf(x11, x6, acc29);
      acc30 = fmaf(x11, x7, acc30);
      acc31 = fmaf(x11, x8, acc31);
    }
    int p3 = i0 << 5;
    *(float4 *)(data0 + p3) = make_float4(acc0, acc1, acc2, acc3);
    *(float4 *)(data0 + p3 + 4) = make_float4(acc4, acc5, acc6, acc7);
    *(float4 *)(data0 + p3 + 8) = make_float4(acc8, acc9, acc10, acc11);
    *(float4 *)(data0 + p3 + 12) = make_float4(acc12, acc13, acc14, acc15);
    *(float4 *)(data0 + p3 + 16) = make_float4(acc16, acc17, acc18, acc19);
    *(float4 *)(data0 + p3 + 20) = make_float4(acc20, acc21, acc22, acc23);
    *(float4 *)(data0 + p3 + 24) = make_float4(acc24, acc25, acc26, acc27);
    *(float4 *)(data0 + p3 + 28) = make_float4(acc28, acc29, acc30, acc31);
  }
}

extern "C" __global__ void softmax_0(float *data0, float *data1) {
  for (int i0 = 0; i0 < 3; i0++) {
    int p0 = i0 * 20;
    float acc0 = -__uint_as_float(0x7f800000u);
    float acc1 = -__uint_as_float(0x7f800000u);
    float acc2 = -__uint_as_float(0x7f800000u);
    float acc3 = -__uint_as_float(0x7f800000u);
    float acc4 = -__uint_as_float(0x7f800000u);
    float acc5 = -__uint_as_float(0x7f800000u);
    float acc6 = -__uint_as_float(0x7f800000u);
    float acc7 = -__uint_as_float(0x7f800000u);
    for (int i1 = 0; i1 < 2; i1++) {
      int p1 = p0 + (i1 << 3);
      float4 v0 = *(float4 *)(data1 + p1);
      float4 v1 = *(float4 *)(data1 + p1 + 4);
      acc0 = max_float32(acc0, v0.x);
      acc1 = max_float32(acc1, v0.y);
      acc2 = max_float32(acc2, v0.z);
      acc3 = max_float32(acc3, v0.w);
      acc4 = max_float32(acc4, v1.x);
      acc5 = max_float32(acc5, v1.y);
      acc6 = max_float32(acc6, v1.z);
      acc7 = max_float32(acc7, v1.w);
    }
    float4 v2 = *(float4 *)(data1 + p0 + 16);
    float x0 = max_float32(max_float32(max_float32(acc0, acc4), max_float32(acc2, acc6)), max_float32(max_float32(acc1, acc5), max_float32(acc3, acc7)));
    float x1 = max_float32(x0, max_float32(max_float32(v2.x, v2.z), max_float32(v2.y, v2.w)));
    data0[i0] = x1;
  }
}

extern "C" __global__ void softmax_1(float *data0, float *data1, float *data2) {
  for (int i0 = 0; i0 < 3; i0++) {
    float x0 = data2[i0];
    int p0 = i0 * 20;
    float acc0 = 0.0f;
    float acc1 = 0.0f;
    float acc2 = 0.0f;
    float acc3 = 0.0f;
    float acc4 = 0.0f;
    float acc5 = 0.0f;
    float acc6 = 0.0f;
    float acc7 = 0.0f;
    for (int i1 = 0; i1 < 2; i1++) {
      int p1 = p0 + (i1 << 3);
      float4 v0 = *(float4 *)(data1 + p1);
      float4 v1 = *(float4 *)(data1 + p1 + 4);
      float x1 = v0.x - x0;
      float x2 = v0.y - x0;
      float x3 = v0.z - x0;
      float x4 = v0.w - x0;
      float x5 = v1.x - x0;
      float x6 = v1.y - x0;
      float x7 = v1.z - x0;
      float x8 = v1.w - x0;
      float x9 = x1 < -110.73026f ? -110.73026f : x1;
      float x10 = x2 < -110.73026f ? -110.73026f : x2;
      float x11 = x3 < -110.73026f ? -110.73026f : x3;
      float x12 = x4 < -110.73026f ? -110.73026f : x4;
      float x13 = x5 < -110.73026f ? -110.73026f : x5;
      float x14 = x6 < -110.73026f ? -110.73026f : x6;
      float x15 = x7 < -110.73026f ? -110.73026f : x7;
      float x16 = x8 < -110.73026f ? -110.73026f : x8;
      float x17 = fmaf(x9, 1.442695f, 12583072.0f);
      float x18 = fmaf(x10, 1.442695f, 12583072.0f);
      float x19 = fmaf(x11, 1.442695f, 12583072.0f);
      float x20 = fmaf(x12, 1.442695f, 12583072.0f);
      float x21 = fmaf(x13, 1.442695f, 12583072.0f);
      float x22 = fmaf(x14, 1.442695f, 12583072.0f);
      float x23 = fmaf(x15, 1.442695f, 12583072.0f);
      float x24 = fmaf(x16, 1.442695f, 12583072.0f);
      float x25 = fmaf(x9, 1.925963e-08f, fmaf(x9, 1.442695f, 12583072.0f - x17));
      float x26 = fmaf(x10, 1.925963e-08f, fmaf(x10, 1.442695f, 12583072.0f - x18));
      float x27 = fmaf(x11, 1.925963e-08f, fmaf(x11, 1.442695f, 12583072.0f - x19));
      float x28 = fmaf(x12, 1.925963e-08f, fmaf(x12, 1.442695f, 12583072.0f - x20));
      float x29 = fmaf(x13, 1.925963e-08f, fmaf(x13, 1.442695f, 12583072.0f - x21));
      float x30 = fmaf(x14, 1.925963e-08f, fmaf(x14, 1.442695f, 12583072.0f - x22));
      float x31 = fmaf(x15, 1.925963e-08f, fmaf(x15, 1.442695f, 12583072.0f - x23));
      float x32 = fmaf(x16, 1.925963e-08f, fmaf(x16, 1.442695f, 12583072.0f - x24));
      float x33 = fmaf(fmaf(fmaf(0.00015453163f, x25, 0.0013390863f), x25, 0.009618083f), x25, 0.05550357f);
      float x34 = fmaf(fmaf(fmaf(0.00015453163f, x26, 0.0013390863f), x26, 0.009618083f), x26, 0.05550357f);
      float x35 = fmaf(fmaf(fmaf(0.00015453163f, x27, 0.0013390863f), x27, 0.009618083f), x27, 0.05550357f);
      float x36 = fmaf(fmaf(fmaf(0.00015453163f, x28, 0.0013390863f), x28, 0.009618083f), x28, 0.05550357f);
      float x37 = fmaf(fmaf(fmaf(0.00015453163f, x29, 0.0013390863f), x29, 0.009618083f), x29, 0.05550357f);
      float x38 = fmaf(fmaf(fmaf(0.00015453163f, x30, 0.0013390863f), x30, 0.009618083f), x30, 0.05550357f);
      float x39 = fmaf(fmaf(fmaf(0.00015453163f, x31, 0.0013390863f), x31, 0.009618083f), x31, 0.05550357f);
      float x40 = fmaf(fmaf(fmaf(0.00015453163f, x32, 0.0013390863f), x32, 0.009618083f), x32, 0.05550357f);
      float x41 = fmaf(fmaf(fmaf(x33, x25, 0.2402265f), x25, 0.6931472f), x25, 1.0f) * __uint_as_float(__float_as_uint(x17) << 23u);
      float x42 = fmaf(fmaf(fmaf(x34, x26, 0.2402265f), x26, 0.6931472f), x26, 1.0f) * __uint_as_float(__float_as_uint(x18) << 23u);
      float x43 = fmaf(fmaf(fmaf(x35, x27, 0.2402265f), x27, 0.6931472f), x27, 1.0f) * __uint_as_float(__float_as_uint(x19) << 23u);
      float x44 = fmaf(fmaf(fmaf(x36, x28, 0.2402265f), x28, 0.6931472f), x28, 1.0f) * __uint_as_float(__float_as_uint(x20) << 23u);
      float x45 = fmaf(fmaf(fmaf(x37, x29, 0.2402265f), x29, 0.6931472f), x29, 1.0f) * __uint_as_float(__float_as_uint(x21) << 23u);
      float x46 = fmaf(fmaf(fmaf(x38, x30, 0.2402265f), x30, 0.6931472f), x30, 1.0f) * __uint_as_float(__float_as_uint(x22) << 23u);
      float x47 = fmaf(fmaf(fmaf(x39, x31, 0.2402265f), x31, 0.6931472f), x31, 1.0f) * __uint_as_float(__float_as_uint(x23) << 23u);
      float x48 = fmaf(fmaf(fmaf(x40, x32, 0.2402265f), x32, 0.6931472f), x32, 1.0f) * __uint_as_float(__float_as_uint(x24) << 23u);
      acc0 = fmaf(x41, 1.1641532e-10f, acc0);
      acc1 = fmaf(x42, 1.1641532e-10f, acc1);
      acc2 = fmaf(x43, 1.1641532e-10f, acc2);
      acc3 = fmaf(x44, 1.1641532e-10f, acc3);
      acc4 = fmaf(x45, 1.1641532e-10f, acc4);
      acc5 = fmaf(x46, 1.1641532e-10f, acc5);
      acc6 = fmaf(x47, 1.1641532e-10f, acc6);
      acc7 = fmaf(x48, 1.1641532e-10f, acc7);
    }
    float4 v2 = *(float4 *)(data1 + p0 + 16);
    float x49 = v2.x - x0;
    float x50 = v2.y - x0;
    float x51 = v2.z - x0;
    float x52 = v2.w - x0;
    float x53 = x49 < -110.73026f ? -110.73026f : x49;
    float x54 = x50 < -110.73026f ? -110.73026f : x50;
    float x55 = x51 < -110.73026f ? -110.73026f : x51;
    float x56 = x52 < -110.73026f ? -110.73026f : x52;
    float x57 = fmaf(x53, 1.442695f, 12583072.0f);
    float x58 = fmaf(x54, 1.442695f, 12583072.0f);
    float x59 = fmaf(x55, 1.442695f, 12583072.0f);
    float x60 = fmaf(x56, 1.442695f, 12583072.0f);
    float x61 = fmaf(x53, 1.925963e-08f, fmaf(x53, 1.442695f, 12583072.0f - x57));
    float x62 = fmaf(x54, 1.925963e-08f, fmaf(x54, 1.442695f, 12583072.0f - x58));
    float x63 = fmaf(x55, 1.925963e-08f, fmaf(x55, 1.442695f, 12583072.0f - x59));
    float x64 = fmaf(x56, 1.925963e-08f, fmaf(x56, 1.442695f, 12583072.0f - x60));
    float x65 = fmaf(fmaf(fmaf(0.00015453163f, x61, 0.0013390863f), x61, 0.009618083f), x61, 0.05550357f);
    float x66 = fmaf(fmaf(fmaf(0.00015453163f, x62, 0.0013390863f), x62, 0.009618083f), x62, 0.05550357f);
    float x67 = fmaf(fmaf(fmaf(0.00015453163f, x63, 0.0013390863f), x63, 0.009618083f), x63, 0.05550357f);
    float x68 = fmaf(fmaf(fmaf(0.00015453163f, x64, 0.0013390863f), x64, 0.009618083f), x64, 0.05550357f);
    float x69 = fmaf(fmaf(fmaf(x65, x61, 0.2402265f), x61, 0.6931472f), x61, 1.0f) * __uint_as_float(__float_as_uint(x57) << 23u);
    float x70 = fmaf(fmaf(fmaf(x66, x62, 0.2402265f), x62, 0.6931472f), x62, 1.0f) * __uint_as_float(__float_as_uint(x58) << 23u);
    float x71 = fmaf(fmaf(fmaf(x67, x63, 0.2402265f), x63, 0.6931472f), x63, 1.0f) * __uint_as_float(__float_as_uint(x59) << 23u);
    float x72 = fmaf(fmaf(fmaf(x68, x64, 0.2402265f), x64, 0.6931472f), x64, 1.0f) * __uint_as_float(__float_as_uint(x60) << 23u);
    float x73 = x69 * 1.1641532e-10f + x71 * 1.1641532e-10f + (x70 * 1.1641532e-10f + x72 * 1.1641532e-10f);
    float x74 = 1.0f / (acc0 + acc4 + (acc2 + acc6) + (acc1 + acc5 + (acc3 + acc7)) + x73);
    data0[i0] = x74;
  }
}

extern "C" __global__ void softmax_2(float *data0, float *data1, float *data2, float *data3) {
  for (int i0 = 0; i0 < 3; i0++) {
    float x0 = data2[i0];
    float x1 = data3[i0];
    int p0 = i0 * 20;
    for (int i1 = 0; i1 < 5; i1++) {
      int p1 = p0 + (i1 << 2);
      float4 v0 = *(float4 *)(data1 + p1);
      float x2 = v0.x - x0;
      float x3 = v0.y - x0;
      float x4 = v0.z - x0;
      float x5 = v0.w - x0;
      float x6 = x2 < -110.73026f ? -110.73026f : x2;
      float x7 = x3 < -110.73026f ? -110.73026f : x3;
      float x8 = x4 < -110.73026f ? -110.73026f : x4;
      float x9 = x5 < -110.73026f ? -110.73026f : x5;
      float x10 = fmaf(x6, 1.442695f, 12583072.0f);
      float x11 = fmaf(x7, 1.442695f, 12583072.0f);
      float x12 = fmaf(x8, 1.442695f, 12583072.0f);
      float x13 = fmaf(x9, 1.442695f, 12583072.0f);
      float x14 = fmaf(x6, 1.925963e-08f, fmaf(x6, 1.442695f, 12583072.0f - x10));
      float x15 = fmaf(x7, 1.925963e-08f, fmaf(x7, 1.442695f, 12583072.0f - x11));
      float x16 = fmaf(x8, 1.925963e-08f, fmaf(x8, 1.442695f, 12583072.0f - x12));
      float x17 = fmaf(x9, 1.925963e-08f, fmaf(x9, 1.442695f, 12583072.0f - x13));
      float x18 = fmaf(fmaf(fmaf(0.00015453163f, x14, 0.0013390863f), x14, 0.009618083f), x14, 0.05550357f);
      float x19 = fmaf(fmaf(fmaf(0.00015453163f, x15, 0.0013390863f), x15, 0.009618083f), x15, 0.05550357f);
      float x20 = fmaf(fmaf(fmaf(0.00015453163f, x16, 0.0013390863f), x16, 0.009618083f), x16, 0.05550357f);
      float x21 = fmaf(fmaf(fmaf(0.00015453163f, x17, 0.0013390863f), x17, 0.009618083f), x17, 0.05550357f);
      float x22 = fmaf(fmaf(fmaf(x18, x14, 0.2402265f), x14, 0.6931472f), x14, 1.0f) * __uint_as_float(__float_as_uint(x10) << 23u);
      float x23 = fmaf(fmaf(fmaf(x19, x15, 0.2402265f), x15, 0.6931472f), x15, 1.0f) * __uint_as_float(__float_as_uint(x11) << 23u);
      float x24 = fmaf(fmaf(fmaf(x20, x16, 0.2402265f), x16, 0.6931472f), x16, 1.0f) * __uint_as_float(__float_as_uint(x12) << 23u);
      float x25 = fmaf(fmaf(fmaf(x21, x17, 0.2402265f), x17, 0.6931472f), x17, 1.0f) * __uint_as_float(__float_as_uint(x13) << 23u);
      *(float4 *)(data0 + p1) = make_float4(x22 * 1.1641532e-10f * x1, x23 * 1.1641532e-10f * x1, x24 * 1.1641532e-10f * x1, x25 * 1.1641532e-10f * x1);
    }
  }
}

extern "C" __global__ void transpose_pad_0(float *data0, float *data1) {
  for (int i0 = 0; i0 < 2; i0++) {
    int p0 = i0 < 1 ? i0 << 2 : 3;
    int p1 = p0 * 6;
    bool m0 = 0 < p0;
    bool m1 = 0 < p0 + 1;
    bool m2 = 0 < p0 + 2;
    bool m3 = 0 < p0 + 3;
    for (int i1 = 0; i1 < 2; i1++) {
      int p2 = i1 < 1 ? i1 << 2 : 2;
      int p3 = p0 + p2 * 6;
      bool m4 = p2 < 4;
      bool m5 = p2 + 1 < 4;
      bool m6 = p2 + 2 < 4;
      bool m7 = p2 + 3 < 4;
      bool m8 = m0 & m4;
      bool m9 = m0 & m5;
      bool m10 = m0 & m6;
      bool m11 = m0 & m7;
      bool m12 = m1 & m4;
      bool m13 = m1 & m5;
      bool m14 = m1 & m6;
      bool m15 = m1 & m7;
      bool m16 = m2 & m4;
      bool m17 = m2 & m5;
      bool m18 = m2 & m6;
      bool m19 = m2 & m7;
      bool m20 = m3 & m4;
      bool m21 = m3 & m5;
      bool m22 = m3 & m6;
      bool m23 = m3 & m7;
      float x0 = data1[(m9 ? p3 : -5) + 5];
      float x1 = data1[(m10 ? p3 : -11) + 11];
      float x2 = data1[(m11 ? p3 : -17) + 17];
      float x3 = data1[m12 ? p3 : 0];
      float x4 = data1[(m13 ? p3 : -6) + 6];
      float x5 = data1[(m14 ? p3 : -12) + 12];
      float x6 = data1[(m15 ? p3 : -18) + 18];
      float x7 = data1[(m16 ? p3 : -1) + 1];
      float x8 = data1[(m17 ? p3 : -7) + 7];
      float x9 = data1[(m18 ? p3 : -13) + 13];
      float x10 = data1[(m19 ? p3 : -19) + 19];
      float x11 = data1[(m20 ? p3 : -2) + 2];
      float x12 = data1[(m21 ? p3 : -8) + 8];
      float x13 = data1[(m22 ? p3 : -14) + 14];
      float x14 = data1[(m23 ? p3 : -20) + 20];
      int p4 = p1 + p2;
      data0[p4] = m8 ? data1[(m8 ? p3 : 1) - 1] : 0.0f;
      data0[p4 + 1] = m9 ? x0 : 0.0f;
      data0[p4 + 2] = m10 ? x1 : 0.0f;
      data0[p4 + 3] = m11 ? x2 : 0.0f;
      data0[p4 + 6] = m12 ? x3 : 0.0f;
      data0[p4 + 7] = m13 ? x4 : 0.0f;
      data0[p4 + 8] = m14 ? x5 : 0.0f;
      data0[p4 + 9] = m15 ? x6 : 0.0f;
      data0[p4 + 12] = m16 ? x7 : 0.0f;
      data0[p4 + 13] = m17 ? x8 : 0.0f;
      data0[p4 + 14] = m18 ? x9 : 0.0f;
      data0[p4 + 15] = m19 ? x10 : 0.0f;
      data0[p4 + 18] = m20 ? x11 : 0.0f;
      data0[p4 + 19] = m21 ? x12 : 0.0f;
      data0[p4 + 20] = m22 ? x13 : 0.0f;
      data0[p4 + 21] = m23 ? x14 : 0.0f;
    }
  }
}

extern "C" __global__ void gather_0(float *data0, int *data1, float *data2) {
  for (int i0 = 0; i0 < 3; i0++) {
    int x0 = data1[i0];
    int x1 = x0 < 0 ? (int)((unsigned)x0 + 50u) : x0;
    bool m0 = (-1 < x1) & (x1 < 50);
    int p0 = m0 ? x1 << 2 : 0;
    *(float4 *)(data0 + (i0 << 2)) = make_float4(m0 ? data2[p0] : 0.0f, m0 ? data2[p0 + 1] : 0.0f, m0 ? data2[p0 + 2] : 0.0f, m0 ? data2[p0 + 3] : 0.0f);
  }
}

extern "C" __global__ void half_0(half *data0, half *data1) {
  uint2 v0 = *(uint2 *)data1;
  unsigned x0 = v0.x;
  unsigned x1 = v0.y;
  uint2 v1 = *(uint2 *)(data1 + 4);
  unsigned x2 = v1.x;
  unsigned x3 = v1.y;
  half x4 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)x0)) * 3.0f);
  half x5 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)(x0 >> 16))) * 3.0f);
  half x6 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)x1)) * 3.0f);
  half x7 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)(x1 >> 16))) * 3.0f);
  half x8 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)x2)) * 3.0f);
  half x9 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)(x2 >> 16))) * 3.0f);
  half x10 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)x3)) * 3.0f);
  half x11 = __float2half_rn(__half2float(__ushort_as_half((unsigned short)(x3 >> 16))) * 3.0f);
  unsigned x12 = __half_as_ushort(__float2half_rn(__half2float(x4) + 1.0f)) | (unsigned)__half_as_ushort(__float2half_rn(__half2float(x5) + 1.0f)) << 16;
  unsigned x13 = __half_as_ushort(__float2half_rn(__half2float(x6) + 1.0f)) | (unsigned)__half_as_ushort(__float2half_rn(__half2float(x7) + 1.0f)) << 16;
  *(uint2 *)data0 = make_uint2(x12, x13);
  unsigned x14 = __half_as_ushort(__float2half_rn(__half2float(x8) + 1.0f)) | (unsigned)__half_as_ushort(__float2half_rn(__half2float(x9) + 1.0f)) << 16;
  unsigned x15 = __half_as_ushort(__float2half_rn(__half2float(x10) + 1.0f)) | (unsigned)__half_as_ushort(__float2half_rn(__half2float(x11) + 1.0f)) << 16;
  *(uint2 *)(data0 + 4) = make_uint2(x14, x15);
}

extern "C" __global__ void integers_0(int *data0, int *data1, int *data2) {
  int4 v0 = *(int4 *)data1;
  int4 v1 = *(int4 *)(data1 + 4);
  int x0 = data1[5];
  int x1 = data1[6];
  int x2 = data1[7];
  int x3 = data1[8];
  int4 v2 = *(int4 *)data2;
  int x4 = v2.x;
  int x5 = v2.y;
  int x6 = v2.z;
  int x7 = v2.w;
  int4 v3 = *(int4 *)(data2 + 4);
  int x8 = v3.x;
  int x9 = v3.y;
  int x10 = v3.z;
  int x11 = v3.w;
  int x12 = data2[5];
  int x13 = data2[6];
  int x14 = data2[7];
  int x15 = data2[8];
  bool m0 = (x4 == 0) | (x4 == -1);
  bool m1 = (x5 == 0) | (x5 == -1);
  bool m2 = (x6 == 0) | (x6 == -1);
  bool m3 = (x7 == 0) | (x7 == -1);
  bool m4 = (x8 == 0) | (x8 == -1);
  bool m5 = (x9 == 0) | (x9 == -1);
  bool m6 = (x10 == 0) | (x10 == -1);
  bool m7 = (x11 == 0) | (x11 == -1);
  bool m8 = (x12 == 0) | (x12 == -1);
  bool m9 = (x13 == 0) | (x13 == -1);
  bool m10 = (x14 == 0) | (x14 == -1);
  bool m11 = (x15 == 0) | (x15 == -1);
  *(int4 *)data0 = make_int4(m0 ? 0 : floor_modulo_int32(floor_divide_int32(v0.x, 3), m0 ? 1 : x4), m1 ? 0 : floor_modulo_int32(floor_divide_int32(v0.y, 3), m1 ? 1 : x5), m2 ? 0 : floor_modulo_int32(floor_divide_int32(v0.z, 3), m2 ? 1 : x6), m3 ? 0 : floor_modulo_int32(floor_divide_int32(v0.w, 3), m3 ? 1 : x7));
  *(int4 *)(data0 + 4) = make_int4(m4 ? 0 : floor_modulo_int32(floor_divide_int32(v1.x, 3), m4 ? 1 : x8), m5 ? 0 : floor_modulo_int32(floor_divide_int32(v1.y, 3), m5 ? 1 : x9), m6 ? 0 : floor_modulo_int32(floor_divide_int32(v1.z, 3), m6 ? 1 : x10), m7 ? 0 : floor_modulo_int32(floor_divide_int32(v1.w, 3), m7 ? 1 : x11));
  data0[5] = m8 ? 0 : floor_modulo_int32(floor_divide_int32(x0, 3), m8 ? 1 : x12);
  data0[6] = m9 ? 0 : floor_modulo_int32(floor_divide_int32(x1, 3), m9 ? 1 : x13);
  data0[7] = m10 ? 0 : floor_modulo_int32(floor_divide_int32(x2, 3), m10 ? 1 : x14);
  data0[8] = m11 ? 0 : floor_modulo_int32(floor_divide_int32(x3, 3), m11 ? 1 : x15);
}

extern "C" __global__ void convolution_0(float *data0, float *data1, float *data2) {
  for (int i0 = 0; i0 < 2; i0++) {
    int p0 = i0 * 3;
    int p1 = p0 + 1;
    int p2 = p0 + 2;
    int p3 = i0 * 18;
    float acc0 = 0.0f;
    float acc1 = 0.0f;
    float acc2 = 0.0f;
    float acc3 = 0.0f;
    float acc4 = 0.0f;
    float acc5 = 0.0f;
    float acc6 = 0.0f;
    float acc7 = 0.0f;
    float acc8 = 0.0f;
    float acc9 = 0.0f;
    float acc10 = 0.0f;
    float acc11 = 0.0f;
    float acc12 = 0.0f;
    float acc13 = 0.0f;
    float acc14 = 0.0f;
    float acc15 = 0.0f;
    float acc16 = 0.0f;
    float acc17 = 0.0f;
    float acc18 = 0.0f;
    float acc19 = 0.0f;
    float acc20 = 0.0f;
    float acc21 = 0.0f;
    float acc22 = 0.0f;
    float acc23 = 0.0f;
    float acc24 = 0.0f;
    float acc25 = 0.0f;
    float acc26 = 0.0f;
    float acc27 = 0.0f;
    float acc28 = 0.0f;
    float acc29 = 0.0f;
    float acc30 = 0.0f;
    float acc31 = 0.0f;
    float acc32 = 0.0f;
    float acc33 = 0.0f;
    float acc34 = 0.0f;
    float acc35 = 0.0f;
    float acc36 = 0.0f;
    float acc37 = 0.0f;
    float acc38 = 0.0f;
    float acc39 = 0.0f;
    float acc40 = 0.0f;
    float acc41 = 0.0f;
    float acc42 = 0.0f;
    float acc43 = 0.0f;
    float acc44 = 0.0f;
    float acc45 = 0.0f;
    float acc46 = 0.0f;
    float acc47 = 0.0f;
    float acc48 = 0.0f;
    float acc49 = 0.0f;
    float acc50 = 0.0f;
    float acc51 = 0.0f;
    float acc52 = 0.0f;
    float acc53 = 0.0f;
    float acc54 = 0.0f;
    float acc55 = 0.0f;
    float acc56 = 0.0f;
    float acc57 = 0.0f;
    float acc58 = 0.0f;
    float acc59 = 0.0f;
    float acc60 = 0.0f;
    float acc61 = 0.0f;
    float acc62 = 0.0f;
    float acc63 = 0.0f;
    float acc64 = 0.0f;
    float acc65 = 0.0f;
    float acc66 = 0.0f;
    float acc67 = 0.0f;
    float acc68 = 0.0f;
    float acc69 = 0.0f;
    float acc70 = 0.0f;
    float acc71 = 0.0f;
    for (int i1 = 0; i1 < 2; i1++) {
      int p4 = p3 + i1 * 36;
      int p5 = i1 * 9;
      for (int i2 = 0; i2 < 3; i2++) {
        int p6 = p0 + i2;
        int p7 = p1 + i2;
        int p8 = p2 + i2;
        int p9 = p4 + i2 * 6;
        int p10 = p5 + i2 * 3;
        bool m0 = (0 < p6) & (p6 < 7);
        bool m1 = (0 < p7) & (p7 < 7);
        bool m2 = (0 < p8) & (p8 < 7);
        for (int i3 = 0; i3 < 3; i3++) {
          int p11 = p9 + i3;
          int p12 = 0 + i3;
          int p13 = 1 + i3;
          int p14 = 2 + i3;
          int p15 = 3 + i3;
          int p16 = 2 + i3;
          int p17 = 3 + i3;
          int p18 = 4 + i3;
          int p19 = 5 + i3;
          bool m3 = 0 < p12;
          bool m4 = 0 < p13;
          bool m5 = 0 < p14;
          bool m6 = 0 < p15;
          bool m7 = 0 < p16;
          bool m8 = 0 < p17;
          bool m9 = 0 < p18;
          bool m10 = 0 < p19;
          bool m11 = p12 < 7;
          bool m12 = p13 < 7;
          bool m13 = p14 < 7;
          bool m14 = p15 < 7;
          bool m15 = p16 < 7;
          bool m16 = p17 < 7;
          bool m17 = p18 < 7;
          bool m18 = p19 < 7;
          float x0 = (m0 & m3) & m11 ? data1[p11 - 7] : 0.0f;
          float x1 = (m0 & m4) & m12 ? data1[p11 - 6] : 0.0f;
          float x2 = (m0 & m5) & m13 ? data1[p11 - 5] : 0.0f;
          float x3 = (m0 & m6) & m14 ? data1[p11 - 4] : 0.0f;
          float x4 = (m0 & m7) & m15 ? data1[p11 - 5] : 0.0f;
          float x5 = (m0 & m8) & m16 ? data1[p11 - 4] : 0.0f;
          float x6 = (m0 & m9) & m17 ? data1[p11 - 3] : 0.0f;
          float x7 = (m0 & m10) & m18 ? data1[p11 - 2] : 0.0f;
          float x8 = (m1 & m3) & m11 ? data1[p11 - 1] : 0.0f;
          float x9 = (m1 & m4) & m12 ? data1[p11] : 0.0f;
          float x10 = (m1 & m5) & m13 ? data1[p11 + 1] : 0.0f;
          float x11 = (m1 & m6) & m14 ? data1[p11 + 2] : 0.0f;
          float x12 = (m1 & m7) & m15 ? data1[p11 + 1] : 0.0f;
          float x13 = (m1 & m8) & m16 ? data1[p11 + 2] : 0.0f;
          float x14 = (m1 & m9) & m17 ? data1[p11 + 3] : 0.0f;
          float x15 = (m1 & m10) & m18 ? data1[p11 + 4] : 0.0f;
          float x16 = (m2 & m3) & m11 ? data1[p11 + 5] : 0.0f;
          float x17 = (m2 & m4) & m12 ? data1[p11 + 6] : 0.0f;
          float x18 = (m2 & m5) & m13 ? data1[p11 + 7] : 0.0f;
          float x19 = (m2 & m6) & m14 ? data1[p11 + 8] : 0.0f;
          float x20 = (m2 & m7) & m15 ? data1[p11 + 7] : 0.0f;
          float x21 = (m2 & m8) & m16 ? data1[p11 + 8] : 0.0f;
          float x22 = (m2 & m9) & m17 ? data1[p11 + 9] : 0.0f;
          float x23 = (m2 & m10) & m18 ? data1[p11 + 10] : 0.0f;
          int p20 = p10 + i3;
          float x24 = data2[p20];
          float x25 = data2[p20 + 18];
          float x26 = data2[p20 + 36];
          acc0 = fmaf(x0, x24, acc0);
          acc1 = fmaf(x1, x24, acc1);
          acc2 = fmaf(x2, x24, acc2);
          acc3 = fmaf(x3, x24, acc3);
          acc4 = fmaf(x4, x24, acc4);
          acc5 = fmaf(x5, x24, acc5);
          acc6 = fmaf(x6, x24, acc6);
          acc7 = fmaf(x7, x24, acc7);
          acc8 = fmaf(x8, x24, acc8);
          acc9 = fmaf(x9, x24, acc9);
          acc10 = fmaf(x10, x24, acc10);
          acc11 = fmaf(x11, x24, acc11);
          acc12 = fmaf(x12, x24, acc12);
          acc13 = fmaf(x13, x24, acc13);
          acc14 = fmaf(x14, x24, acc14);
          acc15 = fmaf(x15, x24, acc15);
          acc16 = fmaf(x16, x24, acc16);
          acc17 = fmaf(x17, x24, acc17);
          acc18 = fmaf(x18, x24, acc18);
          acc19 = fmaf(x19, x24, acc19);
          acc20 = fmaf(x20, x24, acc20);
          acc21 = fmaf(x21, x24, acc21);
          acc22 = fmaf(x22, x24, acc22);
          acc23 = fmaf(x23, x24, acc23);
          acc24 = fmaf(x0, x25, acc24);
          acc25 = fmaf(x1, x25, acc25);
          acc26 = fmaf(x2, x25, acc26);
          acc27 = fmaf(x3, x25, acc27);
          acc28 = fmaf(x4, x25, acc28);
          acc29 = fmaf(x5, x25, acc29);
          acc30 = fmaf(x6, x25, acc30);
          acc31 = fmaf(x7, x25, acc31);
          acc32 = fmaf(x8, x25, acc32);
          acc33 = fmaf(x9, x25, acc33);
          acc34 = fmaf(x10, x25, acc34);
          acc35 = fmaf(x11, x25, acc35);
          acc36 = fmaf(x12, x25, acc36);
          acc37 = fmaf(x13, x25, acc37);
          acc38 = fmaf(x14, x25, acc38);
          acc39 = fmaf(x15, x25, acc39);
          acc40 = fmaf(x16, x25, acc40);
          acc41 = fmaf(x17, x25, acc41);
          acc42 = fmaf(x18, x25, acc42);
          acc43 = fmaf(x19, x25, acc43);
          acc44 = fmaf(x20, x25, acc44);
          acc45 = fmaf(x21, x25, acc45);
          acc46 = fmaf(x22, x25, acc46);
          acc47 = fmaf(x23, x25, acc47);
          acc48 = fmaf(x0, x26, acc48);
          acc49 = fmaf(x1, x26, acc49);
          acc50 = fmaf(x2, x26, acc50);
          acc51 = fmaf(x3, x26, acc51);
          acc52 = fmaf(x4, x26, acc52);
          acc53 = fmaf(x5, x26, acc53);
          acc54 = fmaf(x6, x26, acc54);
          acc55 = fmaf(x7, x26, acc55);
          acc56 = fmaf(x8, x26, acc56);
          acc57 = fmaf(x9, x26, acc57);
          acc58 = fmaf(x10, x26, acc58);
          acc59 = fmaf(x11, x26, acc59);
          acc60 = fmaf(x12, x26, acc60);
          acc61 = fmaf(x13, x26, acc61);
          acc62 = fmaf(x14, x26, acc62);
          acc63 = fmaf(x15, x26, acc63);
          acc64 = fmaf(x16, x26, acc64);
          acc65 = fmaf(x17, x26, acc65);
          acc66 = fmaf(x18, x26, acc66);
          acc67 = fmaf(x19, x26, acc67);
          acc68 = fmaf(x20, x26, acc68);
          acc69 = fmaf(x21, x26, acc69);
          acc70 = fmaf(x22, x26, acc70);
          acc71 = fmaf(x23, x26, acc71);
        }
      }
    }
    *(float2 *)(data0 + p3) = make_float2(acc0, acc1);
    *(float2 *)(data0 + p3 + 2) = make_float2(acc2, acc3);
    *(float2 *)(data0 + p3 + 2) = make_float2(acc4, acc5);
    *(float2 *)(data0 + p3 + 4) = make_float2(acc6, acc7);
    *(float2 *)(data0 + p3 + 6) = make_float2(acc8, acc9);
    *(float2 *)(data0 + p3 + 8) = make_float2(acc10, acc11);
    *(float2 *)(data0 + p3 + 8) = make_float2(acc12, acc13);
    *(float2 *)(data0 + p3 + 10) = make_float2(acc14, acc15);
    *(float2 *)(data0 + p3 + 12) = make_float2(acc16, acc17);
    *(float2 *)(data0 + p3 + 14) = make_float2(acc18, acc19);
    *(float2 *)(data0 + p3 + 14) = make_float2(acc20, acc21);
    *(float2 *)(data0 + p3 + 16) = make_float2(acc22, acc23);
    *(float2 *)(data0 + p3 + 36) = make_float2(acc24, acc25);
    *(float2 *)(data0 + p3 + 38) = make_float2(acc26, acc27);
    *(float2 *)(data0 + p3 + 38) = make_float2(acc28, acc29);
    *(float2 *)(data0 + p3 + 40) = make_float2(acc30, acc31);
    *(float2 *)(data0 + p3 + 42) = make_float2(acc32, acc33);
    *(float2 *)(data0 + p3 + 44) = make_float2(acc34, acc35);
    *(float2 *)(data0 + p3 + 44) = make_float2(acc36, acc37);
    *(float2 *)(data0 + p3 + 46) = make_float2(acc38, acc39);
    *(float2 *)(data0 + p3 + 48) = make_float2(acc40, acc41);
    *(float2 *)(data0 + p3 + 50) = make_float2(acc42, acc43);
    *(float2 *)(data0 + p3 + 50) = make_float2(acc44, acc45);
    *(float2 *)(data0 + p3 + 52) = make_float2(acc46, acc47);
    *(float2 *)(data0 + p3 + 72) = make_float2(acc48, acc49);
    *(float2 *)(data0 + p3 + 74) = make_float2(acc50, acc51);
    *(float2 *)(data0 + p3 + 74) = make_float2(acc52, acc53);
    *(float2 *)(data0 + p3 + 76) = make_float2(acc54, acc55);
    *(float2 *)(data0 + p3 + 78) = make_float2(acc56, acc57);
    *(float2 *)(data0 + p3 + 80) = make_float2(acc58, acc59);
    *(float2 *)(data0 + p3 + 80) = make_float2(acc60, acc61);
    *(float2 *)(data0 + p3 + 82) = make_float2(acc62, acc63);
    *(float2 *)(data0 + p3 + 84) = make_float2(acc64, acc65);
    *(float2 *)(data0 + p3 + 86) = make_float2(acc66, acc67);
    *(float2 *)(data0 + p3 + 86) = make_float2(acc68, acc69);
    *(float2 *)(data0 + p3 + 88) = make_float2(acc70, acc71);
  }
}

extern "C" __global__ void assign_0(float *data0, float *data1) {
  float4 v0 = *(float4 *)(data1 + 8);
  float4 v1 = *(float4 *)(data1 + 4);
  float4 v2 = *(float4 *)data1;
  float4 v3 = *(float4 *)data1;
  float4 v4 = *(float4 *)(data1 + 4);
  float4 v5 = *(float4 *)(data1 + 8);
  *(float4 *)data0 = make_float4(v0.w + v3.x, v0.z + v3.y, v0.y + v3.z, v0.x + v3.w);
  *(float4 *)(data0 + 4) = make_float4(v1.w + v4.x, v1.z + v4.y, v1.y + v4.z, v1.x + v4.w);
  *(float4 *)(data0 + 8) = make_float4(v2.w + v5.x, v2.z + v5.y, v2.y + v5.z, v2.x + v5.w);
}

extern "C" __global__ void assign_1(float *data0, float *data1) {
  float4 v0 = *(float4 *)data1;
  float4 v1 = *(float4 *)(data1 + 4);
  float4 v2 = *(float4 *)(data1 + 8);
  *(float4 *)data0 = make_float4(v0.x, v0.y, v0.z, v0.w);
  *(float4 *)(data0 + 4) = make_float4(v1.x, v1.y, v1.z, v1.w);
  *(float4 *)(data0 + 8) = make_float4(v2.x, v2.y, v2.z, v2.w);
}

extern "C" __global__ void symbolic_0(float *data0, float *data1, int var_n) {
  float acc0 = 0.0f;
  for (int i0 = 0; i0 < var_n; i0++) {
    acc0 += data1[i0];
  }
  data0[0] = acc0;
}

extern "C" __global__ void local_memory_0(float *data0, float *data1, float *data2) {
  for (int i0 = 0; i0 < 16; i0++) {
    int p0 = i0 * 60;
    for (int i1 = 0; i1 < 8; i1++) {
      int p1 = i1 < 7 ? i1 << 3 : 52;
      int p2 = p1 + p0;
      float x0 = data1[p2];
      float x1 = data1[p2 + 1];
      float x2 = data1[p2 + 2];
      float x3 = data1[p2 + 3];
      float x4 = data1[p2 + 4];
      float x5 = data1[p2 + 5];
      float x6 = data1[p2 + 6];
      float x7 = data1[p2 + 7];
      float x8 = x0 < -253.75f ? -253.75f : x0;
      float x9 = x1 < -253.75f ? -253.75f : x1;
      float x10 = x2 < -253.75f ? -253.75f : x2;
      float x11 = x3 < -253.75f ? -253.75f : x3;
      float x12 = x4 < -253.75f ? -253.75f : x4;
      float x13 = x5 < -253.75f ? -253.75f : x5;
      float x14 = x6 < -253.75f ? -253.75f : x6;
      float x15 = x7 < -253.75f ? -253.75f : x7;
      float x16 = 129.0f < x8 ? 129.0f : x8;
      float x17 = 129.0f < x9 ? 129.0f : x9;
      float x18 = 129.0f < x10 ? 129.0f : x10;
      float x19 = 129.0f < x11 ? 129.0f : x11;
      float x20 = 129.0f < x12 ? 129.0f : x12;
      float x21 = 129.0f < x13 ? 129.0f : x13;
      float x22 = 129.0f < x14 ? 129.0f : x14;
      float x23 = 129.0f < x15 ? 129.0f : x15;
      float x24 = x16 + 12583166.0f;
      float x25 = x17 + 12583166.0f;
      float x26 = x18 + 12583166.0f;
      float x27 = x19 + 12583166.0f;
      float x28 = x20 + 12583166.0f;
      float x29 = x21 + 12583166.0f;
      float x30 = x22 + 12583166.0f;
      float x31 = x23 + 12583166.0f;
      unsigned x32 = __float_as_uint(x24);
      unsigned x33 = __float_as_uint(x25);
      unsigned x34 = __float_as_uint(x26);
      unsigned x35 = __float_as_uint(x27);
      unsigned x36 = __float_as_uint(x28);
      unsigned x37 = __float_as_uint(x29);
      unsigned x38 = __float_as_uint(x30);
      unsigned x39 = __float_as_uint(x31);
      unsigned x40 = x32 >> 1u;
      unsigned x41 = x33 >> 1u;
      unsigned x42 = x34 >> 1u;
      unsigned x43 = x35 >> 1u;
      unsigned x44 = x36 >> 1u;
      unsigned x45 = x37 >> 1u;
      unsigned x46 = x38 >> 1u;
      unsigned x47 = x39 >> 1u;
      float x48 = x16 - (x24 - 12583166.0f);
      float x49 = x17 - (x25 - 12583166.0f);
      float x50 = x18 - (x26 - 12583166.0f);
      float x51 = x19 - (x27 - 12583166.0f);
      float x52 = x20 - (x28 - 12583166.0f);
      float x53 = x21 - (x29 - 12583166.0f);
      float x54 = x22 - (x30 - 12583166.0f);
      float x55 = x23 - (x31 - 12583166.0f);
      float x56 = fmaf(fmaf(fmaf(0.00015453163f, x48, 0.0013390863f), x48, 0.009618083f), x48, 0.05550357f);
      float x57 = fmaf(fmaf(fmaf(0.00015453163f, x49, 0.0013390863f), x49, 0.009618083f), x49, 0.05550357f);
      float x58 = fmaf(fmaf(fmaf(0.00015453163f, x50, 0.0013390863f), x50, 0.009618083f), x50, 0.05550357f);
      float x59 = fmaf(fmaf(fmaf(0.00015453163f, x51, 0.0013390863f), x51, 0.009618083f), x51, 0.05550357f);
      float x60 = fmaf(fmaf(fmaf(0.00015453163f, x52, 0.0013390863f), x52, 0.009618083f), x52, 0.05550357f);
      float x61 = fmaf(fmaf(fmaf(0.00015453163f, x53, 0.0013390863f), x53, 0.009618083f), x53, 0.05550357f);
      float x62 = fmaf(fmaf(fmaf(0.00015453163f, x54, 0.0013390863f), x54, 0.009618083f), x54, 0.05550357f);
      float x63 = fmaf(fmaf(fmaf(0.00015453163f, x55, 0.0013390863f), x55, 0.009618083f), x55, 0.05550357f);
      float x64 = fmaf(fmaf(fmaf(x56, x48, 0.2402265f), x48, 0.6931472f), x48, 1.0f) * __uint_as_float(x40 << 23u);
      float x65 = fmaf(fmaf(fmaf(x57, x49, 0.2402265f), x49, 0.6931472f), x49, 1.0f) * __uint_as_float(x41 << 23u);
      float x66 = fmaf(fmaf(fmaf(x58, x50, 0.2402265f), x50, 0.6931472f), x50, 1.0f) * __uint_as_float(x42 << 23u);
      float x67 = fmaf(fmaf(fmaf(x59, x51, 0.2402265f), x51, 0.6931472f), x51, 1.0f) * __uint_as_float(x43 << 23u);
      float x68 = fmaf(fmaf(fmaf(x60, x52, 0.2402265f), x52, 0.6931472f), x52, 1.0f) * __uint_as_float(x44 << 23u);
      float x69 = fmaf(fmaf(fmaf(x61, x53, 0.2402265f), x53, 0.6931472f), x53, 1.0f) * __uint_as_float(x45 << 23u);
      float x70 = fmaf(fmaf(fmaf(x62, x54, 0.2402265f), x54, 0.6931472f), x54, 1.0f) * __uint_as_float(x46 << 23u);
      float x71 = fmaf(fmaf(fmaf(x63, x55, 0.2402265f), x55, 0.6931472f), x55, 1.0f) * __uint_as_float(x47 << 23u);
      data2[p1] = x64 * __uint_as_float((x32 - x40) << 23u);
      data2[p1 + 1] = x65 * __uint_as_float((x33 - x41) << 23u);
      data2[p1 + 2] = x66 * __uint_as_float((x34 - x42) << 23u);
      data2[p1 + 3] = x67 * __uint_as_float((x35 - x43) << 23u);
      data2[p1 + 4] = x68 * __uint_as_float((x36 - x44) << 23u);
      data2[p1 + 5] = x69 * __uint_as_float((x37 - x45) << 23u);
      data2[p1 + 6] = x70 * __uint_as_float((x38 - x46) << 23u);
      data2[p1 + 7] = x71 * __uint_as_float((x39 - x47) << 23u);
    }
    float acc0 = 0.0f;
    float acc1 = 0.0f;
    float acc2 = 0.0f;
    float acc3 = 0.0f;
    float acc4 = 0.0f;
    float acc5 = 0.0f;
    float acc6 = 0.0f;
    float acc7 = 0.0f;
    for (int i2 = 0; i2 < 7; i2++) {
      int p3 = i2 << 3;
      float4 v0 = *(float4 *)(data2 + p3);
      float4 v1 = *(float4 *)(data2 + p3 + 4);
      acc0 += v0.x;
      acc1 += v0.y;
      acc2 += v0.z;
      acc3 += v0.w;
      acc4 += v1.x;
      acc5 += v1.y;
      acc6 += v1.z;
      acc7 += v1.w;
    }
    float4 v2 = *(float4 *)(data2 + 56);
    float x72 = acc0 + acc4 + (acc2 + acc6) + (acc1 + acc5 + (acc3 + acc7)) + (v2.x + v2.z + (v2.y + v2.w));
    for (int i3 = 0; i3 < 8; i3++) {
      int p4 = i3 < 7 ? i3 << 3 : 52;
      float x73 = data2[p4 + 1];
      float x74 = data2[p4 + 2];
      float x75 = data2[p4 + 3];
      float x76 = data2[p4 + 4];
      float x77 = data2[p4 + 5];
      float x78 = data2[p4 + 6];
      float x79 = data2[p4 + 7];
      int p5 = p0 + p4;
      data0[p5] = data2[p4] / x72;
      data0[p5 + 1] = x73 / x72;
      data0[p5 + 2] = x74 / x72;
      data0[p5 + 3] = x75 / x72;
      data0[p5 + 4] = x76 / x72;
      data0[p5 + 5] = x77 / x72;
      data0[p5 + 6] = x78 / x72;
      data0[p5 + 7] = x79 / x72;
    }
  }
}

extern "C" __global__ void threads_0(float *data0, float *data1, float *data2) {
  for (int i0 = 0; i0 < 8192; i0++) {
    int p0 = i0 << 4;
    float4 v0 = *(float4 *)(data1 + p0);
    float4 v1 = *(float4 *)(data1 + p0 + 4);
    float4 v2 = *(float4 *)(data1 + p0 + 8);
    float4 v3 = *(float4 *)(data1 + p0 + 12);
    float4 v4 = *(float4 *)(data2 + p0);
    float4 v5 = *(float4 *)(data2 + p0 + 4);
    float4 v6 = *(float4 *)(data2 + p0 + 8);
    float4 v7 = *(float4 *)(data2 + p0 + 12);
    *(float4 *)(data0 + p0) = make_float4(v0.x + v4.x, v0.y + v4.y, v0.z + v4.z, v0.w + v4.w);
    *(float4 *)(data0 + p0 + 4) = make_float4(v1.x + v5.x, v1.y + v5.y, v1.z + v5.z, v1.w + v5.w);
    *(float4 *)(data0 + p0 + 8) = make_float4(v2.x + v6.x, v2.y + v6.y, v2.z + v6.z, v2.w + v6.w);
    *(float4 *)(data0 + p0 + 12) = make_float4(v3.x + v7.x, v3.y + v7.y, v3.z + v7.z, v3.w + v7.w);
  }
}
