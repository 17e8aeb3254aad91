"""Outlined parts of large kernels: which become functions, that they compute the same, and that modules of
several kernels call the right ones."""

from __future__ import annotations

import numpy as np
import pytest
import wasmtime
from wasm_kernel import INDEX, Machine, engine

from polygrad import Tensor
from polygrad.codegen.lower.passes import lower, parameters
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.engine.normalize import normalize
from polygrad.renderer.builder import Address
from polygrad.renderer.driver import Driver, DriverCall, TablePointer
from polygrad.renderer.emit import emit
from polygrad.renderer.wasm import outline as wasm_outline
from polygrad.renderer.wasm.builder import WasmBuilder, wasm_module
from polygrad.renderer.wasm.driver import wasm_driver
from polygrad.renderer.wasm.outline import OutlinedKernel
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.wasm.reader import Reader
from tests.schedules import schedule

F32 = dtypes.float32
TARGET = Target("WASM", simd_bytes=16, registers=15, fma=True, scalar_fma=True, index_bits=32)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be outlined is, however small."""
    for name, value in {"MIN_WORK": 0, "MIN_CALL": 1, "MIN_CALLS": 1}.items():
        monkeypatch.setattr(wasm_outline, name, value)


def number(b: WasmBuilder, value: int) -> bytes:
    return b.const(INDEX, value, 1)


def rows(name: str, n: int, m: int, lanes: int = 4) -> OutlinedKernel:
    """out[i] = sum over j of x[i + j] * 0.5, in vectors."""
    b = WasmBuilder()
    (to, source), _ = b.begin(name, [F32, F32], [])
    total = b.register(F32, lanes)
    half = b.const(F32, 0.5, lanes)
    i = b.loop(number(b, n))
    at = b.alu(Ops.MUL, INDEX, [i, number(b, lanes)], 1)
    b.set(total, b.const(F32, 0.0, lanes))
    j = b.loop(number(b, m))
    x = b.load(Address(source, b.alu(Ops.ADD, INDEX, [at, j], 1)), F32, lanes)
    b.set(total, b.alu(Ops.ADD, F32, [b.get(total), b.alu(Ops.MUL, F32, [x, half], lanes)], lanes))
    b.end_loop()
    b.store(Address(to, at), b.get(total), F32, lanes)
    b.end_loop()
    return b.finish()


def called(kernel: OutlinedKernel) -> list[int]:
    """The functions that a kernel's code calls, in order."""
    reader = Reader(kernel.code)
    reader.locals()
    return [i.immediates[0] for i in reader.expression() if i.opcode.name == "call"]


def test_the_body_of_a_long_loop_is_a_function() -> None:
    kernel = rows("f", 3000, 500)
    assert len(kernel.outlined) == 1 and called(kernel) == [1]
    assert len(kernel.outlined[0].code) > len(kernel.code)


def test_a_short_kernel_is_one_function() -> None:
    assert rows("f", 100, 500).outlined == ()


def test_a_sum_that_goes_on_in_every_round_is_not_divided(everything: None) -> None:
    """Its register is read before it is set; nor is a loop whose result is wanted behind it."""
    b = WasmBuilder()
    (to, source), _ = b.begin("f", [F32, F32], [])
    total = b.register(F32, 4)
    b.set(total, b.const(F32, 0.0, 4))
    i = b.loop(number(b, 1000))
    b.set(total, b.alu(Ops.ADD, F32, [b.get(total), b.load(Address(source, i), F32, 4)], 4))
    b.end_loop()
    b.store(Address(to), b.get(total), F32, 4)
    assert b.finish().outlined == ()


def test_what_the_next_round_reads_is_not_outlined(everything: None) -> None:
    """out[i] is what the round before loaded: the inner loop sets a register, read by the outer one."""
    n, m = 6, 5
    b = WasmBuilder()
    (to, source), _ = b.begin("f", [F32, F32], [])
    last = b.register(F32, 1)
    b.set(last, b.const(F32, -1.0, 1))
    i = b.loop(number(b, n))
    b.store(Address(to, i), b.get(last), F32, 1)
    j = b.loop(number(b, m))
    b.set(last, b.load(Address(source, b.alu(Ops.ADD, INDEX, [i, j], 1)), F32, 1))
    b.end_loop()
    b.end_loop()
    x = np.arange(n + m, dtype=np.float32)
    got = Machine([b.finish()]).call("f", [np.zeros(n, np.float32), x])[0]
    np.testing.assert_array_equal(got, [-1, 4, 5, 6, 7, 8])


