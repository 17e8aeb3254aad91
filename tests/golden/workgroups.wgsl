// add: GLOBAL r0, SIMD r0 4 1, LOCAL r0.0 256
// grid (4, 1, 1), workgroups of (256, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> data1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> data2: array<vec4<f32>>;

fn store4_data0(i: i32, value: vec4<f32>) {
  data0[i >> 2u] = value;
}

fn load4_data1(i: i32) -> vec4<f32> {
  return data1[i >> 2u];
}

fn load4_data2(i: i32) -> vec4<f32> {
  return data2[i >> 2u];
}

@compute @workgroup_size(256, 1, 1)
fn add(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let p0: i32 = (i32(workgroup.x) << 10u) + (i32(local.x) << 2u);
  let v0: vec4<f32> = load4_data1(p0);
  let v1: vec4<f32> = load4_data2(p0);
  store4_data0(p0, vec4<f32>(v0.x + v1.x, v0.y + v1.y, v0.z + v1.z, v0.w + v1.w));
}

// add_odd: GLOBAL r0, LOCAL r0 256
// grid (4, 1, 1), workgroups of (256, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
@group(0) @binding(2) var<storage, read_write> data2: array<f32>;

@compute @workgroup_size(256, 1, 1)
fn add_odd(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let x0: i32 = g0 << 8u;
  let p0: i32 = select(745, x0, g0 < 3) + i32(local.x);
  let x1: f32 = data1[p0] + data2[p0];
  if ((p0 < x0) != true) {
    data0[p0] = x1;
  }
}

// matmul: GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, SIMD r1 4 1, LOCAL r1.0 4, SPLIT r2 32, STAGE r2.1 LOAD 0, STAGE r2.1 LOAD 2
// grid (4, 4, 1), workgroups of (4, 8, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
@group(0) @binding(2) var<storage, read_write> data2: array<vec4<f32>>;
var<workgroup> shared0: array<f32, 512>;
var<workgroup> shared1: array<f32, 512>;

fn store4_data0(i: i32, value: vec4<f32>) {
  data0[i >> 2u] = value;
}

fn load4_data2(i: i32) -> vec4<f32> {
  return data2[i >> 2u];
}

@compute @workgroup_size(4, 8, 1)
fn matmul(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  let l1: i32 = i32(local.y);
  let x0: i32 = l0 << 2u;
  let p0: i32 = (i32(workgroup.x) << 4u) + x0;
  let x1: i32 = l1 << 6u;
  let p1: i32 = p0 + x1;
  let x2: i32 = i32(workgroup.y) << 10u;
  let p2: i32 = (l1 << 2u) + l0 + x2;
  let p3: i32 = x0 + (l1 << 4u);
  let p4: i32 = x1 + (l0 << 4u);
  let x3: i32 = l1 << 1u;
  var acc0: f32 = 0.0f;
  var acc1: f32 = 0.0f;
  var acc2: f32 = 0.0f;
  var acc3: f32 = 0.0f;
  var acc4: f32 = 0.0f;
  var acc5: f32 = 0.0f;
  var acc6: f32 = 0.0f;
  var acc7: f32 = 0.0f;
  for (var i0: i32 = 0; i0 < 2; i0++) {
    workgroupBarrier();
    let x4: i32 = i0 << 5u;
    for (var i1: i32 = 0; i1 < 16; i1++) {
      shared0[p4 + i1] = data1[p2 + (i1 << 6u) + x4];
    }
    let x5: i32 = i0 << 11u;
    for (var i2: i32 = 0; i2 < 4; i2++) {
      let v0: vec4<f32> = load4_data2(p1 + (i2 << 9u) + x5);
      let p5: i32 = p3 + (i2 << 7u);
      shared1[p5] = v0.x;
      shared1[p5 + 1] = v0.y;
      shared1[p5 + 2] = v0.z;
      shared1[p5 + 3] = v0.w;
    }
    workgroupBarrier();
    for (var i3: i32 = 0; i3 < 32; i3++) {
      let x6: i32 = i3 << 4u;
      let p6: i32 = x3 + x6;
      let x7: f32 = shared0[p6];
      let x8: f32 = shared0[p6 + 1];
      let p7: i32 = x0 + x6;
      let x9: f32 = shared1[p7];
      let x10: f32 = shared1[p7 + 1];
      let x11: f32 = shared1[p7 + 2];
      let x12: f32 = shared1[p7 + 3];
      acc0 += x7 * x9;
      acc1 += x7 * x10;
      acc2 += x7 * x11;
      acc3 += x7 * x12;
      acc4 += x8 * x9;
      acc5 += x8 * x10;
      acc6 += x8 * x11;
      acc7 += x8 * x12;
    }
  }
  let p8: i32 = p0 + x2 + (l1 << 7u);
  store4_data0(p8, vec4<f32>(acc0, acc1, acc2, acc3));
  store4_data0(p8 + 64, vec4<f32>(acc4, acc5, acc6, acc7));
}

