// max_rows: GLOBAL r0, SIMD r1 4 1, GROUP r1.0 64
// grid (9, 1, 1), workgroups of (64, 1, 1)
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

static inline float max_float32(float a, float b) {
  return (a < b) | (b != b) ? b : a;
}

kernel void max_rows(device float *data0 [[buffer(0)]],
                     device float *data1 [[buffer(1)]],
                     uint3 workgroup [[threadgroup_position_in_grid]],
                     uint3 invocation [[thread_position_in_threadgroup]]) {
  threadgroup float shared0[64];
  int workgroup0 = (int)workgroup.x;
  int invocation0 = (int)invocation.x;
  float4 v0 = *(device float4 *)(data1 + (invocation0 << 2) + (workgroup0 << 8));
  shared0[invocation0] = max_float32(max_float32(v0.x, v0.z), max_float32(v0.y, v0.w));
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int p0 = invocation0 & 31;
  float x0 = max_float32(shared0[p0], shared0[p0 + 32]);
  float acc0 = simd_shuffle_xor(x0, (ushort)16);
  float x1 = max_float32(x0, acc0);
  float acc1 = simd_shuffle_xor(x1, (ushort)8);
  float x2 = max_float32(x1, acc1);
  float acc2 = simd_shuffle_xor(x2, (ushort)4);
  float x3 = max_float32(x2, acc2);
  float acc3 = simd_shuffle_xor(x3, (ushort)2);
  float x4 = max_float32(x3, acc3);
  float acc4 = simd_shuffle_xor(x4, (ushort)1);
  float x5 = max_float32(x4, acc4);
  if (invocation0 < 1) {
    data0[workgroup0] = x5;
  }
}
