"""Device CPU: its memory, its linker, and launches."""

from __future__ import annotations

import ctypes
import gc
import os

import numpy as np
import pytest

from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.errors import CompileError, OutOfMemoryError, ProgramError
from polygrad.renderer.builder import Address
from polygrad.renderer.llvm.builder import LLVMBuilder
from polygrad.renderer.llvm.compile import compile_ir
from polygrad.runtime.cpu.device import CPURuntime
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable
from polygrad.uop.ops import Ops

COUNT = 16


@pytest.fixture
def runtime() -> CPURuntime:
    return CPURuntime()


def add_kernel(name: str = "add", constant: int = 1, scaled: bool = False) -> Kernel:
    """out[i] = in[i] + constant (times the variable `n`, if `scaled`), of int64."""
    b, i64 = LLVMBuilder(Target("CPU")), dtypes.int64
    (out, source), variables = b.begin(name, [i64, i64], ["n"] if scaled else [])
    addend = b.const(i64, constant, 1)
    if scaled:
        addend = b.alu(Ops.MUL, i64, [addend, variables[0]], 1)
    i = b.loop(b.const(dtypes.index, COUNT, 1))
    b.store(Address(out, i), b.alu(Ops.ADD, i64, [b.load(Address(source, i), i64, 1), addend], 1), i64, 1)
    b.end_loop()
    return Kernel(name, compile_ir(b.finish()), 2, ("n",) if scaled else (), language="object", writes=(0,))


def launch(kernel: int, *bindings: int | tuple[int, int]) -> Launch:
    return Launch(kernel, tuple(Binding(*((b,) if isinstance(b, int) else b)) for b in bindings))


def program(
    kernels: tuple[Kernel, ...],
    launches: tuple[Launch, ...],
    *roles: str,
    scratch: int = 0,
    target: str = "t",
) -> Program:
    """Buffers of COUNT int64 with these roles, then `scratch` of them in the arena."""
    buffers = tuple(BufferSpec(COUNT, "int64", role) for role in roles)
    buffers += tuple(BufferSpec(COUNT, "int64", "scratch", 8 * COUNT * i) for i in range(scratch))
    variables = (Variable("n", 0, 100),) if any(k.variables for k in kernels) else ()
    return Program("CPU", target, buffers, kernels, launches, variables, 8 * COUNT * scratch)


def put(runtime: CPURuntime, values: np.ndarray) -> int:
    handle = runtime.allocate(values.nbytes)
    runtime.write(handle, 0, memoryview(values).cast("B"))
    return handle


def take(runtime: CPURuntime, handle: int) -> list[int]:
    return np.frombuffer(runtime.read(handle, 0, 8 * COUNT), np.int64).tolist()


# --- memory


@pytest.mark.parametrize("nbytes", [1, 63, 64, 65, 1000, 4096, 100_000, 1 << 20, (4 << 20) + 1, 9 << 20])
def test_allocations_are_aligned_guarded_and_hold_what_is_written(runtime: CPURuntime, nbytes: int) -> None:
    handle = runtime.allocate(nbytes)
    assert handle % 64 == 0
    assert len(ctypes.string_at(handle - 64, nbytes + 128)) == nbytes + 128
    data = os.urandom(nbytes)
    runtime.write(handle, 0, memoryview(data))
    assert runtime.read(handle, 0, nbytes) == data
    view = runtime.read(handle, 0, nbytes)
    assert not view.readonly and view.format == "B" and view.ndim == 1
    view[0] ^= 255
    assert runtime.read(handle, 0, nbytes) == data, "a read is a copy"
    runtime.free(handle)


def test_writes_and_reads_take_an_offset(runtime: CPURuntime) -> None:
    handle = runtime.allocate(10)
    runtime.write(handle, 0, memoryview(b"0123456789"))
    runtime.write(handle, 3, memoryview(bytearray(b"abc")))
    runtime.write(handle, 10, memoryview(b""))
    assert bytes(runtime.read(handle, 2, 5)) == b"2abc6"
    assert bytes(runtime.read(handle, 10, 0)) == b""


