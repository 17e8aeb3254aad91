// product: GLOBAL r0, GLOBAL r1, TENSOR_CORE r0 r1 r2 0
// grid (2, 2, 1), workgroups of (32, 1, 1)
#include <cuda_fp16.h>
#ifdef __CUDACC__
static __device__ inline float4 mma_m16n8k16_half(half a0, half a1, half a2, half a3, half a4, half a5, half a6, half a7,
                                                  half b0, half b1, half b2, half b3,
                                                  float c0, float c1, float c2, float c3) {
  float4 d;
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
               : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w)
               : "r"(__half_as_ushort(a0) | (unsigned)__half_as_ushort(a1) << 16),
                 "r"(__half_as_ushort(a2) | (unsigned)__half_as_ushort(a3) << 16),
                 "r"(__half_as_ushort(a4) | (unsigned)__half_as_ushort(a5) << 16),
                 "r"(__half_as_ushort(a6) | (unsigned)__half_as_ushort(a7) << 16),
                 "r"(__half_as_ushort(b0) | (unsigned)__half_as_ushort(b1) << 16),
                 "r"(__half_as_ushort(b2) | (unsigned)__half_as_ushort(b3) << 16),
                 "f"(c0), "f"(c1), "f"(c2), "f"(c3));
  return d;
}
#endif

extern "C" __global__ void product(half *data0, half *data1, half *data2) {
  int workgroup0 = (int)blockIdx.y;
  int invocation0 = (int)threadIdx.x;
  int p0 = invocation0 & 3;
  int p1 = invocation0 >> 2;
  int p2 = (p0 << 2) + (workgroup0 << 10) + (p1 << 6);
  int p3 = (int)blockIdx.x << 3;
  int p4 = p3 + p1 + (p0 << 6);
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i0 = 0; i0 < 4; i0++) {
    int p5 = p2 + (i0 << 4);
    uint2 v0 = *(uint2 *)(data1 + p5);
    unsigned x0 = v0.x;
    unsigned x1 = v0.y;
    uint2 v1 = *(uint2 *)(data1 + p5 + 512);
    unsigned x2 = v1.x;
    unsigned x3 = v1.y;
    int p6 = p4 + (i0 << 8);
    float4 tile0 = mma_m16n8k16_half(__ushort_as_half((unsigned short)x0), __ushort_as_half((unsigned short)(x0 >> 16)), __ushort_as_half((unsigned short)x2), __ushort_as_half((unsigned short)(x2 >> 16)), __ushort_as_half((unsigned short)x1), __ushort_as_half((unsigned short)(x1 >> 16)), __ushort_as_half((unsigned short)x3), __ushort_as_half((unsigned short)(x3 >> 16)), data2[p6], data2[p6 + 16], data2[p6 + 32], data2[p6 + 48], acc0, acc1, acc2, acc3);
    acc0 = tile0.x;
    acc1 = tile0.y;
    acc2 = tile0.z;
    acc3 = tile0.w;
  }
  int p7 = p3 + (p0 << 1) + (workgroup0 << 8) + (p1 << 4);
  *(half2 *)(data0 + p7) = make_half2(__float2half_rn(acc0), __float2half_rn(acc1));
  *(half2 *)(data0 + p7 + 128) = make_half2(__float2half_rn(acc2), __float2half_rn(acc3));
}
