"""Exported models run by libpolygrad, compared in bits with `export.load`; states, errors, threads, and how
runs are ended."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_compiler import CC, SLOW_CC, needs_c_compiler
from c_library import (
    INPUT,
    OUTPUT,
    STATUS,
    STOPPABLE,
    TRUST_DIGESTS,
    TRUST_NATIVE,
    VALUE,
    Model,
    Options,
    PgError,
    api,
    call,
    wasmtime_library,
)
from c_library_models import (
    LOOPS,
    RNG,
    STORE,
    TRAPS,
    Convnet,
    Mlp,
    program_of,
    saved_function,
    saved_training,
    state,
)
from pgrd.corpus import CHAIN, SCALE

from polygrad import Device, Tensor, TinyJit, Variable, compile_step, export, nn
from polygrad.nn.state import safe_load, safe_save
from polygrad.runtime.bundle import Bundle

pytestmark = needs_c_compiler
DEVICES = pytest.mark.parametrize("device", ["WASM", "CPU", CC])
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="object files are run on Linux")


@pytest.fixture(autouse=True)
def default_device(request: pytest.FixtureRequest) -> Iterator[None]:
    before = Device.DEFAULT
    Device.DEFAULT = request.getfixturevalue("device") if "device" in request.fixturenames else "WASM"
    yield
    Device.DEFAULT = before


@pytest.mark.parametrize(
    ("network", "device"),
    [
        ("mlp", "WASM"),
        ("convnet", "WASM"),
        pytest.param("mlp", "CPU", marks=on_linux),
        pytest.param("convnet", "CPU", marks=on_linux),
        pytest.param("mlp", "CC", marks=needs_c_compiler),
        pytest.param("convnet", "CC", marks=[needs_c_compiler, pytest.mark.slow]),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_trains_bit_for_bit(device: str, network: str, threads: int, tmp_path: Path) -> None:
    path = tmp_path / "step.pgrd"
    model, shape = (Mlp(), (8, 20)) if network == "mlp" else (Convnet(), (8, 3, 8, 8))
    batches = saved_training(path, model, shape)
    wanted = export.load(path, native=True)
    losses = []
    with (
        Model(path, TRUST_NATIVE, threads) as mapped,
        Model(path.read_bytes(), TRUST_NATIVE, threads) as read,
    ):
        for batch in batches:
            loss = wanted.run(**batch)["loss"].numpy().tobytes()
            losses.append(loss)
            assert mapped.run(**batch)["loss"].tobytes() == loss == read.run(**batch)["loss"].tobytes()
        assert mapped.save() == read.save() == wanted.save()
    assert len(set(losses)) == len(losses)
    # what was written went to the model, not to the file
    assert export.load(path, native=True).run(**batches[0])["loss"].numpy().tobytes() == losses[0]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("device", ["CPU", CC])
def test_threads_of_native_code_compute_the_same_bits(device: str, threads: int, tmp_path: Path) -> None:
    path = tmp_path / "f.pgrd"
    w = Tensor.rand(256, 256).realize()
    saved_function(
        path, lambda x: {"product": (x @ w).relu(), "sum": (x @ w).sum(0)}, Tensor.rand(256, 256).realize()
    )
    program = export.load(path, native=True).program
    assert program.threads > 1, "the machine has one processor"
    assert any("part" in kernel.variables for kernel in program.kernels)
    x = RNG.standard_normal((256, 256)).astype(np.float32)
    wanted = {name: t.numpy() for name, t in export.load(path, native=True).run(x=x).items()}
    with Model(path, TRUST_NATIVE, threads) as model:
        for _ in range(20):
            for name, found in model.run(x=x).items():
                assert found.tobytes() == wanted[name].tobytes()


@DEVICES
def test_sizes_that_are_variables(device: str, tmp_path: Path) -> None:
    path = tmp_path / "v.pgrd"
    n = Variable("n", 1, 8)
    jit = TinyJit(lambda x: {"y": x.softmax(-1)})
    for size in (3, 5):
        jit(Tensor.rand(2, 8)[:, : n.bind(size)].contiguous())
    jit.save(path)
    loaded = export.load(path, native=True)
    (spec,) = loaded.inputs
    assert "n" in spec.shape
    with Model(path, TRUST_NATIVE) as model:
        info = model.tensors(INPUT)[spec.name]
        assert list(info.shape[:2]) == [2, 8]
        assert list(info.variables[:2]) == [-1, 0]
        assert model.variables() == ["n"]
        for size in (8, 1, 5):
            x = RNG.standard_normal((2, size)).astype(np.float32)
            found = model.run(n=size, **{spec.name: x})["y"]
            assert found.shape == (2, size)
            assert found.tobytes() == loaded.run({spec.name: x})["y"].numpy().tobytes()
        with pytest.raises(
            PgError, match=r"PG_SHAPE: run: input .*: expected 32 bytes, got 40: write it first"
        ):
            call("run", model.handle, 0, (ctypes.c_int64 * 1)(4), 0.0)
        with pytest.raises(PgError, match="PG_ARGUMENT: run: expected Variable n from 1 to 8, got 9"):
            call("run", model.handle, 0, (ctypes.c_int64 * 1)(9), 0.0)
        with pytest.raises(PgError, match="PG_ARGUMENT"):
            call("run", model.handle, 0, None, 0.0)


def test_entries_share_states_and_run_in_any_order(tmp_path: Path) -> None:
    """A Bundle: one Program trains, the other predicts with the weights that it has now."""
    Tensor.manual_seed(1)
    layer = nn.Linear(4, 2)
    opt = nn.optim.SGD(nn.state.get_parameters(layer), 0.5)
    x, y = Tensor.rand(3, 4).realize(), Tensor([0, 1, 1])
    step = compile_step(lambda layer, x, y: layer(x).cross_entropy(y), layer, opt, x, y)
    step.save(tmp_path / "train.pgrd")
    jit = TinyJit(lambda x: {"y": layer(x)})
    for _ in range(2):
        jit(x)
    jit.save(tmp_path / "predict.pgrd", layer)
    train, predict = (export.load(tmp_path / f"{name}.pgrd") for name in ("train", "predict"))
    values = train.save()
    bundle = Bundle(
        "test", {"a": 1.5}, ({"train": train.program, "predict": predict.program},), {"notes.txt": b"x\0y"}
    )
    with Model(bundle.head([values]) + values) as model:
        assert api().kind(model.handle) == b"test"
        assert json.loads(api().settings(model.handle)) == {"a": 1.5}
        assert api().device(model.handle) == b"WASM"
        names = [api().entry_name(model.handle, i) for i in range(3)]
        assert names == [b"train", b"predict", None]
        assert api().file_count(model.handle) == 1
        name, data, nbytes = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_uint64()
        call("file", model.handle, 0, *map(ctypes.byref, (name, data, nbytes)))
        assert (name.value, ctypes.string_at(data.value, nbytes.value)) == (b"notes.txt", b"x\0y")
        for _ in range(3):
            assert model.run(0, 1, x=x.numpy())["y"].tobytes() == predict.run(x=x)["y"].numpy().tobytes()
            wanted = train.run(x=x, y=y)["loss"].numpy().tobytes()
            assert model.run(0, 0, x=x.numpy(), y=y.numpy())["loss"].tobytes() == wanted
            for weight in ("weight", "bias"):
                predict.set_parameter(weight, train.parameter(weight))


@DEVICES
def test_values_are_read_written_saved_and_loaded(device: str, tmp_path: Path) -> None:
    path, weights = tmp_path / "step.pgrd", tmp_path / "weights.safetensors"
    batches = saved_training(path)
    python = export.load(path, native=True)
    with Model(path, TRUST_NATIVE) as model, Model(path, TRUST_NATIVE) as other:
        infos = model.tensors(VALUE)
        assert list(infos) == [p.name for p in python.parameters]
        assert [tuple(i.shape[: i.rank]) for i in infos.values()] == [p.shape for p in python.parameters]
        assert infos["first.weight"].is_state == infos["optimizer.m.0"].is_state == 1
        model.run(**batches[0])
        call("save_values", model.handle, bytes(weights))
        assert weights.read_bytes() == model.save()
        assert set(safe_load(weights)) == set(infos)
        call("load_values", other.handle, bytes(weights))
        assert other.run(**batches[1])["loss"].tobytes() == model.run(**batches[1])["loss"].tobytes()
        python.load(weights)
        python.run(**batches[1])
        assert python.save() == model.save()
        # one value
        before = model.save()
        zeros = np.zeros((32, 20), np.float32)
        model.write("first.weight", zeros, VALUE)
        assert not model.read("first.weight", VALUE).any()
        with pytest.raises(
            PgError, match=r"PG_SHAPE: write: first.weight: expected 2560 bytes of float32, got 4"
        ):
            model.write("first.weight", zeros[:1, :1], VALUE)
        call("load_values_memory", model.handle, before, len(before))
        assert model.save() == before
        # what is not of the model changes nothing
        entries = dict(safe_load(weights).items())
        safe_save(entries, tmp_path / "m.safetensors", metadata={"made": "here"})
        call("load_values", model.handle, bytes(tmp_path / "m.safetensors"))
        before = model.save()
        for changed in ({"more": Tensor.zeros(1)}, {"first.bias": Tensor.zeros(31)}):
            safe_save({**entries, **changed}, tmp_path / "w.safetensors")
            with pytest.raises(PgError, match=r"PG_DAMAGED: values: (more|first.bias)"):
                call("load_values", model.handle, bytes(tmp_path / "w.safetensors"))
        del entries["first.bias"]
        safe_save(entries, tmp_path / "w.safetensors")
        with pytest.raises(PgError, match=r"PG_DAMAGED: values: first.bias: expected its value, got none"):
            call("load_values", model.handle, bytes(tmp_path / "w.safetensors"))
        assert model.save() == before
        with pytest.raises(PgError, match="PG_IO"):
            call("load_values", model.handle, bytes(tmp_path / "none"))
        with pytest.raises(PgError, match="PG_IO"):
            call("save_values", model.handle, bytes(tmp_path / "none" / "w"))
        assert sorted(p.name for p in tmp_path.iterdir()) == [
            "m.safetensors", "step.pgrd", "w.safetensors", "weights.safetensors",
        ]  # fmt: skip


@DEVICES
def test_views_are_the_memory_of_the_model(device: str, tmp_path: Path) -> None:
    path = tmp_path / "f.pgrd"
    saved_function(path, lambda x: {"y": x * 2}, Tensor.rand(4).realize())
    with Model(path, TRUST_NATIVE) as model:
        views = {}
        for role, name in ((INPUT, "x"), (OUTPUT, "y")):
            address = ctypes.c_void_p()
            call("view", model.handle, 0, role, 0, ctypes.byref(address))
            assert address.value and address.value % 64 == 0
            views[name] = np.frombuffer((ctypes.c_float * 4).from_address(address.value), np.float32)
        for numbers in ([1, 2, 3, 4], [5, 6, 7, 8]):
            views["x"][:] = numbers
            call("run", model.handle, 0, None, 0.0)
            assert views["y"].tolist() == [2 * n for n in numbers]


def test_arguments_are_checked(tmp_path: Path) -> None:
    data = CHAIN.to_bytes(SCALE)
    with Model(data) as model:
        with pytest.raises(PgError, match="PG_SHAPE: run: input x: expected 8 bytes, got 0: write it first"):
            model.run(n=1)
        for name, role in (("z", INPUT), ("y", INPUT), ("x", VALUE)):
            with pytest.raises(PgError, match="PG_NOT_FOUND"):
                model.index(role, name)
        for arguments in ((1, INPUT, 0), (0, INPUT, 1), (0, 3, 0), (0, -1, 0)):
            with pytest.raises(PgError, match="PG_NOT_FOUND"):
                call("write", model.handle, *arguments, b"12345678", 8)
        with pytest.raises(PgError, match="PG_ARGUMENT: write: y"):
            model.write("y", np.int32([1, 2]), OUTPUT)
        with pytest.raises(PgError, match="PG_SHAPE"):
            model.write("x", np.int32([1]))
        with pytest.raises(PgError, match=r"PG_ARGUMENT: .* opened with PG_STOPPABLE"):
            model.run(1.0, x=np.int32([1, 4]), n=3)
        for timeout in (-1.0, float("nan"), float("inf")):
            with pytest.raises(PgError, match="PG_ARGUMENT"):
                model.run(timeout, x=np.int32([1, 4]), n=3)
        assert api().interrupt(model.handle) == 1
        with pytest.raises(PgError, match="PG_NOT_FOUND"):
            call("run", model.handle, 1, None, 0.0)
        assert model.run(x=np.int32([1, 4]), n=3)["y"][1] == 21  # an error leaves a model as it was
    for options in ({"flags": 8}, {"max_bytes": 100}):
        with pytest.raises(PgError, match=r"PG_ARGUMENT|PG_MEMORY"):
            Model(data, **options)
    reserved = Options(reserved=(ctypes.c_uint64 * 4)(0, 0, 0, 1))
    with pytest.raises(PgError, match="PG_ARGUMENT"):
        call("open_memory", data, len(data), ctypes.byref(reserved), ctypes.byref(ctypes.c_void_p()))
    with pytest.raises(PgError, match=r"PG_IO: .*none: expected a file to read"):
        Model(tmp_path / "none")
    with pytest.raises(PgError, match="PG_IO"):
        Model(tmp_path)
    assert [api().status_name(n).decode() for n in (*STATUS, -1, 99)] == [*STATUS.values(), *["unknown"] * 2]
    assert (api().dtype_name(13), api().dtype_size(14), api().dtype_size(-1)) == (b"float32", 8, 0)
    api().close(None)


def test_an_error_may_be_null() -> None:
    handle = ctypes.c_void_p()
    assert api().open_memory(b"none", 4, None, ctypes.byref(handle), None) == 3
    assert not handle


def test_native_code_needs_trust(tmp_path: Path) -> None:
    for device in ("CPU", "CC", "CUDA", "wasm", "WASM:1"):
        data = replace(CHAIN, device=device).to_bytes(SCALE)
        with pytest.raises(PgError, match=f"PG_TRUST: .*got code for {device}"):
            Model(data)
        with pytest.raises(PgError, match="PG_UNSUPPORTED"):
            Model(data, TRUST_NATIVE)
    library = tuple(replace(kernel, language="library") for kernel in CHAIN.kernels)
    with pytest.raises(PgError, match="PG_UNSUPPORTED: open: kernel add is in another language"):
        Model(replace(CHAIN, kernels=library).to_bytes(SCALE))
    for code in (b"", b"\x7fELF nothing"):
        kernels = tuple(replace(kernel, code=code) for kernel in library)
        native = replace(CHAIN, device="CC", kernels=kernels)
        with Model(native.to_bytes(SCALE), TRUST_NATIVE) as model, pytest.raises(PgError, match="PG_COMPILE"):
            model.run(x=np.int32([1, 4]), n=3)


def test_of_several_targets_the_first_that_is_allowed_is_used(tmp_path: Path) -> None:
    batches: list[dict[str, Any]] = []
    for device in ("CC", "WASM"):
        Device.DEFAULT = device
        batches = saved_training(tmp_path / f"{device}.pgrd")
    both = tmp_path / "both.pgrd"
    export.combine([tmp_path / "CC.pgrd", tmp_path / "WASM.pgrd"], both)
    for device, flags in (("WASM", 0), ("CC", TRUST_NATIVE)):
        with Model(both, flags) as model, Model(tmp_path / f"{device}.pgrd", flags) as alone:
            assert api().device(model.handle) == device.encode()
            assert (api().kind(model.handle), api().entry_count(model.handle)) == (b"", 1)
            for batch in batches[:3]:
                assert model.run(**batch)["loss"].tobytes() == alone.run(**batch)["loss"].tobytes()
            assert model.save() == alone.save()


def test_a_library_that_is_no_wasmtime_is_an_error() -> None:
    data = CHAIN.to_bytes(SCALE)
    for path, text in ((b"/none/libwasmtime.so", "expected wasmtime's shared library at /none"),
                       (b"libm.so.6", "has no wasm_config_new: use another version")):  # fmt: skip
        with pytest.raises(PgError, match=f"PG_NO_ENGINE: .*{text}"):
            call("open_memory", data, len(data), ctypes.byref(Options(wasmtime=path)),
                 ctypes.byref(ctypes.c_void_p()))  # fmt: skip


def test_the_environment_names_wasmtime(monkeypatch: pytest.MonkeyPatch) -> None:
    data = CHAIN.to_bytes(SCALE)
    libc = ctypes.CDLL(None)
    handle = ctypes.c_void_p()
    libc.setenv(b"PG_WASMTIME", wasmtime_library().encode(), 1)
    try:
        call("open_memory", data, len(data), None, ctypes.byref(handle))
    finally:
        libc.unsetenv(b"PG_WASMTIME")
    api().close(handle)


def test_a_trap_leaves_no_half_written_state_unnoticed() -> None:
    data = program_of(TRAPS, 2).to_bytes(state(1, 2))
    with Model(data) as model:
        with pytest.raises(PgError, match=r"(?s)PG_TRAP: kernel f: .*unreachable"):
            model.run()
        for attempt in (model.run, model.save, lambda: model.read("s", VALUE)):
            with pytest.raises(PgError, match=r"PG_HALF_WRITTEN: .*s.*half-written: write or load it first"):
                attempt()
        model.write("s", np.int32([1, 0]), VALUE)
        model.run()
        assert model.read("s", VALUE).tolist() == [9, 0]
    with Model(data, STOPPABLE) as model:
        with pytest.raises(PgError, match="PG_TRAP"):
            model.run()
        assert model.read("s", VALUE).tolist() == [1, 2]


def test_a_timeout_ends_a_run_without_end_and_state_is_as_before() -> None:
    with Model(program_of(LOOPS, 2).to_bytes(state(1, 2)), STOPPABLE) as model:
        for _ in range(3):
            start = time.perf_counter()
            with pytest.raises(PgError, match=r"PG_TIMEOUT: run: it took longer than 0\.1 seconds"):
                model.run(timeout=0.1)
            assert time.perf_counter() - start < 10
            assert model.read("s", VALUE).tolist() == [1, 2]


def test_an_interrupt_ends_a_run_and_other_threads_are_refused_meanwhile() -> None:
    with Model(program_of(LOOPS, 2).to_bytes(state(1, 2)), STOPPABLE) as model:
        assert api().interrupt(model.handle) == 0  # nothing is running
        errors: list[PgError] = []

        def run() -> None:
            try:
                model.run()
            except PgError as e:
                errors.append(e)

        for _ in range(3):
            thread = threading.Thread(target=run)
            thread.start()
            busy = False
            while not busy:  # until it has begun
                try:
                    model.read("s", VALUE)
                except PgError as e:
                    busy = e.status == "PG_BUSY"
            while thread.is_alive():
                api().interrupt(model.handle)
                thread.join(0.01)
            assert errors.pop().status == "PG_INTERRUPTED"
            assert model.read("s", VALUE).tolist() == [1, 2]


def test_code_that_starts_by_itself_is_ended_too() -> None:
    text = f'(module {STORE} (func $g (loop (br 0))) (start $g) (func (export "f") (param i32)))'
    with Model(program_of(text).to_bytes(state(1, 2)), STOPPABLE) as model:
        with pytest.raises(PgError, match="PG_TIMEOUT"):
            model.run(timeout=0.1)
        assert model.read("s", VALUE).tolist() == [1, 2]


RUN_IN_A_NEW_PROCESS = """\
import sys
import numpy as np
from c_library import TRUST_NATIVE, Model
with Model(sys.argv[1], TRUST_NATIVE) as model:
    np.save(sys.argv[3], model.run(x=np.load(sys.argv[2]))["output"])
