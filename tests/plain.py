"""Arrays in plain Python, slow and obvious: the reference of the device suite where there is no numpy."""

from __future__ import annotations

import itertools
import math
import struct

from device_suite import NO_FLOAT64

from polygrad import Tensor
from polygrad.dtype import dtypes


def dtypes_of(device):
    """The dtypes that a device computes with."""
    return [d for d in dtypes.all if device not in NO_FLOAT64 or d is not dtypes.float64]


def keeps_denormals(device, dtype=dtypes.float32):
    """Whether a device computes with denormal numbers: a GPU may take them for zero."""
    tiny = 2.0**-149 if dtype == "float32" else 5e-324
    return device != "WEBGPU" or (Tensor([tiny], device=device, dtype=dtype) * 3.0).item() == 3 * tiny


def _indices(shape):
    return itertools.product(*map(range, shape))


def _flat(shape, index):
    at = 0
    for n, i in zip(shape, index, strict=True):
        at = at * n + i
    return at


class Plain:
    """An array: its shape, and its elements in row-major order."""

    def __init__(self, shape, elements):
        self.shape, self.elements = tuple(shape), list(elements)
        assert len(self.elements) == math.prod(self.shape), (self.shape, len(self.elements))

    def __getitem__(self, index):
        return self.elements[_flat(self.shape, index)]

    def _from(self, shape, where):
        """An array of `shape` whose element at an index is this one's at `where(index)`; 0 where that is
        None."""
        places = (where(i) for i in _indices(shape))
        zero = 0.0 if any(isinstance(x, float) for x in self.elements) else 0
        return Plain(shape, [zero if p is None else self[p] for p in places])

    def tolist(self):
        out = self.elements
        if not self.shape:
            return out[0]
        for axis in range(len(self.shape) - 1, 0, -1):
            n, rows = self.shape[axis], math.prod(self.shape[:axis])
            out = [out[i * n : i * n + n] for i in range(rows)]
        return out

    def reshape(self, shape):
        return Plain(shape, self.elements)

    def permute(self, order):
        back = sorted(range(len(order)), key=order.__getitem__)
        return self._from([self.shape[a] for a in order], lambda i: tuple(i[b] for b in back))

    def expand(self, shape):
        aligned_shape = (1,) * (len(shape) - len(self.shape)) + self.shape
        source = self.reshape(aligned_shape)
        return source._from(
            shape, lambda i: tuple(0 if n == 1 else x for n, x in zip(aligned_shape, i, strict=True))
        )

    def pad(self, pairs):
        shape = [lo + n + hi for n, (lo, hi) in zip(self.shape, pairs, strict=True)]

        def where(index):
            source_index = tuple(i - lo for i, (lo, _) in zip(index, pairs, strict=True))
            return (
                source_index
                if all(0 <= i < n for i, n in zip(source_index, self.shape, strict=True))
                else None
            )

        return self._from(shape, where)

    def shrink(self, pairs):
        shape = [hi - lo for lo, hi in pairs]
        return self._from(shape, lambda i: tuple(x + lo for x, (lo, _) in zip(i, pairs, strict=True)))

    def flip(self, axes):
        return self._from(
            self.shape,
            lambda index: tuple(
                n - 1 - i if a in axes else i for a, (i, n) in enumerate(zip(index, self.shape, strict=True))
            ),
        )

    def map(self, fn, *others):
        """`fn` of the elements of this array and of `others`, each broadcast to the largest shape."""
        arrays = [self, *others]
        ndim = max(len(a.shape) for a in arrays)
        padded = [(1,) * (ndim - len(a.shape)) + a.shape for a in arrays]
        shape = [next((n for n in column if n != 1), 1) for column in zip(*padded, strict=True)]
        return Plain(shape, map(fn, *(a.expand(shape).elements for a in arrays)))

    def reduce(self, fn, start, axes=None, keepdim=False):
        """`fn` folded over `axes` (all unless given), beginning with `start`."""
        axes = tuple(range(len(self.shape))) if axes is None else axes
        reduced_shape = [1 if a in axes else n for a, n in enumerate(self.shape)]
        out = [start] * math.prod(reduced_shape)
        for index, x in zip(_indices(self.shape), self.elements, strict=True):
            at = _flat(reduced_shape, tuple(0 if a in axes else i for a, i in enumerate(index)))
            out[at] = fn(out[at], x)
        return Plain(
            reduced_shape if keepdim else [n for a, n in enumerate(self.shape) if a not in axes], out
        )

    def sum(self, axes=None, keepdim=False):
        return self.reduce(lambda a, b: a + b, 0, axes, keepdim)

    def max(self, axes=None, keepdim=False):
        return self.reduce(max, -math.inf, axes, keepdim)

    def __matmul__(self, other):
        n = self.shape[-1]
        rows = Plain((*self.shape[:-1], 1, n), self.elements)
        order = [*range(len(other.shape) - 2), len(other.shape) - 1, len(other.shape) - 2]
        columns = other.permute(order)
        columns = columns.reshape((*columns.shape[:-2], 1, *columns.shape[-2:]))
        products = rows.map(lambda a, b: a * b, columns)
        return products.sum((len(products.shape) - 1,))


