"""The Program of a captured function, and the memory that it takes."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from polygrad import Device, Tensor, TinyJit, nn
from polygrad.capture.captured_program import CapturedProgram
from polygrad.runtime.buffer import Allocation
from polygrad.runtime.program import Program
from polygrad.tensor.core.registry import live_tensors
from polygrad.uop.intern import collect, node_count
from polygrad.wasm.reader import read_module

# --- the Program


def training(device):
    """A captured training step of a small network, and its arguments."""
    model = [nn.Linear(6, 5), nn.Linear(5, 3)]
    opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)

    @TinyJit
    def step(x, y):
        with Tensor.train():
            opt.zero_grad()
            loss = model[1](model[0](x).relu().dropout(0.2)).cross_entropy(y)
            loss.backward()
            opt.step()
        return loss

    rng = np.random.default_rng(0)
    x, y = Tensor(rng.random((4, 6), np.float32)), Tensor(np.array([0, 1, 2, 1], np.int32))
    return step, x, y, model


def test_the_program_is_plain_data_with_roles_and_a_planned_arena(device):
    step, x, y, _ = training(device)
    for _ in range(3):
        step(x, y)
    program = step.program
    assert Program.from_bytes(program.to_bytes()) == program
    roles = [b.role for b in program.buffers]
    assert roles[:3] == ["input", "input", "output"] and set(roles) == {
        "input", "output", "param", "state", "scratch"
    }  # fmt: skip
    captured = step._current.step.captured
    assert isinstance(captured, CapturedProgram) and 0 < captured.arena_lower_bound <= program.arena
    scratch = [b for b in program.buffers if b.role == "scratch"]
    assert all(0 <= b.offset < program.arena for b in scratch)
    assert all(b.offset == -1 for b in program.buffers if b.role != "scratch")


def test_on_wasm_it_is_one_module():
    old, Device.DEFAULT = Device.DEFAULT, "WASM"
    try:
        step, x, y, _ = training("WASM")
        for _ in range(3):
            step(x, y)
        program = step.program
        assert all(kernel.code == b"" for kernel in program.kernels)
        module = read_module(program.driver)
        assert [e.name for e in module.exports] == ["run"]
        assert len(module.functions) == len(program.kernels) + 1
    finally:
        Device.DEFAULT = old


def test_training_is_bit_identical_to_eager_calls(device):
    def play(captured):
        Tensor.manual_seed(5)
        step, x, y, model = training(device)
        if not captured:
            step = step._function
        losses = [step(x, y).item() for _ in range(6)]
        return losses, [p.tolist() for p in nn.state.get_parameters(model)]

    assert play(True) == play(False)


# --- memory


def census():
    gc.collect()
    collect()
    gc.collect()
    return Allocation.allocated_bytes, len(live_tensors()), node_count()


def replay(device, n):
    step, x, y, _ = training(device)
    inputs = [(Tensor(x.numpy()), y) for _ in range(2)]
    for i in range(4):
        step(*inputs[i & 1])
    before = census()
    for i in range(n):
        loss = step(*inputs[i & 1])
        if i % 16 == 0:
            loss.item()
    del loss
    return before, census()


def test_replays_allocate_nothing(device):
    before, after = replay(device, 40 if device == "INTERP" else 300)
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_a_hundred_thousand_replays_allocate_nothing(device):
    Device.DEFAULT = device
    before, after = replay(device, 100_000)
    assert after == before


def test_a_dropped_capture_gives_its_memory_back(device):
    def make():
        step, x, y, _ = training(device)
        for _ in range(3):
            step(x, y)

    make()
    before = census()
    for _ in range(3):
        make()
    after = census()
    assert after[:2] == before[:2]
