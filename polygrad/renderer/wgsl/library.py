"""Functions in WGSL that kernels call: those that the language lacks, or has for numbers only and not for
NaN.

64-bit integers are `vec2<u32>`, the low word first. float16 and bfloat16 are their bits in a u32. Conversions
round once, to nearest even. Conversions to integers saturate, and NaN gives 0. No function computes with
denormal numbers, which adapters may flush. Conditions are combined by `&` and `|`: `&&` and `||` are
branches, and a compiler may take minutes for a kernel with a hundred of them (SwiftShader's did).

`source` gives the texts of functions and of those that they call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_TEXTS = (
    # --- floats. A compiler may assume that no number is NaN, so the test is on bits.
    """
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}""",
    # Hides from the compiler how a number was computed.
    """
fn as_rounded(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) | arguments.zero_bits);
}""",
    """
fn max_f32(a: f32, b: f32) -> f32 {
  return select(b, a, (a > b) | is_nan(a));
}""",
    """
fn trunc_f32(x: f32) -> f32 {
  let whole: f32 = trunc(x);
  return bitcast<f32>((bitcast<u32>(whole) & 0x7fffffffu) | (bitcast<u32>(x) & 0x80000000u));
}""",
    # --- float32 to integers
    """
fn f32_to_i32(x: f32) -> i32 {
  if (is_nan(x)) {
    return 0;
  }
  if (x >= 2147483648.0f) {
    return 2147483647;
  }
  if (x < -2147483648.0f) {
    return -2147483647 - 1;
  }
  return i32(x);
}""",
    """
fn f32_to_u32(x: f32) -> u32 {
  if (is_nan(x) | (x < 1.0f)) {
    return 0u;
  }
  if (x >= 4294967296.0f) {
    return 0xffffffffu;
  }
  return u32(x);
}""",
    # The significand, shifted by the exponent.
    """
fn f32_to_u64(x: f32) -> vec2<u32> {
  if (is_nan(x) | (x < 1.0f)) {
    return vec2<u32>(0u, 0u);
  }
  if (x >= 18446744073709551616.0f) {
    return vec2<u32>(0xffffffffu, 0xffffffffu);
  }
  let bits: u32 = bitcast<u32>(x);
  let significand: vec2<u32> = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);
  let exponent: i32 = i32(bits >> 23u) - 150;
  if (exponent < 0) {
    return shr_u64(significand, u32(-exponent));
  }
  return shl_64(significand, u32(exponent));
}""",
    """
fn f32_to_i64(x: f32) -> vec2<u32> {
  if (is_nan(x)) {
    return vec2<u32>(0u, 0u);
  }
  if (x >= 9223372036854775808.0f) {
    return vec2<u32>(0xffffffffu, 0x7fffffffu);
  }
  if (x < -9223372036854775808.0f) {
    return vec2<u32>(0u, 0x80000000u);
  }
  let size: vec2<u32> = f32_to_u64(abs(x));
  if (x < 0.0f) {
    return neg_64(size);
  }
  return size;
}""",
    # --- integers to float32. Both products and the first sum are exact.
    """
fn u32_to_f32(x: u32) -> f32 {
  return f32(i32(x >> 16u)) * 65536.0f + f32(i32(x & 0xffffu));
}""",
    """
fn power_of_two(exponent: i32) -> f32 {
  return bitcast<f32>(u32(exponent + 127) << 23u);
}""",
    # The 32 bits from the first set bit. The last of them is also set if any bit below is: it decides ties.
    """
fn leading_bits(x: vec2<u32>) -> vec2<u32> {
  let places: u32 = select(countLeadingZeros(x.y), 32u + countLeadingZeros(x.x), x.y == 0u);
  let shifted: vec2<u32> = shl_64(x, min(places, 63u));
  return vec2<u32>(shifted.y | select(0u, 1u, shifted.x != 0u), places);
}""",
    """
fn u64_to_f32(x: vec2<u32>) -> f32 {
  if (x.y == 0u) {
    return u32_to_f32(x.x);
  }
  let leading: vec2<u32> = leading_bits(x);
  return u32_to_f32(leading.x) * power_of_two(32 - i32(leading.y));
}""",
    """
fn i64_to_f32(x: vec2<u32>) -> f32 {
  if (x.y >= 0x80000000u) {
    return -u64_to_f32(neg_64(x));
  }
  return u64_to_f32(x);
}""",
    # An inexact result gets an odd last bit. Rounded to 16 bits, it is rounded once (Boldo and Melquiond,
    # "Emulation of FMA and correctly rounded sums", 2008).
    """
fn u64_to_odd_f32(x: vec2<u32>) -> f32 {
  if ((x.x == 0u) & (x.y == 0u)) {
    return 0.0f;
  }
  let leading: vec2<u32> = leading_bits(x);
  let odd: u32 = select(0u, 1u, (leading.x & 0xffu) != 0u);
  return f32(i32((leading.x >> 8u) | odd)) * power_of_two(40 - i32(leading.y));
}""",
    """
fn i64_to_odd_f32(x: vec2<u32>) -> f32 {
  if (x.y >= 0x80000000u) {
    return -u64_to_odd_f32(neg_64(x));
  }
  return u64_to_odd_f32(x);
}""",
    # --- 16-bit floats, after Giesen ("Float->half variants", 2012)
    """
