"""WGSL: it has words of 32 bits, and its compilers need not keep NaN.

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

Compilers of WGSL simplify as if floats were real numbers: `x + c - c` becomes x, `x * 0` becomes 0, and `a !=
b` becomes `a < b or a > b`. That would remove the error-free transformations that the transcendental
functions consist of. So an operand that is a sum goes through an `or` of its bits with a zero from the
uniform buffer (`as_rounded`). Infinity, NaN and 0 come from that buffer, too, and a test for NaN compares
bits. Adapters may flush denormal numbers.
"""