// matmul_odd: GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, LOCAL r1 16, UPCAST r1.1 2, STAGE r2 LOAD 0, STAGE r2 LOAD 2
// grid (3, 4, 1), workgroups of (8, 8, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
@group(0) @binding(2) var<storage, read_write> data2: array<f32>;
var<workgroup> shared0: array<f32, 640>;
var<workgroup> shared1: array<f32, 640>;

fn floor_divide_i32(a: i32, b: i32) -> i32 {
  let rest: i32 = a % b;
  return a / b - select(0, 1, (rest != 0) & ((rest ^ b) < 0));
}

fn floor_modulo_i32(a: i32, b: i32) -> i32 {
  let rest: i32 = a % b;
  return rest + select(0, b, (rest != 0) & ((rest ^ b) < 0));
}

@compute @workgroup_size(8, 8, 1)
fn matmul_odd(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let g1: i32 = i32(workgroup.y);
  let l0: i32 = i32(local.x);
  let l1: i32 = i32(local.y);
  let x0: i32 = l1 << 3u;
  let x1: i32 = g1 << 4u;
  let p0: i32 = select(34, x1, g1 < 3);
  let p1: i32 = x0 + l0 + p0 * 40;
  let x2: i32 = l0 << 4u;
  for (var i0: i32 = 0; i0 < 10; i0++) {
    let p2: i32 = x2 + floor_divide_i32(l1 + (i0 << 3u), 5) + (floor_modulo_i32(l1 + i0 * 3, 5) << 7u);
    shared0[p2] = data1[p1 + (i0 << 6u)];
  }
  let x3: i32 = g0 << 4u;
  let p3: i32 = select(17, x3, g0 < 2);
  let p4: i32 = p3 + ((l1 & 1) << 3u) + l0 + (l1 >> 1u) * 33;
  let p5: i32 = l0 + x0;
  for (var i1: i32 = 0; i1 < 10; i1++) {
    shared1[p5 + (i1 << 6u)] = data2[p4 + i1 * 132];
  }
  workgroupBarrier();
  let x4: i32 = l0 << 1u;
  let x5: i32 = l1 << 1u;
  var acc0: f32 = 0.0f;
  var acc1: f32 = 0.0f;
  var acc2: f32 = 0.0f;
  var acc3: f32 = 0.0f;
  for (var i2: i32 = 0; i2 < 40; i2++) {
    let x6: i32 = i2 << 4u;
    let p6: i32 = x5 + x6;
    let p7: i32 = x4 + x6;
    let x7: f32 = shared0[p6];
    let x8: f32 = shared1[p7];
    let x9: f32 = shared1[p7 + 1];
    let x10: f32 = shared0[p6 + 1];
    acc0 += x7 * x8;
    acc1 += x7 * x9;
    acc2 += x10 * x8;
    acc3 += x10 * x9;
  }
  let acc4: f32 = acc0;
  let acc5: f32 = acc1;
  let acc6: f32 = acc2;
  let acc7: f32 = acc3;
  let p8: i32 = p3 + x4;
  let p9: i32 = p8 + p0 * 33 + l1 * 66;
  let p10: i32 = p0 + x5;
  let x11: bool = (p10 < x1) != true;
  let x12: bool = (p8 < x3) != true;
  let x13: bool = (p8 + 1 < x3) != true;
  let x14: bool = (p10 + 1 < x1) != true;
  if (x11 & x12) {
    data0[p9] = acc4;
  }
  if (x11 & x13) {
    data0[p9 + 1] = acc5;
  }
  if (x14 & x12) {
    data0[p9 + 33] = acc6;
  }
  if (x14 & x13) {
    data0[p9 + 34] = acc7;
  }
}

// matmul_small_grid: GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, SIMD r1 4 1, LOCAL r1.0 4, GROUP r2 4, SPLIT r2.0 8, STAGE r2.0.1 LOAD 0, STAGE r2.0.1 LOAD 2
// grid (1, 1, 1), workgroups of (4, 8, 4)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
@group(0) @binding(2) var<storage, read_write> data2: array<vec4<f32>>;
var<workgroup> shared0: array<f32, 512>;
var<workgroup> shared1: array<f32, 512>;
var<workgroup> shared2: array<f32, 1024>;

fn store4_data0(i: i32, value: vec4<f32>) {
  data0[i >> 2u] = value;
}

fn load4_data2(i: i32) -> vec4<f32> {
  return data2[i >> 2u];
}

