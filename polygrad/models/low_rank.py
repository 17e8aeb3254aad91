"""Linear layers with a low-rank adapter beside their weight (LoRA: Hu et al., 2021)."""

from __future__ import annotations

from typing import Any

from polygrad import nn
from polygrad.nn.layer import Layer
from polygrad.nn.packed import linear
from polygrad.tensor.tensor import Tensor


class LowRankLinear(Layer):
    """x @ weightᵀ + bias + scale * dropout(x) @ lora_Aᵀ @ lora_Bᵀ: (..., in) to (..., out).

    `weight` and `bias` are those of the layer `base`; `weight` may be packed, as long as it has a
    `transpose()`. lora_A (rank, in), lora_B (out, rank), both float32.
    """

    def __init__(self, base: Any, lora_A: Tensor, lora_B: Tensor, scale: float, dropout: float) -> None:
        self.weight, self.bias = base.weight, base.bias
        self.lora_A, self.lora_B, self.scale, self.dropout = lora_A, lora_B, scale, dropout

    def __call__(self, x: Tensor) -> Tensor:
        out = linear(x, self.weight, self.bias)
        low = x.cast(self.lora_A.dtype).dropout(self.dropout).linear(self.lora_A.transpose())
        return out + (low.linear(self.lora_B.transpose()) * self.scale).cast(out.dtype)

    def merged(self) -> nn.Linear:
        """The layer that computes the same without an adapter. A packed weight becomes float32."""
        delta = self.lora_B.detach().dot(self.lora_A.detach()) * self.scale
        merged_weight = self.weight.transpose().transpose()
        out = object.__new__(nn.Linear)
        if isinstance(self.weight, Tensor):
            value = (self.weight.detach().cast(delta.dtype) + delta).cast(self.weight.dtype)
        else:
            value = merged_weight.detach().cast(delta.dtype) + delta
        out.weight, out.bias = value.contiguous().realize().requires_grad_(), self.bias
        return out


def has_adapters(module: Any) -> bool:
    """Whether any layer of `module` has an adapter."""
    return any(isinstance(part, LowRankLinear) for _, part in parts_of(module))


def parts_of(module: Any) -> list[tuple[str, Any]]:
    """All objects inside of `module` by their paths, each once: attributes, items of lists and of dicts."""
    out: list[tuple[str, Any]] = []
    visited: set[int] = set()
    stack: list[tuple[str, Any]] = [("", module)]
    while stack:
        path, x = stack.pop()
        children = _children(x)
        if children is None or id(x) in visited:
            continue
        visited.add(id(x))
        if path and not isinstance(x, (list, tuple, dict)):
            out.append((path, x))
        stack.extend((f"{path}.{key}" if path else str(key), value) for key, value in reversed(children))
    return out


def _children(x: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(x, Tensor) or isinstance(x, type):
        return None
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    if isinstance(x, dict):
        return list(x.items())
    return list(vars(x).items()) if hasattr(x, "__dict__") else None
