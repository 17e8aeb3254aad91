"""Functions made with LLVMBuilder, run on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Address
from polygrad.renderer.llvm.builder import LLVMBuilder
from polygrad.renderer.llvm.compile import compile_ir, host_has_half, host_target
from polygrad.runtime.cpu.device import CPURuntime
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.uop.ops import Ops

LANES = (1, 4, 16)
COUNT = 96  # elements per operand: a multiple of every number of lanes
INTS, FLOATS = dtypes.ints, (dtypes.float32, dtypes.float64)
RUNTIME = CPURuntime()


def builder(native_half: bool = host_has_half()) -> LLVMBuilder:
    return LLVMBuilder(host_target(), native_half)


def numpy_type(dtype: DType) -> np.dtype:
    return np.dtype("int64" if dtype == "index" else "uint16" if dtype == "bfloat16" else dtype.name)


def run(text: str, arrays: Sequence[np.ndarray], variables: dict[str, int] | None = None) -> list[np.ndarray]:
    """Run the function `k` of a module on copies of `arrays`; what is in them afterwards."""
    names = tuple(variables or ())
    specs = tuple(BufferSpec(a.nbytes, "uint8", "state") for a in arrays)
    launch = Launch(0, tuple(Binding(i) for i in range(len(arrays))))
    program = Program(
        "CPU",
        "",
        specs,
        (Kernel("k", compile_ir(text), len(arrays), names, language="object", writes=(0,)),),
        (launch,),
    )
    handles = [RUNTIME.allocate(max(a.nbytes, 1)) for a in arrays]
    for handle, array in zip(handles, arrays, strict=True):
        RUNTIME.write(handle, 0, memoryview(np.ascontiguousarray(array)).cast("B"))
    RUNTIME.load(program).run(handles, None, variables or {})
    out = [np.frombuffer(RUNTIME.read(h, 0, a.nbytes), a.dtype) for h, a in zip(handles, arrays, strict=True)]
    for handle in handles:
        RUNTIME.free(handle)
    return out


def elementwise(
    args: Sequence[tuple[DType, np.ndarray]],
    out: DType,
    lanes: int,
    body: Callable[[LLVMBuilder, list[str], int], str],
    native_half: bool = host_has_half(),
) -> np.ndarray:
    """`body(builder, operands, lanes)` over whole arrays, `lanes` elements a round."""
    b, n = builder(native_half), len(args[0][1])
    (result, *operands), _ = b.begin("k", [out, *(d for d, _ in args)], [])
    i = b.loop(b.const(dtypes.index, n // lanes, 1))
    at = b.alu(Ops.MUL, dtypes.index, [i, b.const(dtypes.index, lanes, 1)], 1)
    loaded = [b.load(Address(p, at), d, lanes) for p, (d, _) in zip(operands, args, strict=True)]
    b.store(Address(result, at), body(b, loaded, lanes), out, lanes)
    b.end_loop()
    return run(b.finish(), [np.zeros(n, numpy_type(out)), *(a for _, a in args)])[0]


def same(got: np.ndarray, want: np.ndarray, dtype: DType, loose_zero: bool = False) -> None:
    assert got.dtype == want.dtype
    if dtype == dtypes.bfloat16:
        got, want = bfloat_to_float(got), bfloat_to_float(want)
    if dtype.is_float:
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), nan)
        got, want = got[~nan], want[~nan]
        if loose_zero:
            got, want = got + 0.0, want + 0.0
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    np.testing.assert_array_equal(got, want)


def bfloat_to_float(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def samples(dtype: DType, seed: int, count: int = COUNT) -> np.ndarray:
    """The edges of a dtype, then random values, shuffled."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_float:
        single = numpy_type(dtype) if dtype in FLOATS else np.dtype("float32")
        tiny = np.finfo(single).smallest_subnormal
        edges = [
            0.0,
            -0.0,
            math.inf,
            -math.inf,
            math.nan,
            1.0,
            -1.0,
            0.5,
            1.5,
            -2.5,
            tiny,
            -tiny,
            3e9,
            -3e9,
            127.9,
        ]
        edges += [
            2.0**31,
            2.0**63,
            2.0**64,
            -(2.0**31),
            -(2.0**63),
            255.5,
            -0.9,
            65504.0,
            65520.0,
            2.0**-24,
            1e-7,
        ]
        values = np.concatenate(
            [np.array(edges, single), rng.normal(0, 100, count - len(edges)).astype(single)]
        )
        rng.shuffle(values)
        if dtype == dtypes.bfloat16:
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        with np.errstate(over="ignore"):
            return values.astype(numpy_type(dtype))
    edges = [dtype.min, dtype.max, 0, 1, dtype.max // 2, dtype.max - 1, 2, 7]
    values = [
        int(x) for x in rng.integers(dtype.min, dtype.max, count - 40, dtype=numpy_type(dtype), endpoint=True)
    ]
    small = [int(x) for x in rng.integers(max(dtype.min, -20), 20, 32)]
    out = np.array(edges + values + small, numpy_type(dtype))
    rng.shuffle(out)
    return out


UNARY = {
    Ops.SQRT: np.sqrt, Ops.RECIPROCAL: lambda x: np.ones_like(x) / x,
    Ops.NEG: np.negative, Ops.TRUNC: np.trunc,
}  # fmt: skip
BINARY = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum,
    Ops.IDIV: np.floor_divide, Ops.MOD: np.remainder, Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor, Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
}  # fmt: skip
FLOAT_ONLY = {Ops.SQRT, Ops.RECIPROCAL, Ops.FDIV, Ops.TRUNC}
INT_ONLY = {Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR}
BOOL_TOO = {Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.ADD, Ops.MUL}


