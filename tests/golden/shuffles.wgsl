// max_rows: GLOBAL r0, SIMD r1 4 1, GROUP r1.0 64
// grid (9, 1, 1), workgroups of (64, 1, 1)

enable subgroups;

struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
}
@group(0) @binding(2) var<uniform> arguments: Arguments;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<vec4<f32>>;
var<workgroup> shared0: array<f32, 64>;

fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn max_f32(a: f32, b: f32) -> f32 {
  return select(b, a, (a > b) | is_nan(a));
}

fn load4_data1(i: i32) -> vec4<f32> {
  return data1[i >> 2u];
}

@compute @workgroup_size(64, 1, 1)
fn max_rows(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let g0: i32 = i32(workgroup.x);
  let l0: i32 = i32(local.x);
  let v0: vec4<f32> = load4_data1((l0 << 2u) + (g0 << 8u));
  shared0[l0] = max_f32(max_f32(v0.x, v0.z), max_f32(v0.y, v0.w));
  workgroupBarrier();
  let p0: i32 = l0 & 31;
  let x0: f32 = max_f32(shared0[p0], shared0[p0 + 32]);
  var acc0: f32 = subgroupShuffleXor(x0, 16u);
  let x1: f32 = max_f32(x0, acc0);
  var acc1: f32 = subgroupShuffleXor(x1, 8u);
  let x2: f32 = max_f32(x1, acc1);
  var acc2: f32 = subgroupShuffleXor(x2, 4u);
  let x3: f32 = max_f32(x2, acc2);
  var acc3: f32 = subgroupShuffleXor(x3, 2u);
  let x4: f32 = max_f32(x3, acc3);
  var acc4: f32 = subgroupShuffleXor(x4, 1u);
  let x5: f32 = max_f32(x4, acc4);
  if (l0 < 1) {
    data0[g0] = x5;
  }
}
