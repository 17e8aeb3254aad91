"""Windows that are reduced along one axis after the other: numbers beside torch's, and where it pays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Context, Tensor
from polygrad.codegen.kernels.passes import schedule_graph, steps
from polygrad.engine.normalize import normalize
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.codegen.grid_kernels import data
from tests.codegen.test_kernel_passes import CPU, changes

RNG = np.random.default_rng(17)


def pool(kind: str, x: Any, *settings: Any, **more: Any) -> torch.Tensor:
    function: Any = getattr(torch.nn.functional, f"{kind}_pool{x.ndim - 2}d")
    return function(torch.tensor(x), *settings, **more)


# shape, window, stride, padding, dilation
WINDOWS = {
    "3 by 3": ((8, 16, 50, 59), (3, 3), 1, 1, 1),
    "3 by 3, stride 2": ((8, 16, 64, 57), (3, 3), 2, 1, 1),
    "5 by 5, stride 2": ((8, 16, 53, 54), (5, 5), 2, 2, 1),
    "4 by 3, dilated": ((8, 16, 50, 59), (4, 3), 1, 1, 2),
    "3 by 5 by 3": ((2, 8, 12, 26, 33), (3, 5, 3), 2, 1, 1),
}


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("name", WINDOWS)
def test_maxima_with_nan_and_infinities_are_torchs(name: str, device: str) -> None:
    shape, window, stride, padding, dilation = WINDOWS[name]
    x = RNG.standard_normal(shape).astype(np.float32)
    for value in (np.nan, np.inf, -np.inf):
        x.reshape(-1)[RNG.integers(0, x.size, 30)] = value
    with Context(SPEC=1):
        got = Tensor(x, device=device).max_pool2d(window, stride, dilation, padding)
    np.testing.assert_array_equal(got.numpy(), pool("max", x, window, stride, padding, dilation).numpy())


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@pytest.mark.parametrize("counted", [False, True])
def test_means_within_1e_6(counted: bool, device: str) -> None:
    x = RNG.standard_normal((8, 16, 57, 58)).astype(np.float32)
    got = Tensor(x, device=device).avg_pool2d((3, 3), 2, padding=1, count_include_pad=counted)
    np.testing.assert_allclose(
        got.numpy(), pool("avg", x, 3, 2, 1, count_include_pad=counted).numpy(), atol=1e-6
    )


@pytest.mark.parametrize(
    ("fires", "shape", "window", "stride"),
    [
        (True, (8, 16, 56, 56), 3, 1),
        (True, (8, 16, 56, 56), 5, 2),
        (True, (8, 16, 80, 80), 3, 2),
        (False, (8, 16, 56, 56), 2, 1),  # each element is in few windows
        (False, (8, 1024, 7, 7), 3, 1),  # rows are short
        (False, (8, 16, 56, 56), 3, 3),  # each in one
        (False, (1, 2, 20, 20), 3, 1),  # little work
    ],
)
def test_it_fires_where_it_pays(fires: bool, shape: tuple[int, ...], window: int, stride: int) -> None:
    found = changes(lambda: data(*shape).max_pool2d((window, window), stride), CPU)
    assert ("separate-windows" in found) == fires


def test_channels_last_pay_with_a_small_step_alone() -> None:
    def last(stride: int) -> Tensor:
        return data(8, 56, 56, 32).permute(0, 3, 1, 2).max_pool2d((3, 3), stride).permute(0, 2, 3, 1)

    assert "separate-windows" in changes(lambda: last(1).contiguous(), CPU)
    assert "separate-windows" not in changes(lambda: last(2).contiguous(), CPU)


@pytest.mark.parametrize("shape", [(8, 16, 80, 80), (1, 64, 112, 112)])
def test_rows_of_parts_stay_in_the_first_cache(shape: tuple[int, ...]) -> None:
    sink = normalize(UOp.sink(data(*shape).max_pool2d((3, 3), 2, padding=1).uop.base)).sink
    plan, context = schedule_graph(sink, CPU, True)
    (kernel,) = list(steps(plan.calls, context))[-1].calls
    assert sum(n.op is Ops.STAGE for n in kernel.ast.toposort()) == 1
