"""Random programs of views, writes and computations over tensors on several devices do what numpy does.

The model is numpy itself: its arrays share memory where Tensors do. A step that would move elements between
devices is refused by name; its result is dropped then, and memory that it would have written to is left
alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polygrad import Tensor, TinyJit
from polygrad.engine.sharding import resolve
from polygrad.errors import DeviceError

DEVICES = ("CPU", "CPU:1", "CPU:2")
SHAPE = (6, 12)  # two and three devices divide both axes


@dataclass
class Pair:
    """A Tensor and the array that it is to be."""

    tensor: Any
    array: np.ndarray

    def check(self) -> None:
        assert self.tensor.shape == self.array.shape
        np.testing.assert_allclose(self.tensor.numpy(), self.array, rtol=1e-4, atol=1e-4)


@dataclass
class Machine:
    """Pairs, and what may still be used of them."""

    devices: tuple[str, ...]
    pairs: list[Pair] = field(default_factory=list)

    def pick(self, i: int) -> Pair:
        return self.pairs[i % len(self.pairs)]

    def add(self, tensor: Any, array: np.ndarray) -> None:
        try:
            resolve([tensor.uop])
        except DeviceError:
            return
        self.pairs.append(Pair(tensor, array))

    def writable(self, pair: Pair, value: Any) -> bool:
        """Whether the value can be laid out as the memory is."""
        try:
            memory, axis = _axis(pair.tensor), _axis(value)
        except DeviceError:
            return False
        return axis is None or axis == memory

    def like(self, pair: Pair, i: int) -> Pair | None:
        """Another one of its shape."""
        alike = [p for p in self.pairs if p.array.shape == pair.array.shape]
        return alike[i % len(alike)] if alike else None

    def forget_refused(self, pair: Pair) -> None:
        """A lazy value that was written to may not be computable: it and its views are used no more."""
        try:
            resolve([pair.tensor.uop])
        except DeviceError:
            self.pairs = [p for p in self.pairs if not np.shares_memory(p.array, pair.array)]


def _axis(tensor: Any) -> Any:
    (found,) = resolve([tensor.uop])
    return getattr(found, "axis", "one")


HALF, QUARTER, EIGHTH = np.float32(0.5), np.float32(0.25), np.float32(0.125)


def _any(x: np.ndarray) -> np.ndarray:
    return x.any(-1, keepdims=True)


def _sum(x: np.ndarray) -> np.ndarray:
    return x.sum(-1, keepdims=True) * QUARTER


def _padded(x: Any, y: Any) -> Any:
    return x.pad((1, 1)).shrink(((None,) * (x.ndim - 1)) + ((0, x.shape[-1]),))


def _padded_array(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 1)])[..., : x.shape[-1]]


# what is computed of one, or two of a shape: of Tensors and of arrays
COMPUTED = {
    "add": (lambda x, y: x + y, lambda x, y: x + y),
    "scaled": (lambda x, y: x * 0.5 - 1, lambda x, y: x * HALF - 1),
    "where": (lambda x, y: (x < y).where(x, y * 0.5), lambda x, y: np.where(x < y, x, y * HALF)),
    "sum 0": (lambda x, y: x.sum(0, keepdim=True) * 0.25, lambda x, y: x.sum(0, keepdims=True) * QUARTER),
    "sum last": (lambda x, y: x.sum(-1, keepdim=True) * 0.25, lambda x, y: _sum(x)),
    "centred": (lambda x, y: x - x.mean(0, keepdim=True), lambda x, y: x - x.mean(0, keepdims=True)),
    "most": (lambda x, y: (x - x.max()).maximum(y), lambda x, y: np.maximum(x - x.max(), y)),
    "any": (lambda x, y: (x > y).any(-1, True).where(x, y), lambda x, y: np.where(_any(x > y), x, y)),
    "gram": (lambda x, y: (x.transpose(-1, -2) @ y) * 0.125, lambda x, y: (x.swapaxes(-1, -2) @ y) * EIGHTH),
    "turned": (lambda x, y: x @ y.transpose(-1, -2) * 0.125, lambda x, y: x @ y.swapaxes(-1, -2) * EIGHTH),
    "running": (lambda x, y: x.cumsum(-1) * 0.25, lambda x, y: x.cumsum(-1) * QUARTER),
    "padded": (_padded, _padded_array),
    "clone": (lambda x, y: x.clone(), lambda x, y: x.copy()),
    "stored": (lambda x, y: (x + 1).contiguous(), lambda x, y: x + 1),
}  # fmt: skip


def _middle(x: Any) -> Any:
    return x[x.shape[0] // 3 : 2 * x.shape[0] // 3 + 1]


def _half(x: Any) -> Any:
    return x[: max(x.shape[0] // 2, 1)]


def _in_twos(x: Any) -> Any:
    if x.shape[-1] % 2:
        return x
    shape = (*x.shape[:-1], x.shape[-1] // 2, 2)
    return _reshaped(x, shape) if isinstance(x, np.ndarray) else x.reshape(shape)


VIEWS = {
    "transposed": (lambda x: x.transpose(-1, -2), lambda x: x.swapaxes(-1, -2)),
    "split": (_in_twos, _in_twos),
    "one more": (lambda x: x.unsqueeze(0), lambda x: x[None]),
    "flipped": (lambda x: x.flip(-1), lambda x: x[..., ::-1]),
    "flipped 0": (lambda x: x.flip(0), lambda x: x[::-1]),
    "cut": (lambda x: x[..., 1:], lambda x: x[..., 1:]),
    "half": (_half, _half),
    "middle": (_middle, _middle),
    "row": (lambda x: x[0], lambda x: x[0]),
    "last": (lambda x: x[..., -1], lambda x: x[..., -1]),
}  # fmt: skip


class Array:
    """An array with the methods that writes use."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def assign(self, x: Any) -> None:
        self.array[...] = x

    def __iadd__(self, x: Any) -> Array:
        self.array += x
        return self

    def __imul__(self, x: float) -> Array:
        self.array *= np.float32(x)
        return self

    def __setitem__(self, index: Any, x: Any) -> None:
        self.array[index] = x


