"""Runs functions that WasmBuilder wrote, under wasmtime, on numpy arrays.

A float16 array is np.float16; bfloat16 has no numpy type, so its arrays are np.uint16 of its bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import wasmtime

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Address
from polygrad.renderer.wasm.builder import WasmBuilder, wasm_module
from polygrad.uop.ops import Ops

NUMPY: dict[DType, Any] = {d: np.dtype(str(d)) for d in dtypes.all if d is not dtypes.bfloat16}
NUMPY[dtypes.bfloat16] = np.dtype(np.uint16)
INDEX = dtypes.index
LANES = (1, 2, 4, 8, 16)


@functools.cache
def engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    config.wasm_threads = True
    return wasmtime.Engine(config)


class Machine:
    """A module instantiated over a fresh memory; `call` copies arrays in, runs, and copies them back."""

    def __init__(self, functions: Sequence[Any]) -> None:
        self.binary = wasm_module(functions)
        self.store = wasmtime.Store(engine())
        self.memory = wasmtime.Memory(self.store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
        module = wasmtime.Module(engine(), self.binary)
        self.exports = wasmtime.Instance(self.store, module, [self.memory]).exports(self.store)

    def call(self, name: str, arrays: Sequence[np.ndarray], *variables: int) -> list[np.ndarray]:
        addresses, at = [], 64
        for a in arrays:
            addresses.append(at)
            at += -(-a.nbytes // 64) * 64 + 64
        missing = -(-at // 65536) - self.memory.size(self.store)
        if missing > 0:
            self.memory.grow(self.store, missing)
        for a, address in zip(arrays, addresses, strict=True):
            self.memory.write(self.store, a.tobytes(), address)
        self.exports[name](self.store, *addresses, *variables)
        return [
            np.frombuffer(bytes(self.memory.read(self.store, p, p + a.nbytes)), a.dtype).reshape(a.shape)
            for a, p in zip(arrays, addresses, strict=True)
        ]


def elementwise(
    name: str,
    out: DType,
    sources: Sequence[DType],
    lanes: int,
    body: Callable[..., Any],
    relaxed: bool = False,
) -> Any:
    """A function (out, *sources, n): out[i] = body(builder, *elements) for i below n, a multiple of lanes."""
    b = WasmBuilder(relaxed)
    (to, *pointers), (n,) = b.begin(name, [out, *sources], ["n"])
    rounds = b.alu(Ops.IDIV, INDEX, [n, b.const(INDEX, lanes, 1)], 1)
    i = b.alu(Ops.MUL, INDEX, [b.loop(rounds), b.const(INDEX, lanes, 1)], 1)
    values = [b.load(Address(p, i), d, lanes) for p, d in zip(pointers, sources, strict=True)]
    b.store(Address(to, i), body(b, *values), out, lanes)
    b.end_loop()
    return b.finish()


def apply(op: Ops, dtype: DType, lanes: int) -> Callable[..., Any]:
    return lambda b, *values: b.alu(op, dtype, values, lanes)


def same(got: np.ndarray, expected: np.ndarray, what: str, dtype: DType | None = None) -> None:
    """Equal bits, except that any NaN is as good as another."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    a, e = got.view(f"u{got.itemsize}"), expected.view(f"u{got.itemsize}")
    differ = a != e
    if dtype is dtypes.bfloat16:
        differ &= ~(((a & 0x7FFF) > 0x7F80) & ((e & 0x7FFF) > 0x7F80))
    elif got.dtype.kind == "f":
        differ &= ~(np.isnan(got) & np.isnan(expected))
    if differ.any():
        at = np.flatnonzero(differ)[:5]
        raise AssertionError(f"{what}: at {at}: got {got.ravel()[at]}, expected {expected.ravel()[at]}")


def sample(dtype: DType, seed: int = 0, count: int = 256) -> np.ndarray:
    """`count` values of `dtype`: the awkward ones, then random ones."""
    r = np.random.default_rng(seed + 1000 * dtypes.all.index(dtype))
    np_type = NUMPY[dtype]
    if dtype is dtypes.bool:
        return r.integers(0, 2, count).astype(bool)
    if dtype.is_float:
        edges = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            np.inf,
            -np.inf,
            np.nan,
            0.5,
            -1.5,
            2.5,
            1e-45,
            -1e-40,
            1e-310,
            3.4e38,
            65504.0,
        ]
        edges += [127.5, -128.9, 255.9, 256.0, 32767.9, 65535.9, 2147483647.0, 2147483648.0, -2147483649.0]
        edges += [
            4294967295.0,
            4294967296.0,
            9.2233720368547758e18,
            -9.3e18,
            1.9e19,
            1e300,
            65519.99,
            65520.0,
            6e-8,
        ]
        values = np.concatenate([edges, r.normal(size=count) * 10.0 ** r.integers(-8, 10, count)])[:count]
        with np.errstate(over="ignore"):
            if dtype is dtypes.bfloat16:
                return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            return values.astype(np_type)
    edges = [dtype.min, dtype.max, 0, 1, 2, 3, dtype.max - 1, dtype.min + 1, dtype.max // 2, 100]
    if not dtype.is_unsigned:
        edges += [-1, -2, -3, dtype.min // 2, -100]
    small = r.integers(max(dtype.min, -50), 50, count // 3).tolist()
    wide = r.integers(dtype.min, dtype.max, count, dtype=np_type, endpoint=True)
    values = np.concatenate([np.array(edges + small, np_type), wide])[:count]
    return r.permutation(values)
