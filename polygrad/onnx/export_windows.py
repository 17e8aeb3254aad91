"""Convolutions and pooling in a tensor graph: sums and maxima of windows, recognised by the positions that
they read.

    sum(x[n, g C + c, s y + d i] * w[g P + p, c, i] for c < C, i)  =  Conv(x, w)[n, g P + p, y]

From a reduction the movement ops are followed down, with indices instead of views (schedule/index_maps.py),
until a node is read at such positions without a condition. The PAD below that is the padding. So windows are
found whichever method made them. Must not know: how nodes are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from polygrad.dtype import dtypes
from polygrad.schedule.index_maps import TRUE, ZERO, Indices, input_indices
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import Sint

PASSED = frozenset({Ops.NOOP, Ops.DETACH, Ops.CONTIGUOUS, Ops.COPY})


class Windows(NamedTuple):
    """An op over windows of `image`, of shape (n, channels, *spatial). `op`: Conv, ConvTranspose, MaxPool, or
    AveragePool, whose result is to be multiplied with the size of a window. `pads`: those before each axis,
    then those behind."""

    op: str
    image: UOp
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    weight: UOp | None = None
    groups: int = 1
    output_padding: tuple[int, ...] = ()


def find_windows(u: UOp) -> Windows | None:
    """The op over windows of float32 that a reduction is; None if it is no such op."""
    if u.op is not Ops.REDUCE_AXIS or u.dtype is not dtypes.float32:
        return None
    source = _strip(u.src[0])
    if u.arg.op is Ops.MAX:
        return _find_pool(u, source, "MaxPool")
    if u.arg.op is not Ops.ADD:
        return None
    if source.op is not Ops.MUL:
        return _find_pool(u, source, "AveragePool")
    return _find_convolution(u, *source.src) or _find_convolution(u, *reversed(source.src))


def _strip(u: UOp) -> UOp:
    while u.op in PASSED:
        u = u.src[0]
    return u


def _ranges(shape: Sequence[Sint]) -> list[UOp]:
    return [ZERO if isinstance(n, int) and n == 1 else UOp.range(n, i) for i, n in enumerate(shape)]


def _reads(u: UOp, ranges: Sequence[UOp]) -> Iterator[tuple[UOp, Indices]]:
    """The sources of the movement ops of `u`, from the top down, each with the indices at which `u` reads it
    at `ranges`; up to the first read with a condition."""
    indices, valid = tuple(ranges), TRUE
    while valid is TRUE:
        yield u, indices
        while u.op in PASSED:
            u = u.src[0]
        if u.op not in GroupOp.Movement:
            return
        indices, valid = input_indices(u, indices, valid)
        u = u.src[0]


def _is_sum(index: UOp, terms: dict[UOp, int], offset: int = 0) -> bool:
    """Whether an index is the sum of these ranges with these factors."""
    found_terms, constant = linear_terms(index)
    return constant == offset and found_terms == {r: f for r, f in terms.items() if r is not ZERO}


def _steps(index: UOp, y: UOp, i: UOp) -> tuple[int, int] | None:
    """(stride, dilation) of a position that is stride * y + dilation * i; 1 where the range has one value. A
    position that does not depend on y or i is of a broadcast axis."""
    terms, constant = linear_terms(index)
    if constant or terms.keys() != {y, i} - {ZERO} or any(f < 1 for f in terms.values()):
        return None
    return terms.get(y, 1), terms.get(i, 1)


def _sizes(shape: Sequence[Sint]) -> tuple[int, ...] | None:
    return tuple(int(n) for n in shape) if all(isinstance(n, int) for n in shape) else None  # type: ignore[call-overload]


def _is_last(u: UOp, count: int) -> bool:
    """Whether a reduction goes over its last `count` axes; those of size 1 may be left out."""
    first = len(u.shape) - count
    axes, shape = set(u.arg.axes), u.src[0].shape
    return all(a >= first for a in axes) and all(a in axes or shape[a] == 1 for a in range(first, len(shape)))


class _Image(NamedTuple):
    node: UOp
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    sheared: bool


def _find_image(
    u: UOp, ranges: list[UOp], channel: dict[UOp, int], channels: Sint, y: list[UOp], i: list[UOp]
) -> _Image | None:
    """The image that `u` has windows of: its batch is the first range, its channel the sum `channel`, and it
    has `channels` channels."""
    sheared = False
    for node, at in _reads(u, ranges):
        # An index of an axis of size 1 is 0, as is that of a part of another axis.
        if len(at) != 2 + len(y) or node.shape[0] != u.shape[0] or node.shape[1] != channels:
            sheared |= node.op is Ops.SHEAR
            continue
        if _is_sum(at[0], {ranges[0]: 1}) and _is_sum(at[1], channel):
            steps = [_steps(*three) for three in zip(at[2:], y, i)]
            if all(s is not None for s in steps):
                strides, dilations = zip(*steps)  # type: ignore[arg-type]
                return _Image(node, strides, dilations, sheared)
        sheared |= node.op is Ops.SHEAR
    return None


def _pads(
    image: _Image, padded: UOp | None, out: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[UOp, tuple[int, ...]] | None:
    """The source of the padding and its widths, with which there are exactly `out` windows; None if there are
    none. `padded`: the PAD that the image may be, if its padding is the one that the op adds."""
    source, before = image.node, [0] * len(out)
    if padded is not None and padded.op is Ops.PAD:
        pairs = padded.arg
        if any(not isinstance(n, int) or n < 0 for p in pairs for n in p) or any(
            n for p in pairs[:2] for n in p
        ):
            return None
        source, before = padded.src[0], [lo for lo, _ in pairs[2:]]
    sizes = _sizes(source.shape[2:])
    if sizes is None:
        return None
    behind = []
    for n, lo, count, k, s, d in zip(sizes, before, out, kernel, image.strides, image.dilations):
        reach = (count - 1) * s + (k - 1) * d + 1
        hi = max(reach - lo - n, 0)
        if (n + lo + hi - (k - 1) * d - 1) // s + 1 != count:
            return None
        behind.append(hi)
    return source, (*before, *behind)


# --- pooling


def _find_pool(u: UOp, source: UOp, op: str) -> Windows | None:
    dims, odd = divmod(len(source.shape) - 2, 2)
    if odd or dims < 1 or not _is_last(u, dims):
        return None
    spatial = _sizes(source.shape[2:])
    ranges = _ranges(source.shape)
    if spatial is None:
        return None
    out, kernel, y, i = spatial[:dims], spatial[dims:], ranges[2 : 2 + dims], ranges[2 + dims :]
    image = _find_image(source, ranges, {ranges[1]: 1}, source.shape[1], y, i)
    if image is None or not (image.sheared or op == "MaxPool" or dims > 1):  # a sum of the last axis
        return None
    padded: UOp | None = _strip(image.node)
    if op == "MaxPool":
        image, padded = _filled_with_least(image)
    padded_image = _pads(image, padded, out, kernel)
    if padded_image is None or any(
        p >= k for p, k in zip(padded_image[1], kernel * 2)
    ):  # which runtimes refuse
        return None
    return Windows(op, padded_image[0], kernel, image.strides, image.dilations, padded_image[1])


def _filled_with_least(image: _Image) -> tuple[_Image, UOp | None]:
    """An image, and its PAD if the padding is -inf."""
    u = _strip(image.node)
    if u.op is not Ops.WHERE:
        return image, None
    is_inside, padded, fill = (_strip(s) for s in u.src)
    if _constant(is_inside) is True:
        return image._replace(node=padded), None
    if is_inside.op is not Ops.PAD or padded.op is not Ops.PAD or is_inside.arg != padded.arg:
        return image, None
    is_least = _constant(fill) == float("-inf") and _constant(is_inside.src[0]) is True
    return image, padded if is_least else None


def _constant(u: UOp) -> object:
    while u.op in PASSED or u.op in (Ops.EXPAND, Ops.RESHAPE):
        u = u.src[0]
    return u.arg if u.op is Ops.CONST else None


# --- convolutions, as (n, group, channel of the group, *out, channel of the input, *kernel)


def _find_convolution(u: UOp, a: UOp, b: UOp) -> Windows | None:
    shape = u.src[0].shape
    dims, odd = divmod(len(shape) - 4, 2)
    if odd or dims < 1 or not _is_last(u, 1 + dims) or (sizes := _sizes(shape[1:])) is None:
        return None
    groups, each, out, inputs, kernel = (
        sizes[0],
        sizes[1],
        sizes[2 : 2 + dims],
        sizes[2 + dims],
        sizes[3 + dims :],
    )
    ranges = _ranges(shape)
    _, g, p, *other_ranges = ranges
    y, c, i = other_ranges[:dims], other_ranges[dims], other_ranges[dims + 1 :]
    image = _find_image(a, ranges, {g: inputs, c: 1}, groups * inputs, y, i)
    places = [{r: 1} for r in i]
    sizes = (groups * each, inputs, *kernel)
    weight = _find_weight(b, ranges, sizes, [{g: each, p: 1}, {c: 1}, *places], (0,) * (2 + dims))
    if image is None or weight is None:
        return None
    padded_image = _pads(image, _strip(image.node), out, kernel)
    if padded_image is None:
        return None
    source, pads = padded_image
    if all(s == 1 for s in image.strides) and (spread := _spread(source, dims)) is not None:
        flipped = [{r: -1} for r in i]
        offsets = (0, 0, *(k - 1 for k in kernel))
        sizes = (groups * inputs, each, *kernel)
        own = _find_weight(b, ranges, sizes, [{g: inputs, c: 1}, {p: 1}, *flipped], offsets)
        transposed = _as_transposed_convolution(spread, image, kernel, pads)
        if own is not None and transposed is not None:
            return transposed._replace(weight=own, groups=groups)
    return Windows("Conv", source, kernel, image.strides, image.dilations, pads, weight, groups)


def _find_weight(
    u: UOp,
    ranges: list[UOp],
    shape: tuple[int, ...],
    terms: Sequence[dict[UOp, int]],
    offsets: Sequence[int],
) -> UOp | None:
    """The node of this `shape` that `u` reads whole, at the sums `terms` plus `offsets`, if there is one."""
    for node, at in _reads(u, ranges):
        if node.shape == shape and all(map(_is_sum, at, terms, offsets)):
            return node
    return None


class _Spread(NamedTuple):
    """`source` with zeros between its elements, one of `strides` places each."""

    source: UOp
    strides: tuple[int, ...]


def _spread(u: UOp, dims: int) -> _Spread | None:
    """x as (n, c, h, 1, ...), padded behind the new axes, joined, and cut behind the last elements."""
    chain = []
    for op in (Ops.SHRINK, Ops.RESHAPE, Ops.PAD, Ops.RESHAPE):
        u = _strip(u)
        if u.op is not op:
            return None
        chain.append(u)
        u = u.src[0]
    cut, _, padded, _ = chain
    if len(padded.arg) != 2 + 2 * dims or len(u.shape) != 2 + dims or (sizes := _sizes(u.shape[2:])) is None:
        return None
    plain = padded.arg[:2] + padded.arg[2::2]
    if any(pair != (0, 0) for pair in plain) or any(lo for lo, _ in padded.arg):
        return None
    strides = tuple(hi + 1 for _, hi in padded.arg[3::2])
    joined = (*u.shape[:2], *(v for n in sizes for v in (n, 1)))
    ends = tuple((0, (n - 1) * s + 1) for n, s in zip(sizes, strides))
    if padded.src[0].shape != joined or cut.arg[2:] != ends or cut.shape[:2] != u.shape[:2]:
        return None
    return _Spread(u, strides)


def _as_transposed_convolution(
    spread: _Spread, image: _Image, kernel: tuple[int, ...], pads: tuple[int, ...]
) -> Windows | None:
    dims = len(kernel)
    reach = [(k - 1) * d for k, d in zip(kernel, image.dilations)]
    before = tuple(r - lo for r, lo in zip(reach, pads[:dims]))
    behind = tuple(r - hi for r, hi in zip(reach, pads[dims:]))
    extra = tuple(max(-hi, 0) for hi in behind)
    if min(before) < 0 or any(e >= s for e, s in zip(extra, spread.strides)):
        return None
    both = (*before, *(max(hi, 0) for hi in behind))
    return Windows(
        "ConvTranspose", spread.source, kernel, spread.strides, image.dilations, both, output_padding=extra
    )
