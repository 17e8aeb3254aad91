// add: GLOBAL r0, SIMD r0 4 1, LOCAL r0.0 256
// grid (4, 1, 1), workgroups of (256, 1, 1)

extern "C" __global__ void add(float *data0, float *data1, float *data2) {
  int p0 = ((int)blockIdx.x << 10) + ((int)threadIdx.x << 2);
  float4 v0 = *(float4 *)(data1 + p0);
  float4 v1 = *(float4 *)(data2 + p0);
  *(float4 *)(data0 + p0) = make_float4(v0.x + v1.x, v0.y + v1.y, v0.z + v1.z, v0.w + v1.w);
}

// add_odd: GLOBAL r0, LOCAL r0 256
// grid (4, 1, 1), workgroups of (256, 1, 1)

extern "C" __global__ void add_odd(float *data0, float *data1, float *data2) {
  int workgroup0 = (int)blockIdx.x;
  int p0 = workgroup0 << 8;
  int p1 = (workgroup0 < 3 ? p0 : 745) + (int)threadIdx.x;
  float x0 = data1[p1] + data2[p1];
  if ((p1 < p0) != true) {
    data0[p1] = x0;
  }
}

// matmul: GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, SIMD r1 4 1, LOCAL r1.0 4, SPLIT r2 32, STAGE r2.1 LOAD 0, STAGE r2.1 LOAD 2
// grid (4, 4, 1), workgroups of (4, 8, 1)

extern "C" __global__ void matmul(float *data0, float *data1, float *data2) {
  __shared__ __align__(16) float shared0[512];
  __shared__ __align__(16) float shared1[512];
  int invocation0 = (int)threadIdx.x;
  int invocation1 = (int)threadIdx.y;
  int p0 = invocation0 << 2;
  int p1 = ((int)blockIdx.x << 4) + p0;
  int p2 = invocation1 << 6;
  int p3 = p1 + p2;
  int p4 = (int)blockIdx.y << 10;
  int p5 = (invocation1 << 2) + invocation0 + p4;
  int p6 = p0 + (invocation1 << 4);
  int p7 = p2 + (invocation0 << 4);
  int p8 = invocation1 << 1;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  float acc4 = 0.0f;
  float acc5 = 0.0f;
  float acc6 = 0.0f;
  float acc7 = 0.0f;
  for (int i0 = 0; i0 < 2; i0++) {
    __syncthreads();
    int p9 = i0 << 5;
    for (int i1 = 0; i1 < 16; i1++) {
      shared0[p7 + i1] = data1[p5 + (i1 << 6) + p9];
    }
    int p10 = i0 << 11;
    for (int i2 = 0; i2 < 4; i2++) {
      float4 v0 = *(float4 *)(data2 + p3 + (i2 << 9) + p10);
      *(float4 *)(shared1 + p6 + (i2 << 7)) = make_float4(v0.x, v0.y, v0.z, v0.w);
    }
    __syncthreads();
    for (int i3 = 0; i3 < 32; i3++) {
      int p11 = i3 << 4;
      int p12 = p8 + p11;
      float x0 = shared0[p12];
      float x1 = shared0[p12 + 1];
      float4 v1 = *(float4 *)(shared1 + p0 + p11);
      float x2 = v1.x;
      float x3 = v1.y;
      float x4 = v1.z;
      float x5 = v1.w;
      acc0 += x0 * x2;
      acc1 += x0 * x3;
      acc2 += x0 * x4;
      acc3 += x0 * x5;
      acc4 += x1 * x2;
      acc5 += x1 * x3;
      acc6 += x1 * x4;
      acc7 += x1 * x5;
    }
  }
  int p13 = p1 + p4 + (invocation1 << 7);
  *(float4 *)(data0 + p13) = make_float4(acc0, acc1, acc2, acc3);
  *(float4 *)(data0 + p13 + 64) = make_float4(acc4, acc5, acc6, acc7);
}

