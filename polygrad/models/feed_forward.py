"""The feed-forward layers of transformers: plain, gated, or a mixture of experts."""

from __future__ import annotations

from collections.abc import Callable

from polygrad import nn
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.tensor import Tensor

Activation = Callable[[Tensor], Tensor]


class FeedForward(Layer):
    """down(activation(up(x))): (..., hidden) to the same shape. `dropout`: the part of the inner numbers that
    is dropped in training mode."""

    def __init__(
        self, hidden: int, inner: int, act: Activation, bias: bool = True, dropout: float = 0.0
    ) -> None:
        self.up_proj, self.down_proj = nn.Linear(hidden, inner, bias), nn.Linear(inner, hidden, bias)
        self.activation, self.dropout = act, dropout

    def __call__(self, x: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.up_proj(x)).dropout(self.dropout))


class GatedFeedForward(Layer):
    """down(activation(gate(x)) * up(x)): (..., hidden) to the same shape (Shazeer, 2020). `dropout`: see
    `FeedForward`."""

    def __init__(
        self, hidden: int, inner: int, act: Activation, bias: bool = False, dropout: float = 0.0
    ) -> None:
        self.gate_proj, self.up_proj = nn.Linear(hidden, inner, bias), nn.Linear(hidden, inner, bias)
        self.down_proj = nn.Linear(inner, hidden, bias)
        self.activation, self.dropout = act, dropout

    def __call__(self, x: Tensor) -> Tensor:
        inner = self.activation(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(inner.dropout(self.dropout))


class Experts(Layer):
    """Gated feed-forward layers, of which each token goes through `per_token`, as a router says (Shazeer et
    al., 2017): (..., hidden) to the same shape.

    Weights lie one behind the other: gate_proj, up_proj (experts, inner, hidden), down_proj (experts, hidden,
    inner). `renormalize`: the weights of the chosen experts are divided by their sum.

    For few tokens, only the weights of their own experts are read. Many tokens go through all experts, most
    with weight 0: products of whole matrices are faster than gathers of rows.
    """

    packable = ("gate_proj", "up_proj", "down_proj")

    def __init__(
        self, hidden: int, inner: int, act: Activation, experts: int, per_token: int, renormalize: bool
    ) -> None:
        self.router = nn.Linear(hidden, experts, bias=False)
        bound = hidden**-0.5
        shape = (experts, inner, hidden)
        self.gate_proj = parameter(Tensor.uniform(*shape, low=-bound, high=bound))
        self.up_proj = parameter(Tensor.uniform(*shape, low=-bound, high=bound))
        self.down_proj = parameter(Tensor.uniform(experts, hidden, inner, low=-bound, high=bound))
        self.activation, self.experts, self.per_token = act, experts, per_token
        self.renormalize = renormalize

    def __call__(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        weights, experts = self.router(tokens).float().softmax(-1).topk(self.per_token)
        if self.renormalize:
            weights = weights / weights.sum(-1, keepdim=True)
        mixed = (
            self._selected_experts if _are_few(tokens.shape[0], self.per_token, self.experts) else self._all
        )
        return mixed(tokens, weights.cast(x.dtype), experts).reshape(*x.shape)

    def _selected_experts(self, tokens: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
        """Tokens (n, hidden), weights and numbers of their experts (n, per_token)."""
        rows = tokens.unsqueeze(1).unsqueeze(1)  # (n, 1, 1, hidden)
        gate = (rows * self.gate_proj[experts]).sum(-1)  # (n, per_token, inner)
        up = (rows * self.up_proj[experts]).sum(-1)
        inner = self.activation(gate) * up
        out = (inner.unsqueeze(2) * self.down_proj[experts]).sum(-1)
        return (out * weights.unsqueeze(-1)).sum(1)

    def _all(self, tokens: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
        """As `_selected_experts`."""
        shares = (experts.one_hot(self.experts) * weights.unsqueeze(-1)).sum(1)  # (n, experts)
        gate = tokens.dot(self.gate_proj.transpose(1, 2))  # (experts, n, inner)
        inner = self.activation(gate) * tokens.dot(self.up_proj.transpose(1, 2))
        out = inner.dot(self.down_proj.transpose(1, 2))  # (experts, n, hidden)
        return (out * shares.transpose(0, 1).unsqueeze(-1)).sum(0)


def _are_few(tokens: object, per_token: int, experts: int) -> bool:
    """Whether fewer experts' weights are read token by token than there are experts."""
    return isinstance(tokens, int) and tokens * per_token < experts
