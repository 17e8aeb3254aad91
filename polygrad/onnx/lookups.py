"""Functions of one tensor of codes, as tables of their values.

Quantised models write an activation as several nodes with a pair of QuantizeLinear and DequantizeLinear
between them. All of it depends on 8 bits: the nodes are computed for the 256 codes, and where that is less
work than the nodes are for each element, the result is looked up. A table has the bits that the nodes have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

from polygrad.dtype import DType, dtypes
from polygrad.onnx.channels_last import processor_of, store_image
from polygrad.onnx.values import Codewise, Constant, Dequantized, Value, floats_of, plain
from polygrad.tensor.tensor import Tensor

Call: TypeAlias = Callable[[list[Value]], list[Value]]
_COUNT = 256  # codes
_MIN_ELEMENTS = 4096  # of a tensor that is looked up
# Ops whose output depends on the elements of their inputs at the same place.
_ELEMENTWISE = frozenset({
    "Abs", "Add", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log",
    "Max", "Min", "Mish", "Mul", "Neg", "Pow", "QuantizeLinear", "Reciprocal", "Relu", "Sigmoid", "Softplus",
    "Softsign", "Sqrt", "Sub", "Swish", "Tanh",
})  # fmt: skip


def call_by_codes(op: str, inputs: list[Value], call: Call) -> list[Value]:
    """`call(inputs)`, what a node computes. What depends on the codes of one tensor alone is Codewise, and
    integers among it are looked up if many nodes compute them."""
    if op == "DequantizeLinear":
        return _dequantized(inputs, call)
    roots = [_codes_of(x) for x in inputs] if op in _ELEMENTWISE else []
    codes = next((root for root in roots if root is not None), None)
    if codes is None or not all(
        root is codes if root is not None else x is None or _is_single(x)
        for root, x in zip(roots, inputs, strict=True)
    ):
        return call(inputs)
    out = call(inputs)
    if len(out) != 1 or not isinstance(out[0], Tensor) or out[0].shape != codes.shape:
        return out
    functions = [_function_of(x) for x in inputs]
    depth = 1 + max(f.depth for f in functions if f is not None)
    codewise = Codewise(out[0], codes, cache(lambda: _table(functions, inputs, call)), depth)
    if op == "QuantizeLinear" and _pays(codewise):
        return [replace(codewise, tensor=_look_up(codewise))]
    return [codewise]


def _dequantized(inputs: list[Value], call: Call) -> list[Value]:
    (out,) = call(inputs)
    x = inputs[0]
    if isinstance(x, Codewise) and isinstance(out, Dequantized) and out.is_uniform:
        functions = [x, *[None] * (len(inputs) - 1)]
        table = cache(lambda: _table(functions, inputs, call))
        return [replace(out, function=replace(x, tensor=out.tensor, table=table))]
    return [out]


def _table(functions: list[Codewise | None], inputs: list[Value], call: Call) -> Tensor:
    """What a node computes for each code. `functions`: of its inputs, those that are some."""
    table = plain(call([x if f is None else f.table() for f, x in zip(functions, inputs, strict=True)])[0])
    assert isinstance(table, Tensor)
    return table.reshape(_COUNT)


def _codes_of(x: Value) -> Tensor | None:
    """The codes that a value is a function of, one element of one; None for other values."""
    if isinstance(x, Dequantized) and x.is_uniform and not _is_single(x):
        return x.codes if x.function is None else x.function.codes
    return x.codes if isinstance(x, Codewise) else None


def _function_of(x: Value) -> Codewise | None:
    """A value that has codes as a function of them; None for others."""
    if isinstance(x, Dequantized) and _codes_of(x) is not None:
        every = cache(lambda: x.of(_all_codes(x.codes.dtype, x.codes.device)))
        return x.function or Codewise(x.tensor, x.codes, every, 0)
    return x if isinstance(x, Codewise) else None


def _is_single(x: Value) -> bool:
    """Whether a value has one element."""
    if isinstance(x, Constant):
        return len(x.numbers) == 1
    return isinstance(x, (Tensor, Dequantized)) and floats_of(x).numel() == 1


def _pays(f: Codewise) -> bool:
    """Whether a look-up is less work than the nodes. It goes element by element, and nodes go by vectors."""
    target = processor_of(f.codes.device)
    size = f.codes.numel()
    if target is None or not isinstance(size, int) or size < _MIN_ELEMENTS:
        return False
    return 0 < target.simd_bytes // f.codes.dtype.itemsize <= 4 * f.depth


def _all_codes(dtype: DType, device: Any) -> Tensor:
    """All codes, those of negative numbers behind the others."""
    return Tensor.arange(_COUNT, dtype=dtypes.uint8, device=device).bitcast(dtype)


def _look_up(f: Codewise) -> Tensor:
    """The element of the table for each code. What sums over a one-hot is compiled to a load."""
    codes = store_image(f.codes).bitcast(dtypes.uint8).unsqueeze(-1)
    hits = codes.eq(_all_codes(dtypes.uint8, f.codes.device))
    table = f.table()
    return hits.where(table, 0).sum(-1, dtype=table.dtype)