// matmul_odd: GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, LOCAL r1 16, UPCAST r1.1 2, STAGE r2 LOAD 0, STAGE r2 LOAD 2
// grid (3, 4, 1), workgroups of (8, 8, 1)
static __device__ inline int floor_divide_index(int a, int b) {
  int x0 = a % b;
  return a / b - ((x0 != 0) & ((x0 ^ b) < 0) ? 1 : 0);
}
static __device__ inline int floor_modulo_index(int a, int b) {
  int x0 = a % b;
  return x0 + ((x0 != 0) & ((x0 ^ b) < 0) ? b : 0);
}

extern "C" __global__ void matmul_odd(float *data0, float *data1, float *data2) {
  __shared__ __align__(16) float shared0[640];
  __shared__ __align__(16) float shared1[640];
  int workgroup0 = (int)blockIdx.x;
  int workgroup1 = (int)blockIdx.y;
  int invocation0 = (int)threadIdx.x;
  int invocation1 = (int)threadIdx.y;
  int p0 = invocation1 << 3;
  int p1 = workgroup1 << 4;
  int p2 = workgroup1 < 3 ? p1 : 34;
  int p3 = p0 + invocation0 + p2 * 40;
  int p4 = invocation0 << 4;
  for (int i0 = 0; i0 < 10; i0++) {
    int p5 = p4 + floor_divide_index(invocation1 + (i0 << 3), 5) + (floor_modulo_index(invocation1 + i0 * 3, 5) << 7);
    shared0[p5] = data1[p3 + (i0 << 6)];
  }
  int p6 = workgroup0 << 4;
  int p7 = workgroup0 < 2 ? p6 : 17;
  int p8 = p7 + ((invocation1 & 1) << 3) + invocation0 + (invocation1 >> 1) * 33;
  int p9 = invocation0 + p0;
  for (int i1 = 0; i1 < 10; i1++) {
    shared1[p9 + (i1 << 6)] = data2[p8 + i1 * 132];
  }
  __syncthreads();
  int p10 = invocation0 << 1;
  int p11 = invocation1 << 1;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i2 = 0; i2 < 40; i2++) {
    int p12 = i2 << 4;
    int p13 = p11 + p12;
    int p14 = p10 + p12;
    float x0 = shared0[p13];
    float x1 = shared1[p14];
    float x2 = shared1[p14 + 1];
    float x3 = shared0[p13 + 1];
    acc0 += x0 * x1;
    acc1 += x0 * x2;
    acc2 += x3 * x1;
    acc3 += x3 * x2;
  }
  float acc4 = acc0;
  float acc5 = acc1;
  float acc6 = acc2;
  float acc7 = acc3;
  int p15 = p7 + p10;
  int p16 = p15 + p2 * 33 + invocation1 * 66;
  int p17 = p2 + p11;
  bool m0 = (p17 < p1) != true;
  bool m1 = (p15 < p6) != true;
  bool m2 = (p15 + 1 < p6) != true;
  bool m3 = (p17 + 1 < p1) != true;
  if (m0 & m1) {
    data0[p16] = acc4;
  }
  if (m0 & m2) {
    data0[p16 + 1] = acc5;
  }
  if (m3 & m1) {
    data0[p16 + 33] = acc6;
  }
  if (m3 & m2) {
    data0[p16 + 34] = acc7;
  }
}

// matmul_small_grid: GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, SIMD r1 4 1, LOCAL r1.0 4, GROUP r2 4, SPLIT r2.0 8, STAGE r2.0.1 LOAD 0, STAGE r2.0.1 LOAD 2
// grid (1, 1, 1), workgroups of (4, 8, 4)

