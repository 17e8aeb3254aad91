"""numpy's operations of the breadth suite; `out` is memory that is there already, where numpy takes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.libraries.inputs import moments, numbers, operand
from bench.libraries.shapes import Program

Array = np.ndarray
RNG = np.random.default_rng(1)


def make(
    op: str, operands: list[Any], attributes: dict[str, Any], gradients: list[int], check: str
) -> Program:
    if gradients:
        raise NotImplementedError("numpy has no gradients")
    arrays = [operand(i + 1, spec) for i, spec in enumerate(operands)]
    function = OPERATIONS[op]
    settings = dict(attributes)
    if op in INTO:
        settings["out"] = function(*arrays, out=None, **attributes)
    seen = moments if check == "moments" else numbers
    return Program(
        lambda: function(*arrays, **settings), lambda: [float(x) for x in seen(function(*arrays, **settings))]
    )


def with_rows(table: Array, index: Array, values: Array) -> Array:
    table[index] = values
    return table


def scattered(table: Array, index: Array, values: Array) -> Array:
    np.put_along_axis(table, index, values, 0)
    return table


def axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def turned(x: Array, wanted: bool) -> Array:
    return x.swapaxes(-1, -2) if wanted else x


def matmul(a: Array, b: Array, out: Array | None, ta: bool = False, tb: bool = False) -> Array:
    return np.matmul(turned(a, ta), turned(b, tb), out=out)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x * x * x)))


def linear(x: Array, weight: Array, bias: Array, activation: str = "") -> Array:
    y = x @ weight.T
    y += bias
    if activation == "relu":
        return np.maximum(y, 0, out=y)
    return gelu(y) if activation == "gelu" else y


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    e /= e.sum(axis, keepdims=True)
    return e


def log_softmax(x: Array, axis: int) -> Array:
    x = x - x.max(axis, keepdims=True)
    x -= np.log(np.exp(x).sum(axis, keepdims=True))
    return x


def logsumexp(x: Array, axis: int) -> Array:
    top = x.max(axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis)) + np.squeeze(top, axis)


def attention(q: Array, k: Array, v: Array, causal: bool = False) -> Array:
    scores = q @ k.swapaxes(-1, -2)
    scores *= np.float32(q.shape[-1] ** -0.5)
    if causal:
        scores += np.triu(np.full(scores.shape[-2:], -np.inf, np.float32), 1)
    return softmax(scores, -1) @ v


def standardized(x: Array, axis: Any) -> Array:
    centred = x - x.mean(axis, keepdims=True)
    centred /= np.sqrt((centred * centred).mean(axis, keepdims=True) + np.float32(1e-5))
    return centred


def batch_norm(x: Array, weight: Array, bias: Array) -> Array:
    return standardized(x, (0, 2, 3)) * weight[:, None, None] + bias[:, None, None]


def layer_norm(x: Array, weight: Array, bias: Array) -> Array:
    return standardized(x, -1) * weight + bias


def group_norm(x: Array, weight: Array, bias: Array, groups: int) -> Array:
    y = standardized(x.reshape(len(x), groups, -1), -1).reshape(x.shape)
    return y * weight[:, None, None] + bias[:, None, None]


def rms_norm(x: Array, weight: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-5)) * weight


def permute(x: Array, out: Array | None, order: list[int]) -> Array:
    if out is None:
        return np.ascontiguousarray(x.transpose(order))
    np.copyto(out, x.transpose(order))
    return out


def normalize_image(x: Array) -> Array:
    y = x.transpose(0, 3, 1, 2).astype(np.float32)
    y *= np.float32(1 / 255)
    y -= np.float32(0.45)
    y *= np.float32(1 / 0.225)
    return y


def cast(x: Array, out: Array | None, to: str) -> Array:
    if out is None:
        return x.astype(to)
    np.copyto(out, x, casting="unsafe")
    return out


def chain(x: Array) -> Array:
    return np.tanh(np.log(np.sin(np.exp(x)) + np.float32(2)))


def dropout(x: Array) -> Array:
    return np.where(RNG.random(x.shape, np.float32) < 0.5, x * 2, 0)


def rand(out: Array | None, shape: list[int]) -> Array:
    return RNG.random(None if out is not None else shape, np.float32, out)


def randn(out: Array | None, shape: list[int]) -> Array:
    return RNG.standard_normal(None if out is not None else shape, np.float32, out)


OPERATIONS: dict[str, Callable[..., Array]] = {
    "matmul": matmul,
    "matmul_int8": lambda a, b, out: np.matmul(a, b, dtype=np.int32, out=out),
    "linear": linear,
    "attention": attention,
    "sum": lambda x, axis: x.sum(axes(axis)),
    "mean": lambda x, axis: x.mean(axes(axis)),
    "max": lambda x, axis: x.max(axes(axis)),
    "argmax": lambda x, axis: x.argmax(axis),
    "var": lambda x, axis: x.var(axis, ddof=1),
    "logsumexp": logsumexp,
    "cumsum": lambda x, out, axis: np.cumsum(x, axis, out=out),
    "cumprod": lambda x, out, axis: np.cumprod(x, axis, out=out),
    "cummax": lambda x, out, axis: np.maximum.accumulate(x, axis, out=out),
    "sort": lambda x: np.sort(x, kind="stable"),
    "argsort": lambda x: np.argsort(x, kind="stable").astype(np.int32),
    "softmax": softmax,
    "log_softmax": log_softmax,
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "rms_norm": rms_norm,
    "permute": permute,
    "cat": lambda *arrays, out, axis: np.concatenate(arrays, axis, out=out),
    "normalize_image": normalize_image,
    "cast": cast,
    "quantize": lambda x: np.rint(x * np.float32(64)).astype(np.int8),
    "where_less": lambda a, b, x, y: np.where(a < b, x, y),
    "add": lambda a, b, out: np.add(a, b, out=out),
    "chain": chain,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": lambda x, out: np.tanh(x, out=out),
    "pow": lambda x, y, out: np.power(x, y, out=out),
    "gelu": gelu,
    "rand": rand,
    "randn": randn,
    "dropout": dropout,
    "take_rows": lambda table, rows, out: np.take(table, rows, 0, out=out, mode="clip"),
    "gather": lambda x, index: np.take_along_axis(x, index, 1),
    "scatter_add": lambda x, index, size: np.bincount(index, x, size).astype(np.float32),
    "write_rows": lambda x, index, values: with_rows(x.copy(), index, values),
    "scatter": lambda x, index, values: scattered(x.copy(), index, values),
    "histogram": lambda x, bins: np.histogram(x, bins, (-1, 1))[0].astype(np.float32),
}
SELECTIONS = {
    "masked_select": lambda x, steps: x[x > 0.5],
    "nonzero": lambda x, steps: np.argwhere(x > 0.5),
    "unique": lambda x, steps: np.unique((x * 1000).astype(np.int32)),
    "searchsorted": lambda x, steps: np.searchsorted(steps, x),
}
INTO = {
    "matmul",
    "matmul_int8",
    "cumsum",
    "cumprod",
    "cummax",
    "permute",
    "cat",
    "cast",
    "add",
    "tanh",
    "pow",
    "rand",
    "randn",
    "take_rows",
}
