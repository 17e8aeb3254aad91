"""Padding: elements added around each axis, constant or copied from the Tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.base import broadcast_constant
from polygrad.tensor.core.sizes import (
    args_of,
    fits,
    is_negative,
    is_size,
    larger,
    python_number,
    same_size,
    smaller,
)
from polygrad.tensor.joining import JoiningMixin
from polygrad.uop.shapes import Sint


class PaddingMixin(JoiningMixin):
    """`pad` and `pad_to`."""

    __slots__ = ()

    def pad(self, padding: Sequence[Any], mode: str = "constant", value: Any = 0.0) -> Self:
        """Elements added around each axis.

        `padding`: a pair (before, after) or None for every axis, or a flat sequence as torch's: (before,
        after) of the last axis first. Negative sizes cut. As in torch, the cut comes first if `mode` is
        'constant' or 'circular'; else the padding is made from the whole axis. `mode`: 'constant' (`value`),
        'reflect', 'replicate' or 'circular'. Raises ArgumentError, ShapeError.

        >>> Tensor([1, 2]).pad((1, 2)).tolist()
        [0, 1, 2, 0, 0]
        >>> Tensor([1, 2, 3]).pad((1, 1), mode="reflect").tolist()
        [2, 1, 2, 3, 2]
        """
        if mode not in ("constant", "reflect", "replicate", "circular"):
            raise ArgumentError(f"pad: expected mode constant, reflect, replicate or circular, got {mode!r}")
        pairs = self._padding(padding)
        if mode != "constant":
            return self._pad_from_inside(pairs, mode)
        out = self
        if any(is_negative(n) for p in pairs for n in p):
            out = self.shrink(
                [(-smaller(lo, 0), s + smaller(hi, 0)) for (lo, hi), s in zip(pairs, self.shape, strict=True)]
            )
            pairs = tuple([(larger(lo, 0), larger(hi, 0)) for lo, hi in pairs])
        padded_node = out.uop.pad(pairs)
        if value == 0:
            return out._with(padded_node)
        is_inside = broadcast_constant(dtypes.bool, True, out.shape).pad(pairs)
        dtype = out._scalar(value)
        return out._with(
            is_inside.where(padded_node.cast(dtype), broadcast_constant(dtype, value, padded_node.shape))
        )

    def pad_to(self, shape: Any, *args: Any, value: Any = 0) -> Self:
        """`value` added behind each axis up to `shape`; None keeps an axis. Raises ShapeError.

        >>> Tensor([1, 2]).pad_to(4).tolist()
        [1, 2, 0, 0]
        """
        new_shape = args_of(shape, args)
        if len(new_shape) != self.ndim:
            raise ShapeError(f"pad_to: expected {self.ndim} sizes for shape {self.shape}, got {new_shape}")
        return self.pad(
            [None if w is None else (0, w - s) for w, s in zip(new_shape, self.shape, strict=True)],
            value=value,
        )

    def _padding(self, padding: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
        if not isinstance(padding, Sequence) or isinstance(padding, str):
            raise ArgumentError(
                "pad: expected (before, after) for each axis, or a flat sequence from the last axis on, got "
                f"{padding!r}"
            )
        padding = [python_number(p) for p in padding]
        if all(is_size(p) for p in padding) and len(padding) > 0:
            if len(padding) % 2 or len(padding) // 2 > self.ndim:
                raise ArgumentError(
                    f"pad: expected at most {self.ndim} pairs for shape {self.shape}, got {tuple(padding)}"
                )
            pairs = [(padding[i], padding[i + 1]) for i in range(0, len(padding), 2)][::-1]
            return ((0, 0),) * (self.ndim - len(pairs)) + tuple(pairs)
        if len(padding) != self.ndim:
            raise ArgumentError(f"pad: expected {self.ndim} pairs for shape {self.shape}, got {len(padding)}")
        for p in padding:
            is_pair = isinstance(p, Sequence) and len(p) == 2
            is_pair = is_pair and all(is_size(n) or hasattr(n, "__index__") for n in p)
            if p is not None and not is_pair:
                raise ArgumentError(f"pad: expected (before, after) or None for each axis, got {p!r}")
        return tuple([(0, 0) if p is None else (p[0], p[1]) for p in padding])

    def _pad_from_inside(self, pairs: tuple[tuple[Sint, Sint], ...], mode: str) -> Self:
        out = self
        for axis, (lo, hi) in enumerate(pairs):
            if mode == "circular":
                out = out._crop(axis, lo, hi)
            n = out.shape[axis]
            front, back = larger(lo, 0), larger(hi, 0)
            largest = larger(front, back)
            limit = n - 1 if mode == "reflect" else n if mode == "circular" else largest
            if not fits(largest, limit) or not fits(1, n):
                raise ShapeError(
                    f"pad: expected {mode} padding of at most {limit} for an axis of size {n}, got {(lo, hi)}"
                )
            parts = [out]
            if not same_size(front, 0):
                parts.insert(0, out._border(axis, mode, front, n, front=True))
            if not same_size(back, 0):
                parts.append(out._border(axis, mode, back, n, front=False))
            out = parts[0].cat(*parts[1:], dim=axis)
            if mode != "circular":
                out = out._crop(axis, lo, hi)
        return out

    def _crop(self, axis: int, lo: Sint, hi: Sint) -> Self:
        """Axis `axis` without its first -lo elements if lo < 0, and without its last -hi elements if hi <
        0."""
        if not is_negative(lo) and not is_negative(hi):
            return self
        n = self.shape[axis]
        bounds = (-smaller(lo, 0), n + smaller(hi, 0))
        return self.shrink([bounds if i == axis else None for i in range(self.ndim)])

    def _border(self, axis: int, mode: str, count: Sint, n: Sint, front: bool) -> Self:
        if mode == "reflect":
            lo, hi = (1, 1 + count) if front else (n - 1 - count, n - 1)
        elif mode == "circular":
            lo, hi = (n - count, n) if front else (0, count)
        else:
            lo, hi = (0, 1) if front else (n - 1, n)
        part = self.shrink([(lo, hi) if i == axis else None for i in range(self.ndim)])
        if mode == "reflect":
            return part.flip(axis)
        return (
            part
            if mode == "circular"
            else part.expand([count if i == axis else -1 for i in range(self.ndim)])
        )