extern "C" __global__ void matmul_small_grid(float *data0, float *data1, float *data2) {
  __shared__ __align__(16) float shared0[512];
  __shared__ __align__(16) float shared1[512];
  __shared__ __align__(16) float shared2[1024];
  int invocation0 = (int)threadIdx.x;
  int invocation1 = (int)threadIdx.y;
  int invocation2 = (int)threadIdx.z;
  int p0 = invocation0 << 4;
  int p1 = invocation2 << 7;
  int p2 = ((invocation1 & 3) << 2) + p0 + p1 + ((invocation1 >> 2) << 6);
  int p3 = invocation0 << 2;
  int p4 = p3 + p1 + (invocation1 << 4);
  int p5 = (invocation1 << 2) + invocation0 + (invocation2 << 9);
  int p6 = invocation2 << 2;
  int p7 = invocation0 + p6 + (invocation1 << 6);
  int p8 = p6 + p0;
  int p9 = invocation2 + (invocation1 << 3);
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  float acc4 = 0.0f;
  float acc5 = 0.0f;
  float acc6 = 0.0f;
  float acc7 = 0.0f;
  for (int i0 = 0; i0 < 16; i0++) {
    __syncthreads();
    int p10 = i0 << 5;
    for (int i1 = 0; i1 < 4; i1++) {
      shared0[p7 + (i1 << 4)] = data1[p5 + (i1 << 11) + p10];
    }
    float4 v0 = *(float4 *)(data2 + p4 + (i0 << 9));
    *(float4 *)(shared1 + p2) = make_float4(v0.x, v0.y, v0.z, v0.w);
    __syncthreads();
    for (int i2 = 0; i2 < 8; i2++) {
      int p11 = i2 << 6;
      int p12 = p9 + p11;
      float x0 = shared0[p12];
      float x1 = shared0[p12 + 4];
      float4 v1 = *(float4 *)(shared1 + p8 + p11);
      float x2 = v1.x;
      float x3 = v1.y;
      float x4 = v1.z;
      float x5 = v1.w;
      acc0 += x0 * x2;
      acc1 += x0 * x3;
      acc2 += x0 * x4;
      acc3 += x0 * x5;
      acc4 += x1 * x2;
      acc5 += x1 * x3;
      acc6 += x1 * x4;
      acc7 += x1 * x5;
    }
  }
  int p13 = p3 + (invocation1 << 5);
  int p14 = p13 + (invocation2 << 8);
  *(float4 *)(shared2 + p14) = make_float4(acc0, acc1, acc2, acc3);
  *(float4 *)(shared2 + p14 + 16) = make_float4(acc4, acc5, acc6, acc7);
  __syncthreads();
  float4 v2 = *(float4 *)(shared2 + p14);
  float4 v3 = *(float4 *)(shared2 + p14 + 16);
  bool m0 = invocation2 < 2;
  int p15 = p13 + ((m0 ? invocation2 + 2 : invocation2) << 8);
  float4 v4 = *(float4 *)(shared2 + p15);
  float4 v5 = *(float4 *)(shared2 + p15 + 16);
  float x6 = v2.x + v4.x;
  float x7 = v2.y + v4.y;
  float x8 = v2.z + v4.z;
  float x9 = v2.w + v4.w;
  float x10 = v3.x + v5.x;
  float x11 = v3.y + v5.y;
  float x12 = v3.z + v5.z;
  float x13 = v3.w + v5.w;
  if (m0) {
    *(float4 *)(shared2 + p14) = make_float4(x6, x7, x8, x9);
    *(float4 *)(shared2 + p14 + 16) = make_float4(x10, x11, x12, x13);
  }
  __syncthreads();
  float4 v6 = *(float4 *)(shared2 + p14);
  float4 v7 = *(float4 *)(shared2 + p14 + 16);
  bool m1 = invocation2 < 1;
  int p16 = p13 + ((m1 ? invocation2 + 1 : invocation2) << 8);
  float4 v8 = *(float4 *)(shared2 + p16);
  float4 v9 = *(float4 *)(shared2 + p16 + 16);
  float x14 = v6.x + v8.x;
  float x15 = v6.y + v8.y;
  float x16 = v6.z + v8.z;
  float x17 = v6.w + v8.w;
  float x18 = v7.x + v9.x;
  float x19 = v7.y + v9.y;
  float x20 = v7.z + v9.z;
  float x21 = v7.w + v9.w;
  if (m1) {
    *(float4 *)(shared2 + p14) = make_float4(x14, x15, x16, x17);
    *(float4 *)(shared2 + p14 + 16) = make_float4(x18, x19, x20, x21);
  }
  __syncthreads();
  float4 v10 = *(float4 *)(shared2 + p13);
  float x22 = v10.x;
  float x23 = v10.y;
  float x24 = v10.z;
  float x25 = v10.w;
  float4 v11 = *(float4 *)(shared2 + p13 + 16);
  float x26 = v11.x;
  float x27 = v11.y;
  float x28 = v11.z;
  float x29 = v11.w;
  if (m1) {
    *(float4 *)(data0 + p13) = make_float4(x22, x23, x24, x25);
    *(float4 *)(data0 + p13 + 16) = make_float4(x26, x27, x28, x29);
  }
}