"""


@pytest.mark.skipif(not Device.backend("CPU").target.matrices, reason="the processor has no matrix registers")
def test_matrix_registers_are_asked_for(tmp_path: Path) -> None:
    """Linux ends a process that uses AMX's and has not asked for them, as importing polygrad does."""
    w = Tensor.rand(128, 128, device="CPU").cast("bfloat16").realize()
    x = Tensor.rand(128, 128, device="CPU").cast("bfloat16").realize()
    step = TinyJit(lambda x: {"output": (x @ w).float()})
    expected = [step(x)["output"].numpy() for _ in range(3)][-1]
    step.save(tmp_path / "product.pgrd")
    np.save(tmp_path / "x.npy", x.bitcast("uint16").numpy())
    files = [str(tmp_path / name) for name in ("product.pgrd", "x.npy", "output.npy")]
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", RUN_IN_A_NEW_PROCESS, *files]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True, timeout=120)
    np.testing.assert_array_equal(np.load(files[2]), expected)


@pytest.mark.parametrize("device", ["CPU", SLOW_CC])
def test_native_kernels_end_at_their_safepoints(device: str, tmp_path: Path) -> None:
    path = tmp_path / "long.pgrd"
    w = Tensor.rand(800, 800).realize()

    def many(x: Tensor) -> dict[str, Tensor]:
        for _ in range(12):
            x = (x @ w) * 0.01
        return {"y": x}

    saved_function(path, many, Tensor.rand(800, 800).realize())
    x = np.ones((800, 800), np.float32)
    with Model(path, TRUST_NATIVE | STOPPABLE) as model:
        start = time.process_time()
        wanted = model.run(x=x)["y"].tobytes()
        work = time.process_time() - start
        start = time.process_time()
        with pytest.raises(PgError, match="PG_TIMEOUT"):
            model.run(timeout=work / 10, x=x)
        assert time.process_time() - start < 0.7 * work  # of this process: others may have the processor
        assert model.run(x=x)["y"].tobytes() == wanted


