"""WGSL, which has words of 32 bits and no NaN that a compiler need keep.

| dtype | in registers | in memory |
| --- | --- | --- |
| float32, int32, uint32, index (i32) | native | array; of vectors where a buffer is only used by fours |
| bool, int8, int16, uint8, uint16 | bool, i32, u32 kept in range | words, changed by atomics |
| float16, bfloat16 | their bits in a u32 | words |
| float16 with the extension f16 | `f16`, float32 for arithmetic | array; of vectors |
| int64, uint64 | `vec2<u32>`, arithmetic in `library.py` | `array<vec2<u32>>` |
| float64 | none: a DeviceError that names float32 | bytes are kept |

The extension f16 is used where a probe finds that its conversions round to nearest even and keep denormal
numbers, infinities and NaN. A program's results are the same bits without it (`WEBGPU_F16=0`).

Compilers below WGSL calculate as if numbers had no limits: they take `x + c - c` for x, `x * 0` for 0, and
`a != b` for `a < b or a > b`. Error-free transformations, which the transcendental functions are made of,
would be gone. So a sum of a sum takes its operand's bits through an `or` with a zero from the uniform
buffer (`as_rounded`). Infinity, NaN and 0 come from there too, and NaN is told by its bits. Adapters may
flush denormal numbers.
"""
