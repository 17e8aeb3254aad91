"""Attention, transformer blocks, and their gradients."""

from __future__ import annotations

from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.normalisation import affine_layernorm
from tests.parity.programs.registry import program, with_gradients


@program
def attention(lib: Any, make: Inputs) -> list[Any]:
    q, k, v = (make.normal(2, 4, 10, 8) for _ in range(3))
    return [q.scaled_dot_product_attention(k, v)]


@program
def attention_causal(lib: Any, make: Inputs) -> list[Any]:
    q, k, v = (make.normal(2, 4, 10, 8) for _ in range(3))
    return [q.scaled_dot_product_attention(k, v, is_causal=True)]


@program
def attention_masked(lib: Any, make: Inputs) -> list[Any]:
    q, k, v = (make.normal(2, 4, 10, 8) for _ in range(3))
    return [q.scaled_dot_product_attention(k, v, attn_mask=make.normal(2, 1, 10, 10))]


@program
def attention_backward(lib: Any, make: Inputs) -> list[Any]:
    q, k, v = (make.normal(2, 4, 10, 8) for _ in range(3))
    return with_gradients(make, q.scaled_dot_product_attention(k, v), q, k, v)


@program
def attention_causal_backward(lib: Any, make: Inputs) -> list[Any]:
    q, k, v = (make.normal(2, 4, 10, 8) for _ in range(3))
    return with_gradients(make, q.scaled_dot_product_attention(k, v, is_causal=True), q, k, v)


def heads(x: Any, count: int) -> Any:
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(1, 2)


def self_attention(x: Any, weights: list[Any], mask: Any = None) -> Any:
    q, k, v = (heads(x @ w, 2) for w in weights[:3])
    out = q.scaled_dot_product_attention(k, v, attn_mask=mask)
    return out.transpose(1, 2).reshape(x.shape) @ weights[3]


@program
def multi_head_attention(lib: Any, make: Inputs) -> list[Any]:
    return [self_attention(make.normal(2, 6, 16), [make.normal(16, 16, scale=0.3) for _ in range(4)])]


@program
def multi_head_attention_backward(lib: Any, make: Inputs) -> list[Any]:
    x, weights = make.normal(2, 6, 16), [make.normal(16, 16, scale=0.3) for _ in range(4)]
    return with_gradients(make, self_attention(x, weights), x, *weights)


def transformer_block(x: Any, p: list[Any], mask: Any) -> Any:
    x = x + self_attention(affine_layernorm(x, p[0], p[1]), p[2:6], mask)
    hidden = (affine_layernorm(x, p[6], p[7]) @ p[8] + p[9]).gelu()
    return x + hidden @ p[10] + p[11]


def block_parameters(make: Inputs, width: int) -> list[Any]:
    norm = lambda: [make.positive(width), make.normal(width)]
    square = lambda: make.normal(width, width, scale=0.3)
    wide, narrow = make.normal(width, 4 * width, scale=0.3), make.normal(4 * width, width, scale=0.3)
    mlp = [wide, make.normal(4 * width), narrow, make.normal(width)]
    return [*norm(), *(square() for _ in range(4)), *norm(), *mlp]


def causal(lib: Any, n: int) -> Any:
    arange = lib.Tensor.arange
    return arange(n).reshape(n, 1) >= arange(n).reshape(1, n)


@program
def transformer_block_forward(lib: Any, make: Inputs) -> list[Any]:
    return [transformer_block(make.normal(2, 6, 16), block_parameters(make, 16), causal(lib, 6))]


@program
def transformer_block_backward(lib: Any, make: Inputs) -> list[Any]:
    x, parameters = make.normal(2, 6, 16), block_parameters(make, 16)
    return with_gradients(make, transformer_block(x, parameters, causal(lib, 6)), x, *parameters)


@program
def two_blocks_backward(lib: Any, make: Inputs) -> list[Any]:
    x, first, second = make.normal(2, 6, 16), block_parameters(make, 16), block_parameters(make, 16)
    mask = causal(lib, 6)
    out = transformer_block(transformer_block(x, first, mask), second, mask)
    return with_gradients(make, out, *first, *second)


@program
def language_model_backward(lib: Any, make: Inputs) -> list[Any]:
    """Embedding, a block, an untied head, cross-entropy: every gradient."""
    ids, targets = make.integers(20, 2, 6), make.integers(20, 2, 6)
    tokens, positions, head = make.normal(20, 16), make.normal(6, 16), make.normal(16, 20, scale=0.3)
    parameters = block_parameters(make, 16)
    x = tokens[ids] + positions
    logits = transformer_block(x, parameters, causal(lib, 6)) @ head
    loss = logits.reshape(-1, 20).sparse_categorical_crossentropy(targets.reshape(-1))
    return [loss, *loss.gradient(tokens, positions, head, *parameters)]


@program
def rotary_embedding(lib: Any, make: Inputs) -> list[Any]:
    q = make.normal(2, 6, 4, 8)
    angle = lib.Tensor.arange(6).reshape(6, 1) * (lib.Tensor.arange(4) * -0.5).exp().reshape(1, 4)
    cos, sin = angle.cos().reshape(1, 6, 1, 4), angle.sin().reshape(1, 6, 1, 4)
    a, b = q[..., :4], q[..., 4:]
    return [(a * cos - b * sin).cat(a * sin + b * cos, dim=-1)]


@program
def key_value_cache(lib: Any, make: Inputs) -> list[Any]:
    """One decoding step: the new key and value are written into the cache, which is then attended to."""
    q, k, v = (make.normal(1, 2, 1, 8) for _ in range(3))
    cache = make.normal(2, 1, 2, 12, 8)
    cache[:, :, :, 5:6] = k.stack(v)
    keys, values = cache[0, :, :, :6], cache[1, :, :, :6]
    return [q.scaled_dot_product_attention(keys, values), cache]


@program
def mixture_of_experts(lib: Any, make: Inputs) -> list[Any]:
    """Softly gated: every expert, weighed."""
    x, gate, experts = make.normal(10, 8), make.normal(8, 4), make.normal(4, 8, 8)
    outputs = (x.reshape(1, 10, 8) @ experts).relu()
    return [(outputs * (x @ gate).softmax(-1).transpose().unsqueeze(-1)).sum(0)]