# --- numbers as a dtype holds them


def wrapped(value, dtype):
    """The integer `value` modulo the range of an integer dtype."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value > dtype.max else value


def rounded(value, dtype):
    """The float `value` rounded to a float dtype, ties to even."""
    if dtype == "float64" or value != value or math.isinf(value):
        return value
    if dtype == "bfloat16":
        bits = struct.unpack("<I", struct.pack("<f", rounded(value, dtypes.float32)))[0]
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    code = {"float32": "<f", "float16": "<e"}[dtype]
    try:
        return struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def converted(value, dst):
    """A Python number as a cast to `dst` gives it: floats truncate and saturate to integers, NaN to 0."""
    if dst.is_bool:
        return value != 0
    if dst.is_float:
        return rounded(float(value), dst)
    if isinstance(value, float):
        if value != value:
            return 0
        return dst.max if value >= dst.max else dst.min if value <= dst.min else int(value)
    return wrapped(int(value), dst)


def same(a, b):
    """Equal, NaN equal to NaN, and zeros of the same sign."""
    if isinstance(a, float) and isinstance(b, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def leaves(nested):
    """The elements of nested lists, in order."""
    return [x for part in nested for x in leaves(part)] if isinstance(nested, list) else [nested]


def assert_same(got, expected, what=""):
    """Nested lists (or numbers) are the same, element by element, to the bit but for NaNs."""
    a, b = leaves(got), leaves(expected)
    assert len(a) == len(b), f"{what}: expected {len(b)} elements, got {len(a)}"
    bad = [(i, x, y) for i, (x, y) in enumerate(zip(a, b, strict=True)) if not same(x, y)]
    assert not bad, (
        f"{what}: {len(bad)} of {len(a)} differ, first at {bad[0][0]}: "
        f"got {bad[0][1]!r}, expected {bad[0][2]!r}"
    )


def assert_equal(got, expected, what=""):
    """As `assert_same`, but either zero will do for the other."""
    assert_same([x + 0 for x in leaves(got)], [x + 0 for x in leaves(expected)], what)


def assert_close(got, expected, rtol, atol=0.0, what=""):
    """Nested lists of floats agree within `atol + rtol * |expected|`."""
    a, b = leaves(got), leaves(expected)
    assert len(a) == len(b), f"{what}: expected {len(b)} elements, got {len(a)}"
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        near = same(x, y) or abs(x - y) <= atol + rtol * abs(y)
        assert near, f"{what}: element {i}: expected {y!r} within rtol {rtol} atol {atol}, got {x!r}"
