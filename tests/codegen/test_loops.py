"""What is done to loops before they are tiled: partition where conditions change, sums flattened, rows
materialised."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polygrad import Tensor, Variable
from polygrad.codegen.lower.passes import lower
from polygrad.codegen.target import Target
from polygrad.engine.normalize import normalize
from polygrad.uop.args import AddrSpace, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.path_conditions import conjuncts
from tests.schedules import schedule

RNG = np.random.default_rng(11)
TARGET = Target("test", simd_bytes=16, registers=15, fma=True)
DEVICES = ["CPU", "WASM", "INTERP"]


def linear(out: Tensor) -> list[UOp]:
    """The linear form of the last kernel that `out` takes."""
    calls = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    return lower(calls[-1].ast, TARGET)


def empty(*shape: int) -> Tensor:
    return Tensor.zeros(*shape).contiguous().realize()


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


# --- loop partition


def test_a_concatenation_has_no_conditions() -> None:
    nodes = linear(empty(64, 32).cat(empty(64, 48), empty(64, 16), dim=1))
    assert not any(n.op is Ops.WHERE for n in nodes)
    assert not any(n.op is Ops.INDEX and len(n.src) > 2 for n in nodes)
    assert sum(n.op is Ops.STORE for n in nodes) >= 3


@pytest.mark.parametrize(("width", "loops"), [(20, 1), (64, 3)])
def test_narrow_borders_are_cut_off_long_rows(width: int, loops: int) -> None:
    """A condition for each lane of a long row costs more than loops of their own for a few elements."""
    nodes = linear(empty(64, width).pad(((0, 0), (1, 1))))
    assert sum(n.op is Ops.STORE for n in nodes) == loops


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_concatenated_products_are_right(device: str, dim: int) -> None:
    a, b = numbers(20, 24, 16), numbers(20, 16, 24)
    x, y = Tensor(a, device=device), Tensor(b, device=device)
    got = (x @ y).cat(x * 2 if dim == 2 else (x @ y).exp(), dim=dim).numpy()
    product = a @ b
    want = np.concatenate([product, a * 2 if dim == 2 else np.exp(product)], axis=dim)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_the_gradient_of_a_split_is_right(device: str) -> None:
    a, weights = numbers(24, 96), [numbers(32, 20) for _ in range(3)]
    x = Tensor(a, device=device, requires_grad=True)
    parts = x.split(32, dim=1)
    sum(
        ((part @ Tensor(w, device=device)) * (i + 1)).sum()
        for i, (part, w) in enumerate(zip(parts, weights, strict=True))
    ).backward()
    want = np.concatenate([np.tile((i + 1) * w.sum(1), (24, 1)) for i, w in enumerate(weights)], axis=1)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-4, atol=1e-4)


def test_parts_of_different_widths_are_one_kernel() -> None:
    """SIMD values have one width in a kernel: the narrower part's."""
    a, b = numbers(64, 48), numbers(64, 20)
    x, y = Tensor(a, device="CPU"), Tensor(b, device="CPU")
    np.testing.assert_array_equal((x * 2).cat(y + 1, dim=1).numpy(), np.concatenate([a * 2, b + 1], axis=1))
    np.testing.assert_allclose(
        (x @ x.T)[:, :20].cat(y, dim=1).numpy(), np.concatenate([(a @ a.T)[:, :20], b], axis=1), rtol=1e-4,
        atol=1e-4,
    )  # fmt: skip


# --- sums over sums


def test_the_gradient_of_a_convolution_is_one_sum() -> None:
    x, w = empty(8, 16, 26, 26), empty(32, 16, 3, 3)
    x.requires_grad = True
    x.conv2d(w).backward(empty(8, 32, 24, 24))
    nodes = linear(x.grad)
    parts = 3  # of a row: its ends, where windows look beyond it, and the rest
    assert sum(n.op is Ops.DEFINE_REG for n in nodes) == parts
    gated = [n for n in nodes if n.op is Ops.INDEX and len(n.src) > 2]
    assert len({n.src[0] for n in gated}) == 1  # the weight is read unconditionally


def test_pooling_looks_beyond_rows_at_their_ends_only() -> None:
    """Corners, ends of rows, ends of columns and the rest: no load asks where in the output it is."""
    nodes = linear(empty(4, 56, 56).max_pool2d(3, stride=2, padding=1))
    stores = [n for n in nodes if n.op is Ops.STORE and n.src[0].memory.op is Ops.PARAM]
    assert len(stores) == 4
    gates = [c for n in nodes if n.op is Ops.INDEX and len(n.src) > 2 for c in conjuncts(n.src[2])]
    asked = [x for gate in gates for x in gate.src if x.op is not Ops.CONST]
    assert asked and all(x.op is Ops.RANGE and x.arg.kind is AxisKind.REDUCE for x in asked)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, 2, 3])
@pytest.mark.parametrize("device", DEVICES)
def test_windows_over_padded_rows(device: str, stride: int, padding: int) -> None:
    x = numbers(2, 7, 61)
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (6, 6), axis=(1, 2))[:, ::stride, ::stride]
    out = Tensor(x, device=device).max_pool2d(6, stride=stride, padding=padding)
    np.testing.assert_array_equal(out.numpy(), windows.max((-1, -2)))


