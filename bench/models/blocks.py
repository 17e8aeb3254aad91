"""Small programs whose kernels are counted; `lib` is the module `polygrad` or `tinygrad`.

Each returns its realized inputs and the function from them to the lazy result.
"""

import random
from collections.abc import Callable
from typing import Any

Block = tuple[list[Any], Callable[..., Any]]


def _tensor(lib: Any, *shape: int) -> Any:
    size = 1
    for s in shape:
        size *= s
    draw = random.Random(size).random
    return lib.Tensor([2 * draw() - 1 for _ in range(size)], dtype="float32").reshape(*shape).realize()


def softmax(lib: Any) -> Block:
    """(64, 128), over the last axis."""
    return [_tensor(lib, 64, 128)], lambda x: x.softmax(-1)


def layernorm(lib: Any) -> Block:
    """(64, 128) with weight and bias."""

    def forward(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdim=True)
        variance = (centred * centred).mean(axis=-1, keepdim=True)
        return centred * (variance + 1e-5).rsqrt() * weight + bias

    return [_tensor(lib, 64, 128), _tensor(lib, 128), _tensor(lib, 128)], forward


def attention(lib: Any) -> Block:
    """Scores, softmax, values: four heads, length 64, head width 16."""

    def forward(q: Any, k: Any, v: Any) -> Any:
        return (q @ k.transpose(-2, -1) * 0.25).softmax(-1) @ v

    return [_tensor(lib, 2, 4, 64, 16) for _ in range(3)], forward


BLOCKS = {"softmax": softmax, "layernorm": layernorm, "attention": attention}
