"""torch's operations of the breadth suite, eager; `out` is memory that is there already, as users pass it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bench.libraries.inputs import moments, numbers, operand, uniform
from bench.libraries.shapes import GRADIENT_SEED, Program


def make(
    op: str, operands: list[Any], attributes: dict[str, Any], gradients: list[int], check: str
) -> Program:
    inputs = [tensor(i + 1, spec) for i, spec in enumerate(operands)]
    if op in ("gather", "scatter_add", "write_rows", "scatter"):  # take no other integers
        inputs[1] = inputs[1].long()
    function = OPERATIONS[op]
    if gradients:
        return with_gradients(lambda: function(*inputs, **attributes), [inputs[i] for i in gradients])
    settings = dict(attributes)
    if op in INTO:
        settings["out"] = function(*inputs, out=None, **attributes)

    @torch.inference_mode()
    def step() -> Tensor:
        return function(*inputs, **settings)

    seen = moments if check == "moments" else numbers
    return Program(step, lambda: seen(array(step())))


def tensor(seed: int, spec: Any) -> Tensor:
    """torch takes bfloat16 from no array."""
    if spec["dtype"] == "bfloat16":
        return torch.from_numpy(operand(seed, spec | {"dtype": "float32"})).bfloat16()
    return torch.from_numpy(operand(seed, spec))


def array(x: Tensor) -> np.ndarray:
    return (x.float() if x.dtype == torch.bfloat16 else x).detach().numpy()


def with_gradients(forward: Callable[[], Tensor], targets: list[Tensor]) -> Program:
    """The output and the gradients of these, for a gradient of the output."""
    for target in targets:
        target.requires_grad_()
    incoming = torch.from_numpy(uniform(GRADIENT_SEED, *forward().shape))

    def step() -> tuple[Tensor, ...]:
        out = forward()
        return out, *torch.autograd.grad(out, targets, incoming)

    return Program(step, lambda: [v for x in step() for v in numbers(array(x))])


def turned(x: Tensor, wanted: bool) -> Tensor:
    return x.transpose(-1, -2) if wanted else x


def matmul(a: Tensor, b: Tensor, out: Tensor | None = None, ta: bool = False, tb: bool = False) -> Tensor:
    return torch.matmul(turned(a, ta), turned(b, tb), out=out)


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def linear(x: Tensor, weight: Tensor, bias: Tensor, activation: str = "") -> Tensor:
    y = F.linear(x, weight, bias)
    return F.relu(y) if activation == "relu" else gelu(y) if activation == "gelu" else y


def conv(x: Tensor, weight: Tensor, **settings: int) -> Tensor:
    return (F.conv1d if weight.ndim == 3 else F.conv2d)(x, weight, **settings)


def conv_weight_gradient(x: Tensor, weight: Tensor, incoming: Tensor, **settings: int) -> Tensor:
    return torch.nn.grad.conv2d_weight(x, weight.shape, incoming, **settings)


def conv_input_gradient(x: Tensor, weight: Tensor, incoming: Tensor, **settings: int) -> Tensor:
    return torch.nn.grad.conv2d_input(x.shape, weight, incoming, **settings)


def permute(x: Tensor, order: list[int], out: Tensor | None = None) -> Tensor:
    y = x.permute(order)
    return y.contiguous() if out is None else out.copy_(y)


def cast(x: Tensor, to: str, out: Tensor | None = None) -> Tensor:
    return x.to(getattr(torch, to)) if out is None else out.copy_(x)


def normalize_image(x: Tensor) -> Tensor:
    y = x.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
    return y.mul_(1 / 255).sub_(0.45).mul_(1 / 0.225)


def resize(x: Tensor, size: int, mode: str) -> Tensor:
    return F.interpolate(x, (size, size), mode="bilinear" if mode == "linear" else mode)


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, weight, bias, training=True)


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "matmul": matmul,
    "matmul_int8": lambda a, b, out: torch._int_mm(a, b) if out is None else torch._int_mm(a, b, out=out),
    "linear": linear,
    "conv": conv,
    "conv_transpose": lambda x, w, **settings: F.conv_transpose2d(x, w, **settings),
    "conv_weight_gradient": conv_weight_gradient,
    "conv_input_gradient": conv_input_gradient,
    "max_pool": lambda x, kernel, stride, padding=0: F.max_pool2d(x, kernel, stride, padding),
    "avg_pool": lambda x, kernel, stride: F.avg_pool2d(x, kernel, stride),
    "attention": lambda q, k, v, causal=False: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
    "sum": lambda x, axis: x.sum(axis),
    "mean": lambda x, axis: x.mean(axis),
    "max": lambda x, axis: x.amax(axis),
    "argmax": lambda x, axis: x.argmax(axis),
    "var": lambda x, axis: x.var(axis),
    "logsumexp": lambda x, axis: x.logsumexp(axis),
    "cumsum": lambda x, axis, out=None: torch.cumsum(x, axis, out=out),
    "cumprod": lambda x, axis, out=None: torch.cumprod(x, axis, out=out),
    "cummax": lambda x, axis: torch.cummax(x, axis)[0],
    "sort": lambda x: torch.sort(x, stable=True)[0],
    "argsort": lambda x: torch.argsort(x, stable=True),
    "topk": lambda x, k: torch.topk(x, k)[0],
    "softmax": lambda x, axis: x.softmax(axis),
    "log_softmax": lambda x, axis: x.log_softmax(axis),
    "batch_norm": batch_norm,
    "layer_norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5),
    "group_norm": lambda x, w, b, groups: F.group_norm(x, groups, w, b, 1e-5),
    "rms_norm": lambda x, w: F.rms_norm(x, w.shape, w, 1e-5),
    "permute": permute,
    "cat": lambda *xs, axis, out=None: torch.cat(xs, axis, out=out),
    "strided": lambda x, starts, steps: x[*map(slice, starts, x.shape, steps)].contiguous(),
    "flip": lambda x, axes: x.flip(axes),
    "pad": lambda x, widths: F.pad(x, [n for pair in reversed(widths) for n in pair]),
    "resize": resize,
    "normalize_image": normalize_image,
    "cast": cast,
    "quantize": lambda x: torch.round(x * 64).to(torch.int8),
    "where_less": lambda a, b, x, y: torch.where(a < b, x, y),
    "add": lambda a, b, out=None: torch.add(a, b, out=out),
    "erf": lambda x, out=None: torch.erf(x, out=out),
    "chain": lambda x: torch.tanh(torch.log(torch.sin(torch.exp(x)) + 2)),
    "sigmoid": lambda x, out=None: torch.sigmoid(x, out=out),
    "tanh": lambda x, out=None: torch.tanh(x, out=out),
    "pow": lambda x, y, out=None: torch.pow(x, y, out=out),
    "gelu": gelu,
    "rand": lambda shape, out=None: torch.rand(shape, out=out),
    "randn": lambda shape, out=None: torch.randn(shape, out=out),
    "dropout": lambda x: F.dropout(x, 0.5, training=True),
    "take_rows": lambda table, rows: F.embedding(rows, table),
    "gather": lambda x, index: torch.gather(x, 1, index),
    "scatter_add": lambda x, index, size: x.new_zeros(size).scatter_add(0, index, x),
    "write_rows": lambda x, index, values: x.index_put((index,), values),
    "scatter": lambda x, index, values: x.scatter(0, index, values),
    "histogram": lambda x, bins: torch.histc(x, bins, -1, 1),
}
SELECTIONS = {
    "masked_select": lambda x, steps: x.masked_select(x > 0.5),
    "nonzero": lambda x, steps: (x > 0.5).nonzero(),
    "unique": lambda x, steps: (x * 1000).int().unique(),
    "searchsorted": lambda x, steps: torch.searchsorted(steps, x),
}
INTO = {
    "matmul",
    "matmul_int8",
    "cumsum",
    "cumprod",
    "permute",
    "cat",
    "cast",
    "add",
    "erf",
    "sigmoid",
    "tanh",
    "pow",
    "rand",
    "randn",
}
