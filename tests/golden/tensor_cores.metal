// product: GLOBAL r0, GLOBAL r1, TENSOR_CORE r0 r1 r2 3
// grid (2, 4, 1), workgroups of (32, 1, 1)
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)

#ifdef __METAL_VERSION__
static inline float2 simdgroup_8x8_half(half a0, half a1, half b0, half b1, float c0, float c1) {
  simdgroup_matrix<half, 8, 8> a, b;
  simdgroup_matrix<float, 8, 8> c;
  a.thread_elements()[0] = a0;
  a.thread_elements()[1] = a1;
  b.thread_elements()[0] = b0;
  b.thread_elements()[1] = b1;
  c.thread_elements()[0] = c0;
  c.thread_elements()[1] = c1;
  simdgroup_multiply_accumulate(c, a, b, c);
  return float2(c.thread_elements()[0], c.thread_elements()[1]);
}
#endif

kernel void product(device half *data0 [[buffer(0)]],
                    device half *data1 [[buffer(1)]],
                    device half *data2 [[buffer(2)]],
                    uint3 workgroup [[threadgroup_position_in_grid]],
                    uint3 invocation [[thread_position_in_threadgroup]]) {
  int workgroup0 = (int)workgroup.y;
  int invocation0 = (int)invocation.x;
  int p0 = ((invocation0 >> 3) & 1) << 2;
  int p1 = (invocation0 & 1) << 1;
  int p2 = ((int)workgroup.x << 3) + p0 + p1;
  int p3 = invocation0 >> 4;
  int p4 = p3 << 6;
  int p5 = (invocation0 >> 1) & 3;
  int p6 = p5 << 4;
  int p7 = p2 + p4 + p6;
  int p8 = p0 + p1 + (workgroup0 << 9) + (p3 << 8) + (p5 << 6);
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  for (int i0 = 0; i0 < 8; i0++) {
    half2 v0 = *(device half2 *)(data1 + p8 + (i0 << 3));
    half2 v1 = *(device half2 *)(data2 + p7 + (i0 << 7));
    float2 tile0 = simdgroup_8x8_half(v0.x, v0.y, v1.x, v1.y, acc0, acc1);
    acc0 = tile0.x;
    acc1 = tile0.y;
  }
  *(device half2 *)(data0 + p2 + (workgroup0 << 7) + p4 + p6) = half2((half)acc0, (half)acc1);
}
