"""Models of somebody else: memory of their own, and runs that end when they are told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgrd.corpus import CHAIN

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is the WebAssembly engine of CPython")

from polygrad import Device, Tensor, TinyJit, compile_step, export, nn  # noqa: E402
from polygrad.dtype import dtypes  # noqa: E402
from polygrad.errors import (  # noqa: E402
    ArgumentError,
    CompileError,
    InternalError,
    InterruptedWriteError,
    OutOfMemoryError,
    RunTimeoutError,
)
from polygrad.export.files import memory_of  # noqa: E402
from polygrad.nn.safetensors import TensorEntry, write_entries  # noqa: E402
from polygrad.runtime.bundle import Bundle  # noqa: E402
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program  # noqa: E402

SHARED = '(import "env" "memory" (memory 1))'
# Functions that do not end. Each gets the address of the state.
ENDLESS = {
    "an empty loop": "(loop (br 0))",
    "a loop that counts": "(local i32) (loop (local.set 1 (i32.add (local.get 1) (i32.const 1))) (br 0))",
    "a loop that writes": "(loop (i32.store (local.get 0) (i32.const 7)) (br 0))",
    "a loop that clears the words of threads": "(loop (i64.store (i32.const 16) (i64.const 0)) (br 0))",
    "recursion": "(call $many (i32.const 60))",
    "a loop of fills": "(loop (memory.fill (i32.const 4096) (i32.const 1) (i32.const 60000)) (br 0))",
}
MANY = """(func $many (param i32)
  (if (local.get 0) (then
    (call $many (i32.sub (local.get 0) (i32.const 1)))
    (call $many (i32.sub (local.get 0) (i32.const 1))))))"""


def program(body: str, role: str = "state", size: int = 2) -> bytes:
    """A file with one kernel, which writes to `x`, two integers."""
    code = bytes(wasmtime.wat2wasm(f'(module {SHARED} {MANY} (func (export "f") (param i32) {body}))'))
    kernel = Kernel("f", code, 1, language="wasm", writes=(0,))
    buffer = BufferSpec(size, "int32", role, name="x", shape=(size,))
    values = write_entries({"x": TensorEntry(dtypes.int32, (size,), bytes(4 * size))})
    return Program("WASM", "test", (buffer,), (kernel,), (Launch(0, (Binding(0),)),)).to_bytes(
        values if role == "state" else b""
    )


@pytest.mark.parametrize("name", ENDLESS)
def test_a_run_without_end_ends_at_its_timeout(name: str) -> None:
    model = export.load(program(ENDLESS[name]))
    started = time.perf_counter()
    with pytest.raises(RunTimeoutError, match=r"run: expected an end within 0.1 seconds, got none"):
        model.run(timeout=0.1)
    assert time.perf_counter() - started < 2
    assert model.parameter("x").tolist() == [0, 0]  # small state is as it was before
    with pytest.raises(RunTimeoutError):
        model.run(timeout=0.01)


def test_after_a_timeout_the_model_goes_on() -> None:
    # ends if the state is not 0
    body = (
        "(loop (br_if 0 (i32.eqz (i32.load (local.get 0))))) (i32.store offset=4 (local.get 0) (i32.const 5))"
    )
    model = export.load(program(body))
    with pytest.raises(RunTimeoutError):
        model.run(timeout=0.05)
    model.set_parameter("x", np.int32([1, 0]))
    model.run(timeout=5)
    assert model.parameter("x").tolist() == [1, 5]
    model.run()
    assert float((Tensor([1.0, 2.0], device="WASM") + 1).sum().item()) == 5.0  # other kernels run


def test_a_timeout_holds_in_another_thread() -> None:
    model = export.load(program(ENDLESS["an empty loop"]))
    seen: list[object] = []

    def run() -> None:
        try:
            model.run(timeout=0.1)
        except RunTimeoutError as e:
            seen.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert len(seen) == 1 and not thread.is_alive()


def test_large_state_that_is_half_written_is_marked_until_it_is_written() -> None:
    size = 1 << 19
    body = "(loop (i32.store (local.get 0) (i32.const 7)) (br 0))"
    model = export.load(program(body, size=size))
    with pytest.raises(RunTimeoutError):
        model.run(timeout=0.1)
    for use in (lambda: model.parameter("x"), model.save, lambda: model.run(timeout=1)):
        with pytest.raises(InterruptedWriteError):
            use()
    model.set_parameter("x", np.ones(size, np.int32))
    assert model.parameter("x").tolist()[:2] == [1, 1]


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "1", True, 1e30])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(ArgumentError, match="timeout: expected a positive number of seconds"):
        export.load(program("(nop)")).run(timeout=timeout)


@pytest.mark.parametrize("device", ["CPU", "INTERP"])
def test_a_timeout_of_a_trusted_model(device: str, tmp_path: Path) -> None:
    jit = TinyJit(lambda x: x + 1)
    for _ in range(2):
        jit(Tensor([1.0], device=device).realize())
    jit.save(tmp_path / "m.pgrd")
    model = export.load(tmp_path / "m.pgrd", native=True)
    if device == "INTERP":
        with pytest.raises(ArgumentError, match="nothing can end a run on INTERP"):
            model.run(x=[1.0], timeout=1)
    else:
        assert model.run(x=[1.0], timeout=10)["output0"].tolist() == [2.0]


CTRL_C = """
import sys, time
from polygrad import export
model = export.load({path!r})
print("begins", flush=True)
try:
    model.run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(model.parameter("x").tolist(), flush=True)