@compute @workgroup_size(4, 8, 4)
fn matmul_small_grid(@builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  let l1: i32 = i32(local.y);
  let l2: i32 = i32(local.z);
  let x0: i32 = l0 << 4u;
  let x1: i32 = l2 << 7u;
  let p0: i32 = ((l1 & 3) << 2u) + x0 + x1 + ((l1 >> 2u) << 6u);
  let x2: i32 = l0 << 2u;
  let p1: i32 = x2 + x1 + (l1 << 4u);
  let p2: i32 = (l1 << 2u) + l0 + (l2 << 9u);
  let x3: i32 = l2 << 2u;
  let p3: i32 = l0 + x3 + (l1 << 6u);
  let p4: i32 = x3 + x0;
  let p5: i32 = l2 + (l1 << 3u);
  var acc0: f32 = 0.0f;
  var acc1: f32 = 0.0f;
  var acc2: f32 = 0.0f;
  var acc3: f32 = 0.0f;
  var acc4: f32 = 0.0f;
  var acc5: f32 = 0.0f;
  var acc6: f32 = 0.0f;
  var acc7: f32 = 0.0f;
  for (var i0: i32 = 0; i0 < 16; i0++) {
    workgroupBarrier();
    let x4: i32 = i0 << 5u;
    for (var i1: i32 = 0; i1 < 4; i1++) {
      shared0[p3 + (i1 << 4u)] = data1[p2 + (i1 << 11u) + x4];
    }
    let v0: vec4<f32> = load4_data2(p1 + (i0 << 9u));
    shared1[p0] = v0.x;
    shared1[p0 + 1] = v0.y;
    shared1[p0 + 2] = v0.z;
    shared1[p0 + 3] = v0.w;
    workgroupBarrier();
    for (var i2: i32 = 0; i2 < 8; i2++) {
      let x5: i32 = i2 << 6u;
      let p6: i32 = p5 + x5;
      let x6: f32 = shared0[p6];
      let x7: f32 = shared0[p6 + 4];
      let p7: i32 = p4 + x5;
      let x8: f32 = shared1[p7];
      let x9: f32 = shared1[p7 + 1];
      let x10: f32 = shared1[p7 + 2];
      let x11: f32 = shared1[p7 + 3];
      acc0 += x6 * x8;
      acc1 += x6 * x9;
      acc2 += x6 * x10;
      acc3 += x6 * x11;
      acc4 += x7 * x8;
      acc5 += x7 * x9;
      acc6 += x7 * x10;
      acc7 += x7 * x11;
    }
  }
  let p8: i32 = x2 + (l1 << 5u);
  let p9: i32 = p8 + (l2 << 8u);
  shared2[p9] = acc0;
  shared2[p9 + 1] = acc1;
  shared2[p9 + 2] = acc2;
  shared2[p9 + 3] = acc3;
  shared2[p9 + 16] = acc4;
  shared2[p9 + 17] = acc5;
  shared2[p9 + 18] = acc6;
  shared2[p9 + 19] = acc7;
  workgroupBarrier();
  let m0: bool = l2 < 2;
  let p10: i32 = p8 + (select(l2, l2 + 2, m0) << 8u);
  let x12: f32 = shared2[p9] + shared2[p10];
  let x13: f32 = shared2[p9 + 1] + shared2[p10 + 1];
  let x14: f32 = shared2[p9 + 2] + shared2[p10 + 2];
  let x15: f32 = shared2[p9 + 3] + shared2[p10 + 3];
  let x16: f32 = shared2[p9 + 16] + shared2[p10 + 16];
  let x17: f32 = shared2[p9 + 17] + shared2[p10 + 17];
  let x18: f32 = shared2[p9 + 18] + shared2[p10 + 18];
  let x19: f32 = shared2[p9 + 19] + shared2[p10 + 19];
  if (m0) {
    shared2[p9] = x12;
    shared2[p9 + 1] = x13;
    shared2[p9 + 2] = x14;
    shared2[p9 + 3] = x15;
    shared2[p9 + 16] = x16;
    shared2[p9 + 17] = x17;
    shared2[p9 + 18] = x18;
    shared2[p9 + 19] = x19;
  }
  workgroupBarrier();
  let m1: bool = l2 < 1;
  let p11: i32 = p8 + (select(l2, l2 + 1, m1) << 8u);
  let x20: f32 = shared2[p9] + shared2[p11];
  let x21: f32 = shared2[p9 + 1] + shared2[p11 + 1];
  let x22: f32 = shared2[p9 + 2] + shared2[p11 + 2];
  let x23: f32 = shared2[p9 + 3] + shared2[p11 + 3];
  let x24: f32 = shared2[p9 + 16] + shared2[p11 + 16];
  let x25: f32 = shared2[p9 + 17] + shared2[p11 + 17];
  let x26: f32 = shared2[p9 + 18] + shared2[p11 + 18];
  let x27: f32 = shared2[p9 + 19] + shared2[p11 + 19];
  if (m1) {
    shared2[p9] = x20;
    shared2[p9 + 1] = x21;
    shared2[p9 + 2] = x22;
    shared2[p9 + 3] = x23;
    shared2[p9 + 16] = x24;
    shared2[p9 + 17] = x25;
    shared2[p9 + 18] = x26;
    shared2[p9 + 19] = x27;
  }
  workgroupBarrier();
  let x28: f32 = shared2[p8];
  let x29: f32 = shared2[p8 + 1];
  let x30: f32 = shared2[p8 + 2];
  let x31: f32 = shared2[p8 + 3];
  let x32: f32 = shared2[p8 + 16];
  let x33: f32 = shared2[p8 + 17];
  let x34: f32 = shared2[p8 + 18];
  let x35: f32 = shared2[p8 + 19];
  if (m1) {
    store4_data0(p8, vec4<f32>(x28, x29, x30, x31));
    store4_data0(p8 + 16, vec4<f32>(x32, x33, x34, x35));
  }
}

