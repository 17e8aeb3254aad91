"""The training step of `gpt2_tensor.py` as users of torch write it: under autocast, with a fused AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from bench.libraries import shapes

Parameters = dict[str, torch.Tensor]


def make(
    p: Parameters, sizes: shapes.GPT2, dtype: str, compiled: Callable[..., Any], finish: Callable[[], None]
) -> shapes.Program:
    device = p["tokens"].device
    optimizer = torch.optim.AdamW(p.values(), lr=shapes.GPT2_LR, weight_decay=0.01, fused=True)
    ids, targets = (torch.tensor(shapes.tokens(sizes, seed), device=device) for seed in (1, 2))
    of = getattr(torch, dtype)
    function = compiled(lambda p, ids, targets: loss_of(p, sizes, ids, targets))

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast(device.type, of, enabled=of != torch.float32):
            loss: torch.Tensor = function(p, ids, targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return shapes.Program(step, lambda: [float(step()) for _ in range(shapes.STEPS_CHECKED)], finish)


def loss_of(p: Parameters, sizes: shapes.GPT2, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """As `gpt2_tensor.loss_of`."""
    x = F.embedding(ids, p["tokens"]) + p["positions"]
    for i in range(sizes.layers):
        x = _block({name: p[f"{name}{i}"] for name in shapes.GPT2_BLOCK}, sizes.heads, x)
    x = F.layer_norm(x, x.shape[-1:], p["ln_w"], p["ln_b"])
    logits = x @ p["tokens"].T
    return F.cross_entropy(logits.reshape(-1, sizes.vocabulary), targets.reshape(-1))


def _block(p: Parameters, heads: int, x: torch.Tensor) -> torch.Tensor:
    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, p[f"{name}_w"].T, p[f"{name}_b"])

    batch, length, _ = x.shape
    h = linear(F.layer_norm(x, x.shape[-1:], p["ln1_w"], p["ln1_b"]), "qkv")
    q, k, v = (t.reshape(batch, length, heads, -1).transpose(1, 2) for t in h.chunk(3, -1))
    h = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
    x = x + linear(h, "out")
    h = F.gelu(linear(F.layer_norm(x, x.shape[-1:], p["ln2_w"], p["ln2_b"]), "up"), approximate="tanh")
    return x + linear(h, "down")
