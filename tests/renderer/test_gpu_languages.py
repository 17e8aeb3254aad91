"""CUDABuilder and MSLBuilder: what they write differently. Whole kernels are in `tests/golden`."""

from __future__ import annotations

import pytest

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.errors import DeviceError, InternalError
from polygrad.renderer.builder import Address
from polygrad.renderer.cstyle.base import module
from polygrad.renderer.cstyle.c import CBuilder
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.msl import MSLBuilder
from polygrad.uop.ops import Ops

GPU = Target("GPU", 16, 64, fma=True, index_bits=32)
BUILDERS = [CUDABuilder, MSLBuilder]


def body(text: object) -> list[str]:
    """The lines of the kernel `k` after its signature."""
    return [line.strip() for line in str(text).split(" k(")[1].split("{\n", 1)[1].splitlines() if line != "}"]


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        (
            CUDABuilder,
            [
                "__shared__ __align__(16) float tile[64];",
                "int invocation0 = (int)threadIdx.x;",
                "tile[invocation0] = data0[(int)blockIdx.y * 64 + invocation0];",
                "__syncthreads();",
                "data0[invocation0] = tile[63 - invocation0];",
            ],
        ),
        (
            MSLBuilder,
            [
                "threadgroup float tile[64];",
                "int invocation0 = (int)invocation.x;",
                "tile[invocation0] = data0[(int)workgroup.y * 64 + invocation0];",
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                "data0[invocation0] = tile[63 - invocation0];",
            ],
        ),
    ],
)
def test_workgroups(builder: type, expected: list[str]) -> None:
    b = builder(GPU)
    f, index = dtypes.float32, dtypes.index
    (p,), _ = b.begin("k", [f], [])
    tile, size = b.shared("tile", f, 64), b.const(index, 64, 1)
    group, place = b.special("workgroup", 1, size), b.special("invocation", 0, size)
    at = b.alu(Ops.ADD, index, [b.alu(Ops.MUL, index, [group, size], 1), place], 1)
    b.store(Address(tile, place), b.load(Address(p, at), f, 1), f, 1)
    b.barrier()
    back = b.alu(Ops.SUB, index, [b.const(index, 63, 1), place], 1)
    b.store(Address(p, place), b.load(Address(tile, back), f, 1), f, 1)
    assert body(b.finish()) == expected


def test_a_language_without_workgroups_says_so() -> None:
    b = CBuilder(Target("CC"))
    b.begin("k", [], [])
    for call in (
        lambda: b.special("workgroup", 0, b.const(dtypes.index, 1, 1)),
        b.barrier,
        lambda: b.shared("tile", dtypes.float32, 1),
    ):
        with pytest.raises(InternalError, match=r"CBuilder\.\w+: the device has no workgroups"):
            call()


@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize(
    ("step", "offset", "dtype", "size"),
    [
        (4, 0, dtypes.float32, 4),
        (4, 8, dtypes.float32, 4),
        (2, 0, dtypes.float32, 2),
        (4, 2, dtypes.int32, 2),
        (4, 1, dtypes.float32, 1),
        (1, 0, dtypes.float32, 1),
        (8, 0, dtypes.uint8, 4),
        (8, 0, dtypes.int64, 2),
        (8, 0, dtypes.bool, 1),
    ],
)
def test_memory_takes_vectors_just_where_positions_are_multiples_of_their_size(
    builder: type, aligned: bool, step: int, offset: int, dtype: DType, size: int
) -> None:
    b = builder(GPU, aligned)
    (to, source), _ = b.begin("k", [dtype, dtype], [])
    i = b.loop(b.const(dtypes.index, 9, 1))
    at = b.alu(Ops.MUL, dtypes.index, [i, b.const(dtypes.index, step, 1)], 1)
    b.store(Address(to, at, offset), b.load(Address(source, at, offset), dtype, 4), dtype, 4)
    b.end_loop()
    lines = [line for line in body(b.finish()) if "data1" in line]
    assert len(lines) == (4 // size if aligned else 4)


@pytest.mark.parametrize("builder", BUILDERS)
def test_signed_arithmetic_is_done_in_unsigned_integers(builder: type) -> None:
    b, i32 = builder(GPU), dtypes.int32
    (p,), _ = b.begin("k", [i32], [])
    x = b.load(Address(p), i32, 1)
    b.store(
        Address(p, None, 1),
        b.alu(Ops.ADD, i32, [b.alu(Ops.MUL, i32, [x, x], 1), b.const(i32, -1, 1)], 1),
        i32,
        1,
    )
    u = {CUDABuilder: "unsigned", MSLBuilder: "uint"}[builder]
    assert body(b.finish()) == ["int x0 = data0[0];", f"data0[1] = (int)(({u})x0 * ({u})x0 + 4294967295u);"]


def test_metal_has_no_float64() -> None:
    with pytest.raises(DeviceError, match="float64: the device has no such dtype: use float32"):
        MSLBuilder(GPU).begin("k", [dtypes.float64], [])


def test_what_kernels_share_stands_once_before_them() -> None:
    functions = []
    for name in ("k", "l"):
        b, f = CUDABuilder(GPU), dtypes.float32
        (p,), _ = b.begin(name, [f], [])
        b.store(Address(p), b.alu(Ops.MAX, f, [b.load(Address(p, None, i), f, 1) for i in (1, 2)], 1), f, 1)
        functions.append(b.finish())
    assert module(functions).count("float max_float32(") == 1
