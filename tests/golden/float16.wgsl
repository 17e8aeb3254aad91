// add: GLOBAL r0, GLOBAL r1, LOCAL r1 64, LOCAL r0 4
// grid (10, 1, 1), workgroups of (64, 4, 1)

enable f16;

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f16>;
@group(0) @binding(1) var<storage, read_write> data1: array<f16>;

@compute @workgroup_size(64, 4, 1)
fn add(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  let x0: i32 = i32(workgroup.x) << 8u;
  let x1: i32 = i32(local.y) << 6u;
  let p0: i32 = l0 + x0 + x1;
  data0[p0] = f16(f32(data1[p0]) + f32(data1[x0 - l0 + x1 + 63]));
}

// product: GLOBAL r0, GLOBAL r1, LOCAL r0 16, UPCAST r0.1 2, SIMD r1 4 1, LOCAL r1.0 4, SPLIT r2 32, STAGE r2.1 CAST 0, STAGE r2.1 CAST 1
// grid (2, 3, 1), workgroups of (4, 8, 1)

enable f16;

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(3) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> data1: array<f16>;
@group(0) @binding(2) var<storage, read_write> data2: array<vec4<f16>>;
var<workgroup> shared0: array<f32, 512>;
var<workgroup> shared1: array<f32, 512>;

fn store4_data0(i: i32, value: vec4<f16>) {
  data0[i >> 2u] = value;
}

fn load4_data2(i: i32) -> vec4<f16> {
  return data2[i >> 2u];
}

@compute @workgroup_size(4, 8, 1)
fn product(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let g1: i32 = i32(workgroup.y);
  let l0: i32 = i32(local.x);
  let l1: i32 = i32(local.y);
  let x0: i32 = g0 << 2u;
  let p0: i32 = select(2, x0, g0 < 1);
  let x1: i32 = l0 << 2u;
  let p1: i32 = (p0 << 2u) + x1;
  let p2: i32 = p1 + l1 * 24;
  let x2: i32 = g1 << 4u;
  let p3: i32 = select(24, x2, g1 < 2);
  let p4: i32 = (l1 << 2u) + l0 + (p3 << 6u);
  let p5: i32 = x1 + (l1 << 4u);
  let p6: i32 = (l1 << 6u) + (l0 << 4u);
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
      shared0[p6 + i1] = f32(data1[p4 + (i1 << 6u) + x4]);
    }
    let p7: i32 = i0 * 768;
    for (var i2: i32 = 0; i2 < 4; i2++) {
      let v0: vec4<f16> = load4_data2(p2 + i2 * 192 + p7);
      let p8: i32 = p5 + (i2 << 7u);
      shared1[p8] = f32(v0.x);
      shared1[p8 + 1] = f32(v0.y);
      shared1[p8 + 2] = f32(v0.z);
      shared1[p8 + 3] = f32(v0.w);
    }
    workgroupBarrier();
    for (var i3: i32 = 0; i3 < 32; i3++) {
      let x5: i32 = i3 << 4u;
      let p9: i32 = x3 + x5;
      let x6: f32 = shared0[p9];
      let x7: f32 = shared0[p9 + 1];
      let p10: i32 = x1 + x5;
      let x8: f32 = shared1[p10];
      let x9: f32 = shared1[p10 + 1];
      let x10: f32 = shared1[p10 + 2];
      let x11: f32 = shared1[p10 + 3];
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
  let p11: i32 = p1 + p3 * 24 + l1 * 48;
  let p12: i32 = p3 + x3;
  let x12: bool = (p0 + l0 < x0) != true;
  let x13: f16 = f16(acc0);
  let x14: f16 = f16(acc1);
  let x15: f16 = f16(acc2);
  let x16: f16 = f16(acc3);
  let x17: f16 = f16(acc4);
  let x18: f16 = f16(acc5);
  let x19: f16 = f16(acc6);
  let x20: f16 = f16(acc7);
  if (((p12 < x2) != true) & x12) {
    store4_data0(p11, vec4<f16>(x13, x14, x15, x16));
  }
  if (((p12 + 1 < x2) != true) & x12) {
    store4_data0(p11 + 24, vec4<f16>(x17, x18, x19, x20));
  }
}