// convolution: GLOBAL r0, GLOBAL r1, GLOBAL r2, LOCAL r0 16, UPCAST r0.1 2, LOCAL r2 16, UPCAST r2.1 2, SPLIT r3 2, STAGE r3.1 r4 r5 LOAD 0, STAGE r3.1 r4 r5 LOAD 2
// grid (2, 20, 1), workgroups of (8, 8, 1)
static __device__ inline int floor_divide_index(int a, int b) {
  int x0 = a % b;
  return a / b - ((x0 != 0) & ((x0 ^ b) < 0) ? 1 : 0);
}
static __device__ inline int floor_modulo_index(int a, int b) {
  int x0 = a % b;
  return x0 + ((x0 != 0) & ((x0 ^ b) < 0) ? b : 0);
}

extern "C" __global__ void convolution(float *data0, float *data1, float *data2) {
  __shared__ __align__(16) float shared0[288];
  __shared__ __align__(16) float shared1[288];
  int workgroup0 = (int)blockIdx.x;
  int workgroup1 = (int)blockIdx.y;
  int invocation0 = (int)threadIdx.x;
  int invocation1 = (int)threadIdx.y;
  int p0 = (invocation1 << 3) + invocation0;
  int p1 = workgroup1 * 20;
  int p2 = workgroup0 << 4;
  int p3 = workgroup0 < 1 ? p2 : 4;
  int p4 = p3 + p1;
  int p5 = invocation0 << 1;
  int p6 = invocation1 << 1;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i0 = 0; i0 < 4; i0++) {
    __syncthreads();
    int p7 = i0 * 800;
    for (int i1 = 0; i1 < 5; i1++) {
      int p8 = p0 + (i1 << 6);
      int p9 = p8 < 287 ? p8 : 287;
      int p10 = floor_divide_index(p9, 3) & 15;
      int x0 = floor_modulo_index(p9, 3);
      int x1 = floor_divide_index(p9, 48);
      int x2 = floor_modulo_index(x1, 3);
      int p11 = p3 + p10 + x0;
      int p12 = workgroup1 + x2;
      bool m0 = (((0 < p12) & (p12 < 21)) & (0 < p11)) & (p11 < 21);
      int p13 = m0 ? p4 + p10 + x0 + x2 * 20 + floor_divide_index(p9, 144) * 400 + p7 : 21;
      float x3 = m0 ? data1[p13 - 21] : 0.0f;
      int p14 = p10 + (x0 << 4) + x1 * 48;
      if (invocation1 + (i1 << 3) < 36) {
        shared0[p14] = x3;
      }
    }
    int p15 = i0 * 18;
    for (int i2 = 0; i2 < 5; i2++) {
      int p16 = p0 + (i2 << 6);
      int p17 = p16 < 287 ? p16 : 287;
      int x4 = floor_divide_index(p17, 18);
      int x5 = floor_modulo_index(p17, 18);
      float x6 = data2[x5 + x4 * 72 + p15];
      int p18 = x4 + (x5 << 4);
      if (invocation1 + (i2 << 3) < 36) {
        shared1[p18] = x6;
      }
    }
    __syncthreads();
    for (int i3 = 0; i3 < 2; i3++) {
      int p19 = i3 * 144;
      int p20 = p5 + p19;
      int p21 = p6 + p19;
      for (int i4 = 0; i4 < 3; i4++) {
        int p22 = i4 * 48;
        int p23 = p20 + p22;
        int p24 = p21 + p22;
        for (int i5 = 0; i5 < 3; i5++) {
          int p25 = i5 << 4;
          int p26 = p23 + p25;
          int p27 = p24 + p25;
          float x7 = shared0[p26];
          float x8 = shared1[p27];
          float x9 = shared1[p27 + 1];
          float x10 = shared0[p26 + 1];
          acc0 += x7 * x8;
          acc1 += x10 * x8;
          acc2 += x7 * x9;
          acc3 += x10 * x9;
        }
      }
    }
  }
  float acc4 = acc0;
  float acc5 = acc1;
  float acc6 = acc2;
  float acc7 = acc3;
  int p28 = p3 + p5;
  int p29 = p28 + p1 + invocation1 * 800;
  bool m1 = (p28 < p2) != true;
  bool m2 = (p28 + 1 < p2) != true;
  if (m1) {
    data0[p29] = acc4;
  }
  if (m2) {
    data0[p29 + 1] = acc5;
  }
  if (m1) {
    data0[p29 + 400] = acc6;
  }
  if (m2) {
    data0[p29 + 401] = acc7;
  }
}