// convolution: GLOBAL r0, GLOBAL r1, GLOBAL r2, LOCAL r0 16, UPCAST r0.1 2, LOCAL r2 16, UPCAST r2.1 2, SPLIT r3 2, STAGE r3.1 r4 r5 LOAD 0, STAGE r3.1 r4 r5 LOAD 2
// grid (2, 20, 1), workgroups of (8, 8, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
@group(0) @binding(2) var<storage, read_write> data2: array<f32>;
var<workgroup> shared0: array<f32, 288>;
var<workgroup> shared1: array<f32, 288>;

fn floor_divide_i32(a: i32, b: i32) -> i32 {
  let rest: i32 = a % b;
  return a / b - select(0, 1, (rest != 0) & ((rest ^ b) < 0));
}

fn floor_modulo_i32(a: i32, b: i32) -> i32 {
  let rest: i32 = a % b;
  return rest + select(0, b, (rest != 0) & ((rest ^ b) < 0));
}

@compute @workgroup_size(8, 8, 1)
fn convolution(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let g1: i32 = i32(workgroup.y);
  let l0: i32 = i32(local.x);
  let l1: i32 = i32(local.y);
  let p0: i32 = (l1 << 3u) + l0;
  let p1: i32 = g1 * 20;
  let x0: i32 = g0 << 4u;
  let p2: i32 = select(4, x0, g0 < 1);
  let p3: i32 = p2 + p1;
  let x1: i32 = l0 << 1u;
  let x2: i32 = l1 << 1u;
  var acc0: f32 = 0.0f;
  var acc1: f32 = 0.0f;
  var acc2: f32 = 0.0f;
  var acc3: f32 = 0.0f;
  for (var i0: i32 = 0; i0 < 4; i0++) {
    workgroupBarrier();
    let p4: i32 = i0 * 800;
    for (var i1: i32 = 0; i1 < 5; i1++) {
      let p5: i32 = p0 + (i1 << 6u);
      let p6: i32 = select(287, p5, p5 < 287);
      let p7: i32 = floor_divide_i32(p6, 3) & 15;
      let x3: i32 = floor_modulo_i32(p6, 3);
      let x4: i32 = floor_divide_i32(p6, 48);
      let x5: i32 = floor_modulo_i32(x4, 3);
      let p8: i32 = p2 + p7 + x3;
      let p9: i32 = g1 + x5;
      let x6: bool = (((0 < p9) & (p9 < 21)) & (0 < p8)) & (p8 < 21);
      let p10: i32 = select(21, p3 + p7 + x3 + x5 * 20 + floor_divide_i32(p6, 144) * 400 + p4, x6);
      let x7: f32 = select(0.0f, data1[p10 - 21], x6);
      let p11: i32 = p7 + (x3 << 4u) + x4 * 48;
      if (l1 + (i1 << 3u) < 36) {
        shared0[p11] = x7;
      }
    }
    let p12: i32 = i0 * 18;
    for (var i2: i32 = 0; i2 < 5; i2++) {
      let p13: i32 = p0 + (i2 << 6u);
      let p14: i32 = select(287, p13, p13 < 287);
      let x8: i32 = floor_divide_i32(p14, 18);
      let x9: i32 = floor_modulo_i32(p14, 18);
      let x10: f32 = data2[x9 + x8 * 72 + p12];
      let p15: i32 = x8 + (x9 << 4u);
      if (l1 + (i2 << 3u) < 36) {
        shared1[p15] = x10;
      }
    }
    workgroupBarrier();
    for (var i3: i32 = 0; i3 < 2; i3++) {
      let p16: i32 = i3 * 144;
      let p17: i32 = x1 + p16;
      let p18: i32 = x2 + p16;
      for (var i4: i32 = 0; i4 < 3; i4++) {
        let p19: i32 = i4 * 48;
        let p20: i32 = p17 + p19;
        let p21: i32 = p18 + p19;
        for (var i5: i32 = 0; i5 < 3; i5++) {
          let x11: i32 = i5 << 4u;
          let p22: i32 = p20 + x11;
          let p23: i32 = p21 + x11;
          let x12: f32 = shared0[p22];
          let x13: f32 = shared1[p23];
          let x14: f32 = shared1[p23 + 1];
          let x15: f32 = shared0[p22 + 1];
          acc0 += x12 * x13;
          acc1 += x15 * x13;
          acc2 += x12 * x14;
          acc3 += x15 * x14;
        }
      }
    }
  }
  let acc4: f32 = acc0;
  let acc5: f32 = acc1;
  let acc6: f32 = acc2;
  let acc7: f32 = acc3;
  let p24: i32 = p2 + x1;
  let p25: i32 = p24 + p1 + l1 * 800;
  let x16: bool = (p24 < x0) != true;
  let x17: bool = (p24 + 1 < x0) != true;
  if (x16) {
    data0[p25] = acc4;
  }
  if (x17) {
    data0[p25 + 1] = acc5;
  }
  if (x16) {
    data0[p25 + 400] = acc6;
  }
  if (x17) {
    data0[p25 + 401] = acc7;
  }
}