WRITES = {
    "assign": lambda x, y, n: x.assign(y * 0.5 + 1),
    "update": lambda x, y, n: x.__iadd__(y),
    "fill": lambda x, y, n: x.assign(n),
    "scale": lambda x, y, n: x.__imul__(0.75),
    "set": lambda x, y, n: x.__setitem__((..., slice(1, 2)), n),
    "set rows": lambda x, y, n: x.__setitem__(slice(0, None, 2), n),
}


def _reshaped(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A view of another shape; numpy would copy where strides do not allow it."""
    out = x.view()
    out.shape = shape  # raises where it is no view
    return out


def step(machine: Machine, op: str, i: int, j: int) -> None:
    """Carry a step out on both sides."""
    if op == "leaf":
        values = np.random.default_rng(j).uniform(-2, 2, SHAPE).astype(np.float32)
        tensor = Tensor(values, device="CPU").shard(machine.devices, (None, 0, 1)[i % 3])
        machine.add(tensor.realize() if j % 2 else tensor, values.copy())
        return
    x = machine.pick(i)
    if op in COMPUTED:
        y = machine.like(x, j)
        if y is None or x.array.ndim < 2:
            return
        on_tensors, on_arrays = COMPUTED[op]
        machine.add(on_tensors(x.tensor, y.tensor), on_arrays(x.array, y.array))
    elif op in VIEWS:
        if x.array.ndim < 2 or x.array.ndim > 3:
            return
        on_tensors, on_arrays = VIEWS[op]
        try:
            array = on_arrays(x.array)
        except AttributeError:
            return
        if 0 not in array.shape:
            machine.add(on_tensors(x.tensor), array)
    elif op == "elsewhere":
        axis = [None, *range(x.array.ndim)][j % (x.array.ndim + 1)]
        if axis is None or x.array.shape[axis] % len(machine.devices) == 0:
            machine.add(x.tensor.shard(machine.devices, axis), x.array.copy())
    elif op == "gathered":
        home = machine.devices[j % len(machine.devices)]
        machine.add(x.tensor.to(home).shard(machine.devices), x.array.copy())
    elif op in WRITES:
        y = machine.like(x, j) or x
        if machine.writable(x, y.tensor + x.tensor if op == "update" else y.tensor):
            try:
                WRITES[op](x.tensor, y.tensor, j / 4)
            except DeviceError:  # before anything was written
                return
            WRITES[op](Array(x.array), y.array.copy(), j / 4)
            machine.forget_refused(x)
    elif op == "read":
        x.check()
    elif op == "realize":
        x.tensor.realize(machine.pick(j).tensor)


OPS = (*COMPUTED, *VIEWS, *WRITES, *WRITES, "leaf", "elsewhere", "gathered", "read", "realize")
steps = st.tuples(st.sampled_from(OPS), st.integers(0, 20), st.integers(0, 20))
leaves = st.lists(st.tuples(st.just("leaf"), st.integers(0, 2), st.integers(0, 20)), min_size=2, max_size=3)


@given(st.sampled_from([2, 3]), leaves, st.lists(steps, min_size=1, max_size=16), st.booleans())
def test_programs_of_views_and_writes_do_what_numpy_does(count, first, rest, backwards):
    machine = Machine(DEVICES[:count])
    for op, i, j in first + rest:
        step(machine, op, i, j)
    for pair in machine.pairs[::-1] if backwards else machine.pairs:
        pair.check()


# what keeps the shape, and the axis that is sharded
ALIKE = ("add", "scaled", "where", "centred", "most", "any", "running", "padded", "clone", "stored")
alike_steps = st.tuples(st.sampled_from((*ALIKE, *WRITES)), st.integers(0, 20), st.integers(0, 20))


@settings(max_examples=settings().max_examples // 3)  # each is eager, captured and replayed
@given(st.sampled_from([2, 3]), st.sampled_from([0, None]), st.lists(alike_steps, min_size=1, max_size=6))
def test_captured_programs_do_what_numpy_does(count, axis, body):
    """What a captured function writes to, and what lazy values read of it, over several calls."""
    body = [s for s in body if s[0] != "set rows"]
    arrays = [np.random.default_rng(i).uniform(-2, 2, SHAPE).astype(np.float32) for i in range(3)]
    tensors = [Tensor(a.copy()).shard(DEVICES[:count], axis).realize() for a in arrays]
    halves = [tensors[0][:, :6], tensors[1].transpose(0, 1)]

    def run(pairs: list[Pair]) -> Pair:
        machine = Machine(DEVICES[:count], pairs)
        for op, i, j in body:
            step(machine, op, i, j)
        return machine.pairs[-1]

    captured = TinyJit(
        lambda: run([Pair(t, a.copy()) for t, a in zip(tensors, arrays, strict=True)]).tensor + 0
    )
    for _ in range(4):
        lazy = [t.sum(-1) for t in (*tensors, halves[0])]
        sums = [a.sum(-1) for a in (*arrays, arrays[0][:, :6])]
        got = captured()
        others = [Tensor(a.copy()).shard(DEVICES[:count], axis).realize() for a in arrays]
        want = run([Pair(t, a) for t, a in zip(others, arrays, strict=True)]).array
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-3, atol=1e-3)
        for tensor, array in zip((*tensors, *halves), (*arrays, arrays[0][:, :6], arrays[1].T), strict=True):
            np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-3, atol=1e-3)
        for tensor, array in zip(lazy, sums, strict=True):
            np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-3, atol=1e-2)
