"""Functions with a custom gradient, and functions whose gradient recomputes values (checkpoints)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from polygrad.dtype import dtypes
from polygrad.engine.realize import buffer_from
from polygrad.errors import GradientError
from polygrad.gradient import carries_gradient, gradient, is_leaf
from polygrad.tensor.core.base import TensorBase, broadcast_constant
from polygrad.uop.args import Leaf
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

T = TypeVar("T")


def custom_gradient(forward: Callable[..., T], backward: Callable[..., Any]) -> Callable[..., T]:
    """`forward`, a function of Tensors that returns a Tensor or a tuple of them, with a custom gradient.

    `backward(gradient, value, *inputs)` returns the gradient of each input (a Tensor of its shape), or None.
    It consists of Tensor methods, so it is lazy and can be differentiated again. With several results,
    `gradient` and `value` are tuples; `backward` is called for each result that is differentiated, with zeros
    as the gradients of the others. Arguments that are not Tensors are passed to `forward` only.

        clipped = custom_gradient(lambda x: x, lambda g, y, x: g.clamp(-1, 1))

    Raises GradientError and ShapeError, when it is differentiated, for gradients that do not fit.
    """

    @functools.wraps(forward)
    def function(*args: Any, **kwargs: Any) -> Any:
        inputs: list[Any] = [x for x in args if isinstance(x, TensorBase)]
        # no gradient flows through forward's own graph: its inputs are detached
        cut = [x._detached() if isinstance(x, TensorBase) else x for x in args]  # type: ignore[attr-defined]
        out: Any = forward(*cut, **kwargs)
        results = out if isinstance(out, tuple) else (out,)
        if not results or not all(isinstance(x, TensorBase) for x in results) or not inputs:
            raise GradientError(
                "custom_gradient: expected a function of Tensors that gives a Tensor or a tuple of them, got "
                f"a {type(out).__name__}"
            )
        if out is not results:
            return out._with_backward(inputs, backward)

        def of_one(i: int) -> Callable[..., Any]:
            def rule(g: Any, _: Any, *sources: Any) -> Any:
                zeros = [
                    g if j == i else x._of(broadcast_constant(x.dtype, 0.0, x.shape))
                    for j, x in enumerate(results)
                ]
                return backward(tuple(zeros), results, *sources)

            return rule

        return tuple([x._with_backward(inputs, of_one(i)) for i, x in enumerate(results)])

    return function


def checkpoint(function: Callable[..., T], *inputs: Any) -> T:
    """function(*inputs), whose gradient recomputes the values that it needs instead of storing them.

    Values within `function`, which returns one Tensor, that depend on the inputs (float Tensors) are
    recomputed when the gradient is computed. Random numbers are the same, and so are the gradients of the
    inputs and of all Tensors that `function` uses. Raises GradientError for a result that is not a float
    Tensor.
    """
    out: Any = function(*inputs)
    if not isinstance(out, TensorBase) or not out.dtype.is_float:
        raise GradientError(f"checkpoint: expected a float Tensor as the result, got {out!r}")
    sources = [x.uop for x in inputs if isinstance(x, TensorBase) and x.dtype.is_float]
    count, leaves = len(sources), _inputs_of(out.uop, sources)
    zero = out._of(buffer_from(out.device, dtypes.int32, memoryview(bytes(4))), out._device).uop

    def rule(g: UOp, node: UOp) -> list[UOp | None]:
        value, cuts, free_values = node.src[0], node.src[1 : 1 + count], node.src[1 + count : -1]
        # 1.0, computed from memory that holds 0 and from the gradient: nothing is recomputed before the
        # gradient
        first = g.reshape((g.size,)).shrink(((0, 1),)) if g.shape else g.reshape((1,))
        one = (UOp(Ops.CMPLT, dtypes.bool, (first, first)).cast(dtypes.int32) & node.src[-1]) + 1
        cut = {x: x.detach() for x in cuts}  # the gradient stops there; afterwards the inputs replace them
        recomputed = {x: _times_one(cut[x], one) for x in cuts}
        # a stored value may be read in several shapes: each gets only its own gradient
        ends = {x: x if is_leaf(x) else x.detach(Leaf(lambda: None)) for x in free_values}
        gradients = gradient(value.substitute(recomputed | ends), g, [*recomputed.values(), *ends.values()])
        end_of = {end: x for x, end in [*cut.items(), *ends.items()] if end is not x}
        grads = [gradients.get(recomputed.get(x) or ends[x]) for x in (*cuts, *free_values)]
        return [*[None if d is None else d.substitute(end_of) for d in grads], None]

    node = UOp(Ops.NOOP, out.dtype, (out.uop, *sources, *leaves, zero), rule)
    result: Any = out._result(node)
    return result


def _times_one(x: UOp, one: UOp) -> UOp:
    factor = one.cast(x.dtype).reshape((1,) * x.ndim).expand(x.shape)
    return UOp(Ops.MUL, x.dtype, (x, factor))


def _is_stored(n: UOp) -> bool:
    """Whether a value is in memory, or a reshape of one that is."""
    if n.op is Ops.RESHAPE:
        return n.value is not None or _is_stored(n.src[0])
    return n.value is not None or not n.src or n.op is Ops.AFTER


def _inputs_of(root: UOp, cuts: list[UOp]) -> list[UOp]:
    """The leaves and the stored float values that a node depends on other than through `cuts`. Memory that
    was written to counts as stored: a write is not repeated with other values."""

    def is_input(n: UOp) -> bool:
        return is_leaf(n) or (carries_gradient(n) and _is_stored(n) and n.op is not Ops.CONST)

    nodes = root.toposort(lambda n: n not in cuts and carries_gradient(n) and not _is_stored(n))
    return [n for n in nodes if n not in cuts and is_input(n)]