// conversions: MERGE r0 r1, GLOBAL r0, SIMD r0 4 1, LOCAL r0.0 256
// grid (3, 1, 1), workgroups of (256, 1, 1)

enable f16;

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> data1: array<vec4<f16>>;

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

fn store4_data0(i: i32, value: vec4<f16>) {
  data0[i >> 2u] = value;
}

fn load4_data1(i: i32) -> vec4<f16> {
  return data1[i >> 2u];
}

@compute @workgroup_size(256, 1, 1)
fn conversions(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let l0: i32 = i32(local.x);
  let x0: i32 = g0 << 8u;
  let p0: i32 = select(384, x0, g0 < 2);
  let p1: i32 = (p0 << 2u) + (l0 << 2u);
  let v0: vec4<f16> = load4_data1(p1);
  let x1: f16 = v0.x;
  let x2: f16 = v0.y;
  let x3: f16 = v0.z;
  let x4: f16 = v0.w;
  let x5: f16 = select(f16((-arguments.infinity)), f16(f32(extractBits(f32_to_f16(f32(x1)), 0u, 16u))), 0.5f < f32(x1));
  let x6: f16 = select(f16((-arguments.infinity)), f16(f32(extractBits(f32_to_f16(f32(x2)), 0u, 16u))), 0.5f < f32(x2));
  let x7: f16 = select(f16((-arguments.infinity)), f16(f32(extractBits(f32_to_f16(f32(x3)), 0u, 16u))), 0.5f < f32(x3));
  let x8: f16 = select(f16((-arguments.infinity)), f16(f32(extractBits(f32_to_f16(f32(x4)), 0u, 16u))), 0.5f < f32(x4));
  if ((p0 + l0 < x0) != true) {
    store4_data0(p1, vec4<f16>(x5, x6, x7, x8));
  }
}

// softmax: GLOBAL r0, LOCAL r1 32, GROUP r3 32, GROUP r2 32, UNROLL r3.0 2, UNROLL r2.0 2
// grid (40, 1, 1), workgroups of (32, 1, 1)

enable f16;

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f16>;
@group(0) @binding(1) var<storage, read_write> data1: array<f16>;
var<workgroup> shared0: array<f32, 32>;
var<workgroup> shared1: array<f32, 32>;

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn max_f32(a: f32, b: f32) -> f32 {
  return select(b, a, (a > b) | is_nan(a));
}

fn as_rounded(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) | arguments.zero_bits);
}