@pytest.mark.parametrize("device", DEVICES)
def test_a_sum_further_in_that_only_the_outer_of_joined_sums_moves(device: str) -> None:
    """The rest of a split sum gets loops of its own, and so do the sums in it."""
    x = numbers(5)
    k, i = Tensor.arange(2, device=device).reshape(1, 2), Tensor.arange(2, device=device).reshape(2, 1)
    limit = (k < i).where(k, 0).sum(1, keepdim=True)
    below = Tensor.arange(5, device=device).reshape(1, 5) < limit + 1
    got = below.where(Tensor(x, device=device).reshape(1, 5), 0.0).sum(1).sum().item()
    np.testing.assert_allclose(got, 2 * x[0], rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_an_index_that_is_itself_a_sum(device: str) -> None:
    """There is one such sum, whether its own loads are tiled or not."""
    y = (Tensor.arange(12, device=device) * 2).flip(0).contiguous().realize()
    position = (y * y).sum() - 2024 + 5
    assert (Tensor.arange(12, device=device) == position).where(y, 0).sum().item() == 2 * (11 - 5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_factor_keeps_a_condition_of_its_own(device: str) -> None:
    """Padding guards one factor; that the other is masked is another matter."""
    x, w = numbers(20, 3), numbers(20, 12, 3)
    padded = Tensor(x, device=device).pad(((0, 0), (0, 0))).pad(((4, 0), (0, 0))).reshape(24, 1, 3)
    masked = Tensor(w, device=device).tril().pad(((4, 0), (0, 0), (0, 0)))
    got = (padded * masked).sum(2).sum(1).numpy()
    want = np.concatenate([np.zeros(4), (x[:, None] * np.tril(w)).sum((1, 2))])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


# --- rows


def exponentials(nodes: list[UOp]) -> int:
    """How many exponentials a linear kernel has, by the first coefficient of their polynomial."""
    first = [n for n in nodes if n.op is Ops.CONST and math.isclose(n.arg, 1.5453163e-4, rel_tol=1e-6)]
    return sum(not set(n.src).isdisjoint(first) for n in nodes)


def test_softmax_computes_each_exponential_once() -> None:
    nodes = linear(empty(64, 256).softmax())
    assert exponentials(nodes) == 1
    # a row of them lies in the output
    assert not [n for n in nodes if n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL]


def test_a_row_that_would_leave_the_cache_is_not_staged() -> None:
    nodes = linear(empty(16, 1 << 16).softmax())
    assert exponentials(nodes) == 2
    assert not [n for n in nodes if n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL]


def test_only_expensive_values_are_staged() -> None:
    nodes = linear(empty(64, 256) - empty(64, 256).mean(1, keepdim=True))
    assert not [n for n in nodes if n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(9, 1000), (64, 37), (8, 3), (40, 33), (8, 32), (16, 8192), (3, 10, 130)])
def test_softmax_of_any_width(device: str, shape: tuple[int, ...]) -> None:
    x = numbers(*shape) * 3
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    got = Tensor(x, device=device).softmax().numpy()
    np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=1e-5, atol=1e-30)


def test_threads_keep_rows_of_their_own() -> None:
    x = numbers(512, 1024)
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    got = Tensor(x, device="CPU").softmax().numpy()
    np.testing.assert_allclose(got, e / e.sum(-1, keepdims=True), rtol=1e-5, atol=1e-30)


# --- transposition


@pytest.mark.parametrize("device", DEVICES)
def test_a_transposed_read_from_a_variable_on(device: str) -> None:
    x = numbers(40, 64)
    start = Variable("start", 0, 24).bind(5)
    got = Tensor(x, device=device).T[start : start + 40].contiguous().numpy()
    np.testing.assert_array_equal(got, x.T[5:45])


# --- epilogues


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(64, 48, 96), (50, 33, 77), (128, 96, 256)])
def test_a_product_with_a_long_epilogue_is_right(device: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b, c = numbers(m, k) * 0.1, numbers(k, n), numbers(m, n)
    y = (Tensor(a, device=device) @ Tensor(b, device=device)).gelu() * Tensor(c, device=device).sigmoid()
    z = a.astype(np.float64) @ b
    want = 0.5 * z * (1 + np.tanh((2 / np.pi) ** 0.5 * (z + 0.044715 * z**3))) / (1 + np.exp(-c))
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-5)


def test_a_long_epilogue_is_a_loop_over_the_rows_of_a_tile() -> None:
    """Its operations are written once, not once for each row."""
    plain, long = linear(empty(96, 96) @ empty(96, 96)), linear((empty(96, 96) @ empty(96, 96)).gelu())
    loops = [sum(n.op is Ops.END for n in nodes) for nodes in (plain, long)]
    assert loops[1] == loops[0] + 1
    assert any(n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL for n in long)
    assert sum(n.op in GroupOp.ALU for n in long) < 120
