"""The WASM device over wasmtime, with kernels written by hand."""

from __future__ import annotations

import dataclasses
import platform
import sys
from pathlib import Path

import pytest

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is the WebAssembly engine of CPython")

from polygrad.errors import CompileError, InternalError, OutOfMemoryError, ProgramError  # noqa: E402
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable  # noqa: E402
from polygrad.runtime.wasm import wasmtime as wasmtime_host  # noqa: E402
from polygrad.runtime.wasm.device import WasmRuntime  # noqa: E402

IMPORT = '(import "env" "memory" (memory 1))'


def kernel(name: str, body: str, n_buffers: int = 2, variables: tuple[str, ...] = ()) -> Kernel:
    params = " ".join(["i32"] * (n_buffers + len(variables)))
    text = f'(module {IMPORT} (func (export "{name}") (param {params}) {body}))'
    return Kernel(
        name,
        bytes(wasmtime.wat2wasm(text)),
        n_buffers,
        variables,
        language="wasm",
        writes=tuple(range(min(n_buffers, 1))),
    )


# out[0] = in[0] + n
ADD = kernel("add", "(i32.store (local.get 0) (i32.add (i32.load (local.get 1)) (local.get 2)))", 2, ("n",))
# out[0] = in[0] * 2
DOUBLE = kernel("double", "(i32.store (local.get 0) (i32.shl (i32.load (local.get 1)) (i32.const 1)))")
TRAP = kernel("boom", "unreachable", 0)


def word(value: int) -> memoryview:
    return memoryview(value.to_bytes(4, "little"))


def chain() -> Program:
    """out = (in + n) * 2, the sum in scratch; the second element of each is used."""
    return Program(
        device="WASM",
        target="test",
        buffers=(
            BufferSpec(2, "int32", "input"),
            BufferSpec(1, "int32", "scratch", 64),
            BufferSpec(2, "int32", "output"),
        ),
        kernels=(ADD, DOUBLE),
        launches=(
            Launch(0, (Binding(1), Binding(0, 4))),
            Launch(1, (Binding(2, 4), Binding(1))),
        ),
        variables=(Variable("n", -10, 10),),
        arena=128,
    )


@pytest.fixture
def runtime() -> WasmRuntime:
    return WasmRuntime()


def test_bytes_come_back_and_are_a_copy(runtime: WasmRuntime) -> None:
    data = bytes(range(256)) * 1000
    handle = runtime.allocate(len(data))
    assert handle % 64 == 0
    runtime.write(handle, 0, memoryview(data))
    runtime.write(handle, 3, memoryview(b"xyz"))
    copy = runtime.read(handle, 0, len(data))
    assert bytes(copy) == data[:3] + b"xyz" + data[6:] and copy.format == "B" and not copy.readonly
    copy[0] = 99
    assert bytes(runtime.read(handle, 0, 4)) == b"\0\1\2x"
    runtime.free(handle)


def test_a_chain_of_launches_with_scratch_offsets_and_a_variable(runtime: WasmRuntime) -> None:
    executable = runtime.load(Program.from_bytes(chain().to_bytes()))
    source, out, arena = runtime.allocate(8), runtime.allocate(8), runtime.allocate(128)
    for value, n in ((5, 3), (5, -10), (1 << 20, 7)):
        runtime.write(source, 4, word(value))
        executable.run([source, None, out], arena, {"n": n})
        assert int.from_bytes(runtime.read(out, 4, 4), "little", signed=True) == (value + n) * 2


def test_data_survives_growth_and_loaded_programs_still_run(runtime: WasmRuntime) -> None:
    executable = runtime.load(chain())
    source, out, arena = runtime.allocate(8), runtime.allocate(8), runtime.allocate(128)
    runtime.write(source, 4, word(20))
    big = runtime.allocate(100 << 20)
    runtime.write(big, (100 << 20) - 1, memoryview(b"!"))
    executable.run([source, None, out], arena, {"n": 1})
    assert int.from_bytes(runtime.read(out, 4, 4), "little") == 42
    assert bytes(runtime.read(big, (100 << 20) - 1, 1)) == b"!"


def test_the_same_code_is_instantiated_once(runtime: WasmRuntime) -> None:
    a, b = runtime.load(chain()), runtime.load(Program.from_bytes(chain().to_bytes()))
    assert runtime.function("add", bytes(bytearray(ADD.code))) is runtime.function("add", ADD.code)
    assert len(runtime._functions) == 2
    del a, b


@pytest.mark.slow
@pytest.mark.alone
def test_a_process_may_load_more_kernels_than_wasmtime_allows_by_default(runtime: WasmRuntime) -> None:
    """A store of wasmtime's refuses the 10,001st instance, if it is not told otherwise."""
    for i in range(10_010):
        name = bytes(f"a{i:05}", "ascii")
        runtime.host.load(name.decode(), DOUBLE.code.replace(b"\6double", b"\6" + name))
    executable = runtime.load(chain())
    source, out, arena = runtime.allocate(8), runtime.allocate(8), runtime.allocate(128)
    runtime.write(source, 4, word(20))
    executable.run([source, None, out], arena, {"n": 1})
    assert int.from_bytes(runtime.read(out, 4, 4), "little") == 42