@pytest.mark.parametrize(
    "text",
    [
        "(module)",
        '(module (func (export "g") (param i32)))',
        '(module (func (export "f") (param i64)))',
        '(module (func (export "f") (param i32 i32)))',
        '(module (func (export "f") (param i32) (result i32) (i32.const 0)))',
        '(module (memory (export "f") 1))',
        '(module (import "a" "a" (memory 1)) (import "a" "b" (memory 1)) (func (export "f") (param i32)))',
        '(module (import "env" "f" (func)) (func (export "f") (param i32)))',
        '(module (import "env" "memory" (memory 9)) (func (export "f") (param i32)))',
        '(module (memory 9) (func (export "f") (param i32)))',
    ],
)
def test_modules_that_do_not_fit_are_errors(text: str) -> None:
    with (
        Model(program_of(text).to_bytes(state(1, 2))) as model,
        pytest.raises(PgError, match="PG_COMPILE: kernel f"),
    ):
        model.run()


def test_code_reaches_nothing_outside_of_its_memory() -> None:
    text = f"""(module {STORE} (func (export "f") (param i32)
        (i32.store (i32.const 0x7fffffff) (i32.const 1))))"""
    with (
        Model(program_of(text).to_bytes(state(1, 2))) as model,
        pytest.raises(PgError, match=r"(?s)PG_TRAP: .*out of bounds"),
    ):
        model.run()
    grows = f"""(module {STORE} (func (export "f") (param i32)
        (i32.store (local.get 0) (memory.grow (i32.const 1)))))"""
    with Model(program_of(grows).to_bytes(state(1, 2))) as model:
        assert model.run()["x"][0] == -1


