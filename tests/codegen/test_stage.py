"""Staging: which operands are copied into a kernel's own memory, and that products stay right."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor
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
