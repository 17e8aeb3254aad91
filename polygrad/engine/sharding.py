"""Graphs over several devices, split into one graph for each device.

A value on several devices equals the value on one device. Its `Shards` are its layout: a part on each device,
along an axis, or a copy on each. `resolve` goes through a graph from its sources to its ends and makes the
graph of each device. Elementwise operations and movements stay within the parts. A reduction along the axis
is an all-reduce: each device reduces its part, then every device gets all results and combines them in the
order of the devices. So the result has the same bits on each device, each time. Operations that would move
elements between parts raise an error: only `shard` and `to` do that.

The idea is tinygrad's (MULTI), and so are the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polygrad.engine.normalize import is_uncomputed, stored_value
from polygrad.errors import DeviceError
from polygrad.helpers import prod
from polygrad.uop.args import Sharding
from polygrad.uop.for_loop import for_loop, placeholder, placeholders
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


@dataclass(frozen=True, slots=True)
class Shards:
    """A value of `shape` on `devices`, each of which has one of `parts`: the parts along `axis`, in order, or
    with None a copy of the whole value each."""

    devices: tuple[str, ...]
    axis: int | None
    shape: tuple[Any, ...]
    parts: tuple[UOp, ...]

    def each(self, change: Callable[[UOp], UOp], node: UOp, axis: int | None) -> Shards:
        """The Shards of `node`: `change` is applied to each part of this."""
        return Shards(self.devices, axis, node.shape, tuple([change(p) for p in self.parts]))

    def local(self, sizes: Sequence[Any], axis: int | None) -> tuple[Any, ...]:
        """The sizes of one part of a value with these sizes."""
        n = len(self.devices)
        return tuple([size // n if i == axis else size for i, size in enumerate(sizes)])

    @property
    def words(self) -> str:
        """The layout, in the words of errors."""
        where = ", ".join(self.devices)
        return f"copies on {where}" if self.axis is None else f"axis {self.axis} sharded over {where}"


Resolved = UOp | Shards


def is_sharded(device: Any) -> bool:
    """Whether the device of a BUFFER or a COPY is several devices."""
    return device.__class__ is tuple or device.__class__ is Sharding


def resolve(roots: Sequence[UOp]) -> list[Resolved]:
    """The nodes of each device that compute `roots`; for a value on one device, one node.

    Raises DeviceError for an operation that would move elements between devices.
    """
    return _Resolver().resolve(roots)


def axis_of(node: UOp) -> int | None:
    """The axis along which a value is split over several devices; None where it is not."""
    (value,) = resolve([node])
    return value.axis if isinstance(value, Shards) else None


def check_writable(view: UOp) -> None:
    """Raises DeviceError for a view of memory on several devices, some of which hold no part of the view."""
    memory, _ = view.movements()
    if is_sharded(memory.buffer.arg.device):
        (shown,) = resolve([view.substitute({memory: memory.buffer})])
        (whole,) = resolve([memory.buffer])
        assert isinstance(shown, Shards) and isinstance(whole, Shards)
        if (shown.axis is None) != (whole.axis is None):
            raise _refusal(view, whole, "to write to all of the axis that is sharded")


class _Resolver:
    def __init__(self) -> None:
        self.done: dict[UOp, Resolved] = {}
        self.memory: dict[UOp, tuple[UOp, ...]] = {}  # by BUFFER or later version: that of each part

    def resolve(self, roots: Sequence[UOp]) -> list[Resolved]:
        for node in UOp.sink(*roots).toposort(is_uncomputed):
            if node.op is Ops.SINK or node in self.done:
                continue
            value = stored_value(node)
            if value is not None:
                self.done[node] = self._resolve_stored(node, value)
                continue
            src = [self.done[s] for s in node.src]
            if node.op is Ops.COPY:
                self.done[node] = _copy(node, src[0])
            elif node.op is Ops.AFTER and node.src[0] in self.memory:
                self.done[node] = self._resolve_write(node)
            elif node.op is Ops.ASSIGN and isinstance(src[0], Shards):
                self.done[node] = _elementwise(node, [self._resolve_view(node.src[0]), src[1]])
            elif any(isinstance(s, Shards) for s in src):
                self.done[node] = _RULES[node.op](node, src)
            else:
                plain = tuple([s for s in src if isinstance(s, UOp)])
                self.done[node] = node.over(plain)
        return [self.done[root] for root in roots]

    def _resolve_stored(self, node: UOp, value: UOp) -> Resolved:
        buffer = value.arg
        if not is_sharded(buffer.device):
            return node
        parts = self.memory[node] = tuple([UOp.buffer_of(b, node.dtype) for b in buffer.parts])
        whole = Shards(buffer.device, buffer.axis, buffer.shape, parts)
        local = whole.local(buffer.shape, buffer.axis)
        stored = Shards(buffer.device, buffer.axis, buffer.shape, tuple([p.reshape(local) for p in parts]))
        return stored if node.shape == buffer.shape else _reshape(value.reshape(node.shape), [stored])

    def _resolve_view(self, target: UOp) -> Resolved:
        """The view that an ASSIGN writes to. Its movement ops are applied to the memory even if the view's
        value has been computed."""
        memory, views = target.movements()
        out = self.done[memory]
        for view in views:
            out = _RULES[view.op](view, [out])
        return out

    def _resolve_write(self, node: UOp) -> Shards:
        memory, write, before = self.memory[node.src[0]], self.done[node.src[1]], self.done[node.src[0]]
        assert isinstance(write, Shards) and isinstance(before, Shards)
        pairs = zip(memory, write.parts, strict=True)
        self.memory[node] = tuple([UOp(Ops.AFTER, node.dtype, pair) for pair in pairs])
        local = before.parts[0].shape
        return Shards(
            before.devices, before.axis, node.shape, tuple([p.reshape(local) for p in self.memory[node]])
        )


def _refusal(node: UOp, shards: Shards, expected: str) -> DeviceError:
    sizes = " and ".join([str(s.shape) for s in node.src])
    return DeviceError(
        f"{node.op} of {sizes} to {node.shape}: a tensor with {shards.words}: expected {expected}: gather it "
        "with to(), or shard() it along another axis"
    )


def _part(x: UOp, axis: int | None, i: int, n: int) -> UOp:
    """Part number `i` of `n` along an axis."""
    if axis is None or not x.shape:
        return x
    size = x.shape[axis] // n
    return x.shrink(
        tuple([(i * size, (i + 1) * size) if a == axis else (0, m) for a, m in enumerate(x.shape)])
    )


def _check_divides(node: UOp, axis: int, n: int) -> None:
    size = node.shape[axis] if -len(node.shape) <= axis < len(node.shape) else None
    if not isinstance(size, int) or size % n:
        raise DeviceError(
            f"shard: expected an axis whose size {n} devices divide, got axis {axis} of shape {node.shape}: "
            "pad it, or shard() along another axis"
        )


def _copy(node: UOp, x: Resolved) -> Resolved:
    """A COPY: to one device, or to several."""
    to: str | Sharding = node.arg
    if isinstance(to, str):
        return _gather(x, to) if isinstance(x, Shards) else node.replace(src=(x,))
    devices, axis = to
    n = len(devices)
    if axis is not None:
        _check_divides(node, axis, n)
    if isinstance(x, UOp):
        parts = [_part(x, axis, i, n).clone().copy_to(d) for i, d in enumerate(devices)]
    elif x.devices == devices and x.axis in (axis, None):
        move = axis if x.axis is None else None
        parts = [_part(p, move, i, n).clone() for i, p in enumerate(x.parts)]
    else:
        parts = [_part(_gather(x, d), axis, i, n).clone() for i, d in enumerate(devices)]
    return Shards(devices, axis, node.shape, tuple(parts))


def _gather(x: Shards, device: str) -> UOp:
    """All of a value on one device."""
    if x.axis is None:
        part = x.parts[x.devices.index(device)] if device in x.devices else x.parts[0].copy_to(device)
        return part.clone()
    joined: UOp | None = None
    size = x.parts[0].shape[x.axis]
    for i, (part, home) in enumerate(zip(x.parts, x.devices, strict=True)):
        before, behind = i * size, (len(x.parts) - 1 - i) * size
        here = part if home == device else part.copy_to(device)
        pairs = tuple([(before, behind) if a == x.axis else (0, 0) for a in range(len(part.shape))])
        padded = here.pad(pairs)
        op = Ops.OR if part.dtype.is_bool else Ops.ADD
        joined = padded if joined is None else UOp(op, part.dtype, (joined, padded))
    assert joined is not None
    return joined


def _elementwise(node: UOp, src: Sequence[Resolved]) -> Shards:
    """An elementwise op of each part. Of operands that all devices have a copy of, each uses its own
    elements."""
    shards = [s for s in src if isinstance(s, Shards)]
    first = next((s for s in shards if s.axis is not None), shards[0])
    axis, devices = first.axis, first.devices
    if node.op is Ops.ASSIGN and isinstance(src[0], Shards):  # memory keeps its layout
        axis = src[0].axis
    for s in shards:
        if s.axis not in (None, axis) or s.devices != devices:
            raise _refusal(node, s, f"operands alike, with {first.words}")
    columns = []
    for x in src:
        if isinstance(x, Shards) and x.axis is not None:
            columns.append(x.parts)
        else:
            whole = x.parts if isinstance(x, Shards) else (x,) * len(devices)
            columns.append(tuple([_part(p, axis, i, len(devices)) for i, p in enumerate(whole)]))
    parts = [node.over(operands) for operands in zip(*columns, strict=True)]
    return Shards(devices, axis, node.shape, tuple(parts))


def _one(src: Sequence[Resolved]) -> Shards:
    (x,) = src
    assert isinstance(x, Shards)
    return x


def _same(node: UOp, src: Sequence[Resolved]) -> Shards:
    """CONTIGUOUS and DETACH: the same op of each part."""
    x = _one(src)
    return x.each(lambda p: node.over((p,)), node, x.axis)


def _noop(node: UOp, src: Sequence[Resolved]) -> Resolved:
    """NOOP: its further sources belong to its gradient, and are dropped."""
    x = src[0]
    if isinstance(x, UOp):
        return UOp(Ops.NOOP, node.dtype, (x,))
    return x.each(lambda p: UOp(Ops.NOOP, node.dtype, (p,)), node, x.axis)


def _reshape(node: UOp, src: Sequence[Resolved]) -> Shards:
    """The new axis is the one with as many elements before it, if the number of devices divides its size."""
    x, shape = _one(src), node.shape
    n = len(x.devices)
    if x.axis is None:
        return x.each(lambda p: p.reshape(shape), node, None)
    before = prod(x.shape[: x.axis])
    for axis, size in enumerate(shape):
        is_divisible = isinstance(size, int) and size % n == 0 and size > 0
        if is_divisible and prod(shape[:axis]) == before:
            local = x.local(shape, axis)
            parts = tuple([p.reshape(local) for p in x.parts])
            return Shards(x.devices, axis, shape, parts)
    raise _refusal(node, x, "a reshape that keeps elements on their devices")


def _expand(node: UOp, src: Sequence[Resolved]) -> Shards:
    x = _one(src)
    return x.each(lambda p: p.expand(x.local(node.shape, x.axis)), node, x.axis)


def _permute(node: UOp, src: Sequence[Resolved]) -> Shards:
    x = _one(src)
    axis = None if x.axis is None else node.arg.index(x.axis)
    return x.each(lambda p: p.permute(node.arg), node, axis)


def _pad(node: UOp, src: Sequence[Resolved]) -> Shards:
    x = _one(src)
    if x.axis is not None and node.arg[x.axis] != (0, 0):
        raise _refusal(node, x, "no padding along the axis that is sharded")
    return x.each(lambda p: p.pad(node.arg), node, x.axis)


def _shrink(node: UOp, src: Sequence[Resolved]) -> Shards:
    """All of the axis, or exactly the part of one device, which all devices then get."""
    x = _one(src)
    if x.axis is None:
        return x.each(lambda p: p.shrink(node.arg), node, None)
    size = x.parts[0].shape[x.axis]
    lo, hi = node.arg[x.axis]
    local = tuple([(0, size) if a == x.axis else pair for a, pair in enumerate(node.arg)])
    if (lo, hi) == (0, x.shape[x.axis]):
        return x.each(lambda p: p.shrink(local), node, x.axis)
    if isinstance(lo, int) and isinstance(hi, int) and hi - lo == size and lo % size == 0:
        chosen = x.parts[lo // size].shrink(local)
        home = x.devices[lo // size]
        parts = [chosen if d == home else chosen.copy_to(d) for d in x.devices]
        return Shards(x.devices, None, node.shape, tuple(parts))
    raise _refusal(node, x, f"all of the axis that is sharded, or one of its parts of {size},")


def _flip(node: UOp, src: Sequence[Resolved]) -> Shards:
    x = _one(src)
    if x.axis is not None and x.axis in node.arg:
        raise _refusal(node, x, "another axis to flip")
    return x.each(lambda p: p.flip(node.arg), node, x.axis)


def _shear(node: UOp, src: Sequence[Resolved]) -> Shards:
    x = _one(src)
    if x.axis is not None and x.axis in (node.arg.axis, node.arg.along):
        raise _refusal(node, x, "windows along other axes")
    return x.each(lambda p: p.shear(node.arg), node, x.axis)


def _reduce(node: UOp, src: Sequence[Resolved]) -> Shards:
    x = _one(src)
    op, axes = node.arg
    if x.axis is None or x.axis not in axes:
        return x.each(lambda p: node.over((p,)), node, x.axis)
    partial = [node.over((p,)) for p in x.parts]
    parts = []
    for device in x.devices:
        here = [p if d == device else p.copy_to(device) for p, d in zip(partial, x.devices, strict=True)]
        combined = here[0]
        for other in here[1:]:
            combined = UOp(op, node.dtype, (combined, other))
        parts.append(combined)
    return Shards(x.devices, None, node.shape, tuple(parts))


def _scan(node: UOp, src: Sequence[Resolved]) -> Shards:
    for s in src:
        if isinstance(s, Shards) and s.axis is not None and s.axis in node.arg.axes:
            raise _refusal(node, s, "running values along another axis")
    return _elementwise(node, src)


def _for(node: UOp, src: Sequence[Resolved]) -> Shards:
    """Each device runs the loop on its parts, if the body needs no others. A value that is a copy at first
    and in parts after a trip is in parts from the beginning."""
    trips, body, result = node.arg
    first = next(s for s in src if isinstance(s, Shards))
    n = len(first.devices)
    operands = [x if isinstance(x, Shards) else Shards(first.devices, None, x.shape, (x,) * n) for x in src]
    stand_ins = placeholders(body)
    while True:
        resolver = _Resolver()
        for slot, stand_in in stand_ins.items():
            x = operands[slot]
            part = placeholder(slot, x.local(x.shape, x.axis), stand_in.dtype)
            resolver.done[stand_in] = replace(x, parts=(part,) * n)
        results = [
            r if isinstance(r, Shards) else Shards(first.devices, None, r.shape, (r,) * n)
            for r in resolver.resolve(body.src)
        ]
        changed = False
        for slot, after in enumerate(results):
            x = operands[slot]
            if x.axis is None and after.axis is not None:
                parts = tuple([_part(p, after.axis, i, n) for i, p in enumerate(x.parts)])
                operands[slot], changed = Shards(x.devices, after.axis, x.shape, parts), True
        if not changed:
            break
    for x, after in zip(operands, results, strict=False):
        if x.devices != after.devices or x.axis != after.axis:
            raise _refusal(node, x, f"values that stay as they are laid out, not with {after.words}")
    if any(p.op is Ops.COPY for p in UOp.sink(*[p for r in results for p in r.parts]).toposort()):
        raise _refusal(node, first, "a body for which each device needs only its own part")
    results_by_device = [
        for_loop(trips, [r.parts[i] for r in results], [x.parts[i] for x in operands])[result]
        for i in range(n)
    ]
    return Shards(first.devices, operands[result].axis, node.shape, tuple(results_by_device))


_RULES: dict[Ops, Callable[[UOp, Sequence[Resolved]], Resolved]] = dict.fromkeys(
    GroupOp.Elementwise, _elementwise
)
_RULES |= {
    Ops.ASSIGN: _elementwise,
    Ops.CONTIGUOUS: _same,
    Ops.DETACH: _same,
    Ops.NOOP: _noop,
    Ops.RESHAPE: _reshape,
    Ops.EXPAND: _expand,
    Ops.PERMUTE: _permute,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _flip,
    Ops.SHEAR: _shear,
    Ops.REDUCE_AXIS: _reduce,
    Ops.SCAN_AXIS: _scan,
    Ops.FOR: _for,
}
