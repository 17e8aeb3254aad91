"""How LLVMBuilder converts between dtypes: the sequences that LLVM has no good instruction for.

float to int saturates, with NaN giving 0 (vectors of llvm.fptosi.sat become scalar code on x86). float16
and bfloat16, held as their bits, are rounded to nearest even: float16 by the machine's instructions where
it has them (`native_half`), else by integer arithmetic, after Giesen ("Float->half variants", 2012); LLVM
itself would call library functions. From double they are rounded once, by way of a float rounded to odd
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).

Must not know: the builder, beyond its way to write an instruction.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from polygrad.dtype import DType

Emit = Callable[[str], str]  # takes an instruction, gives its value's name


def vector(scalar: str, lanes: int) -> str:
    """The LLVM type of `lanes` values of the LLVM type `scalar`."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def splat(scalar: str, text: str, lanes: int) -> str:
    """The constant `text` of LLVM type `scalar` in every lane."""
    return text if lanes == 1 else f"splat ({scalar} {text})"


def float_text(value: float) -> str:
    """A number, not NaN, that the type it is used at holds exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class _Words:
    """Writes 32-bit integer and float instructions of `lanes` lanes."""

    def __init__(self, emit: Emit, lanes: int) -> None:
        self.emit, self.lanes = emit, lanes
        self.word, self.float = vector("i32", lanes), vector("float", lanes)
        self.half, self.short, self.mask = vector("half", lanes), vector("i16", lanes), vector("i1", lanes)

    def op(self, name: str, a: str, b: str | int) -> str:
        other = splat("i32", str(b), self.lanes) if isinstance(b, int) else b
        return self.emit(f"{name} {self.word} {a}, {other}")

    def select(self, mask: str, a: str | int, b: str | int) -> str:
        x, y = (splat("i32", str(v), self.lanes) if isinstance(v, int) else v for v in (a, b))
        return self.emit(f"select {self.mask} {mask}, {self.word} {x}, {self.word} {y}")

    def float_op(self, name: str, a: str, b: float) -> str:
        return self.emit(f"{name} {self.float} {a}, {splat('float', float_text(b), self.lanes)}")

    def bits(self, value: str) -> str:
        return self.emit(f"bitcast {self.float} {value} to {self.word}")

    def as_float(self, value: str) -> str:
        return self.emit(f"bitcast {self.word} {value} to {self.float}")

    def widened(self, value: str) -> str:
        return self.emit(f"zext {self.short} {value} to {self.word}")

    def narrowed(self, value: str) -> str:
        return self.emit(f"trunc {self.word} {value} to {self.short}")


def half_to_float(emit: Emit, value: str, lanes: int, native_half: bool) -> str:
    w = _Words(emit, lanes)
    if native_half:
        half = emit(f"bitcast {w.short} {value} to {w.half}")
        return emit(f"fpext {w.half} {half} to {w.float}")
    wide = w.widened(value)
    size = w.op("shl", w.op("and", wide, 0x7FFF), 13)
    # Multiplying puts the exponent's bias right and makes what was denormal normal.
    number = w.bits(w.float_op("fmul", w.as_float(size), 2.0**112))
    special = w.select(w.op("icmp uge", size, 0x7C00 << 13), 0x7F800000, 0)
    sign = w.op("shl", w.op("and", wide, 0x8000), 16)
    return w.as_float(w.op("or", w.op("or", number, special), sign))


def float_to_half(emit: Emit, value: str, lanes: int, native_half: bool) -> str:
    w = _Words(emit, lanes)
    if native_half:
        half = emit(f"fptrunc {w.float} {value} to {w.half}")
        return emit(f"bitcast {w.half} {half} to {w.short}")
    bits = w.bits(value)
    size = w.op("and", bits, 0x7FFFFFFF)
    # A denormal result: adding 1/2 has the adder round at the bit where a half ends.
    small = w.op("sub", w.bits(w.float_op("fadd", w.as_float(size), 0.5)), 0x3F000000)
    # A normal one: the bias changed, and just less than half of the last place added (half if it is odd).
    odd = w.op("and", w.op("lshr", size, 13), 1)
    normal = w.op("lshr", w.op("add", w.op("add", size, (-112 << 23) + 0xFFF), odd), 13)
    special = w.select(w.op("icmp ugt", size, 0x7F800000), 0x7E00, 0x7C00)
    out = w.select(w.op("icmp ult", size, 0x38800000), small, normal)
    out = w.select(w.op("icmp uge", size, 0x47800000), special, out)
    return w.narrowed(w.op("or", out, w.op("and", w.op("lshr", bits, 16), 0x8000)))


def bfloat_to_float(emit: Emit, value: str, lanes: int) -> str:
    w = _Words(emit, lanes)
    return w.as_float(w.op("shl", w.widened(value), 16))


def float_to_bfloat(emit: Emit, value: str, lanes: int) -> str:
    w = _Words(emit, lanes)
    bits = w.bits(value)
    high = w.op("lshr", bits, 16)
    rounded = w.op("lshr", w.op("add", w.op("add", bits, 0x7FFF), w.op("and", high, 1)), 16)
    nan = emit(f"fcmp uno {w.float} {value}, {value}")
    return w.narrowed(w.select(nan, w.op("or", high, 0x40), rounded))


def double_to_odd(emit: Emit, value: str, lanes: int) -> str:
    """double to float; what is not exact gets an odd last bit: rounding it to 16 bits is rounding once."""
    w, double = _Words(emit, lanes), vector("double", lanes)
    fabs = "@llvm.fabs." + ("f64" if lanes == 1 else f"v{lanes}f64")
    single = emit(f"fptrunc {double} {value} to {w.float}")
    back = emit(f"fpext {w.float} {single} to {double}")
    size, wanted = (emit(f"call {double} {fabs}({double} {x})") for x in (back, value))
    larger = emit(f"fcmp ogt {double} {size}, {wanted}")
    towards_zero = w.op("add", w.bits(single), emit(f"sext {w.mask} {larger} to {w.word}"))
    inexact = emit(f"fcmp one {double} {back}, {value}")
    return w.as_float(w.op("or", towards_zero, emit(f"zext {w.mask} {inexact} to {w.word}")))


def float_to_int(emit: Emit, value: str, types: tuple[str, str], dst: DType, lanes: int) -> str:
    """`types`: the LLVM types, scalar, of the value and of the integer `dst`."""
    s, d, mask = vector(types[0], lanes), vector(types[1], lanes), vector("i1", lanes)

    def compare(how: str, bound: float) -> str:
        return emit(f"fcmp {how} {s} {value}, {splat(types[0], float_text(bound), lanes)}")

    def select(condition: str, integer: int, other: str) -> str:
        return emit(f"select {mask} {condition}, {d} {splat(types[1], str(integer), lanes)}, {d} {other}")

    out = emit(f"{'fptoui' if dst.is_unsigned else 'fptosi'} {s} {value} to {d}")
    out = select(compare("oge", float(dst.max + 1)), dst.max, out)
    if dst.is_unsigned:
        return select(compare("ult", 0.0), 0, out)  # NaN too
    out = select(compare("olt", float(dst.min)), dst.min, out)
    return select(emit(f"fcmp uno {s} {value}, {value}"), 0, out)