def test_live_allocations_do_not_overlap(runtime: CPURuntime) -> None:
    rng = np.random.default_rng(0)
    live: dict[int, bytes] = {}
    for _ in range(500):
        if live and rng.random() < 0.45:
            handle = list(live)[int(rng.integers(len(live)))]
            data = live.pop(handle)
            assert runtime.read(handle, 0, len(data)) == data
            runtime.free(handle)
        else:
            data = os.urandom(int(rng.integers(1, 5000)))
            handle = runtime.allocate(len(data))
            runtime.write(handle, 0, memoryview(data))
            live[handle] = data
    assert all(runtime.read(handle, 0, len(data)) == data for handle, data in live.items())


def test_freed_memory_is_used_again(runtime: CPURuntime) -> None:
    handle = runtime.allocate(5 << 20)
    runtime.free(handle)
    assert runtime.allocate(5 << 20) == handle


def test_freed_memory_beyond_the_limit_goes_back(runtime: CPURuntime) -> None:
    heap = runtime._heap
    heap.limit = 10 << 20
    handles = [runtime.allocate(1 << 20) for _ in range(30)]
    for handle in handles:
        runtime.free(handle)
    assert 0 < heap.kept_bytes <= heap.limit
    assert heap.kept_bytes == sum(size * len(blocks) for size, blocks in heap.kept.items())
    runtime.free(runtime.allocate(20 << 20))
    assert heap.kept_bytes <= heap.limit, "a block beyond the limit is never kept"


def test_a_large_read_lives_as_long_as_its_views(runtime: CPURuntime) -> None:
    data = os.urandom(2 << 20)
    handle = runtime.allocate(len(data))
    runtime.write(handle, 0, memoryview(data))
    live = len(runtime._heap.live)
    array = np.frombuffer(runtime.read(handle, 0, len(data)), np.uint8)
    runtime.free(handle)
    runtime.write(runtime.allocate(len(data)), 0, memoryview(bytes(len(data))))
    assert array.tobytes() == data
    del array
    gc.collect()
    assert len(runtime._heap.live) == live


@pytest.mark.parametrize("nbytes", [1 << 46, 1 << 62, 1 << 63, 1 << 70])
def test_more_memory_than_there_is_raises_and_the_next_call_works(runtime: CPURuntime, nbytes: int) -> None:
    with pytest.raises(OutOfMemoryError, match=f"{nbytes} bytes"):
        runtime.allocate(nbytes)
    assert runtime._heap.live == {}
    runtime.free(runtime.allocate(100))


# --- programs


def test_launches_run_in_order_with_scratch_in_the_arena(runtime: CPURuntime) -> None:
    kernels = (add_kernel("one", 1), add_kernel("ten", 10))
    launches = (launch(0, 2, 1), launch(1, 3, 2), launch(1, 0, 3), launch(0, 0, 0))
    executable = runtime.load(program(kernels, launches, "output", "input", scratch=2))
    source, out, arena = np.arange(COUNT), runtime.allocate(8 * COUNT), runtime.allocate(16 * COUNT)
    executable.run([out, put(runtime, source), None, None], arena, {})
    assert take(runtime, out) == (source + 22).tolist()


def test_a_run_takes_new_buffers_arena_and_variables(runtime: CPURuntime) -> None:
    kernels = (add_kernel("scaled", 3, scaled=True),)
    executable = runtime.load(
        program(kernels, (launch(0, 2, 1), launch(0, 0, 2)), "output", "input", scratch=1)
    )
    handles = [put(runtime, np.arange(COUNT) + 100 * i) for i in range(4)]
    arenas = [runtime.allocate(8 * COUNT) for _ in range(2)]
    for out, source, arena, n in [(0, 1, 0, 5), (0, 1, 1, 6), (2, 1, 1, 6), (2, 3, 0, 0), (0, 1, 0, 5)]:
        executable.run([handles[out], handles[source], None], arenas[arena], {"n": n, "unused": 1})
        assert take(runtime, handles[out]) == [i + 100 * source + 6 * n for i in range(COUNT)]


