"""Constant offsets apart from indices: parts of a buffer that have one kernel, and what they compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from adapter import WEBGPU

from polygrad import Tensor, TinyJit
from polygrad.codegen.kernels.separate_offsets import separate_offsets
from polygrad.engine.normalize import normalize
from polygrad.engine.stats import stats
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.schedules import schedule

ROWS, COLUMNS = 40, 16  # a row is 64 bytes
SHAPE = (ROWS, COLUMNS)
DEVICES = pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP", "CC", WEBGPU, "EMULATED_DRIVER"])


def kernels(*outputs: Tensor, alignment: int = 64) -> list[KernelCall]:
    sink = UOp.sink(*[t.uop for t in outputs])
    return separate_offsets(list(schedule(normalize(sink).sink, True).calls), alignment)


def matrix(seed: int = 0, device: str | None = None) -> tuple[Tensor, np.ndarray]:
    a = np.random.default_rng(seed).uniform(-1, 1, SHAPE).astype("float32")
    return Tensor(a, device=device).realize(), a


def offset_of(call: KernelCall, tensor: Tensor) -> int:
    """Where the kernel's view of a Tensor's memory begins."""
    (slot,) = (
        i for i, arg in enumerate(call.args) if arg.op is Ops.BUFFER and arg.arg.size == tensor.numel()
    )
    return call.offsets[slot] if call.offsets else 0


SAME: dict[str, Callable[[Tensor, int], Tensor]] = {
    "a row": lambda x, i: x[i] * 2,
    "a batch": lambda x, i: x[4 * i : 4 * i + 4] @ x[4 * i : 4 * i + 4].T,
    "a stencil": lambda x, i: x[i] + 2 * x[i + 1] - x[i + 3],
    "every second row": lambda x, i: x[i : i + 10 : 2].sum(0),
    "a part of a row": lambda x, i: x[i, 3:9].exp(),
    "a flipped batch": lambda x, i: x[i : i + 5].flip(0, 1) + 1,
    "padding": lambda x, i: x[i : i + 3].pad(((1, 2), (3, 0))),
}


@pytest.mark.parametrize("name", SAME)
def test_parts_of_a_buffer_have_one_kernel(name: str):
    x, _ = matrix()
    made = [kernels(SAME[name](x, i))[0] for i in range(6)]
    if name == "padding":  # the first would begin before the buffer
        made = made[2:]
    assert len({call.ast for call in made}) == 1
    step = offset_of(made[1], x) - offset_of(made[0], x)
    assert step == (256 if name == "a batch" else 64)
    assert [offset_of(call, x) - offset_of(made[0], x) for call in made] == [
        step * i for i in range(len(made))
    ]


@pytest.mark.parametrize("alignment", [64, 256])
def test_buffers_begin_at_multiples_of_the_alignment(alignment: int):
    x, _ = matrix()
    made = [kernels(x.flatten()[i] * 2, alignment=alignment)[0] for i in range(x.numel())]
    assert {offset_of(call, x) for call in made} == set(range(0, 4 * x.numel(), alignment))
    assert len({call.ast for call in made}) == alignment // 4


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.flip(0) * 2,  # reads from the end on
        lambda x: x[Tensor([39, 20], dtype="int32").realize()],  # at places that are not known
        lambda x: x.pad(((2, 0), (0, 0))) + 1,  # would read before the start
    ],
)
def test_what_may_be_read_from_the_start_on_stays(operation: Callable[[Tensor], Tensor]):
    x, _ = matrix()
    assert all(not any(call.offsets) for call in kernels(operation(x)))


@pytest.mark.usefixtures("cold_cache")
def test_batches_are_compiled_once():
    x, a = matrix(1)
    w, b = matrix(2)
    before = stats.kernels_compiled + stats.kernels_found
    for i in range(0, ROWS, 4):
        got = (x[i : i + 4].tanh() @ w.T).relu().numpy()
        np.testing.assert_allclose(got, np.maximum(np.tanh(a[i : i + 4]) @ b.T, 0), rtol=1e-5, atol=1e-5)
    made = stats.kernels_compiled + stats.kernels_found - before
    assert made <= 3


@DEVICES
@pytest.mark.parametrize("name", SAME)
def test_values_are_those_of_copies_by_the_bit(name: str, device: str):
    x, a = matrix(3, device)
    for i in (0, 1, 5):
        rows = x[i : i + 24].contiguous().realize()
        expected = (
            SAME[name](rows, 0) if name != "a batch" else SAME[name](x[4 * i :].contiguous().realize(), 0)
        )
        assert SAME[name](x, i).numpy().tobytes() == expected.numpy().tobytes()
    np.testing.assert_array_equal(x.numpy(), a)


@DEVICES
@pytest.mark.parametrize("dtype", ["float32", "uint8", "bool", "int64"])
def test_rows_are_written_and_no_others(dtype: str, device: str):
    a = np.random.default_rng(4).integers(0, 2, (ROWS, 64)).astype(dtype)
    x = Tensor(a, device=device).realize()
    for i in range(0, ROWS, 7):
        x[i] = (x[i - 1] if i else x[ROWS - 1]) != x[2]
        a[i] = a[i - 1] != a[2]
        x[i, 5:9].assign(x[i, 9:13])
        a[i, 5:9] = a[i, 9:13]
        np.testing.assert_array_equal(x.numpy(), a)


@DEVICES
def test_a_loop_of_rows_in_one_graph(device: str):
    x, a = matrix(5, device)
    h, expected = x[0], a[0]
    for i in range(1, ROWS):
        h, expected = (h * 0.5 + x[i]).contiguous(), expected * np.float32(0.5) + a[i]
    np.testing.assert_allclose(h.numpy(), expected, rtol=1e-6, atol=1e-6)


@DEVICES
def test_arguments_that_are_one_memory_at_different_places(device: str):
    (x, a), (y, b) = matrix(6, device), matrix(8, device)

    @TinyJit
    def step(first: Tensor, second: Tensor) -> Tensor:
        return (first[:8] * 2 + second[8:16]).realize()

    for _ in range(3):  # captured with two
        np.testing.assert_allclose(step(x, y).numpy(), a[:8] * 2 + b[8:16], rtol=1e-6)
    for _ in range(2):
        np.testing.assert_allclose(step(x, x).numpy(), a[:8] * 2 + a[8:16], rtol=1e-6)