// sum_rows: GLOBAL r0, SIMD r1 4 1, GROUP r1.0 128
// grid (40, 1, 1), workgroups of (128, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<vec4<f32>>;
var<workgroup> shared0: array<f32, 128>;

fn as_rounded(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) | arguments.zero_bits);
}

fn load4_data1(i: i32) -> vec4<f32> {
  return data1[i >> 2u];
}

@compute @workgroup_size(128, 1, 1)
fn sum_rows(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let l0: i32 = i32(local.x);
  let v0: vec4<f32> = load4_data1((l0 << 2u) + (g0 << 9u));
  shared0[l0] = as_rounded(v0.x + v0.z) + as_rounded(v0.y + v0.w);
  workgroupBarrier();
  let m0: bool = l0 < 64;
  let x0: f32 = shared0[l0] + shared0[select(l0, l0 + 64, m0)];
  if (m0) {
    shared0[l0] = x0;
  }
  workgroupBarrier();
  let m1: bool = l0 < 32;
  let x1: f32 = shared0[l0] + shared0[select(l0, l0 + 32, m1)];
  if (m1) {
    shared0[l0] = x1;
  }
  workgroupBarrier();
  let m2: bool = l0 < 16;
  let x2: f32 = shared0[l0] + shared0[select(l0, l0 + 16, m2)];
  if (m2) {
    shared0[l0] = x2;
  }
  workgroupBarrier();
  let m3: bool = l0 < 8;
  let x3: f32 = shared0[l0] + shared0[select(l0, l0 + 8, m3)];
  if (m3) {
    shared0[l0] = x3;
  }
  workgroupBarrier();
  let m4: bool = l0 < 4;
  let x4: f32 = shared0[l0] + shared0[select(l0, l0 + 4, m4)];
  if (m4) {
    shared0[l0] = x4;
  }
  workgroupBarrier();
  let m5: bool = l0 < 2;
  let x5: f32 = shared0[l0] + shared0[select(l0, l0 + 2, m5)];
  if (m5) {
    shared0[l0] = x5;
  }
  workgroupBarrier();
  let m6: bool = l0 < 1;
  let x6: f32 = shared0[l0] + shared0[select(l0, l0 + 1, m6)];
  if (m6) {
    shared0[l0] = x6;
  }
  workgroupBarrier();
  let x7: f32 = shared0[0];
  if (m6) {
    data0[g0] = x7;
  }
}

// sum_columns: GLOBAL r0, LOCAL r0 32, GROUP r1 8, UNROLL r1.0 4
// grid (2, 1, 1), workgroups of (32, 8, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
var<workgroup> shared0: array<f32, 256>;

fn as_rounded(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) | arguments.zero_bits);
}

@compute @workgroup_size(32, 8, 1)
fn sum_columns(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let l0: i32 = i32(local.x);
  let l1: i32 = i32(local.y);
  let x0: i32 = g0 << 5u;
  let p0: i32 = select(8, x0, g0 < 1) + l0;
  let p1: i32 = p0 + l1 * 40;
  var acc0: f32 = 0.0f;
  var acc1: f32 = 0.0f;
  var acc2: f32 = 0.0f;
  var acc3: f32 = 0.0f;
  for (var i0: i32 = 0; i0 < 16; i0++) {
    let p2: i32 = p1 + i0 * 1280;
    acc0 += data1[p2];
    acc1 += data1[p2 + 320];
    acc2 += data1[p2 + 640];
    acc3 += data1[p2 + 960];
  }
  let p3: i32 = l0 + (l1 << 5u);
  shared0[p3] = as_rounded(acc0 + acc2) + as_rounded(acc1 + acc3);
  workgroupBarrier();
  let m0: bool = l1 < 4;
  let x1: f32 = shared0[p3] + shared0[l0 + (select(l1, l1 + 4, m0) << 5u)];
  if (m0) {
    shared0[p3] = x1;
  }
  workgroupBarrier();
  let m1: bool = l1 < 2;
  let x2: f32 = shared0[p3] + shared0[l0 + (select(l1, l1 + 2, m1) << 5u)];
  if (m1) {
    shared0[p3] = x2;
  }
  workgroupBarrier();
  let m2: bool = l1 < 1;
  let x3: f32 = shared0[p3] + shared0[l0 + (select(l1, l1 + 1, m2) << 5u)];
  if (m2) {
    shared0[p3] = x3;
  }
  workgroupBarrier();
  let x4: f32 = shared0[l0];
  if (((p0 < x0) != true) & m2) {
    data0[p0] = x4;
  }
}

