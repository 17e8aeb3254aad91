"""Barriers against a model: memory is bytes, and threads run their launches in every order that they may."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad import Device, Tensor, TinyJit
from polygrad.engine.barriers import place_barriers
from polygrad.engine.compile import compile_graph
from polygrad.engine.normalize import normalize
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.uop.node import UOp

ARENA = 12


def kernel(number: int, n_buffers: int, writes: tuple[int, ...], parallel: bool) -> Kernel:
    variables = ("thread", "threads") if parallel else ()
    return Kernel(f"k{number}", b"", n_buffers, variables, language="wasm", writes=writes, parallel=parallel)


def program_of(
    *launches: tuple[bool, str, str], scratch: dict[str, tuple[int, int]] | None = None
) -> Program:
    """Launches as (parallel, what it writes, what it reads), each buffer a letter; `scratch` lies at (offset,
    size) of the arena."""
    places = scratch or {}
    names = sorted({name for _, written, read in launches for name in written + read} | set(places))
    buffers = [
        BufferSpec(places[n][1], "uint8", "scratch", places[n][0])
        if n in places
        else BufferSpec(1, "uint8", "state")
        for n in names
    ]
    kernels, calls = [], []
    for i, (parallel, written, read) in enumerate(launches):
        pointers = written + read
        kernels.append(kernel(i, len(pointers), tuple(range(len(written))), parallel))
        calls.append(Launch(i, tuple(Binding(names.index(n)) for n in pointers)))
    return Program("WASM", "t", tuple(buffers), tuple(kernels), tuple(calls), arena=ARENA, threads=3)


def barriers(program: Program, memory: list[int] | None = None) -> list[int]:
    return [i for i, x in enumerate(place_barriers(program, memory).launches) if x.barrier]


# --- the model


def touched(program: Program, memory: list[int], launch: Launch) -> tuple[set[object], set[object]]:
    """The bytes that a launch uses, and those of them that it writes."""
    places: list[set[object]] = []
    for binding in launch.bindings:
        spec = program.buffers[binding.buffer]
        scratch = spec.role == "scratch"
        places.append(
            {("arena", spec.offset + i) for i in range(spec.size)} if scratch else {memory[binding.buffer]}
        )
    written = [places[i] for i in program.kernels[launch.kernel].writes]
    return set().union(*places), set().union(*written)


def conflicts(program: Program, memory: list[int]) -> list[tuple[int, int]]:
    found = []
    for (i, a), (j, b) in itertools.combinations(enumerate(program.launches), 2):
        used_a, written_a = touched(program, memory, a)
        used_b, written_b = touched(program, memory, b)
        serial = not (program.kernels[a.kernel].parallel or program.kernels[b.kernel].parallel)
        if not serial and (written_a & used_b or written_b & used_a):
            found.append((i, j))
    return found


def separates(placed: list[int], pairs: list[tuple[int, int]]) -> bool:
    return all(any(i < p <= j for p in placed) for i, j in pairs)


@st.composite
def programs(draw):
    """A random Program, and which of its buffers are the same memory."""
    n_bound, n_scratch = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    buffers = [BufferSpec(1, "uint8", "state")] * n_bound
    for _ in range(n_scratch):
        offset = draw(st.integers(0, ARENA - 1))
        size = draw(st.integers(0, ARENA - offset))
        buffers.append(BufferSpec(size, "uint8", "scratch", offset))
    memory = draw(st.lists(st.integers(0, n_bound), min_size=len(buffers), max_size=len(buffers)))
    kernels, launches = [], []
    for i in range(draw(st.integers(1, 8))):
        used = draw(st.lists(st.integers(0, len(buffers) - 1), min_size=1, max_size=3))
        writes = draw(st.sets(st.integers(0, len(used) - 1), min_size=1))
        kernels.append(kernel(i, len(used), tuple(sorted(writes)), draw(st.booleans())))
        launches.append(Launch(i, tuple(Binding(b) for b in used), barrier=draw(st.booleans())))
    program = Program("WASM", "t", tuple(buffers), tuple(kernels), tuple(launches), arena=ARENA, threads=3)
    return program, memory


@given(programs())
def test_conflicts_are_separated_and_no_barrier_is_superfluous(drawn):
    program, memory = drawn
    placed, pairs = barriers(program, memory), conflicts(program, memory)
    assert separates(placed, pairs)
    for barrier in placed:
        assert not separates([p for p in placed if p != barrier], pairs)


@given(programs())
def test_no_placement_has_fewer_barriers(drawn):
    program, memory = drawn
    pairs = conflicts(program, memory)
    n = len(program.launches)
    fewest = next(
        k for k in range(n) if any(separates(list(p), pairs) for p in itertools.combinations(range(1, n), k))
    )
    assert len(barriers(program, memory)) == fewest


def run_in_threads(program: Program, memory: list[int], threads: int, choose: random.Random) -> dict:
    """What is in memory after a run whose threads take turns at random. A launch reads all that it uses, then
    writes: in each written pointer its share of the bytes, which nobody else writes."""
    values: dict[object, int] = {}
    groups: list[list[int]] = [[]]
    for i, launch in enumerate(program.launches):
        if launch.barrier:
            groups.append([])
        groups[-1].append(i)
    for group in groups:
        queues: list[list[tuple[int, int]]] = [[] for _ in range(threads)]
        for i in group:
            for thread in range(threads if program.kernels[program.launches[i].kernel].parallel else 1):
                queues[thread] += [(i, 0), (i, 1)]
        sums: dict[tuple[int, int], int] = {}
        while any(queues):
            thread = choose.choice([t for t, queue in enumerate(queues) if queue])
            i, stage = queues[thread].pop(0)
            launch = program.launches[i]
            used, written = touched(program, memory, launch)
            if stage == 0:  # what it writes is not among its operands: shares of one launch are independent
                sums[i, thread] = sum(values.get(place, 0) for place in used - written)
                continue
            shares = threads if program.kernels[launch.kernel].parallel else 1
            for position, place in enumerate(sorted(written, key=str)):
                if position % shares == thread:
                    values[place] = 3 * values.get(place, 0) + sums[i, thread] + i + 1
    return values


@given(programs(), st.integers(0, 1 << 30))
def test_every_order_that_threads_may_take_gives_the_result_of_one_thread(drawn, seed):
    program, memory = drawn
    placed = place_barriers(program, memory)
    expected = run_in_threads(placed, memory, 1, random.Random(seed))
    for i in range(3):
        assert run_in_threads(placed, memory, 3, random.Random(seed + i)) == expected


def test_the_model_sees_a_missing_barrier():
    program = program_of((True, "a", "x"), (True, "b", "a"), scratch={"a": (0, 4), "b": (4, 4)})
    memory = list(range(3))
    expected = run_in_threads(program, memory, 1, random.Random(0))
    results = [run_in_threads(program, memory, 3, random.Random(i)) for i in range(50)]
    assert not separates([], conflicts(program, memory))
    assert any(r != expected for r in results)


# --- the rule, case by case


@pytest.mark.parametrize(
    ("launches", "expected"),
    [
        ([(True, "a", "x"), (True, "b", "a")], [1]),  # read after write
        ([(True, "b", "a"), (True, "a", "x")], [1]),  # write after read
        ([(True, "a", "x"), (True, "a", "y")], [1]),  # write after write
        ([(True, "a", "x"), (True, "b", "x")], []),  # both read
        ([(False, "a", "x"), (False, "b", "a")], []),  # thread 0 runs both, in order
        ([(False, "a", "x"), (True, "b", "a")], [1]),
        ([(True, "a", "x"), (False, "b", "a")], [1]),
        ([(True, "a", "x"), (False, "b", "x"), (True, "c", "b")], [2]),
        ([(True, "a", "x"), (False, "b", "a"), (False, "c", "b"), (True, "d", "c")], [1, 3]),
        ([(True, "a", ""), (True, "b", ""), (True, "c", "ab")], [2]),  # one barrier for two conflicts
    ],
)
def test_where_barriers_are(launches, expected):
    assert barriers(program_of(*launches)) == expected


def test_scratch_conflicts_where_its_bytes_overlap():
    launches = ((True, "a", "x"), (True, "b", "x"))
    assert barriers(program_of(*launches, scratch={"a": (0, 4), "b": (3, 4)})) == [1]
    assert barriers(program_of(*launches, scratch={"a": (0, 4), "b": (4, 4)})) == []
    assert barriers(program_of(*launches, scratch={"a": (4, 0), "b": (2, 4)})) == []


def test_buffers_that_share_memory_conflict():
    program = program_of((True, "a", "x"), (True, "b", "x"))
    assert barriers(program, [0, 1, 2]) == []
    assert barriers(program, [7, 7, 2]) == [1]


# --- real Programs


def training_step():
    w, m = (Tensor.rand(300, 200).contiguous().realize() for _ in range(2))

    def step(x):
        loss = ((x @ w).relu().softmax(-1) ** 2).mean()
        (gradient,) = loss.gradient(w)
        m.assign(m * 0.9 + gradient)
        w.assign(w - 0.1 * m)
        return loss.realize()

    captured = TinyJit(step)
    for _ in range(2):
        captured(Tensor.rand(256, 300).contiguous().realize())
    return captured.program


def test_a_captured_training_step_has_the_barriers_it_needs(monkeypatch):
    monkeypatch.setattr(Device, "_default", "CPU")
    program = training_step()
    memory = list(range(len(program.buffers)))
    pairs = conflicts(program, memory)
    placed = [i for i, launch in enumerate(program.launches) if launch.barrier]
    assert program.threads > 1 and placed and pairs
    assert separates(placed, pairs)
    for barrier in placed:
        assert not separates([p for p in placed if p != barrier], pairs)


def test_a_program_without_parallel_kernels_has_neither_barriers_nor_threads(monkeypatch):
    monkeypatch.setattr(Device, "_default", "CPU")
    x = Tensor.rand(8, 8).realize()
    sink = normalize(UOp.sink((x @ x).softmax(-1).uop.base)).sink
    program = compile_graph(sink, "CPU", 1).program
    assert program.threads == 1 and not any(launch.barrier for launch in program.launches)
    assert place_barriers(replace(program, launches=program.launches)) == program


BODIES = {
    "a sum": lambda x, i: x.sum(1),
    "rows": lambda x, i: (x.exp2() / x.exp2().sum(1, keepdim=True)) @ x,
    "a gather": lambda x, i: x[i],
    "in place": lambda x, i: x.assign(x + 1),
    "a prefix": lambda x, i: x[:2].assign(x[2:4] * 2),
}


@pytest.mark.parametrize("name", BODIES)
def test_kernels_say_which_buffers_they_write(name):
    """Every launch alone, on INTERP: what changes is what its kernel says, and something does."""
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8) / 64, device="INTERP").realize()
    i = Tensor([3, 1], dtype="int32", device="INTERP").realize()
    runtime = Device["INTERP"]
    normal = normalize(UOp.sink(BODIES[name](x, i).uop.base))
    program = compile_graph(normal.sink, "INTERP", len(normal.buffers)).program
    memory = [bytearray(len(b.arg.read())) for b in normal.buffers]
    for target, source in zip(memory, normal.buffers, strict=True):
        target[:] = source.arg.read()
    handles: list = [*memory, *(None for _ in program.buffers[len(memory) :])]
    for n, spec in enumerate(program.buffers):
        if handles[n] is None and spec.role != "scratch":
            handles[n] = runtime.allocate(4 * max(spec.size, 1))
    arena = runtime.allocate(program.arena) if program.arena else None

    def contents(binding: Binding) -> bytes:
        spec = program.buffers[binding.buffer]
        start = spec.offset if spec.role == "scratch" else 0
        return bytes(
            (arena if spec.role == "scratch" else handles[binding.buffer])[start : start + 4 * spec.size]
        )

    for launch in program.launches:
        before = [contents(b) for b in launch.bindings]
        runtime.load(replace(program, launches=(launch,))).run(handles, arena, {})
        changed = {p for p, b in enumerate(launch.bindings) if contents(b) != before[p]}
        assert changed and changed <= set(program.kernels[launch.kernel].writes)


def test_memory_that_two_tensors_share_since_the_capture_is_used_in_order(monkeypatch):
    monkeypatch.setattr(Device, "_default", "CPU")
    size = 1 << 18
    w, b = Tensor.zeros(size).contiguous().realize(), Tensor.ones(size).contiguous().realize()

    def step(x):
        y = (b * 2 + x).contiguous().realize()
        w.assign(w + 1).realize()
        return y

    captured = TinyJit(step)
    x = Tensor.zeros(size).contiguous().realize()
    for _ in range(3):
        y = captured(x)
    assert (y.numpy() == 2).all() and (w.numpy() == 3).all()
    assert [launch.barrier for launch in captured.program.launches] == [False, False]
    b.replace(w)
    for i in range(3, 23):
        y = captured(x)
        assert (y.numpy() == 2 * i).all() and (w.numpy() == i + 1).all()
    assert [launch.barrier for launch in captured.program.launches] == [False, True]
