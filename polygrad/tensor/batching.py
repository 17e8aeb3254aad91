"""`vmap` turns a function of one example into a function of a batch. The interface is jax's.

The function is called once, on placeholders for one example. Every node of the graph that it makes gets a
leading batch axis, by a rule for each op (`_RULES`). So a batched function stays lazy and needs no loop, and
gradients through it and within it are ordinary graphs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, AxisError, ShapeError
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.runtime.interface import Handle
from polygrad.tensor.core.aliasing import Storage, observe_writes
from polygrad.tensor.core.checks import collect_checks, require_of_batch
from polygrad.tensor.core.registry import live_tensors, newest
from polygrad.tensor.core.trees import map_tensors
from polygrad.tensor.tensor import Tensor
from polygrad.uop.args import Reduction, Sharding, Shear
from polygrad.uop.for_loop import for_loop, placeholder, placeholders
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import max_numel

Axes = int | None


class _NoMemory(Allocation):
    """The memory of a placeholder, which has no contents."""

    @property
    def handle(self) -> Handle:
        raise ArgumentError(
            "vmap: expected a function that computes lazily, got a reading of values, or a realize(): return "
            "the Tensor and read it after the call"
        )


def vmap(
    function: Callable[..., Any], in_axes: Axes | Sequence[Axes] = 0, out_axes: Axes | Sequence[Axes] = 0
) -> Callable[..., Any]:
    """A function that applies `function` to each example of a batch, in one graph.

    in_axes: the batch axis of each positional argument, or one axis for all; None: every example gets the
    whole argument. Arguments are Tensors, or lists, tuples and dicts of Tensors; keyword arguments are passed
    on unchanged.
    out_axes: the batch axis of each result, or one for all; None: the result is the same for all examples.

    Random numbers that the function draws are the same for every example. Raises ArgumentError when it reads
    values, writes to an example, writes a value that depends on the example to a Tensor from outside of it
    (or to its gradient, by `backward`), or uses an op that has no batching rule; ShapeError for batches of
    different sizes.

        distances = vmap(lambda a, b: (a - b).square().sum())(xs, ys)
        per_example = vmap(lambda x, y: (model(x) - y).square().sum().gradient(weight)[0])(xs, ys)
    """

    @functools.wraps(function)
    def batched(*args: Any, **kwargs: Any) -> Any:
        axes = [in_axes] * len(args) if in_axes is None or isinstance(in_axes, int) else list(in_axes)
        if len(axes) != len(args):
            raise ArgumentError(f"vmap: expected in_axes for {len(args)} arguments, got {len(axes)}")
        leaves: dict[UOp, UOp] = {}
        outside = _Outside(leaves)
        sizes: set[Any] = set()
        examples = [
            arg if axis is None else _map_tensors(arg, functools.partial(_example, axis, leaves, sizes))
            for arg, axis in zip(args, axes, strict=True)
        ]
        if len(sizes) != 1:
            raise ShapeError(
                "vmap: expected batches of one size, got "
                f"{' and '.join(sorted(map(str, sizes))) or 'no Tensor with an axis of examples'}"
            )
        (size,) = sizes
        with collect_checks() as checks, observe_writes(outside.observe):
            try:
                result = function(*examples, **kwargs)
            finally:
                outside.restore_gradients()
        batch = _BatchedGraphs(leaves, size)
        for check in checks:
            require_of_batch(check.result._with(batch.full(check.result.uop)), check)
        if out_axes is None or isinstance(out_axes, int):
            return _map_tensors(result, functools.partial(_result, out_axes, batch))
        if not isinstance(result, (tuple, list)) or len(result) != len(out_axes):
            raise ArgumentError(
                f"vmap: expected {len(out_axes)} results, as out_axes has axes, got {result!r}"
            )
        pairs = zip(result, out_axes, strict=True)
        return type(result)(_map_tensors(r, functools.partial(_result, axis, batch)) for r, axis in pairs)

    return batched


class _Outside:
    """The Tensors that are older than a call of a function of one example, with the placeholders `leaves`. No
    value that depends on the example is written to them; the function may write to Tensors that it makes."""

    def __init__(self, leaves: dict[UOp, UOp]) -> None:
        self._leaves, self._youngest = leaves, newest()
        self._gradients: list[tuple[Tensor, Tensor | None]] = []

    def observe(self, storage: Storage | None, tensors: Sequence[Tensor], value: UOp) -> None:
        """Raise ArgumentError for a write to an example, and for a write of a value that depends on the
        example to a Tensor from outside, or to the gradient of one with `requires_grad=True`. A gradient that
        nobody asked for is put back by `restore_gradients`."""
        if storage is not None and storage.node in self._leaves:
            raise ArgumentError(
                f"vmap: the function writes to its argument, an example of shape {tensors[0].shape}: "
                "write to a clone() of it"
            )
        if self._leaves.keys().isdisjoint(value.toposort()):
            return
        inner = {id(t) for t in live_tensors(self._youngest)}
        for t in tensors:
            if id(t) in inner:
                continue
            if storage is not None:
                raise ArgumentError(
                    f"vmap: the function writes values of one example to a Tensor of shape {t.shape} from "
                    "outside of it: return the values, and write after the call"
                )
            if t.requires_grad:
                raise ArgumentError(
                    f"vmap: the function adds to the gradient of a Tensor of shape {t.shape} from outside of "
                    "it: return the gradient of the example, which loss.gradient(tensor) computes"
                )
            self._gradients.append((t, t.grad))

    def restore_gradients(self) -> None:
        """Put back the gradients that Tensors with `requires_grad=None` had."""
        for t, gradient in reversed(self._gradients):
            t.grad = gradient


def _map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Apply `change` to a Tensor, or to each Tensor in lists, tuples and dicts."""
    return map_tensors(value, change, "vmap (use in_axes=None, or a keyword, for what is no Tensor)")


