"""Staging: which operands are copied into a kernel's own memory, and that products stay right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.codegen.kernels.passes import kernels_of
from polygrad.codegen.lower.passes import lower
from polygrad.codegen.target import Target
from polygrad.engine.normalize import normalize
from polygrad.uop.args import AddrSpace
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.schedules import schedule

RNG = np.random.default_rng(7)
WIDE = Target("test", simd_bytes=64, registers=32, fma=True)
NARROW = Target("test", simd_bytes=16, registers=16)


def local_sizes(out: Tensor, target: Target) -> list[int]:
    """The sizes of the buffers that the only kernel of `out` wants for itself, in elements."""
    (call,) = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    linear = lower(call.ast, target)
    return [n.arg.size for n in linear if n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL]


def empty(*shape: int) -> Tensor:
    return Tensor.zeros(*shape).contiguous().realize()


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_a_scattered_panel_is_staged(target: Target) -> None:
    (size,) = local_sizes(empty(1024, 1024) @ empty(1024, 1024), target)
    assert size % 1024 == 0


@pytest.mark.parametrize("target", [WIDE, NARROW])
def test_lanes_that_jump_are_staged_when_many_rows_read_them(target: Target) -> None:
    assert local_sizes(empty(1024, 256) @ empty(512, 256).T, target)


def test_not_where_the_panel_is_near_or_read_seldom() -> None:
    assert not local_sizes(empty(64, 64) @ empty(64, 64), WIDE)
    assert not local_sizes(empty(6, 1024) @ empty(1024, 1024), WIDE)


def test_not_for_elementwise_kernels() -> None:
    assert not local_sizes(empty(1024, 1024) + empty(1024, 1024).T, WIDE)


def scaled(x: Tensor, other: Callable[[Tensor], Tensor]) -> Tensor:
    """Exponentials over their sum, and an expression of them."""
    e = x.exp()
    return e / e.sum(-1, keepdim=True) + other(e)


ROWS: dict[str, tuple[bool, tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "softmax": (True, (64, 512), lambda x: x.softmax(-1)),
    "softmax of three axes": (True, (4, 16, 512), lambda x: x.softmax(-1)),
    "with an operand": (True, (64, 512), lambda x: scaled(x, lambda e: x)),
    "with its maximum": (True, (64, 512), lambda x: scaled(x, lambda e: e.max(-1, keepdim=True))),
    "tiles that overlap": (False, (64, 501), lambda x: x.softmax(-1)),
    "another dtype": (False, (64, 512), lambda x: x.softmax(-1).half().float()),
    "with an element computed again": (True, (64, 512), lambda x: scaled(x, lambda e: e.flip(-1))),
    "columns": (False, (512, 64), lambda x: x.softmax(0)),
}


@pytest.mark.parametrize("target", [WIDE, NARROW])
@pytest.mark.parametrize("name", ROWS)
def test_rows_lie_in_the_output_if_each_element_is_read_where_it_is_stored(name: str, target: Target) -> None:
    lies_there, shape, function = ROWS[name]
    out = function(empty(*shape))
    out = out.half() if name == "another dtype" else out
    sink = normalize(UOp.sink(out.uop.base)).sink
    for call in kernels_of(sink, target, True).calls:
        linear = lower(call.ast, target)
        if any(n.op is Ops.EXP2 for n in call.ast.toposort()):
            has_own = any(n.op is Ops.PARAM and n.arg.space is AddrSpace.LOCAL for n in linear)
            reads_output = any(n.op is Ops.LOAD and 0 == slot_of(n) for n in linear)
            assert reads_output == lies_there and not (lies_there and has_own)


def slot_of(load: UOp) -> int | None:
    memory = load.src[0].src[0]
    memory = memory.src[0] if memory.op is Ops.AFTER else memory
    return memory.arg.slot if memory.op is Ops.PARAM and memory.arg.space is AddrSpace.GLOBAL else None


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_in_the_output_within_1e_5(name: str, device: str) -> None:
    _, shape, function = ROWS[name]
    x = RNG.standard_normal(shape).astype(np.float32)
    rtol = 1e-3 if name == "another dtype" else 1e-5
    want = function(Tensor(x, device="INTERP")).numpy()
    np.testing.assert_allclose(function(Tensor(x, device=device)).numpy(), want, rtol=rtol, atol=1e-6)
    y = Tensor(x, device=device).contiguous().realize()
    y.assign(function(y))
    np.testing.assert_allclose(y.numpy(), want, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@pytest.mark.parametrize("shape", [(500, 333, 777), (257, 520, 260), (300, 16, 1030)])
def test_products_within_1e_4_of_float64(device: str, transposed: str, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = RNG.standard_normal((m, k)).astype(np.float32), RNG.standard_normal((k, n)).astype(np.float32)
    x = Tensor(a.T.copy(), device=device).T if "a" in transposed else Tensor(a, device=device)
    y = Tensor(b.T.copy(), device=device).T if "b" in transposed else Tensor(b, device=device)
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose((x @ y).numpy(), want, atol=1e-4 * k**0.5)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_convolution_with_staged_weights_within_1e_4(device: str) -> None:
    torch = pytest.importorskip("torch")
    x, w = RNG.standard_normal((8, 16, 13, 13)).astype(np.float32), RNG.standard_normal((32, 16, 3, 3))
    w = w.astype(np.float32)
    want = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w)).numpy()
    got = Tensor(x, device=device).conv2d(Tensor(w, device=device)).numpy()
    np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("columns", [1001, 1024])
def test_rows_in_the_output_are_right_where_that_is_read_too(device: str, columns: int) -> None:
    """Of writes to the operand, to other rows of it, and to columns that overlap those that are read."""
    start = np.random.default_rng(3).standard_normal((40, columns)).astype(np.float32)

    def softmax(x: np.ndarray) -> np.ndarray:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    x, expected = Tensor(start, device=device).realize(), start.copy()
    view = x.T[7:9]
    for to, of in (
        (np.s_[:], np.s_[:]), (np.s_[:], np.s_[::-1]), (np.s_[1:5], np.s_[2:6]),
        (np.s_[:, 3:803], np.s_[:, 5:805]),
    ):  # fmt: skip
        x[to] = x[of].softmax()
        expected[to] = softmax(expected[of].copy())
        np.testing.assert_allclose(x.numpy(), expected, rtol=2e-5, atol=1e-7)
        np.testing.assert_array_equal(view.numpy(), x.numpy().T[7:9])
