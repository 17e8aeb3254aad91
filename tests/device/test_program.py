"""Programs as data: written to bytes, read back and run; and scratch memory that is shared without being
mixed up."""

from __future__ import annotations

import pytest
from plain import assert_same

from polygrad import Tensor
from polygrad.engine import programs as engine
from polygrad.engine.compile import compile_graph
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.engine.stats import stats
from polygrad.errors import ProgramError
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.program import Program
from polygrad.uop.node import UOp


def compiled(*tensors):
    """The Program of some tensors, its result buffers' numbers, the BUFFERs of its slots and what Variables
    are bound to."""
    normal = normalize(UOp.sink(*(t.uop.base for t in tensors)))
    made = compile_graph(normal.sink, tensors[0].device, len(normal.buffers))
    return made.program, made.outputs, normal.buffers, normal.variables


def run(program, slots, outputs, variables):
    runtime = Device[program.device]
    executable = runtime.load(program)
    buffers = [s.arg for s in slots] + [None] * (len(program.buffers) - len(slots))
    for i in outputs:
        spec = program.buffers[i]
        if spec.role == "output":
            buffers[i] = Buffer(
                runtime, spec.size, getattr(__import__("polygrad.dtype").dtype.dtypes, spec.dtype)
            )
    arena = Allocation(runtime, program.arena) if program.arena else None
    handles = [None if b is None else b.handle for b in buffers]
    executable.run(handles, arena.handle if arena else None, variables)
    return [
        buffers[i]
        .read()
        .cast(getattr(__import__("polygrad.dtype").dtype.dtypes, program.buffers[i].dtype).fmt)
        .tolist()
        for i in outputs
    ]


def network(device):
    x = Tensor([float(i % 7) - 3 for i in range(30)], device=device).reshape(5, 6)
    h = (x @ x.T).relu()
    return (h - h.mean(1, keepdim=True)).softmax().sum(0), h.max()


def test_bytes_and_back_and_run(device):
    program, outputs, slots, variables = compiled(*network(device))
    data = program.to_bytes()
    assert data == program.to_bytes()
    again = Program.from_bytes(data)
    assert again == program
    direct = [t.reshape(-1).tolist() for t in network(device)]
    assert_same(run(again, slots, outputs, variables), direct)
    assert_same(run(again, slots, outputs, variables), direct, "twice")


def test_a_program_names_its_device_and_target(device):
    program, *_ = compiled(*network(device))
    assert program.device == device
    assert program.target == Device.backend(device).target.key
    assert {b.role for b in program.buffers} == {"input", "output", "scratch"}


def test_a_program_of_another_device_is_refused(device):
    program, *_ = compiled(*network(device))
    other = "INTERP" if device != "INTERP" else "WASM"
    with pytest.raises(ProgramError):
        Device[other].load(program)
    assert network(device)[1].item() > 0


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d + b"x", lambda d: b"NO" + d[2:], lambda d: d[:40], lambda d: b""]
)
def test_damaged_bytes_are_refused(device, damage):
    program, *_ = compiled(*network(device))
    with pytest.raises(ProgramError):
        Program.from_bytes(damage(program.to_bytes()))


def test_scratch_that_is_alive_together_lies_apart(device):
    x = Tensor([float(i) for i in range(64)], device=device).reshape(8, 8)
    h = x
    for _ in range(6):
        h = (h @ x).softmax() @ x + h
    program, *_ = compiled(h.sum())
    scratch = [(i, b) for i, b in enumerate(program.buffers) if b.role == "scratch"]
    assert len(scratch) > 6
    alive = {i: [] for i, _ in scratch}
    for at, launch in enumerate(program.launches):
        for binding in launch.bindings:
            if binding.buffer in alive:
                alive[binding.buffer].append(at)
    for i, a in scratch:
        assert a.offset % 64 == 0 and a.offset + 4 * a.size <= program.arena
        for j, b in scratch:
            together = max(alive[i][0], alive[j][0]) <= min(alive[i][-1], alive[j][-1])
            apart = a.offset + 4 * a.size <= b.offset or b.offset + 4 * b.size <= a.offset
            assert i == j or apart or not together
    assert program.arena < sum(4 * b.size for _, b in scratch)


def test_scratch_is_used_again_by_the_next_program(device):
    network(device)[0].realize()
    engine.clear_caches()
    before = network(device)[0].tolist()
    stats.reset()
    for _ in range(3):
        assert network(device)[0].tolist() == before
    assert stats.programs == 0