fn f16_to_f32(bits: u32) -> f32 {
  let sign: u32 = (bits & 0x8000u) << 16u;
  let size: u32 = bits & 0x7fffu;
  if (size < 0x400u) {
    let small: f32 = f32(i32(size)) * 5.9604644775390625e-8f;
    return bitcast<f32>(bitcast<u32>(small) | sign);
  }
  return bitcast<f32>(((size << 13u) + select(0x38000000u, 0x70000000u, size >= 0x7c00u)) | sign);
}""",
    # See `_float32_to_float16` in renderer/convert.py.
    """
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
}""",
    """
fn bf16_to_f32(bits: u32) -> f32 {
  return bitcast<f32>(bits << 16u);
}""",
    """
fn f32_to_bf16(x: f32) -> u32 {
  let bits: u32 = bitcast<u32>(x);
  let high: u32 = bits >> 16u;
  let rounded: u32 = (bits + 0x7fffu + (high & 1u)) >> 16u;
  return select(rounded, high | 0x40u, (bits & 0x7fffffffu) > 0x7f800000u);
}""",
    # --- division to minus infinity: one less where the remainder and the divisor differ in sign
    """
fn floor_divide_i32(a: i32, b: i32) -> i32 {
  let rest: i32 = a % b;
  return a / b - select(0, 1, (rest != 0) & ((rest ^ b) < 0));
}""",
    """
fn floor_modulo_i32(a: i32, b: i32) -> i32 {
  let rest: i32 = a % b;
  return rest + select(0, b, (rest != 0) & ((rest ^ b) < 0));
}""",
    # --- 64-bit integers
    """
fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low: u32 = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}""",
    """
fn sub_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}""",
    """
fn neg_64(a: vec2<u32>) -> vec2<u32> {
  return sub_64(vec2<u32>(0u, 0u), a);
}""",
    """
fn mul_32(a: u32, b: u32) -> vec2<u32> {
  let low: u32 = (a & 0xffffu) * (b & 0xffffu);
  let first: u32 = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let second: u32 = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
  return vec2<u32>((second << 16u) | (low & 0xffffu), (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >>
  16u));
}""",
    """
fn mul_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let product: vec2<u32> = mul_32(a.x, b.x);
  return vec2<u32>(product.x, product.y + a.x * b.y + a.y * b.x);
}""",
    """
fn shl_64(a: vec2<u32>, places: u32) -> vec2<u32> {
  if (places >= 32u) {
    return vec2<u32>(0u, a.x << (places - 32u));
  }
  if (places == 0u) {
    return a;
  }
  return vec2<u32>(a.x << places, (a.y << places) | (a.x >> (32u - places)));
}""",
    """
fn shr_u64(a: vec2<u32>, places: u32) -> vec2<u32> {
  if (places >= 32u) {
    return vec2<u32>(a.y >> (places - 32u), 0u);
  }
  if (places == 0u) {
    return a;
  }
  return vec2<u32>((a.x >> places) | (a.y << (32u - places)), a.y >> places);
}""",
    """
fn shr_i64(a: vec2<u32>, places: u32) -> vec2<u32> {
  let sign: u32 = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
  let flipped: vec2<u32> = a ^ vec2<u32>(sign, sign);
  return shr_u64(flipped, places) ^ vec2<u32>(sign, sign);
}""",
    """
fn eq_64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (a.x == b.x) & (a.y == b.y);
}""",
    """
fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}""",
    """
fn lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (bitcast<i32>(a.y) < bitcast<i32>(b.y)) | ((a.y == b.y) & (a.x < b.x));
}""",
    """
fn max_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, lt_u64(a, b));
}""",
    """
fn max_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, lt_i64(a, b));
}""",
    # Long division, one bit in each round: quotient and remainder.
    """
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
}""",
    """
fn divide_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return divide_64(a, b).xy;
}""",
    """
fn modulo_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return divide_64(a, b).zw;
}""",
    """
fn abs_64(a: vec2<u32>) -> vec2<u32> {
  if (a.y >= 0x80000000u) {
    return neg_64(a);
  }
  return a;
}""",
    """
fn floor_divide_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let both: vec4<u32> = divide_64(abs_64(a), abs_64(b));
  if (((a.y ^ b.y) & 0x80000000u) == 0u) {
    return both.xy;
  }
  let exact: bool = (both.z == 0u) & (both.w == 0u);
  return neg_64(add_64(both.xy, vec2<u32>(select(1u, 0u, exact), 0u)));
}""",
    """
fn floor_modulo_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return sub_64(a, mul_64(floor_divide_i64(a, b), b));
}""",
)

_NAME = re.compile(r"fn (\w+)\(")
_CALL = re.compile(r"\b([a-z]\w*)\(")
FUNCTIONS = {_NAME.search(text)[1]: text.strip("\n") for text in _TEXTS}  # type: ignore[index]
_CALLED = {
    name: [other for other in _CALL.findall(text) if other in FUNCTIONS and other != name]
    for name, text in FUNCTIONS.items()
}


def source(names: Iterable[str]) -> list[str]:
    """The texts of functions and of those that they call, callees first."""
    done: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in done:
            for other in _CALLED[name]:
                add(other)
            done[name] = None

    for name in names:
        add(name)
    return [FUNCTIONS[name] for name in done]