def _example(axis: int, leaves: dict[UOp, UOp], sizes: set[Any], x: Tensor) -> Tensor:
    """The placeholder for one example of `x`."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"vmap: expected an axis of shape {x.shape}, got {axis}")
    axis %= x.ndim
    sizes.add(x.shape[axis])
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    home = x.device[0] if isinstance(x.device, tuple) else x.device
    count = max_numel(shape)
    memory = _NoMemory(Device[home], count * x.dtype.itemsize)
    leaf = UOp.buffer_of(Buffer(Device[home], count, x.dtype, memory), x.dtype)
    front = x.uop.permute((axis, *[a for a in range(x.ndim) if a != axis])) if axis else x.uop
    leaves[leaf] = front.reshape((x.shape[axis], count)) if shape != (count,) else front
    return _match_gradient(x._of(leaf.reshape(shape), x._device), x)


def _result(axis: Axes, batch: _BatchedGraphs, x: Tensor) -> Tensor:
    """The batched Tensor for `x`, the result for one example."""
    node = batch.of(x.uop)
    if axis is None:
        if node is not x.uop:
            raise ArgumentError("vmap: the result differs between examples")
        return x
    full = batch.full(x.uop)
    if not -full.ndim <= axis < full.ndim:
        raise AxisError(f"vmap: expected an axis of the results' shape {full.shape}, got {axis}")
    axis %= full.ndim
    order = [*range(1, axis + 1), 0, *range(axis + 1, full.ndim)]
    return _match_gradient(x._of(full.permute(tuple(order)) if axis else full, x._device), x)


def _match_gradient(out: Tensor, x: Tensor) -> Tensor:
    """`out`, which requires a gradient if `x`, from whose graph it comes, does."""
    out._requires_grad, out._derived = x.requires_grad, bool(x.requires_grad)
    return out


class _BatchedGraphs:
    """Batches graphs of one example for `size` examples. `done`: the batched form of each node that depends
    on the example."""

    def __init__(self, leaves: dict[UOp, UOp], size: Any) -> None:
        self.done, self.size = dict(leaves), size
        self._seen: set[UOp] = set()

    def of(self, root: UOp) -> UOp:
        """The batched node; the node itself where it is the same for all examples."""
        for node in root.toposort(lambda n: n not in self._seen and n not in self.done):
            if node not in self._seen and node not in self.done:
                self._seen.add(node)
                if not self.done.keys().isdisjoint(node.src):
                    self.done[node] = self._batch(node)
        return self.done.get(root, root)

    def full(self, node: UOp) -> UOp:
        """The batched node, also where it is the same for all examples."""
        batched_node = self.of(node)
        if batched_node is not node:
            return batched_node
        return node.reshape((1, *node.shape)).expand((self.size, *node.shape))

    def _batch(self, node: UOp) -> UOp:
        rule = _RULES.get(node.op)
        if rule is None:
            raise ArgumentError(
                f"vmap: expected a function that writes to nothing, got {node.op}: "
                "return the value that it would write, and keep custom kernels out"
            )
        return rule(self, node)

    def operands(self, node: UOp, sources: Sequence[UOp] | None = None) -> tuple[UOp, ...]:
        """The batched sources; constants keep their shape, as they fit any."""
        return tuple([s if s.op is Ops.CONST else self.full(s) for s in sources or node.src])


def _elementwise(batch: _BatchedGraphs, node: UOp) -> UOp:
    return UOp(node.op, node.dtype, batch.operands(node), node.arg)


def _movement(change: Callable[[_BatchedGraphs, UOp, Any], Any]) -> Callable[[_BatchedGraphs, UOp], UOp]:
    """A rule that changes the argument of an op with one source."""
    return lambda batch, node: UOp(node.op, node.dtype, batch.operands(node), change(batch, node, node.arg))


def _noop(batch: _BatchedGraphs, node: UOp) -> UOp:
    """A custom gradient: its rule is applied to one example, and the graph that it makes is batched."""
    if node.arg is None:
        return UOp(Ops.NOOP, node.dtype, batch.operands(node))
    sources = node.src

    def rule(g: UOp, batched: UOp) -> list[UOp | None]:
        count = max_numel(node.shape)
        memory = _NoMemory(Device[Device.DEFAULT], count * g.dtype.itemsize)
        leaf = UOp.buffer_of(Buffer(Device[Device.DEFAULT], count, g.dtype, memory), g.dtype)
        inner = _BatchedGraphs(
            {**batch.done, leaf: g.reshape((batch.size, count)), node: batched}, batch.size
        )
        gradients = node.arg(leaf.reshape(node.shape), node)
        return [None if x is None else inner.full(x) for x in gradients]

    return UOp(Ops.NOOP, node.dtype, tuple([batch.full(s) for s in sources]), rule)


def _reduction(batch: _BatchedGraphs, node: UOp, arg: Reduction) -> Reduction:
    return Reduction(arg.op, tuple([a + 1 for a in arg.axes]))


def _copy(batch: _BatchedGraphs, node: UOp, arg: Any) -> Any:
    if isinstance(arg, Sharding) and arg.axis is not None:
        return Sharding(arg.devices, arg.axis + 1)
    return arg


def _for(batch: _BatchedGraphs, node: UOp) -> UOp:
    """A FOR over all examples at once. A value that becomes different between examples in some iteration is
    batched from the first iteration on."""
    trip_count, body, result = node.arg
    inner = _BatchedGraphs({}, batch.size)
    operands = []
    body_placeholders = placeholders(body)
    for slot, s in enumerate(node.src):
        batched = batch.full(s) if slot < len(body.src) else batch.of(s)
        operands.append(batched)
        if batched is not s and slot in body_placeholders:
            inner.done[body_placeholders[slot]] = placeholder(slot, batched.shape, s.dtype)
    return for_loop(trip_count, [inner.full(b) for b in body.src], operands)[result]


_with_size = _movement(lambda batch, node, arg: (batch.size, *arg))
_RULES: dict[Ops, Callable[[_BatchedGraphs, UOp], UOp]] = dict.fromkeys(GroupOp.Elementwise, _elementwise)
_RULES |= {
    Ops.DETACH: _elementwise,
    Ops.CONTIGUOUS: _movement(lambda batch, node, arg: None),  # its Opts applied to the kernel of one example
    Ops.NOOP: _noop,
    Ops.COPY: _movement(_copy),
    Ops.RESHAPE: _with_size,
    Ops.EXPAND: _with_size,
    Ops.PERMUTE: _movement(lambda batch, node, arg: (0, *[a + 1 for a in arg])),
    Ops.PAD: _movement(lambda batch, node, arg: ((0, 0), *arg)),
    Ops.SHRINK: _movement(lambda batch, node, arg: ((0, batch.size), *arg)),
    Ops.FLIP: _movement(lambda batch, node, arg: tuple([a + 1 for a in arg])),
    Ops.SHEAR: _movement(lambda batch, node, arg: Shear(arg.axis + 1, arg.along + 1, *arg[2:])),
    Ops.REDUCE_AXIS: _movement(_reduction),
    Ops.SCAN_AXIS: _movement(_reduction),
    Ops.FOR: _for,
}
