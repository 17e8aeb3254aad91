"""Dot products of narrow numbers: what becomes of a product, and that random ones are exact."""

from __future__ import annotations

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Tensor  # noqa: E402
from polygrad.codegen.lower.decompose import decompose  # noqa: E402
from polygrad.codegen.target import Target  # noqa: E402
from polygrad.dtype import dtypes  # noqa: E402
from polygrad.engine.normalize import normalize  # noqa: E402
from polygrad.schedule.kernels import KernelCall  # noqa: E402
from polygrad.uop.args import Dot, Param  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.ops import Ops  # noqa: E402
from polygrad.uop.rewrite import graph_rewrite  # noqa: E402
from polygrad.uop.spec import verify  # noqa: E402
from tests.codegen.grid_kernels import decided  # noqa: E402
from tests.schedules import schedule  # noqa: E402

MIXED, WORDS = Dot(dtypes.uint8, dtypes.int8), Dot(dtypes.int16, dtypes.int16)
HALVES = Dot(dtypes.bfloat16, dtypes.bfloat16)
BOTH = Target("test", simd_bytes=64, registers=32, fma=True, dots=frozenset({MIXED, WORDS}))
ONLY_WORDS = Target("test", simd_bytes=16, registers=15, dots=frozenset({WORDS}))
NEITHER = Target("test", simd_bytes=64, registers=32, fma=True)
WITH_HALVES = Target("test", simd_bytes=64, registers=32, fma=True, dots=frozenset({HALVES}))
NARROW = ("int8", "uint8", "int16")


def empty(shape: tuple[int, int], dtype: str) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype).contiguous().realize()


def kernels(a: str, b: str, target: Target, n: int = 128, total: str = "int32") -> list[KernelCall]:
    out = empty((n, n), a).dot(empty((n, n), b), dtype=total)
    calls = list(schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls)
    made = decided("relayout", calls, target)
    for call in made:
        verify(call.ast.toposort(), "kernel")
    return made


def kinds(calls: list[KernelCall]) -> list[Dot]:
    return [n.arg for call in calls for n in call.ast.toposort() if n.op is Ops.DOT]


@pytest.mark.parametrize(
    ("a", "b", "target", "kind", "count"),
    [
        ("int8", "int8", BOTH, MIXED, 4),  # with the sums of b, as a is offset
        ("uint8", "int8", BOTH, MIXED, 2),  # the words of a are in memory already
        ("int8", "uint8", BOTH, MIXED, 2),
        ("uint8", "uint8", BOTH, MIXED, 3),  # with the sums of a, as b is offset
        ("int16", "int8", BOTH, WORDS, 2),
        ("int8", "int8", ONLY_WORDS, WORDS, 3),
    ],
)
def test_which_dot_product(a: str, b: str, target: Target, kind: Dot, count: int) -> None:
    made = kernels(a, b, target)
    assert kinds(made) == [kind]
    assert len(made) == count
    (rounds,) = [n.src[0].arg for n in made[-1].ast.toposort() if n.op is Ops.RANGE and n.arg.kind]
    assert rounds == 128 // kind.elements


def test_words_that_are_in_memory_are_read_there_unless_the_kernel_reads_their_bytes_too() -> None:
    a, b = empty((128, 128), "uint8"), empty((128, 128), "int8")

    def count(out: Tensor) -> int:
        calls = list(schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls)
        made = decided("relayout", calls, BOTH)
        assert kinds(made) == [MIXED]
        return len(made)

    assert count(a.dot(b, dtype="int32")) == 2
    assert count(a.dot(b, dtype="int32") + a.cast("int32")) == 3
    assert count(a[:, :126].dot(b[:126], dtype="int32")) == 3  # the last word would be of two elements
    assert count(a[:, 1:125].dot(b[:124], dtype="int32")) == 3  # words begin at multiples of 4
    assert count(a[1:, 4:].dot(b[:124], dtype="int32")) == 2


def test_none_where_the_target_has_none_or_the_product_is_small_or_wider() -> None:
    assert not kinds(kernels("int8", "int8", NEITHER))
    assert not kinds(kernels("int8", "int8", BOTH, n=8))
    for dtype in ("uint16", "int32", "float32"):
        assert not kinds(kernels(dtype, "int8", BOTH))


