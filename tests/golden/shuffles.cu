// max_rows: GLOBAL r0, SIMD r1 4 1, GROUP r1.0 64
// grid (9, 1, 1), workgroups of (64, 1, 1)
static __device__ inline float max_float32(float a, float b) {
  return (a < b) | (b != b) ? b : a;
}

extern "C" __global__ void max_rows(float *data0, float *data1) {
  __shared__ __align__(16) float shared0[64];
  int workgroup0 = (int)blockIdx.x;
  int invocation0 = (int)threadIdx.x;
  float4 v0 = *(float4 *)(data1 + (invocation0 << 2) + (workgroup0 << 8));
  shared0[invocation0] = max_float32(max_float32(v0.x, v0.z), max_float32(v0.y, v0.w));
  __syncthreads();
  int p0 = invocation0 & 31;
  float x0 = max_float32(shared0[p0], shared0[p0 + 32]);
  float acc0 = __shfl_xor_sync(0xffffffffu, x0, 16);
  float x1 = max_float32(x0, acc0);
  float acc1 = __shfl_xor_sync(0xffffffffu, x1, 8);
  float x2 = max_float32(x1, acc1);
  float acc2 = __shfl_xor_sync(0xffffffffu, x2, 4);
  float x3 = max_float32(x2, acc2);
  float acc3 = __shfl_xor_sync(0xffffffffu, x3, 2);
  float x4 = max_float32(x3, acc3);
  float acc4 = __shfl_xor_sync(0xffffffffu, x4, 1);
  float x5 = max_float32(x4, acc4);
  if (invocation0 < 1) {
    data0[workgroup0] = x5;
  }
}