def takes(op: Ops, dtype: DType) -> bool:
    if dtype.is_bool:
        return op in BOOL_TOO
    return op not in (INT_ONLY if dtype.is_float else FLOAT_ONLY)


def converted(x: np.ndarray, src: DType, dst: DType) -> np.ndarray:
    """The contract's cast, in numpy."""
    if src == dtypes.bfloat16:
        x, src = bfloat_to_float(x), dtypes.float32
    if dst == dtypes.bfloat16:
        return rounded_to_bfloat(x)
    if dst.is_bool:
        return x != 0
    if src.is_float and dst.is_int:
        out = []
        for v in x.astype(np.float64):
            exact = 0 if math.isnan(v) else (dst.max if v > 0 else dst.min) if math.isinf(v) else int(v)
            out.append(min(max(exact, dst.min), dst.max))
        return np.array(out, numpy_type(dst))
    with np.errstate(over="ignore"):
        return x.astype(numpy_type(dst))


def rounded_to_bfloat(x: np.ndarray) -> np.ndarray:
    """Round to nearest even, once; integers by way of float32."""
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.float32).astype(np.float64)
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    out = []
    for v, s in zip(wide, single, strict=True):
        if math.isnan(v) or math.isinf(v):
            out.append(0x7FC0 if math.isnan(v) else int(s.view(np.uint32)) >> 16)
            continue
        # The two bfloat16 around |v|, and the nearer, or the even one of two that are equally near.
        low = min(int(np.abs(s).view(np.uint32)) >> 16, 0x7F7F)
        if bfloat_value(low) > abs(float(v)):
            low -= 1
        below, above = abs(float(v)) - bfloat_value(low), bfloat_value(low + 1) - abs(float(v))
        bits = low + (above < below or (above == below and low & 1))
        out.append(bits | (0x8000 if math.copysign(1, v) < 0 else 0))
    return np.array(out, np.uint16)


def bfloat_value(bits: int) -> float:
    """Of a bfloat16 without sign; infinity is the number it stands for in rounding."""
    exponent, fraction = bits >> 7, bits & 0x7F
    return math.ldexp(fraction, -133) if exponent == 0 else math.ldexp(128 + fraction, exponent - 134)
