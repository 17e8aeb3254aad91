"""polygrad's operations of the breadth suite. Also read inside Pyodide: the core's language, no numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

EPSILON = 1e-5


def gelu(x: Any) -> Any:
    return x.gelu()


def turned(x: Any, wanted: bool) -> Any:
    return x.transpose(-1, -2) if wanted else x


def matmul(a: Any, b: Any, ta: bool = False, tb: bool = False) -> Any:
    return turned(a, ta) @ turned(b, tb)


def linear(x: Any, weight: Any, bias: Any, activation: str = "") -> Any:
    y = x.linear(weight.transpose(), bias)
    return y.relu() if activation == "relu" else y.gelu() if activation == "gelu" else y


def conv(x: Any, weight: Any, **settings: int) -> Any:
    return x.conv2d(weight, **settings)


def conv_weight_gradient(x: Any, weight: Any, incoming: Any, **settings: int) -> Any:
    return conv(x, weight, **settings).gradient(weight, gradient=incoming)[0]


def conv_input_gradient(x: Any, weight: Any, incoming: Any, **settings: int) -> Any:
    return conv(x, weight, **settings).gradient(x, gradient=incoming)[0]


def rms_norm(x: Any, weight: Any) -> Any:
    return x * (x.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * weight


def normalize_image(x: Any) -> Any:
    return ((x.permute(0, 3, 1, 2).float() * (1 / 255) - 0.45) * (1 / 0.225)).contiguous()


def with_rows(table: Any, index: Any, values: Any) -> Any:
    table[index] = values
    return table


def axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


OPERATIONS: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "matmul_int8": lambda a, b: a.cast("int32") @ b.cast("int32"),
    "linear": linear,
    "conv": conv,
    "conv_transpose": lambda x, w, **settings: x.conv_transpose2d(w, **settings),
    "conv_weight_gradient": conv_weight_gradient,
    "conv_input_gradient": conv_input_gradient,
    "max_pool": lambda x, kernel, stride, padding=0: x.max_pool2d((kernel, kernel), stride, padding=padding),
    "avg_pool": lambda x, kernel, stride: x.avg_pool2d((kernel, kernel), stride),
    "attention": lambda q, k, v, causal=False: q.scaled_dot_product_attention(k, v, is_causal=causal),
    "sum": lambda x, axis: x.sum(axes(axis)),
    "mean": lambda x, axis: x.mean(axes(axis)),
    "max": lambda x, axis: x.max(axes(axis)),
    "argmax": lambda x, axis: x.argmax(axis),
    "var": lambda x, axis: x.var(axis),
    "logsumexp": lambda x, axis: x.logsumexp(axis),
    "cumsum": lambda x, axis: x.cumsum(axis),
    "cumprod": lambda x, axis: x.cumprod(axis),
    "cummax": lambda x, axis: x.cummax(axis)[0],
    "sort": lambda x: x.sort(-1)[0],
    "argsort": lambda x: x.argsort(-1),
    "topk": lambda x, k: x.topk(k)[0],
    "softmax": lambda x, axis: x.softmax(axis),
    "log_softmax": lambda x, axis: x.log_softmax(axis),
    "layer_norm": lambda x, w, b: x.layernorm(eps=EPSILON) * w + b,
    "rms_norm": rms_norm,
    "permute": lambda x, order: x.permute(order).contiguous(),
    "cat": lambda *xs, axis: xs[0].cat(*xs[1:], dim=axis),
    "strided": lambda x, starts, steps: x[*map(slice, starts, x.shape, steps)].contiguous(),
    "flip": lambda x, axes: x.flip(*axes).contiguous(),
    "pad": lambda x, widths: x.pad([tuple(pair) for pair in widths]).contiguous(),
    "resize": lambda x, size, mode: x.interpolate((size, size), mode=mode),
    "normalize_image": normalize_image,
    "cast": lambda x, to: x.cast(to),
    "quantize": lambda x: (x * 64).round().cast("int8"),
    "where_less": lambda a, b, x, y: (a < b).where(x, y),
    "add": lambda a, b: a + b,
    "erf": lambda x: x.erf(),
    "chain": lambda x: (x.exp().sin() + 2).log().tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "tanh": lambda x: x.tanh(),
    "pow": lambda x, y: x.pow(y),
    "gelu": gelu,
    "dropout": lambda x: x.dropout(0.5),
    "take_rows": lambda table, rows: table[rows],
    "gather": lambda x, index: x.gather(1, index),
    "scatter_add": lambda x, index, size: x.new_zeros(size).scatter_reduce(0, index, x, "sum"),
    "write_rows": lambda x, index, values: with_rows(x.clone(), index, values),
    "scatter": lambda x, index, values: x.scatter(0, index, values),
    "histogram": lambda x, bins: x.histc(bins, -1, 1),
}

# What the elements decide the size of, or where they go: as written, nothing captured.
SELECTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "masked_select": lambda x, steps: x.masked_select(x > 0.5),
    "nonzero": lambda x, steps: (x > 0.5).nonzero(),
    "unique": lambda x, steps: (x * 1000).int().unique(),
    "searchsorted": lambda x, steps: steps.searchsorted(x),
}


def of_library(lib: Any) -> dict[str, Callable[..., Any]]:
    """The operations that are no methods of their operands."""

    def layer(of: Any, x: Any, weight: Any, bias: Any) -> Any:
        of.weight, of.bias = weight, bias
        return of(x)

    def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
        return layer(lib.nn.BatchNorm(x.shape[1], EPSILON, track_running_stats=False), x, weight, bias)

    def group_norm(x: Any, weight: Any, bias: Any, groups: int) -> Any:
        return layer(lib.nn.GroupNorm(groups, x.shape[1], EPSILON), x, weight, bias)

    return {
        "rand": lambda shape: lib.Tensor.rand(*shape),
        "randn": lambda shape: lib.Tensor.randn(*shape),
        "batch_norm": batch_norm,
        "group_norm": group_norm,
    }


def operand(lib: Any, uniform: Callable[[int, int], Any], seed: int, spec: Any) -> Any:
    """The numbers of `inputs.operand`; exact, for integers' low and high are a power of two apart."""
    x = lib.Tensor(uniform(seed, math.prod(spec["shape"])))
    low, high = spec["low"], spec["high"]
    if (low, high) != (-1, 1):
        x = (x + 1) * ((high - low) / 2) + low
    whole = "int" in spec["dtype"]
    return (x.floor() if whole else x).cast(spec["dtype"]).reshape(spec["shape"]).contiguous().realize()
