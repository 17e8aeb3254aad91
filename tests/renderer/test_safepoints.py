"""Safepoints: which loops of a kernel have one, and how often; kernels that were asked to stop return."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from polygrad import Tensor, Variable
from polygrad.codegen.lower.passes import run_passes
from polygrad.codegen.opts.tile import is_tile
from polygrad.engine.compile import origin_of
from polygrad.engine.devices import Device
from polygrad.engine.preview import preview
from polygrad.engine.recording import RecordedRun
from polygrad.helpers import Context
from polygrad.renderer.safepoints import _MAX_WORK, _MIN_INTERVAL, safepoints
from polygrad.runtime.cpu import stop as native_stop
from polygrad.shared_words import STOP
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def kernels(lazy: Tensor) -> list[list[UOp]]:
    """The linear kernels that would compute a Tensor, and nothing else."""
    out = []
    for run in preview([lazy.uop], lazy._device):
        assert isinstance(run, RecordedRun)
        for kernel in run.program.kernels:
            origin = origin_of(kernel.name, run.program.device)
            assert origin is not None
            linear = run_passes(origin.ast, origin.context)
            assert isinstance(linear, list)
            out.append(linear)
    return out


def loops(linear: list[UOp]) -> list[UOp]:
    return [n for n in linear if n.op is Ops.RANGE and not is_tile(n)]


def one(node: UOp) -> int:
    return 1


def filled(*shape: int, device: str = "CPU") -> Tensor:
    """Memory, a byte for each element."""
    return Tensor.zeros(*shape, dtype="uint8", device=device).contiguous().realize()


def test_short_kernels_have_none() -> None:
    (linear,) = kernels(filled(64, 64) * 2)
    assert loops(linear) and safepoints(linear, one) == {}


def test_a_long_flat_loop_has_one_every_so_many_rounds() -> None:
    with Context(NOOPT=1):
        (linear,) = kernels(filled(1 << 22) * 2)
    (found,) = safepoints(linear, one).items()
    assert found[0] in loops(linear)
    assert found[1] & (found[1] - 1) == 0 and _MIN_INTERVAL // 16 <= found[1] <= _MIN_INTERVAL


def test_of_a_product_it_is_not_in_the_innermost_loop() -> None:
    with Context(NOOPT=1):
        (linear,) = kernels(filled(512, 512) @ filled(512, 512))
    *outer, _ = loops(linear)
    found = set(safepoints(linear, one))
    assert found and found <= set(outer)


def test_a_very_long_innermost_loop_has_one() -> None:
    with Context(NOOPT=1):
        (linear,) = kernels(filled(2, 2 * _MAX_WORK).sum(1))
    *_, inner = loops(linear)
    assert set(safepoints(linear, one)) == {inner}


def test_work_is_counted_in_values() -> None:
    (linear,) = kernels(filled(1 << 12) * 2)
    assert safepoints(linear, one) == {}
    (interval,) = safepoints(linear, lambda node: 1 << 20).values()
    assert interval == 1


@pytest.mark.parametrize("device", ["CPU", "CC", "WASM"])
@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18, (1 << 18) + 1])
def test_each_round_of_a_loop_with_safepoints_runs_once(device: str, size: int) -> None:
    signs = Tensor(np.where(np.arange(size) % 7 < 2, np.float32(-1), np.float32(1)), device=device).realize()
    with Context(NOOPT=1):
        running = signs.cumprod(0)  # each round needs the value of the round before it
        (linear,) = kernels(running)
        assert min(safepoints(linear, one).values()) > 1
        assert np.array_equal(running.numpy(), signs.numpy().cumprod())
        assert np.array_equal((signs * 2).numpy(), signs.numpy() * 2)


@pytest.mark.parametrize("device", ["CPU", "CC", "WASM"])
def test_each_round_of_a_loop_whose_size_is_bound_later_runs_once(device: str) -> None:
    x = Tensor.arange(1 << 18, device=device).realize()
    n = Variable("n", 1, 1 << 18)
    with Context(NOOPT=1):
        (linear,) = kernels(x[: n.bind(1)] * 2)
        assert min(safepoints(linear, one).values()) > 1
        for size in (1, 1 << 10, (1 << 17) + 5, 1 << 18):
            total = (x[: n.bind(size)] % 7 * 2).sum()
            assert total.item() == (np.arange(size) % 7 * 2).sum()
            doubled = (x[: n.bind(size)] * 2).contiguous()[:size]
            assert np.array_equal(doubled.numpy(), np.arange(size) * 2)


@pytest.mark.parametrize("device", ["CPU", "CC", "WASM"])
def test_a_kernel_that_is_to_stop_returns(device: str) -> None:
    """And what it has not come to is as it was; once it need not stop any more it does all."""
    x = Tensor.ones(1 << 20, device=device).contiguous().realize()
    out = Tensor.zeros(1 << 20, device=device).contiguous().realize()

    def stop(value: int) -> None:
        if device == "WASM":
            Device[device].host.set_word(STOP, value)  # type: ignore[attr-defined]
        else:
            native_stop.WORD.value = value

    (x * 2).realize()  # compiled, and known not to take long
    stop(1)
    try:
        out.assign(x * 2).realize()
    finally:
        stop(0)
    assert 0 < out.sum().item() + 1 < 2 << 20
    out.assign(x * 2 + 0).realize()
    assert out.sum().item() == 2 << 20
    assert ctypes.c_int64.from_address(native_stop.ADDRESS).value == 0


@pytest.mark.parametrize(
    ("device", "word"), [("CPU", "@polygrad_stop"), ("CC", "*polygrad_stop"), ("WASM", "offset=20")]
)
def test_it_is_in_the_code_of_long_kernels_alone(device: str, word: str) -> None:
    assert word in (filled(1 << 22, device=device) * 2).code()
    assert word not in (filled(1 << 8, device=device) * 2).code()