def test_products_of_bfloat16_are_summed_in_float32() -> None:
    made = kernels("bfloat16", "bfloat16", WITH_HALVES, total="float32")
    assert kinds(made) == [HALVES] and len(made) == 2
    (dot,) = [n for n in made[-1].ast.toposort() if n.op is Ops.DOT]
    assert dot.dtype is dtypes.float32
    assert not kinds(kernels("bfloat16", "bfloat16", BOTH, total="float32"))
    for other in ("float32", "float16", "int16"):
        assert not kinds(kernels("bfloat16", other, WITH_HALVES, total="float32"))


def test_a_sum_takes_a_dot_product_in() -> None:
    x, y = (UOp(Ops.PARAM, dtypes.uint32, (), Param(i, 1)) for i in range(2))
    z, w = (UOp(Ops.PARAM, dtypes.int32, (), Param(i, 1)) for i in range(2, 4))
    table = decompose(NEITHER)
    alone = UOp(Ops.DOT, dtypes.int32, (x, y, UOp.const(dtypes.int32, 0)), MIXED)
    assert graph_rewrite(z + alone, table) is UOp(Ops.DOT, dtypes.int32, (x, y, z), MIXED)
    assert graph_rewrite(alone, table) is alone
    taken = UOp(Ops.DOT, dtypes.int32, (x, y, w), MIXED)
    assert graph_rewrite(z + taken, table) is z + taken


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_random_products_are_exact(device: str, eager_copies: None) -> None:
    @settings(max_examples=40, deadline=None)
    @given(
        st.tuples(*(st.integers(1, n) for n in (40, 70, 70))),
        st.sampled_from(NARROW),
        st.sampled_from(NARROW),
        st.sampled_from([(False, False), (True, False), (False, True), (True, True)]),
        st.integers(1, 3),
        st.booleans(),
        st.integers(0, 2**31),
    )
    def check(shape, a, b, transposed, batch, extreme, seed):
        m, k, n = shape
        rng = np.random.default_rng(seed)
        sides = []
        for name, size in ((a, (batch, m, k)), (b, (batch, k, n))):
            least, greatest = np.iinfo(name).min, np.iinfo(name).max
            values = rng.choice([least, greatest], size) if extreme else rng.integers(least, greatest, size)
            sides.append(values.astype(name))
        x, y = sides
        tensors = [
            Tensor(np.ascontiguousarray(v.swapaxes(1, 2)), device=device).transpose(1, 2)
            if t
            else Tensor(v, device=device)
            for v, t in zip(sides, transposed, strict=True)
        ]
        exact = x.astype(np.int64) @ y.astype(np.int64) * 3 - 1
        got = tensors[0].dot(tensors[1], dtype="int32") * 3 - 1
        np.testing.assert_array_equal(got.numpy(), exact.astype(np.int32))

    check()


def test_random_products_of_bfloat16(eager_copies: None) -> None:
    """On a processor that has their dot products by these, on another by multiply-adds."""

    @settings(max_examples=40, deadline=None)
    @given(
        st.tuples(*(st.integers(1, n) for n in (40, 70, 70))),
        st.sampled_from([(False, False), (True, False), (False, True), (True, True)]),
        st.sampled_from([None, np.inf, -np.inf, np.nan]),
        st.integers(0, 2**31),
    )
    def check(shape, transposed, special, seed):
        m, k, n = shape
        rng = np.random.default_rng(seed)
        sides, tensors = [], []
        for size, swap in zip(((m, k), (k, n)), transposed, strict=True):
            values = rng.standard_normal(size).astype(np.float32)
            if special is not None:
                values[rng.integers(0, size[0]), rng.integers(0, size[1])] = special
            t = Tensor(np.ascontiguousarray(values.T) if swap else values, device="CPU")
            t = t.cast("bfloat16").realize()
            sides.append((t.T if swap else t).float().numpy().astype(np.float64))
            tensors.append(t.T if swap else t)
        with np.errstate(invalid="ignore"):
            exact = sides[0] @ sides[1]
        got = tensors[0].dot(tensors[1], dtype="float32").numpy()
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)

    check()