def test_out_of_memory_says_so_and_the_next_allocation_works() -> None:
    runtime = WasmRuntime(limit=1 << 20)
    handle = runtime.allocate(500_000)
    with pytest.raises(OutOfMemoryError, match="limit of 1048576"):
        runtime.allocate(600_000)
    runtime.free(handle)
    assert runtime.allocate(600_000)


def test_the_limit_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WASM_MEMORY_LIMIT", "200000")
    with pytest.raises(OutOfMemoryError):
        WasmRuntime().allocate(200_000)


def test_more_than_four_gigabytes_are_refused(runtime: WasmRuntime) -> None:
    with pytest.raises(OutOfMemoryError):
        runtime.allocate(5 << 30)
    assert runtime.allocate(64)


@pytest.mark.parametrize("code", [b"", b"not wasm", ADD.code[:-3]], ids=["empty", "text", "cut"])
def test_code_that_is_no_module_is_a_compile_error(runtime: WasmRuntime, code: bytes) -> None:
    with pytest.raises(CompileError, match="kernel add"):
        runtime.function("add", code)


def test_a_missing_export_and_a_wrong_signature_are_compile_errors(runtime: WasmRuntime) -> None:
    with pytest.raises(CompileError, match="kernel nothing"):
        runtime.function("nothing", ADD.code)
    wrong, buffer = Kernel("add", ADD.code, 2, language="wasm", writes=(0,)), BufferSpec(1, "int32", "input")
    with pytest.raises(CompileError, match="expected 2 parameters"):
        runtime.load(Program("WASM", "test", (buffer,), (wrong,), (Launch(0, (Binding(0),) * 2),)))


def test_a_trap_names_the_kernel_and_the_runtime_lives_on(runtime: WasmRuntime) -> None:
    executable = runtime.load(Program("WASM", "test", (), (TRAP,), (Launch(0, ()),)))
    for _ in range(2):
        with pytest.raises(InternalError, match="internal: kernel boom: trapped"):
            executable.run([], None, {})
    test_a_chain_of_launches_with_scratch_offsets_and_a_variable(runtime)


def test_a_program_for_another_device_is_refused(runtime: WasmRuntime) -> None:
    with pytest.raises(ProgramError, match="expected a Program for WASM, got one for CPU"):
        runtime.load(Program("CPU", "test", (), (), ()))


def test_bindings_that_do_not_fit_are_refused(runtime: WasmRuntime) -> None:
    executable = runtime.load(chain())
    handle = runtime.allocate(128)
    with pytest.raises(ProgramError, match="variable n from -10 to 10, got 11"):
        executable.run([handle, None, handle], handle, {"n": 11})
    with pytest.raises(ProgramError, match=r"variable n .* got None"):
        executable.run([handle, None, handle], handle, {})
    with pytest.raises(ProgramError, match="expected allocations"):
        executable.run([handle, None, None], handle, {"n": 1})
    short = Program(
        "WASM", "test", (BufferSpec(1, "int32", "input"),), (DOUBLE,), (Launch(0, (Binding(0),)),)
    )
    with pytest.raises(ProgramError, match="kernel double: expected 2 bindings, got 1"):
        runtime.load(short)


def test_a_launch_calls_no_python_function(runtime: WasmRuntime) -> None:
    program = chain()
    source, out, arena = runtime.allocate(8), runtime.allocate(8), runtime.allocate(128)

    def python_calls(times: int) -> int:
        """In a run of `times` as many launches, on the buffers of the run before."""
        executable = runtime.load(dataclasses.replace(program, launches=program.launches * times))
        executable.run([source, None, out], arena, {"n": 1})
        seen: list[str] = []
        sys.setprofile(lambda frame, event, arg: seen.append(event))
        try:
            executable.run([source, None, out], arena, {"n": 1})
        finally:
            sys.setprofile(None)
        return seen.count("call")

    assert 0 < python_calls(1) == python_calls(500)


def test_relaxed_simd_is_a_feature_where_its_multiply_add_rounds_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if sys.platform == "linux" and platform.machine() == "x86_64":
        is_fused = " fma " in Path("/proc/cpuinfo").read_text()
        assert ("relaxed-simd" in wasmtime_host.open_host().features) == is_fused
    sum_of_products = """
    (module (func (export "f") (result i32)
      (i32x4.extract_lane 0
        (f32x4.add
          (f32x4.mul (f32x4.splat (f32.const 0x1.001p0)) (f32x4.splat (f32.const 0x1.001p0)))
          (f32x4.splat (f32.const -0x1.002p0))))))
    """
    monkeypatch.setattr(wasmtime_host, "_MULTIPLY_ADD", sum_of_products)  # as on a processor without FMA
    assert wasmtime_host.open_host().features == {"simd", "relaxed-dot"}