// max_rows: GLOBAL r0, GROUP r1 32
// grid (9, 1, 1), workgroups of (32, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
var<workgroup> shared0: array<f32, 32>;

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn max_f32(a: f32, b: f32) -> f32 {
  return select(b, a, (a > b) | is_nan(a));
}

@compute @workgroup_size(32, 1, 1)
fn max_rows(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let l0: i32 = i32(local.x);
  shared0[l0] = data1[l0 + (g0 << 5u)];
  workgroupBarrier();
  let m0: bool = l0 < 16;
  let x0: f32 = max_f32(shared0[l0], shared0[select(l0, l0 + 16, m0)]);
  if (m0) {
    shared0[l0] = x0;
  }
  workgroupBarrier();
  let m1: bool = l0 < 8;
  let x1: f32 = max_f32(shared0[l0], shared0[select(l0, l0 + 8, m1)]);
  if (m1) {
    shared0[l0] = x1;
  }
  workgroupBarrier();
  let m2: bool = l0 < 4;
  let x2: f32 = max_f32(shared0[l0], shared0[select(l0, l0 + 4, m2)]);
  if (m2) {
    shared0[l0] = x2;
  }
  workgroupBarrier();
  let m3: bool = l0 < 2;
  let x3: f32 = max_f32(shared0[l0], shared0[select(l0, l0 + 2, m3)]);
  if (m3) {
    shared0[l0] = x3;
  }
  workgroupBarrier();
  let m4: bool = l0 < 1;
  let x4: f32 = max_f32(shared0[l0], shared0[select(l0, l0 + 1, m4)]);
  if (m4) {
    shared0[l0] = x4;
  }
  workgroupBarrier();
  let x5: f32 = shared0[0];
  if (m4) {
    data0[g0] = x5;
  }
}

// symbolic: GLOBAL r0, LOCAL r0 64
// grid (('ADD', ('SHR', ('ADD', 'n', -1), 6), 1), 1, 1), workgroups of (64, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
  v_n: i32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;

@compute @workgroup_size(64, 1, 1)
fn symbolic(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let l0: i32 = i32(local.x);
  let x0: i32 = -max(g0 * -64 - l0, 1 - arguments.v_n);
  let x1: f32 = data1[x0] + 1.0f;
  if ((g0 << 6u) + l0 < arguments.v_n) {
    data0[x0] = x1;
  }
}

// bools_and_bytes: GLOBAL r0, LOCAL r0 100
// grid (1, 1, 1), workgroups of (100, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> data1: array<u32>;
@group(0) @binding(2) var<storage, read_write> data2: array<u32>;

fn store_data0(i: i32, value: bool) {
  let place: u32 = u32(i & 3) * 8u;
  atomicAnd(&data0[i >> 2u], ~(0xffu << place));
  atomicOr(&data0[i >> 2u], select(0u, 1u, value) << place);
}

fn load_data1(i: i32) -> i32 {
  return extractBits(bitcast<i32>(data1[i >> 2u]), u32(i & 3) * 8u, 8u);
}

fn load_data2(i: i32) -> i32 {
  return extractBits(bitcast<i32>(data2[i >> 2u]), u32(i & 3) * 8u, 8u);
}

@compute @workgroup_size(100, 1, 1)
fn bools_and_bytes(@builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  store_data0(l0, load_data1(l0) < load_data2(l0));
}

// halves: GLOBAL r0, LOCAL r0 64
// grid (1, 1, 1), workgroups of (64, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> data1: array<u32>;
@group(0) @binding(2) var<storage, read_write> data2: array<u32>;

fn bf16_to_f32(bits: u32) -> f32 {
  return bitcast<f32>(bits << 16u);
}

fn f32_to_f16(x: f32) -> u32 {
  let bits: u32 = bitcast<u32>(x);
  let sign: u32 = (bits >> 16u) & 0x8000u;
  let size: u32 = bits & 0x7fffffffu;
  if (size > 0x7f800000u) {
    return sign | 0x7e00u;
  }
  if (size >= 0x47800000u) {
    return sign | 0x7c00u;
  }
  if (size < 0x38800000u) {
    return sign | (bitcast<u32>(bitcast<f32>(size) + 0.5f) - 0x3f000000u);
  }
  return sign | ((size - 0x38000000u + 0xfffu + ((size >> 13u) & 1u)) >> 13u);
}