@compute @workgroup_size(32, 1, 1)
fn softmax(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let l0: i32 = i32(local.x);
  let p0: i32 = l0 + (i32(workgroup.x) << 6u);
  let x0: f16 = data1[p0];
  let x1: f16 = data1[p0 + 32];
  shared0[l0] = max_f32(f32(data1[p0]), f32(data1[p0 + 32]));
  workgroupBarrier();
  let m0: bool = l0 < 16;
  let p1: i32 = select(l0, l0 + 16, m0);
  let x2: f32 = max_f32(shared0[l0], shared0[p1]);
  if (m0) {
    shared0[l0] = x2;
  }
  workgroupBarrier();
  let m1: bool = l0 < 8;
  let p2: i32 = select(l0, l0 + 8, m1);
  let x3: f32 = max_f32(shared0[l0], shared0[p2]);
  if (m1) {
    shared0[l0] = x3;
  }
  workgroupBarrier();
  let m2: bool = l0 < 4;
  let p3: i32 = select(l0, l0 + 4, m2);
  let x4: f32 = max_f32(shared0[l0], shared0[p3]);
  if (m2) {
    shared0[l0] = x4;
  }
  workgroupBarrier();
  let m3: bool = l0 < 2;
  let p4: i32 = select(l0, l0 + 2, m3);
  let x5: f32 = max_f32(shared0[l0], shared0[p4]);
  if (m3) {
    shared0[l0] = x5;
  }
  workgroupBarrier();
  let m4: bool = l0 < 1;
  let p5: i32 = select(l0, l0 + 1, m4);
  let x6: f32 = max_f32(shared0[l0], shared0[p5]);
  if (m4) {
    shared0[l0] = x6;
  }
  workgroupBarrier();
  let x7: f32 = shared0[0];
  let x8: f32 = f32(x0) - x7;
  let x9: f32 = f32(x1) - x7;
  let x10: f32 = select(x8, -110.73026f, x8 < -110.73026f);
  let x11: f32 = select(x9, -110.73026f, x9 < -110.73026f);
  let x12: f32 = x10 * 1.442695f + 12583072.0f;
  let x13: f32 = x11 * 1.442695f + 12583072.0f;
  let x14: f32 = as_rounded(x12) - 12583072.0f;
  let x15: f32 = as_rounded(x13) - 12583072.0f;
  let x16: f32 = (as_rounded(x10 - x14 * 0.69314575f) - x14 * 1.4286068e-06f) * 1.442695f;
  let x17: f32 = (as_rounded(x11 - x15 * 0.69314575f) - x15 * 1.4286068e-06f) * 1.442695f;
  let x18: f32 = ((0.00015453163f * x16 + 0.0013390863f) * x16 + 0.009618083f) * x16 + 0.05550357f;
  let x19: f32 = ((0.00015453163f * x17 + 0.0013390863f) * x17 + 0.009618083f) * x17 + 0.05550357f;
  let x20: f32 = (((x18 * x16 + 0.2402265f) * x16 + 0.6931472f) * x16 + 1.0f) * bitcast<f32>(bitcast<u32>(x12) << 23u);
  let x21: f32 = (((x19 * x17 + 0.2402265f) * x17 + 0.6931472f) * x17 + 1.0f) * bitcast<f32>(bitcast<u32>(x13) << 23u);
  shared1[l0] = x20 * 1.1641532e-10f + x21 * 1.1641532e-10f;
  workgroupBarrier();
  let x22: f32 = shared1[l0] + shared1[p1];
  if (m0) {
    shared1[l0] = x22;
  }
  workgroupBarrier();
  let x23: f32 = shared1[l0] + shared1[p2];
  if (m1) {
    shared1[l0] = x23;
  }
  workgroupBarrier();
  let x24: f32 = shared1[l0] + shared1[p3];
  if (m2) {
    shared1[l0] = x24;
  }
  workgroupBarrier();
  let x25: f32 = shared1[l0] + shared1[p4];
  if (m3) {
    shared1[l0] = x25;
  }
  workgroupBarrier();
  let x26: f32 = shared1[l0] + shared1[p5];
  if (m4) {
    shared1[l0] = x26;
  }
  workgroupBarrier();
  let x27: f32 = 1.0f / shared1[0];
  for (var i0: i32 = 0; i0 < 2; i0++) {
    let p6: i32 = p0 + (i0 << 5u);
    let x28: f32 = f32(data1[p6]) - x7;
    let x29: f32 = select(x28, -110.73026f, x28 < -110.73026f);
    let x30: f32 = x29 * 1.442695f + 12583072.0f;
    let x31: f32 = as_rounded(x30) - 12583072.0f;
    let x32: f32 = (as_rounded(x29 - x31 * 0.69314575f) - x31 * 1.4286068e-06f) * 1.442695f;
    let x33: f32 = ((0.00015453163f * x32 + 0.0013390863f) * x32 + 0.009618083f) * x32 + 0.05550357f;
    let x34: f32 = (((x33 * x32 + 0.2402265f) * x32 + 0.6931472f) * x32 + 1.0f) * bitcast<f32>(bitcast<u32>(x30) << 23u);
    data0[p6] = f16(x34 * 1.1641532e-10f * x27);
  }
}