// sum_rows: GLOBAL r0, SIMD r1 4 1, GROUP r1.0 128
// grid (40, 1, 1), workgroups of (128, 1, 1)

extern "C" __global__ void sum_rows(float *data0, float *data1) {
  __shared__ __align__(16) float shared0[128];
  int workgroup0 = (int)blockIdx.x;
  int invocation0 = (int)threadIdx.x;
  float4 v0 = *(float4 *)(data1 + (invocation0 << 2) + (workgroup0 << 9));
  shared0[invocation0] = v0.x + v0.z + (v0.y + v0.w);
  __syncthreads();
  bool m0 = invocation0 < 64;
  float x0 = shared0[invocation0] + shared0[m0 ? invocation0 + 64 : invocation0];
  if (m0) {
    shared0[invocation0] = x0;
  }
  __syncthreads();
  bool m1 = invocation0 < 32;
  float x1 = shared0[invocation0] + shared0[m1 ? invocation0 + 32 : invocation0];
  if (m1) {
    shared0[invocation0] = x1;
  }
  __syncthreads();
  bool m2 = invocation0 < 16;
  float x2 = shared0[invocation0] + shared0[m2 ? invocation0 + 16 : invocation0];
  if (m2) {
    shared0[invocation0] = x2;
  }
  __syncthreads();
  bool m3 = invocation0 < 8;
  float x3 = shared0[invocation0] + shared0[m3 ? invocation0 + 8 : invocation0];
  if (m3) {
    shared0[invocation0] = x3;
  }
  __syncthreads();
  bool m4 = invocation0 < 4;
  float x4 = shared0[invocation0] + shared0[m4 ? invocation0 + 4 : invocation0];
  if (m4) {
    shared0[invocation0] = x4;
  }
  __syncthreads();
  bool m5 = invocation0 < 2;
  float x5 = shared0[invocation0] + shared0[m5 ? invocation0 + 2 : invocation0];
  if (m5) {
    shared0[invocation0] = x5;
  }
  __syncthreads();
  bool m6 = invocation0 < 1;
  float x6 = shared0[invocation0] + shared0[m6 ? invocation0 + 1 : invocation0];
  if (m6) {
    shared0[invocation0] = x6;
  }
  __syncthreads();
  float x7 = shared0[0];
  if (m6) {
    data0[workgroup0] = x7;
  }
}

// sum_columns: GLOBAL r0, LOCAL r0 32, GROUP r1 8, UNROLL r1.0 4
// grid (2, 1, 1), workgroups of (32, 8, 1)