def test_parts_compute_the_same(everything: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).normal(size=64).astype(np.float32)
    out = np.zeros(40, np.float32)
    divided = rows("f", 10, 20)
    monkeypatch.setattr(wasm_outline, "MIN_WORK", 1 << 60)
    whole = rows("f", 10, 20)
    assert divided.outlined and not whole.outlined
    got, want = (Machine([kernel]).call("f", [out, x])[0] for kernel in (divided, whole))
    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    "name", ["product", "product by a transpose", "softmax", "convolution", "pooling", "sum"]
)
def test_kernels_compute_the_same_in_parts(
    name: str, everything: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    shapes: dict[str, tuple[tuple[int, ...], ...]] = {
        "product": ((70, 40), (40, 50)), "product by a transpose": ((70, 40), (50, 40)),
        "convolution": ((2, 5, 12, 20), (6, 5, 3, 3)), "pooling": ((2, 3, 12, 20),),
        "softmax": ((20, 70),), "sum": ((70, 40),),
    }  # fmt: skip
    x = [Tensor(rng.normal(size=s).astype(np.float32)).realize() for s in shapes[name]]
    out = {
        "product": lambda a, b: a @ b,
        "product by a transpose": lambda a, b: a @ b.T,
        "softmax": lambda a: a.softmax(),
        "convolution": lambda a, b: a.conv2d(b, padding=1),
        "pooling": lambda a: a.max_pool2d(3, 2),
        "sum": lambda a: a.sum(0),
    }[name](*x)
    for call in schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls:
        linear = lower(call.ast, TARGET)
        memory = [rng.normal(size=p.arg.size).astype(np.float32) for p in parameters(linear)]
        results = []
        for least in (0, 1 << 60):
            monkeypatch.setattr(wasm_outline, "MIN_WORK", least)
            kernel = emit("f", linear, WasmBuilder(relaxed=True))
            assert bool(kernel.outlined) is (least == 0)
            results.append(Machine([kernel]).call("f", memory))
        assert [a.tobytes() for a in results[0]] == [a.tobytes() for a in results[1]]


def test_a_large_product_runs_in_parts_of_about_a_row_tile() -> None:
    """Each part is called often, so that an engine replaces it within the first call of the kernel."""
    out = Tensor.empty(512, 512).realize() @ Tensor.empty(512, 512).realize()
    (call,) = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls
    kernel = emit("f", lower(call.ast, TARGET), WasmBuilder(relaxed=True))
    codes = [f.code for f in (kernel, *kernel.outlined)]
    madd = b"\xfd\x85\x02"  # f32x4.relaxed_madd
    assert madd not in codes[0] and sum(code.count(madd) for code in codes) == 12


def test_modules_of_several_kernels_call_their_own_parts(everything: None) -> None:
    kernels = [rows("f", 3, 4), rows("g", 6, 2)]
    assert all(kernel.outlined for kernel in kernels)
    x, out = np.arange(32, dtype=np.float32), np.zeros(24, np.float32)
    alone = [Machine([k]).call(k.name, [out, x])[0] for k in kernels]
    together = Machine(kernels)
    for kernel, want in zip(kernels, alone, strict=True):
        assert together.call(kernel.name, [out, x])[0].tobytes() == want.tobytes()
    calls = tuple(
        DriverCall(i, (TablePointer(2 * i, 0), TablePointer(2 * i + 1, 0)), (), False, False) for i in (0, 1)
    )
    driver = wasm_driver(Driver(("f", "g"), calls, entries=4), [wasm_module([k]) for k in kernels])
    store = wasmtime.Store(engine())
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
    instance = wasmtime.Instance(store, wasmtime.Module(engine(), driver), [memory])
    memory.write(store, np.array([256, 1024, 512, 1024], np.int32).tobytes(), 64)
    memory.write(store, x.tobytes(), 1024)
    instance.exports(store)["run"](store, 64)
    for address, want in zip((256, 512), alone, strict=True):
        assert bytes(memory.read(store, address, address + 96)) == want.tobytes()