def test_a_binding_has_a_byte_offset(runtime: CPURuntime) -> None:
    executable = runtime.load(program((add_kernel(),), (launch(0, 0, (1, 32)),), "output", "input"))
    source, out = put(runtime, np.arange(2 * COUNT)), runtime.allocate(8 * COUNT)
    executable.run([out, source], None, {})
    assert take(runtime, out) == list(range(5, 5 + COUNT))


def test_kernels_of_one_name_are_told_apart_and_equal_ones_linked_once(runtime: CPURuntime) -> None:
    first, second = add_kernel("same", 1), add_kernel("same", 2)
    executables = [
        runtime.load(program((kernel,), (launch(0, 0, 0),), "state"))
        for kernel in (
            first,
            second,
            Kernel("same", bytes(bytearray(first.code)), 2, language="object", writes=(0,)),
        )
    ]
    handle = put(runtime, np.zeros(COUNT, np.int64))
    for executable in executables:
        executable.run([handle], None, {})
    assert take(runtime, handle) == [4] * COUNT
    assert runtime._linker.count == 2


def test_an_executable_keeps_its_code_when_the_linker_forgets_it(runtime: CPURuntime) -> None:
    executable = runtime.load(program((add_kernel(),), (launch(0, 0, 0),), "state"))
    runtime._linker.linked.clear()
    gc.collect()
    handle = put(runtime, np.zeros(COUNT, np.int64))
    executable.run([handle], None, {})
    assert take(runtime, handle) == [1] * COUNT


def test_a_program_without_launches_runs(runtime: CPURuntime) -> None:
    runtime.load(Program("CPU", "t", (), (), ())).run([], None, {})


# --- errors, after which the next run works


def test_bindings_that_do_not_fit_are_program_errors(runtime: CPURuntime) -> None:
    executable = runtime.load(program((add_kernel(),), (launch(0, 1, 0),), "state", scratch=1))
    handle, arena = put(runtime, np.zeros(COUNT, np.int64)), runtime.allocate(8 * COUNT)
    for buffers, given, message in [
        ([handle], arena, "2 buffers, got 1"),
        ([None, None], arena, "no memory for buffer 0"),
        ([None, None], None, "no memory for"),
        ([handle, None], None, "no memory for the arena"),
    ]:
        with pytest.raises(ProgramError, match=message):
            executable.run(buffers, given, {})
    executable.run([handle, None], arena, {})
    with pytest.raises(ProgramError, match="buffer 0"):
        executable.run([None, None], arena, {})
    executable.run([handle, None], arena, {})
    assert take(runtime, arena) == [1] * COUNT


def test_a_missing_variable_is_a_program_error(runtime: CPURuntime) -> None:
    executable = runtime.load(program((add_kernel(scaled=True),), (launch(0, 0, 0),), "state"))
    handle = put(runtime, np.zeros(COUNT, np.int64))
    with pytest.raises(ProgramError, match="variable 'n'"):
        executable.run([handle], None, {"m": 1})
    executable.run([handle], None, {"n": 7})
    assert take(runtime, handle) == [7] * COUNT


def test_programs_for_another_device_or_machine_are_refused() -> None:
    kernel = add_kernel()
    with pytest.raises(ProgramError, match="for WASM"):
        CPURuntime().load(Program("WASM", "t", (), (), ()))
    runtime = CPURuntime("this machine")
    with pytest.raises(ProgramError, match="a Program for another"):
        runtime.load(program((kernel,), (), target="another"))
    with pytest.raises(ProgramError, match="expected 2 bindings, got 1"):
        runtime.load(program((kernel,), (launch(0, 0),), "state", target="this machine"))
    runtime.load(program((kernel,), (launch(0, 0, 0),), "state", target="this machine"))


@pytest.mark.parametrize("code", [b"", b"not an object file", add_kernel("other").code])
def test_code_that_cannot_be_linked_is_a_compile_error(
    runtime: CPURuntime, code: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CompileError, match="kernel add: the object file does not link"):
        runtime.load(
            program((Kernel("add", code, 2, language="object", writes=(0,)),), (launch(0, 0, 0),), "state")
        )
    runtime.load(program((add_kernel(),), (launch(0, 0, 0),), "state"))