fn f16_to_f32(bits: u32) -> f32 {
  let sign: u32 = (bits & 0x8000u) << 16u;
  let size: u32 = bits & 0x7fffu;
  if (size < 0x400u) {
    let small: f32 = f32(i32(size)) * 5.9604644775390625e-8f;
    return bitcast<f32>(bitcast<u32>(small) | sign);
  }
  return bitcast<f32>(((size << 13u) + select(0x38000000u, 0x70000000u, size >= 0x7c00u)) | sign);
}

fn store_data0(i: i32, value: u32) {
  let place: u32 = u32(i & 1) * 16u;
  atomicAnd(&data0[i >> 1u], ~(0xffffu << place));
  atomicOr(&data0[i >> 1u], value << place);
}

fn load_data1(i: i32) -> u32 {
  return extractBits(data1[i >> 1u], u32(i & 1) * 16u, 16u);
}

fn load_data2(i: i32) -> u32 {
  return extractBits(data2[i >> 1u], u32(i & 1) * 16u, 16u);
}

@compute @workgroup_size(64, 1, 1)
fn halves(@builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  let x0: f32 = f16_to_f32(load_data1(l0)) * f16_to_f32(f32_to_f16(bf16_to_f32(load_data2(l0))));
  store_data0(l0, f32_to_f16(x0));
}

// bytes_by_fours: GLOBAL r0, SIMD r0 4 1, LOCAL r0.0 256
// grid (4, 1, 1), workgroups of (256, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<u32>;
@group(0) @binding(1) var<storage, read_write> data1: array<u32>;
@group(0) @binding(2) var<storage, read_write> data2: array<u32>;

fn store4_data0(i: i32, value: vec4<bool>) {
  data0[i >> 2u] = select(0u, 1u, value.x) | (select(0u, 1u, value.y) << 8u) | (select(0u, 1u, value.z) << 16u) | (select(0u, 1u, value.w) << 24u);
}

fn load4_data1(i: i32) -> vec4<i32> {
  let word0: u32 = data1[i >> 2u];
  return vec4<i32>(extractBits(bitcast<i32>(word0), 0u, 8u), extractBits(bitcast<i32>(word0), 8u, 8u), extractBits(bitcast<i32>(word0), 16u, 8u), extractBits(bitcast<i32>(word0), 24u, 8u));
}

fn load4_data2(i: i32) -> vec4<u32> {
  let word0: u32 = data2[i >> 2u];
  return vec4<u32>(extractBits(word0, 0u, 8u), extractBits(word0, 8u, 8u), extractBits(word0, 16u, 8u), extractBits(word0, 24u, 8u));
}

@compute @workgroup_size(256, 1, 1)
fn bytes_by_fours(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let p0: i32 = (i32(workgroup.x) << 10u) + (i32(local.x) << 2u);
  let v0: vec4<i32> = load4_data1(p0);
  let v1: vec4<u32> = load4_data2(p0);
  store4_data0(p0, vec4<bool>(v0.x < extractBits(bitcast<i32>(v1.x), 0u, 8u), v0.y < extractBits(bitcast<i32>(v1.y), 0u, 8u), v0.z < extractBits(bitcast<i32>(v1.z), 0u, 8u), v0.w < extractBits(bitcast<i32>(v1.w), 0u, 8u)));
}

// halves_by_fours: GLOBAL r0, SIMD r0 4 1, LOCAL r0.0 256
// grid (4, 1, 1), workgroups of (256, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<u32>;
@group(0) @binding(1) var<storage, read_write> data1: array<u32>;

fn bf16_to_f32(bits: u32) -> f32 {
  return bitcast<f32>(bits << 16u);
}

fn f32_to_bf16(x: f32) -> u32 {
  let bits: u32 = bitcast<u32>(x);
  let high: u32 = bits >> 16u;
  let rounded: u32 = (bits + 0x7fffu + (high & 1u)) >> 16u;
  return select(rounded, high | 0x40u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn store4_data0(i: i32, value: vec4<u32>) {
  data0[i >> 1u] = value.x | (value.y << 16u);
  data0[(i >> 1u) + 1] = value.z | (value.w << 16u);
}

fn load4_data1(i: i32) -> vec4<u32> {
  let word0: u32 = data1[i >> 1u];
  let word1: u32 = data1[(i >> 1u) + 1];
  return vec4<u32>(extractBits(word0, 0u, 16u), extractBits(word0, 16u, 16u), extractBits(word1, 0u, 16u), extractBits(word1, 16u, 16u));
}

@compute @workgroup_size(256, 1, 1)
fn halves_by_fours(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let p0: i32 = (i32(workgroup.x) << 10u) + (i32(local.x) << 2u);
  let v0: vec4<u32> = load4_data1(p0);
  store4_data0(p0, vec4<u32>(f32_to_bf16(bf16_to_f32(v0.x) * 2.0f), f32_to_bf16(bf16_to_f32(v0.y) * 2.0f), f32_to_bf16(bf16_to_f32(v0.z) * 2.0f), f32_to_bf16(bf16_to_f32(v0.w) * 2.0f)));
}

// long_integers: GLOBAL r0, LOCAL r0 10
// grid (1, 1, 1), workgroups of (10, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> data1: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> data2: array<vec2<u32>>;

fn mul_32(a: u32, b: u32) -> vec2<u32> {
  let low: u32 = (a & 0xffffu) * (b & 0xffffu);
  let first: u32 = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let second: u32 = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
  return vec2<u32>((second << 16u) | (low & 0xffffu), (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >>
  16u));
}

fn mul_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let product: vec2<u32> = mul_32(a.x, b.x);
  return vec2<u32>(product.x, product.y + a.x * b.y + a.y * b.x);
}

fn eq_64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (a.x == b.x) & (a.y == b.y);
}

