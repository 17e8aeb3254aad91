"""Convolutions, pooling, networks of them, and their gradients."""

from __future__ import annotations

from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.normalisation import batch_statistics
from tests.parity.programs.registry import program, with_gradients


@program
def conv2d(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(2, 4, 9, 9).conv2d(make.normal(6, 4, 3, 3), make.normal(6))]


@program
def conv2d_strided_padded(lib: Any, make: Inputs) -> list[Any]:
    return [
        make.normal(2, 4, 9, 9).conv2d(make.normal(6, 4, 3, 3), make.normal(6), stride=2, padding=1).relu()
    ]


@program
def conv2d_dilated(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(2, 4, 9, 9).conv2d(make.normal(6, 4, 3, 3), dilation=2, padding=2)]


@program
def conv2d_grouped(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(2, 4, 9, 9).conv2d(make.normal(6, 2, 3, 3), make.normal(6), groups=2)]


@program
def conv2d_depthwise_separable(lib: Any, make: Inputs) -> list[Any]:
    x, depth, point = make.normal(2, 4, 8, 8), make.normal(4, 1, 3, 3), make.normal(6, 4, 1, 1)
    return [x.conv2d(depth, groups=4, padding=1).relu().conv2d(point).relu()]


@program
def conv1d(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(2, 4, 20).conv2d(make.normal(6, 4, 5), padding=2)]


@program
def conv_transpose2d(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(2, 4, 5, 5).conv_transpose2d(make.normal(4, 3, 3, 3), stride=2, padding=1)]


@program
def conv2d_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weight, bias = make.normal(2, 4, 9, 9), make.normal(6, 4, 3, 3), make.normal(6)
    return with_gradients(make, x.conv2d(weight, bias, padding=1), x, weight, bias)


@program
def conv2d_strided_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weight = make.normal(2, 4, 9, 9), make.normal(6, 4, 3, 3)
    return with_gradients(make, x.conv2d(weight, stride=2, dilation=2, padding=2), x, weight)


@program
def conv2d_grouped_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weight = make.normal(2, 4, 9, 9), make.normal(6, 2, 3, 3)
    return with_gradients(make, x.conv2d(weight, groups=2), x, weight)


@program
def max_pool2d(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(2, 4, 9, 9).max_pool2d((3, 3), stride=2, padding=1)]


@program
def max_pool2d_backward(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(2, 4, 8, 8)
    return with_gradients(make, x.max_pool2d((2, 2)), x)


@program
def avg_pool2d(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(2, 4, 9, 9).avg_pool2d((3, 3), stride=2)]


@program
def avg_pool2d_backward(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(2, 4, 8, 8)
    return with_gradients(make, x.avg_pool2d((2, 2)), x)


def lenet(x: Any, p: list[Any]) -> Any:
    x = x.conv2d(p[0], p[1]).relu().max_pool2d((2, 2))
    x = x.conv2d(p[2], p[3]).relu().max_pool2d((2, 2))
    return x.flatten(1) @ p[4] + p[5]


def lenet_parameters(make: Inputs) -> list[Any]:
    shapes = ((4, 1, 3, 3), (4,), (6, 4, 3, 3), (6,), (24, 10), (10,))
    return [make.normal(*shape, scale=0.3) for shape in shapes]


@program
def convolutional_network(lib: Any, make: Inputs) -> list[Any]:
    return [lenet(make.normal(3, 1, 14, 14), lenet_parameters(make))]


@program
def convolutional_network_backward(lib: Any, make: Inputs) -> list[Any]:
    x, labels, parameters = make.normal(3, 1, 14, 14), make.integers(10, 3), lenet_parameters(make)
    loss = lenet(x, parameters).sparse_categorical_crossentropy(labels)
    return [loss, *loss.gradient(*parameters)]


@program
def residual_block_backward(lib: Any, make: Inputs) -> list[Any]:
    """Convolution, batch statistics and ReLU, twice, and the way round them."""
    x, first, second = make.normal(2, 4, 6, 6), make.normal(4, 4, 3, 3), make.normal(4, 4, 3, 3)
    weight, bias = make.positive(4), make.normal(4)
    y = x
    for kernel in (first, second):
        y = y.conv2d(kernel, padding=1)
        mean, var = batch_statistics(y)
        y = y.batchnorm(weight, bias, mean, (var + 1e-5).rsqrt())
        y = y.relu() if kernel is first else (y + x).relu()
    return with_gradients(make, y, x, first, second, weight, bias)


@program
def squeeze_and_excite(lib: Any, make: Inputs) -> list[Any]:
    x, down, up = make.normal(2, 8, 5, 5), make.normal(8, 2), make.normal(2, 8)
    scale = ((x.mean((2, 3)) @ down).relu() @ up).sigmoid()
    return [x * scale.reshape(2, 8, 1, 1)]


@program
def upsample_and_concatenate(lib: Any, make: Inputs) -> list[Any]:
    """A U-net's way up: nearest neighbour, the skip beside it, a convolution."""
    low, skip, weight = make.normal(2, 4, 4, 4), make.normal(2, 3, 8, 8), make.normal(5, 7, 3, 3)
    up = low.reshape(2, 4, 4, 1, 4, 1).expand(2, 4, 4, 2, 4, 2).reshape(2, 4, 8, 8)
    return [up.cat(skip, dim=1).conv2d(weight, padding=1)]


@program
def patch_embedding(lib: Any, make: Inputs) -> list[Any]:
    x, weight, positions = make.normal(2, 3, 8, 8), make.normal(48, 16), make.normal(4, 16)
    patches = x.reshape(2, 3, 2, 4, 2, 4).permute(0, 2, 4, 1, 3, 5).reshape(2, 4, 48)
    return [patches @ weight + positions]
