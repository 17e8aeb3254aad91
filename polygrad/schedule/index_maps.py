"""Movement ops as index arithmetic: from the indices of a node's output to those of its input.

There is no view tracker: a reshape is division and remainder, a pad is a condition, and the algebra of
uop/symbolic.py does the merging. The idea is tinygrad's rangeify.

Indices are UOps of dtype index. Results are memoised: ranges are numbered per kernel, so the twelfth
layer of a network finds what the first one computed.
"""

from __future__ import annotations

import functools

from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.uop.args import Shear
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import simplify_under
from polygrad.uop.shapes import Shape
from polygrad.uop.symbolic import simplify

Indices = tuple[UOp, ...]

ZERO = UOp.index(0)
TRUE = UOp.const(dtypes.bool, True)


def input_indices(node: UOp, indices: Indices, valid: UOp) -> tuple[Indices, UOp]:
    """Where a movement op reads its input, and under which condition, given where its output is wanted."""
    return _input_indices(node.op, node.src[0].shape, node.shape, node.arg, indices, valid)


@functools.lru_cache(maxsize=1 << 15)
def _input_indices(
    op: Ops, in_shape: Shape, out_shape: Shape, arg: object, indices: Indices, valid: UOp
) -> tuple[Indices, UOp]:
    match op:
        case Ops.RESHAPE:
            return _reshape(in_shape, out_shape, indices, valid), valid
        case Ops.PERMUTE:
            permuted = [ZERO] * len(indices)
            for i, axis in enumerate(arg):  # type: ignore[var-annotated, arg-type]
                permuted[axis] = indices[i]
            return tuple(permuted), valid
        case Ops.EXPAND:
            return tuple(
                i if a == b else ZERO for i, a, b in zip(indices, in_shape, out_shape, strict=True)
            ), valid
        case Ops.SHRINK:
            pairs = zip(indices, arg, strict=True)  # type: ignore[call-overload]
            return tuple(i if _is_zero(lo) else simplify(i + lo) for i, (lo, _) in pairs), valid
        case Ops.FLIP:
            return tuple(
                simplify((n - 1) - i) if axis in arg else i  # type: ignore[operator]
                for axis, (i, n) in enumerate(zip(indices, in_shape, strict=True))
            ), valid
        case Ops.SHEAR:
            sheared = list(indices)
            assert isinstance(arg, Shear)
            sheared[arg.axis] = simplify(indices[arg.axis] + indices[arg.along] * arg.step + arg.start)
            return tuple(sheared), valid
        case Ops.PAD:
            out = []
            for i, n, (lo, hi) in zip(indices, in_shape, arg, strict=True):  # type: ignore[call-overload]
                if not _is_zero(lo):
                    valid = valid & (i < lo).logical_not()
                if not _is_zero(hi):
                    valid = valid & (i < n + lo)
                out.append(i if _is_zero(lo) else i - lo)
            valid = simplify(valid)
            return tuple(simplify_under(simplify(i), valid) for i in out), valid
        case _:
            raise InternalError(f"{op} is not a movement op")


def _is_zero(n: object) -> bool:
    return isinstance(n, int) and n == 0


def _reshape(in_shape: Shape, out_shape: Shape, indices: Indices, valid: UOp) -> Indices:
    """Equal leading and trailing sizes pass through; what is between goes through one flat index."""
    head = 0
    while head < min(len(in_shape), len(out_shape)) and in_shape[head] == out_shape[head]:
        head += 1
    tail = 0
    while tail < min(len(in_shape), len(out_shape)) - head and in_shape[-1 - tail] == out_shape[-1 - tail]:
        tail += 1
    inner_in = in_shape[head : len(in_shape) - tail]
    flat = flat_index(out_shape[head : len(out_shape) - tail], indices[head : len(indices) - tail])
    middle: list[UOp] = []
    for position, n in enumerate(reversed(inner_in)):
        if isinstance(n, int) and n == 1:
            middle.append(ZERO)
            continue
        last = all(isinstance(m, int) and m == 1 for m in inner_in[: len(inner_in) - 1 - position])
        middle.append(simplify_under(flat if last else simplify(flat % n), valid))
        flat = simplify(flat // n)
    return indices[:head] + tuple(reversed(middle)) + indices[len(indices) - tail :]


@functools.lru_cache(maxsize=1 << 15)
def flat_index(shape: Shape, indices: Indices) -> UOp:
    """The row-major position of `indices` in `shape`."""
    out, stride = ZERO, UOp.index(1)
    terms = []
    for n, i in zip(reversed(shape), reversed(indices), strict=True):
        if i is not ZERO:
            terms.append(i * stride)
        stride = stride * n
    for term in terms:
        out = term if out is ZERO else out + term
    return simplify(out)
