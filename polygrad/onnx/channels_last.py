"""Images that lie channels last in memory between the nodes of a model, on processors.

Neighbours in memory make a vector. Rows of an image are short, 7 or 14 elements in the last layers of most
networks, with padding at their ends; channels are many. With channels last, a convolution is a product of
matrices whose columns are channels, a depthwise one needs no look beyond a row, and the four bytes of a word
of an int8 product are neighbours.

Values that nodes read several times are stored so. Each is a view with its axes in the usual order, so no
node has to know. What is computed element by element in between is part of the kernels that store them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.engine.devices import Device
from polygrad.helpers import prod
from polygrad.onnx.proto import Node
from polygrad.tensor.convolution import steps_of
from polygrad.tensor.tensor import Tensor
from polygrad.uop.ops import GroupOp, Ops

Pairs: TypeAlias = Sequence[tuple[Any, Any]]
_MIN_CHANNELS = 8
_MIN_ELEMENTS = 1024  # of an image
_MIN_PRODUCTS = 1 << 15  # that a convolution adds for one image
_PANEL = 32  # channels: two of the longest vectors
_USUAL = (0, 3, 1, 2)  # the axes of memory, in the usual order
_STORED = frozenset({*GroupOp.Memory, Ops.CONTIGUOUS})
_DTYPES = (dtypes.float32, dtypes.int8, dtypes.uint8)
# Nodes whose first input is stored. Most read an element several times, in windows or planes. The others read
# it under a condition, and a product in their kernel would be computed under that condition, too.
_READERS = frozenset({"Conv", "GlobalAveragePool", "ReduceMean", "MaxPool", "AveragePool", "Resize", "Pad"})
_JOINS = frozenset({"Concat"})  # nodes all of whose inputs are stored, for the same reason
_MOVES = frozenset({"DequantizeLinear", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})

_keeps_order: ContextVar[bool] = ContextVar("keeps_order", default=False)


@contextmanager
def channels_first() -> Iterator[None]:
    """`with channels_first():` images and convolutions keep the usual order of axes, as files have it."""
    token = _keeps_order.set(True)
    try:
        yield
    finally:
        _keeps_order.reset(token)


def names_of_images(nodes: Sequence[Node], outputs: Iterable[str]) -> frozenset[str]:
    """The names of the values of a graph that are stored as images: inputs of `_READERS` and `_JOINS`, and
    the quantised integers that these inputs are made of, also if nodes of `_MOVES` stand in between. Empty
    for a graph without convolutions."""
    if not any(n.op == "Conv" for n in nodes):
        return frozenset()
    images = {n.inputs[0] for n in nodes if n.op in _READERS and n.inputs}
    images |= {name for n in nodes if n.op in _JOINS for name in n.inputs}
    sources = set(images)
    for n in reversed(nodes):  # a node stands behind those that it reads
        if n.op in _MOVES and n.inputs and not sources.isdisjoint(n.outputs):
            sources.add(n.inputs[0])
    codes = {name for n in nodes if n.op == "QuantizeLinear" for name in n.outputs} & sources
    computed = {name for n in nodes for name in n.outputs}
    return frozenset(((images & computed) | codes) - set(outputs))


def processor_of(device: object) -> Target | None:
    """The Target of a device if it is a processor; None for others, and in `channels_first()`: what is
    computed in another way for the sake of processors depends on it."""
    if _keeps_order.get() or not isinstance(device, str):
        return None
    target = Device.backend(device).target
    return target if target.workgroups is None else None


def is_channels_last(device: object) -> bool:
    """Whether images of a device are to lie channels last."""
    target = processor_of(device)
    return target is not None and target.simd_bytes > 0


def store_image(x: Tensor) -> Tensor:
    """A Tensor, as a view of memory in which it lies channels last if that pays: it is an image of many
    channels, and not a small one, whose computation is better part of the kernels that read it."""
    if x.ndim != 4 or x.dtype not in _DTYPES or any(not isinstance(n, int) for n in x.shape[1:]):
        return x
    _, channels, height, width = x.shape
    if channels < _MIN_CHANNELS or height * width < 2 or channels * height * width < _MIN_ELEMENTS:
        return x
    if _is_stored(x) or not is_channels_last(x.device):
        return x
    return x.permute(0, 2, 3, 1).contiguous().permute(*_USUAL)


def _is_stored(x: Tensor) -> bool:
    """Whether a Tensor is what `store_image` returned, computed or not."""
    uop = x.uop
    return uop.op is Ops.PERMUTE and uop.arg == _USUAL and uop.src[0].base.op in _STORED


def convolution(
    x: Tensor,
    weight: Tensor,
    dtype: DType,
    *,
    pairs: Pairs,
    groups: int,
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """`x.conv2d(weight, ...)` in `dtype`. `pairs`: (before, after) of each spatial axis, zeros. Raises
    ShapeError, ArgumentError.

    With channels last, the sums go over these innermost, as memory does, and the weight is stored in their
    order. A short sum keeps the weight of the file, and so does one position: it reads a weight once.
    """
    strides = steps_of(strides, len(pairs), "conv2d: stride")
    dilations = steps_of(dilations, len(pairs), "conv2d: dilation")
    padded = x.pad([(0, 0), (0, 0), *pairs])
    fits = x.ndim == weight.ndim == 4 and x.shape[1] == groups * weight.shape[1]
    fits = fits and x.dtype in _DTYPES and not weight.shape[0] % groups and is_channels_last(x.device)
    if not fits or not _is_long(padded, weight, strides, dilations):
        operands = padded.cast(dtype), weight.cast(dtype)
        return operands[0].conv2d(operands[1], groups=groups, stride=strides, dilation=dilations)
    cout, cin, *kernel = weight.shape
    windows = padded.cast(dtype).pool(tuple(kernel), strides, dilations)
    batch, height, width = windows.shape[0], *windows.shape[2:4]
    windows = windows.reshape(batch, groups, 1, cin, height, width, *kernel).permute(0, 4, 5, 1, 2, 6, 7, 3)
    taps = _stored_taps(weight, groups).cast(dtype).reshape(*kernel, cin, groups, cout // groups)
    taps = taps.permute(3, 4, 0, 1, 2)
    total = (windows * taps).sum((-3, -2, -1), dtype=dtype)
    return total.reshape(batch, height, width, cout).permute(0, 3, 1, 2)


def _is_long(padded: Tensor, weight: Tensor, strides: Sequence[int], dilations: Sequence[int]) -> bool:
    """Whether a convolution is enough work for a weight in another order. Symbolic sizes are."""
    if any(not isinstance(n, int) for n in padded.shape[2:]):
        return True
    sizes = zip(padded.shape[2:], weight.shape[2:], strides, dilations, strict=True)
    positions = prod([(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in sizes])
    return positions > 1 and positions * weight.numel() >= _MIN_PRODUCTS


def _stored_taps(weight: Tensor, groups: int) -> Tensor:
    """A weight (out, in, *kernel) as (*kernel, in, out), in memory in the order in which products read it: in
    panels of some output channels, so that columns of wide weights are not far apart."""
    cout, cin, *kernel = weight.shape
    taps = weight.permute(2, 3, 1, 0)
    is_wide = groups == 1 and cout > _PANEL and cout % _PANEL == 0
    if is_wide and weight.dtype is dtypes.float32 and prod(kernel) > 1:
        panels = taps.reshape(*kernel, cin, cout // _PANEL, _PANEL).permute(3, 0, 1, 2, 4).contiguous()
        return panels.permute(1, 2, 3, 0, 4).reshape(*kernel, cin, cout)
    return taps.contiguous() if cout >= _MIN_CHANNELS else taps