"""


@pytest.mark.e2e
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for one child alone")
@pytest.mark.parametrize("name", ENDLESS)
def test_ctrl_c_comes_through_within_100_ms(name: str, tmp_path: Path) -> None:
    """The bound that is asserted is loose, for machines that do much else."""
    (tmp_path / "m.pgrd").write_bytes(program(ENDLESS[name]))
    source = CTRL_C.format(path=str(tmp_path / "m.pgrd"))
    child = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child:
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.5)
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        waited = time.perf_counter() - sent
        assert child.stdout.readline() == "[0, 0]\n"
    print(f"{name}: {1e3 * waited:.1f} ms")
    assert waited < 2 and child.returncode == 0


# --- memory


def test_a_model_has_memory_of_its_own() -> None:
    """A kernel that overwrites all memory that it reaches changes no Tensor, and no other model."""
    secret = Tensor(list(range(1000)), device="WASM", dtype="int32").realize()
    other = export.load(program("(nop)"))
    other.set_parameter("x", np.int32([3, 4]))
    rest = "(i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 64))"
    fill = f"(memory.fill (i32.const 64) (i32.const 255) {rest})"
    model = export.load(program(fill))
    model.run()
    assert model.parameter("x").tolist() == [-1, -1]
    assert secret.tolist() == list(range(1000))
    assert other.parameter("x").tolist() == [3, 4]


def test_what_a_kernel_reaches_outside_of_its_memory_is_an_error() -> None:
    model = export.load(program("(i32.store (i32.const -4) (i32.const 1))"))
    with pytest.raises(InternalError, match="kernel f: trapped"):
        model.run()


@pytest.mark.parametrize(
    "text",
    [
        f'(module {SHARED} (func $s (loop (br 0))) (start $s) (func (export "f") (param i32)))',
        '(module (memory (export "m") 1) (func (export "f") (param i32)))',
        f'(module {SHARED} (table 1 funcref) (func (export "f") (param i32)))',
        f'(module {SHARED} (import "polygrad" "stop" (memory 1)) (func (export "f") (param i32)))',
        f'(module {SHARED} (import "env" "g" (func)) (func (export "f") (param i32)))',
        '(module (import "env" "memory" (global i32)) (func (export "f") (param i32)))',
        f'(module {SHARED} (memory 1) (func (export "f") (param i32) (drop (i32.load 1 (i32.const 0)))))',
    ],
)
def test_a_module_with_more_than_functions_over_one_memory_is_refused(text: str) -> None:
    code = bytes(wasmtime.wat2wasm(text))
    kernel = Kernel("f", code, 1, language="wasm", writes=(0,))
    buffer = BufferSpec(2, "int32", "output", name="x", shape=(2,))
    model = export.load(Program("WASM", "t", (buffer,), (kernel,), (Launch(0, (Binding(0),)),)).to_bytes())
    with pytest.raises(CompileError):
        model.run(timeout=5)


def test_a_training_step_gives_the_same_bits_confined_and_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Device, "_default", "WASM")
    Tensor.manual_seed(0)
    layer = nn.Linear(8, 3)
    optimizer = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.1)
    x, y = Tensor.rand(4, 8).realize(), Tensor([0, 1, 2, 1])
    step = compile_step(lambda layer, x, y: layer(x).cross_entropy(y), layer, optimizer, x, y)
    step.save(tmp_path / "t.pgrd")
    models = [export.load(tmp_path / "t.pgrd", native=native) for native in (False, True)]
    for _ in range(5):
        losses = [bytes(m.run(x=x, y=y)["loss"].data().cast("B")) for m in models]
        assert losses[0] == losses[1]
    assert models[0].save() == models[1].save()


def test_a_model_of_more_bytes_than_are_allowed_is_refused_before_memory_is_taken() -> None:
    scale = write_entries({"scale": TensorEntry(dtypes.int32, (1,), b"\3\0\0\0")})
    assert memory_of({"step": CHAIN}) == 8 + 8 + 4 + 64  # x, y, scale, the arena
    assert memory_of({"a": CHAIN, "b": CHAIN}) == 2 * (8 + 8) + 4 + 64  # what they share counts once
    assert export.load(CHAIN.to_bytes(scale), max_bytes=84).run(x=[[1, 4]], n=3)["y"].tolist()[1] == 21
    with pytest.raises(OutOfMemoryError, match=r"^load: expected a model of up to 83 bytes, got one of 84$"):
        export.load(CHAIN.to_bytes(scale), max_bytes=83)
    large = replace(CHAIN, arena=1 << 40)
    with pytest.raises(OutOfMemoryError, match=r"^load: expected a model of up to 1048576 bytes"):
        export.load(large.to_bytes(scale), max_bytes=1 << 20)
    for kind, load in (
        ("text-generation", export.load_language_model),
        ("feature-extraction", export.load_text_encoder),
        ("text-classification", export.load_text_classifier),
    ):
        data = Bundle(kind, {}, ({"main": large},)).head([scale]) + scale
        with pytest.raises(OutOfMemoryError, match=f"^{load.__name__}: expected a model of up to 9 bytes"):
            load(data, max_bytes=9)
