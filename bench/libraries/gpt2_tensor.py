"""A training step of GPT-2 (Radford et al. 2019) against the Tensor API that polygrad and tinygrad share.

Parameters, their gradients, the residual stream and normalisations are float32; products and attention are
of `dtype`. AdamW. The same program for torch is in `gpt2_torch.py`.
"""

from __future__ import annotations

from typing import Any

try:
    from bench.libraries import shapes
except ImportError:  # in a page the files lie side by side
    import shapes

Parameters = dict[str, Any]


def make(maker: Any, sizes: shapes.GPT2, dtype: str) -> shapes.Program:
    """`maker`: of `with_tensor.py`."""
    lib = maker.lib
    p = maker.parameters(shapes.gpt2_parameters(sizes))
    optimizer = lib.nn.optim.AdamW(list(p.values()), lr=shapes.GPT2_LR)
    inputs = [lib.Tensor(shapes.tokens(sizes, seed), dtype="int32").realize() for seed in (1, 2)]

    @lib.TinyJit
    def train(ids: Any, targets: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(p, sizes, dtype, ids, targets).backward()
        lib.Tensor.realize(loss, *optimizer.schedule_step())
        return loss

    def check() -> list[float]:
        return [train(*inputs).item() for _ in range(shapes.STEPS_CHECKED)]

    return shapes.Program(lambda: train(*inputs), check, maker.finish, maker.threads)


def loss_of(p: Parameters, sizes: shapes.GPT2, dtype: str, ids: Any, targets: Any) -> Any:
    """Mean cross-entropy of `targets` `(batch, length)` after token ids `(batch, length)`."""
    x = p["tokens"][ids] + p["positions"]
    for i in range(sizes.layers):
        x = _block({name: p[f"{name}{i}"] for name in shapes.GPT2_BLOCK}, sizes.heads, dtype, x)
    x = (x.layernorm(eps=1e-5) * p["ln_w"] + p["ln_b"]).cast(dtype)
    logits = (x @ p["tokens"].cast(dtype).transpose()).cast("float32")
    return logits.reshape(-1, sizes.vocabulary).sparse_categorical_crossentropy(targets.reshape(-1))


def _block(p: Parameters, heads: int, dtype: str, x: Any) -> Any:
    def linear(x: Any, name: str) -> Any:
        return x.cast(dtype) @ p[f"{name}_w"].cast(dtype) + p[f"{name}_b"].cast(dtype)

    batch, length, width = x.shape
    h = linear(x.layernorm(eps=1e-5) * p["ln1_w"] + p["ln1_b"], "qkv")
    q, k, v = (t.reshape(batch, length, heads, -1).transpose(1, 2) for t in h.chunk(3, dim=-1))
    h = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
    x = x + linear(h, "out").cast("float32")
    h = linear(x.layernorm(eps=1e-5) * p["ln2_w"] + p["ln2_b"], "up").gelu()
    return x + linear(h, "down").cast("float32")
