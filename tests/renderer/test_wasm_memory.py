"""WasmBuilder's memory and control: addresses, masked loads, loops, registers, code that leaves loops; V8."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest
import wasmtime
from wasm_kernel import INDEX, LANES, NUMPY, Machine, engine, same, sample

from polygrad.dtype import DType, dtypes
from polygrad.errors import InternalError
from polygrad.renderer.builder import Address
from polygrad.renderer.wasm.builder import WasmBuilder, wasm_module
from polygrad.uop.ops import Ops
from polygrad.wasm.wat import print_module

F32 = dtypes.float32


def number(b: WasmBuilder, value: int) -> Any:
    return b.const(INDEX, value, 1)


# --- addresses


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_index_and_offset_make_the_address(dtype: DType, lanes: int) -> None:
    """out[k] = x[offset + index], for indices and offsets of either sign."""
    x = sample(dtype, 3, 128)
    cases = [(None, 5), (7, 0), (40, -33), (-30, 64), (0, 9), (None, 0)]
    b = WasmBuilder()
    (to, source), (zero,) = b.begin("f", [dtype, dtype], ["zero"])
    for k, (index, offset) in enumerate(cases):
        constant = None if index is None else number(b, index)
        unknown = None if index is None else b.alu(Ops.ADD, INDEX, [zero, number(b, index)], 1)
        for j, at in enumerate((constant, unknown)):
            b.store(
                Address(to, None, (2 * k + j) * lanes),
                b.load(Address(source, at, offset), dtype, lanes),
                dtype,
                lanes,
            )
    got = Machine([b.finish()]).call("f", [np.empty(2 * len(cases) * lanes, x.dtype), x], 0)[0]
    starts = [(index or 0) + offset for index, offset in cases for _ in range(2)]
    assert got.tobytes() == np.concatenate([x[s : s + lanes] for s in starts]).tobytes()


def test_an_index_below_the_pointer_is_not_left_to_a_static_offset() -> None:
    """A reversed copy: index -i, offset n - 1; the index alone would lie below address 0."""
    n = 100
    b = WasmBuilder()
    (to, source), _ = b.begin("f", [dtypes.int32] * 2, [])
    i = b.loop(number(b, n))
    back = b.alu(Ops.MUL, INDEX, [i, number(b, -1)], 1)
    b.store(Address(to, i), b.load(Address(source, back, n - 1), dtypes.int32, 1), dtypes.int32, 1)
    b.end_loop()
    x = np.arange(n, dtype=np.int32)
    same(Machine([b.finish()]).call("f", [np.empty_like(x), x])[0], x[::-1].copy(), "reversed")


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_a_store_writes_its_elements_only(dtype: DType, lanes: int) -> None:
    x, out = sample(dtype, 4, 64), sample(dtype, 5, 64)
    b = WasmBuilder()
    (to, source), _ = b.begin("f", [dtype] * 2, [])
    b.store(Address(to, None, 20), b.load(Address(source, None, 3), dtype, lanes), dtype, lanes)
    expected = out.copy()
    expected[20 : 20 + lanes] = x[3 : 3 + lanes]
    got = Machine([b.finish()]).call("f", [out, x])[0]
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("lanes", LANES[1:])
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_masked_load_takes_other_where_the_mask_is_false_and_never_traps(dtype: DType, lanes: int) -> None:
    """out[i] = x[i + shift] if 0 <= i + shift < n else other, far outside memory too."""
    n, x = 64, sample(dtype, 6, 64)
    for shift in (0, -3, 5, -64, 64, 400_000_000, -400_000_000):
        b = WasmBuilder()
        (to, source), (by,) = b.begin("f", [dtype] * 2, ["by"])
        i = b.alu(Ops.MUL, INDEX, [b.loop(number(b, n // lanes)), number(b, lanes)], 1)
        at = b.alu(Ops.ADD, INDEX, [i, by], 1)
        each = b.alu(Ops.ADD, INDEX, [b.splat(at, INDEX, lanes), b.const_lanes(INDEX, range(lanes))], lanes)
        low = b.alu(Ops.CMPLT, INDEX, [b.const(INDEX, -1, lanes), each], lanes)
        high = b.alu(Ops.CMPLT, INDEX, [each, b.const(INDEX, n, lanes)], lanes)
        mask = b.alu(Ops.AND, dtypes.bool, [low, high], lanes)
        other = b.const(dtype, 1, lanes)
        b.store(Address(to, i), b.load_masked(Address(source, at), dtype, lanes, mask, other), dtype, lanes)
        b.end_loop()
        got = Machine([b.finish()]).call("f", [np.empty_like(x), x], shift)[0]
        one = 0x3F80 if dtype is dtypes.bfloat16 else 1
        where = np.arange(n) + shift
        expected = np.where((where >= 0) & (where < n), x[where % n], np.array(one, x.dtype))
        assert got.tobytes() == expected.tobytes(), f"{dtype}, {lanes} lanes, shift {shift}"


@pytest.mark.parametrize("rows", [(0, 10, 20), (20, 10, 0), (0, 1 << 14)])
@pytest.mark.parametrize("shift", [0, -1, 5, 400_000_000])
def test_masked_loads_at_constant_distances_share_a_check(rows: tuple[int, ...], shift: int) -> None:
    """out = the sum of four neighbours in each row, none of them if the first is outside; far outside, too.
    A row before the first one that was read, and one that is far behind it, is checked again."""
    n = max(rows) + 8
    x = sample(dtypes.int32, 6, n)
    b = WasmBuilder()
    (to, source), (by,) = b.begin("f", [dtypes.int32] * 2, ["by"])
    each = b.alu(Ops.ADD, INDEX, [b.splat(by, INDEX, 4), b.const_lanes(INDEX, range(4))], 4)
    low = b.alu(Ops.CMPLT, INDEX, [b.const(INDEX, -1, 4), each], 4)
    high = b.alu(Ops.CMPLT, INDEX, [each, b.const(INDEX, 8, 4)], 4)
    mask = b.alu(Ops.AND, dtypes.bool, [low, high], 4)
    total = b.const(dtypes.int32, 0, 4)
    for row in rows:
        loaded = b.load_masked(Address(source, by, row), dtypes.int32, 4, mask, b.const(dtypes.int32, 0, 4))
        total = b.alu(Ops.ADD, dtypes.int32, [total, loaded], 4)
    b.store(Address(to, None, 0), total, dtypes.int32, 4)
    module = b.finish()
    assert print_module(wasm_module([module])).count("any_true") == (1 if rows[-1] == 20 else len(rows))
    got = Machine([module]).call("f", [np.zeros(4, np.int32), x], shift)[0]
    where = np.arange(4) + shift
    inside = (where >= 0) & (where < 8)
    expected = sum(np.where(inside, x[(where % 8) + row], 0) for row in rows)
    np.testing.assert_array_equal(got, expected)


# --- blocks


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_lanes_are_any_elements_of_blocks(dtype: DType, lanes: int) -> None:
    b = WasmBuilder()
    size = b.block_size(dtype, lanes)
    x = sample(dtype, 7, 8 * size)
    orders = [np.random.default_rng(k).integers(0, (k + 1) * size, lanes).tolist() for k in range(4)]
    orders += [list(range(lanes))[::-1] if lanes <= 4 * size else [0] * lanes, [3 * size] * lanes]
    (to, source), _ = b.begin("f", [dtype] * 2, [])
    blocks = [b.load_block(Address(source, None, 2 * k * size), dtype, lanes) for k in range(4)]
    for k, order in enumerate(orders):
        b.store(Address(to, None, k * lanes), b.permute(blocks, order, dtype), dtype, lanes)
    got = Machine([b.finish()]).call("f", [np.empty(len(orders) * lanes, x.dtype), x])[0]
    elements = np.concatenate([x[2 * k * size : (2 * k + 1) * size] for k in range(4)])
    assert got.tobytes() == np.concatenate([elements[order] for order in orders]).tobytes()


# --- loops and registers


@pytest.mark.parametrize("sizes", [(3, 4), (0, 4), (3, 0), (1, 1)])
@pytest.mark.parametrize("known", [True, False], ids=["constant", "variable"])
def test_nested_loops_of_any_size(sizes: tuple[int, int], known: bool) -> None:
    b = WasmBuilder()
    (to,), variables = b.begin("f", [dtypes.int32], ["n", "m"])
    n, m = (number(b, s) for s in sizes) if known else variables
    b.store(Address(to), b.const(dtypes.int32, 0, 1), dtypes.int32, 1)
    i = b.loop(n)
    j = b.loop(m)
    old = b.load(Address(to), dtypes.int32, 1)
    new = b.alu(
        Ops.ADD, dtypes.int32, [old, b.cast(b.alu(Ops.ADD, INDEX, [i, j], 1), INDEX, dtypes.int32, 1)], 1
    )
    b.store(Address(to), new, dtypes.int32, 1)
    b.end_loop()
    b.end_loop()
    got = Machine([b.finish()]).call("f", [np.full(1, 9, np.int32)], *sizes)[0]
    assert got[0] == sum(i + j for i in range(sizes[0]) for j in range(sizes[1]))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", [dtypes.int8, F32, dtypes.float64], ids=str)
def test_a_value_read_from_a_register_stays_when_the_register_is_set(dtype: DType, lanes: int) -> None:
    """Fibonacci: a, b = b, a + b."""
    b = WasmBuilder()
    (to,), (n,) = b.begin("f", [dtype], ["n"])
    first, second = b.register(dtype, lanes), b.register(dtype, lanes)
    b.set(first, b.const(dtype, 0, lanes))
    b.set(second, b.const(dtype, 1, lanes))
    b.loop(n)
    x, y = b.get(first), b.get(second)
    b.set(first, y)
    b.set(second, b.alu(Ops.ADD, dtype, [x, y], lanes))
    b.end_loop()
    b.store(Address(to), b.get(first), dtype, lanes)
    got = Machine([b.finish()]).call("f", [np.empty(lanes, NUMPY[dtype])], 10)[0]
    assert got.tolist() == [55] * lanes


def test_what_a_loop_does_not_change_is_computed_before_it() -> None:
    b = WasmBuilder()
    (to, source), (n,) = b.begin("f", [F32] * 2, ["n"])
    scale = b.load(Address(source), F32, 1)
    i = b.loop(n)
    twice = b.alu(Ops.MUL, F32, [scale, scale], 1)
    vector = b.splat(twice, F32, 4)
    at = b.alu(Ops.MUL, INDEX, [i, number(b, 4)], 1)
    b.store(Address(to, at), vector, F32, 4)
    b.end_loop()
    text = print_module(wasm_module([b.finish()]))
    loop = text[text.index("loop") :]
    assert "f32.mul" not in loop and "f32x4.splat" not in loop and "f32.mul" in text


def test_locals_of_a_closed_loop_are_used_again() -> None:
    b = WasmBuilder()
    (p,), (n,) = b.begin("f", [F32], ["n"])
    for _ in range(50):
        i = b.loop(n)
        b.store(
            Address(p, i), b.alu(Ops.ADD, F32, [b.load(Address(p, i), F32, 1), b.const(F32, 1, 1)], 1), F32, 1
        )
        b.end_loop()
    assert len(b.w.types) < 10
    same(
        Machine([b.finish()]).call("f", [np.zeros(5, np.float32)], 5)[0],
        np.full(5, 50, np.float32),
        "50 loops",
    )


def test_code_moved_out_of_a_loop_shares_no_local_with_it() -> None:
    """Hoisted values and constants, after a loop has given its locals back, in loops that go round twice."""
    b = WasmBuilder()
    (to, source), (n,) = b.begin("f", [F32] * 2, ["n"])
    scale = b.load(Address(source, None, 7), F32, 1)
    for _ in range(2):
        outer = b.loop(n)
        for _ in range(2):
            i = b.loop(n)
            x = b.load(Address(source, i), F32, 4)
            y = b.alu(Ops.MUL, F32, [x, b.splat(scale, F32, 4)], 4)
            z = b.alu(Ops.ADD, F32, [y, b.const(F32, 0.5, 4)], 4)
            row = b.alu(Ops.MUL, INDEX, [outer, number(b, 4)], 1)
            half = b.splat(b.alu(Ops.ADD, F32, [scale, b.const(F32, 1, 1)], 1), F32, 4)
            b.store(Address(to, row), b.alu(Ops.ADD, F32, [z, half], 4), F32, 4)
            b.end_loop()
        b.end_loop()
    x = np.arange(16, dtype=np.float32)
    got = Machine([b.finish()]).call("f", [np.empty(12, np.float32), x], 3)[0]
    same(got, np.tile(x[2:6] * 7 + np.float32(8.5), 3), "hoisted")


def test_a_scalar_load_becomes_a_splatting_load_and_stays_a_scalar() -> None:
    b = WasmBuilder()
    (to, source), _ = b.begin("f", [F32] * 2, [])
    s = b.load(Address(source, None, 1), F32, 1)
    early = b.alu(Ops.ADD, F32, [s, s], 1)
    b.store(Address(to), b.splat(s, F32, 4), F32, 4)
    b.store(Address(to, None, 4), b.splat(s, F32, 4), F32, 4)
    b.store(Address(to, None, 8), b.alu(Ops.ADD, F32, [early, s], 1), F32, 1)
    f = b.finish()
    text = print_module(wasm_module([f]))
    assert text.count("v128.load32_splat") == 1 and "f32x4.splat" not in text
    got = Machine([f]).call("f", [np.empty(9, np.float32), np.array([1, 2], np.float32)])[0]
    assert got.tolist() == [2.0] * 8 + [6.0]


def test_loops_must_be_closed_and_only_once() -> None:
    b = WasmBuilder()
    b.begin("f", [], [])
    b.loop(number(b, 2))
    with pytest.raises(InternalError, match="1 loops are still open"):
        b.finish()
    b.end_loop()
    with pytest.raises(InternalError, match="none is open"):
        b.end_loop()


# --- modules


def matmul(relaxed: bool) -> Any:
    """c (4 rows of 8) = a (4 by k) @ b (k by 8), a register tile of 4 rows by 2 vectors."""
    b = WasmBuilder(relaxed)
    (pc, pa, pb), (k,) = b.begin("matmul", [F32] * 3, ["k"])
    tile = [[b.register(F32, 4) for _ in range(2)] for _ in range(4)]
    for row in tile:
        for register in row:
            b.set(register, b.const(F32, 0.0, 4))
    i = b.loop(k)
    at = b.alu(Ops.MUL, INDEX, [i, number(b, 8)], 1)
    columns = [b.load(Address(pb, at, 4 * c), F32, 4) for c in range(2)]
    for r, row in enumerate(tile):
        start = b.alu(Ops.ADD, INDEX, [b.alu(Ops.MUL, INDEX, [k, number(b, r)], 1), i], 1)
        x = b.splat(b.load(Address(pa, start), F32, 1), F32, 4)
        for register, y in zip(row, columns, strict=True):
            b.set(register, b.alu(Ops.MULACC, F32, [x, y, b.get(register)], 4))
    b.end_loop()
    for r, row in enumerate(tile):
        for c, register in enumerate(row):
            b.store(Address(pc, None, 8 * r + 4 * c), b.get(register), F32, 4)
    return b.finish()


@pytest.mark.parametrize("relaxed", [False, True])
def test_a_register_tile_multiplies_matrices(relaxed: bool) -> None:
    r = np.random.default_rng(0)
    a, b = (r.integers(-9, 9, s).astype(np.float32) for s in ((4, 11), (11, 8)))
    got = Machine([matmul(relaxed)]).call("matmul", [np.empty((4, 8), np.float32), a, b], 11)[0]
    same(got, a @ b, "matmul")


def test_a_module_has_every_function_and_the_memory_it_was_asked_for() -> None:
    functions = []
    for name in ("first", "second"):
        b = WasmBuilder()
        b.begin(name, [F32], [])
        functions.append(b.finish())
    binary = wasm_module(functions, minimum=2, maximum=16, shared=True)
    module = wasmtime.Module(engine(), binary)
    assert [e.name for e in module.exports] == ["first", "second"]
    assert '(import "env" "memory" (memory 2 16 shared))' in print_module(binary)
    with pytest.raises(InternalError, match="distinct export names"):
        wasm_module([functions[0], functions[0]])
    with pytest.raises(InternalError, match="maximum"):
        wasm_module(functions, shared=True)


def test_a_kernel_as_text(golden: Any) -> None:
    golden("wasm_matmul.wat", print_module(wasm_module([matmul(True)])))


_NODE = """
const [plain, relaxed] = process.argv.slice(1).map((s) => Buffer.from(s, "base64"));
const run = (bytes) => {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const f32 = new Float32Array(memory.buffer);
  for (let i = 0; i < 12; i++) f32[64 + i] = i;
  for (let i = 0; i < 24; i++) f32[128 + i] = i;
  const { matmul } = new WebAssembly.Instance(new WebAssembly.Module(bytes), { env: { memory } }).exports;
  matmul(1024, 256, 512, 3);
  return Array.from(f32.subarray(256, 288));
};
console.log(JSON.stringify([run(plain), WebAssembly.validate(relaxed) ? run(relaxed) : null]));
"""


@pytest.mark.e2e
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_v8_runs_the_same_module() -> None:
    binaries = [base64.b64encode(wasm_module([matmul(r)])).decode() for r in (False, True)]
    done = subprocess.run(
        ["node", "--experimental-wasm-relaxed-simd", "-e", _NODE, *binaries],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if "bad option" in done.stderr:
        done = subprocess.run(["node", "-e", _NODE, *binaries], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    expected = (np.arange(12.0).reshape(4, 3) @ np.arange(24.0).reshape(3, 8)).ravel().tolist()
    plain, relaxed = json.loads(done.stdout)
    assert plain == expected
    assert relaxed in (None, expected)
