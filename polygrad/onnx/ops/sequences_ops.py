"""Sequences, which are lists, and optionals, which are their value or None."""

from __future__ import annotations

from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import Body, Int, op
from polygrad.onnx.values import Constant, Value, as_list, integers_of, shape_of, tensor_of
from polygrad.tensor.tensor import Tensor


@op("SequenceEmpty", 11)
def sequence_empty(*, dtype: int = 1) -> list[Value]:
    return []


@op("SequenceConstruct", 11)
def sequence_construct(*xs: Value) -> list[Value]:
    return list(xs)


@op("SequenceAt", 11)
def sequence_at(xs: Value, position: Int) -> Value:
    return as_list(xs)[position]


@op("SequenceLength", 11)
def sequence_length(xs: Value) -> Constant:
    return Constant.of(len(as_list(xs)))


@op("SequenceInsert", 11)
def sequence_insert(xs: Value, x: Value, position: Int | None = None) -> list[Value]:
    values = list(as_list(xs))
    at = len(values) if position is None else position
    if not -len(values) <= at <= len(values):
        raise OnnxError(f"expected a position of up to {len(values)}, got {at}")
    values.insert(at, x)
    return values


@op("SequenceErase", 11)
def sequence_erase(xs: Value, position: Int | None = None) -> list[Value]:
    values = list(as_list(xs))
    del values[-1 if position is None else position]
    return values


@op("SequenceMap", 17)
def sequence_map(xs: Value, *more: Value, body: Body) -> tuple[list[Value], ...]:
    """The body for each element of the sequences; other inputs are the same for all elements."""
    rows = [body(x, *[y[i] if isinstance(y, list) else y for y in more]) for i, x in enumerate(as_list(xs))]
    return tuple(list(column) for column in zip(*rows))


@op("SplitToSequence", 11, 24)
def split_to_sequence(x: Tensor, sizes: Value = None, *, axis: int = 0, keepdims: int = 1) -> list[Value]:
    n = x.shape[x._axis(axis)]
    if sizes is None:
        parts = x.split(1, axis)
        return [part if keepdims else part.squeeze(axis) for part in parts]
    part_sizes = integers_of(sizes)
    if shape_of(sizes):
        return list(x.split(tuple(part_sizes), axis))
    step = part_sizes[0]
    return list(x.split(tuple(min(step, n - i) for i in range(0, n, step)), axis))


@op("ConcatFromSequence", 11)
def concat_from_sequence(xs: Value, *, axis: int, new_axis: int = 0, device: str | None) -> Tensor:
    tensors = [tensor_of(x, device) for x in as_list(xs)]
    return tensors[0].stack(*tensors[1:], dim=axis) if new_axis else tensors[0].cat(*tensors[1:], dim=axis)


@op("Optional", 15, 28)
def optional(x: Value = None, *, type: Any = None) -> Value:
    return x


@op("OptionalHasElement", 15, 18, 28)
def optional_has_element(x: Value = None) -> Constant:
    return Constant.of(x is not None, dtypes.bool)


@op("OptionalGetElement", 15, 18, 28)
def optional_get_element(x: Value) -> Value:
    if x is None:
        raise OnnxError("an optional without a value")
    return x
