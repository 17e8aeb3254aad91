"""Shapes, axes and parts; tensors made of constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import ceildiv, prod
from polygrad.onnx.elements import element_of
from polygrad.onnx.op_table import Int, Ints, Known, op
from polygrad.onnx.values import (
    Constant,
    Strings,
    Value,
    element_of_value,
    held,
    scalar_of,
    shape_of,
)
from polygrad.tensor.tensor import Tensor

# --- properties of a value


@op("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
def identity(x: Value) -> Value:
    return x


@op("Shape", 1, 13)
def shape_1(x: Value) -> Constant:
    return Constant.of(list(shape_of(x)))


@op("Shape", 15, 19, 21, 23, 24, 25)
def shape(x: Value, *, start: int = 0, end: int | None = None) -> Constant:
    return Constant.of(list(shape_of(x)[start:end]))


@op("Size", 1, 13, 19, 21, 23, 24, 25)
def size(x: Value) -> Constant:
    return Constant.of(prod(shape_of(x)))


# --- constants


@op("Constant", 1, 9, 11, 12, 13, 19, 21, 23, 24, 25)
def constant(
    *,
    value: Value = None,
    sparse_value: Value = None,
    value_int: int | None = None,
    value_ints: list[int] | None = None,
    value_float: float | None = None,
    value_floats: list[float] | None = None,
    value_string: str | None = None,
    value_strings: list[str] | None = None,
) -> Value:
    for integers in (value_int, value_ints):
        if integers is not None:
            return Constant.of(integers)
    for floats in (value_float, value_floats):
        if floats is not None:
            return Constant.of(floats, dtypes.float32)
    if value_string is not None:
        return Strings((), [value_string])
    if value_strings is not None:
        return Strings((len(value_strings),), value_strings)
    tensor = value if value is not None else sparse_value
    if tensor is None:
        raise OnnxError("a Constant without a value")
    return tensor


@op("ConstantOfShape", 9, 20, 21, 23, 24, 25)
def constant_of_shape(shape: Ints, *, value: Value = None) -> Value:
    if value is None:
        return Tensor.zeros(tuple(shape))
    element = element_of_value(value)
    return held(Tensor.full(tuple(shape), scalar_of(value), dtype=element.dtype), element)


@op("EyeLike", 9, 22)
def eye_like(x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    rows, columns = shape_of(x)
    element = element_of_value(x) if dtype is None else element_of(dtype, "dtype")
    i = Tensor.arange(rows).reshape(-1, 1)
    return held((i + k).eq(Tensor.arange(columns)), element)


@op("Range", 11, 27)
def range_(start: Value, limit: Value, delta: Value, *, stash_type: int = 1) -> Value:
    element = element_of_value(start)
    first, last, step = (scalar_of(v) for v in (start, limit, delta))
    if element.dtype.is_int:
        return Tensor.arange(int(first), int(last), int(step), dtype=element.dtype)
    count = max(math.ceil((last - first) / step), 0)
    wide = element.dtype if element.dtype.itemsize > 4 else dtypes.float32
    return (Tensor.arange(count, dtype=dtypes.int32).cast(wide) * step + first).cast(element.dtype)


# --- shapes


@op("Reshape", 5, 13, 14, 19, 21, 23, 24, 25, keeps_type=True)
def reshape(x: Tensor, shape: Ints, *, allowzero: int = 0) -> Tensor:
    return x.reshape(
        [x.shape[i] if isinstance(n, int) and n == 0 and not allowzero else n for i, n in enumerate(shape)]
    )


@op("Reshape", 1)
def reshape_1(x: Tensor, *, shape: Sequence[int], consumed_inputs: Any = None) -> Tensor:
    return reshape(x, list(shape))


@op("Flatten", 1, 9, 11, 13, 21, 23, 24, 25, keeps_type=True)
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    at = axis + x.ndim if axis < 0 else axis
    return x.reshape(prod(x.shape[:at]), prod(x.shape[at:]))


@op("Squeeze", 13, 21, 23, 24, 25, keeps_type=True)
def squeeze(x: Tensor, axes: Ints | None = None) -> Tensor:
    chosen = x._axes(tuple(axes)) if axes else [i for i, n in enumerate(x.shape) if n == 1]
    if any(x.shape[a] != 1 for a in chosen):
        raise OnnxError(f"expected axes of size 1, got axes {axes} of shape {x.shape}")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in chosen])


@op("Squeeze", 1, 11)
def squeeze_1(x: Tensor, *, axes: Sequence[int] = ()) -> Tensor:
    return squeeze(x, list(axes))


@op("Unsqueeze", 13, 21, 23, 24, 25, keeps_type=True)
def unsqueeze(x: Tensor, axes: Ints) -> Tensor:
    rank = x.ndim + len(axes)
    chosen = {a + rank if a < 0 else a for a in axes}
    if len(chosen) != len(axes) or not all(0 <= a < rank for a in chosen):
        raise OnnxError(f"expected distinct axes of {rank}, got {axes}")
    sizes = iter(x.shape)
    return x.reshape([1 if i in chosen else next(sizes) for i in range(rank)])


@op("Unsqueeze", 1, 11)
def unsqueeze_1(x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return unsqueeze(x, list(axes))


@op("Transpose", 1, 13, 21, 23, 24, 25, keeps_type=True)
def transpose(x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    return x.permute(tuple(perm) if perm is not None else tuple(range(x.ndim))[::-1])


@op("Expand", 8, 13)
def expand(x: Tensor, shape: Ints) -> Tensor:
    rank = max(x.ndim, len(shape))
    old_shape, new_shape = [1] * (rank - x.ndim) + list(x.shape), [1] * (rank - len(shape)) + list(shape)
    return x.reshape(old_shape).expand([n if m == 1 else m for n, m in zip(new_shape, old_shape)])


@op("Tile", 6, 13)
def tile(x: Tensor, repeats: Ints) -> Tensor:
    return x.repeat(tuple(repeats)) if x.ndim else x


@op("Tile", 1)
def tile_1(x: Tensor, tiles: Int, axis: Int) -> Tensor:
    return x.repeat([tiles if i == axis % x.ndim else 1 for i in range(x.ndim)])


# --- parts


@op("Concat", 4, 11, 13)
def concat(*xs: Tensor, axis: int) -> Tensor:
    return xs[0].cat(*xs[1:], dim=axis)


@op("Concat", 1)
def concat_1(*xs: Tensor, axis: int = 1) -> Tensor:
    return xs[0].cat(*xs[1:], dim=axis)


@op("Split", 18)
def split(
    x: Tensor, sizes: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None, outputs: int
) -> tuple[Tensor, ...]:
    if sizes is None:
        n, parts = x.shape[x._axis(axis)], num_outputs or outputs
        if not 0 < parts <= max(outputs, 1):
            raise OnnxError(f"num_outputs is {num_outputs}, the node has {outputs} outputs")
        step = ceildiv(n, parts)
        sizes = [max(min(step, n - i * step), 0) for i in range(parts)]
    return x.split(tuple(sizes), axis)


@op("Split", 13)
def split_13(x: Tensor, sizes: Ints | None = None, *, axis: int = 0, outputs: int) -> tuple[Tensor, ...]:
    return split(x, sizes, axis=axis, outputs=outputs)


@op("Split", 2, 11)
def split_2(
    x: Tensor, *, axis: int = 0, split: Sequence[int] | None = None, outputs: int
) -> tuple[Tensor, ...]:
    return split_13(x, None if split is None else list(split), axis=axis, outputs=outputs)


@op("Split", 1)
def split_1(
    x: Tensor, sizes: Ints | None = None, *, axis: int = 0, split: Sequence[int] | None = None, outputs: int
) -> tuple[Tensor, ...]:
    return split_13(x, sizes if split is None else list(split), axis=axis, outputs=outputs)


@op("Slice", 10, 11, 13)
def slice_(
    x: Tensor, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None
) -> Tensor:
    where: list[slice] = [slice(None)] * x.ndim
    for i, (start, end) in enumerate(zip(starts, ends)):
        axis = x._axis(i if axes is None else axes[i])
        step = 1 if steps is None else steps[i]
        n = x.shape[axis]
        if step < 0:  # an end before the first element
            where[axis] = slice(
                start, None if isinstance(end, int) and isinstance(n, int) and end < -n else end, step
            )
        else:
            where[axis] = slice(start, end, step)
    return x[tuple(where)]


@op("Slice", 1)
def slice_1(
    x: Tensor, *, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] | None = None
) -> Tensor:
    return slice_(x, list(starts), list(ends), None if axes is None else list(axes))


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}


@op("Pad", 18, 19, 21, 23, 24, 25, keeps_type=True)
def pad(
    x: Tensor, pads: Ints, value: Known = None, axes: Ints | None = None, *, mode: str = "constant"
) -> Tensor:
    chosen = range(x.ndim) if axes is None else [x._axis(a) for a in axes]
    if mode not in _MODES or len(pads) != 2 * len(chosen):
        raise OnnxError(f"expected a mode of {', '.join(_MODES)} and 2 pads an axis, got {mode!r} and {pads}")
    pairs: list[Any] = [(0, 0)] * x.ndim
    for i, axis in enumerate(chosen):
        pairs[axis] = (pads[i], pads[i + len(chosen)])
    fill = 0 if value is None else scalar_of(value)
    if mode != "constant":
        return x.pad(pairs, mode=_MODES[mode])
    return (
        x.cast(dtypes.int32).pad(pairs, value=int(fill)).cast(x.dtype)
        if x.dtype.is_bool
        else x.pad(pairs, value=fill)
    )


@op("Pad", 11, 13)
def pad_11(x: Tensor, pads: Ints, value: Known = None, *, mode: str = "constant") -> Tensor:
    return pad(x, pads, value, mode=mode)


@op("Pad", 2)
def pad_2(x: Tensor, *, pads: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    return pad(x, list(pads), Constant.of(value, dtypes.float32), mode=mode)


@op("Pad", 1)
def pad_1(x: Tensor, *, paddings: Sequence[int], mode: str = "constant", value: float = 0.0) -> Tensor:
    return pad_2(x, pads=paddings, mode=mode, value=value)


@op("CenterCropPad", 18)
def center_crop_pad(x: Tensor, shape: Ints, *, axes: Sequence[int] | None = None) -> Tensor:
    pairs: list[tuple[int, int]] = [(0, 0)] * x.ndim
    for axis, size in zip(range(x.ndim) if axes is None else axes, shape):
        n = x.shape[axis]
        cut, added = max(n - size, 0), max(size - n, 0)
        pairs[axis % x.ndim] = (added // 2 - cut // 2, added - added // 2 - (cut - cut // 2))
    return x.pad(pairs)


@op("Trilu", 14)
def trilu(x: Tensor, k: Int | None = None, *, upper: int = 1) -> Tensor:
    return x.triu(k or 0) if upper else x.tril(k or 0)


# --- between channels and space


@op("DepthToSpace", 11, 13, 28)
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    order = "(r s c)" if mode == "DCR" else "(c r s)"
    return x.rearrange(f"n {order} h w -> n c (h r) (w s)", r=blocksize, s=blocksize)


@op("DepthToSpace", 1)
def depth_to_space_1(x: Tensor, *, blocksize: int) -> Tensor:
    return depth_to_space(x, blocksize=blocksize)


@op("SpaceToDepth", 1, 13)
def space_to_depth_1(x: Tensor, *, blocksize: int) -> Tensor:
    return space_to_depth(x, blocksize=blocksize)


@op("SpaceToDepth", 28)
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    order = "(r s c)" if mode == "DCR" else "(c r s)"
    return x.rearrange(f"n c (h r) (w s) -> n {order} h w", r=blocksize, s=blocksize)


@op("ReverseSequence", 10, 28)
def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first `lengths[i]` steps of each sequence, last first; the others stay."""
    by_time = x.transpose(0, time_axis) if time_axis else x
    steps = Tensor.arange(by_time.shape[0], dtype=dtypes.int64).reshape(-1, 1)
    ends = lengths.cast(dtypes.int64).reshape(1, -1)
    places = (steps < ends).where(ends - 1 - steps, steps)
    places = places.reshape(*places.shape, *[1] * (x.ndim - 2)).expand(by_time.shape)
    out = by_time.gather(0, places)
    return out.transpose(0, time_axis) if time_axis else out
