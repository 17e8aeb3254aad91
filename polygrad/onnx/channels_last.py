"""Images that lie channels last in memory between the nodes of a model, where vectors are long.

Neighbours in memory make a vector. Rows of an image are short, 7 or 14 elements in the last layers of most
networks, with padding at their ends; channels are many. With channels last, a convolution is a product of
matrices whose columns are channels, a depthwise one needs no look beyond a row, and the four bytes of a word
of an int8 product are neighbours.

Values that nodes read several times are stored so. Each is a view with its axes in the usual order, so no
node has to know. What is computed element by element in between is part of the kernels that store them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from polygrad.dtype import DType, dtypes
from polygrad.engine.devices import Device
from polygrad.onnx.proto import Node
from polygrad.tensor.tensor import Tensor

Pairs: TypeAlias = Sequence[tuple[Any, Any]]
_MIN_SIMD_BYTES = 32  # of vectors that rows of 7 elements do not fill
_MIN_CHANNELS = 8
_DTYPES = (dtypes.float32, dtypes.int8, dtypes.uint8)
# Nodes that read windows, planes or elements of their first input several times.
_READERS = frozenset({"Conv", "GlobalAveragePool", "ReduceMean", "MaxPool", "AveragePool", "Resize"})
# Those of codes: a product of bytes shares no kernel with a concatenation.
_CODE_READERS = _READERS | {"Concat"}
_MOVES = frozenset({"DequantizeLinear", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def names_of_images(nodes: Sequence[Node], outputs: Iterable[str]) -> frozenset[str]:
    """The names of values that nodes read several times, and of the codes that such values stand for; none in
    a graph without convolutions."""
    if not any(n.op == "Conv" for n in nodes):
        return frozenset()
    images = {n.inputs[0] for n in nodes if n.op in _READERS and n.inputs}
    sources = {name for n in nodes if n.op in _CODE_READERS for name in n.inputs}
    for n in reversed(nodes):  # a node stands behind those that it reads
        if n.op in _MOVES and n.inputs and not sources.isdisjoint(n.outputs):
            sources.add(n.inputs[0])
    codes = {name for n in nodes if n.op == "QuantizeLinear" for name in n.outputs} & sources
    computed = {name for n in nodes for name in n.outputs}
    return frozenset(((images & computed) | codes) - set(outputs))


def is_channels_last(device: object) -> bool:
    """Whether images of a device are to lie channels last."""
    if not isinstance(device, str):
        return False
    target = Device.backend(device).target
    return target.workgroups is None and target.simd_bytes >= _MIN_SIMD_BYTES


def store_image(x: Tensor) -> Tensor:
    """A Tensor, as a view of memory in which it lies channels last if it is an image of many channels."""
    if x.ndim != 4 or x.dtype not in _DTYPES or any(not isinstance(n, int) for n in x.shape[1:]):
        return x
    _, channels, height, width = x.shape
    if channels < _MIN_CHANNELS or height * width < 2 or not is_channels_last(x.device):
        return x
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


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
    """`x.conv2d(weight, ...)` in `dtype`. `pairs`: (before, after) of each spatial axis, zeros.

    With channels last, the sums go over these innermost, as memory does.
    """
    padded = x.pad([(0, 0), (0, 0), *pairs])
    fits = x.ndim == weight.ndim == 4 and x.shape[1] == groups * weight.shape[1]
    if not fits or x.dtype not in _DTYPES or weight.shape[0] % groups or not is_channels_last(x.device):
        operands = padded.cast(dtype), weight.cast(dtype)
        return operands[0].conv2d(operands[1], groups=groups, stride=list(strides), dilation=list(dilations))
    cout, cin, *kernel = weight.shape
    windows = padded.cast(dtype).pool(tuple(kernel), tuple(strides), tuple(dilations))
    batch, height, width = windows.shape[0], *windows.shape[2:4]
    windows = windows.reshape(batch, groups, 1, cin, height, width, *kernel).permute(0, 4, 5, 1, 2, 6, 7, 3)
    taps = weight.permute(2, 3, 1, 0)
    if cout >= _MIN_CHANNELS:
        taps = taps.contiguous()
    taps = taps.cast(dtype).reshape(*kernel, cin, groups, cout // groups).permute(3, 4, 0, 1, 2)
    total = (windows * taps).sum((-3, -2, -1), dtype=dtype)
    return total.reshape(batch, height, width, cout).permute(0, 3, 1, 2)