def test_threads_use_models_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "step.pgrd"
    batches = saved_training(path)
    wanted = export.load(path, native=True)
    losses = [wanted.run(**batch)["loss"].numpy().tobytes() for batch in batches]
    found: list[list[bytes]] = []

    def work() -> None:
        with Model(path) as model:
            found.append([model.run(**batch)["loss"].tobytes() for batch in batches])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [losses] * 4


@pytest.mark.parametrize("device", ["CPU"])
def test_native_code_reads_weights_where_the_file_is_mapped(device: str, tmp_path: Path) -> None:
    path = tmp_path / "step.pgrd"
    saved_training(path)
    with Model(path, TRUST_NATIVE) as mapped, Model(path.read_bytes(), TRUST_NATIVE) as copied:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        (start, end), *more = (
            [int(x, 16) for x in m.split()[0].split("-")] for m in maps if m.endswith(str(path))
        )
        assert not more
        for name in mapped.tensors(VALUE):
            for model, inside in ((mapped, True), (copied, False)):
                address = ctypes.c_void_p()
                call("view", model.handle, 0, VALUE, model.index(VALUE, name), ctypes.byref(address))
                assert (start <= (address.value or 0) < end) == inside, name


@on_linux
def test_object_files_that_do_not_link_are_errors() -> None:
    good = CHAIN.kernels[0]
    for code in (b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(57), b"\0asm" + bytes(60)):
        kernels = tuple(replace(good, code=code, language="object", n_buffers=k.n_buffers,
                                variables=k.variables) for k in CHAIN.kernels)  # fmt: skip
        data = replace(CHAIN, device="CPU", kernels=kernels).to_bytes(SCALE)
        with Model(data, TRUST_NATIVE) as model, pytest.raises(PgError, match="PG_COMPILE: kernel add: "):
            model.run(x=np.int32([1, 4]), n=3)


def test_digests_of_weights_are_left_out_where_they_are_trusted(tmp_path: Path) -> None:
    data = bytearray(CHAIN.to_bytes(SCALE))
    data[-4] = 5  # the value
    with pytest.raises(PgError, match="PG_DIGEST"):
        Model(bytes(data))
    with Model(bytes(data), TRUST_DIGESTS) as model:
        assert model.run(x=np.int32([1, 4]), n=3)["y"][1] == 35
    data[60] ^= 1  # the header
    with pytest.raises(PgError, match="PG_DIGEST"):
        Model(bytes(data), TRUST_DIGESTS)
