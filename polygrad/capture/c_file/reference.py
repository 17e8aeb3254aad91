"""What a model's test expects: the results of its variants, computed by device CPU from the very kernels.

LLVM compiles their linear forms, so the bits are those of C, where a compiler neither fuses nor reorders.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from polygrad.capture.c_file.model import CModel, Entry, Member
from polygrad.capture.c_file.variants import Variant
from polygrad.dtype import DType, dtypes, to_dtype
from polygrad.engine.devices import Backend, Device
from polygrad.engine.retarget import Retargeted
from polygrad.engine.running import run_program
from polygrad.errors import DeviceError
from polygrad.helpers import prod
from polygrad.runtime.buffer import Buffer
from polygrad.runtime.program import Program

KEPT_ELEMENTS = 1021  # of an input; a longer one repeats them
_SAMPLES = 8
_WORDS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
DIGEST_START = 0x9E3779B97F4A7C15  # odd
# Beyond which rounding does not take a result, relative to the largest of a tensor.
_BOUNDS = {dtypes.float16: 3e-2, dtypes.bfloat16: 3e-2}
_BOUND = 1e-3


@dataclass(frozen=True)
class Build:
    """A variant, and whether its multiply-adds are fused."""

    variant: Variant
    fused: bool


@dataclass(frozen=True)
class Expected:
    """A result: of each Build a digest of its bits, and some elements by position, which others may miss by
    `bound`. `address`: the C expression of its memory."""

    member: Member
    address: str
    count: int
    digests: tuple[int, ...]
    samples: dict[int, float]
    bound: float


def builds_of(variants: Sequence[Variant]) -> list[Build]:
    """The Builds whose bits are kept: those that processors have."""
    out = []
    for variant in variants:
        if variant.width <= 16:
            out.append(Build(variant, False))
        if variant.width:
            out.append(Build(variant, True))
    return out


def kept_elements(data: memoryview, dtype: DType) -> memoryview:
    """The elements of an input that the test has."""
    return data[: KEPT_ELEMENTS * dtype.itemsize]


def expected_results(model: CModel, entry: Entry, builds: Sequence[Build]) -> list[Expected]:
    """The results of an entry on its example, from the first state. Raises DeviceError without device CPU."""
    number = model.entries.index(entry)
    results = [_results(model, entry, b.variant.programs[number], b) for b in builds]
    out = []
    for member, address in _result_members(model, entry):
        count = prod(entry.example.variables[n] if isinstance(n, str) else n for n in member.shape)
        raws = [r[member.label, address][: count * member.dtype.itemsize] for r in results]
        digests = tuple(digest(raw, member.dtype) for raw in raws)
        samples, bound = _samples(raws[0], member.dtype)
        out.append(Expected(member, address, count, digests, samples, bound))
    return out


def _result_members(model: CModel, entry: Entry) -> Iterable[tuple[Member, str]]:
    for member in entry.outputs:
        yield member, f"outputs.{member.name}"
    kept = {b.name for b in entry.program.buffers if b.role in ("param", "state")}
    for value in model.state:
        if value.label in kept:
            yield value, f"model->state.{value.name}"


def _results(
    model: CModel, entry: Entry, retargeted: Retargeted, build: Build
) -> dict[tuple[str, str], memoryview]:
    """The contents of outputs and state after a run, by label and address."""
    try:
        backend, runtime = Device.backend("CPU"), Device["CPU"]
    except DeviceError as e:
        raise DeviceError(
            f"save: the test of a C file is computed on device CPU: {e}; or leave the test out: "
            "c=COptions(selftest=False)"
        ) from e
    assert backend.for_target is not None
    target = replace(build.variant.target, fma=build.fused)
    program = _compiled(retargeted, backend.for_target(target))
    values = {v.label: v for v in model.values}
    buffers: list[Buffer | None] = []
    for spec in program.buffers:
        if spec.role == "scratch":
            buffers.append(None)
            continue
        buffer = Buffer(runtime, spec.size, to_dtype(spec.dtype))
        if spec.role == "input":
            _fill(buffer, kept_elements(entry.example.inputs[spec.name], buffer.dtype))
        elif spec.role != "output":
            _fill(buffer, values[spec.name].data)
        buffers.append(buffer)
    arena = Buffer(runtime, program.arena, dtypes.uint8) if program.arena else None
    run_program(
        runtime.load(program),
        program,
        [b and b.handle for b in buffers],
        arena and arena.handle,
        entry.example.variables,
        runtime=runtime,
    )
    out = {}
    for spec, done in zip(program.buffers, buffers, strict=True):
        names = {m.label: m.name for m in (*entry.outputs, *model.state)}
        if done is not None and spec.role != "input" and spec.name in names:
            prefix = "outputs." if spec.role == "output" else "model->state."
            out[spec.name, prefix + names[spec.name]] = memoryview(bytes(done.read()))
    return out


def _compiled(retargeted: Retargeted, backend: Backend) -> Program:
    """The Program for device CPU, with code."""
    program = retargeted.program
    waiting = [(k, backend.compile(k.name, retargeted.linear[k.name])) for k in program.kernels]
    kernels = tuple(replace(k, code=code(), language=backend.language) for k, code in waiting)
    return replace(program, device="CPU", kernels=kernels, threads=1)


def _fill(buffer: Buffer, data: memoryview) -> None:
    """Fill a buffer with data, repeated, or with zeros if there is none."""
    repeated = bytes(data) * -(-buffer.nbytes // data.nbytes) if data.nbytes else bytes(buffer.nbytes)
    if buffer.nbytes:
        buffer.write(memoryview(repeated[: buffer.nbytes]))


def digest(raw: memoryview, dtype: DType) -> int:
    """The sum of bits[i] * (DIGEST_START + 2 * i) modulo 2^64. All zeros count as 0, all NaN as one."""
    numbers: Sequence[int] = raw.cast(_WORDS[dtype.itemsize])
    if dtype.is_float and dtype not in dtypes.fp8s:
        numbers = _canonical(numbers, dtype)
    weights = range(DIGEST_START, DIGEST_START + 2 * len(numbers), 2)
    return sum(map(operator.mul, numbers, weights)) % (1 << 64)


def _infinity(dtype: DType) -> int:
    """The bits of infinity; larger ones without the sign are NaN."""
    return {dtypes.float16: 0x7C00, dtypes.bfloat16: 0x7F80, dtypes.float32: 0x7F800000}.get(
        dtype, 0x7FF0000000000000
    )


def _canonical(numbers: Sequence[int], dtype: DType) -> Sequence[int]:
    sign, infinity = 1 << (dtype.bits - 1), _infinity(dtype)
    if sign not in numbers and max(numbers, default=0) <= sign + infinity:
        if all(n <= infinity or n >= sign for n in numbers):
            return numbers
    nan = infinity + 1
    return [nan if n & (sign - 1) > infinity else 0 if n == sign else n for n in numbers]


def _samples(raw: memoryview, dtype: DType) -> tuple[dict[int, float], float]:
    """Some elements by position, and the bound of others' rounding. None of integers, whose bits do not
    depend on rounding."""
    if not dtype.is_float or dtype in dtypes.fp8s or not raw.nbytes:
        return {}, 0.0
    numbers = _floats(raw, dtype)
    finite = [abs(x) for x in numbers if math.isfinite(x)]
    positions = sorted({i * len(numbers) // _SAMPLES for i in range(_SAMPLES)})
    samples = {i: numbers[i] for i in positions if math.isfinite(numbers[i])}
    return samples, _BOUNDS.get(dtype, _BOUND) * max(finite, default=0.0) + 1e-30


def _floats(raw: memoryview, dtype: DType) -> Sequence[float]:
    if dtype == dtypes.bfloat16:
        words = (n << 16 for n in raw.cast("H"))
        return [struct.unpack("<f", struct.pack("<I", n))[0] for n in words]
    if dtype == dtypes.float16:
        return struct.unpack(f"<{raw.nbytes // 2}e", raw)
    return raw.cast("f" if dtype == dtypes.float32 else "d")
