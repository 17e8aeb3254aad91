"""Tiles: every element is computed, sums count each element once, and one loop nest serves any size."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.codegen.kernels.division import store_value
from polygrad.codegen.lower.passes import lower
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import OptKind, parse_opts
from polygrad.codegen.opts.split import Tile, tile_range
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.engine.normalize import normalize
from polygrad.errors import OptError
from polygrad.uop.args import Axis, AxisKind, Dot, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import infix
from tests.schedules import schedule

TARGET = Target("test", simd_bytes=64, registers=32, fma=True)
RNG = np.random.default_rng(11)


def ast_of(out: Tensor) -> UOp:
    (call,) = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    return call.ast


def empty(*shape: int, dtype: DType = dtypes.float32) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype).contiguous().realize()


def test_output_tiles_overlap_at_the_edge() -> None:
    """One nest, whose last tile starts where it still fits."""
    ast = ast_of(empty(1000) + 1)
    (r,) = [n for n in ast.toposort() if n.op is Ops.RANGE]
    split = tile_range(ast, r, Tile(16, 4))
    assert len(split.src) == 1
    assert any(n.op is Ops.WHERE for n in split.toposort())


def test_no_overlap_in_place() -> None:
    """a = a + 1 with an overlap would add twice to some elements."""
    x = empty(1000)
    x.assign(x + 1)
    ast = ast_of(x)
    (r,) = [n for n in ast.toposort() if n.op is Ops.RANGE]
    assert len(tile_range(ast, r, Tile(16, 4)).src) > 1
    assert x.numpy().tolist() == [1.0] * 1000


def test_no_overlap_when_the_size_is_a_multiple() -> None:
    ast = ast_of(empty(1024) + 1)
    (r,) = [n for n in ast.toposort() if n.op is Ops.RANGE]
    assert not any(n.op is Ops.WHERE for n in tile_range(ast, r, Tile(16, 4)).toposort())


def indices(opts: str, out: Tensor) -> list[str]:
    """The positions in a kernel with these Opts, without their linear steps."""
    linear = lower(ast_of(out), TARGET, opts=parse_opts(opts))
    return sorted({infix(n.src[1]) for n in linear if n.op is Ops.INDEX})


def test_the_last_value_of_a_row_in_one_tile_overlaps() -> None:
    """Its positions are constants, beside what loops compute."""
    start = "(r1.1<2 ? r1.1<<4 : 21)"
    rows = empty(5, 37).flip(0) * empty(37)
    assert indices("SIMD r1 16 3", rows) == [start, f"r0*(-37)+{start}", f"r0*37+{start}"]
    assert indices("SIMD r1 16 3", empty(5, 48).flip(0) * empty(48)) == ["0", "r0*(-48)", "r0*48"]


def test_a_row_in_one_tile_has_no_value_left_over() -> None:
    for opts in ("SIMD r0 16 4", "SIMD r0 64 1", "UPCAST r0 34"):
        with pytest.raises(OptError, match="a tile of 2 to 33 elements"):
            indices(opts, empty(33) + 1)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("n", [17, 33, 37, 47, 71, 95])
def test_short_rows_have_each_element_once(device: str, n: int) -> None:
    """Read in another order, added in place, as columns of a product, and as rows of blocks."""
    data = RNG.standard_normal((6, n)).astype(np.float32)
    x = Tensor(data, device=device).realize()
    np.testing.assert_array_equal((x.flip(0) * 2).numpy(), data[::-1] * 2)
    left = RNG.standard_normal((25, 6)).astype(np.float32)
    np.testing.assert_allclose((Tensor(left, device=device) @ x).numpy(), left @ data, rtol=1e-4, atol=1e-5)
    x[:, 1:] += x[:, 1:] + x[:, :-1]
    data[:, 1:] += data[:, 1:] + data[:, :-1]
    np.testing.assert_array_equal(x.numpy(), data)
    blocks = x.reshape(2, 3, n).permute(1, 0, 2).contiguous()
    np.testing.assert_array_equal(blocks.numpy(), data.reshape(2, 3, n).transpose(1, 0, 2))


def test_an_odd_product_is_one_nest() -> None:
    linear = lower(ast_of(empty(50, 33) @ empty(33, 77)), TARGET)
    assert sum(n.op is Ops.RANGE and not n.arg.kind for n in linear) <= 2


def test_the_register_tile_fits_the_registers() -> None:
    for target in (TARGET, Target("test", simd_bytes=16, registers=16)):
        opts = choose(ast_of(empty(512, 512) @ empty(512, 512)), target)
        (columns,) = [o.numbers[1] for o in opts if o.kind is OptKind.SIMD]
        (rows,) = [o.numbers[0] for o in opts if o.kind is OptKind.UPCAST and len(o.axes[0]) == 1]
        assert 8 <= rows * columns <= target.registers - 3


@pytest.mark.parametrize("simd_bytes", [16, 32, 64])
def test_a_register_tile_of_float64_fits_the_registers(simd_bytes: int) -> None:
    target = Target("test", simd_bytes=simd_bytes, registers=32 if simd_bytes == 64 else 16)
    opts = choose(
        ast_of(empty(512, 512, dtype=dtypes.float64) @ empty(512, 512, dtype=dtypes.float64)), target
    )
    ((lanes, columns),) = [o.numbers for o in opts if o.kind is OptKind.SIMD]
    (rows,) = [o.numbers[0] for o in opts if o.kind is OptKind.UPCAST and len(o.axes[0]) == 1]
    assert lanes == max(simd_bytes // 8, 4)
    assert 4 <= rows * columns * lanes * 8 // simd_bytes <= target.registers - 3


@pytest.mark.parametrize(("adds", "sums"), [(True, 12), (False, 10)])
def test_a_register_tile_has_room_for_products_that_another_instruction_adds(adds: bool, sums: int) -> None:
    """Beside the sums: a row's two vectors, a scalar of the other operand, and the product where a DOT does
    not add it to its sum."""
    words = Dot(dtypes.int16, dtypes.int16)
    target = Target("test", simd_bytes=16, registers=15, dots=frozenset({words}), adding_dots=adds)
    row, column, k = (UOp.range(480, i) for i in range(3))
    k = k.replace(arg=Axis((2,), AxisKind.REDUCE))
    sides = [_word(0, row * 480 + k), _word(1, k * 480 + column)]
    dot = UOp(Ops.DOT, dtypes.int32, (*sides, UOp.const(dtypes.int32, 0)), words)
    ast = store_value(UOp(Ops.REDUCE, dtypes.int32, (dot, k), Ops.ADD), (row, column), 2)
    opts = choose(ast, target)
    ((_, columns),) = [o.numbers for o in opts if o.kind is OptKind.SIMD]
    (rows,) = [o.numbers[0] for o in opts if o.kind is OptKind.UPCAST and len(o.axes[0]) == 1]
    assert rows * columns == sums


def _word(slot: int, position: UOp) -> UOp:
    memory = UOp(Ops.PARAM, dtypes.uint32, (), Param(slot, 480 * 480))
    return UOp(Ops.LOAD, dtypes.uint32, (UOp(Ops.INDEX, dtypes.uint32, (memory, position)),))


def test_nests_of_float32_and_float64_share_lanes() -> None:
    """One width of SIMD values for a kernel: the float64 ones fill registers, the others halves."""
    target = Target("test", simd_bytes=64, registers=32)
    x = empty(64, 64, dtype=dtypes.float64)
    opts = choose(ast_of(Tensor.cat(x, x.float().exp().double(), dim=1)), target)
    assert {o.numbers[0] for o in opts if o.kind is OptKind.SIMD} == {8}


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 1000])
def test_sums_of_any_length_within_1e_5(device: str, n: int) -> None:
    data = RNG.standard_normal((3, n)).astype(np.float32)
    for axis in (0, 1):
        got = Tensor(data, device=device).sum(axis).numpy()
        np.testing.assert_allclose(got, data.astype(np.float64).sum(axis), rtol=1e-5, atol=1e-5)
        top = Tensor(data, device=device).max(axis).numpy()
        np.testing.assert_array_equal(top, data.max(axis))


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("shape", [(13, 7, 37), (40, 12, 50), (5, 9, 3)])
def test_a_product_that_reads_what_it_writes(device: str, shape: tuple[int, int, int]) -> None:
    """Its tiles must not overlap: the rest of each axis has loops of its own."""
    m, k, n = shape
    a, b, c = (RNG.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (m, n)))
    x = Tensor(c, device=device).realize()
    x.assign(x * 0.5 + Tensor(a, device=device) @ Tensor(b, device=device))
    np.testing.assert_allclose(x.numpy(), c * 0.5 + a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)