fn shl_64(a: vec2<u32>, places: u32) -> vec2<u32> {
  if (places >= 32u) {
    return vec2<u32>(0u, a.x << (places - 32u));
  }
  if (places == 0u) {
    return a;
  }
  return vec2<u32>(a.x << places, (a.y << places) | (a.x >> (32u - places)));
}

fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}

fn sub_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn divide_64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if ((a.y == 0u) & (b.y == 0u)) {
    return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u);
  }
  var quotient: vec2<u32> = a;
  var rest: vec2<u32> = vec2<u32>(0u, 0u);
  for (var i: i32 = 0; i < 64; i++) {
    let carry: bool = rest.y >= 0x80000000u;
    rest = shl_64(rest, 1u);
    rest.x |= quotient.y >> 31u;
    quotient = shl_64(quotient, 1u);
    if (carry | !lt_u64(rest, b)) {
      rest = sub_64(rest, b);
      quotient.x |= 1u;
    }
  }
  return vec4<u32>(quotient, rest);
}

fn neg_64(a: vec2<u32>) -> vec2<u32> {
  return sub_64(vec2<u32>(0u, 0u), a);
}

fn abs_64(a: vec2<u32>) -> vec2<u32> {
  if (a.y >= 0x80000000u) {
    return neg_64(a);
  }
  return a;
}

fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low: u32 = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn floor_divide_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let both: vec4<u32> = divide_64(abs_64(a), abs_64(b));
  if (((a.y ^ b.y) & 0x80000000u) == 0u) {
    return both.xy;
  }
  let exact: bool = (both.z == 0u) & (both.w == 0u);
  return neg_64(add_64(both.xy, vec2<u32>(select(1u, 0u, exact), 0u)));
}

@compute @workgroup_size(10, 1, 1)
fn long_integers(@builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  let x0: vec2<u32> = data2[l0];
  let x1: vec2<u32> = mul_64(data1[l0], vec2<u32>(0x3u, 0x0u));
  let x2: bool = eq_64(x0, vec2<u32>(0x0u, 0x0u)) | eq_64(x0, vec2<u32>(0xffffffffu, 0xffffffffu));
  let x3: vec2<u32> = select(floor_divide_i64(x1, select(x0, vec2<u32>(0x1u, 0x0u), x2)), mul_64(x1, x0), x2);
  data0[l0] = x3;
}

// special_numbers: GLOBAL r0, LOCAL r0 10
// grid (1, 1, 1), workgroups of (10, 1, 1)

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
@group(0) @binding(2) var<storage, read_write> data2: array<f32>;

fn as_rounded(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) | arguments.zero_bits);
}

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn max_f32(a: f32, b: f32) -> f32 {
  return select(b, a, (a > b) | is_nan(a));
}

fn store_data0(i: i32, value: bool) {
  let place: u32 = u32(i & 3) * 8u;
  atomicAnd(&data0[i >> 2u], ~(0xffu << place));
  atomicOr(&data0[i >> 2u], select(0u, 1u, value) << place);
}

@compute @workgroup_size(10, 1, 1)
fn special_numbers(@builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  let x0: f32 = data1[l0];
  let m0: bool = x0 < 1.1754944e-38f;
  let x1: i32 = bitcast<i32>(select(x0, x0 * 4294967296.0f, m0)) + 4913933;
  let x2: f32 = bitcast<f32>((x1 & 8388607) + 1060439283);
  let x3: f32 = x2 + -1.0f;
  let x4: f32 = x3 / (x2 + 1.0f);
  let x5: f32 = x4 * x4;
  let x6: f32 = x5 * ((0.29580054f * x5 + 0.39988777f) * x5 + 0.66666687f) - as_rounded(x3);
  let x7: f32 = x4 * x6;
  let x8: f32 = as_rounded(as_rounded(x3) + as_rounded(x7 + (as_rounded(x3) + x7) * 0.44269505f));
  let x9: f32 = select(arguments.infinity, f32((x1 >> 23u) + select(-127, -159, m0)) + x8, x0 < arguments.infinity);
  let x10: f32 = select(select(arguments.nan, (-arguments.infinity), x0 == 0.0f), x9, 0.0f < x0);
  let x11: f32 = max_f32(x10 * arguments.infinity, data2[l0]);
  store_data0(l0, !(x11 == x11));
}
