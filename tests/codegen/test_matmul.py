"""Products on matrix registers (MATMUL): which are, how words reach them, and that random ones are exact.

That a register tile becomes a MATMUL is in tests/filetests/optimize/matmul*.ir.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Device, Tensor  # noqa: E402
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, lower, opt_steps, run_passes  # noqa: E402
from polygrad.codegen.opts import cost  # noqa: E402
from polygrad.codegen.opts.opt import OptKind, parse_opts  # noqa: E402
from polygrad.codegen.opts.split import Tile  # noqa: E402
from polygrad.codegen.opts.tiling import Tiling  # noqa: E402
from polygrad.codegen.target import Target  # noqa: E402
from polygrad.dtype import dtypes  # noqa: E402
from polygrad.engine.normalize import normalize  # noqa: E402
from polygrad.errors import OptError  # noqa: E402
from polygrad.renderer.emit import emit  # noqa: E402
from polygrad.renderer.llvm.builder import LLVMBuilder  # noqa: E402
from polygrad.renderer.llvm.compile import compile_ir  # noqa: E402
from polygrad.schedule.kernels import KernelCall  # noqa: E402
from polygrad.uop.args import MATRIX_SIDE, Dot  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.ops import Ops  # noqa: E402
from polygrad.uop.spec import verify  # noqa: E402
from tests.codegen.grid_kernels import decided  # noqa: E402
from tests.schedules import schedule  # noqa: E402

BYTES, HALVES = Dot(dtypes.uint8, dtypes.int8), Dot(dtypes.bfloat16, dtypes.bfloat16)
KINDS = frozenset({BYTES, HALVES})
AMX = Target("test", simd_bytes=64, registers=32, fma=True, dots=KINDS, matrices=KINDS, threads=4)
DOTS_ALONE = replace(AMX, matrices=frozenset())


def memory(*shape: int, dtype: str) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype).contiguous().realize()


def kernels(out: Tensor, target: Target = AMX) -> list[KernelCall]:
    calls = list(schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls)
    return decided("relayout", calls, target)


def product(rows: int, columns: int, terms: int, dtype: str = "bfloat16", transposed: bool = False) -> Tensor:
    x = memory(rows, terms, dtype=dtype)
    w = memory(columns, terms, dtype=dtype).T if transposed else memory(terms, columns, dtype=dtype)
    return x.dot(w, dtype="float32" if dtype == "bfloat16" else "int32")


def chosen(out: Tensor, target: Target = AMX) -> list[str]:
    """The Opts of the kernel that computes a product."""
    context = LoweringContext(target)
    kernel = run_passes(kernels(out, target)[-1].ast, context, through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    return [str(opt) for opt, _ in opt_steps(kernel, context)]


def matmuls(linear: list[UOp]) -> list[UOp]:
    return [n for n in linear if n.op is Ops.MATMUL]


# --- what is chosen


@pytest.mark.parametrize("transposed", [False, True])
def test_columns_are_copied_to_panels_of_words(transposed: bool) -> None:
    out = product(256, 256, 256, transposed=transposed)
    (call,) = kernels(out)
    assert len(call.args) == 3  # no copies of the operands
    opts = chosen(out)
    assert opts[:2] == ["SIMD r1 16 2", "UPCAST r0 32"]
    assert any(opt.startswith("STAGE") and "r2" in opt.split() for opt in opts)
    assert "MATMUL r0.1" in opts


@pytest.mark.parametrize(
    ("rows", "columns", "terms", "dtype"),
    [(1, 512, 512, "bfloat16"), (512, 8, 512, "bfloat16"), (256, 256, 256, "int16"), (64, 64, 8, "int8")],
)
def test_products_without_a_tile_of_their_own_stay_sums(rows, columns, terms, dtype) -> None:
    for call in kernels(product(rows, columns, terms, dtype)):
        assert not matmuls(lower(call.ast, AMX))


@pytest.mark.parametrize(
    ("rows", "columns", "tiles"),
    [
        (32, 32, ["SIMD r1 16 2", "UPCAST r0 16"]),
        (48, 16, ["SIMD r1 16 1", "UPCAST r0 16"]),
        (16, 64, ["SIMD r1 16 2", "UPCAST r0 16"]),
    ],
)
def test_a_product_of_one_tile_is_made_in_two_inside_of_a_loop(rows, columns, tiles) -> None:
    opts = chosen(product(rows, columns, 1000))
    assert opts[:2] == tiles and opts[-1] == "MATMUL r0.1"


def test_a_target_without_matrices_has_none() -> None:
    out = product(256, 256, 256)
    assert not any(opt.startswith("MATMUL") for opt in chosen(out, DOTS_ALONE))
    assert AMX.key != DOTS_ALONE.key


@pytest.mark.parametrize(("terms", "words"), [(512, 256), (500, 256), (90, 48)])
def test_sums_end_in_whole_tiles_of_words(terms: int, words: int) -> None:
    linear = lower(kernels(product(256, 256, terms))[-1].ast, AMX)
    (matmul,) = matmuls(linear)
    assert matmul.src[2].src[0].arg == words and words % MATRIX_SIDE == 0


@pytest.mark.parametrize(
    ("rows", "columns", "tile"),
    [
        (512, 512, (32, 2)),
        (48, 512, (16, 4)),  # 32 rows would overlap
        (512, 48, (64, 1)),  # as would 32 columns
        (7, 512, (7, 4)),
        (512, 15, (0, 0)),
    ],
)
def test_which_tile(rows: int, columns: int, tile: tuple[int, int]) -> None:
    assert cost.matrix_tile(rows, columns) == tile


def test_the_row_operand_decides_which_bytes_have_a_sign() -> None:
    linear = lower(kernels(product(256, 256, 256, "int8"))[-1].ast, AMX)
    assert [n.arg for n in matmuls(linear)] in ([BYTES], [Dot(dtypes.int8, dtypes.uint8)])


def test_memory_of_a_kernel_is_filled_without_them() -> None:
    context = LoweringContext(AMX)
    kernel = run_passes(kernels(product(256, 256, 256))[-1].ast, context, through=UNOPTIMIZED)
    assert isinstance(kernel, UOp)
    (nest,) = kernel.src
    assert sorted(Tiling(nest, AMX).choose().values(), key=str) == [Tile(1, 32), Tile(16, 2)]
    filled = Tiling(nest, AMX, is_output=False).choose()
    assert filled == Tiling(nest, DOTS_ALONE).choose()


# --- by hand


def test_a_target_that_has_none_refuses_it_by_hand() -> None:
    ast = kernels(product(256, 256, 256))[-1].ast
    opts = parse_opts("SIMD r1 16 2, UPCAST r0 32, STAGE r2 OR 0, MATMUL r0.1")
    assert [opt.kind for opt in opts][-1] is OptKind.MATMUL
    assert matmuls(lower(ast, AMX, opts=opts))
    with pytest.raises(OptError, match="expected a target with products of"):
        lower(ast, DOTS_ALONE, opts=opts)


@pytest.mark.parametrize(
    "opts",
    [
        "SIMD r1 16 2, UPCAST r0 32, MATMUL r0.1",  # the columns are in no panel
        "SIMD r1 16 2, UPCAST r0 64, STAGE r2 OR 0, MATMUL r0.1",  # eight tiles of sums
        "SIMD r1 16 2, UPCAST r0 24, STAGE r2 OR 0, MATMUL r0.1",  # one and a half tiles of rows
        "SIMD r1 8 2, UPCAST r0 32, STAGE r2 OR 0, MATMUL r0.1",
        "SIMD r1 16 2, UPCAST r0 32, STAGE r2 OR 0, MATMUL r1.1",  # no rows
        "MATMUL r0",
    ],
)
def test_what_is_no_register_tile_of_matrices(opts: str) -> None:
    with pytest.raises(OptError, match="opt 'MATMUL"):
        lower(kernels(product(256, 256, 256))[-1].ast, AMX, opts=parse_opts(opts))


def test_tiles_of_a_kernel_have_one_shape() -> None:
    """Of 37 rows, the part of 5 has no tiles beside those of 16."""
    out = product(37, 128, 90)
    ast = kernels(out)[-1].ast
    tiles = "PARTITION r0 5, SIMD r1.3 16 2, UPCAST r0.3 5, SIMD r1.5 16 2, UPCAST r0.5 16"
    steps = opt_steps(ast, LoweringContext(AMX, opts=parse_opts(tiles)))
    assert len(steps[-1][1].src) == 2
    one = parse_opts(f"{tiles}, MATMUL r0.3.1")
    assert len(matmuls(lower(ast, AMX, opts=one))) == 1
    with pytest.raises(OptError, match="expected as many rows of a tile"):
        lower(ast, AMX, opts=parse_opts(f"{tiles}, MATMUL r0.3.1, MATMUL r0.5.1"))


# --- the linear form, and LLVM's text


def test_the_linear_form_is_legal_and_llvm_multiplies_tiles() -> None:
    linear = lower(kernels(product(256, 256, 256))[-1].ast, AMX)
    verify(linear, "linear")
    text = str(emit("kernel", linear, LLVMBuilder(AMX)))
    assert text.count("@llvm.x86.tdpbf16ps.internal(i16 16, i16 64, i16 64") == 4
    assert text.count("@llvm.x86.tilestored64.internal") == 4


# --- on a processor that has them


def needs(kinds: Dot) -> None:
    if kinds not in Device.backend("CPU").target.matrices:
        pytest.skip("this processor has no matrix registers, or this process may not use them")


@pytest.mark.parametrize("rows", [2, 15, 16, 32, 48, 64])
@pytest.mark.parametrize("vectors", [1, 2, 3, 4])
def test_llvm_finds_registers_for_every_tile(rows: int, vectors: int) -> None:
    needs(HALVES)
    opts = parse_opts(f"SIMD r1 16 {vectors}, UPCAST r0 {rows}, MATMUL r0.1")
    ast = kernels(product(128, 128, 90))[-1].ast
    if rows // MATRIX_SIDE * vectors > 4:
        with pytest.raises(OptError, match="opt 'MATMUL"):
            lower(ast, AMX, opts=opts)
        return
    assert compile_ir(str(emit("kernel", lower(ast, AMX, opts=opts), LLVMBuilder(AMX))))


SIZES = st.sampled_from([16, 17, 32, 33, 48, 64, 96, 100, 130])
TERMS = st.sampled_from([32, 64, 65, 90, 128, 200, 256])


@settings(max_examples=settings().max_examples // 3)
@given(SIZES, SIZES, TERMS, st.sampled_from(["int8", "uint8"]), st.sampled_from(["int8", "uint8"]), st.data())
def test_products_of_bytes_are_exact(rows, columns, terms, a, b, data) -> None:
    needs(BYTES)
    batch = data.draw(st.sampled_from([(), (3,)]))
    rng = np.random.default_rng(rows * columns + terms)
    x, y = (
        rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, size=shape, dtype=dtype)
        for dtype, shape in ((a, (*batch, rows, terms)), (b, (columns, terms)))
    )
    if data.draw(st.booleans()):
        y = np.ascontiguousarray(y.T).T
    got = Tensor(x, device="CPU").realize().dot(Tensor(y, device="CPU").realize().T, dtype="int32") - 7
    assert got.numpy().tolist() == (x.astype(np.int32) @ y.astype(np.int32).T - 7).tolist()


@settings(max_examples=settings().max_examples // 3)
@given(SIZES, SIZES, TERMS, st.booleans())
def test_products_of_bfloat16_are_within_float32_sums(rows, columns, terms, transposed) -> None:
    needs(HALVES)
    rng = np.random.default_rng(rows * columns + terms)
    x = Tensor(rng.standard_normal((rows, terms), dtype=np.float32), device="CPU").cast("bfloat16").realize()
    y = rng.standard_normal((columns, terms) if transposed else (terms, columns), dtype=np.float32)
    w = Tensor(y, device="CPU").cast("bfloat16").realize()
    w = w.T if transposed else w
    expected = x.float().numpy().astype(np.float64) @ w.float().numpy().astype(np.float64)
    np.testing.assert_allclose(x.dot(w, dtype="float32").numpy(), expected, atol=1e-5 * terms)
    np.testing.assert_allclose(x.dot(w).float().numpy(), expected, rtol=2**-8, atol=1e-5 * terms)


def test_a_product_is_added_to_memory_of_odd_sizes_in_place() -> None:
    needs(HALVES)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, size=shape).astype(np.float32) for shape in ((65, 256), (256, 70)))
    out = Tensor.ones(65, 70, device="CPU").contiguous().realize()
    factors = (Tensor(m, device="CPU").cast("bfloat16").realize() for m in (x, w))
    out += next(factors).dot(next(factors), dtype="float32")
    assert out.numpy().tolist() == (x @ w + 1).tolist()


def test_specials_of_bfloat16_and_subnormals_that_count_as_0() -> None:
    needs(HALVES)
    x = np.ones((64, 64), dtype=np.float32)
    x[0, 0], x[1, 0], x[2, 0], x[3] = np.inf, np.nan, -np.inf, 1e-39
    w = np.ones((64, 64), dtype=np.float32)
    got = (
        Tensor(x, device="CPU")
        .cast("bfloat16")
        .realize()
        .dot(Tensor(w, device="CPU").cast("bfloat16").realize(), dtype="float32")
        .numpy()
    )
    assert np.isposinf(got[0]).all() and np.isnan(got[1]).all() and np.isneginf(got[2]).all()
    assert (got[3] == 0).all() and (got[4:] == 64).all()