extern "C" __global__ void sum_columns(float *data0, float *data1) {
  __shared__ __align__(16) float shared0[256];
  int workgroup0 = (int)blockIdx.x;
  int invocation0 = (int)threadIdx.x;
  int invocation1 = (int)threadIdx.y;
  int p0 = workgroup0 << 5;
  int p1 = (workgroup0 < 1 ? p0 : 8) + invocation0;
  int p2 = p1 + invocation1 * 40;
  float acc0 = 0.0f;
  float acc1 = 0.0f;
  float acc2 = 0.0f;
  float acc3 = 0.0f;
  for (int i0 = 0; i0 < 16; i0++) {
    int p3 = p2 + i0 * 1280;
    acc0 += data1[p3];
    acc1 += data1[p3 + 320];
    acc2 += data1[p3 + 640];
    acc3 += data1[p3 + 960];
  }
  int p4 = invocation0 + (invocation1 << 5);
  shared0[p4] = acc0 + acc2 + (acc1 + acc3);
  __syncthreads();
  bool m0 = invocation1 < 4;
  float x0 = shared0[p4] + shared0[invocation0 + ((m0 ? invocation1 + 4 : invocation1) << 5)];
  if (m0) {
    shared0[p4] = x0;
  }
  __syncthreads();
  bool m1 = invocation1 < 2;
  float x1 = shared0[p4] + shared0[invocation0 + ((m1 ? invocation1 + 2 : invocation1) << 5)];
  if (m1) {
    shared0[p4] = x1;
  }
  __syncthreads();
  bool m2 = invocation1 < 1;
  float x2 = shared0[p4] + shared0[invocation0 + ((m2 ? invocation1 + 1 : invocation1) << 5)];
  if (m2) {
    shared0[p4] = x2;
  }
  __syncthreads();
  float x3 = shared0[invocation0];
  if (((p1 < p0) != true) & m2) {
    data0[p1] = x3;
  }
}

// max_rows: GLOBAL r0, GROUP r1 32
// grid (9, 1, 1), workgroups of (32, 1, 1)
static __device__ inline float max_float32(float a, float b) {
  return (a < b) | (b != b) ? b : a;
}

extern "C" __global__ void max_rows(float *data0, float *data1) {
  __shared__ __align__(16) float shared0[32];
  int workgroup0 = (int)blockIdx.x;
  int invocation0 = (int)threadIdx.x;
  shared0[invocation0] = data1[invocation0 + (workgroup0 << 5)];
  __syncthreads();
  bool m0 = invocation0 < 16;
  float x0 = max_float32(shared0[invocation0], shared0[m0 ? invocation0 + 16 : invocation0]);
  if (m0) {
    shared0[invocation0] = x0;
  }
  __syncthreads();
  bool m1 = invocation0 < 8;
  float x1 = max_float32(shared0[invocation0], shared0[m1 ? invocation0 + 8 : invocation0]);
  if (m1) {
    shared0[invocation0] = x1;
  }
  __syncthreads();
  bool m2 = invocation0 < 4;
  float x2 = max_float32(shared0[invocation0], shared0[m2 ? invocation0 + 4 : invocation0]);
  if (m2) {
    shared0[invocation0] = x2;
  }
  __syncthreads();
  bool m3 = invocation0 < 2;
  float x3 = max_float32(shared0[invocation0], shared0[m3 ? invocation0 + 2 : invocation0]);
  if (m3) {
    shared0[invocation0] = x3;
  }
  __syncthreads();
  bool m4 = invocation0 < 1;
  float x4 = max_float32(shared0[invocation0], shared0[m4 ? invocation0 + 1 : invocation0]);
  if (m4) {
    shared0[invocation0] = x4;
  }
  __syncthreads();
  float x5 = shared0[0];
  if (m4) {
    data0[workgroup0] = x5;
  }
}

// symbolic: GLOBAL r0, LOCAL r0 64
// grid (('ADD', ('SHR', ('ADD', 'n', -1), 6), 1), 1, 1), workgroups of (64, 1, 1)
static __device__ inline int max_index(int a, int b) {
  return a < b ? b : a;
}

extern "C" __global__ void symbolic(float *data0, float *data1, int var_n) {
  int workgroup0 = (int)blockIdx.x;
  int invocation0 = (int)threadIdx.x;
  int p0 = 0 - max_index(workgroup0 * -64 - invocation0, 1 - var_n);
  float x0 = data1[p0] + 1.0f;
  if ((workgroup0 << 6) + invocation0 < var_n) {
    data0[p0] = x0;
  }
}
